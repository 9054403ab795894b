//! The hash of a flow, as KernelForward makes it: with a seed the kernel's own, SipHash-2-4 over its keys of a flow (Aumasson
//! and Bernstein, 2012), without one a cheaper one over the same fields.

use super::{CANDIDATE, GROUP, RECORD};
use crate::frame::Frame;
use causeway_bpf::{Alu, Asm, Cond, Label, Reg, Size};

/// A prime near 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// What SipHash begins with.
const START: [u64; 4] =
    [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573];
/// Octets that the kernel hashes for IPv4 and IPv6; the last word of the message says how many.
const LEN4: u64 = 48;
const LEN6: u64 = 72;
/// Those of its words that are not zero for IPv4, by number, and where in the slot of the key they are kept: the protocol from
/// octet 2 on, the ports from octet 28 on, and the addresses from octet 36 on.
const WORDS4: [(usize, i16); 4] = [(0, 0), (PORTS, 8), (4, RECORD), (5, GROUP)];
/// The word that has the ports in its upper half, and the one that has the first half of a word of IPv6 addresses there. The
/// second half is in the next word.
const PORTS: usize = 3;
const ADDRESSES: usize = 4;

/// Where the halves of the addresses of IPv6 are in the slot of the key: source and destination, the upper half first.
pub(super) const HALVES: [i16; 4] = [0, 8, RECORD, CANDIDATE];
/// Where the rest of the flow is.
pub(super) const FLOW: i16 = GROUP;

/// R0 becomes the hash of 32 bits of the IPv4 flow from the upper half of R0 to its lower half, with the ports in the low half
/// of R1 and the protocol above it, by the word in R5 ([`super::Members::spread`]). Goes on at `missing` if that names no policy
/// that is known. Destroys R0 to R5 and the slot of the key but for the index.
pub(super) fn hash4(asm: &mut Asm, frame: &Frame, missing: Label) {
    let seeded = asm.label();
    by_policy(asm, missing, |asm, l4| {
        if !l4 {
            asm.mov(Reg::R1, 0);
        }
    });
    ports(asm);
    pair(asm, Reg::R0, [Reg::R0, Reg::R2], 32);
    by_seed(asm, seeded, |asm| {
        asm.alu(Alu::Lsh, Reg::R0, 32);
        asm.alu(Alu::Or, Reg::R0, Reg::R2);
        mix(asm);
    });
    asm.alu(Alu::Lsh, Reg::R1, 16);
    in_upper_half(asm);
    asm.alu(Alu::Lsh, Reg::R0, 32);
    for ((_, slot), word) in WORDS4.into_iter().zip([Reg::R1, Reg::R3, Reg::R0, Reg::R2]) {
        asm.store_slot(Size::D, frame.key, slot, word);
    }
    siphash(asm, LEN4, |asm, number| {
        let slot = WORDS4.iter().find(|word| word.0 == number).map(|word| word.1);
        slot.inspect(|&slot| asm.load_slot(Size::D, Reg::R5, frame.key, slot)).is_some()
    });
    asm.bind(seeded);
}

/// The same of the IPv6 flow with the addresses in [`HALVES`], and ports and protocol as with IPv4 in R1, above them the flow
/// label.
pub(super) fn hash6(asm: &mut Asm, frame: &Frame, missing: Label) {
    let (key, done) = (frame.key, asm.label());
    by_policy(asm, missing, |asm, l4| {
        // Either the ports are left out or the label.
        let [there, back] = if l4 { [Alu::Lsh, Alu::Rsh] } else { [Alu::Rsh, Alu::Lsh] };
        let bits = if l4 { 64 - LABEL_BIT } else { 32 };
        asm.alu(there, Reg::R1, bits);
        asm.alu(back, Reg::R1, bits);
    });
    addresses(asm, frame);
    ports(asm);
    // R2: the label as it stands in the packet.
    asm.mov(Reg::R2, Reg::R1);
    asm.alu(Alu::Rsh, Reg::R2, LABEL_BIT - 32);
    asm.to_be(Reg::R2, 32);
    asm.alu(Alu::And, Reg::R1, 0xff);
    by_seed(asm, done, |asm| {
        asm.mov(Reg::R0, Reg::R2);
        for half in HALVES {
            asm.load_slot(Size::D, Reg::R5, key, half);
            asm.alu(Alu::Xor, Reg::R0, Reg::R5);
            mix(asm);
        }
    });
    in_upper_half(asm);
    asm.store_slot(Size::D, key, FLOW, Reg::R3);
    // R4: the first word.
    asm.mov(Reg::R4, Reg::R2);
    asm.alu(Alu::Lsh, Reg::R4, 16);
    asm.alu(Alu::Or, Reg::R4, Reg::R1);
    asm.alu(Alu::Lsh, Reg::R4, 16);
    siphash(asm, LEN6, |asm, number| word6(asm, frame, number));
    asm.bind(done);
}

/// Bits of an IPv6 flow below the label.
const LABEL_BIT: i32 = 40;

/// R5 becomes this word of what is hashed for IPv6, or false is returned because it is zero. The first is in R4, which is
/// destroyed.
fn word6(asm: &mut Asm, frame: &Frame, number: usize) -> bool {
    let key = frame.key;
    match number {
        0 => asm.mov(Reg::R5, Reg::R4),
        PORTS => asm.load_slot(Size::D, Reg::R5, key, FLOW),
        ADDRESSES.. => {
            let (before, here) = (number.checked_sub(ADDRESSES + 1), HALVES.get(number - ADDRESSES));
            match before {
                Some(before) => {
                    asm.load_slot(Size::D, Reg::R5, key, HALVES[before]);
                    asm.alu(Alu::Rsh, Reg::R5, 32);
                }
                None => asm.mov(Reg::R5, 0),
            }
            if let Some(&here) = here {
                asm.load_slot(Size::D, Reg::R4, key, here);
                asm.alu(Alu::Lsh, Reg::R4, 32);
                asm.alu(Alu::Or, Reg::R5, Reg::R4);
            }
        }
        _ => return false,
    }
    true
}

/// Writes for either policy what is left of the flow, which `flow` is told: whether ports count. The policy is in R5, which is
/// kept; R2 is destroyed.
fn by_policy(asm: &mut Asm, missing: Label, flow: impl Fn(&mut Asm, bool)) {
    let (l4, done) = (asm.label(), asm.label());
    asm.mov(Reg::R2, Reg::R5);
    asm.alu(Alu::And, Reg::R2, 0xff);
    asm.jump_if(Cond::Eq, Reg::R2, 1, l4);
    asm.jump_if(Cond::Ne, Reg::R2, 0, missing);
    flow(asm, false);
    asm.jump(done);
    asm.bind(l4);
    flow(asm, true);
    asm.bind(done);
}

/// R3 and R4 become the ports in the low half of R1 as the machine reads them where they stand, the smaller first; R1 becomes
/// what is above them.
fn ports(asm: &mut Asm) {
    pair(asm, Reg::R1, [Reg::R3, Reg::R4], 16);
    asm.alu(Alu::Rsh, Reg::R1, 32);
}

/// The halves of the low `2 * bits` bits of `from`, as the machine reads them where they stand, the smaller first.
fn pair(asm: &mut Asm, from: Reg, [first, second]: [Reg; 2], bits: i32) {
    asm.mov(second, from);
    asm.to_be(second, bits);
    if first != from {
        asm.mov(first, from);
    }
    asm.alu(Alu::Rsh, first, bits);
    asm.to_be(first, bits);
    let ordered = asm.label();
    asm.jump_if(Cond::Le, first, second, ordered);
    exchange(asm, first, second);
    asm.bind(ordered);
}

/// Where there is no register left.
fn exchange(asm: &mut Asm, a: Reg, b: Reg) {
    for (to, from) in [(a, b), (b, a), (a, b)] {
        asm.alu(Alu::Xor, to, from);
    }
}

/// The [`HALVES`] become those of the smaller address and of the other, as the machine reads them where they stand in a packet.
/// Destroys R0 and R2 to R4.
fn addresses(asm: &mut Asm, frame: &Frame) {
    let halves = [Reg::R0, Reg::R2, Reg::R3, Reg::R4];
    let (ordered, other) = (asm.label(), asm.label());
    for (register, half) in halves.into_iter().zip(HALVES) {
        asm.load_slot(Size::D, register, frame.key, half);
    }
    asm.jump_if(Cond::Lt, Reg::R0, Reg::R3, ordered);
    asm.jump_if(Cond::Gt, Reg::R0, Reg::R3, other);
    asm.jump_if(Cond::Le, Reg::R2, Reg::R4, ordered);
    asm.bind(other);
    exchange(asm, Reg::R0, Reg::R3);
    exchange(asm, Reg::R2, Reg::R4);
    asm.bind(ordered);
    for (register, half) in halves.into_iter().zip(HALVES) {
        asm.to_be(register, 64);
        asm.store_slot(Size::D, frame.key, half, register);
    }
}

/// Without a seed R0 becomes the hash of what `begin` has mixed into it, of the ports in R3 and R4, and of the protocol in R1,
/// and it goes on at `done`; else R5 becomes the seed.
fn by_seed(asm: &mut Asm, done: Label, begin: impl FnOnce(&mut Asm)) {
    let seeded = asm.label();
    asm.alu(Alu::Rsh, Reg::R5, 32);
    asm.jump_if(Cond::Ne, Reg::R5, 0, seeded);
    begin(asm);
    asm.alu(Alu::Lsh, Reg::R3, 16);
    asm.alu(Alu::Or, Reg::R3, Reg::R4);
    asm.alu(Alu::Lsh, Reg::R3, 8);
    asm.alu(Alu::Or, Reg::R3, Reg::R1);
    asm.alu(Alu::Xor, Reg::R0, Reg::R3);
    mix(asm);
    asm.mov(Reg::R3, Reg::R0);
    asm.alu(Alu::Rsh, Reg::R3, 32);
    asm.alu(Alu::Xor, Reg::R0, Reg::R3);
    mix(asm);
    asm.alu(Alu::Rsh, Reg::R0, 32);
    asm.jump(done);
    asm.bind(seeded);
}

/// Mixes the bits of R0; destroys R5.
fn mix(asm: &mut Asm) {
    asm.mov64(Reg::R5, SPREAD);
    asm.alu(Alu::Mul, Reg::R0, Reg::R5);
    rotate(asm, Reg::R0, 29, Reg::R5);
}

/// The ports in R3 and R4 become the upper half of R3.
fn in_upper_half(asm: &mut Asm) {
    asm.alu(Alu::Lsh, Reg::R4, 16);
    asm.alu(Alu::Or, Reg::R3, Reg::R4);
    asm.alu(Alu::Lsh, Reg::R3, 32);
}

/// R0 becomes the hash with the seed in R5, which is both halves of both words of the key; never 0. `word` writes what R5
/// becomes a word of the message by, from R4 where it is still as it was for the first one; or it says that the word is zero.
fn siphash(asm: &mut Asm, len: u64, word: impl Fn(&mut Asm, usize) -> bool) {
    let state = [Reg::R0, Reg::R1, Reg::R2, Reg::R3];
    asm.mov(Reg::R0, Reg::R5);
    asm.alu(Alu::Lsh, Reg::R0, 32);
    asm.alu(Alu::Or, Reg::R5, Reg::R0);
    for (register, start) in state.into_iter().zip(START) {
        asm.mov64(register, start);
        asm.alu(Alu::Xor, register, Reg::R5);
    }
    let words = len as usize / 8;
    for number in 0..=words {
        let is_zero = if number < words {
            !word(asm, number)
        } else {
            asm.mov64(Reg::R5, len << 56);
            false
        };
        if !is_zero {
            asm.alu(Alu::Xor, Reg::R3, Reg::R5);
        }
        (0..2).for_each(|_| round(asm, state));
        if !is_zero {
            asm.alu(Alu::Xor, Reg::R0, Reg::R5);
        }
    }
    asm.alu(Alu::Xor, Reg::R2, 0xff);
    (0..4).for_each(|_| round(asm, state));
    for register in [Reg::R1, Reg::R2, Reg::R3] {
        asm.alu(Alu::Xor, Reg::R0, register);
    }
    asm.mov32(Reg::R0, Reg::R0);
    let done = asm.label();
    asm.jump_if(Cond::Ne, Reg::R0, 0, done);
    asm.mov(Reg::R0, 1);
    asm.bind(done);
}

/// One round of SipHash; destroys R4.
fn round(asm: &mut Asm, [v0, v1, v2, v3]: [Reg; 4]) {
    let half = |asm: &mut Asm, to: Reg, from: Reg, bits: i32| {
        asm.alu(Alu::Add, to, from);
        rotate(asm, from, bits, Reg::R4);
        asm.alu(Alu::Xor, from, to);
    };
    half(asm, v0, v1, 13);
    rotate(asm, v0, 32, Reg::R4);
    half(asm, v2, v3, 16);
    half(asm, v0, v3, 21);
    half(asm, v2, v1, 17);
    rotate(asm, v2, 32, Reg::R4);
}

fn rotate(asm: &mut Asm, register: Reg, left: i32, scratch: Reg) {
    asm.mov(scratch, register);
    asm.alu(Alu::Rsh, scratch, 64 - left);
    asm.alu(Alu::Lsh, register, left);
    asm.alu(Alu::Or, register, scratch);
}
