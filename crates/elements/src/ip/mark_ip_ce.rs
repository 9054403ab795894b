//! MarkIPCE.

use super::set_ip_ecn::{lower_tos, rewrite_tos};
use causeway_engine::prelude::*;
use causeway_packet::wire::Ipv4;

pub(crate) static SPEC: Spec = Spec {
    name: "MarkIPCE",
    category: "ip",
    summary: "marks IP packets as having met congestion",
    doc: "Sets the ECN field of the marked IPv4 header to Congestion Experienced (RFC 3168), and updates the checksum. \
          Packets whose senders do not know ECN are dropped, unless FORCE is true, as are packets without a whole header.",
    args: MarkIPCE::ARGS,
    handlers: MarkIPCE::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> SetIPECN(ect1) -> MarkIPCE -> Discard;",
    see: &["SetIPECN", "RED"],
    build: configured::<MarkIPCE>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct MarkIPCE {
        force: bool = optional("FORCE", "boolean", "whether packets are marked whose senders do not know ECN; default false"), or(false);
    }
    counts {
        drops: u64 = reads("drops", "packets dropped").counts(Unit::Packets);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "no whole IPv4 header is marked";
        NotCapable = "not-capable", "its sender does not know ECN";
    }
}

impl MarkIPCE {
    fn mark(&self, packet: &mut Packet) -> Result<(), Reason> {
        let header = packet.network_header().and_then(|header| Ipv4::new_quoted(header).ok());
        match header.map(|ip| ip.tos() & 3) {
            None => Err(Reason::NoHeader),
            Some(0) if !self.force => Err(Reason::NotCapable),
            Some(_) => rewrite_tos(packet, |tos| tos | 3).ok_or(Reason::NoHeader),
        }
    }
}

impl Element for MarkIPCE {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let marked = self.mark(packet);
        self.drops += u64::from(marked.is_err());
        marked.into()
    }

    fn lower(&self) -> Option<Program> {
        lower_tos(!3, 3, if self.force { 0 } else { 3 })
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
    fn those_that_know_ecn_are_marked() {
        for (config, before, after) in [
            ("", 0xa9, Ok(0xab)),
            ("", 0xaa, Ok(0xab)),
            ("", 0xab, Ok(0xab)),
            ("", 0xa8, Err("not-capable")),
            ("true", 0xa8, Ok(0xab)),
        ] {
            let mut bytes = corpus::datagram(&[], &[0; 8], 9, 0);
            bytes[1] = before;
            Ipv4::new_checked(&mut bytes[..]).unwrap().fill_checksum();
            let out = verdict(&SPEC, config, corpus::marked(&bytes, 0));
            let tos = out.map(|p| {
                let ip = Ipv4::new_checked(p.data()).unwrap();
                assert!(ip.checksum_ok());
                ip.tos()
            });
            assert_eq!(tos, after, "{before:x}");
        }
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.push(0, corpus::marked(&[], 0));
        assert_eq!((h.drops(), h.read("drops").unwrap()), (vec![("no-header", 1)], "1".to_owned()));
    }
}
