//! What a number in a program is, in terms of the packet as it came.

use super::{Alu, Field};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A number. Positions are in bytes behind the start of the data as the packet came, so that the same bytes have the same
/// name wherever the data starts meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// Known.
    Const(u64),
    /// Bytes of the packet as it came, in network order.
    Bytes {
        /// Position of the first one.
        at: i64,
        /// How many, 1 to 8.
        len: u8,
    },
    /// A field as it was when the packet came.
    Field(Field),
    /// Computed.
    Compute(Alu, Box<[Expr; 2]>),
    /// The checksum's sum of bytes.
    Sum {
        /// Position of the first one.
        at: i64,
        /// How many.
        len: Box<Expr>,
    },
    /// 1 if the number is one of the set, else 0.
    Member(Box<Expr>, Arc<[u64]>),
    /// A word that was found in a table.
    Found {
        /// Which lookup of the way, counted from 0.
        lookup: usize,
        /// Which of its words, counted from 0.
        word: u8,
    },
}

impl From<u64> for Expr {
    fn from(number: u64) -> Expr {
        Expr::Const(number)
    }
}

/// A condition on numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Two numbers are equal; what is known stands second.
    Equal(Expr, Expr),
    /// The first is greater.
    Above(Expr, Expr),
    /// The packet as it came has bytes up to this position.
    Has(i64),
}

/// Bytes whose content is known, by position.
pub type KnownBytes = BTreeMap<i64, u8>;

impl Expr {
    /// The number, if it is known.
    pub fn known(&self) -> Option<u64> {
        match self {
            Expr::Const(n) => Some(*n),
            _ => None,
        }
    }

    /// `self + n`, wrapping. Sums with a known number are kept as one such sum, so that equal ones look equal.
    pub fn plus(self, n: u64) -> Expr {
        match self {
            Expr::Const(c) => Expr::Const(c.wrapping_add(n)),
            e if n == 0 => e,
            Expr::Compute(Alu::Add, parts) if parts[1].known().is_some() => {
                let [e, c] = *parts;
                e.plus(c.known().unwrap_or(0).wrapping_add(n))
            }
            e => Expr::Compute(Alu::Add, Box::new([e, Expr::Const(n)])),
        }
    }

    /// The expression without what [`Expr::plus`] added, and that.
    pub fn parted(&self) -> (Expr, u64) {
        match self {
            Expr::Const(n) => (Expr::Const(0), *n),
            Expr::Compute(Alu::Add, parts) => match &**parts {
                [e, Expr::Const(n)] => (e.clone(), *n),
                _ => (self.clone(), 0),
            },
            e => (e.clone(), 0),
        }
    }

    /// What `how` makes of `a` and `b`, as short as it can be said.
    pub fn compute(how: Alu, a: Expr, b: Expr, bytes: &KnownBytes) -> Expr {
        match (how, a, b) {
            (how, Expr::Const(a), Expr::Const(b)) => Expr::Const(how.of(a, b)),
            (Alu::Add, a, Expr::Const(n)) | (Alu::Add, Expr::Const(n), a) => a.plus(n),
            (Alu::Sub, a, Expr::Const(n)) => a.plus(n.wrapping_neg()),
            (Alu::And, e, Expr::Const(mask)) | (Alu::And, Expr::Const(mask), e) => match e.bits(bytes) {
                (value, known) if mask & !known == 0 => Expr::Const(value & mask),
                _ => Expr::Compute(Alu::And, Box::new([e, Expr::Const(mask)])),
            },
            (Alu::Shl | Alu::Shr | Alu::Or | Alu::Xor, e, Expr::Const(0)) => e,
            (how, a, b) => Expr::Compute(how, Box::new([a, b])),
        }
    }

    /// The number that so many of its low bytes make.
    pub fn low_bytes(self, n: u8, bytes: &KnownBytes) -> Expr {
        let mask = if n < 8 { (1 << (8 * u32::from(n))) - 1 } else { u64::MAX };
        match self.bits(bytes) {
            (value, known) if known & !mask == !mask && value & !mask == 0 => self,
            _ => Expr::compute(Alu::And, self, Expr::Const(mask), bytes),
        }
    }

    /// The bits of the number that are known, and which those are.
    pub fn bits(&self, bytes: &KnownBytes) -> (u64, u64) {
        match self {
            Expr::Const(n) => (*n, u64::MAX),
            Expr::Bytes { at, len } => {
                let above = if *len < 8 { u64::MAX << (8 * *len as u32) } else { 0 };
                let each = (*at..*at + *len as i64).map(|at| bytes.get(&at));
                let (value, known) = each.fold((0, 0), |(value, known), byte| match byte {
                    Some(&byte) => (value << 8 | byte as u64, known << 8 | 0xff),
                    None => (value << 8, known << 8),
                });
                (value, known | above)
            }
            Expr::Compute(Alu::And, parts) => {
                let [(a, of_a), (b, of_b)] = [parts[0].bits(bytes), parts[1].bits(bytes)];
                // Zero in one of them is zero in the result.
                (a & b, (of_a & of_b) | (of_a & !a) | (of_b & !b))
            }
            _ => (0, 0),
        }
    }

    /// Whether both are equal, if that can be told.
    pub fn equals(&self, other: &Expr, bytes: &KnownBytes) -> Option<bool> {
        if self == other {
            return Some(true);
        }
        let ((a, of_a), (b, of_b)) = (self.bits(bytes), other.bits(bytes));
        let both = of_a & of_b;
        match (a ^ b) & both {
            0 if both == u64::MAX => Some(true),
            0 => None,
            _ => Some(false),
        }
    }
}
