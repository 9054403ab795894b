//! What left the twins, compared.
//!
//! Frames are compared whole, with the port they left by, as two bags: order between flows does not matter. What no router
//! could have the same is made the same first: the identification of ICMP packets, and with a key that is not known the path
//! of those that are forwarded. What the kernels do for themselves is left out: neighbours, groups.

use crate::cable::ETHERNET;
use crate::packets::{MARK, Sent};
use crate::plan;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::net::IpAddr;

/// The TTL of what a router sends itself; those of the packets sent are below.
const DEFAULT_TTL: u8 = 64;

/// A frame that left a router, and the port.
pub type Left = (usize, Vec<u8>);

/// A frame that left one twin and not the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Whether it was the kernel's twin.
    pub by_kernel: bool,
    pub port: usize,
    pub frame: Vec<u8>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.by_kernel { "the kernel" } else { "causeway" };
        write!(f, "only {who} sent by p{}: {}", self.port, hex(&self.frame))
    }
}

/// Octets as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The number of the packet that a frame is, or is about.
pub fn number(frame: &[u8]) -> Option<u32> {
    let at = frame.windows(MARK.len()).position(|window| window == MARK)?;
    Some(u32::from_be_bytes(*frame.get(at + MARK.len()..)?.first_chunk()?))
}

/// Where a packet is to go.
pub fn destination(frame: &[u8]) -> Option<IpAddr> {
    match frame.get(12..14)? {
        [8, 0] => Some(IpAddr::from(*frame.get(30..)?.first_chunk::<4>()?)),
        [0x86, 0xdd] => Some(IpAddr::from(*frame.get(38..)?.first_chunk::<16>()?)),
        _ => None,
    }
}

/// Whether a frame is a sent one that was forwarded: the same packet with a smaller TTL or hop limit.
pub fn is_forwarded(sent: &Sent, frame: &[u8]) -> bool {
    let at = if frame.get(12..14) == Some(&[8, 0]) { 8 } else { 7 };
    let (Some(before), Some(after)) = (sent.frame.get(ETHERNET..), frame.get(ETHERNET..)) else {
        return false;
    };
    before.len() >= after.len()
        && after.get(at).copied() == before.get(at).map(|ttl| ttl.wrapping_sub(1))
        && after.len() > 20
        && after[20..] == before[20..after.len()]
}

/// Whether a packet is one of TCP, UDP or ICMP without anything odd, and to no host on the link, which has to be found first:
/// what a virtual port gives to the graph.
pub fn is_plain(sent: &Sent) -> bool {
    let protocol = if sent.kind == "v4" { 23 } else { 20 };
    let on_link = match destination(&sent.frame) {
        Some(IpAddr::V4(to)) => to.octets()[..2] == [10, 1],
        Some(IpAddr::V6(to)) => to.segments()[2] < 5,
        None => true,
    };
    let plain = matches!(sent.kind, "v4" | "v6") && matches!(sent.frame.get(protocol), Some(1 | 6 | 17 | 58));
    plain && !on_link
}

/// Compares; remembers who was told of a better way, as the kernel limits how often it tells.
#[derive(Default)]
pub struct Judge {
    told: HashSet<Vec<u8>>,
    /// Redirects that only one twin sent, to somebody who was told before.
    pub redirects: u64,
    /// Words that a host does not answer that only one twin said in time.
    pub late: u64,
    /// Words that there is no route that only one twin said, to somebody who was told of a better way at that time.
    pub limited: u64,
}

impl Judge {
    /// What differs.
    pub fn compare(&mut self, kernel: &[Left], causeway: &[Left], any_path: bool) -> Vec<Difference> {
        let bags = [self.bag(kernel, any_path), self.bag(causeway, any_path)];
        let mut found = Vec::new();
        for (by_kernel, mine, other) in [(true, &bags[0], &bags[1]), (false, &bags[1], &bags[0])] {
            for (key, (count, frame)) in mine {
                let more = count.saturating_sub(other.get(key).map_or(0, |(count, _)| *count));
                for _ in 0..more {
                    let (port, frame) = (key.0, frame.clone());
                    found.push(Difference { by_kernel, port, frame });
                }
            }
        }
        let told_now: HashSet<Vec<u8>> =
            kernel.iter().chain(causeway).filter_map(|(_, frame)| redirect(frame)).flatten().collect();
        found.retain(|difference| {
            let redirect = redirect(&difference.frame);
            let known = redirect.as_ref().is_some_and(|who| who.iter().any(|who| self.told.contains(who)));
            let late = says_silent(&difference.frame);
            self.redirects += u64::from(known);
            self.late += u64::from(late);
            // Redirects and words of no route to one host share an allowance, and order between flows is free.
            let is_told = |who: &[u8]| told_now.contains(who) || self.told.contains(who);
            let limited = says_no_route(&difference.frame) && is_told(&difference.frame[30..34]);
            self.limited += u64::from(limited);
            !known && !late && !limited
        });
        // Order between flows is free, so that each may have told one host of another packet first.
        let told_by = |difference: &Difference| redirect(&difference.frame).map(|who| who[0].clone());
        let told: Vec<_> = found.iter().map(|d| (d.by_kernel, told_by(d))).collect();
        found.retain(|difference| {
            let who = told_by(difference);
            who.is_none() || !told.contains(&(!difference.by_kernel, who))
        });
        found
    }

    /// A batch is over: whoever was told something in it may be told less from now on.
    pub fn over(&mut self, left: &[Left]) {
        self.told.extend(left.iter().filter_map(|(_, frame)| redirect(frame)).flatten());
    }

    /// How often each frame left.
    fn bag(&self, left: &[Left], any_path: bool) -> BTreeMap<Left, (usize, Vec<u8>)> {
        let mut bag: BTreeMap<Left, (usize, Vec<u8>)> = BTreeMap::new();
        let mut redirected = HashSet::new();
        for (port, frame) in left.iter().filter(|(_, frame)| !is_noise(frame)) {
            if redirect(frame).is_some_and(|who| !redirected.insert(who[0].clone())) {
                continue;
            }
            let mut key = (*port, frame.clone());
            level(&mut key.1);
            if any_path || is_encapsulated(frame) {
                key.0 = 0;
                key.1[..12].fill(0);
            }
            bag.entry(key).or_insert_with(|| (0, frame.clone())).0 += 1;
        }
        bag
    }
}

/// Makes the same what cannot be: the identification of ICMP packets that a router made itself, and so their checksum, and that
/// of IPv6 fragments.
fn level(frame: &mut [u8]) {
    match frame.get(12..14) {
        Some([8, 0]) if is_own_icmp(frame) => {
            frame[18..20].fill(0);
            frame[24..26].fill(0);
        }
        Some([0x86, 0xdd]) if frame.len() > 54 => level_fragment(frame),
        _ => {}
    }
}

/// The message of an IPv4 packet of ICMP. An answer may carry the options of what it is about in front of it.
fn icmp4(frame: &[u8]) -> Option<&[u8]> {
    let header = frame.get(ETHERNET..ETHERNET + 20).filter(|header| header[9] == 1)?;
    frame.get(12..14).filter(|kind| *kind == [8, 0])?;
    frame.get(ETHERNET + usize::from(header[0] & 15) * 4..)
}

/// Whether an IPv4 packet is one of ICMP that a router made itself: no host sends answers or errors.
fn is_own_icmp(frame: &[u8]) -> bool {
    let Some([kind, ..]) = icmp4(frame) else { return false };
    matches!(kind, 0 | 3 | 5 | 11 | 12 | 14)
        || frame[ETHERNET + 8] == DEFAULT_TTL
        || plan::is_router4(&frame[ETHERNET + 12..ETHERNET + 16])
}

fn level_fragment(frame: &mut [u8]) {
    let (mut kind, mut at) = (frame[20], 54);
    while let (0 | 43 | 60, Some(&[next, eights])) =
        (kind, frame.get(at..at + 2).and_then(|h| h.first_chunk()))
    {
        (kind, at) = (next, at + 8 + usize::from(eights) * 8);
    }
    if let (44, Some(id)) = (kind, frame.get_mut(at + 4..at + 8)) {
        id.fill(0);
    }
}

/// A packet in segment routing, all of which go the way that the kernel found for the first.
fn is_encapsulated(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[0x86, 0xdd]) && frame.get(20) == Some(&43) && frame.get(56) == Some(&4)
}

/// What the kernel does for itself.
fn is_noise(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([8, 6]) => true,
        // The answer to who asks for the time.
        Some([8, 0]) if matches!(icmp4(frame), Some([14, ..])) => true,
        _ if number(frame).is_some() => false,
        Some([8, 0]) => {
            // IGMP.
            frame.get(23) == Some(&2)
        }
        Some([0x86, 0xdd]) => {
            let to_group = frame.get(38) == Some(&0xff);
            let discovers = frame.get(20) == Some(&58) && matches!(frame.get(54), Some(133..=136));
            to_group || discovers
        }
        _ => false,
    }
}

/// If a frame is a redirect: who is told, and of what.
fn redirect(frame: &[u8]) -> Option<Vec<Vec<u8>>> {
    match frame.get(12..14)? {
        [8, 0] if matches!(icmp4(frame), Some([5, ..])) => Some(vec![frame.get(30..34)?.to_vec()]),
        [0x86, 0xdd] if frame.get(20) == Some(&58) && frame.get(54) == Some(&137) && frame[21] == 255 => {
            Some(vec![frame.get(38..54)?.to_vec(), frame.get(78..94)?.to_vec()])
        }
        _ => None,
    }
}

/// Whether a frame says, over IPv4, that there is no route.
fn says_no_route(frame: &[u8]) -> bool {
    matches!(icmp4(frame), Some([3, 0, ..]))
}

/// Whether two frames are the same packet on different paths.
pub fn is_other_path(a: &Difference, b: &Difference) -> bool {
    a.by_kernel != b.by_kernel && a.frame.get(12..) == b.frame.get(12..)
}

/// Whether a frame is none that a router takes from the kernel, whatever the state: it has a tag, or extension headers.
pub fn is_kernel_s(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([0x81, 0]) => true,
        Some([0x86, 0xdd]) => matches!(frame.get(20), Some(0 | 43 | 44 | 60)),
        _ => false,
    }
}

/// Whether a frame says that a host does not answer, which takes seconds to find out.
fn says_silent(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([8, 0]) => matches!(icmp4(frame), Some([3, 1, ..])),
        Some([0x86, 0xdd]) => frame.get(20) == Some(&58) && frame.get(54..56) == Some(&[1, 3]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two errors (parameter problem) about one packet with an option, which the kernel sends back with it.
    #[test]
    fn the_identification_of_an_error_with_options_is_free() {
        let error = |id: [u8; 2], sum: [u8; 2]| {
            let header =
                [0x46, 0, 0, 36, id[0], id[1], 0, 0, 9, 1, sum[0], sum[1], 10, 66, 0, 2, 10, 66, 0, 10];
            [&[2; 12][..], &[8, 0], &header, &[1, 1, 1, 0], &[12, 0, 0, 0, 22, 0, 0, 0], &[7; 4]].concat()
        };
        let (mine, other) = ((2, error([0x76, 0x7a], [0x17, 0x8a])), (2, error([0x44, 0xf2], [0x49, 0x12])));
        assert_eq!(Judge::default().compare(&[mine], &[other], false), vec![]);
    }

    #[test]
    fn a_host_may_be_told_first_of_either_of_two_packets() {
        let told = |host: u8, about: u8| {
            let header = [0x45, 0, 0, 36, 0, 0, 0, 0, 64, 1, 0, 0, 10, 1, 2, 1, 10, 1, 2, host];
            (2, [&[2; 12][..], &[8, 0], &header, &[5, 1, 0, 0, 10, 1, 2, 9], &[about; 8]].concat())
        };
        let compare = |mine, other| Judge::default().compare(&[mine], &[other], false).len();
        assert_eq!((compare(told(80, 1), told(80, 2)), compare(told(80, 1), told(81, 1))), (0, 2));
    }
}
