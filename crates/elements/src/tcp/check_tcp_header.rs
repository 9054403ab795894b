//! CheckTCPHeader.

use crate::ip::tally;
use crate::ip::transport_check::{Fault, Verbosity, build, header, segment};
use causeway_engine::prelude::*;
use causeway_packet::wire::{Tcp, protocol};

pub(crate) static SPEC: Spec = Spec {
    name: "CheckTCPHeader",
    category: "tcp",
    summary: "checks TCP headers",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Expects TCP segments whose IPv4 header is marked. Checks that the header's length fits the packet, and the \
          checksum (RFC 9293 §3.1). Bad packets go to output 1 if that is connected and are dropped otherwise; the first \
          one is told of on standard error.",
    args: Verbosity::ARGS,
    handlers: tally::HANDLERS,
    drops: Fault::DOCS,
    example: "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> CheckTCPHeader -> Discard;",
    see: &["CheckIPHeader", "CheckUDPHeader", "CheckICMPHeader", "SetTCPChecksum"],
    build: |conf| build(conf, "TCP", check),
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Fault);

fn check(packet: &Packet) -> Result<(), Fault> {
    let ip = header(packet, protocol::TCP)?;
    let len = usize::from(ip.total_len()).checked_sub(ip.header_len()).ok_or(Fault::Length)?;
    let segment = segment(packet, &ip, len)?;
    Tcp::new_checked(segment).map_err(|_| Fault::Length)?;
    let sum = ip.pseudo_header(len as u16).bytes(segment).finish();
    if sum == 0 { Ok(()) } else { Err(Fault::Checksum) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::Ipv4;

    /// A segment with `words` as its header length and a right checksum.
    fn whole(words: u8) -> Vec<u8> {
        let mut tcp = [7; 24];
        tcp[12] = words << 4;
        let mut bytes = corpus::datagram(&[], &tcp, 9, 0);
        bytes[9] = protocol::TCP;
        let mut ip = Ipv4::new_checked(&mut bytes[..]).unwrap();
        let pseudo_header = ip.pseudo_header(24);
        ip.payload_mut()[16..18].fill(0);
        let sum = pseudo_header.bytes(ip.payload()).finish();
        ip.payload_mut()[16..18].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    #[test]
    fn each_fault_is_found() {
        let good = whole(5);
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        for (bytes, fault) in [
            (good.clone(), Ok(())),
            (whole(6), Ok(())),
            (changed(9, 17), Err(Fault::Protocol)),
            (Vec::new(), Err(Fault::Protocol)),
            (whole(7), Err(Fault::Length)),
            (whole(4), Err(Fault::Length)),
            (good[..43].to_vec(), Err(Fault::Length)),
            (changed(3, 12), Err(Fault::Length)),
            (changed(43, 8), Err(Fault::Checksum)),
        ] {
            assert_eq!(check(&corpus::marked(&bytes, 0)), fault, "{bytes:?}");
        }
        let mut h = Harness::new(&SPEC, "DETAILS true", 1, 2).unwrap();
        h.push_all(0, [corpus::marked(&good, 0), corpus::marked(&good[..43], 0)]);
        assert_eq!((h.take(0).len(), h.take(1).len(), h.read("drops").unwrap()), (1, 1, "1".to_owned()));
        assert_eq!(
            h.read("drop_details").unwrap(),
            "0\tnot TCP\n1\tbad packet length\n0\tbad TCP checksum\n"
        );
        h.assert_balanced();
    }
}
