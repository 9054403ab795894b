//! SetTCPChecksum.

use crate::printing::contents::to_stderr;
use causeway_engine::Defaults;
use causeway_engine::prelude::*;
use causeway_packet::wire::{Ipv4, tcp};

pub(crate) static SPEC: Spec = Spec {
    name: "SetTCPChecksum",
    category: "tcp",
    summary: "sets the checksum of TCP packets",
    doc: "Computes the TCP checksum (RFC 9293 §3.1) of each packet, whose IPv4 header must be marked, and stores it. With \
          FIXOFF a header length that cannot be is mended first. Packets cut short, or too short for TCP, are dropped; where it is run \
          as Click, standard error is told of each.",
    args: SetTCPChecksum::ARGS,
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> Strip(14) -> MarkIPHeader -> SetTCPChecksum -> Discard;",
    see: &["SetUDPChecksum", "SetIPChecksum"],
    tells: |_| true,
    build,
    ..Spec::DEFAULT
};

settings! {
    struct SetTCPChecksum {
        fix_offset: bool = optional("FIXOFF", "boolean", "whether a wrong header length is mended; default false"), or(false);
    }
}

struct Setter {
    own: SetTCPChecksum,
    /// Whether standard error is told of packets that are dropped.
    tells: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let setter = Setter { own: SetTCPChecksum::configure(conf), tells: conf.env.defaults == Defaults::Click };
    conf.finish()?;
    Ok(Box::new(setter))
}

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "not a whole TCP segment in IPv4";
    }
}

impl SetTCPChecksum {
    /// Sets the checksum, if that can be done.
    fn set(&self, packet: &mut Packet) -> Option<()> {
        let mut ip = Ipv4::new_checked(packet.network_header_mut()?).ok()?;
        let fragment = ip.is_fragment();
        let length = u16::try_from(ip.payload().len()).ok()?;
        let pseudo_header = ip.pseudo_header(length);
        let segment = ip.payload_mut();
        let (offset, fields) = (tcp::field::DATA_OFFSET.start, segment.len());
        if self.fix_offset && fields >= tcp::HEADER_LEN {
            let words = usize::from(segment[offset] >> 4);
            let mended = match words * 4 {
                len if len < tcp::HEADER_LEN => tcp::HEADER_LEN / 4,
                len if len > fields && !fragment => fields / 4,
                _ => words,
            };
            segment[offset] = segment[offset] & 15 | (mended as u8) << 4;
        }
        if fields < tcp::HEADER_LEN {
            return None;
        }
        let sum = tcp::field::CHECKSUM;
        segment[sum.clone()].fill(0);
        let checksum = pseudo_header.bytes(segment).finish();
        segment[sum].copy_from_slice(&checksum.to_be_bytes());
        Some(())
    }
}

impl Element for Setter {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let set = self.own.set(packet);
        if set.is_none() && self.tells {
            to_stderr("SetTCPChecksum: bad lengths\n");
        }
        set.or_drop(Reason::Short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::verdict;
    use causeway_packet::wire::{Tcp, protocol};

    /// A segment with `words` as its header length.
    fn segment(words: u8) -> Vec<u8> {
        let mut tcp = [7; 25];
        tcp[12] = words << 4;
        let mut bytes = corpus::datagram(&[], &tcp, 9, 0);
        bytes[9] = protocol::TCP;
        bytes
    }

    #[test]
    fn whole_segments_are_summed() {
        for (config, words, set) in [("", 5, 5), ("true", 5, 5), ("true", 3, 5), ("true", 15, 6)] {
            let out = verdict(&SPEC, config, corpus::marked(&segment(words), 0)).unwrap();
            let ip = Ipv4::new_checked(out.data()).unwrap();
            let tcp = Tcp::new_checked(ip.payload()).unwrap();
            assert!(tcp.checksum() != 0x0707 && tcp.checksum_ok(ip.pseudo_header(25)), "{config} {words}");
            assert_eq!(tcp.data_offset() >> 4, set);
        }
        let whole = segment(5);
        assert_eq!(verdict(&SPEC, "", corpus::marked(&whole[..44], 0)).err(), Some("short"));
        let short = corpus::datagram(&[], &[0; 19], 9, 0);
        assert_eq!(verdict(&SPEC, "true", corpus::marked(&short, 0)).err(), Some("short"));
    }
}
