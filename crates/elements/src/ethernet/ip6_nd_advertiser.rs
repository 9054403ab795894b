//! IP6NDAdvertiser.

use super::nd_message::{frame, group_mac, message};
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::{Ether, Prefix6, Value};
use causeway_packet::wire::ndisc::{NeighborMessage, NeighborSolicitation, OVERRIDE, ROUTER, SOLICITED};
use causeway_packet::wire::{MacAddr, ethernet};

pub(crate) static SPEC: Spec = Spec {
    name: "IP6NDAdvertiser",
    category: "ethernet",
    summary: "answers neighbour solicitations",
    doc: "Takes neighbour solicitations (RFC 4861 §4.3) with their Ethernet headers. One for an address that an ENTRY covers \
          is answered by an advertisement of that entry's Ethernet address, as a router's; of several entries the one with \
          the longest prefix counts. Any other packet is dropped, as are solicitations that came over a router, or with a \
          wrong checksum (§7.1.1).\n\n\
          An ENTRY is one or more IPv6 addresses or prefixes, and an Ethernet address; a name that stands for both is an \
          entry by itself. Entries with prefixes make a proxy; what is said of a single address overrides what the asker \
          knows, what a proxy says does not (§7.2.4). Who asks without an address of its own, to find out whether the \
          address is free, is answered by multicast.",
    args: &[rest("ENTRY", "IPv6 prefixes and Ethernet address", "addresses to answer for")],
    handlers: &[CONFIG],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> IP6NDAdvertiser(2001:db8::1 2:0:0:0:0:1, 2001:db8:1::/64 2:0:0:0:0:2) -> Discard;",
    see: &["IP6NDSolicitor", "ARPResponder"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NotOurs = "not-ours", "no good solicitation, or no entry covers the address asked for";
        NoBuffer = "no-buffer", "there was no frame for the advertisement";
    }
}

struct Advertiser {
    /// Longest prefixes first, so the first that covers an address counts.
    entries: Vec<(Prefix6, MacAddr)>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut entries = Vec::new();
    for (number, text) in conf.rest().iter().enumerate() {
        match entry(number, text, &conf.scope()) {
            Ok(more) => entries.extend(more),
            Err(faults) => faults.into_iter().for_each(|fault| conf.error(fault)),
        }
    }
    conf.finish()?;
    entries.sort_by_key(|(prefix, _): &(Prefix6, _)| std::cmp::Reverse(prefix.len));
    Ok(Box::new(Advertiser { entries }))
}

/// Reads `PREFIX… ETH`, in any order; a name may be both.
fn entry(number: usize, text: &str, scope: &Scope<'_>) -> Result<Vec<(Prefix6, MacAddr)>, Vec<String>> {
    let (mut prefixes, mut mac, mut faults) = (Vec::new(), None, Vec::new());
    for word in text.split_whitespace() {
        let (prefix, ether) = (Prefix6::parse(word, scope).ok(), Ether::parse(word, scope).ok());
        if prefix.is_none() && ether.is_none() {
            faults.push(format!("argument {number} should be `IP6/MASK ETHADDR'"));
            break;
        }
        if ether.is_some() && mac.is_some() && prefix.is_none() {
            faults.push(format!("argument {number} has more than one Ethernet address"));
        }
        prefixes.extend(prefix);
        mac = mac.or(ether);
    }
    if prefixes.is_empty() {
        faults.push(format!("argument {number} had no IP6 address and masks"));
    } else if mac.is_none() && faults.is_empty() {
        faults.push(format!("argument {number} has no Ethernet address"));
    }
    match mac {
        Some(mac) if faults.is_empty() => Ok(prefixes.into_iter().map(|p| (p, MacAddr(mac.0))).collect()),
        _ => Err(faults),
    }
}

impl Advertiser {
    /// The answer to `packet`, or why there is none.
    fn answer(&self, packet: &Packet) -> Result<Packet, Reason> {
        let (src, dst, body) = message(packet.data()).ok_or(Reason::NotOurs)?;
        let asked = NeighborSolicitation::new_checked(body).map_err(|_| Reason::NotOurs)?;
        let target = asked.target();
        let covers = |prefix: &Prefix6| {
            let shift = 128 - u32::from(prefix.len);
            let front = |a: Ipv6Addr| u128::from(a).checked_shr(shift).unwrap_or(0);
            front(prefix.address) == front(target)
        };
        // Without an address of its own it must have asked the group (§7.1.1).
        let is_odd =
            target.is_multicast() || src.is_multicast() || (src.is_unspecified() && !dst.is_multicast());
        let entry = self.entries.iter().find(|(prefix, _)| covers(prefix)).filter(|_| !is_odd);
        let &(prefix, mac) = entry.ok_or(Reason::NotOurs)?;
        let over = if prefix.len == 128 { OVERRIDE } else { 0 };
        let to: MacAddr = packet
            .data()
            .get(ethernet::field::SRC)
            .and_then(|m| m.first_chunk())
            .copied()
            .map_or(MacAddr::BROADCAST, MacAddr);
        let (to, solicited) = match src.is_unspecified() {
            true => ((group_mac(ALL_NODES), ALL_NODES), 0),
            false => ((to, src), SOLICITED),
        };
        let flags = ROUTER | solicited | over;
        frame((mac, target), to, &NeighborMessage::Advertisement { target, mac, flags })
            .ok_or(Reason::NoBuffer)
    }
}

/// The group of all nodes of a link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

impl Element for Advertiser {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.answer(packet).map(|answer| *packet = answer).into()
    }

    fn take_settings(&mut self, new: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut() {
            std::mem::swap(self, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::nd_message::solicited_node;
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::Ipv6;
    use causeway_packet::wire::ndisc::{NdOption, NeighborAdvertisement};
    use proptest::prelude::*;

    const ASKER: MacAddr = MacAddr([2, 0, 0, 0, 0, 5]);
    const CONFIG: &str = "2001:db8:1::/64 2001:db8:2::/64 2:0:0:0:0:2, 2:0:0:0:0:1 2001:db8:1::7";

    fn address(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn solicitation(src: &str, target: &str) -> Packet {
        let (src, target) = (address(src), address(target));
        let group = solicited_node(target);
        let asks = NeighborMessage::Solicitation { target, mac: ASKER };
        frame((ASKER, src), (group_mac(group), group), &asks).unwrap()
    }

    #[test]
    fn the_longest_prefix_answers() {
        let mut h = Harness::new(&SPEC, CONFIG, 1, 1).unwrap();
        for (target, mac, flags) in [
            ("2001:db8:1::7", 1, ROUTER | SOLICITED | OVERRIDE),
            ("2001:db8:1::8", 2, ROUTER | SOLICITED),
            ("2001:db8:2::8", 2, ROUTER | SOLICITED),
        ] {
            h.push(0, solicitation("fe80::5", target));
            let out = h.take(0).pop().unwrap();
            let mac = MacAddr([2, 0, 0, 0, 0, mac]);
            assert_eq!(out.data()[..12], [ASKER.0, mac.0].concat());
            let (src, dst, body) = message(out.data()).unwrap();
            assert_eq!((src, dst), (address(target), address("fe80::5")));
            let answer = NeighborAdvertisement::new_checked(body).unwrap();
            assert_eq!((answer.target(), answer.flags()), (address(target), flags));
            assert_eq!(answer.options().next(), Some(Ok(NdOption::TargetLinkLayer(mac))));
        }
        h.push(0, solicitation("fe80::5", "2001:db8:3::7"));
        assert_eq!(h.drops(), [("not-ours", 1)]);
    }

    #[test]
    fn who_looks_whether_an_address_is_free_is_told_by_multicast() {
        let mut h = Harness::new(&SPEC, CONFIG, 1, 1).unwrap();
        h.push(0, solicitation("::", "2001:db8:1::7"));
        let out = h.take(0).pop().unwrap();
        assert_eq!(out.data()[..6], [0x33, 0x33, 0, 0, 0, 1]);
        let (_, dst, body) = message(out.data()).unwrap();
        let answer = NeighborAdvertisement::new_checked(body).unwrap();
        assert_eq!((dst, answer.flags() & SOLICITED), (ALL_NODES, 0));
    }

    #[test]
    fn only_good_solicitations_are_answered() {
        let mut h = Harness::new(&SPEC, CONFIG, 1, 1).unwrap();
        let good = solicitation("fe80::5", "2001:db8:1::7");
        for (at, value) in [(21, 254), (56, 1), (13, 0), (54, 136), (20, 17)] {
            let mut bytes = good.data().to_vec();
            bytes[at] = value;
            h.push(0, Packet::from_bytes(&bytes).unwrap());
        }
        h.push(0, Packet::from_bytes(&good.data()[..60]).unwrap());
        assert_eq!((h.take(0).len(), h.drops()), (0, vec![("not-ours", 6)]));
        assert!(Ipv6::new_checked(&good.data()[14..]).is_ok());
    }

    #[test]
    fn entries_are_checked() {
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors("::1"), ["argument 0 has no Ethernet address"]);
        assert_eq!(errors("1:2:3:4:5:6"), ["argument 0 had no IP6 address and masks"]);
        let both = ["argument 1 should be `IP6/MASK ETHADDR'", "argument 1 had no IP6 address and masks"];
        assert_eq!(errors("::1 1:2:3:4:5:6, x"), both);
        assert_eq!(errors("::1 x"), ["argument 0 should be `IP6/MASK ETHADDR'"]);
        assert_eq!(errors("::1 1:2:3:4:5:6 1:2:3:4:5:7"), ["argument 0 has more than one Ethernet address"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_or_dropped(mut bytes in prop::collection::vec(any::<u8>(), 0..90), n in 0usize..90) {
            let mut h = Harness::new(&SPEC, "::/0 2:0:0:0:0:2", 1, 1).unwrap();
            let good = solicitation("fe80::5", "2001:db8:1::7");
            let n = n.min(bytes.len()).min(good.len());
            bytes[..n].copy_from_slice(&good.data()[..n]);
            h.push(0, Packet::from_bytes(&bytes).unwrap());
            h.assert_balanced();
        }
    }
}
