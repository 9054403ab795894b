//! Packets of the stack that are to be cut into others, and what may be done to them in one piece.
//!
//! A super-packet is TCP's: its parts have its headers, but for lengths, identification, sequence numbers, some flags and
//! checksums, and each a piece of its payload. [`read`] follows a program with what is so known of it and of its parts. It is the
//! program's for such packets if it decides, writes and notes the same for each part, with what is known filled in; else it
//! says why not, and the packets go up, where they come in parts.
//!
//! What leads here has found that the header of IPv4 has no options and a sum that is right, that lengths are as long as the
//! packet is, and that the transport header is behind it ([`crate::frame::sift`]). Parts are as that says, for the kernel
//! makes their headers: so a comparison of lengths with one another has one answer for all. So has one with a number that the
//! longest part does not exceed; where it does, packets go up as well.

mod known;

use crate::state::{Header, Ip, Mark, State};
use causeway_engine::ir::{Alu, At, Base, Block, Code, End, Field, Op, Program, REGISTERS, Reg, Test, Value};
use known::Known::{self, Differs, Length, Number, Same, Sum};
use std::collections::BTreeMap;

/// Bytes of an Ethernet header, where the header of IP begins.
const ETHERNET: i32 = 14;
/// Bytes of a TCP header without options.
const TCP: i32 = 20;

const DIFFERS: &str = "it looks at what differs among the parts of a super-packet";
const COMPUTED: &str = "it looks where super-packets may have no header";
const WRITES: &str = "it writes what differs among the parts of a super-packet";

/// A program for super-packets.
pub(crate) struct Whole {
    pub blocks: Vec<Code>,
    /// Where it begins.
    pub first: Block,
    /// By block and place, how much less than the frame's length is added by what counts lengths.
    pub lengths: BTreeMap<(usize, usize), i64>,
    /// By block, how many bytes the longest part has at most if what is behind its end is for all parts; else they go up.
    pub longest: BTreeMap<usize, i32>,
}

impl Ip {
    /// Bytes of its header.
    fn header(self) -> i32 {
        match self {
            Ip::V4 => 20,
            Ip::V6 => 40,
        }
    }

    /// Its Ethernet type.
    pub fn ethertype(self) -> i32 {
        match self {
            Ip::V4 => 0x0800,
            Ip::V6 => 0x86dd,
        }
    }

    /// Where its length is, and what that has less than the frame.
    pub fn length(self) -> (i32, i64) {
        match self {
            Ip::V4 => (ETHERNET + 2, ETHERNET.into()),
            Ip::V6 => (ETHERNET + 4, (ETHERNET + 40).into()),
        }
    }

    /// Bytes that each part has before its payload, and TCP's options.
    pub fn headers(self) -> i32 {
        ETHERNET + self.header() + TCP
    }

    /// Which bits of a byte differ among parts.
    fn differing(self, at: i32) -> u8 {
        let tcp = ETHERNET + self.header();
        match (self, at) {
            // Length, identification, checksum.
            (Ip::V4, 16..20 | 24..26) | (Ip::V6, 18..20) => 0xff,
            _ if at < tcp => 0,
            _ => match at - tcp {
                // Ports; acknowledgment and data offset; window; urgent pointer.
                0..4 | 8..13 | 14..16 | 18..20 => 0,
                // CWR is the first part's, FIN and PSH the last one's.
                13 => 0x89,
                _ => 0xff,
            },
        }
    }
}

/// What is known at a place of a program.
#[derive(Clone, Copy)]
struct Facts {
    ip: Ip,
    data: i32,
    marks: [Mark; 3],
    registers: [Known; REGISTERS],
    /// Whether the header was written to, and its checksum was not yet.
    owes_sum: bool,
}

/// What a program is for super-packets in a state, or why they must go up. A diagram may look at what differs before it knows
/// whether that matters, which its list does not.
pub(crate) fn read(program: &Program, ip: Ip, state: &State) -> Result<Whole, &'static str> {
    let begin = |first| read_from(program.blocks(), first, ip, state);
    begin(0).or_else(|why| program.list().map_or(Err(why), begin))
}

fn read_from(blocks: &[Code], first: Block, ip: Ip, state: &State) -> Result<Whole, &'static str> {
    let facts = Facts {
        ip,
        data: state.data,
        marks: state.marks,
        registers: [Number(0); REGISTERS],
        owes_sum: false,
    };
    let mut places = vec![None; blocks.len()];
    if let Some(place) = places.get_mut(first) {
        *place = Some(facts);
    }
    let (written, lengths, longest) = (Vec::with_capacity(blocks.len()), BTreeMap::new(), BTreeMap::new());
    let mut whole = Whole { blocks: written, first, lengths, longest };
    for (number, code) in blocks.iter().enumerate() {
        let Some(mut facts) = places[number] else {
            // Nothing leads there any more.
            whole.blocks.push(Code { ops: Vec::new(), end: End::GiveUp });
            continue;
        };
        let mut ops = Vec::with_capacity(code.ops.len());
        for op in &code.ops {
            if let Op::Count { by, .. } = op
                && let Length(less) = facts.value(*by)
            {
                whole.lengths.insert((number, ops.len()), less);
            }
            ops.extend(facts.op(op)?);
        }
        whole.longest.extend(facts.longest(code.end).map(|longest| (number, longest)));
        let (end, next) = facts.end(code.end)?;
        for to in next.into_iter().flatten() {
            places[to] = Some(match places[to] {
                None => facts,
                Some(known) => known.or(&facts)?,
            });
        }
        whole.blocks.push(Code { ops, end });
    }
    Ok(whole)
}

impl Facts {
    fn or(mut self, other: &Facts) -> Result<Facts, &'static str> {
        if (self.data, self.marks) != (other.data, other.marks) {
            return Err("super-packets come to one place of it in several ways");
        }
        for (known, other) in self.registers.iter_mut().zip(other.registers) {
            *known = known.or(other);
        }
        self.owes_sum |= other.owes_sum;
        Ok(self)
    }

    fn value(&self, value: Value) -> Known {
        match value {
            Value::Const(n) => Number(n),
            Value::Of(reg) => self.registers[reg.number()],
        }
    }

    /// The value with what is known filled in.
    fn filled(&self, value: Value) -> Value {
        match self.value(value) {
            Number(n) => Value::Const(n),
            _ => value,
        }
    }

    fn set(&mut self, reg: Reg, known: Known) {
        self.registers[reg.number()] = known;
    }

    fn place(&self, at: At) -> Result<i32, &'static str> {
        let base = match at.base {
            Base::Data => Mark::At(self.data),
            Base::Network => self.marks[Header::Network as usize],
            Base::Transport => self.marks[Header::Transport as usize],
        };
        match base {
            Mark::At(base) if base >= self.data => {
                base.checked_add(i32::try_from(at.offset).map_err(|_| COMPUTED)?).ok_or(COMPUTED)
            }
            _ => Err(COMPUTED),
        }
    }

    /// What is known of bytes.
    fn load(&self, at: i32, bytes: u8) -> Known {
        let (length, less) = self.ip.length();
        match (self.ip, at, bytes) {
            _ if (at, bytes) == (length, 2) => return Length(less),
            (Ip::V4, 24, 2) => return Sum,
            (Ip::V4, 14, 1) => return Number(0x45),
            (Ip::V4, 23, 1) | (Ip::V6, 20, 1) => return Number(6),
            (ip, 12, 2) => return Number(ip.ethertype() as u64),
            _ => {}
        }
        let one = |bits: u64, at: i32| bits << 8 | u64::from(self.ip.differing(at));
        Number((at..at.saturating_add(bytes.into())).fold(0, one)).bits()
    }

    /// The operation with what is known filled in; none if it does nothing.
    fn op(&mut self, op: &Op) -> Result<Option<Op>, &'static str> {
        let mut filled = op.clone();
        match *op {
            Op::Load { to, at, bytes } => {
                let known = self.load(self.place(at)?, bytes);
                self.set(to, known);
            }
            Op::Get { to, field } => {
                let mark = |header: Header| match self.marks[header as usize] {
                    Mark::At(at) if at >= self.data => Ok(Number((at - self.data) as u64)),
                    _ => Err(COMPUTED),
                };
                let known = match field {
                    Field::Length => Length(self.data.into()),
                    Field::PacketType | Field::Anno(..) => Same,
                    Field::Mac => return Err(COMPUTED),
                    Field::Network => mark(Header::Network)?,
                    Field::Transport => mark(Header::Transport)?,
                };
                self.set(to, known);
            }
            Op::Compute { to, how, a, b } => {
                filled = Op::Compute { to, how, a: self.filled(a), b: self.filled(b) };
                let known = Known::compute(how, self.value(a), self.value(b));
                self.set(to, known);
            }
            Op::Sum { to, at, bytes } => {
                let header = (Ip::V4, ETHERNET, Number(20), false);
                if (self.ip, self.place(at)?, self.value(bytes), self.owes_sum) != header {
                    return Err(DIFFERS);
                }
                filled = Op::Compute { to, how: Alu::Or, a: Value::Const(0xffff), b: Value::Const(0) };
                self.set(to, Number(0xffff));
            }
            Op::Member { to, of, .. } => {
                let known = if self.value(of).is_same() { Same } else { Differs(1) };
                self.set(to, known);
            }
            Op::LookUp { to, key, .. } => {
                if !key.into_iter().all(|word| self.value(word).is_same()) {
                    return Err(DIFFERS);
                }
                to.into_iter().for_each(|to| self.set(to, Same));
            }
            Op::Store { at, bytes, value } => {
                self.store(self.place(at)?, bytes.into(), self.value(value))?;
                filled = Op::Store { at, bytes, value: self.filled(value) };
            }
            Op::Put { field: Field::Length, value } => {
                return match self.value(value) {
                    Length(less) if less <= self.data.into() => Ok(None),
                    _ => Err("it cuts what differs among the parts of a super-packet"),
                };
            }
            Op::Put { field, value } => {
                let header = match field {
                    Field::Mac => Some(Header::Mac),
                    Field::Network => Some(Header::Network),
                    Field::Transport => Some(Header::Transport),
                    _ => None,
                };
                match (header, self.value(value)) {
                    (Some(header), Number(n)) => {
                        let at = i32::try_from(n).ok().and_then(|n| n.checked_add(self.data));
                        let at = at.filter(|&at| at <= self.ip.headers()).ok_or(COMPUTED)?;
                        self.marks[header as usize] = Mark::At(at);
                    }
                    (None, known) if known.is_same() => {}
                    _ => return Err(DIFFERS),
                }
                filled = Op::Put { field, value: self.filled(value) };
            }
            Op::Pull(n) => {
                let data = i32::try_from(n).ok().and_then(|n| self.data.checked_add(n));
                self.data = data.filter(|&data| data <= self.ip.headers()).ok_or(DIFFERS)?;
            }
            Op::Push(n) => {
                let data = i32::try_from(n).ok().and_then(|n| self.data.checked_sub(n));
                self.data =
                    data.filter(|&data| data >= 0).ok_or("it puts bytes in front of super-packets")?;
            }
            Op::Count { by, .. } => match self.value(by) {
                Number(_) | Same | Length(_) => {}
                Sum | Differs(_) => return Err(DIFFERS),
            },
        }
        Ok(Some(filled))
    }

    /// Bytes may be written that are each part's, and of which nobody reckons otherwise: the kernel makes the lengths and sums of
    /// the parts, and with addresses goes what stands in for TCP's sum until then.
    fn store(&mut self, at: i32, bytes: i32, known: Known) -> Result<(), &'static str> {
        match (self.ip, at, at.saturating_add(bytes), known) {
            (Ip::V4, 24, 26, Sum) => self.owes_sum = false,
            // The type of service, and the time to live.
            (Ip::V4, 15, 16, Number(_) | Same) | (Ip::V4, 22, 23, Number(_) | Same) => self.owes_sum = true,
            // The version is what it was to whoever writes more than the traffic class.
            (Ip::V6, 14.., ..=18, Number(_) | Same) | (Ip::V6, 21, 22, Number(_) | Same) => {}
            (_, 0.., ..=12, Number(_) | Same) => {}
            // Whoever has the packet next cuts it by its type.
            (ip, 0..=12, 14, Number(n)) if n & 0xffff == ip.ethertype() as u64 => {}
            _ => return Err(WRITES),
        }
        Ok(())
    }

    /// Bytes of the shortest part: it has some payload.
    fn least(&self) -> i64 {
        i64::from(self.ip.headers()) + 1
    }

    /// If the end of a block asks whether the packet is longer than some number, how long the longest part may be for none to be.
    fn longest(&self, end: End) -> Option<i32> {
        let End::If(Test::Above(a, b), ..) = end else { return None };
        let (Length(less), Number(n)) = (self.value(a), self.value(b)) else { return None };
        // Numbers are compared without a sign.
        (i64::from(i32::MIN)..=self.least()).contains(&less).then_some(())?;
        let longest = i64::try_from(n).ok()?.saturating_add(less).min(i32::MAX.into());
        (longest >= self.least()).then_some(longest as i32)
    }

    /// The end of a block with what is known filled in, and where that leads.
    fn end(&self, end: End) -> Result<(End, [Option<usize>; 2]), &'static str> {
        let go = |to| Ok((End::Go(to), [Some(to), None]));
        let branch = |holds: bool, yes, no| go(if holds { yes } else { no });
        let least = self.least();
        match end {
            End::Go(to) => go(to),
            End::If(Test::Has(at, bytes), yes, _) => {
                let end = i64::from(self.place(at)?) + i64::from(bytes);
                if end > least { Err(DIFFERS) } else { go(yes) }
            }
            End::If(test @ (Test::Equal(a, b) | Test::Above(a, b)), yes, no) => {
                let is_above = matches!(test, Test::Above(..));
                match (self.value(a), self.value(b)) {
                    (Number(a), Number(b)) => branch(if is_above { a > b } else { a == b }, yes, no),
                    (Length(a), Length(b)) if a.max(b) <= least && a.min(b) >= 0 => {
                        branch(if is_above { a < b } else { a == b }, yes, no)
                    }
                    (Number(n), Length(less))
                        if is_above && i64::try_from(n).is_ok_and(|n| n <= least - less) =>
                    {
                        branch(false, yes, no)
                    }
                    _ if self.longest(end).is_some() => branch(false, yes, no),
                    (a, b) if a.is_same() && b.is_same() => {
                        let filled = match test {
                            Test::Equal(a, b) => Test::Equal(self.filled(a), self.filled(b)),
                            Test::Above(a, b) => Test::Above(self.filled(a), self.filled(b)),
                            other => other,
                        };
                        Ok((End::If(filled, yes, no), [Some(yes), Some(no)]))
                    }
                    _ => Err(DIFFERS),
                }
            }
            End::Leave(_) | End::LeaveBy(_) if self.owes_sum => Err("it leaves the header's sum wrong"),
            End::LeaveBy(port) => match self.registers[port.number()] {
                Number(_) | Same => Ok((end, [None; 2])),
                _ => Err(DIFFERS),
            },
            End::Leave(_) | End::Drop(_) | End::GiveUp => Ok((end, [None; 2])),
        }
    }
}
