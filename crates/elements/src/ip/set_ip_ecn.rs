//! SetIPECN.

use causeway_engine::Scope;
use causeway_engine::ir::{Alu, At, Test};
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_packet::wire::Ipv4;
use causeway_packet::wire::ipv4::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "SetIPECN",
    category: "ip",
    summary: "sets the congestion notification of IP packets",
    doc: "Writes ECN (RFC 3168) into the marked IPv4 header, and updates its checksum. Packets without a whole header are \
          dropped.",
    args: SetIPECN::ARGS,
    handlers: handlers!(SetIPECN::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> SetIPECN(ect1) -> Discard;",
    see: &["MarkIPCE", "SetIPDSCP"],
    build: configured::<SetIPECN>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct SetIPECN {
        ecn: Ecn = required("ECN", "0 to 3, `no`, `ect1`, `ect2` or `ce`", "the code point; `ect1` is ECT(1), `ect2` ECT(0)"), live("ecn", "the code point");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "no whole IPv4 header is marked";
    }
}

/// A code point, and how it was written.
struct Ecn {
    bits: u8,
    text: String,
}

impl Value for Ecn {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        let bits = match text {
            "0" | "no" | "-" => 0,
            "1" | "ect1" | "ECT(1)" => 1,
            "2" | "ect2" | "ECT(0)" => 2,
            "3" | "ce" | "CE" => 3,
            _ => return Err(Error::new("bad ECN argument").whole()),
        };
        Ok(Ecn { bits, text: text.to_owned() })
    }

    fn placeholder() -> Self {
        Ecn { bits: 0, text: "0".to_owned() }
    }
}

impl std::fmt::Display for Ecn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Changes DSCP and ECN of the marked IPv4 header, and the checksum with them; `None` if there is no whole header.
pub(super) fn rewrite_tos(packet: &mut Packet, change: impl FnOnce(u8) -> u8) -> Option<()> {
    let mut ip = Ipv4::new_quoted(packet.network_header_mut()?).ok()?;
    let tos = ip.tos();
    ip.rewrite_tos(change(tos));
    Some(())
}

/// [`rewrite_tos`] as a program: of the byte the bits of `keep` stay, and those of `set` are set. Packets without a header,
/// and with one that has options, are given up, as are those whose byte has none of the bits of `needs`.
pub(super) fn lower_tos(keep: u8, set: u8, needs: u8) -> Option<Program> {
    let mut b = Builder::new();
    b.require(Test::Has(At::network(0), HEADER_LEN as u32));
    let first = b.load(At::network(0), 2);
    let version = b.compute(Alu::Shr, first, 8);
    b.require(Test::Equal(version.into(), 0x45.into()));
    if needs > 0 {
        let has = b.compute(Alu::And, first, u64::from(needs));
        b.forbid(Test::Equal(has.into(), 0.into()));
    }
    let kept = b.compute(Alu::And, first, 0xff00 | u64::from(keep));
    let word = b.compute(Alu::Or, kept, u64::from(set));
    let sum = b.load(At::network(10), 2);
    b.store(At::network(1), 1, word);
    // ~(~HC + ~m + m') (RFC 1624).
    let [sum, old] = [sum, first].map(|word| b.compute(Alu::Xor, word, 0xffff));
    let without = b.compute(Alu::OnesAdd, sum, old);
    let changed = b.compute(Alu::OnesAdd, without, word);
    let sum = b.compute(Alu::Xor, changed, 0xffff);
    b.store(At::network(10), 2, sum);
    b.leave(0);
    b.finish()
}

impl Element for SetIPECN {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        rewrite_tos(packet, |tos| tos & !3 | self.ecn.bits).or_drop(Reason::NoHeader)
    }

    fn lower(&self) -> Option<Program> {
        lower_tos(!3, self.ecn.bits, 0)
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

    #[test]
    fn the_code_point_is_set_and_the_checksum_stays_right() {
        let mut bytes = corpus::datagram(&[], &[0; 8], 9, 0);
        bytes[1] = 0xab;
        Ipv4::new_checked(&mut bytes[..]).unwrap().fill_checksum();
        for (config, tos) in [("no", 0xa8), ("ect1", 0xa9), ("ECT(0)", 0xaa), ("3", 0xab)] {
            let out = verdict(&SPEC, config, corpus::marked(&bytes, 0)).unwrap();
            let ip = Ipv4::new_checked(out.data()).unwrap();
            assert_eq!((ip.tos(), ip.checksum_ok()), (tos, true), "{config}");
        }
        assert_eq!(verdict(&SPEC, "ce", corpus::marked(&bytes[..19], 0)).err(), Some("no-header"));
        assert_eq!(Harness::new(&SPEC, "4", 1, 1).err().unwrap(), ["bad ECN argument"]);
    }
}
