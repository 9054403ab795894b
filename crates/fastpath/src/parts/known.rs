//! What is known of a number that a program reckons with.

use causeway_engine::ir::Alu;

use Known::{Differs, Length, Number, Same, Sum};

/// What is known of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Number(u64),
    /// The same of all parts.
    Same,
    /// The length of the frame, less so much.
    Length(i64),
    /// The checksum of the header of IPv4, or what is right in its place for what was written.
    Sum,
    /// These bits differ.
    Differs(u64),
}

impl Known {
    pub fn is_same(self) -> bool {
        matches!(self, Number(_) | Same)
    }

    pub fn or(self, other: Known) -> Known {
        match (self, other) {
            _ if self == other => self,
            _ if self.is_same() && other.is_same() => Same,
            _ => Differs(u64::MAX),
        }
    }

    pub fn compute(how: Alu, a: Known, b: Known) -> Known {
        match (how, a, b) {
            (_, Number(a), Number(b)) => Number(how.of(a, b)),
            (Alu::Add, Length(less), Number(n)) | (Alu::Add, Number(n), Length(less)) => {
                Length(less.wrapping_sub(n as i64))
            }
            (Alu::Sub, Length(less), Number(n)) => Length(less.wrapping_add(n as i64)),
            (Alu::Xor, Sum, Number(0xffff)) => Sum,
            (Alu::OnesAdd, Sum, other) | (Alu::OnesAdd, other, Sum) if other.is_same() => Sum,
            (Alu::And, Differs(bits), Number(n)) | (Alu::And, Number(n), Differs(bits)) => {
                if bits & n == 0 {
                    Same
                } else {
                    Differs(bits & n)
                }
            }
            (Alu::Shr | Alu::Shl, Differs(bits), Number(_)) => Known::compute(how, Number(bits), b).bits(),
            _ if a.is_same() && b.is_same() => Same,
            _ => Differs(u64::MAX),
        }
    }

    /// Bits that differ, of a number that says which.
    pub fn bits(self) -> Known {
        match self {
            Number(0) => Same,
            Number(bits) => Differs(bits),
            other => other,
        }
    }
}
