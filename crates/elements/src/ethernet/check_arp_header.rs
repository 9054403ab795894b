//! CheckARPHeader.

use crate::ip::tally::DETAILS;
use crate::printing::to_stderr;
use causeway_engine::prelude::*;
use causeway_packet::wire::arp;
use causeway_packet::wire::ethernet::ether_type;

pub(crate) static SPEC: Spec = Spec {
    name: "CheckARPHeader",
    category: "ethernet",
    summary: "checks ARP headers",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Expects an ARP header at OFFSET (RFC 826). Checks that its addresses are within the packet and that their lengths fit \
          Ethernet, IPv4 and IPv6 where those are what they are of, and marks it as the network header. Bad packets go to output 1 if that is connected, and \
          are dropped otherwise; the first one is told of on standard error, or with VERBOSE each.",
    args: Own::ARGS,
    handlers: handlers!(
        Own::HANDLERS,
        &[reads(DETAILS, "bad packets by reason, a line each").across(Across::Each)]
    ),
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> Classifier(12/0806) -> CheckARPHeader(14) -> ARPPrint -> Discard;",
    see: &["ARPPrint", "ARPQuerier", "ARPResponder", "CheckIPHeader"],
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Own {
        offset: u32 = optional("OFFSET", "bytes", "where the header is; default 0"), or(0);
        verbose: bool = keyword("VERBOSE", "boolean", "whether to tell of each bad packet; default false"), or(false);
        details: bool = keyword("DETAILS", "boolean", "whether there is a handler `drop_details`; default false"), or(false);
    }
    counts {
        drops: u64 = reads("drops", "bad packets").counts(Unit::Packets);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Tiny = "tiny-packet", "shorter than the fixed part of an ARP header";
        Addresses = "too-small-for-addresses", "it ends within its addresses";
        Hardware = "bad-hardware-length", "Ethernet addresses that do not have six bytes";
        Protocol = "bad-protocol-length", "IPv4 addresses that do not have four bytes, or IPv6 addresses that do not have 16";
    }
}

/// Click's words for the reasons, in their order.
const TEXTS: [&str; 4] =
    ["tiny packet", "too small for addresses", "bad hardware type/length", "bad protocol type/length"];
/// Bytes in front of the addresses.
const FIXED_LEN: usize = 8;

struct CheckARPHeader {
    own: Own,
    by_reason: [u64; 4],
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = Own::configure(conf);
    conf.finish()?;
    Ok(Box::new(CheckARPHeader { own, by_reason: [0; 4] }))
}

/// Checks the header that `bytes` begin with; says how long it is.
fn check(bytes: &[u8]) -> Result<usize, Reason> {
    let &[h0, h1, p0, p1, hardware_len, protocol_len, _, _] =
        bytes.first_chunk::<FIXED_LEN>().ok_or(Reason::Tiny)?;
    let len = FIXED_LEN + 2 * usize::from(hardware_len) + 2 * usize::from(protocol_len);
    if bytes.len() < len {
        return Err(Reason::Addresses);
    }
    if u16::from_be_bytes([h0, h1]) == arp::HARDWARE_ETHERNET && hardware_len != 6 {
        return Err(Reason::Hardware);
    }
    match (u16::from_be_bytes([p0, p1]), protocol_len) {
        (ether_type::IPV4, 4) | (ether_type::IPV6, 16) => Ok(len),
        (ether_type::IPV4 | ether_type::IPV6, _) => Err(Reason::Protocol),
        _ => Ok(len),
    }
}

impl Element for CheckARPHeader {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let offset = self.own.offset as usize;
        match check(packet.data().get(offset..).unwrap_or_default()) {
            Ok(len) => {
                packet.set_network_headers(offset, len);
                Verdict::Pass
            }
            Err(reason) => {
                let text = TEXTS[reason as usize];
                if self.own.verbose || self.own.drops == 0 {
                    to_stderr(&format!("ARP header check failed: {text}\n"));
                }
                self.own.drops += 1;
                self.by_reason[reason as usize] += 1;
                Verdict::divert(1, reason)
            }
        }
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.own)
    }

    fn lacks(&self, name: &str) -> bool {
        name == DETAILS && !self.own.details
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.by_reason.iter().zip(TEXTS).map(|(n, text)| format!("{n}\t{text}\n")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn each_fault_is_found() {
        let mut h = Harness::new(&SPEC, "2, DETAILS true", 1, 2).unwrap();
        let header = |start: [u8; 6], len: usize| packet(&[&[9, 9][..], &start, &vec![0; len - 6]].concat());
        for (start, len, good) in [
            ([0, 1, 8, 0, 6, 4], 28, true),
            ([0, 1, 0x86, 0xdd, 6, 16], 52, true),
            ([0, 6, 9, 9, 1, 1], 12, true),
            ([0, 1, 8, 0, 6, 4], 7, false),
            ([0, 1, 8, 0, 6, 4], 27, false),
            ([0, 1, 8, 0, 5, 4], 28, false),
            ([0, 1, 8, 0, 6, 5], 30, false),
            ([0, 1, 0x86, 0xdd, 6, 4], 52, false),
        ] {
            h.push(0, header(start, len));
            let (passed, bad) = (h.take(0), h.take(1));
            assert_eq!((passed.len(), bad.len()), if good { (1, 0) } else { (0, 1) }, "{start:?} {len}");
            assert!(passed.iter().all(|p| p.network_offset() == Some(2)));
        }
        assert_eq!(h.read("drops").unwrap(), "5");
        let details = "1\ttiny packet\n1\ttoo small for addresses\n1\tbad hardware type/length\n2\tbad protocol type/length\n";
        assert_eq!(h.read("drop_details").unwrap(), details);
        assert!(Harness::new(&SPEC, "", 1, 1).unwrap().read("drop_details").is_err());
    }
}
