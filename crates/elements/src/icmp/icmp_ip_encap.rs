//! ICMPIPEncap.

use super::encap::{Encap, Reason};
use super::names;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "ICMPIPEncap",
    category: "icmp",
    summary: "puts ICMP and IP headers in front of packets",
    doc: "Prepends an ICMP header of TYPE and CODE (RFC 792) and an IPv4 header from SRC to DST, with TTL 255 and a new \
          identification for each packet, which begins at 1 and is never 0. Echo, timestamp and information messages have \
          IDENTIFIER, and the identification for their sequence number; the rest of the header is 0. Marks the headers and \
          sets the destination annotation to DST.",
    args: &[
        required("SRC", "IP address", "the source"),
        required("DST", "IP address", "the destination"),
        required("TYPE", "ICMP type", "the type of the messages, by name or number"),
        optional("CODE", "ICMP code", "their code, by name or number; default 0"),
        keyword("IDENTIFIER", "0 to 65535", "their identifier, if they have one; default 0"),
    ],
    handlers: &[reads_writes("src", "the source address"), reads_writes("dst", "the destination address")],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> ICMPIPEncap(1.0.0.1, 1.0.0.2, unreachable, port) -> CheckICMPHeader -> Discard;",
    see: &["ICMPPingEncap", "ICMPError"],
    build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

struct ICMPIPEncap {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    encap: Encap,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let (src, dst) = (conf.required("SRC"), conf.required("DST"));
    let missing = conf.errors().len();
    let word: String = conf.required("TYPE");
    let given = conf.errors().len() == missing;
    let code: String = conf.optional("CODE", "0".to_owned());
    let identifier = conf.keyword("IDENTIFIER", 0);
    let message_type = names::icmp_type(&word);
    if given && message_type.is_none() && conf.parse::<i32>("TYPE", &word).is_some() {
        conf.error("invalid TYPE");
    }
    let code = message_type.map(|kind| names::icmp_code(kind, &code));
    if code == Some(None) {
        conf.error("invalid CODE");
    }
    conf.finish()?;
    let code = code.flatten().unwrap_or_default();
    let mut encap = Encap::new(message_type.unwrap_or_default(), code, identifier);
    encap.set_addresses(src, dst);
    Ok(Box::new(ICMPIPEncap { src, dst, encap }))
}

impl Element for ICMPIPEncap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.encap.put(packet).into()
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(if handler == "src" { self.src } else { self.dst }.to_string())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let address = cx.value(handler, value).map_err(|_| "syntax error")?;
        *(if handler == "src" { &mut self.src } else { &mut self.dst }) = address;
        self.encap.set_addresses(self.src, self.dst);
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<ICMPIPEncap>() {
            self.encap.go_on(&old.encap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};
    use causeway_packet::wire::{Icmpv4, Ipv4};

    #[test]
    fn the_header_is_that_of_the_type() {
        for (config, header, payload_at) in [
            ("unreachable, port", &[3, 3, 0, 0, 0, 0, 0, 0][..], 28),
            ("8, CODE 9, IDENTIFIER 515", &[8, 9, 0, 0, 2, 3, 0, 1], 28),
            ("echo-reply", &[0, 0, 0, 0, 0, 0, 0, 1], 28),
            ("timestamp, IDENTIFIER 7", &[13, 0, 0, 0, 0, 7, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 40),
            ("17, IDENTIFIER 7", &[17, 0, 0, 0, 0, 0, 0, 0], 28),
            ("200, 255", &[200, 255, 0, 0, 0, 0, 0, 0], 28),
        ] {
            let out = verdict(&SPEC, &format!("1.0.0.1, 1.0.0.2, {config}"), packet(b"abc")).unwrap();
            let ip = Ipv4::new_checked(out.data()).unwrap();
            assert_eq!((ip.checksum_ok(), ip.identification(), ip.ttl()), (true, 1, 255), "{config}");
            assert!(Icmpv4::new_checked(ip.payload()).unwrap().checksum_ok(), "{config}");
            let mut message = out.data()[20..payload_at].to_vec();
            message[2..4].fill(0);
            assert_eq!((&message[..], &out.data()[payload_at..]), (header, &b"abc"[..]), "{config}");
        }
    }

    #[test]
    fn addresses_change_and_bad_arguments_are_named() {
        let mut h = Harness::new(&SPEC, "1.0.0.1, 1.0.0.2, echo", 1, 1).unwrap();
        h.write("src", "1.0.0.8").unwrap();
        h.write("dst", "1.0.0.9").unwrap();
        assert_eq!(h.write("dst", "x"), Err("syntax error".to_owned()));
        h.push(0, packet(b""));
        assert_eq!(h.take(0)[0].data()[12..20], [1, 0, 0, 8, 1, 0, 0, 9]);
        assert_eq!((h.read("src").unwrap(), h.read("dst").unwrap()), ("1.0.0.8".into(), "1.0.0.9".into()));
        let error = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap().join("|");
        assert_eq!(error("1.0.0.1, 1.0.0.2"), "TYPE: required argument missing");
        assert_eq!(error("1.0.0.1, 1.0.0.2, 300"), "invalid TYPE");
        assert_eq!(error("1.0.0.1, 1.0.0.2, nothing"), "TYPE: invalid number");
        assert_eq!(error("1.0.0.1, 1.0.0.2, unreachable, nobody"), "invalid CODE");
    }
}
