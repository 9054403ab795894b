//! The hash of a flow, as KernelForward makes it: with a seed the kernel's own, SipHash-2-4 over its keys of a flow (Aumasson
//! and Bernstein, 2012), without one a cheaper one over the same fields.

use super::{GROUP, RECORD};
use crate::frame::Frame;
use causeway_bpf::{Alu, Asm, Cond, Label, Reg, Size};

/// A prime near 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// What SipHash begins with.
const START: [u64; 4] =
    [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573];
/// Octets that the kernel hashes for IPv4; the last word of the message says how many.
const LEN: u64 = 48;
/// Those of its words that are not zero, by number, and where in the slot of the key they are kept: the protocol from octet 2 on,
/// the ports from octet 28 on, and the addresses from octet 36 on.
const WORDS: [(usize, i16); 4] = [(0, 0), (3, 8), (4, RECORD), (5, GROUP)];

/// R0 becomes the hash of 32 bits of the flow from the upper half of R0 to its lower half, with the ports in the low half of
/// R1 and the protocol above it, by the word in R5 ([`super::Members::spread`]). Goes on at `missing` if that names no policy
/// that is known. Destroys R0 to R5 and the slot of the key but for the index.
pub(super) fn hash(asm: &mut Asm, frame: &Frame, missing: Label) {
    let (ports, by_seed, done) = (asm.label(), asm.label(), asm.label());
    asm.mov(Reg::R2, Reg::R5);
    asm.alu(Alu::And, Reg::R2, 0xff);
    asm.jump_if(Cond::Eq, Reg::R2, 1, ports);
    asm.jump_if(Cond::Ne, Reg::R2, 0, missing);
    asm.mov(Reg::R1, 0);
    asm.bind(ports);
    undirected(asm);
    asm.alu(Alu::Rsh, Reg::R5, 32);
    asm.jump_if(Cond::Ne, Reg::R5, 0, by_seed);
    fast(asm);
    asm.jump(done);
    asm.bind(by_seed);
    siphash(asm, frame);
    asm.bind(done);
}

/// Addresses, R0 and R2, and ports, R3 and R4, as the machine reads them where they stand, the smaller first; R1 becomes the
/// protocol.
fn undirected(asm: &mut Asm) {
    let pair = |asm: &mut Asm, from: Reg, [first, second]: [Reg; 2], bits: i32| {
        asm.mov(second, from);
        asm.to_be(second, bits);
        if first != from {
            asm.mov(first, from);
        }
        asm.alu(Alu::Rsh, first, bits);
        asm.to_be(first, bits);
    };
    pair(asm, Reg::R1, [Reg::R3, Reg::R4], 16);
    asm.alu(Alu::Rsh, Reg::R1, 32);
    pair(asm, Reg::R0, [Reg::R0, Reg::R2], 32);
    for [a, b] in [[Reg::R3, Reg::R4], [Reg::R0, Reg::R2]] {
        let ordered = asm.label();
        asm.jump_if(Cond::Le, a, b, ordered);
        // No register is left.
        for (to, from) in [(a, b), (b, a), (a, b)] {
            asm.alu(Alu::Xor, to, from);
        }
        asm.bind(ordered);
    }
}

/// The hash without a seed.
fn fast(asm: &mut Asm) {
    let mix = |asm: &mut Asm| {
        asm.mov64(Reg::R5, SPREAD);
        asm.alu(Alu::Mul, Reg::R0, Reg::R5);
        rotate(asm, Reg::R0, 29, Reg::R5);
    };
    asm.alu(Alu::Lsh, Reg::R0, 32);
    asm.alu(Alu::Or, Reg::R0, Reg::R2);
    mix(asm);
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
}

/// The hash with the seed in R5, which is both halves of both words of the key; never 0.
fn siphash(asm: &mut Asm, frame: &Frame) {
    let key = frame.key;
    asm.alu(Alu::Lsh, Reg::R1, 16);
    asm.alu(Alu::Lsh, Reg::R4, 16);
    asm.alu(Alu::Or, Reg::R3, Reg::R4);
    asm.alu(Alu::Lsh, Reg::R3, 32);
    asm.alu(Alu::Lsh, Reg::R0, 32);
    for ((_, slot), word) in WORDS.into_iter().zip([Reg::R1, Reg::R3, Reg::R0, Reg::R2]) {
        asm.store_slot(Size::D, key, slot, word);
    }
    asm.mov(Reg::R4, Reg::R5);
    asm.alu(Alu::Lsh, Reg::R4, 32);
    asm.alu(Alu::Or, Reg::R5, Reg::R4);
    let state = [Reg::R0, Reg::R1, Reg::R2, Reg::R3];
    for (register, start) in state.into_iter().zip(START) {
        asm.mov64(register, start);
        asm.alu(Alu::Xor, register, Reg::R5);
    }
    for number in 0..LEN as usize / 8 {
        let slot = WORDS.iter().find(|word| word.0 == number).map(|word| word.1);
        let xor = |asm: &mut Asm, register| {
            if let Some(slot) = slot {
                asm.load_slot(Size::D, Reg::R5, key, slot);
                asm.alu(Alu::Xor, register, Reg::R5);
            }
        };
        xor(asm, Reg::R3);
        (0..2).for_each(|_| round(asm, state));
        xor(asm, Reg::R0);
    }
    let absorb = |asm: &mut Asm, register| {
        asm.mov64(Reg::R5, LEN << 56);
        asm.alu(Alu::Xor, register, Reg::R5);
    };
    absorb(asm, Reg::R3);
    (0..2).for_each(|_| round(asm, state));
    absorb(asm, Reg::R0);
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
