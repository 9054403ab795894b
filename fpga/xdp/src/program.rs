//! The compiler: a rule table and a card's number to the instructions of its XDP program.
//!
//! The checks are the golden model's, in its order ([`causeway_nic_driver::golden::process`]). Fields are compared
//! as they lie in the frame, against constants in network byte order. Routes are tried one after another, the lowest
//! first; behind each match follows what happens to a hit.

use crate::counters::{self, forwarded};
use crate::error::Result;
use causeway_bpf::{Alu, Asm, Code, Cond, Helper, Label, Reg, Size, Slot, action};
use causeway_nic_driver::{ClassRule, Mac, Route, RuleError, RuleTable, Target};
use std::os::fd::BorrowedFd;

/// The maps that a program uses.
#[derive(Clone, Copy, Debug)]
pub struct Maps<'a> {
    /// Device map: the interface of each card.
    pub ports: BorrowedFd<'a>,
    /// This card's [`counters::Counters`].
    pub counters: BorrowedFd<'a>,
}

/// The program that does with a frame what card `nic` of the router does.
///
/// # Errors
/// [`Error::Rules`](crate::Error::Rules) for a table that fails its checks or lacks the card.
pub fn assemble(table: &RuleTable, nic: u8, maps: Maps<'_>) -> Result<Code> {
    table.check()?;
    let mac = *table.nics.get(usize::from(nic)).ok_or(RuleError::UnknownNic(nic))?;
    let mut a = Asm::new();
    let (slow, not_ipv4, no_port) = (a.label(), a.label(), a.label());
    let (rewritten, drop, count) = (a.label(), a.label(), a.label());
    let key = a.slot(4);
    let mut c = Compiler { a, table, nic, maps, key, slow, not_ipv4, no_port, rewritten, drop, count };
    c.parse(mac);
    c.checksum();
    c.look_up();
    c.ends();
    Ok(c.a.finish()?)
}

// Registers that calls keep.
const DATA: Reg = Reg::R6;
const END: Reg = Reg::R7;
const VERDICT: Reg = Reg::R8;
/// Index of the counter that the frame ends in.
const COUNTER: Reg = Reg::R9;

// Offsets of fields in the frame.
const SOURCE_MAC: i16 = 6;
const ETHERTYPE: i16 = 12;
const IP: i16 = 14;
const IP_TOS: i16 = 15;
const IP_TOTAL_LENGTH: i16 = 16;
const IP_TTL: i16 = 22;
const IP_PROTOCOL: i16 = 23;
const IP_CHECKSUM: i16 = 24;
const IP_SRC: i16 = 26;
const IP_DST: i16 = 30;
const IP_END: i16 = 34;

/// A 16-bit field's value as a load of this machine sees it.
fn wire16(value: u16) -> i32 {
    u16::from_ne_bytes(value.to_be_bytes()).into()
}

/// Likewise for 32 bits.
fn wire32(value: u32) -> i32 {
    i32::from_ne_bytes(value.to_be_bytes())
}

struct Compiler<'a> {
    a: Asm,
    table: &'a RuleTable,
    nic: u8,
    maps: Maps<'a>,
    /// The key of a map look-up.
    key: Slot,
    /// To the host, in the class that the host's rule says.
    slow: Label,
    /// To the host in the low class, without a key to classify by.
    not_ipv4: Label,
    /// To the host for want of an interface.
    no_port: Label,
    /// A hit whose addresses are written.
    rewritten: Label,
    /// To be dropped; the counter is set.
    drop: Label,
    /// Verdict and counter are set.
    count: Label,
}

impl Compiler<'_> {
    /// Leaves for the slow path whatever is not a plain IPv4 packet to `mac`, from and to no martian.
    fn parse(&mut self, mac: Mac) {
        let a = &mut self.a;
        a.xdp_data(Reg::R1, DATA, END);
        a.xdp_require(DATA, END, IP_END.into(), Reg::R2, self.not_ipv4);
        a.load(Size::H, Reg::R2, DATA, ETHERTYPE);
        a.jump_if(Cond::Ne, Reg::R2, wire16(0x0800), self.not_ipv4);
        a.load(Size::B, Reg::R2, DATA, IP);
        a.mov(Reg::R3, Reg::R2);
        a.alu(Alu::Rsh, Reg::R3, 4);
        a.jump_if(Cond::Ne, Reg::R3, 4, self.not_ipv4);
        let Mac([m0, m1, m2, m3, m4, m5]) = mac;
        a.load(Size::W, Reg::R3, DATA, 0);
        a.jump_if32(Cond::Ne, Reg::R3, i32::from_ne_bytes([m0, m1, m2, m3]), self.slow);
        a.load(Size::H, Reg::R3, DATA, 4);
        a.jump_if(Cond::Ne, Reg::R3, i32::from(u16::from_ne_bytes([m4, m5])), self.slow);
        a.jump_if(Cond::Ne, Reg::R2, 0x45, self.slow);
        a.load(Size::H, Reg::R2, DATA, IP_TOTAL_LENGTH);
        a.to_be(Reg::R2, 16);
        a.jump_if(Cond::Lt, Reg::R2, i32::from(IP_END - IP), self.slow);
        for field in [IP_SRC, IP_DST] {
            a.load(Size::B, Reg::R2, DATA, field);
            for network in [0, 127] {
                a.jump_if(Cond::Eq, Reg::R2, network, self.slow);
            }
            a.jump_if(Cond::Ge, Reg::R2, 224, self.slow);
            a.load(Size::H, Reg::R2, DATA, field);
            a.jump_if(Cond::Eq, Reg::R2, wire16(0xa9fe), self.slow);
        }
    }

    /// Checks the header checksum. The ones' complement sum does not care for byte order (RFC 1071, section 2),
    /// and 32 bits at a time give the same after folding.
    fn checksum(&mut self) {
        let a = &mut self.a;
        a.load(Size::W, Reg::R2, DATA, IP);
        for field in (IP + 4..IP_END).step_by(4) {
            a.load(Size::W, Reg::R3, DATA, field);
            a.alu(Alu::Add, Reg::R2, Reg::R3);
        }
        // Five words carry into 3 bits above 32; after that 17 bits above 16, then one, then none.
        for bits in [32, 16, 16] {
            a.mov(Reg::R3, Reg::R2);
            a.alu(Alu::Rsh, Reg::R3, bits);
            if bits == 32 {
                a.mov32(Reg::R2, Reg::R2);
            } else {
                a.alu(Alu::And, Reg::R2, 0xffff);
            }
            a.alu(Alu::Add, Reg::R2, Reg::R3);
        }
        if self.table.policy.drop_bad_checksum {
            a.mov(COUNTER, counters::DROP_CHECKSUM as i32);
            a.jump_if(Cond::Ne, Reg::R2, 0xffff, self.drop);
        } else {
            a.jump_if(Cond::Ne, Reg::R2, 0xffff, self.slow);
        }
    }

    /// Tries the routes; the last miss goes to the slow path.
    fn look_up(&mut self) {
        for route in self.table.by_precedence() {
            let next = self.a.label();
            self.differs(Size::W, IP_DST, wire32(route.value), wire32(route.mask), next);
            self.hit(route);
            self.a.bind(next);
        }
        self.a.jump(self.slow);
    }

    /// What happens to a packet that matches `route`.
    fn hit(&mut self, route: &Route) {
        match route.to {
            Target::Nic { nic, next_hop } if nic != self.nic => {
                if route.has_edges() {
                    self.leave_edges(route.mask);
                }
                self.forward(nic, next_hop);
            }
            _ => self.a.jump(self.slow),
        }
    }

    /// The lowest and the highest address that a mask leaves open are the host's.
    fn leave_edges(&mut self, mask: u32) {
        let open = wire32(!mask);
        self.a.load(Size::W, Reg::R2, DATA, IP_DST);
        self.a.alu32(Alu::And, Reg::R2, open);
        self.a.jump_if32(Cond::Eq, Reg::R2, 0, self.slow);
        self.a.jump_if32(Cond::Eq, Reg::R2, open, self.slow);
    }

    /// Out by card `nic`, if it is there.
    fn forward(&mut self, nic: u8, next_hop: Mac) {
        let a = &mut self.a;
        // Before anything else: without an interface the frame goes to the host as it came.
        a.map(Reg::R1, self.maps.ports);
        a.mov(Reg::R2, i32::from(nic));
        a.mov(Reg::R3, action::XDP_PASS);
        a.call(Helper::RedirectMap);
        a.jump_if(Cond::Ne, Reg::R0, action::XDP_REDIRECT, self.no_port);
        a.load(Size::B, Reg::R2, DATA, IP_TTL);
        if self.table.policy.ttl_expired_to_host {
            a.jump_if(Cond::Le, Reg::R2, 1, self.slow);
        } else {
            a.mov(COUNTER, counters::DROP_TTL as i32);
            a.jump_if(Cond::Le, Reg::R2, 1, self.drop);
        }
        a.mov(COUNTER, counters::DROP_TRUNCATED as i32);
        a.load(Size::H, Reg::R2, DATA, IP_TOTAL_LENGTH);
        a.to_be(Reg::R2, 16);
        a.mov(Reg::R3, END);
        a.alu(Alu::Sub, Reg::R3, DATA);
        a.alu(Alu::Sub, Reg::R3, i32::from(IP));
        a.jump_if(Cond::Gt, Reg::R2, Reg::R3, self.drop);
        self.write_mac(0, next_hop);
        if !self.table.policy.keep_source_mac {
            self.write_mac(SOURCE_MAC, self.table.nics[usize::from(nic)]);
        }
        self.classify(nic, self.table.classes[usize::from(nic)]);
        self.a.jump(self.rewritten);
    }

    fn write_mac(&mut self, offset: i16, mac: Mac) {
        let Mac([m0, m1, m2, m3, m4, m5]) = mac;
        self.a.store(Size::W, DATA, offset, i32::from_ne_bytes([m0, m1, m2, m3]));
        self.a.store(Size::H, DATA, offset + 4, i32::from(u16::from_ne_bytes([m4, m5])));
    }

    /// Sets the counter of `destination` in the class that `rule` says.
    fn classify(&mut self, destination: u8, rule: Option<ClassRule>) {
        self.a.mov(COUNTER, forwarded(destination, false) as i32);
        let Some(rule) = rule else { return };
        let low = self.a.label();
        let (value, mask) = (rule.value.0, rule.mask.0);
        let byte = |bits: u128| i32::from(bits as u8);
        let word = |bits: u128| wire32(bits as u32);
        let fields = [
            (Size::B, IP_TOS, byte(value >> 72), byte(mask >> 72)),
            (Size::W, IP_SRC, word(value >> 40), word(mask >> 40)),
            (Size::W, IP_DST, word(value >> 8), word(mask >> 8)),
            (Size::B, IP_PROTOCOL, byte(value), byte(mask)),
        ];
        for (size, offset, value, mask) in fields.into_iter().filter(|field| field.3 != 0) {
            self.differs(size, offset, value, mask, low);
        }
        self.a.mov(COUNTER, forwarded(destination, true) as i32);
        self.a.bind(low);
    }

    /// Jumps to `target` unless the field at `offset` is `value` where `mask` is one. A mask of zero is compared
    /// too: what follows `target` must be reachable for the verifier.
    fn differs(&mut self, size: Size, offset: i16, value: i32, mask: i32, target: Label) {
        self.a.load(size, Reg::R2, DATA, offset);
        self.a.alu32(Alu::And, Reg::R2, mask);
        self.a.jump_if32(Cond::Ne, Reg::R2, value, target);
    }

    /// Where the jumps go; only those that are used, because the verifier refuses code that nothing leads to.
    fn ends(&mut self) {
        let exit = self.a.label();
        let own = self.nic;
        let through_another = |route: &Route| matches!(route.to, Target::Nic { nic, .. } if nic != own);
        let forwards = self.table.routes.iter().any(through_another);
        if forwards {
            self.a.bind(self.no_port);
            self.a.mov(COUNTER, counters::NO_PORT as i32);
            self.a.count_per_cpu(self.maps.counters, COUNTER, self.key, self.slow);
        }
        self.a.bind(self.slow);
        self.a.mov(VERDICT, action::XDP_PASS);
        self.classify(self.nic, self.table.host_class);
        self.a.jump(self.count);
        self.a.bind(self.not_ipv4);
        self.a.mov(VERDICT, action::XDP_PASS);
        self.a.mov(COUNTER, forwarded(self.nic, false) as i32);
        self.a.jump(self.count);
        if forwards {
            self.a.bind(self.rewritten);
            self.a.mov(VERDICT, action::XDP_REDIRECT);
            self.decrement_ttl();
            self.a.jump(self.count);
        }
        if forwards || self.table.policy.drop_bad_checksum {
            self.a.bind(self.drop);
            self.a.mov(VERDICT, action::XDP_DROP);
        }
        self.a.bind(self.count);
        self.a.count_per_cpu(self.maps.counters, COUNTER, self.key, exit);
        self.a.bind(exit);
        self.a.mov(Reg::R0, VERDICT);
        self.a.exit();
    }

    /// RFC 1624 equation 3, in this machine's byte order: where the TTL falls by one, `~m + m'` is always 0xfeff.
    fn decrement_ttl(&mut self) {
        let a = &mut self.a;
        a.load(Size::B, Reg::R2, DATA, IP_TTL);
        a.alu(Alu::Sub, Reg::R2, 1);
        a.store(Size::B, DATA, IP_TTL, Reg::R2);
        a.load(Size::H, Reg::R2, DATA, IP_CHECKSUM);
        a.alu(Alu::Xor, Reg::R2, 0xffff);
        a.alu(Alu::Add, Reg::R2, wire16(0xfeff));
        a.mov(Reg::R3, Reg::R2);
        a.alu(Alu::Rsh, Reg::R3, 16);
        a.alu(Alu::Add, Reg::R2, Reg::R3);
        a.alu(Alu::Xor, Reg::R2, 0xffff);
        a.store(Size::H, DATA, IP_CHECKSUM, Reg::R2);
    }
}
