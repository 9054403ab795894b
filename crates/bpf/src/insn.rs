//! Instructions, registers, operations and helpers (RFC 9669, sections 2 to 5).

/// A register. Helpers take arguments in `R1`–`R5` and destroy them, return in `R0` and keep `R6`–`R9`; `R10` is the
/// read-only frame pointer. A program starts with its context in `R1`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// Width of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Size {
    /// 1 byte.
    B = 0x10,
    /// 2 bytes.
    H = 0x08,
    /// 4 bytes.
    W = 0x00,
    /// 8 bytes.
    D = 0x18,
}

/// An arithmetic operation, `dst = dst op operand`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    /// Unsigned; division by zero gives zero.
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    Lsh = 0x60,
    Rsh = 0x70,
    /// Unsigned; modulo zero leaves `dst`.
    Mod = 0x90,
    Xor = 0xa0,
    Mov = 0xb0,
    /// Arithmetic shift right.
    Arsh = 0xc0,
}

/// A condition of a jump, `dst cond operand`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cond {
    Eq = 0x10,
    /// Unsigned, as `Ge`, `Lt` and `Le`.
    Gt = 0x20,
    Ge = 0x30,
    /// `dst & operand != 0`.
    Set = 0x40,
    Ne = 0x50,
    /// Signed, as `Sge`, `Slt` and `Sle`.
    Sgt = 0x60,
    Sge = 0x70,
    Lt = 0xa0,
    Le = 0xb0,
    Slt = 0xc0,
    Sle = 0xd0,
}

/// A kernel function that programs may call; the number is part of the kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Helper {
    /// `(map, &key) -> &value or 0`
    MapLookup = 1,
    /// `(map, &key, &value, flags) -> 0 or -errno`
    MapUpdate = 2,
    /// `(map, &key) -> 0 or -errno`
    MapDelete = 3,
    /// `() -> nanoseconds since boot`
    KtimeGetNs = 5,
    /// `() -> random u32`
    PrandomU32 = 7,
    /// `() -> CPU number`
    SmpProcessorId = 8,
    /// `(ctx, program array, index) -> goes on in that program, or returns if there is none`
    TailCall = 12,
    /// `() -> process in the upper 32 bits, thread in the lower`
    GetCurrentPidTgid = 14,
    /// `(ctx) -> 0 or -errno`; invalidates packet pointers
    SkbVlanPop = 19,
    /// `(ifindex, flags) -> action`
    Redirect = 23,
    /// `(ctx, len, flags) -> 0 or -errno`; invalidates packet pointers
    SkbChangeTail = 38,
    /// `(ctx, len) -> 0 or -errno`: so many bytes can be read directly; invalidates packet pointers
    SkbPullData = 39,
    /// `(ctx, sum) -> sum or -errno`: adds to the sum over the packet, if the device has made one
    CsumUpdate = 40,
    /// `(&from, from_size, &to, to_size, seed) -> checksum or -errno`
    CsumDiff = 28,
    /// `(ctx, more, flags) -> 0 or -errno`: so many zeros more in front, which are the link-layer header then; invalidates packet
    /// pointers
    SkbChangeHead = 43,
    /// `(ctx, delta) -> 0 or -errno`; invalidates packet pointers
    XdpAdjustHead = 44,
    /// `(map, key, flags) -> action`; the low bits of `flags` are the action when the key is absent
    RedirectMap = 51,
    /// `(ctx, delta) -> 0 or -errno`; invalidates packet pointers
    XdpAdjustMeta = 54,
    /// `(ctx, delta) -> 0 or -errno`; invalidates packet pointers
    XdpAdjustTail = 65,
    /// `(ctx, &params, size, flags) -> result`
    FibLookup = 69,
    /// `(&to, size, address) -> 0 or -errno`; reads the kernel's memory
    ProbeReadKernel = 113,
    /// `() -> nanoseconds since boot, as of the last tick`; the clock of `CLOCK_MONOTONIC_COARSE`
    KtimeGetCoarseNs = 160,
    /// `(ctx) -> bytes of the frame, all fragments`
    XdpGetBuffLen = 188,
    /// `(ctx, offset, &to, size) -> 0 or -errno`
    XdpLoadBytes = 189,
    /// `(ctx, offset, &from, size) -> 0 or -errno`
    XdpStoreBytes = 190,
    /// `() -> nanoseconds since the epoch, with leap seconds`; the clock of `CLOCK_TAI` (Linux 6.1)
    KtimeGetTaiNs = 208,
}

/// The second operand of an instruction: a register or a sign-extended constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// A constant, sign-extended to 64 bits by 64-bit operations.
    Imm(i32),
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Operand {
        Operand::Reg(reg)
    }
}

impl From<i32> for Operand {
    fn from(imm: i32) -> Operand {
        Operand::Imm(imm)
    }
}

/// One encoded instruction slot, 8 bytes as the kernel reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Insn {
    /// Class, operation and source.
    pub opcode: u8,
    /// Destination in the low nibble, source in the high one.
    pub regs: u8,
    /// Offset of a memory access in bytes, or of a jump in slots.
    pub offset: i16,
    /// Constant.
    pub imm: i32,
}

impl Insn {
    /// The slot in the byte order of this machine, as the kernel and interpreters take it.
    pub fn to_bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[0] = self.opcode;
        bytes[1] = self.regs;
        bytes[2..4].copy_from_slice(&self.offset.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.imm.to_ne_bytes());
        bytes
    }
}

/// Instruction classes and modifiers.
pub(super) mod op {
    pub const LD: u8 = 0x00;
    pub const LDX: u8 = 0x01;
    pub const ST: u8 = 0x02;
    pub const STX: u8 = 0x03;
    pub const ALU32: u8 = 0x04;
    pub const JMP: u8 = 0x05;
    pub const JMP32: u8 = 0x06;
    pub const ALU64: u8 = 0x07;
    pub const SRC_REG: u8 = 0x08;
    pub const MODE_IMM: u8 = 0x00;
    pub const MODE_MEM: u8 = 0x60;
    pub const MODE_ATOMIC: u8 = 0xc0;
    pub const SIZE_D: u8 = 0x18;
    pub const END: u8 = 0xd0;
    pub const TO_BE: u8 = 0x08;
    pub const NEG: u8 = 0x80;
    pub const JA: u8 = 0x00;
    pub const CALL: u8 = 0x80;
    pub const EXIT: u8 = 0x90;
    /// Constant of an atomic operation: an exchange, which loads what was there.
    pub const XCHG: i32 = 0xe1;
    /// Source register of a 64-bit load whose constant is a map's descriptor.
    pub const PSEUDO_MAP_FD: u8 = 1;
    /// Likewise, for the address of an array map's first value plus an offset.
    pub const PSEUDO_MAP_VALUE: u8 = 2;
}
