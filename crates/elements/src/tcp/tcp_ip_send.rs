//! TCPIPSend.

use causeway_engine::prelude::*;
use causeway_lang::args::split_words;
use causeway_packet::checksum::{checksum, pseudo_header_v4};

pub(crate) static SPEC: Spec = Spec {
    name: "TCPIPSend",
    category: "tcp",
    summary: "makes TCP packets when it is told to",
    ports: "0/1",
    processing: "h/h",
    doc: "Each time the handler `send` is written it makes TCP packets without payload, with TTL 255, window 32120 and right checksums, that may not be fragmented.",
    handlers: &[writes(
        "send",
        "`SRC SPORT DST DPORT SEQNO ACKNO FLAGS [COUNT [STOP]]`: packets to make, and whether to stop the router then",
    )],
    drops: Reason::DOCS,
    example: "TCPIPSend -> Discard;",
    see: &["FastUDPSource"],
    copies: Copies::One,
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(TCPIPSend))
    },
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoFrame = "no-frame", "no frame was free for the packet";
    }
}

/// Packets of one write at most: they all leave before it is answered.
const MOST: u32 = 65_536;

struct TCPIPSend;

/// The packet: 20 bytes of IP header and 20 of TCP header.
fn headers(words: &[String], cx: &Cx<'_>) -> Result<[u8; 40], Error> {
    let (source, destination): (Ipv4Addr, Ipv4Addr) =
        (cx.value("SRC", &words[0])?, cx.value("DST", &words[2])?);
    let ports: [u16; 2] = [cx.value("SPORT", &words[1])?, cx.value("DPORT", &words[3])?];
    let numbers: [u32; 2] = [cx.value("SEQNO", &words[4])?, cx.value("ACKNO", &words[5])?];
    let flags: u8 = cx.value("FLAGS", &words[6])?;
    let mut bytes = [0; 40];
    bytes[..12].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0x40, 0, 255, 6, 0, 0]);
    bytes[12..16].copy_from_slice(&source.octets());
    bytes[16..20].copy_from_slice(&destination.octets());
    let sum = checksum(&bytes[..20]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes[20..22].copy_from_slice(&ports[0].to_be_bytes());
    bytes[22..24].copy_from_slice(&ports[1].to_be_bytes());
    bytes[24..28].copy_from_slice(&numbers[0].to_be_bytes());
    bytes[28..32].copy_from_slice(&numbers[1].to_be_bytes());
    (bytes[32], bytes[33]) = (0x50, flags);
    bytes[34..36].copy_from_slice(&32_120u16.to_be_bytes());
    let sum = pseudo_header_v4(source, destination, 6, 20).bytes(&bytes[20..]).finish();
    bytes[36..38].copy_from_slice(&sum.to_be_bytes());
    Ok(bytes)
}

impl Element for TCPIPSend {
    fn write(&mut self, _handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        const NAMES: [&str; 7] = ["SRC", "SPORT", "DST", "DPORT", "SEQNO", "ACKNO", "FLAGS"];
        let words = split_words(value);
        if let Some(missing) = NAMES.get(words.len()) {
            return Err(Error::new(format!("{missing}: required argument missing")));
        }
        if words.len() > 9 {
            return Err(Error::new("too many arguments"));
        }
        let bytes = headers(&words, cx)?;
        let count: u32 = words.get(7).map_or(Ok(1), |word| cx.value("COUNT", word))?;
        let stop: bool = words.get(8).map_or(Ok(false), |word| cx.value("STOP", word))?;
        for _ in 0..count.min(MOST) {
            match Packet::from_bytes(&bytes) {
                Some(mut packet) => {
                    packet.set_network_header(0);
                    packet.set_transport_header(20);
                    cx.emit(0, packet);
                }
                None => cx.count_drops(Reason::NoFrame, 1),
            }
        }
        if stop {
            cx.stop_driver();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::{Ipv4, tcp::Tcp};

    #[test]
    fn packets_are_made_as_told() {
        let mut h = Harness::new(&SPEC, "", 0, 1).unwrap();
        h.write("send", "1.0.0.1 7 2.0.0.2 80 5 6 18 3 true").unwrap();
        let out = h.take(0);
        assert_eq!((out.len(), h.stopped()), (3, true));
        let ip = Ipv4::new_checked(out[2].data()).unwrap();
        let tcp = Tcp::new_checked(&out[2].data()[20..]).unwrap();
        assert!(ip.checksum_ok() && tcp.checksum_ok(ip.pseudo_header(20)));
        assert_eq!(
            (tcp.src_port(), tcp.dst_port(), tcp.sequence(), tcp.acknowledgement(), tcp.flags()),
            (7, 80, 5, 6, 18)
        );
        assert_eq!(h.write("send", "1.0.0.1 7 2.0.0.2"), Err("DPORT: required argument missing".to_owned()));
        assert!(h.write("send", "1.0.0.1 7 2.0.0.2 80 5 6 256").is_err());
    }
}
