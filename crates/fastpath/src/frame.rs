//! The stack of a compiled graph, and what is done before the first element.

use crate::state::{Header, Ip, State};
use crate::table;
use crate::write::{DATA, DATA_END};
use causeway_bpf::{Alu, Asm, Cond, Helper, Label, Reg, Size, Slot, sk_buff};
use causeway_engine::ir::{ANNOTATIONS, Field, Op};

/// Spill slots of all elements together: each uses the same ones.
pub(crate) const SPILLS: usize = 40;

/// Where things are on the stack.
pub(crate) struct Frame {
    /// The context.
    pub context: Slot,
    /// The position where the data ends, if that is not where the frame ends.
    pub end: Slot,
    marks: [Slot; 3],
    /// How the packet was addressed.
    pub packet_type: Slot,
    /// Offset of this processor's counters.
    pub counters: Slot,
    /// A key that is looked up, and with one of two words what is found of it; or a number of bytes.
    pub key: Slot,
    pub annotations: Slot,
    /// Of a super-packet how many parts it has, and how many bytes of headers each.
    pub parts: Slot,
    pub headers: Slot,
    spills: Vec<Slot>,
}

impl Frame {
    pub fn new(asm: &mut Asm, spills: usize) -> Frame {
        let [context, end, packet_type, counters] = std::array::from_fn(|_| asm.slot(8));
        Frame {
            context,
            end,
            packet_type,
            counters,
            marks: std::array::from_fn(|_| asm.slot(8)),
            key: asm.slot(table::KEY),
            annotations: asm.slot(ANNOTATIONS as i16),
            parts: asm.slot(8),
            headers: asm.slot(8),
            spills: (0..spills.min(SPILLS)).map(|_| asm.slot(8)).collect(),
        }
    }

    pub fn mark(&self, header: Header) -> Slot {
        self.marks[header as usize]
    }

    /// A spill slot; there are [`SPILLS`], which is checked before.
    pub fn spill(&self, slot: usize) -> Slot {
        self.spills.get(slot).copied().unwrap_or(self.key)
    }
}

/// What the elements need that is done once.
#[derive(Default)]
pub(crate) struct Needs {
    pub packet_type: bool,
    /// Whether bytes of packets are written.
    pub writes: bool,
    /// Eights of annotation bytes, a bit each.
    pub annotations: u8,
    pub spills: usize,
}

impl Needs {
    /// Adds those of an operation.
    pub fn note(&mut self, op: &Op) {
        let field = match op {
            Op::Get { field, .. } | Op::Put { field, .. } => field,
            Op::Store { .. } => {
                self.writes = true;
                return;
            }
            _ => return,
        };
        match *field {
            Field::PacketType => self.packet_type = true,
            Field::Anno(at, bytes) => {
                (at / 8..=(at + bytes.max(1) - 1) / 8).for_each(|eight| self.annotations |= 1 << eight);
            }
            _ => {}
        }
    }

    /// The eights, by offset.
    pub fn eights(&self) -> impl Iterator<Item = i16> + use<> {
        let annotations = self.annotations;
        (0..8).filter(move |eight| annotations & 1 << eight != 0).map(|eight| 8 * eight)
    }
}

/// Loads a context of XDP, which is in R1, and what else is needed.
pub(crate) fn enter_xdp(asm: &mut Asm, frame: &Frame, needs: &Needs, address: [u8; 6]) {
    asm.store_slot(Size::D, frame.context, 0, Reg::R1);
    asm.xdp_data(Reg::R1, DATA, DATA_END);
    if needs.packet_type {
        packet_type(asm, frame, address);
    }
    enter(asm, frame, needs);
}

/// The same of tcx. What the packet has beyond its linear part cannot be read.
pub(crate) fn enter_tcx(asm: &mut Asm, frame: &Frame, needs: &Needs) {
    asm.store_slot(Size::D, frame.context, 0, Reg::R1);
    asm.load(Size::W, DATA, Reg::R1, sk_buff::DATA);
    asm.load(Size::W, DATA_END, Reg::R1, sk_buff::DATA_END);
    asm.load(Size::W, Reg::R0, Reg::R1, sk_buff::LEN);
    asm.store_slot(Size::D, frame.end, 0, Reg::R0);
    if needs.packet_type {
        asm.load(Size::W, Reg::R0, Reg::R1, sk_buff::PKT_TYPE);
        asm.store_slot(Size::D, frame.packet_type, 0, Reg::R0);
    }
    enter(asm, frame, needs);
}

/// Of packets of the stack, sifts what is not what a frame of the same bytes would be. Super-packets go on at the label of their
/// version, if they are as [`crate::parts`] has them, and others at `up`; so do those with a sum over them that a device has
/// made, if programs write to packets.
pub(crate) fn sift(asm: &mut Asm, frame: &Frame, needs: &Needs, up: Label, whole: [(Ip, Label); 2]) {
    let one = asm.label();
    if needs.writes {
        // The sum as it is, or an error if there is none.
        asm.load_slot(Size::D, Reg::R1, frame.context, 0);
        asm.mov(Reg::R2, 0);
        asm.call(Helper::CsumUpdate);
        asm.jump_if(Cond::Sge, Reg::R0, 0, up);
    }
    asm.load_slot(Size::D, Reg::R1, frame.context, 0);
    asm.load(Size::W, Reg::R1, Reg::R1, sk_buff::GSO_SIZE);
    asm.jump_if(Cond::Eq, Reg::R1, 0, one);
    asm.xdp_require(DATA, DATA_END, Ip::V4.headers(), Reg::R0, up);
    asm.load(Size::H, Reg::R0, DATA, 12);
    asm.to_be(Reg::R0, 16);
    for (ip, label) in whole {
        let other = asm.label();
        asm.jump_if(Cond::Ne, Reg::R0, ip.ethertype(), other);
        if ip == Ip::V6 {
            asm.xdp_require(DATA, DATA_END, ip.headers(), Reg::R0, up);
        }
        header(asm, frame, ip, up);
        // The data offset of TCP, in units of four octets (RFC 9293, section 3.1).
        asm.load(Size::B, Reg::R0, DATA, (ip.headers() - 8) as i16);
        asm.alu(Alu::Rsh, Reg::R0, 4);
        asm.alu(Alu::Lsh, Reg::R0, 2);
        asm.alu(Alu::Add, Reg::R0, ip.headers() - 20);
        asm.store_slot(Size::D, frame.headers, 0, Reg::R0);
        asm.load_slot(Size::D, Reg::R2, frame.end, 0);
        asm.jump_if(Cond::Le, Reg::R2, Reg::R0, up);
        asm.alu(Alu::Sub, Reg::R2, Reg::R0);
        asm.alu(Alu::Add, Reg::R2, Reg::R1);
        asm.alu(Alu::Sub, Reg::R2, 1);
        asm.alu(Alu::Div, Reg::R2, Reg::R1);
        asm.store_slot(Size::D, frame.parts, 0, Reg::R2);
        asm.jump(label);
        asm.bind(other);
    }
    asm.jump(up);
    asm.bind(one);
}

/// Goes on at `up` unless the header is one of TCP's packets without options, its length is the packet's, and its sum right.
fn header(asm: &mut Asm, frame: &Frame, ip: Ip, up: Label) {
    const TCP: i32 = 6;
    let ((length, less), protocol) = (ip.length(), if ip == Ip::V4 { 23 } else { 20 });
    asm.load(Size::B, Reg::R0, DATA, protocol);
    asm.jump_if(Cond::Ne, Reg::R0, TCP, up);
    asm.load(Size::H, Reg::R0, DATA, length as i16);
    asm.to_be(Reg::R0, 16);
    asm.alu(Alu::Add, Reg::R0, less as i32);
    asm.load_slot(Size::D, Reg::R2, frame.end, 0);
    asm.jump_if(Cond::Ne, Reg::R0, Reg::R2, up);
    if ip == Ip::V6 {
        return;
    }
    asm.load(Size::B, Reg::R0, DATA, 14);
    asm.jump_if(Cond::Ne, Reg::R0, 0x45, up);
    // No fragment.
    asm.load(Size::H, Reg::R0, DATA, 20);
    asm.to_be(Reg::R0, 16);
    asm.jump_if(Cond::Set, Reg::R0, 0x3fff, up);
    asm.mov(Reg::R0, 0);
    for word in (14..34).step_by(4) {
        asm.load(Size::W, Reg::R2, DATA, word);
        asm.alu(Alu::Add, Reg::R0, Reg::R2);
    }
    // Five words of 32 bits: none is left above 16 bits.
    for (bits, mask) in [(32, -1), (16, 0xffff), (16, 0xffff), (16, 0xffff)] {
        asm.mov(Reg::R2, Reg::R0);
        asm.alu(Alu::Rsh, Reg::R2, bits);
        // Operations of 32 bits clear what is above.
        asm.alu32(Alu::And, Reg::R0, mask);
        asm.alu(Alu::Add, Reg::R0, Reg::R2);
    }
    asm.jump_if(Cond::Ne, Reg::R0, 0xffff, up);
}

/// Of a super-packet, R0 was to be counted for one packet, or if `less` says so the length of the frame less that was: it becomes
/// what is counted for its parts. Destroys R1 and R2.
pub(crate) fn of_parts(asm: &mut Asm, frame: &Frame, less: Option<i64>) {
    asm.load_slot(Size::D, Reg::R1, frame.parts, 0);
    let Some(less) = less else {
        return asm.alu(Alu::Mul, Reg::R0, Reg::R1);
    };
    // Each part but the first has headers besides.
    asm.load_slot(Size::D, Reg::R2, frame.headers, 0);
    asm.alu(Alu::Sub, Reg::R2, less as i32);
    asm.alu(Alu::Sub, Reg::R1, 1);
    asm.alu(Alu::Mul, Reg::R1, Reg::R2);
    asm.alu(Alu::Add, Reg::R0, Reg::R1);
}

/// R1 becomes how many bytes the longest part of a super-packet has, with its headers. Destroys R2.
pub(crate) fn longest_part(asm: &mut Asm, frame: &Frame) {
    asm.load_slot(Size::D, Reg::R1, frame.context, 0);
    asm.load(Size::W, Reg::R1, Reg::R1, sk_buff::GSO_SIZE);
    asm.load_slot(Size::D, Reg::R2, frame.headers, 0);
    asm.alu(Alu::Add, Reg::R1, Reg::R2);
}

fn enter(asm: &mut Asm, frame: &Frame, needs: &Needs) {
    for eight in needs.eights() {
        asm.store_slot(Size::D, frame.annotations, eight, 0);
    }
}

/// Where this processor's counters are: processors are numbered below a power of two.
pub(crate) fn find_counters(asm: &mut Asm, frame: &Frame, processors: u32, stride: u32) {
    asm.call(Helper::SmpProcessorId);
    asm.alu(Alu::And, Reg::R0, processors as i32 - 1);
    asm.alu(Alu::Lsh, Reg::R0, stride.trailing_zeros() as i32);
    asm.store_slot(Size::D, frame.counters, 0, Reg::R0);
}

/// R0 becomes the length of a packet in this state.
pub(crate) fn length(asm: &mut Asm, frame: &Frame, state: &State) {
    if state.cut {
        asm.load_slot(Size::D, Reg::R0, frame.end, 0);
    } else {
        asm.mov(Reg::R0, DATA_END);
        asm.alu(Alu::Sub, Reg::R0, DATA);
    }
    if state.data != 0 {
        asm.alu(Alu::Sub, Reg::R0, state.data);
    }
}

/// Of a packet of the stack, of the length that `frame.key` has: R0 becomes how many frames more than one it is to be cut into,
/// R3 the bytes that their headers have. Goes on at `whole` if it is not to be cut.
pub(crate) fn cut_up(asm: &mut Asm, frame: &Frame, whole: Label) {
    const ETHERNET: i32 = 14;
    asm.load_slot(Size::D, Reg::R1, frame.context, 0);
    // From the IP header on ([`crate::Ways::Packets`]), and without headers.
    asm.load(Size::W, Reg::R3, Reg::R1, sk_buff::CB);
    asm.jump_if(Cond::Eq, Reg::R3, 0, whole);
    asm.load(Size::W, Reg::R2, Reg::R1, sk_buff::GSO_SIZE);
    asm.jump_if(Cond::Eq, Reg::R2, 0, whole);
    asm.alu(Alu::Sub, Reg::R3, Reg::R2);
    asm.alu(Alu::Add, Reg::R3, ETHERNET);
    asm.load_slot(Size::D, Reg::R0, frame.key, 0);
    asm.jump_if(Cond::Le, Reg::R0, Reg::R3, whole);
    // Each full one but the last, which may be full too.
    asm.alu(Alu::Sub, Reg::R0, Reg::R3);
    asm.alu(Alu::Sub, Reg::R0, 1);
    asm.alu(Alu::Div, Reg::R0, Reg::R2);
    asm.alu(Alu::Mul, Reg::R3, Reg::R0);
}

/// How a frame is addressed that came in by the interface of an address, numbered as the kernel does.
fn packet_type(asm: &mut Asm, frame: &Frame, address: [u8; 6]) {
    let [host, broadcast, multicast, other] = [0, 1, 2, 3];
    let done = asm.label();
    // Frames that are no frames are nobody's.
    asm.store_slot(Size::D, frame.packet_type, 0, other);
    asm.xdp_require(DATA, DATA_END, 6, Reg::R0, done);
    let (not_ours, not_all, one) = (asm.label(), asm.label(), asm.label());
    let first = i32::from(u16::from_ne_bytes([address[0], address[1]]));
    let rest = i32::from_ne_bytes([address[2], address[3], address[4], address[5]]);
    asm.load(Size::H, Reg::R0, DATA, 0);
    asm.load(Size::W, Reg::R1, DATA, 2);
    asm.jump_if(Cond::Ne, Reg::R0, first, not_ours);
    asm.jump_if32(Cond::Ne, Reg::R1, rest, not_ours);
    asm.store_slot(Size::D, frame.packet_type, 0, host);
    asm.jump(done);
    asm.bind(not_ours);
    asm.load(Size::B, Reg::R2, DATA, 0);
    asm.alu(Alu::And, Reg::R2, 1);
    asm.jump_if(Cond::Eq, Reg::R2, 0, one);
    asm.jump_if(Cond::Ne, Reg::R0, 0xffff, not_all);
    asm.jump_if32(Cond::Ne, Reg::R1, -1, not_all);
    asm.store_slot(Size::D, frame.packet_type, 0, broadcast);
    asm.jump(done);
    asm.bind(not_all);
    asm.store_slot(Size::D, frame.packet_type, 0, multicast);
    asm.jump(done);
    asm.bind(one);
    asm.bind(done);
}
