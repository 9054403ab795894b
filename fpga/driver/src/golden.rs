//! The reference for what the NIC does with a received frame: parse, match, classify, rewrite.
//!
//! Frames are Ethernet without the frame check sequence. The order of the checks is the hardware's; it decides
//! which reason is counted when several apply.

use crate::rules::{ClassKey, RuleTable, Target};

const ETHERTYPE: usize = 12;
const IP: usize = 14;
const IP_TOTAL_LENGTH: usize = 16;
const IP_TTL: usize = 22;
const IP_PROTOCOL: usize = 23;
const IP_CHECKSUM: usize = 24;
const IP_SRC: usize = 26;
const IP_DST: usize = 30;
const IP_END: usize = 34;

/// Why the card dropped a frame after the MAC accepted it and before any FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The TTL would reach zero.
    TtlExpired,
    /// The IPv4 header checksum is wrong.
    BadChecksum,
    /// The IPv4 total length exceeds the frame.
    Truncated,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Rewritten, and forwarded to another card.
    Fast {
        /// The output card.
        nic: u8,
        /// Whether the packet is of the high class.
        high: bool,
    },
    /// Untouched, to the host.
    Slow {
        /// Whether the packet is of the high class.
        high: bool,
    },
    /// Dropped and counted.
    Drop(DropReason),
}

/// Decides about `frame` as card `nic` of the router does while it can reach all others, and rewrites it if it takes
/// the fast path.
pub fn process(table: &RuleTable, nic: u8, frame: &mut [u8]) -> Verdict {
    process_reaching(table, nic, u8::MAX, frame)
}

/// The same while it can reach the cards whose bits are set in `reachable`. What is for another one is the host's.
pub fn process_reaching(table: &RuleTable, nic: u8, reachable: u8, frame: &mut [u8]) -> Verdict {
    let Some(key) = class_key(frame) else { return Verdict::Slow { high: false } };
    let slow = Verdict::Slow { high: table.host_class.is_some_and(|rule| rule.matches(key)) };
    let total_length = usize::from(be16(frame, IP_TOTAL_LENGTH));
    let ours = table.nics.get(usize::from(nic)).is_some_and(|mac| frame[..6] == mac.0);
    let (src, dst) = (be32(frame, IP_SRC), be32(frame, IP_DST));
    if !ours || frame[IP] != 0x45 || total_length < IP_END - IP || is_martian(src) || is_martian(dst) {
        return slow;
    }
    if ones_complement_sum(&frame[IP..IP_END]) != 0xffff {
        return if table.policy.drop_bad_checksum { Verdict::Drop(DropReason::BadChecksum) } else { slow };
    }
    let Some(route) = table.lookup(dst).filter(|route| !route.is_edge(dst)) else { return slow };
    let Target::Nic { nic: out, next_hop } = route.to else { return slow };
    if out == nic || reachable >> out & 1 == 0 {
        return slow;
    }
    if frame[IP_TTL] <= 1 {
        return if table.policy.ttl_expired_to_host { slow } else { Verdict::Drop(DropReason::TtlExpired) };
    }
    if total_length > frame.len() - IP {
        return Verdict::Drop(DropReason::Truncated);
    }
    frame[..6].copy_from_slice(&next_hop.0);
    if !table.policy.keep_source_mac {
        frame[6..12].copy_from_slice(&table.nics[usize::from(out)].0);
    }
    decrement_ttl(frame);
    let high = table.classes[usize::from(out)].is_some_and(|rule| rule.matches(key));
    Verdict::Fast { nic: out, high }
}

/// Addresses that are forwarded neither from nor to (RFC 1812 section 5.3.7, RFC 3927 section 2.7): this network,
/// loopback, link-local, multicast, reserved, broadcast.
pub fn is_martian(address: u32) -> bool {
    matches!(address >> 24, 0 | 127 | 224..) || address >> 16 == 0xa9fe
}

/// The classification key, or none for what is not IPv4.
fn class_key(frame: &[u8]) -> Option<ClassKey> {
    let ipv4 = frame.len() >= IP_END && be16(frame, ETHERTYPE) == 0x0800 && frame[IP] >> 4 == 4;
    ipv4.then(|| ClassKey::new(frame[IP + 1], be32(frame, IP_SRC), be32(frame, IP_DST), frame[IP_PROTOCOL]))
}

/// Takes one from the TTL and updates the checksum by RFC 1624 equation 3: the TTL is the high byte of its word,
/// so that `~m + m'` is always 0xfeff in ones' complement.
fn decrement_ttl(frame: &mut [u8]) {
    frame[IP_TTL] -= 1;
    let sum = u32::from(!be16(frame, IP_CHECKSUM)) + 0xfeff;
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[IP_CHECKSUM..IP_SRC].copy_from_slice(&checksum.to_be_bytes());
}

/// The ones' complement sum of an even number of bytes (RFC 1071), folded to 16 bits.
pub fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn be16(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn be32(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;
    use proptest::prelude::*;

    #[test]
    fn the_corpus_reaches_every_verdict() {
        let table = corpus::table();
        let mut seen = [0u32; 6];
        for mut frame in corpus::frames(1).take(20_000) {
            let index = match process(&table, 0, &mut frame) {
                Verdict::Fast { high: false, .. } => 0,
                Verdict::Fast { high: true, .. } => 1,
                Verdict::Slow { high: false } => 2,
                Verdict::Slow { high: true } => 3,
                Verdict::Drop(DropReason::TtlExpired) => 4,
                Verdict::Drop(DropReason::Truncated) => 5,
                Verdict::Drop(DropReason::BadChecksum) => {
                    unreachable!("the policy is to leave them to the host")
                }
            };
            seen[index] += 1;
        }
        assert!(seen.iter().all(|&n| n > 50), "{seen:?}");
    }

    #[test]
    fn a_forwarded_frame_differs_only_where_it_must_and_its_checksum_is_the_recomputed_one() {
        let table = corpus::table();
        for before in corpus::frames(2).take(20_000) {
            let mut after = before.clone();
            let Verdict::Fast { nic, .. } = process(&table, 0, &mut after) else {
                assert_eq!(before, after);
                continue;
            };
            assert_eq!(after[6..12], table.nics[usize::from(nic)].0);
            assert_eq!(after[IP_TTL], before[IP_TTL] - 1);
            let mut header = after[IP..IP_END].to_vec();
            header[10..12].fill(0);
            assert_eq!(be16(&after, IP_CHECKSUM), !ones_complement_sum(&header));
            assert_eq!(
                (&before[12..IP_TTL], before[IP_PROTOCOL], &before[IP_SRC..]),
                (&after[12..IP_TTL], after[IP_PROTOCOL], &after[IP_SRC..])
            );
        }
    }

    #[test]
    fn the_other_setups_reach_every_verdict_too() {
        let mut seen = [0u32; 7];
        for setup in corpus::setups() {
            assert_eq!(setup.table.check(), Ok(()), "{}", setup.name);
            for mut frame in corpus::frames(1).take(5_000) {
                let index = match process(&setup.table, setup.nic, &mut frame) {
                    Verdict::Fast { high, .. } => usize::from(high),
                    Verdict::Slow { high } => 2 + usize::from(high),
                    Verdict::Drop(reason) => 4 + reason as usize,
                };
                seen[index] += 1;
            }
        }
        assert!(seen.iter().all(|&n| n > 500), "{seen:?}");
    }

    #[test]
    fn the_routers_own_addresses_and_the_edges_of_its_networks_are_the_hosts() {
        let mut table = corpus::table();
        let own = RuleTable::parse("nic 0 mac 2:0:0:0:0:0\nroute 10.0.1.7/32 host").unwrap().routes[0];
        table.routes.push(own);
        let mut frame = corpus::frames(1).next().unwrap();
        for (last, expected) in [(6, true), (7, false), (0, false), (255, false), (1, true), (254, true)] {
            frame[30..34].copy_from_slice(&[10, 0, 1, last]);
            frame[24..26].fill(0);
            let checksum = !ones_complement_sum(&frame[14..34]);
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
            let verdict = process(&table, 0, &mut frame.clone());
            assert_eq!(matches!(verdict, Verdict::Fast { nic: 1, .. }), expected, "{last}: {verdict:?}");
        }
    }

    #[test]
    fn what_is_for_a_card_that_cannot_be_reached_is_the_hosts_as_it_came() {
        let table = corpus::table();
        for before in corpus::frames(2).take(5_000) {
            let mut after = before.clone();
            let verdict = process_reaching(&table, 0, !(1 << 2), &mut after);
            match process(&table, 0, &mut before.clone()) {
                Verdict::Fast { nic: 2, .. } => {
                    assert!(matches!(verdict, Verdict::Slow { .. }) && after == before)
                }
                // Expired or truncated, it would have been dropped on the way to that card only.
                Verdict::Drop(_) if before[30..33] == [10, 0, 2] => (),
                other => assert_eq!(verdict, other),
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut frame in proptest::collection::vec(any::<u8>(), 0..200)) {
            process(&corpus::table(), 0, &mut frame);
        }
    }
}
