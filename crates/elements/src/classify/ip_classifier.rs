//! IPClassifier.

use super::ip_expr;
use super::patterns::{Patterns, Reason};
use super::program::bases;
use causeway_engine::ir;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "IPClassifier",
    category: "classify",
    summary: "classifies IP packets by contents",
    ports: "1/-",
    processing: "h/h",
    doc: "Sends each IP packet to the output of the first PATTERN that it matches; output N belongs to PATTERN N. \
          A packet that matches none is dropped. Packets must have their IP header marked (CheckIPHeader, \
          MarkIPHeader); without one a packet fails every test.\n\n\
          A pattern combines tests, from weakest to strongest, by `A ? B : C`; `or` or `||`; `and`, `&&` or \
          nothing; `not` or `!`; and parentheses. The tests:\n\n\
          * `any`, `all`, `-`, `true`: every packet; `false`: none;\n\
          * `[src|dst] [host] ADDRESS`, `[src|dst] net ADDRESS/LENGTH`, `net ADDRESS mask MASK`;\n\
          * `[src|dst] ether [host] ADDRESS`, or `[src|dst] ADDRESS` with an Ethernet address: those of the link-layer \
          header, which may be stripped already;\n\
          * `[src|dst] [tcp|udp] port PORT`: a first fragment of TCP or UDP with that port;\n\
          * `ip proto PROTOCOL`, or `tcp`, `udp`, `tcpudp`, `icmp` … alone; `icmp type TYPE`;\n\
          * `ip vers`, `ip hl` (in words), `ip id`, `ip tos`, `ip dscp`, `ip ttl`, `ip len`, `tcp win` and a number;\n\
          * `ip frag`, `ip unfrag`, `ip ect`, `ip ce`;\n\
          * `tcp opt FLAG` (fin, syn, rst, psh, ack, urg), or the flag alone;\n\
          * `ip[POS:LEN]`, and the same of `tcp`, `udp`, `icmp`, `transp`: bytes of one word of that header.\n\n\
          `src or dst`, the default, and `src and dst` stand for both ends. Before a value `=`, `!=`, `<`, `>`, \
          `<=`, `>=` may stand, and `& MASK` before that. A value alone is about what the test before it was: \
          `port 80 or 443`. `port != 80` holds for packets that have ports, none of them 80. Tests of transport \
          headers hold for first fragments only. A packet that ends before what a comparison is about passes \
          neither the comparison nor its opposite (`=` and `!=`, `<` and `>=`).",
    args: &[rest("PATTERN", "IP expression", "what a packet must match, one pattern for each output")],
    handlers: &[
        reads(
            "program",
            "the decision program, a step a line; offsets above 256 count from the IP header, above 512 from the \
             transport header",
        ),
        reads_writes("pattern#", "pattern of one output"),
        reads_writes("config", "all patterns"),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> MarkIPHeader(0) -> c :: IPClassifier(udp port domain, tcp, -); \
              c[0] -> Discard; c[1] -> Discard; c[2] -> Discard;",
    see: &["Classifier", "IPFilter", "MarkIPHeader"],
    build,
    lowers: Lowers::Rules,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

struct IpClassifier {
    patterns: Patterns,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    Ok(Box::new(IpClassifier { patterns: Patterns::build(conf, ip_expr::parse)? }))
}

impl Element for IpClassifier {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.patterns.push(batch, cx, |p| bases(p.network_offset(), p.transport_offset()));
    }

    fn lower(&self) -> Option<ir::Program> {
        self.patterns.lower()
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        self.patterns.read(handler)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.patterns.write(handler, value, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::tests::udp_packet;
    use causeway_engine::harness::Harness;

    #[test]
    fn sorts_by_expression_and_lives_without_headers() {
        let mut h = Harness::new(&SPEC, "udp dst port 53, src net 10/8, -", 1, 3).unwrap();
        h.push_all(0, [udp_packet("10.0.0.1", "1.2.3.4", 9, 53), udp_packet("10.0.0.1", "1.2.3.4", 53, 9)]);
        h.push(0, Packet::from_bytes(&[0x45; 60]).unwrap());
        assert_eq!([0, 1, 2].map(|port| h.take(port).len()), [1, 1, 1]);
        h.write("pattern1", "udp and src port 53").unwrap();
        h.push(0, udp_packet("11.0.0.1", "1.2.3.4", 53, 9));
        assert_eq!([0, 1, 2].map(|port| h.take(port).len()), [0, 1, 0]);
        h.assert_balanced();
    }
}
