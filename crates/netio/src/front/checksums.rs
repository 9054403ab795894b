//! Checksums that a sender has left to hardware which a virtual port does not have.

use super::code::{DATA, END, Parts, TCP, Version, wire16};
use super::{Reason, flag};
use causeway_bpf::{Alu, Asm, Cond, Reg, Size};

const UDP: i32 = 17;

/// UDP ports of tunnels whose inner checksums a sender may leave to hardware: VXLAN (RFC 7348) and the number that Linux
/// had before it, Geneve (RFC 8926), GRE in UDP (RFC 8086).
const TUNNELS: [u16; 5] = [4789, 8472, 6081, 4754, 4755];

impl Parts<'_> {
    /// On a port with partial checksums, leaves what may carry one to the kernel, which knows.
    ///
    /// A sender that counts on hardware to finish a checksum leaves the folded sum of the pseudo-header in its place, not
    /// complemented (RFC 1071 has the arithmetic). One finished checksum in 65 536 looks the same and is left to the
    /// kernel as well.
    pub fn guard(&mut self, a: &mut Asm, version: &Version) {
        let (tcp, udp, sum, fine) = (a.label(), a.label(), a.label(), a.label());
        let malformed = self.pass(a, Reason::Malformed);
        let partial = self.pass(a, Reason::PartialChecksum);
        let transport = self.pass(a, Reason::Transport);
        self.flag(a, flag::PARTIAL_CHECKSUMS);
        a.jump_if(Cond::Eq, Reg::R2, 0, fine);
        (version.skip_fragment)(a, version.ip, fine);
        a.load(Size::B, Reg::R2, DATA, version.protocol);
        a.jump_if(Cond::Eq, Reg::R2, version.icmp, fine);
        a.jump_if(Cond::Eq, Reg::R2, TCP, tcp);
        a.jump_if(Cond::Eq, Reg::R2, UDP, udp);
        a.jump(transport);
        let at = version.transport;
        a.bind(tcp);
        a.xdp_require(DATA, END, i32::from(at) + 18, Reg::R3, malformed);
        a.load(Size::H, Reg::R5, DATA, at + 16);
        a.jump(sum);
        a.bind(udp);
        a.xdp_require(DATA, END, i32::from(at) + 8, Reg::R3, malformed);
        a.load(Size::H, Reg::R5, DATA, at + 2);
        for port in TUNNELS {
            a.jump_if(Cond::Eq, Reg::R5, wire16(port), transport);
        }
        a.load(Size::H, Reg::R5, DATA, at + 6);
        a.bind(sum);
        // R2 is the protocol, R5 the checksum; R3 becomes the sum.
        a.mov(Reg::R3, Reg::R2);
        a.load(Size::H, Reg::R2, DATA, version.length);
        a.to_be(Reg::R2, 16);
        a.alu(Alu::Sub, Reg::R2, version.header_in_length);
        a.alu(Alu::Add, Reg::R3, Reg::R2);
        a.to_be(Reg::R3, 16);
        for word in 0..version.address_words {
            a.load(Size::W, Reg::R2, DATA, version.addresses + word * 4);
            a.alu(Alu::Add, Reg::R3, Reg::R2);
        }
        for (bits, mask) in [(32, -1), (16, 0xffff), (16, 0xffff), (16, 0xffff)] {
            fold(a, bits, mask);
        }
        a.jump_if(Cond::Eq, Reg::R3, Reg::R5, partial);
        a.bind(fine);
    }
}

/// `R3 = (R3 & mask) + (R3 >> bits)`; a mask of -1 is one of 32 bits. Destroys `R4`.
fn fold(a: &mut Asm, bits: i32, mask: i32) {
    a.mov(Reg::R4, Reg::R3);
    a.alu(Alu::Rsh, Reg::R4, bits);
    // 32-bit operations clear the upper half, which is what a mask of 32 bits does.
    a.alu32(Alu::And, Reg::R3, mask);
    a.alu(Alu::Add, Reg::R3, Reg::R4);
}
