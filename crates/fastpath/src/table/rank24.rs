//! The walk of the IPv4 table.

use super::{SharedRegion, element, ones, ones32};
use causeway_bpf::{Alu, Asm, Cond, Reg, Size};
use causeway_fib::{Place, Rank24Layout};

/// R2 becomes the adjacency of the address in R0, which is kept: the walk of [`causeway_fib::Rank24`], each index masked.
pub fn adjacency(asm: &mut Asm, memory: &SharedRegion, layout: &Rank24Layout) {
    let element =
        |asm: &mut Asm, part, size, index, base, to| element(asm, memory, part, (size, index), base, to);
    // R3: the word of the /19; R5: its leaves up to the /24.
    asm.mov(Reg::R2, Reg::R0);
    asm.alu(Alu::Rsh, Reg::R2, 13);
    element(asm, layout.words, Size::D, Reg::R2, Reg::R1, Reg::R3);
    asm.mov(Reg::R2, Reg::R0);
    asm.alu(Alu::Rsh, Reg::R2, 8);
    asm.alu(Alu::And, Reg::R2, 31);
    asm.mov(Reg::R4, 31);
    asm.alu(Alu::Sub, Reg::R4, Reg::R2);
    asm.mov32(Reg::R5, Reg::R3);
    asm.alu32(Alu::Lsh, Reg::R5, Reg::R4);
    ones32(asm, Reg::R5, Reg::R1);
    asm.alu(Alu::Rsh, Reg::R3, 32);
    asm.alu32(Alu::Add, Reg::R3, Reg::R5);
    let found = asm.label();
    asm.mov(Reg::R4, Reg::R3);
    element(asm, layout.leaves, Size::H, Reg::R4, Reg::R1, Reg::R2);
    asm.jump_if(Cond::Lt, Reg::R2, 0x8000, found);
    // The leaf goes on in a line, whose number is in two others.
    asm.alu(Alu::And, Reg::R2, 0x7fff);
    asm.alu32(Alu::Add, Reg::R3, Reg::R2);
    asm.mov(Reg::R4, Reg::R3);
    element(asm, layout.leaves, Size::H, Reg::R4, Reg::R1, Reg::R5);
    asm.alu32(Alu::Add, Reg::R3, 1);
    element(asm, layout.leaves, Size::H, Reg::R3, Reg::R1, Reg::R2);
    asm.alu(Alu::Lsh, Reg::R2, 16);
    asm.alu(Alu::Or, Reg::R5, Reg::R2);
    // R3: the line's bits for a quarter of the /24; R4: its head.
    asm.alu32(Alu::Lsh, Reg::R5, 3);
    asm.mov(Reg::R2, Reg::R0);
    asm.alu(Alu::Rsh, Reg::R2, 6);
    asm.alu(Alu::And, Reg::R2, 3);
    asm.mov(Reg::R4, Reg::R2);
    asm.alu32(Alu::Add, Reg::R4, Reg::R5);
    element(asm, layout.nodes, Size::D, Reg::R4, Reg::R1, Reg::R3);
    asm.alu32(Alu::Add, Reg::R5, 4);
    element(asm, layout.nodes, Size::D, Reg::R5, Reg::R1, Reg::R4);
    // R2: the leaves before the quarter; R3: those in it.
    asm.alu(Alu::Lsh, Reg::R2, 3);
    asm.alu(Alu::Add, Reg::R2, 32);
    asm.mov(Reg::R1, Reg::R4);
    asm.alu(Alu::Rsh, Reg::R1, Reg::R2);
    asm.alu(Alu::And, Reg::R1, 255);
    asm.alu32(Alu::Add, Reg::R4, Reg::R1);
    asm.mov(Reg::R2, Reg::R0);
    asm.alu(Alu::And, Reg::R2, 63);
    asm.mov(Reg::R5, 63);
    asm.alu(Alu::Sub, Reg::R5, Reg::R2);
    asm.alu(Alu::Lsh, Reg::R3, Reg::R5);
    ones(asm, Reg::R3, [Reg::R1, Reg::R2]);
    asm.alu32(Alu::Add, Reg::R4, Reg::R3);
    let quarters = Place { mask: 4 * layout.nodes.mask + 3, ..layout.nodes };
    element(asm, quarters, Size::H, Reg::R4, Reg::R1, Reg::R2);
    asm.bind(found);
}
