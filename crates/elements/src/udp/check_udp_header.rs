//! CheckUDPHeader.

use crate::ip::tally;
use crate::ip::transport_check::{Fault, Verbosity, build, header, segment};
use causeway_engine::prelude::*;
use causeway_packet::wire::{protocol, udp};

pub(crate) static SPEC: Spec = Spec {
    name: "CheckUDPHeader",
    category: "udp",
    summary: "checks UDP headers",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Expects UDP datagrams whose IPv4 header is marked. Checks that the length fits the packet, and the checksum \
          unless it is 0, which means none (RFC 768). Bad packets go to output 1 if that is connected and are dropped \
          otherwise; the first one is told of on standard error.",
    args: Verbosity::ARGS,
    handlers: tally::HANDLERS,
    drops: Fault::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> CheckUDPHeader -> Discard;",
    see: &["CheckIPHeader", "CheckTCPHeader", "CheckICMPHeader", "SetUDPChecksum"],
    build: |conf| build(conf, "UDP", check),
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Fault);

fn check(packet: &Packet) -> Result<(), Fault> {
    let ip = header(packet, protocol::UDP)?;
    let start = segment(packet, &ip, udp::HEADER_LEN)?;
    let len = u16::from_be_bytes([start[4], start[5]]);
    if usize::from(len) < udp::HEADER_LEN {
        return Err(Fault::Length);
    }
    let datagram = segment(packet, &ip, len.into())?;
    let summed = datagram[6..8] == [0, 0] || ip.pseudo_header(len).bytes(datagram).finish() == 0;
    if summed { Ok(()) } else { Err(Fault::Checksum) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::{Ipv4, Udp};

    #[test]
    fn each_fault_is_found() {
        let plain = corpus::datagram(&[], &[0, 1, 0, 2, 0, 11, 0, 0, 9, 9, 9], 9, 0);
        let mut good = plain.clone();
        let mut ip = Ipv4::new_checked(&mut good[..]).unwrap();
        let pseudo_header = ip.pseudo_header(11);
        Udp::new_checked(ip.payload_mut()).unwrap().fill_checksum(pseudo_header);
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        for (bytes, fault) in [
            (plain, Ok(())),
            (good.clone(), Ok(())),
            (changed(9, 6), Err(Fault::Protocol)),
            (Vec::new(), Err(Fault::Protocol)),
            (changed(25, 7), Err(Fault::Length)),
            (changed(25, 12), Err(Fault::Length)),
            (good[..27].to_vec(), Err(Fault::Length)),
            (changed(30, 8), Err(Fault::Checksum)),
        ] {
            assert_eq!(check(&corpus::marked(&bytes, 0)), fault, "{bytes:?}");
        }
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.push(0, corpus::marked(&changed(30, 8), 0));
        assert_eq!((h.drops(), h.read("count").unwrap()), (vec![("bad-checksum", 1)], "0".to_owned()));
    }
}
