//! AggregateIP.

use super::ip_field::{Base, IpField};
use causeway_engine::prelude::*;
use causeway_engine::value::Raw;

pub(crate) static SPEC: Spec = Spec {
    name: "AggregateIP",
    category: "analysis",
    summary: "sets the aggregate annotation to a field of IP packets",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "FIELD is a header's field by name (`ip src`, `tcp flags`, `sport`), bytes of a header (`ip[8:2]`, `transp[0-1]`, `data[0]`) or bits \
          (`ip{96:8}`), each with a mask or without (`ip src/8`, `ip[8:2] & 0x3f0`); headers are `ip`, `tcp`, `udp`, `icmp`, `transp` for any transport, \
          and `data` for what follows TCP or UDP. It lies in one aligned word of 32 bits. Packets without it, such as later fragments, go to \
          output 1, or are dropped.",
    args: &[
        required("FIELD", "field", "which field"),
        keyword(
            "INCREMENTAL",
            "boolean",
            "whether the field is appended to the annotation's bits; default false",
        ),
        keyword(
            "UNSHIFT_IP_ADDR",
            "boolean",
            "whether a part of an IP address stays where it is in it; default false",
        ),
    ],
    handlers: &[
        reads("header", "the header: `ip`, `tcp`, …"),
        reads("bit_offset", "where the field is in the header, in bits"),
        reads("bit_length", "how long it is, in bits"),
        reads("field", "FIELD"),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 7, 1.0.0.2, 53) -> MarkIPHeader -> AggregateIP(ip dst/24) -> Discard;",
    see: &["AggregateCounter", "AggregateIPFlows", "AggregateLength", "AggregatePaint"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoField = "no-field", "the packet has no such field, and output 1 is not connected";
    }
}

struct AggregateIP {
    field: IpField,
    incremental: bool,
    shift: u32,
    mask: u32,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let Raw(text) = conf.required("FIELD");
    let incremental = conf.keyword("INCREMENTAL", false);
    let unshift = conf.keyword("UNSHIFT_IP_ADDR", false);
    let field = IpField::parse(&causeway_lang::args::unquote(&text)).map_err(|why| {
        conf.error(why);
        Invalid
    })?;
    if !field.fits_a_word() {
        conf.error("field specification does not fit within a single word");
    } else if field.length == 32 && incremental {
        conf.error("'INCREMENTAL' is incompatible with field length 32");
    }
    conf.finish()?;
    let behind = 31 - (field.offset + field.length - 1) % 32;
    let mask = u32::MAX >> (32 - field.length.min(32));
    let is_address = field.base == Base::Ip && (96..160).contains(&field.offset);
    let (shift, mask) = if unshift && is_address { (0, mask << behind) } else { (behind, mask) };
    Ok(Box::new(AggregateIP { field, incremental, shift, mask }))
}

impl Element for AggregateIP {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let Some(word) = self.field.word(packet) else { return Verdict::divert(1, Reason::NoField) };
        let mut aggregate = word >> self.shift & self.mask;
        if self.incremental {
            let old = packet.anno_u32(Anno::AGGREGATE.offset);
            aggregate = (old << self.field.length).wrapping_add(aggregate);
        }
        packet.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
        Verdict::Pass
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "header" => self.field.base.name(),
            "bit_offset" => self.field.offset.to_string(),
            "bit_length" => self.field.length.to_string(),
            _ => self.field.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus::{datagram, marked};
    use causeway_engine::harness::{Harness, verdict};

    fn aggregate(config: &str) -> Result<u32, &'static str> {
        let mut p = marked(&datagram(&[], &[0, 7, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4], 64, 0), 0);
        p.set_anno_u32(Anno::AGGREGATE.offset, 3);
        verdict(&SPEC, config, p).map(|p| p.anno_u32(Anno::AGGREGATE.offset))
    }

    #[test]
    fn fields_become_aggregates() {
        assert_eq!(aggregate("ip src"), Ok(0x0a00_0001));
        assert_eq!(aggregate("ip dst/16"), Ok(0x0a09));
        assert_eq!(aggregate("ip dst/16, UNSHIFT_IP_ADDR true"), Ok(0x0a09_0000));
        assert_eq!(aggregate("udp dport"), Ok(53));
        assert_eq!(aggregate("sport"), Ok(7));
        assert_eq!(aggregate("ip proto, INCREMENTAL true"), Ok(3 << 8 | 17));
        assert_eq!(aggregate("data[2:2]"), Ok(0x0304));
        assert_eq!(aggregate("tcp dport"), Err("no-field"));
        assert_eq!(aggregate("data[4]"), Err("no-field"));
        let error = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap().concat();
        assert_eq!(error("ip{30:4}"), "field specification does not fit within a single word");
        assert_eq!(error("ip src, INCREMENTAL true"), "'INCREMENTAL' is incompatible with field length 32");
    }

    #[test]
    fn handlers_tell_the_field() {
        let mut h = Harness::new(&SPEC, "tcp flags & 0x12", 1, 1);
        assert!(h.is_err(), "two pieces");
        h = Harness::new(&SPEC, "tcp flags & 0x18", 1, 1);
        let mut h = h.unwrap();
        let mut read = |handler| h.read(handler).unwrap();
        assert_eq!(
            [read("header"), read("bit_offset"), read("bit_length"), read("field")],
            ["tcp", "107", "2", "tcp flags{3:2}"]
        );
    }
}
