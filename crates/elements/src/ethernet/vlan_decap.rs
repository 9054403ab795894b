//! VLANDecap.

use super::vlan_tag::note;
use causeway_engine::ir::{At, Field, Test, Value};
use causeway_engine::prelude::*;
use causeway_packet::wire::ethernet::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "VLANDecap",
    category: "ethernet",
    summary: "takes the VLAN tag out of Ethernet packets",
    doc: "Removes the tag (IEEE 802.1Q) of type ETHERTYPE behind the addresses of packets that begin with an Ethernet \
          header, and notes it in the VLAN_TCI annotation, where it notes 0 for packets without one.",
    args: VlanDecap::ARGS,
    example: "FromDevice(eth0) -> VLANDecap -> Discard;",
    see: &["VLANEncap", "StripEtherVLANHeader"],
    build: configured::<VlanDecap>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct VlanDecap {
        anno: bool = optional("ANNO", "boolean", "whether the tag is noted; default true"), or(true);
        ethertype: u16 = keyword("ETHERTYPE", "number", "the tag's type; default 0x8100"), or(0x8100);
    }
}

/// Bytes of a tag, and of the addresses in front of it.
const TAG: usize = 4;
const ADDRESSES: usize = 12;

impl VlanDecap {
    /// The end of a program, which notes what the tag said.
    fn lower_notes(&self, b: &mut Builder, tci: impl Into<Value>) {
        b.put(Field::Mac, 0);
        b.put(Field::Network, HEADER_LEN as u64);
        if self.anno {
            b.put(Field::Anno(Anno::VLAN_TCI.offset, 2), tci);
        }
        b.leave(0);
    }
}

impl Element for VlanDecap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let mut tci = 0;
        if let Some(&[a, b, c, d]) = packet.data().get(ADDRESSES..).and_then(|data| data.first_chunk())
            && u16::from_be_bytes([a, b]) == self.ethertype
        {
            tci = u16::from_be_bytes([c, d]);
            packet.data_mut().copy_within(..ADDRESSES, TAG);
            // It was there.
            let _ = packet.pull(TAG);
        }
        packet.set_mac_header(0);
        packet.set_network_header(HEADER_LEN);
        if self.anno {
            note(tci, packet);
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let [short, long, tagged, bare] = std::array::from_fn(|_| b.block());
        b.branch(Test::Has(At::data(0), (ADDRESSES + TAG) as u32), long, short);
        b.at(short);
        b.go(bare);
        b.at(long);
        let kind = b.load(At::data(ADDRESSES as u32), 2);
        b.branch(Test::Equal(kind.into(), u64::from(self.ethertype).into()), tagged, bare);
        b.at(tagged);
        let tci = b.load(At::data(ADDRESSES as u32 + 2), 2);
        let (front, back) = (b.load(At::data(0), 8), b.load(At::data(8), 4));
        b.pull(TAG as u32);
        b.store(At::data(0), 8, front);
        b.store(At::data(8), 4, back);
        self.lower_notes(&mut b, tci);
        b.at(bare);
        self.lower_notes(&mut b, 0);
        b.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    const TAGGED: &[u8] = b"\x01\x01\x01\x01\x01\x01\x02\x02\x02\x02\x02\x02\x81\x00\x60\x05\x08\x00payload";

    #[test]
    fn the_tag_is_taken_out_and_noted() {
        let plain = [&TAGGED[..12], &TAGGED[16..]].concat();
        for (config, bytes, data, noted) in [
            ("", TAGGED, &plain[..], [0x60, 5]),
            ("false", TAGGED, &plain[..], [7, 7]),
            ("ETHERTYPE 0x88a8", TAGGED, TAGGED, [0, 0]),
            ("", &plain[..], &plain[..], [0, 0]),
            ("", &TAGGED[..15], &TAGGED[..15], [0, 0]),
        ] {
            let mut p = packet(bytes);
            p.set_anno_bytes(Anno::VLAN_TCI.offset, [7, 7]);
            let out = verdict(&SPEC, config, p).unwrap();
            assert_eq!((out.data(), out.anno_bytes(Anno::VLAN_TCI.offset)), (data, noted), "{config}");
        }
    }
}
