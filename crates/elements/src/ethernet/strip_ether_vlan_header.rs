//! StripEtherVLANHeader.

use super::vlan_tag::note;
use causeway_engine::ir::{At, Field, Test};
use causeway_engine::prelude::*;
use causeway_packet::wire::ethernet::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "StripEtherVLANHeader",
    aliases: &["StripEtherVlanHeader"],
    category: "ethernet",
    summary: "strips Ethernet headers with and without VLAN tags",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Strips the Ethernet header, with its tag (IEEE 802.1Q, type 0x8100) if it has one, and notes the tag in the \
          VLAN_TCI annotation, where it notes NATIVE_VLAN for packets without one. If that is negative these go to output 1 \
          if it is connected, and are dropped otherwise. Packets without a whole header are dropped.",
    args: StripEtherVlanHeader::ARGS,
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> StripEtherVLANHeader(-1) -> Discard;",
    see: &["VLANDecap", "EtherVLANEncap", "Strip"],
    build,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct StripEtherVlanHeader {
        native: i32 = optional("NATIVE_VLAN", "number up to 4095", "the VLAN of packets without a tag; negative = none; default 0"), or(0);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "it has no whole Ethernet header";
        NoTag = "no-tag", "it has no tag, there is no native VLAN, and output 1 is not connected";
    }
}

/// The type of tags, and their bytes.
const TAG_TYPE: [u8; 2] = [0x81, 0];
const TAG: usize = 4;

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let strip = StripEtherVlanHeader::configure(conf);
    if strip.native > 0xfff {
        conf.error("bad NATIVE_VLAN");
    }
    conf.finish()?;
    Ok(Box::new(strip))
}

impl Element for StripEtherVlanHeader {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let data = packet.data();
        let (tci, len) = match data.get(12..14) {
            Some(kind) if kind == TAG_TYPE => match data.get(14..16) {
                Some(tci) => (u16::from_be_bytes([tci[0], tci[1]]), HEADER_LEN + TAG),
                None => return Verdict::drop(Reason::Short),
            },
            Some(_) => match u16::try_from(self.native) {
                Ok(native) => (native, HEADER_LEN),
                Err(_) => return Verdict::divert(1, Reason::NoTag),
            },
            None => return Verdict::drop(Reason::Short),
        };
        note(tci, packet);
        packet.pull(len).or_drop(Reason::Short)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.require(Test::Has(At::data(0), HEADER_LEN as u32));
        let kind = b.load(At::data(12), 2);
        let (tagged, bare) = (b.block(), b.block());
        let tag = u64::from(u16::from_be_bytes(TAG_TYPE));
        b.branch(Test::Equal(kind.into(), tag.into()), tagged, bare);
        b.at(tagged);
        b.require(Test::Has(At::data(0), (HEADER_LEN + TAG) as u32));
        let tci = b.load(At::data(14), 2);
        b.put(Field::Anno(Anno::VLAN_TCI.offset, 2), tci);
        b.pull((HEADER_LEN + TAG) as u32);
        b.leave(0);
        b.at(bare);
        match u16::try_from(self.native) {
            Ok(native) => {
                b.put(Field::Anno(Anno::VLAN_TCI.offset, 2), u64::from(native));
                b.pull(HEADER_LEN as u32);
                b.leave(0);
            }
            Err(_) => {
                let last = b.given_up();
                b.go(last);
            }
        }
        b.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    const TAGGED: &[u8] = b"\x01\x01\x01\x01\x01\x01\x02\x02\x02\x02\x02\x02\x81\x00\x60\x05\x08\x00xy";

    #[test]
    fn the_header_goes_and_the_vlan_is_noted() {
        let plain = [&TAGGED[..12], &TAGGED[16..]].concat();
        for (config, bytes, noted) in
            [("", TAGGED, [0x60, 5]), ("", &plain[..], [0, 0]), ("9", &plain[..], [0, 9])]
        {
            let out = verdict(&SPEC, config, packet(bytes)).unwrap();
            assert_eq!((out.data(), out.anno_bytes(Anno::VLAN_TCI.offset)), (&b"xy"[..], noted));
        }
        assert_eq!(verdict(&SPEC, "-1", packet(&plain)).err(), Some("no-tag"));
        for len in [13, 15, 17] {
            assert_eq!(verdict(&SPEC, "", packet(&TAGGED[..len])).err(), Some("short"), "{len}");
        }
        let mut h = Harness::new(&SPEC, "-1", 1, 2).unwrap();
        h.push(0, packet(&plain));
        assert_eq!(h.take(1)[0].data(), plain);
        assert_eq!(Harness::new(&SPEC, "4096", 1, 1).err().unwrap(), ["bad NATIVE_VLAN"]);
    }
}
