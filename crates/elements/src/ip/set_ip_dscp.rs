//! SetIPDSCP.

use super::set_ip_ecn::{lower_tos, rewrite_tos};
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;

pub(crate) static SPEC: Spec = Spec {
    name: "SetIPDSCP",
    category: "ip",
    summary: "sets the differentiated services code point of IP packets",
    doc: "Writes DSCP (RFC 2474) into the marked IPv4 header, and updates its checksum. Packets without a whole header are \
          dropped.",
    args: SetIPDSCP::ARGS,
    handlers: handlers!(SetIPDSCP::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> SetIPDSCP(46) -> Discard;",
    see: &["SetIPECN", "MarkIPCE"],
    build: |conf| Ok(Box::new(SetIPDSCP { dscp: Dscp::configured(conf)? })),
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct SetIPDSCP {
        dscp: Dscp = required("DSCP", "0 to 63", "the code point"), live("dscp", "the code point");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "no whole IPv4 header is marked";
    }
}

/// A code point.
pub(crate) struct Dscp(pub(crate) u8);

const OUT_OF_RANGE: &str = "diffserv code point out of range";

impl Dscp {
    /// The only argument, DSCP.
    pub(crate) fn configured(conf: &mut Conf<'_>) -> Result<Dscp, Invalid> {
        let number: u32 = conf.required("DSCP");
        if number > 63 {
            conf.error(OUT_OF_RANGE);
        }
        conf.finish()?;
        Ok(Dscp(number as u8))
    }
}

impl Value for Dscp {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        match u32::parse(text, scope)? {
            n @ 0..=63 => Ok(Dscp(n as u8)),
            _ => Err(Error::new(OUT_OF_RANGE)),
        }
    }

    fn placeholder() -> Self {
        Dscp(0)
    }
}

impl std::fmt::Display for Dscp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Element for SetIPDSCP {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        rewrite_tos(packet, |tos| tos & 3 | self.dscp.0 << 2).or_drop(Reason::NoHeader)
    }

    fn lower(&self) -> Option<Program> {
        lower_tos(3, self.dscp.0 << 2, 0)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::{Harness, verdict};
    use causeway_packet::wire::Ipv4;

    #[test]
    fn the_code_point_is_set_and_the_checksum_stays_right() {
        let mut bytes = corpus::datagram(&[], &[0; 8], 9, 0);
        bytes[1] = 0xab;
        Ipv4::new_checked(&mut bytes[..]).unwrap().fill_checksum();
        let out = verdict(&SPEC, "46", corpus::marked(&bytes, 0)).unwrap();
        let ip = Ipv4::new_checked(out.data()).unwrap();
        assert_eq!((ip.tos(), ip.checksum_ok()), (46 << 2 | 3, true));
        assert_eq!(verdict(&SPEC, "46", corpus::marked(&bytes[..19], 0)).err(), Some("no-header"));
        let mut h = Harness::new(&SPEC, "46", 1, 1).unwrap();
        h.write("dscp", "8").unwrap();
        assert_eq!(h.read("dscp").unwrap(), "8");
        assert_eq!(Harness::new(&SPEC, "64", 1, 1).err().unwrap(), ["diffserv code point out of range"]);
    }
}
