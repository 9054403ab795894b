//! EtherVLANEncap.

use super::vlan_tag::{NativeVlan, Priority, Tag, Tci, VlanId, Within, is_native, settle};
use causeway_engine::prelude::*;
use causeway_engine::value::Ether;

pub(crate) static SPEC: Spec = Spec {
    name: "EtherVLANEncap",
    aliases: &["EtherVlanEncap"],
    category: "ethernet",
    summary: "puts an Ethernet header with a VLAN tag in front of packets",
    doc: "Prepends an Ethernet header from SRC to DST with a tag (IEEE 802.1Q) and the type ETHERTYPE, and marks it as the \
          link-layer header. Packets of NATIVE_VLAN get one without a tag.",
    args: Own::ARGS,
    handlers: handlers!(
        &[reads_writes("vlan_tci", "number and priority of the VLAN in one, or ANNO")],
        Own::HANDLERS,
        &[CONFIG],
    ),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> EtherVLANEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, 5) -> Discard;",
    see: &["VLANEncap", "EtherEncap", "StripEtherVLANHeader", "SetVLANAnno"],
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Own {
        ethertype: u16 = required("ETHERTYPE", "number", "the type behind the tag, such as 0x0800"), live("ethertype", "the type behind the tag");
        src: Ether = required("SRC", "Ethernet address", "the source"), live("src", "the source address");
        dst: Ether = required("DST", "Ethernet address", "the destination"), live("dst", "the destination address");
        tci: Option<Tci> = optional("VLAN_TCI", "number or ANNO", "number and priority in one; ANNO: as the VLAN_TCI annotation says"), or(None);
        priority: Priority = optional("VLAN_PCP", "0 to 7", "the priority; default 0"), or(Priority::UNSAID),
            live("vlan_pcp", "the priority");
        id: VlanId = keyword("VLAN_ID", "0 to 4095", "the VLAN's number, in place of VLAN_TCI; default 0"), or(VlanId::UNSAID),
            live("vlan_id", "the VLAN's number");
        native: NativeVlan = keyword("NATIVE_VLAN", "-1 to 4095", "the VLAN whose packets have no tags; -1 = none; default 0"), or(Within(0)),
            live("native_vlan", "the VLAN whose packets have no tags");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeadroom = "no-headroom", "the packet's frame had no room for a header";
    }
}

/// Bytes of a header with a tag.
const TAGGED_LEN: usize = 18;
/// The tag's type.
const TAG_TYPE: u16 = 0x8100;

struct EtherVlanEncap(Own);

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut own = Own::configure(conf);
    conf.finish()?;
    settle(&mut own.tci, &mut own.id, &mut own.priority);
    Ok(Box::new(EtherVlanEncap(own)))
}

impl EtherVlanEncap {
    fn tag(&self) -> Tag {
        Tag { tci: self.0.tci, id: self.0.id, priority: self.0.priority }
    }
}

impl Element for EtherVlanEncap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let tci = self.tag().of(packet);
        let mut header = [0; TAGGED_LEN];
        header[..6].copy_from_slice(&self.0.dst.0);
        header[6..12].copy_from_slice(&self.0.src.0);
        let mut len = 12;
        let native = is_native(tci, self.0.native);
        for word in [TAG_TYPE, tci].into_iter().filter(|_| !native).chain([self.0.ethertype]) {
            header[len..len + 2].copy_from_slice(&word.to_be_bytes());
            len += 2;
        }
        let Ok(data) = packet.push(len) else { return Verdict::drop(Reason::NoHeadroom) };
        data[..len].copy_from_slice(&header[..len]);
        packet.set_mac_header(0);
        Verdict::Pass
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.0)
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.tag().text())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let own = &mut self.0;
        own.tci = Some(cx.value(handler, value)?);
        (own.id, own.priority) = (VlanId::UNSAID, Priority::UNSAID);
        settle(&mut own.tci, &mut own.id, &mut own.priority);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    const ADDRESSES: &str = "0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2";
    const BEGIN: &[u8] = b"\x02\x02\x02\x02\x02\x02\x01\x01\x01\x01\x01\x01";

    #[test]
    fn the_header_has_a_tag_unless_the_vlan_is_native() {
        for (more, end) in [
            (", 5", &b"\x81\x00\x00\x05\x08\x00"[..]),
            (", 5, 3", b"\x81\x00\x60\x05\x08\x00"),
            (", VLAN_ID 5", b"\x81\x00\x00\x05\x08\x00"),
            (", ANNO", b"\x81\x00\x20\x07\x08\x00"),
            ("", b"\x08\x00"),
            (", 7, NATIVE_VLAN 7", b"\x08\x00"),
        ] {
            let mut p = packet(b"xy");
            p.set_anno_bytes(Anno::VLAN_TCI.offset, [0x20, 7]);
            let out = verdict(&SPEC, &format!("{ADDRESSES}{more}"), p).unwrap();
            assert_eq!(out.data(), [BEGIN, end, b"xy"].concat(), "{more}");
            assert_eq!(out.mac_distance(), Some(0));
        }
        let mut full = Packet::with_headroom(0).unwrap();
        full.put(full.tailroom() - 17).unwrap();
        assert_eq!(verdict(&SPEC, &format!("{ADDRESSES}, 5"), full).err(), Some("no-headroom"));
    }

    #[test]
    fn handlers_change_the_header() {
        let mut h = Harness::new(&SPEC, ADDRESSES, 1, 1).unwrap();
        h.write("vlan_tci", "9").unwrap();
        h.write("native_vlan", "-1").unwrap();
        assert_eq!((h.read("vlan_tci").unwrap(), h.read("native_vlan").unwrap()), ("9".into(), "-1".into()));
        h.push(0, packet(b"x"));
        assert_eq!(h.take(0)[0].len(), 19);
    }
}
