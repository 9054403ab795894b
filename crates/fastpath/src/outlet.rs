//! Where packets of the stack go out that leave by a port.

use crate::exit::Leaving;
use crate::frame::longest_part;
use crate::state::State;
use crate::table::CANDIDATE;
use causeway_bpf::{Alu, Asm, Cond, Helper, Label, Map, Reg, Size, action, sk_buff};
use std::os::fd::AsFd;

/// An interface that packets are redirected to at tcx, in a map of [`causeway_bpf::MapKind::Array`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlet {
    /// Its index; 0 if there is none.
    pub ifindex: u32,
    /// Bytes of the longest frame that it takes.
    pub longest: u32,
}

impl Outlet {
    /// Bytes of one in the map.
    pub const LEN: usize = 8;

    /// What the map has.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Outlet::LEN] {
        let mut bytes = [0; Outlet::LEN];
        bytes[..4].copy_from_slice(&self.ifindex.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.longest.to_ne_bytes());
        bytes
    }
}

impl Leaving<'_> {
    /// The packet of the stack goes to an [`Outlet`], if that is there and takes packets so long: nobody else looks. Else it goes
    /// on at `astray`.
    pub fn let_out(
        &mut self,
        state: &State,
        (map, key): (&Map, u32),
        astray: Label,
        count: impl FnOnce(&mut Asm),
    ) {
        let place = self.frame.key;
        self.asm.store_slot(Size::W, place, CANDIDATE, key as i32);
        self.asm.map(Reg::R1, map.as_fd());
        self.asm.slot_address(Reg::R2, place);
        self.asm.alu(Alu::Add, Reg::R2, i32::from(CANDIDATE));
        self.asm.call(Helper::MapLookup);
        self.asm.jump_if(Cond::Eq, Reg::R0, 0, astray);
        if state.parts.is_some() {
            longest_part(self.asm, self.frame);
        } else {
            self.asm.load_slot(Size::D, Reg::R1, self.frame.context, 0);
            self.asm.load(Size::W, Reg::R1, Reg::R1, sk_buff::LEN);
        }
        self.asm.load(Size::W, Reg::R2, Reg::R0, 4);
        self.asm.jump_if(Cond::Gt, Reg::R1, Reg::R2, astray);
        self.asm.load(Size::W, Reg::R1, Reg::R0, 0);
        self.asm.jump_if(Cond::Eq, Reg::R1, 0, astray);
        self.asm.mov(Reg::R2, 0);
        self.asm.call(Helper::Redirect);
        self.asm.jump_if(Cond::Ne, Reg::R0, action::TCX_REDIRECT, astray);
        count(self.asm);
        self.asm.mov(Reg::R0, action::TCX_REDIRECT);
        self.asm.exit();
    }
}
