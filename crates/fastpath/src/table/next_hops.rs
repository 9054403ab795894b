//! From an index to a next hop, which the kernel agrees to send the packet to.

use super::{Trie, part};
use crate::check::Check;
use crate::frame::Frame;
use crate::hops::{DOUBTED, Hops, MARKS, flag};
use crate::ways::Ways;
use causeway_bpf::{Alu, Asm, Cond, Label, Reg, Size};
use std::os::fd::AsFd;

/// Next hops, and what is asked before one is found.
#[derive(Clone, Copy, Debug)]
pub struct NextHops<'m> {
    /// By index.
    pub hops: &'m Hops,
    /// Interfaces by the low 16 bits of what is found. A hop is found only if the kernel agrees to redirect the packet to
    /// its interface, which is settled then: so nothing has been written yet if it does not, and a port that the packet
    /// leaves by has nothing to do but [`crate::Action::Forward`].
    pub interfaces: Option<Ways<'m>>,
    /// Asks the kernel about some packets that hops with interfaces are found for, if they are as they came. A packet of
    /// which it says otherwise is the kernel's ([`crate::Exit::Doubted`]), and so are all that find its hop from then on.
    pub check: Option<Check<'m>>,
}

/// The next hops of a longest-prefix match.
#[derive(Clone, Copy, Debug)]
pub struct Routes<'m> {
    /// What finds an index.
    pub trie: Trie<'m>,
    /// What it leads to.
    pub next_hops: NextHops<'m>,
    /// The first word that is found where there is a group, whose index is the second; without it nothing is found.
    pub group: Option<u16>,
}

/// What is in the slot of a key beside it: offsets of the hop's record among the records, of its index among the indices, of
/// the group among the groups, and of the record of another member.
pub(crate) const RECORD: i16 = 16;
pub(crate) const INDEX: i16 = 24;
pub(crate) const GROUP: i16 = 32;
pub(crate) const CANDIDATE: i16 = 40;

/// Whether a hop is a route's own, or one of the group whose offset is in the slot [`GROUP`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Route,
    Group,
}

/// Above it are words that lead to a group.
const NO_GROUP: i32 = i32::MAX;

impl Routes<'_> {
    pub(super) fn write(&self, asm: &mut Asm, frame: &Frame, missing: Label, doubted: Option<Label>) {
        let key = frame.key;
        if matches!(self.trie, Trie::V4 { .. }) {
            // The key is a number of 32 bits.
            asm.mov32(Reg::R0, Reg::R0);
        }
        asm.store_slot(Size::D, key, 0, Reg::R0);
        self.trie.adjacency(asm, frame, missing);
        self.next_hops.index(asm);
        asm.store_slot(Size::D, key, INDEX, Reg::R2);
        self.next_hops.led_to(asm);
        asm.jump_if(Cond::Eq, Reg::R2, 0, missing);
        let (group, found) = (asm.label(), asm.label());
        asm.jump_if(Cond::Gt, Reg::R2, NO_GROUP, if self.group.is_some() { group } else { missing });
        let six = matches!(self.trie, Trie::V6 { .. });
        self.next_hops.take(asm, frame, (Of::Route, six), missing, doubted);
        if let Some(word) = self.group {
            asm.jump(found);
            asm.bind(group);
            asm.mov(Reg::R0, i32::from(word));
            asm.load_slot(Size::D, Reg::R1, key, INDEX);
            asm.alu(Alu::Rsh, Reg::R1, 3);
            asm.mov(Reg::R2, 0);
        }
        asm.bind(found);
    }
}

impl NextHops<'_> {
    /// The index in R2 becomes its offset.
    pub(super) fn index(&self, asm: &mut Asm) {
        part(asm, Reg::R2, self.hops.layout().indices());
    }

    /// R2 becomes what the index at the offset in R2 leads to.
    pub(crate) fn led_to(&self, asm: &mut Asm) {
        asm.map_value(Reg::R3, self.hops.map().as_fd(), self.hops.layout().offsets()[0] as i32);
        asm.alu(Alu::Add, Reg::R3, Reg::R2);
        asm.load(Size::D, Reg::R2, Reg::R3, 0);
    }

    /// Goes on at `unless` if what is in R2 is no record; else R2 becomes its offset.
    pub(crate) fn record(&self, asm: &mut Asm, unless: Label) {
        asm.jump_if(Cond::Gt, Reg::R2, NO_GROUP, unless);
        part(asm, Reg::R2, self.hops.layout().records());
        asm.alu(Alu::Lsh, Reg::R2, 2);
    }

    /// What is found becomes the words of the record in R2.
    /// Where the address is one of IPv6 (`six`), its lower half is where the walk has kept it.
    pub(super) fn take(
        &self,
        asm: &mut Asm,
        frame: &Frame,
        (of, six): (Of, bool),
        missing: Label,
        doubted: Option<Label>,
    ) {
        let (map, key) = (self.hops.map().as_fd(), frame.key);
        let [_, records, marks, _] = self.hops.layout().offsets().map(|offset| offset as i32);
        part(asm, Reg::R2, self.hops.layout().records());
        asm.alu(Alu::Lsh, Reg::R2, 2);
        if let Some(interfaces) = self.interfaces {
            asm.store_slot(Size::D, key, RECORD, Reg::R2);
            self.redirect(asm, frame, (&interfaces, of), missing, doubted);
            asm.load_slot(Size::D, Reg::R2, key, RECORD);
        }
        asm.map_value(Reg::R3, map, records);
        asm.alu(Alu::Add, Reg::R3, Reg::R2);
        asm.load(Size::D, Reg::R5, Reg::R3, 24);
        asm.mov(Reg::R2, Reg::R5);
        asm.alu(Alu::Rsh, Reg::R2, flag::MARK);
        part(asm, Reg::R2, MARKS);
        asm.map_value(Reg::R4, map, marks);
        asm.alu(Alu::Add, Reg::R4, Reg::R2);
        // Read before it is written: a line that all processors only read stays in all their caches.
        let (marked, found) = (asm.label(), asm.label());
        asm.load(Size::D, Reg::R2, Reg::R4, 0);
        asm.jump_if(Cond::Ne, Reg::R2, 0, marked);
        asm.store(Size::D, Reg::R4, 0, 1);
        asm.bind(marked);
        asm.load(Size::D, Reg::R0, Reg::R3, 0);
        asm.load(Size::D, Reg::R1, Reg::R3, 8);
        asm.load(Size::D, Reg::R2, Reg::R3, 16);
        if let Some(interfaces) = self.interfaces {
            interfaces.admit(asm, frame, missing);
        }
        if of == Of::Route {
            asm.alu(Alu::And, Reg::R5, flag::ON_LINK);
            asm.jump_if(Cond::Eq, Reg::R5, 0, found);
            asm.load_slot(Size::D, Reg::R1, key, 0);
            if six {
                asm.load_slot(Size::D, Reg::R2, key, 8);
            }
        }
        asm.bind(found);
    }

    /// Has the kernel agree to redirect the packet to the hop in R2, and asks about it if it is its turn.
    fn redirect(
        &self,
        asm: &mut Asm,
        frame: &Frame,
        (interfaces, of): (&Ways<'_>, Of),
        missing: Label,
        doubted: Option<Label>,
    ) {
        let agreed = asm.label();
        asm.map_value(Reg::R3, self.hops.map().as_fd(), self.hops.layout().offsets()[1] as i32);
        asm.alu(Alu::Add, Reg::R3, Reg::R2);
        asm.load(Size::H, Reg::R2, Reg::R3, LOW_HALF);
        interfaces.redirect(asm, frame, agreed);
        if let Some(doubted) = doubted {
            asm.load_slot(Size::D, Reg::R2, frame.key, RECORD);
            asm.jump_if(Cond::Eq, Reg::R2, (DOUBTED * 8 * crate::hops::RECORD) as i32, doubted);
        }
        asm.jump(missing);
        asm.bind(agreed);
        let Some(doubted) = doubted else { return };
        if let Some(check) = self.check {
            let (due, same) = (asm.label(), asm.label());
            check.count(asm, frame, due);
            asm.jump(same);
            asm.bind(due);
            check.ask(asm, frame, (self, interfaces, of), [same, doubted]);
            asm.bind(same);
        }
    }
}

/// Where the low half of a word's low half is.
pub(crate) const LOW_HALF: i16 = if cfg!(target_endian = "little") { 0 } else { 6 };
