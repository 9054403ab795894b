//! What is done to packets of a kind on their way through the programs of a chain.
//!
//! This is symbolic execution: a [`Guard`] is a part of the path condition. A [`Walk`] starts from what is known of the packets ([`Walk::of`]) and follows them from element to element
//! ([`Walk::through`]). It decides what is known and notes what is not: under which conditions they get there, and what of
//! them is different then, in terms of the packet as it came ([`Expr`]). So the order in which elements did it, and where
//! the data started meanwhile, leave no trace: two chains that do the same give the same walk.

use super::expr::{Condition, Expr, KnownBytes};
use super::{At, Base, Field, Key, Op, Program, Reg, Test, Value};
use crate::counters::Counter;
use std::collections::BTreeMap;

/// No length or place is larger.
const SMALL: u64 = u32::MAX as u64;

/// A condition and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The condition.
    pub condition: Condition,
    /// Whether it holds.
    pub holds: bool,
}

/// A lookup on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Which element of the way made it, counted from 0.
    pub element: usize,
    /// The table's number in that element's program.
    pub table: u8,
    /// What was looked up.
    pub key: Key<Expr>,
}

/// What is known of packets before they come.
#[derive(Clone, Debug, Default)]
pub struct Kind {
    /// Bytes of known content, by position.
    pub bytes: KnownBytes,
    /// Bytes that the packets have, at least.
    pub least: i64,
    /// Conditions of which it is known whether they hold.
    pub guards: Vec<Guard>,
}

/// What happened to packets of a kind.
#[derive(Clone, Debug)]
pub struct Walk {
    kind: Kind,
    /// Elements passed.
    pub(super) elements: usize,
    /// Where the data starts.
    pub data: i64,
    /// Where the data ends.
    pub end: Expr,
    /// Where the headers start that were marked.
    pub headers: BTreeMap<Field, Expr>,
    /// Annotations that were set.
    pub annotations: BTreeMap<Field, Expr>,
    /// Bytes that were written: by position of the first one, how many and what.
    pub stores: BTreeMap<i64, (u8, Expr)>,
    /// What must be so for a packet to get here, besides what was known before.
    pub guards: Vec<Guard>,
    /// The lookups, in order.
    pub lookups: Vec<Lookup>,
    /// What is counted.
    pub counts: Vec<(Counter, Expr)>,
    /// The output by which it left the last element, if that is computed.
    pub left_by: Option<Expr>,
}

impl Walk {
    /// Packets of this kind, before anything is done to them.
    pub fn of(kind: Kind) -> Walk {
        Walk {
            kind,
            elements: 0,
            data: 0,
            end: Expr::Field(Field::Length),
            headers: BTreeMap::new(),
            annotations: BTreeMap::new(),
            stores: BTreeMap::new(),
            guards: Vec::new(),
            lookups: Vec::new(),
            counts: Vec::new(),
            left_by: None,
        }
    }

    /// Whether nothing but annotations and counts differ from `other`.
    pub fn same_but_annotations(&self, other: &Walk) -> bool {
        let same_guards = self.guards.iter().all(|g| other.guards.contains(g))
            && other.guards.iter().all(|g| self.guards.contains(g));
        let lookups = |w: &Walk| w.lookups.iter().map(|l| l.key.clone()).collect::<Vec<_>>();
        same_guards
            && (self.data, &self.end, &self.headers) == (other.data, &other.end, &other.headers)
            && (&self.stores, &self.left_by) == (&other.stores, &other.left_by)
            && lookups(self) == lookups(other)
    }

    /// Position of `at`, if it is in the data; `None` for one that gives up.
    fn place(&self, at: At) -> Option<i64> {
        let header = |field| match self.headers.get(&field)? {
            Expr::Const(at) => Some(*at as i64).filter(|&at| at >= self.data),
            _ => None,
        };
        let base = match at.base {
            Base::Data => self.data,
            Base::Network => header(Field::Network)?,
            Base::Transport => header(Field::Transport)?,
        };
        base.checked_add(at.offset as i64)
    }

    /// The least that a number can be, read as one with a sign.
    fn least(&self, e: &Expr) -> i64 {
        let (e, more) = e.parted();
        let guards = self.kind.guards.iter().chain(&self.guards);
        let small = |n: u64| i64::try_from(n).ok();
        let known = guards.filter_map(|guard| match &guard.condition {
            // Not below this one.
            Condition::Above(Expr::Const(n), than) if !guard.holds && *than == e => small(*n),
            Condition::Above(than, Expr::Const(n)) if guard.holds && *than == e => small(*n)?.checked_add(1),
            Condition::Has(end) if guard.holds && e == Expr::Field(Field::Length) => Some(*end),
            _ => None,
        });
        let first = if e == Expr::Field(Field::Length) { self.kind.least } else { 0 };
        let least = known.fold(first, i64::max);
        match more as i64 {
            0 => least,
            // What is added must not carry the number past either end.
            more if self.is_small(&e) && more.abs() <= SMALL as i64 && least + more >= 0 => least + more,
            _ => 0,
        }
    }

    /// Whether a number is sure to be no larger than lengths and places are.
    fn is_small(&self, e: &Expr) -> bool {
        let (value, known) = e.bits(&self.kind.bytes);
        *e == Expr::Field(Field::Length) || (known & !SMALL == !SMALL && value & !SMALL == 0)
    }

    /// Whether one number is sure not to be above another.
    fn is_within(&self, a: &Expr, b: &Expr) -> bool {
        if a == b || a.known().and_then(|a| i64::try_from(a).ok()).is_some_and(|a| a <= self.least(b)) {
            return true;
        }
        let ((a, of_a), (b, of_b)) = (a.parted(), b.parted());
        // Both may be greater by as much than two that were compared.
        let shifted = |x: &Expr, y: &Expr| {
            let ((x, of_x), (y, of_y)) = (x.parted(), y.parted());
            let by = of_b.wrapping_sub(of_y);
            x == a && y == b && of_a.wrapping_sub(of_x) == by && by <= SMALL
        };
        let guards = self.kind.guards.iter().chain(&self.guards);
        guards.filter(|guard| !guard.holds).any(|guard| match &guard.condition {
            Condition::Above(x, y) => shifted(x, y),
            _ => false,
        })
    }

    /// Whether the packet is known to have the bytes up to `end`.
    fn has(&self, end: i64) -> bool {
        end <= self.least(&self.end)
    }

    /// The bytes at a position, as they are now; `None` if they are not there, or partly written.
    fn load(&mut self, at: i64, len: u8) -> Option<Expr> {
        if !self.has(at + len as i64) {
            self.note(Condition::Has(at + len as i64), true)?;
        }
        if let Some((of, value)) = self.stores.get(&at)
            && *of == len
        {
            return Some(value.clone());
        }
        if self.is_written(at, len as i64) {
            return None;
        }
        let whole = Expr::Bytes { at, len };
        let (value, known) = whole.bits(&self.kind.bytes);
        Some(if known == u64::MAX { Expr::Const(value) } else { whole })
    }

    fn is_written(&self, at: i64, len: i64) -> bool {
        self.stores.iter().any(|(&start, &(n, _))| start < at + len && at < start + n as i64)
    }

    /// Whether a condition holds, if that is known.
    fn decide(&self, condition: &Condition) -> Option<bool> {
        // What was there before the end was moved may be gone.
        if let Condition::Has(end) = condition {
            return self.has(*end).then_some(true);
        }
        let known = self.kind.guards.iter().chain(&self.guards).find(|g| g.condition == *condition);
        known.map(|guard| guard.holds).or_else(|| match condition {
            Condition::Equal(a, b) => a.equals(b, &self.kind.bytes),
            Condition::Above(Expr::Const(a), Expr::Const(b)) => Some(a > b),
            Condition::Above(a, b) if a == b => Some(false),
            _ => None,
        })
    }

    /// Goes on only with packets for which it is so; `None` if there are none.
    pub(super) fn note(&mut self, condition: Condition, holds: bool) -> Option<()> {
        match self.decide(&condition) {
            Some(known) => (known == holds).then_some(()),
            None => {
                // Bytes behind an end that was moved are another matter than bytes of the packet as it came.
                let moved = matches!(condition, Condition::Has(_)) && self.end != Expr::Field(Field::Length);
                self.guards.push(Guard { condition, holds });
                (!moved).then_some(())
            }
        }
    }

    fn get(&self, field: Field) -> Option<Expr> {
        match field {
            Field::Length => Some(self.end.clone().plus((self.data as u64).wrapping_neg())),
            Field::Network | Field::Transport => {
                let at = self.headers.get(&field)?.known()? as i64;
                // One that was stripped off is none.
                Some(Expr::Const(at.checked_sub(self.data).filter(|&at| at >= 0)? as u64))
            }
            Field::Anno(offset, len) => match self.annotations.get(&field) {
                Some(value) => Some(value.clone()),
                None => {
                    let overlaps = |f: &Field| match *f {
                        Field::Anno(o, n) => {
                            (o as u16) < offset as u16 + len as u16 && (offset as u16) < o as u16 + n as u16
                        }
                        _ => false,
                    };
                    (!self.annotations.keys().any(overlaps)).then_some(Expr::Field(field))
                }
            },
            Field::PacketType => Some(Expr::Field(field)),
            Field::Mac => None,
        }
    }

    fn put(&mut self, field: Field, value: Expr) -> Option<()> {
        match field {
            Field::Length => {
                // One that may be longer may change nothing.
                let now = self.get(Field::Length)?;
                self.is_within(&value, &now).then_some(())?;
                self.end = value.plus(self.data as u64);
            }
            Field::Mac | Field::Network | Field::Transport => {
                let at = value.plus(self.data as u64);
                at.known().is_none_or(|at| at <= u64::from(u16::MAX)).then_some(())?;
                self.headers.insert(field, at);
            }
            Field::Anno(_, bytes) => {
                // One that lies across another one is not followed.
                self.annotations.remove(&field);
                self.get(field)?;
                let value = value.low_bytes(bytes, &self.kind.bytes);
                self.annotations.insert(field, value);
            }
            Field::PacketType => return None,
        }
        Some(())
    }
}

fn value(value: Value, registers: &[Expr]) -> Expr {
    match value {
        Value::Of(Reg(r)) => registers[r as usize].clone(),
        Value::Const(n) => Expr::Const(n),
    }
}

impl Walk {
    pub(super) fn condition(&self, test: Test, registers: &[Expr]) -> Option<Condition> {
        Some(match test {
            Test::Equal(a, b) => match (value(a, registers), value(b, registers)) {
                (known @ Expr::Const(_), other) => Condition::Equal(other, known),
                (a, b) => Condition::Equal(a, b),
            },
            Test::Above(a, b) => Condition::Above(value(a, registers), value(b, registers)),
            // A header that is nowhere has no bytes.
            Test::Has(at, bytes) => Condition::Has(self.place(at)?.checked_add(bytes as i64)?),
        })
    }

    /// One operation; `None` if it gives up, or cannot be followed.
    pub(super) fn step(&mut self, op: &Op, registers: &mut [Expr], program: &Program) -> Option<()> {
        let mut set = |Reg(r): Reg, value: Expr| registers[r as usize] = value;
        match *op {
            Op::Load { to, at, bytes } => set(to, self.load(self.place(at)?, bytes)?),
            Op::Get { to, field } => set(to, self.get(field)?),
            Op::Compute { to, how, a, b } => {
                let (a, b) = (value(a, registers), value(b, registers));
                registers[to.0 as usize] = Expr::compute(how, a, b, &self.kind.bytes);
            }
            Op::Sum { to, at, bytes } => {
                let (at, len) = (self.place(at)?, value(bytes, registers));
                let end = at.checked_add(i64::try_from(len.known()?).ok()?)?;
                if !self.has(end) {
                    self.note(Condition::Has(end), true)?;
                }
                if self.is_written(at, end - at) {
                    return None;
                }
                registers[to.0 as usize] = Expr::Sum { at, len: Box::new(len) };
            }
            Op::Member { to, of, ref set } => {
                let of = value(of, registers);
                registers[to.0 as usize] = match of.known() {
                    Some(n) => Expr::Const(set.contains(&n) as u64),
                    None if set.is_empty() => Expr::Const(0),
                    None => Expr::Member(Box::new(of), set.clone()),
                };
            }
            Op::LookUp { to, table, key } => {
                let key = key.map(|word| value(word, registers));
                let lookup = self.lookups.len();
                self.lookups.push(Lookup { element: self.elements, table, key });
                for (to, word) in to.into_iter().zip(0..) {
                    registers[to.0 as usize] = Expr::Found { lookup, word };
                }
            }
            Op::Store { at, bytes, value: of } => {
                let (at, of) = (self.place(at)?, value(of, registers));
                if !self.has(at + bytes as i64) {
                    return None;
                }
                // What is written a second time must be written whole.
                self.stores.remove(&at).is_none_or(|(n, _)| n == bytes).then_some(())?;
                if self.is_written(at, bytes as i64) {
                    return None;
                }
                let of = of.low_bytes(bytes, &self.kind.bytes);
                self.stores.insert(at, (bytes, of));
            }
            Op::Put { field, value: of } => self.put(field, value(of, registers))?,
            Op::Pull(n) => {
                let start = self.data + n as i64;
                if !self.has(start) {
                    self.note(Condition::Has(start), true)?;
                }
                self.data = start;
            }
            Op::Push(n) => {
                self.data -= n as i64;
                // In front of the packet as it came there may be no room.
                if self.data < 0 {
                    return None;
                }
            }
            Op::Count { counter, by } => {
                let counter = program.counters.get(counter as usize)?.clone();
                self.counts.push((counter, value(by, registers)));
            }
        }
        Some(())
    }
}
