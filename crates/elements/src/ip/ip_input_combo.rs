//! IPInputCombo.

use super::check_ip_header::{Checker, Sources};
use super::header::Fault;
use super::tally::{self, Tally};
use causeway_engine::prelude::*;
use causeway_engine::value::Raw;
use causeway_packet::wire::ethernet::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "IPInputCombo",
    category: "ip",
    summary: "does the first steps of an IPv4 router in one",
    ports: "1/1",
    processing: "a/a",
    doc: "Expects IP packets behind an Ethernet header of 14 bytes. Does what `Paint(COLOR) -> Strip(14) -> \
          CheckIPHeader -> GetIPAddress(16)` do, touching each packet once. BADSRC, INTERFACES and GOODDST are those \
          of CheckIPHeader. Bad packets are dropped.",
    args: &[
        required("COLOR", "byte", "the paint that packets get"),
        optional("BADSRC", "IPv4 addresses", "further bad sources"),
        keyword("INTERFACES", "prefixes", "the router's addresses with prefix lengths"),
        keyword("GOODDST", "IPv4 addresses", "destinations for which the source is not looked at"),
    ],
    handlers: tally::HANDLERS,
    drops: Fault::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> EtherEncap(0x0800, 1:1:1:1:1:1, \
              2:2:2:2:2:2) -> IPInputCombo(1, INTERFACES 1.0.0.2/24) -> Discard;",
    see: &["IPOutputCombo", "Paint", "Strip", "CheckIPHeader", "GetIPAddress"],
    build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Fault);

struct IPInputCombo {
    color: u8,
    checker: Checker,
    tally: Tally<Fault>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let color = conf.required("COLOR");
    let mut sources = Sources::read(conf);
    let bad: Raw = conf.optional("BADSRC", Raw::default());
    if !bad.0.is_empty() {
        sources.add_positional(conf, &bad.0);
    }
    conf.finish()?;
    let checker = Checker { offset: 0, checksum: true, sources };
    Ok(Box::new(IPInputCombo { color, checker, tally: Tally::new(conf) }))
}

impl Element for IPInputCombo {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let IPInputCombo { color, checker, tally } = self;
        tally.sift(batch, cx, |packet| {
            packet.set_paint(*color);
            packet.pull(HEADER_LEN).map_err(|_| Fault::Short)?;
            checker.check(packet)
        });
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.tally.read(handler))
    }
}

#[cfg(test)]
mod tests {
    use super::super::corpus;
    use super::*;
    use causeway_engine::harness::Harness;

    #[test]
    fn good_packets_are_stripped_painted_and_marked() {
        let ip = corpus::datagram(&[], b"x", 64, 0);
        let frame = [&[0xee; 14][..], &ip, &[0; 25]].concat();
        let mut h = Harness::new(&SPEC, "7", 1, 1).unwrap();
        h.push_all(0, [&frame[..], &frame[..13], &frame[..20]].map(|b| Packet::from_bytes(b).unwrap()));
        let out = h.take(0);
        assert_eq!((out.len(), out[0].data(), out[0].paint()), (1, &ip[..], 7));
        assert_eq!((out[0].network_offset(), out[0].dst_ip()), (Some(0), [10, 9, 0, 2]));
        assert_eq!((h.drops(), h.read("count").unwrap()), (vec![("short", 2)], "1".to_owned()));
        h.assert_balanced();
    }

    #[test]
    fn sources_are_bad_by_list_or_keyword() {
        let frame = [&[0xee; 14][..], &corpus::datagram(&[], b"x", 64, 0)].concat();
        for (config, passed) in [
            ("1, 10.0.0.1", 0),
            ("1, BADSRC 9.9.9.9 10.0.0.1", 0),
            ("1, 10.0.0.1, GOODDST 10.9.0.2", 1),
            ("1, INTERFACES 10.9.0.2/8", 1),
            ("1, INTERFACES 10.0.0.0/31 10.0.0.0/30", 1),
            ("1, 9.9.9.9, INTERFACES 1.1.1.1/8", 1),
        ] {
            let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
            h.push(0, Packet::from_bytes(&frame).unwrap());
            assert_eq!(h.take(0).len(), passed, "{config}");
        }
        assert_eq!(Harness::new(&SPEC, "", 1, 1).err().unwrap(), ["COLOR: required argument missing"]);
    }
}
