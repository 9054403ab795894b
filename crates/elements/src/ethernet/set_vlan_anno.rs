//! SetVLANAnno.

use super::vlan_tag::{Priority, Tag, Tci, VlanId, note, settle};
use causeway_engine::ir::Field;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "SetVLANAnno",
    aliases: &["SetVlanAnno"],
    category: "ethernet",
    summary: "notes a VLAN on packets",
    doc: "Sets the VLAN_TCI annotation of packets, which VLANEncap and EtherVLANEncap can make a tag of.",
    args: Own::ARGS,
    handlers: handlers!(
        &[reads_writes("vlan_tci", "number and priority of the VLAN in one")],
        Own::HANDLERS,
        &[CONFIG]
    ),
    example: "InfiniteSource(LIMIT 5) -> SetVLANAnno(5) -> EtherVLANEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, ANNO) -> Discard;",
    see: &["VLANEncap", "EtherVLANEncap", "VLANDecap"],
    build,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct Own {
        tci: Option<u16> = optional("VLAN_TCI", "number", "number and priority in one"), or(None);
        priority: Priority = optional("VLAN_PCP", "0 to 7", "the priority; default 0"), or(Priority::UNSAID),
            live("vlan_pcp", "the priority");
        id: VlanId = keyword("VLAN_ID", "0 to 4095", "the VLAN's number, in place of VLAN_TCI; default 0"), or(VlanId::UNSAID),
            live("vlan_id", "the VLAN's number");
    }
}

struct SetVlanAnno(Own);

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut own = Own::configure(conf);
    conf.finish()?;
    own.settle();
    Ok(Box::new(SetVlanAnno(own)))
}

impl Own {
    fn settle(&mut self) {
        let mut tci = self.tci.map(Tci::Fixed);
        settle(&mut tci, &mut self.id, &mut self.priority);
        self.tci = match tci {
            Some(Tci::Fixed(between)) => Some(between),
            _ => None,
        };
    }
}

impl SetVlanAnno {
    fn tag(&self) -> Tag {
        Tag { tci: self.0.tci.map(Tci::Fixed), id: self.0.id, priority: self.0.priority }
    }
}

impl Element for SetVlanAnno {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        note(self.tag().fixed(), packet);
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.put(Field::Anno(Anno::VLAN_TCI.offset, 2), u64::from(self.tag().fixed()));
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.0)
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.tag().text())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let tci = Some(cx.value(handler, value)?);
        self.0 = Own { tci, id: VlanId::UNSAID, priority: Priority::UNSAID };
        self.0.settle();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn the_vlan_is_noted() {
        let mut h = Harness::new(&SPEC, "VLAN_ID 5, VLAN_PCP 3", 1, 1).unwrap();
        let noted = |h: &mut Harness| -> [u8; 2] {
            h.push(0, packet(b"x"));
            h.take(0)[0].anno_bytes(Anno::VLAN_TCI.offset)
        };
        assert_eq!((noted(&mut h), h.read("vlan_tci").unwrap()), ([0x60, 5], "24581".to_owned()));
        h.write("vlan_tci", "7").unwrap();
        h.write("vlan_pcp", "0").unwrap();
        assert_eq!((noted(&mut h), h.read("vlan_tci").unwrap()), ([0, 7], "7".to_owned()));
        h.write("vlan_id", "8").unwrap();
        assert_eq!((noted(&mut h), h.read("vlan_id").unwrap()), ([0, 8], "8".to_owned()));
        h.write("config", "9").unwrap();
        assert_eq!(noted(&mut h), [0, 9]);
    }
}
