//! The walk of the IPv6 table.
//!
//! The address stays in R0 and R5, upper half and lower.

use super::{SharedRegion, element, ones32};
use crate::frame::Frame;
use causeway_bpf::{Alu, Asm, Cond, Label, Reg, Size};
use causeway_fib::{Lines6Layout, Place};
use std::os::fd::AsFd;

/// Leaves, branches and further directories that a walk goes through behind the first leaf, at most. What lies deeper is not
/// found.
const STEPS: usize = 12;

/// What an entry is: a leaf; a branch or, with another bit, a further directory; else a result.
const LEAF: i32 = i32::MIN;
const BRANCH: i32 = 1 << 30;
const DIRECTORY: i32 = 1 << 29;
/// In what a leaf gives: no result, and then what the block is named by itself.
const CHILD: i32 = 1 << 15;
const BOX: i32 = 1 << 14;
/// Root entries are stored with these bits turned over.
const EMPTY: i32 = 63;

/// Offsets in a leaf: the results of a wide and of a narrow one, where the block is named, and the window.
const WIDE_RESULTS: i16 = 40;
const NARROW_RESULTS: i16 = 30;
const BLOCK: i16 = 58;
const WINDOW: i16 = 62;
/// In a window: the bytes below it, and whether the leaf is narrow.
const BYTES_BELOW: i32 = 15;
const NARROW: i32 = 1 << 8;

/// A leaf and a branch are a line of 64 bytes.
const LINE: i32 = 6;
/// Where the entries of a branch are, behind three boundaries of two words.
const WAYS: i16 = 48;

struct Walk<'a> {
    asm: &'a mut Asm,
    frame: &'a Frame,
    memory: &'a SharedRegion,
    layout: &'a Lines6Layout,
}

/// R2 becomes the adjacency of the address in R0 and R1, of which R0 is kept: the walk of [`causeway_fib::Lines6`], each index
/// masked. Goes on at `missing` where that is too deep.
pub(super) fn adjacency(
    asm: &mut Asm,
    frame: &Frame,
    (memory, layout): (&SharedRegion, &Lines6Layout),
    missing: Label,
) {
    asm.store_slot(Size::D, frame.key, 8, Reg::R1);
    let mut walk = Walk { asm, frame, memory, layout };
    walk.directories();
    let done = walk.asm.label();
    let (mut leaf, mut entry) = (walk.asm.label(), walk.asm.label());
    walk.asm.jump(leaf);
    for _ in 0..STEPS {
        let next = [walk.asm.label(), walk.asm.label()];
        walk.asm.bind(leaf);
        walk.leaf(done);
        walk.asm.bind(entry);
        walk.entry(done, next);
        [leaf, entry] = next;
    }
    for label in [leaf, entry] {
        walk.asm.bind(label);
    }
    walk.asm.jump(missing);
    walk.asm.bind(done);
}

impl Walk<'_> {
    fn element(&mut self, part: Place, size: Size, index: Reg, base: Reg, to: Reg) {
        element(self.asm, self.memory, part, (size, index), base, to);
    }

    /// `to` = the line with the index in `index`, of leaves or branches.
    fn line(&mut self, part: Place, index: Reg, to: Reg) {
        self.asm.alu(Alu::And, index, part.mask as i32);
        self.asm.alu(Alu::Lsh, index, LINE);
        self.asm.map_value(to, self.memory.map().as_fd(), part.offset as i32);
        self.asm.alu(Alu::Add, to, index);
    }

    /// From the root to R4, the first leaf.
    fn directories(&mut self) {
        let layout = self.layout;
        self.asm.mov(Reg::R2, Reg::R0);
        self.asm.alu(Alu::Rsh, Reg::R2, 48);
        self.element(layout.root, Size::W, Reg::R2, Reg::R3, Reg::R4);
        self.asm.alu(Alu::Xor, Reg::R4, EMPTY);
        // R5: the bits that are left; R3: the index that a pointer in R4 and they make.
        self.asm.mov(Reg::R5, Reg::R0);
        self.asm.alu(Alu::Lsh, Reg::R5, 16);
        self.leading();
        self.asm.mov(Reg::R2, Reg::R4);
        self.asm.alu(Alu::Rsh, Reg::R2, 6);
        self.asm.alu32(Alu::Add, Reg::R3, Reg::R2);
        self.asm.neg(Reg::R4);
        self.asm.alu(Alu::And, Reg::R4, 63);
        self.asm.alu(Alu::Lsh, Reg::R5, Reg::R4);
        self.element(layout.entries, Size::W, Reg::R3, Reg::R2, Reg::R4);
        self.leading();
        self.asm.mov(Reg::R2, Reg::R4);
        self.asm.alu(Alu::Rsh, Reg::R2, 1);
        self.asm.alu(Alu::And, Reg::R2, !31);
        self.asm.alu32(Alu::Add, Reg::R2, Reg::R3);
        self.word();
    }

    /// R3 = the bits of R5 that the pointer in R4 takes.
    fn leading(&mut self) {
        self.asm.mov(Reg::R2, Reg::R4);
        self.asm.alu(Alu::And, Reg::R2, 63);
        self.asm.mov(Reg::R3, Reg::R5);
        self.asm.alu(Alu::Rsh, Reg::R3, Reg::R2);
    }

    /// From the slot in R2 to R4, its leaf. R5 becomes the lower half of the address again.
    fn word(&mut self) {
        self.asm.mov(Reg::R3, Reg::R2);
        self.asm.alu(Alu::Rsh, Reg::R3, 5);
        self.element(self.layout.words, Size::D, Reg::R3, Reg::R1, Reg::R4);
        self.asm.alu(Alu::And, Reg::R2, 31);
        self.asm.mov(Reg::R3, 31);
        self.asm.alu(Alu::Sub, Reg::R3, Reg::R2);
        self.asm.mov32(Reg::R2, Reg::R4);
        self.asm.alu32(Alu::Lsh, Reg::R2, Reg::R3);
        ones32(self.asm, Reg::R2, Reg::R1);
        self.asm.alu(Alu::Rsh, Reg::R4, 32);
        self.asm.alu32(Alu::Add, Reg::R4, Reg::R2);
        self.asm.load_slot(Size::D, Reg::R5, self.frame.key, 8);
    }

    /// R2 becomes what the leaf in R4 has for the address: a result, with which it goes on at `done`, or an entry.
    fn leaf(&mut self, done: Label) {
        let (narrow, found, boxed) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.line(self.layout.leaves, Reg::R4, Reg::R1);
        self.asm.load(Size::H, Reg::R3, Reg::R1, WINDOW);
        self.key();
        self.asm.jump_if(Cond::Set, Reg::R3, NARROW, narrow);
        self.below((0..10).map(|n| 4 * n), Size::W);
        self.result(WIDE_RESULTS);
        self.asm.jump(found);
        self.asm.bind(narrow);
        self.asm.alu(Alu::Rsh, Reg::R4, 16);
        self.below((0..15).map(|n| 2 * n), Size::H);
        self.result(NARROW_RESULTS);
        self.asm.bind(found);
        self.asm.jump_if(Cond::Lt, Reg::R2, CHILD, done);
        self.asm.load(Size::H, Reg::R4, Reg::R1, BLOCK);
        self.asm.load(Size::H, Reg::R3, Reg::R1, BLOCK + 2);
        self.asm.alu(Alu::Lsh, Reg::R3, 16);
        self.asm.alu(Alu::Or, Reg::R4, Reg::R3);
        self.asm.mov(Reg::R3, Reg::R2);
        self.asm.mov(Reg::R2, Reg::R4);
        self.asm.jump_if(Cond::Set, Reg::R3, BOX, boxed);
        self.asm.alu(Alu::And, Reg::R3, BOX - 1);
        self.asm.alu32(Alu::Add, Reg::R2, Reg::R3);
        self.asm.alu32(Alu::Or, Reg::R2, LEAF);
        self.asm.bind(boxed);
    }

    /// R4 = the 32 bits of the address in the window in R3.
    fn key(&mut self) {
        let (upper, done) = (self.asm.label(), self.asm.label());
        self.asm.mov(Reg::R2, Reg::R3);
        self.asm.alu(Alu::And, Reg::R2, BYTES_BELOW);
        self.asm.alu(Alu::Lsh, Reg::R2, 3);
        self.asm.jump_if(Cond::Ge, Reg::R2, 64, upper);
        self.asm.mov(Reg::R4, Reg::R5);
        self.asm.jump_if(Cond::Eq, Reg::R2, 0, done);
        // Both halves have a share in it, or may have.
        self.asm.alu(Alu::Rsh, Reg::R4, Reg::R2);
        self.asm.alu(Alu::Xor, Reg::R2, 63);
        self.asm.alu(Alu::Add, Reg::R2, 1);
        self.asm.mov(Reg::R5, Reg::R0);
        self.asm.alu(Alu::Lsh, Reg::R5, Reg::R2);
        self.asm.alu(Alu::Or, Reg::R4, Reg::R5);
        self.asm.load_slot(Size::D, Reg::R5, self.frame.key, 8);
        self.asm.jump(done);
        self.asm.bind(upper);
        self.asm.alu(Alu::Sub, Reg::R2, 64);
        self.asm.mov(Reg::R4, Reg::R0);
        self.asm.alu(Alu::Rsh, Reg::R4, Reg::R2);
        self.asm.bind(done);
        self.asm.mov32(Reg::R4, Reg::R4);
    }

    /// R2 = how many of the boundaries at these offsets of R1 are below the key in R4, without a branch: the difference is below
    /// zero. They are stored with the highest bit turned over.
    fn below(&mut self, offsets: impl Iterator<Item = i16>, size: Size) {
        let flip = if size == Size::W { i32::MIN } else { 1 << 15 };
        self.asm.mov(Reg::R2, 0);
        for offset in offsets {
            self.asm.load(size, Reg::R3, Reg::R1, offset);
            self.asm.alu32(Alu::Xor, Reg::R3, flip);
            if size == Size::W && cfg!(target_endian = "big") {
                // Its lower half comes first.
                self.asm.mov(Reg::R5, Reg::R3);
                self.asm.alu32(Alu::Lsh, Reg::R3, 16);
                self.asm.alu(Alu::Rsh, Reg::R5, 16);
                self.asm.alu(Alu::Or, Reg::R3, Reg::R5);
                self.asm.load_slot(Size::D, Reg::R5, self.frame.key, 8);
            }
            self.asm.alu(Alu::Sub, Reg::R3, Reg::R4);
            self.asm.alu(Alu::Rsh, Reg::R3, 63);
            self.asm.alu(Alu::Add, Reg::R2, Reg::R3);
        }
    }

    /// R2 becomes result number R2 of the leaf at R1.
    fn result(&mut self, first: i16) {
        self.asm.alu(Alu::Lsh, Reg::R2, 1);
        self.asm.mov(Reg::R3, Reg::R1);
        self.asm.alu(Alu::Add, Reg::R3, Reg::R2);
        self.asm.load(Size::H, Reg::R2, Reg::R3, first);
    }

    /// Goes on with the entry in R2: at `done` if it is a result, at the first of `next` if it is a leaf, which is in R4 then,
    /// and at the second with another entry in R2.
    fn entry(&mut self, done: Label, [leaf, entry]: [Label; 2]) {
        let branch = self.asm.label();
        self.asm.jump_if32(Cond::Lt, Reg::R2, BRANCH, done);
        self.asm.mov(Reg::R4, Reg::R2);
        self.asm.jump_if32(Cond::Ge, Reg::R2, LEAF, leaf);
        self.asm.jump_if32(Cond::Lt, Reg::R2, BRANCH | DIRECTORY, branch);
        self.directory();
        self.asm.jump(leaf);
        self.asm.bind(branch);
        self.branch();
        self.asm.jump(entry);
    }

    /// R2 becomes the entry that the branch in R2 has for the address: the one in front of the first boundary that is not
    /// below it.
    fn branch(&mut self) {
        let done = self.asm.label();
        self.line(self.layout.branches, Reg::R2, Reg::R1);
        for way in 0..3 {
            let (here, next) = (self.asm.label(), self.asm.label());
            self.asm.load(Size::D, Reg::R3, Reg::R1, 16 * way);
            self.asm.jump_if(Cond::Gt, Reg::R3, Reg::R0, here);
            self.asm.jump_if(Cond::Lt, Reg::R3, Reg::R0, next);
            self.asm.load(Size::D, Reg::R3, Reg::R1, 16 * way + 8);
            self.asm.jump_if(Cond::Lt, Reg::R3, Reg::R5, next);
            self.asm.bind(here);
            self.asm.load(Size::W, Reg::R2, Reg::R1, WAYS + 4 * way);
            self.asm.jump(done);
            self.asm.bind(next);
        }
        self.asm.load(Size::W, Reg::R2, Reg::R1, WAYS + 12);
        self.asm.bind(done);
    }

    /// From the further directory in R2 to R4, a leaf.
    fn directory(&mut self) {
        let (lower, shifted) = (self.asm.label(), self.asm.label());
        self.element(self.layout.deep, Size::D, Reg::R2, Reg::R1, Reg::R4);
        // R2: the address from the directory's position on.
        self.asm.mov(Reg::R3, Reg::R4);
        self.asm.alu(Alu::Rsh, Reg::R3, 8);
        self.asm.alu(Alu::And, Reg::R3, 127);
        self.asm.mov(Reg::R2, Reg::R5);
        self.asm.jump_if(Cond::Ge, Reg::R3, 64, lower);
        self.asm.mov(Reg::R2, Reg::R0);
        self.asm.alu(Alu::Lsh, Reg::R2, Reg::R3);
        self.asm.alu(Alu::Xor, Reg::R3, 63);
        self.asm.alu(Alu::Rsh, Reg::R5, 1);
        self.asm.alu(Alu::Rsh, Reg::R5, Reg::R3);
        self.asm.alu(Alu::Or, Reg::R2, Reg::R5);
        self.asm.jump(shifted);
        self.asm.bind(lower);
        self.asm.alu(Alu::Sub, Reg::R3, 64);
        self.asm.alu(Alu::Lsh, Reg::R2, Reg::R3);
        self.asm.bind(shifted);
        self.asm.mov(Reg::R1, Reg::R4);
        self.asm.neg(Reg::R1);
        self.asm.alu(Alu::And, Reg::R1, 63);
        self.asm.alu(Alu::Rsh, Reg::R2, Reg::R1);
        self.asm.alu(Alu::Rsh, Reg::R4, 32);
        self.asm.alu(Alu::Lsh, Reg::R4, 5);
        self.asm.alu32(Alu::Add, Reg::R2, Reg::R4);
        self.word();
    }
}
