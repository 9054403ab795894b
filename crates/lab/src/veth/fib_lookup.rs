//! Forwarding by `bpf_fib_lookup`: the shortest program that does what a router must, by the kernel's own tables.
//!
//! What it is not sure of it passes to the kernel: other than IP, options, a lifetime that ends, what the kernel would not
//! forward, and neighbours that are not known.

use causeway_bpf::{
    Alu, Asm, Code, Cond, Error, Helper, Label, Program, ProgramKind, Reg, Size, Slot, action,
};

/// The frame, from its first byte.
const DATA: Reg = Reg::R7;
const END: Reg = Reg::R8;
const CONTEXT: Reg = Reg::R6;
/// Of `struct xdp_md` (linux/bpf.h): the interface that the frame came in by.
const INGRESS: i16 = 12;

/// Offsets in `struct bpf_fib_lookup` (linux/bpf.h).
mod asked {
    pub const FAMILY: i16 = 0;
    pub const PROTOCOL: i16 = 1;
    pub const LENGTH: i16 = 6;
    pub const INTERFACE: i16 = 8;
    pub const TOS: i16 = 12;
    pub const SOURCE: i16 = 16;
    pub const DESTINATION: i16 = 32;
    pub const SOURCE_MAC: i16 = 52;
    pub const DESTINATION_MAC: i16 = 58;
    pub const BYTES: i16 = 64;
}

/// The program, for XDP.
///
/// # Errors
/// What bpf(2) says.
pub fn program() -> Result<Program, Error> {
    Program::load(ProgramKind::Xdp, "fib-lookup", &code()?)
}

fn code() -> Result<Code, Error> {
    let mut a = Asm::new();
    let (question, pass, v6, send) = (a.slot(asked::BYTES), a.label(), a.label(), a.label());
    a.mov(CONTEXT, Reg::R1);
    a.xdp_data(CONTEXT, DATA, END);
    a.xdp_require(DATA, END, 34, Reg::R1, pass);
    for word in 0..asked::BYTES / 8 {
        a.store_slot(Size::D, question, 8 * word, 0);
    }
    a.load(Size::W, Reg::R1, CONTEXT, INGRESS);
    a.store_slot(Size::W, question, asked::INTERFACE, Reg::R1);
    a.load(Size::H, Reg::R1, DATA, 12);
    a.to_be(Reg::R1, 16);
    a.jump_if(Cond::Eq, Reg::R1, 0x86dd, v6);
    a.jump_if(Cond::Ne, Reg::R1, 0x0800, pass);
    ask_v4(&mut a, question, pass);
    decrement_v4(&mut a);
    a.jump(send);
    a.bind(v6);
    ask_v6(&mut a, question, pass);
    a.load(Size::B, Reg::R1, DATA, 21);
    a.alu(Alu::Sub, Reg::R1, 1);
    a.store(Size::B, DATA, 21, Reg::R1);
    a.bind(send);
    for (size, to, from) in [
        (Size::H, 0, asked::DESTINATION_MAC),
        (Size::W, 2, asked::DESTINATION_MAC + 2),
        (Size::W, 6, asked::SOURCE_MAC),
        (Size::H, 10, asked::SOURCE_MAC + 4),
    ] {
        a.load_slot(size, Reg::R1, question, from);
        a.store(size, DATA, to, Reg::R1);
    }
    a.load_slot(Size::W, Reg::R1, question, asked::INTERFACE);
    a.mov(Reg::R2, 0);
    a.call(Helper::Redirect);
    a.exit();
    a.bind(pass);
    a.mov(Reg::R0, action::XDP_PASS);
    a.exit();
    a.finish()
}

fn ask_v4(a: &mut Asm, question: Slot, pass: Label) {
    // A header without options.
    a.load(Size::B, Reg::R1, DATA, 14);
    a.jump_if(Cond::Ne, Reg::R1, 0x45, pass);
    lives_on(a, 22, pass);
    copy(a, question, Size::B, 15, asked::TOS);
    copy(a, question, Size::B, 23, asked::PROTOCOL);
    copy(a, question, Size::W, 26, asked::SOURCE);
    copy(a, question, Size::W, 30, asked::DESTINATION);
    ask(a, question, (2, 16, 0), pass);
}

fn ask_v6(a: &mut Asm, question: Slot, pass: Label) {
    a.xdp_require(DATA, END, 54, Reg::R1, pass);
    lives_on(a, 21, pass);
    // Traffic class and flow label, without the version.
    a.load(Size::W, Reg::R1, DATA, 14);
    a.alu(Alu::And, Reg::R1, 0x0fff_ffff_u32.to_be() as i32);
    a.store_slot(Size::W, question, asked::TOS, Reg::R1);
    copy(a, question, Size::B, 20, asked::PROTOCOL);
    for half in [0, 8] {
        copy(a, question, Size::D, 22 + half, asked::SOURCE + half);
        copy(a, question, Size::D, 38 + half, asked::DESTINATION + half);
    }
    ask(a, question, (10, 18, 40), pass);
}

/// The kernel is to have what must not be forwarded any further, by the lifetime at `at`.
fn lives_on(a: &mut Asm, at: i16, pass: Label) {
    a.load(Size::B, Reg::R1, DATA, at);
    a.jump_if(Cond::Le, Reg::R1, 1, pass);
}

fn copy(a: &mut Asm, question: Slot, size: Size, from: i16, to: i16) {
    a.load(size, Reg::R1, DATA, from);
    a.store_slot(size, question, to, Reg::R1);
}

/// Asks of a family, whose packets have their length at `at` of the frame, less `more`.
fn ask(a: &mut Asm, question: Slot, (family, at, more): (i32, i16, i32), pass: Label) {
    a.store_slot(Size::B, question, asked::FAMILY, family);
    a.load(Size::H, Reg::R1, DATA, at);
    a.to_be(Reg::R1, 16);
    a.alu(Alu::Add, Reg::R1, more);
    a.store_slot(Size::H, question, asked::LENGTH, Reg::R1);
    a.mov(Reg::R1, CONTEXT);
    a.slot_address(Reg::R2, question);
    a.mov(Reg::R3, i32::from(asked::BYTES));
    a.mov(Reg::R4, 0);
    a.call(Helper::FibLookup);
    a.jump_if(Cond::Ne, Reg::R0, 0, pass);
}

/// One less to live, and a checksum that knows it (RFC 1624, for a field that goes down by one).
fn decrement_v4(a: &mut Asm) {
    let folded = a.label();
    a.load(Size::H, Reg::R1, DATA, 24);
    a.alu(Alu::Add, Reg::R1, i32::from(0x0100_u16.to_be()));
    a.jump_if(Cond::Lt, Reg::R1, 0xffff, folded);
    a.alu(Alu::Add, Reg::R1, 1);
    a.bind(folded);
    a.store(Size::H, DATA, 24, Reg::R1);
    a.load(Size::B, Reg::R1, DATA, 22);
    a.alu(Alu::Sub, Reg::R1, 1);
    a.store(Size::B, DATA, 22, Reg::R1);
}
