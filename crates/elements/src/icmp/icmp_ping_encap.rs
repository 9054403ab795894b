//! ICMPPingEncap.

use super::encap::{Encap, Reason};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "ICMPPingEncap",
    category: "icmp",
    summary: "makes packets the payload of ICMP echo requests",
    doc: "Prepends the header of an ICMP echo request (RFC 792) and an IPv4 header from SRC to DST, with TTL 255. The \
          sequence number, which is the IP header's identification as well, begins at 1 and is never 0. Marks the headers and \
          sets the destination annotation to DST.",
    args: Own::ARGS,
    handlers: &[reads_writes("src", "the source address"), reads_writes("dst", "the destination address")],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> ICMPPingEncap(1.0.0.1, 1.0.0.2, IDENTIFIER 7) -> CheckICMPHeader -> Discard;",
    see: &["ICMPPingSource", "ICMPIPEncap", "ICMPPingResponder", "ICMPPingRewriter"],
    build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

settings! {
    struct Own {
        src: Ipv4Addr = required("SRC", "IP address", "the source");
        dst: Ipv4Addr = required("DST", "IP address", "the destination");
        identifier: u16 = keyword("IDENTIFIER", "0 to 65535", "the identifier of the requests; default 0"), or(0);
    }
}

/// The type of echo requests.
const ECHO_REQUEST: u8 = 8;

struct ICMPPingEncap {
    own: Own,
    encap: Encap,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = Own::configure(conf);
    conf.finish()?;
    let mut encap = Encap::new(ECHO_REQUEST, 0, own.identifier);
    encap.set_addresses(own.src, own.dst);
    Ok(Box::new(ICMPPingEncap { own, encap }))
}

impl Element for ICMPPingEncap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.encap.put(packet).into()
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(if handler == "src" { self.own.src } else { self.own.dst }.to_string())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let address = cx.value(handler, value).map_err(|_| "syntax error")?;
        *(if handler == "src" { &mut self.own.src } else { &mut self.own.dst }) = address;
        self.encap.set_addresses(self.own.src, self.own.dst);
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<ICMPPingEncap>() {
            self.encap.go_on(&old.encap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};
    use causeway_packet::wire::{Icmpv4, Ipv4};

    #[test]
    fn requests_are_numbered() {
        let mut h = Harness::new(&SPEC, "1.0.0.1, 1.0.0.2, IDENTIFIER 258", 1, 1).unwrap();
        h.push_all(0, (0..2).map(|_| packet(b"abc")));
        h.write("dst", "1.0.0.9").unwrap();
        h.push(0, packet(b""));
        for (i, out) in h.take(0).iter().enumerate() {
            let n = i as u16 + 1;
            let ip = Ipv4::new_checked(out.data()).unwrap();
            assert_eq!((ip.checksum_ok(), ip.identification(), ip.ttl()), (true, n, 255));
            assert_eq!(
                (ip.src(), ip.dst()),
                ([1, 0, 0, 1].into(), [1, 0, 0, if n == 3 { 9 } else { 2 }].into())
            );
            let icmp = Icmpv4::new_checked(ip.payload()).unwrap();
            assert_eq!((icmp.message_type(), icmp.checksum_ok(), icmp.identifier()), (8, true, 258));
            assert_eq!(out.data()[26..28], n.to_be_bytes());
            assert_eq!(icmp.payload(), if n == 3 { &b""[..] } else { b"abc" });
            assert_eq!((out.dst_ip(), out.transport_offset()), (ip.dst().octets(), Some(20)));
        }
        assert_eq!((h.read("src").unwrap(), h.read("dst").unwrap()), ("1.0.0.1".into(), "1.0.0.9".into()));
        assert_eq!(h.write("src", "x"), Err("syntax error".to_owned()));
        let mut full = Packet::with_headroom(0).unwrap();
        full.put(full.tailroom()).unwrap();
        h.push(0, full);
        assert_eq!(h.drops(), [("no-headroom", 1)]);
        h.assert_balanced();
    }

    #[test]
    fn no_number_is_0() {
        let mut h = Harness::new(&SPEC, "1.0.0.1, 1.0.0.2", 1, 1).unwrap();
        for _ in 0..0x1_0000 {
            h.push(0, packet(b""));
            let out = h.take(0);
            assert_ne!(out[0].data()[26..28], [0, 0]);
        }
    }
}
