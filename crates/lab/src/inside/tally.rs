//! What programs in the kernel count by key.

use causeway_bpf::{Asm, Cond, Helper, Map, Operand, Reg, Size, Slot};
use std::os::fd::AsFd;

/// Adds to the words that a hash table has for the key in a slot, or makes them; `value` is room for the words. Destroys
/// R0 to R5.
pub fn add(a: &mut Asm, map: &Map, key: Slot, value: Slot, words: &[Operand]) {
    let (absent, end) = (a.label(), a.label());
    let words = || (0i16..).step_by(8).zip(words.iter().copied());
    a.map(Reg::R1, map.as_fd());
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, Reg::R0, 0, absent);
    for (offset, word) in words() {
        a.mov(Reg::R1, word);
        a.atomic_add(Size::D, Reg::R0, offset, Reg::R1);
    }
    a.jump(end);
    a.bind(absent);
    for (offset, word) in words() {
        a.store_slot(Size::D, value, offset, word);
    }
    a.map(Reg::R1, map.as_fd());
    a.slot_address(Reg::R2, key);
    a.slot_address(Reg::R3, value);
    a.mov(Reg::R4, 0);
    a.call(Helper::MapUpdate);
    a.bind(end);
}
