//! VLANEncap.

use super::vlan_tag::{NativeVlan, Priority, Tag, Tci, VlanId, Within, is_native, settle};
use causeway_engine::prelude::*;
use causeway_packet::wire::ethernet::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "VLANEncap",
    category: "ethernet",
    summary: "puts a VLAN tag into Ethernet packets",
    doc: "Inserts a tag (IEEE 802.1Q) of type ETHERTYPE behind the addresses of packets that begin with an Ethernet header. \
          Packets of NATIVE_VLAN go on without one. Packets without a whole header are dropped.",
    args: Own::ARGS,
    handlers: handlers!(
        &[reads_writes("vlan_tci", "number and priority of the VLAN in one, or ANNO")],
        Own::HANDLERS,
        &[CONFIG],
    ),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> VLANEncap(VLAN_ID 5) -> Discard;",
    see: &["VLANDecap", "EtherVLANEncap", "SetVLANAnno"],
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Own {
        tci: Option<Tci> = optional("VLAN_TCI", "number or ANNO", "number and priority in one; ANNO: as the VLAN_TCI annotation says"), or(None);
        priority: Priority = optional("VLAN_PCP", "0 to 7", "the priority; default 0"), or(Priority::UNSAID),
            live("vlan_pcp", "the priority");
        id: VlanId = keyword("VLAN_ID", "0 to 4095", "the VLAN's number, in place of VLAN_TCI; default 0"), or(VlanId::UNSAID),
            live("vlan_id", "the VLAN's number");
        native: NativeVlan = keyword("NATIVE_VLAN", "-1 to 4095", "the VLAN whose packets have no tags; -1 = none; default 0"), or(Within(0)),
            live("native_vlan", "the VLAN whose packets have no tags");
        ethertype: u16 = keyword("ETHERTYPE", "number", "the tag's type; default 0x8100"), or(0x8100),
            live("ethertype", "the tag's type");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "it has no whole Ethernet header";
        NoHeadroom = "no-headroom", "its frame had no room for a tag";
    }
}

/// Bytes of a tag, and of the addresses in front of it.
const TAG: usize = 4;
const ADDRESSES: usize = 12;

struct VlanEncap(Own);

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut own = Own::configure(conf);
    conf.finish()?;
    settle(&mut own.tci, &mut own.id, &mut own.priority);
    Ok(Box::new(VlanEncap(own)))
}

impl VlanEncap {
    fn tag(&self) -> Tag {
        Tag { tci: self.0.tci, id: self.0.id, priority: self.0.priority }
    }
}

impl Element for VlanEncap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        if packet.len() < HEADER_LEN {
            return Verdict::drop(Reason::Short);
        }
        let tci = self.tag().of(packet);
        let mut header_len = HEADER_LEN;
        if !is_native(tci, self.0.native) {
            let Ok(data) = packet.push(TAG) else { return Verdict::drop(Reason::NoHeadroom) };
            data.copy_within(TAG..TAG + ADDRESSES, 0);
            data[ADDRESSES..ADDRESSES + 2].copy_from_slice(&self.0.ethertype.to_be_bytes());
            data[ADDRESSES + 2..ADDRESSES + TAG].copy_from_slice(&tci.to_be_bytes());
            header_len += TAG;
        }
        packet.set_mac_header(0);
        packet.set_network_header(header_len);
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

    const FRAME: &[u8] = b"\x01\x01\x01\x01\x01\x01\x02\x02\x02\x02\x02\x02\x08\x00payload";

    #[test]
    fn the_tag_stands_behind_the_addresses() {
        for (config, tag) in [
            ("5", [0x81, 0, 0, 5]),
            ("VLAN_ID 5, VLAN_PCP 3", [0x81, 0, 0x60, 5]),
            ("0x6005, ETHERTYPE 0x88a8", [0x88, 0xa8, 0x60, 5]),
            ("ANNO", [0x81, 0, 0x20, 7]),
            ("NATIVE_VLAN -1", [0x81, 0, 0, 0]),
        ] {
            let mut p = packet(FRAME);
            p.set_anno_bytes(Anno::VLAN_TCI.offset, [0x20, 7]);
            let out = verdict(&SPEC, config, p).unwrap();
            assert_eq!(out.data(), [&FRAME[..12], &tag, &FRAME[12..]].concat(), "{config}");
            assert_eq!((out.mac_distance(), out.network_offset()), (Some(0), Some(18)));
        }
        for config in ["", "0", "7, NATIVE_VLAN 7", "0x2007, NATIVE_VLAN 7"] {
            let out = verdict(&SPEC, config, packet(FRAME)).unwrap();
            assert_eq!((out.data(), out.network_offset()), (FRAME, Some(14)), "{config}");
        }
        assert_eq!(verdict(&SPEC, "5", packet(&FRAME[..13])).err(), Some("short"));
        assert!(
            Harness::new(&SPEC, "VLAN_ID 4096", 1, 1).is_err() && Harness::new(&SPEC, "1, 8", 1, 1).is_err()
        );
    }

    #[test]
    fn handlers_change_the_tag() {
        let mut h = Harness::new(&SPEC, "5", 1, 1).unwrap();
        h.write("vlan_pcp", "1").unwrap();
        assert_eq!(h.read("vlan_tci").unwrap(), "8197");
        h.write("config", "0x7006").unwrap();
        let read = |h: &mut Harness| ["vlan_tci", "vlan_id", "vlan_pcp"].map(|name| h.read(name).unwrap());
        assert_eq!(read(&mut h), ["28678", "6", "3"]);
        h.write("vlan_id", "9").unwrap();
        assert_eq!(read(&mut h), ["28681", "9", "3"], "the bit between them stays");
        h.write("config", "5, 1").unwrap();
        h.write("vlan_tci", "ANNO").unwrap();
        assert_eq!(
            (h.read("vlan_tci").unwrap(), h.read("config").unwrap()),
            ("ANNO".into(), "ANNO, 1".into())
        );
        h.write("config", "VLAN_ID 9").unwrap();
        assert_eq!((h.read("vlan_tci").unwrap(), h.read("vlan_id").unwrap()), ("9".into(), "9".into()));
    }
}
