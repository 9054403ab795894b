//! ARPResponder.

use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::{Ether, Prefix4, Value, written};
use causeway_packet::wire::ethernet::{self, ether_type};
use causeway_packet::wire::{Arp, ArpPacket, EthernetHeader, MacAddr, arp};

pub(crate) static SPEC: Spec = Spec {
    name: "ARPResponder",
    category: "ethernet",
    summary: "answers ARP requests",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Takes ARP requests with their Ethernet headers. A request for an address that an ENTRY covers is answered \
          with that entry's Ethernet address; of several entries the one with the longest prefix counts. Any other \
          packet goes to output 1 if that is connected, and is dropped otherwise.\n\n\
          An ENTRY is one or more IP addresses or prefixes, and an Ethernet address; a name that stands for both \
          is an entry by itself. Entries with prefixes make a proxy ARP server.",
    args: &[rest("ENTRY", "IP prefixes and Ethernet address", "addresses to answer for")],
    handlers: &[
        reads("table", "the entries, a line each: prefix and Ethernet address"),
        reads_with(
            "lookup",
            "the Ethernet address that the IP address given would be answered with, or nothing",
        ),
        writes("add", "an ENTRY; those with the same prefix are replaced"),
        writes("remove", "IP prefixes: removes their entries"),
        CONFIG,
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> ARPResponder(1.0.0.1 2:0:0:0:0:1, 1.0.1.0/24 2:0:0:0:0:2) -> Discard;",
    see: &["ARPQuerier", "Classifier"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NotOurs = "not-ours", "no ARP request, or no entry covers the address asked for";
    }
}

struct ArpResponder {
    /// Longest prefixes first, so the first that covers an address counts.
    entries: Vec<(Prefix4, MacAddr)>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut element = ArpResponder { entries: Vec::new() };
    for (i, text) in conf.rest().into_iter().enumerate() {
        match entry(&text, &conf.scope()) {
            Ok((prefixes, mac)) => element.add(&prefixes, mac),
            Err(why) => conf.error(format!("argument {i}: {why}")),
        }
    }
    conf.finish()?;
    Ok(Box::new(element))
}

/// Reads `PREFIX… ETH`, in any order; a name may be both.
fn entry(text: &str, scope: &Scope<'_>) -> Result<(Vec<Prefix4>, MacAddr), Error> {
    let (mut prefixes, mut mac) = (Vec::new(), None);
    for word in text.split_whitespace() {
        let (prefix, ether) = (Prefix4::parse(word, scope).ok(), Ether::parse(word, scope).ok());
        if prefix.is_none() && ether.is_none() {
            return Err(Error::new("expected IP/MASK ETH"));
        }
        if ether.is_some() && mac.is_some() && prefix.is_none() {
            return Err(Error::new("more than one ETH"));
        }
        prefixes.extend(prefix);
        mac = mac.or(ether);
    }
    match (prefixes.is_empty(), mac) {
        (true, _) => Err(Error::new("missing IP/MASK")),
        (_, None) => Err(Error::new("missing ETH")),
        (false, Some(mac)) => Ok((prefixes, MacAddr(mac.0))),
    }
}

fn text((p, mac): &(Prefix4, MacAddr)) -> String {
    format!("{}/{} {}", Ipv4Addr::from(network(p).0), p.len, Ether(mac.0))
}

fn network(p: &Prefix4) -> (u32, u8) {
    (u32::from(p.address) & p.mask(), p.len)
}

impl ArpResponder {
    fn add(&mut self, prefixes: &[Prefix4], mac: MacAddr) {
        for prefix in prefixes {
            self.remove(prefix);
            self.entries.push((*prefix, mac));
        }
        self.entries.sort_by_key(|(p, _)| std::cmp::Reverse(p.len));
    }

    fn remove(&mut self, prefix: &Prefix4) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(p, _)| network(p) != network(prefix));
        self.entries.len() < before
    }

    /// Removes the entries of the prefixes in `value`, up to one that there is none for.
    fn remove_all(&mut self, value: &str, scope: &Scope<'_>) -> Result<(), Error> {
        value.split_whitespace().try_for_each(|word| {
            let prefix: Prefix4 = written("remove", word, scope)?;
            if self.remove(&prefix) {
                Ok(())
            } else {
                Err(Error::new(format!("{}/{} not found", Ipv4Addr::from(network(&prefix).0), prefix.len)))
            }
        })
    }

    fn find(&self, ip: Ipv4Addr) -> Option<MacAddr> {
        self.entries.iter().find(|(p, _)| p.contains(ip)).map(|(_, mac)| *mac)
    }

    /// The answer to `packet`, if it asks for something that is ours.
    fn answer(&self, packet: &Packet) -> Option<[u8; ethernet::HEADER_LEN + arp::PACKET_LEN]> {
        let (header, body) = packet.data().split_first_chunk::<{ ethernet::HEADER_LEN }>()?;
        let request = Arp::new_checked(body).ok()?;
        if header[ethernet::field::ETHER_TYPE] != ether_type::ARP.to_be_bytes()
            || request.operation() != arp::REQUEST
        {
            return None;
        }
        let mac = self.find(request.target_ip())?;
        let mut bytes = [0; ethernet::HEADER_LEN + arp::PACKET_LEN];
        let (header, body) = bytes.split_first_chunk_mut()?;
        EthernetHeader { dst: request.sender_mac(), src: mac, ether_type: ether_type::ARP }.emit(header);
        ArpPacket::reply(&request, mac).emit(body.first_chunk_mut()?);
        Some(bytes)
    }
}

impl Element for ArpResponder {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let Some(answer) = self.answer(packet) else { return Verdict::divert(1, Reason::NotOurs) };
        packet.truncate(answer.len());
        packet.data_mut().copy_from_slice(&answer);
        packet.set_mac_header(0);
        packet.set_network_header(ethernet::HEADER_LEN);
        Verdict::Pass
    }

    fn take_settings(&mut self, new: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut() {
            std::mem::swap(self, new);
        }
    }

    fn read(&mut self, handler: &str, arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        if handler == "lookup" {
            let found = self.find(cx.value(handler, arg)?);
            return Ok(found.map_or(String::new(), |mac| Ether(mac.0).to_string()));
        }
        Ok(self.entries.iter().map(|entry| text(entry) + "\n").collect())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        if handler == "add" {
            let (prefixes, mac) = entry(value, &cx.scope())?;
            self.add(&prefixes, mac);
        }
        let removed = if handler == "remove" { self.remove_all(value, &cx.scope()) } else { Ok(()) };
        cx.set_config(self.entries.iter().map(text).collect::<Vec<_>>().join(", "));
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use proptest::prelude::*;

    fn request(target: [u8; 4], operation: u16) -> Packet {
        let mut bytes = [0; 60];
        bytes[..14].copy_from_slice(&[255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 5, 8, 6]);
        let sender_mac = MacAddr([2, 0, 0, 0, 0, 5]);
        let asks = ArpPacket::request(sender_mac, [10, 0, 0, 5].into(), target.into());
        ArpPacket { operation, ..asks }.emit(bytes[14..42].first_chunk_mut().unwrap());
        Packet::from_bytes(&bytes).unwrap()
    }

    const CONFIG: &str = "10.0.1.0/24 10.0.2.0/24 2:0:0:0:0:2, 2:0:0:0:0:1 10.0.1.7";

    #[test]
    fn the_longest_prefix_answers() {
        let mut h = Harness::new(&SPEC, CONFIG, 1, 2).unwrap();
        h.push_all(0, [[10, 0, 1, 7], [10, 0, 2, 8], [10, 0, 3, 8]].map(|ip| request(ip, arp::REQUEST)));
        h.push(0, request([10, 0, 1, 7], arp::REPLY));
        let out = h.take(0);
        assert_eq!((out.len(), h.take(1).len(), out[0].len()), (2, 2, 42));
        assert_eq!(out[0].data()[..14], [2, 0, 0, 0, 0, 5, 2, 0, 0, 0, 0, 1, 8, 6]);
        let answer = Arp::new_checked(&out[1].data()[14..]).unwrap();
        assert_eq!((answer.operation(), answer.sender_mac()), (arp::REPLY, MacAddr([2, 0, 0, 0, 0, 2])));
        assert_eq!((answer.sender_ip(), answer.target_ip()), ([10, 0, 2, 8].into(), [10, 0, 0, 5].into()));
        assert_eq!(answer.target_mac(), MacAddr([2, 0, 0, 0, 0, 5]));
        h.assert_balanced();
    }

    #[test]
    fn entries_come_and_go() {
        let mut h = Harness::new(&SPEC, CONFIG, 1, 1).unwrap();
        let lookup = |h: &mut Harness| h.read_with("lookup", "10.0.1.7").unwrap();
        assert_eq!(lookup(&mut h), "02-00-00-00-00-01");
        h.write("remove", "10.0.1.7").unwrap();
        assert_eq!(lookup(&mut h), "02-00-00-00-00-02");
        h.write("add", "10.0.1.0/24 2:0:0:0:0:3").unwrap();
        assert_eq!(lookup(&mut h), "02-00-00-00-00-03");
        assert_eq!(
            h.read("table").unwrap(),
            "10.0.2.0/24 02-00-00-00-00-02\n10.0.1.0/24 02-00-00-00-00-03\n"
        );
        assert!(h.write("remove", "10.0.1.7").is_err());
        assert!(h.write("add", "10.0.1.7").is_err());
        h.push(0, request([10, 0, 9, 9], arp::REQUEST));
        assert_eq!(h.drops(), [("not-ours", 1)]);
    }

    #[test]
    fn entries_are_those_of_networks_whatever_host_they_are_written_with() {
        let mut h = Harness::new(&SPEC, "10.0.1.5/24 2:0:0:0:0:2", 1, 1).unwrap();
        assert_eq!(h.read("table").unwrap(), "10.0.1.0/24 02-00-00-00-00-02\n");
        h.write("add", "10.0.1.9/24 10.0.3.9/16 2:0:0:0:0:3").unwrap();
        let table = "10.0.1.0/24 02-00-00-00-00-03\n10.0.0.0/16 02-00-00-00-00-03\n";
        assert_eq!(h.read("table").unwrap(), table);
        assert_eq!(h.read("config").unwrap(), table.trim_end().replace('\n', ", "));
        h.write("remove", "10.0.77.1/16").unwrap();
        assert_eq!(h.read("table").unwrap(), "10.0.1.0/24 02-00-00-00-00-03\n");
    }

    #[test]
    fn entries_are_checked() {
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors("1.0.0.1"), ["argument 0: missing ETH"]);
        assert_eq!(errors("1:2:3:4:5:6"), ["argument 0: missing IP/MASK"]);
        assert_eq!(errors("1.0.0.1 1:2:3:4:5:6, x 1:2:3:4:5:6"), ["argument 1: expected IP/MASK ETH"]);
        assert_eq!(errors("1.0.0.1 1:2:3:4:5:6 1:2:3:4:5:7"), ["argument 0: more than one ETH"]);
    }

    #[test]
    fn a_name_stands_for_one_host() {
        let mut names = causeway_engine::Names::default();
        let own = causeway_engine::Addresses {
            ip: Some([1, 0, 0, 1].into()),
            ip_net: Some(([1, 0, 0, 1].into(), 24)),
            ether: Some([2, 0, 0, 0, 0, 1]),
            ..Default::default()
        };
        names.define("info", "eth7", own);
        let (prefixes, mac) = entry("eth7", &names.scope("a")).unwrap();
        assert_eq!((prefixes[0].len, prefixes.len(), mac), (32, 1, MacAddr([2, 0, 0, 0, 0, 1])));
        assert_eq!(entry("eth7:ipnet eth7:eth", &names.scope("a")).unwrap().0[0].len, 24);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_or_dropped(mut bytes in prop::collection::vec(any::<u8>(), 0..60), n in 0usize..60) {
            let mut h = Harness::new(&SPEC, "0.0.0.0/0 2:0:0:0:0:2", 1, 1).unwrap();
            h.push(0, Packet::from_bytes(&bytes).unwrap());
            // The start of a request, and anything behind it.
            let good = request([1, 2, 3, 4], arp::REQUEST);
            let n = n.min(bytes.len());
            bytes[..n].copy_from_slice(&good.data()[..n]);
            h.push(0, Packet::from_bytes(&bytes).unwrap());
            h.assert_balanced();
        }
    }
}
