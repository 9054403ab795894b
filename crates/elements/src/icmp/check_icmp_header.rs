//! CheckICMPHeader.

use crate::ip::tally;
use crate::ip::transport_check::{Fault, Verbosity, build, header, segment};
use causeway_engine::prelude::*;
use causeway_packet::checksum;
use causeway_packet::wire::protocol;

pub(crate) static SPEC: Spec = Spec {
    name: "CheckICMPHeader",
    category: "icmp",
    summary: "checks ICMP headers",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Expects ICMP packets whose IPv4 header is marked. Checks that they have the length that their type needs (RFC 792), \
          and the checksum. Bad packets go to output 1 if that is connected and are dropped otherwise; the first one is told \
          of on standard error.",
    args: Verbosity::ARGS,
    handlers: tally::HANDLERS,
    drops: Fault::DOCS,
    example: "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> CheckICMPHeader -> Discard;",
    see: &["CheckIPHeader", "CheckTCPHeader", "CheckUDPHeader", "ICMPPingResponder"],
    build: |conf| build(conf, "ICMP", check),
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Fault);

/// Bytes of an ICMP header, of what an error must quote at least, and of timestamps.
const HEADER: usize = 8;
const QUOTED: usize = 28;
const TIMESTAMP: usize = 20;

fn check(packet: &Packet) -> Result<(), Fault> {
    let ip = header(packet, protocol::ICMP)?;
    let len = packet.network_header().map_or(0, |bytes| bytes.len() - ip.header_len());
    let message = segment(packet, &ip, len)?;
    let fits = match message.first() {
        _ if len < HEADER => false,
        // Unreachable, source quench, redirect, time exceeded, parameter problem.
        Some(3 | 4 | 5 | 11 | 12) => len >= HEADER + QUOTED,
        // Timestamp and its reply; information request and its reply.
        Some(13 | 14) => len == TIMESTAMP,
        Some(15 | 16) => len == HEADER,
        _ => true,
    };
    match (fits, fits && checksum::verify(message)) {
        (false, _) => Err(Fault::Length),
        (true, false) => Err(Fault::Checksum),
        (true, true) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::Harness;

    /// A message of that type and length with a right checksum.
    fn message(kind: u8, len: usize) -> Vec<u8> {
        let mut icmp = vec![7; len];
        icmp[0] = kind;
        icmp[2..4].fill(0);
        let sum = checksum::checksum(&icmp);
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut bytes = corpus::datagram(&[], &icmp, 9, 0);
        bytes[9] = protocol::ICMP;
        bytes
    }

    #[test]
    fn each_fault_is_found() {
        let mut wrong = message(8, 12);
        wrong[25] ^= 1;
        let mut udp = message(8, 12);
        udp[9] = protocol::UDP;
        for (bytes, fault) in [
            (message(8, 8), Ok(())),
            (message(8, 13), Ok(())),
            (message(3, 36), Ok(())),
            (message(13, 20), Ok(())),
            (message(16, 8), Ok(())),
            (udp, Err(Fault::Protocol)),
            (Vec::new(), Err(Fault::Protocol)),
            (message(8, 7), Err(Fault::Length)),
            (message(11, 35), Err(Fault::Length)),
            (message(14, 21), Err(Fault::Length)),
            (message(15, 9), Err(Fault::Length)),
            (wrong, Err(Fault::Checksum)),
        ] {
            assert_eq!(check(&corpus::marked(&bytes, 0)), fault, "{bytes:?}");
        }
        let mut h = Harness::new(&SPEC, "DETAILS true", 1, 1).unwrap();
        h.push(0, corpus::marked(&message(8, 7), 0));
        assert_eq!(h.drops(), [("bad-length", 1)]);
    }
}
