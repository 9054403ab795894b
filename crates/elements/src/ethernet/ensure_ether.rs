//! EnsureEther.

use causeway_engine::prelude::*;
use causeway_engine::value::Ether;
use causeway_packet::wire::ethernet::{self, ether_type};
use causeway_packet::wire::{EthernetHeader, MacAddr};

pub(crate) static SPEC: Spec = Spec {
    name: "EnsureEther",
    category: "ethernet",
    summary: "puts an Ethernet header in front of IP packets that have none",
    doc: "Packets without a marked network header pass, and so do those with an Ethernet header of IPv4 or IPv6 in front of it. If the \
          14 bytes that were stripped off look like one they are put back. Else what is in front of the network header is stripped, \
          and a header of type ETHERTYPE from SRC to DST is put there.",
    args: EnsureEther::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 5, 1.0.0.2, 7) -> EnsureEther(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;",
    see: &["EtherEncap", "EtherRewrite"],
    build: configured::<EnsureEther>,
    ..Spec::DEFAULT
};

settings! {
    struct EnsureEther {
        ether_type: u16 = optional("ETHERTYPE", "number from 0 to 65535", "the type; default 0x0800"), or(0x0800);
        src: Ether = optional("SRC", "Ethernet address", "the source; default 1:1:1:1:1:1"), or(Ether([1; 6]));
        dst: Ether = optional("DST", "Ethernet address", "the destination; default 2:2:2:2:2:2"), or(Ether([2; 6]));
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeadroom = "no-headroom", "the packet's frame had no room for the header";
    }
}

/// Whether `packet` begins with an Ethernet header in front of an IP header.
fn is_ether(packet: &Packet) -> bool {
    let kind = packet.data().get(ethernet::field::ETHER_TYPE).and_then(|b| b.first_chunk());
    matches!(kind.map(|b| u16::from_be_bytes(*b)), Some(ether_type::IPV4 | ether_type::IPV6))
}

impl EnsureEther {
    fn ensure(&self, packet: &mut Packet) -> Option<()> {
        const LEN: usize = ethernet::HEADER_LEN;
        let Some(offset) = packet.network_offset() else { return Some(()) };
        if offset == LEN && is_ether(packet) {
            return Some(());
        }
        // What was stripped is still in the frame.
        if offset == 0 && packet.headroom() >= LEN && packet.push(LEN).is_ok() {
            if is_ether(packet) {
                return Some(());
            }
            packet.pull(LEN).ok()?;
        }
        packet.pull(offset).ok()?;
        let header = packet.push(LEN).ok()?.first_chunk_mut()?;
        let EnsureEther { ether_type, src, dst } = self;
        EthernetHeader { dst: MacAddr(dst.0), src: MacAddr(src.0), ether_type: *ether_type }.emit(header);
        Some(())
    }
}

impl Element for EnsureEther {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.ensure(packet).or_drop(Reason::NoHeadroom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn there_is_a_header_afterwards() {
        const OWN: &[u8] = b"\x02\x02\x02\x02\x02\x02\x01\x01\x01\x01\x01\x01\x08\0";
        let ether = [&[7; 12][..], &[0x86, 0xdd], b"ip"].concat();
        let marked = |bytes: &[u8], at: usize| {
            let mut p = packet(bytes);
            p.set_network_header(at);
            p
        };
        let ensured = |p: Packet| verdict(&SPEC, "", p).unwrap().data().to_vec();
        assert_eq!(ensured(packet(b"unmarked")), b"unmarked");
        assert_eq!(ensured(marked(&ether, 14)), ether);
        let mut stripped = marked(&ether, 14);
        stripped.pull(14).unwrap();
        assert_eq!(ensured(stripped), ether);
        let mut fresh = Packet::with_headroom(0).unwrap();
        fresh.put(2).unwrap().copy_from_slice(b"ip");
        fresh.set_network_header(0);
        assert_eq!(ensured(fresh), [OWN, b"ip"].concat());
        assert_eq!(ensured(marked(b"four and ip", 9)), [OWN, b"ip"].concat());
        assert_eq!(ensured(marked(&[&[7; 14][..], b"ip"].concat(), 14)), [OWN, b"ip"].concat());
    }
}
