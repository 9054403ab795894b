//! BPF without a compiler: programs are emitted from Rust and loaded with bpf(2).
//!
//! - [`Asm`] assembles instructions (labels, map references, helper calls, stack slots) into a [`Code`];
//! - [`Map`] and [`MappedArray`] make maps, [`Program`] loads code and runs it on test data, [`XdpLink`], [`TcxLink`],
//!   [`RawTracepointLink`] and [`ClockLink`] hold a program where it runs;
//! - [`Types`] says where the fields of the kernel's structures are;
//! - [`GracePeriod`] waits until what programs may be looking at is looked at no more;
//! - `interp` (a feature, for tests) runs code without the kernel.
//!
//! Nothing is pinned: maps, programs and links are file descriptors, so the kernel takes all of it back when the
//! process ends, however it ends. Instruction and attribute layouts are those of the kernel's user-space interface
//! (RFC 9669 for the instruction set, `linux/bpf.h` for bpf(2)).

#![allow(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros))]

mod asm;
mod error;
mod grace;
mod insn;
#[cfg(feature = "interp")]
pub mod interp;
mod link;
mod map;
mod perf;
mod program;
mod sys;
mod types;

pub use asm::{Asm, Code, Label, Slot};
pub use error::{Error, ErrorKind, Result};
pub use grace::GracePeriod;
pub use insn::{Alu, Cond, Helper, Insn, Operand, Reg, Size};
pub use link::{RawTracepointLink, TcxLink, TcxSide, XdpLink, XdpMode, program_name, tcx_programs};
pub use map::{Map, MapKind, MappedArray, possible_cpus};
pub use perf::{Clock, ClockLink, INSTRUCTION_POINTER};
pub use program::{Program, ProgramKind, SkbContext, TestRun, XdpContext};
pub use types::Types;

/// What programs may return.
pub mod action {
    /// An error in the program: the frame is dropped and traced.
    pub const XDP_ABORTED: i32 = 0;
    /// Drop.
    pub const XDP_DROP: i32 = 1;
    /// Give the frame to the kernel's stack.
    pub const XDP_PASS: i32 = 2;
    /// Send the frame back out of the interface it came in on.
    pub const XDP_TX: i32 = 3;
    /// Do what the last redirect helper said.
    pub const XDP_REDIRECT: i32 = 4;

    /// Of a program at tcx: the next program decides, or the stack if there is none.
    pub const TCX_NEXT: i32 = -1;
    /// Of a program at tcx: drop.
    pub const TCX_DROP: i32 = 2;
    /// Of a program at tcx: do what the last redirect helper said.
    pub const TCX_REDIRECT: i32 = 7;
}

/// Offsets of the fields of the XDP context, each 32 bits wide.
pub mod xdp_md {
    /// Start of the frame.
    pub const DATA: i16 = 0;
    /// One past the end of the frame.
    pub const DATA_END: i16 = 4;
    /// Start of the metadata before the frame.
    pub const DATA_META: i16 = 8;
    /// Interface the frame came in on.
    pub const INGRESS_IFINDEX: i16 = 12;
    /// Queue the frame came in on.
    pub const RX_QUEUE_INDEX: i16 = 16;
}

/// Offsets of fields of the context of a program at tcx, each 32 bits wide.
pub mod sk_buff {
    /// Bytes of the packet, all of them.
    pub const LEN: i16 = 0;
    /// How it was addressed at the link layer: `PACKET_HOST` and so on, 0 to 3.
    pub const PKT_TYPE: i16 = 4;
    /// The Ethernet type, in network byte order.
    pub const PROTOCOL: i16 = 16;
    /// Whether the kernel keeps a VLAN tag beside the packet.
    pub const VLAN_PRESENT: i16 = 20;
    /// The first of five words that programs, one after the other, may use as they like.
    pub const CB: i16 = 48;
    /// Start of what can be read directly.
    pub const DATA: i16 = 76;
    /// One past the end of it.
    pub const DATA_END: i16 = 80;
    /// The VLAN tag that the kernel keeps beside the packet.
    pub const VLAN_TCI: i16 = 24;
    /// Interface the packet is at.
    pub const IFINDEX: i16 = 40;
    /// Bytes of payload in each packet that this one is to be cut into; 0 if it is not.
    pub const GSO_SIZE: i16 = 176;
}
