//! What a packet of the stack has that a frame has not.

use super::Reason;
use super::code::{CTX, DATA, END, Parts, TCP, Version, wire16};
use causeway_bpf::{Alu, Asm, Cond, Helper, Label, Reg, Size, sk_buff};

/// Bytes that programs look at: Ethernet, IPv6 and TCP headers without options.
const HEADERS: i32 = 14 + 40 + 20;
/// The longest packet that says its length in an IPv4 header, with its Ethernet header. Longer ones exist between the parts
/// of one machine.
const LONGEST: i32 = 14 + 65_535;
/// The longest packet that an Ethernet header can be put in front of, if it is not to be cut into others: the kernel makes none
/// of more than 16 064 bytes with it.
const LONGEST_PLAIN: i32 = 15_000;
/// The packet type of what is addressed to this host.
const TO_HOST: i32 = 0;

impl Parts<'_> {
    /// Notes the packet's length, and makes sure that its headers can be read.
    pub fn packet(&mut self, a: &mut Asm) {
        let vlan = self.pass(a, Reason::Vlan);
        let too_long = self.pass(a, Reason::TooLong);
        a.load(Size::W, Reg::R2, CTX, sk_buff::VLAN_PRESENT);
        a.jump_if(Cond::Ne, Reg::R2, 0, vlan);
        a.load(Size::W, Reg::R2, CTX, sk_buff::LEN);
        a.store_slot(Size::D, self.length, 0, Reg::R2);
        a.jump_if(Cond::Gt, Reg::R2, LONGEST, too_long);
        a.skb_data(CTX, DATA, END);
        let readable = a.label();
        a.mov(Reg::R3, DATA);
        a.alu(Alu::Add, Reg::R3, HEADERS);
        a.jump_if(Cond::Le, Reg::R3, END, readable);
        a.mov(Reg::R3, END);
        a.alu(Alu::Sub, Reg::R3, DATA);
        a.jump_if(Cond::Eq, Reg::R2, Reg::R3, readable);
        let short = a.label();
        a.jump_if(Cond::Le, Reg::R2, HEADERS, short);
        a.mov(Reg::R2, HEADERS);
        a.bind(short);
        a.mov(Reg::R1, CTX);
        a.call(Helper::SkbPullData);
        a.skb_data(CTX, DATA, END);
        a.bind(readable);
    }

    /// Of a packet without an Ethernet header the stack knows which network protocol's it is: jumps to its part.
    pub fn plain(&mut self, a: &mut Asm, ipv4: Label, ipv6: Label) {
        let other = self.pass(a, Reason::OtherHost);
        let too_long = self.pass(a, Reason::TooLong);
        let non_ip = self.pass(a, Reason::NonIp);
        let fits = a.label();
        a.load(Size::W, Reg::R2, CTX, sk_buff::PKT_TYPE);
        a.jump_if(Cond::Ne, Reg::R2, TO_HOST, other);
        a.load(Size::W, Reg::R2, CTX, sk_buff::GSO_SIZE);
        a.jump_if(Cond::Ne, Reg::R2, 0, fits);
        a.load_slot(Size::D, Reg::R2, self.length, 0);
        a.jump_if(Cond::Gt, Reg::R2, LONGEST_PLAIN, too_long);
        a.bind(fits);
        a.load(Size::W, Reg::R2, CTX, sk_buff::PROTOCOL);
        a.jump_if(Cond::Eq, Reg::R2, wire16(0x0800), ipv4);
        a.jump_if(Cond::Eq, Reg::R2, wire16(0x86dd), ipv6);
        a.jump(non_ip);
    }

    /// Cuts the packet of R3 bytes to the R2 that it says it has, as the stack would; `headers` bytes can be read afterwards. The
    /// stack refuses to cut what it has taken for a header, of a tunnel for instance: then it is the kernel's.
    pub fn trim(&mut self, a: &mut Asm, headers: i32) {
        let given_up = self.pass(a, Reason::GivenUp);
        let malformed = self.pass(a, Reason::Malformed);
        let whole = a.label();
        a.jump_if(Cond::Eq, Reg::R2, Reg::R3, whole);
        // It would be none any more.
        a.load(Size::W, Reg::R3, CTX, sk_buff::GSO_SIZE);
        a.jump_if(Cond::Ne, Reg::R3, 0, given_up);
        a.mov(Reg::R1, CTX);
        a.mov(Reg::R3, 0);
        a.call(Helper::SkbChangeTail);
        a.jump_if(Cond::Ne, Reg::R0, 0, given_up);
        a.skb_data(CTX, DATA, END);
        a.xdp_require(DATA, END, headers, Reg::R2, malformed);
        a.bind(whole);
    }

    /// Notes for the graph's program how long the packets are that this one is to be cut into, octets from the IP header on; 0
    /// if it is not. Only of TCP it is known.
    pub fn segment(&mut self, a: &mut Asm, version: &Version) {
        let transport = self.pass(a, Reason::Transport);
        let malformed = self.pass(a, Reason::Malformed);
        let known = a.label();
        a.load(Size::W, Reg::R4, CTX, sk_buff::GSO_SIZE);
        a.jump_if(Cond::Eq, Reg::R4, 0, known);
        (version.skip_fragment)(a, version.ip, transport);
        a.load(Size::B, Reg::R2, DATA, version.protocol);
        a.jump_if(Cond::Ne, Reg::R2, TCP, transport);
        a.xdp_require(DATA, END, i32::from(version.transport) + 20, Reg::R3, malformed);
        // The data offset, in units of four octets (RFC 9293, section 3.1).
        a.load(Size::B, Reg::R2, DATA, version.transport + 12);
        a.alu(Alu::Rsh, Reg::R2, 4);
        a.alu(Alu::Lsh, Reg::R2, 2);
        a.alu(Alu::Add, Reg::R4, Reg::R2);
        a.alu(Alu::Add, Reg::R4, i32::from(version.transport - version.ip));
        a.bind(known);
        a.store(Size::W, CTX, sk_buff::CB, Reg::R4);
    }
}
