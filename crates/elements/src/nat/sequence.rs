//! How far sequence numbers of a TCP connection have shifted because something in it got longer or shorter.

/// Shifts of one direction that are remembered apart: what was sent before the last ones may come again.
const SHIFTS: usize = 4;
/// Bytes behind a shift at which nothing from before it comes any more.
const FORGOTTEN: u32 = 1 << 30;

/// From sequence number `from` on, numbers are `by` more than the sender's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shift {
    from: u32,
    by: i32,
}

/// The shifts of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shifts {
    /// Before the first of the shifts.
    base: i32,
    shifts: [Shift; SHIFTS],
    len: usize,
}

/// Whether `a` is `b` or comes after it (RFC 9293 §3.4).
fn reached(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
}

impl Shifts {
    /// From `from` on, which is not before the last shift, numbers are `by` more than they would be. False if it is
    /// before that.
    pub fn add(&mut self, from: u32, by: i32) -> bool {
        let total = self.latest().wrapping_add(by);
        match self.shifts[..self.len].last_mut() {
            Some(last) if last.from == from => {
                last.by = total;
                return true;
            }
            Some(last) if !reached(from, last.from) => return false,
            _ => {}
        }
        if self.len == SHIFTS {
            self.base = self.shifts[0].by;
            self.shifts.rotate_left(1);
            self.len -= 1;
        }
        self.shifts[self.len] = Shift { from, by: total };
        self.len += 1;
        true
    }

    /// The shift of what is sent now.
    pub fn latest(&self) -> i32 {
        self.shifts[..self.len].last().map_or(self.base, |s| s.by)
    }

    /// Forgets the shifts that lie far behind `sequence`.
    pub fn pass(&mut self, sequence: u32) {
        if let Some(last) = self.shifts[..self.len].last().copied()
            && reached(sequence, last.from.wrapping_add(FORGOTTEN))
            && !reached(sequence, last.from.wrapping_add(2 * FORGOTTEN))
        {
            *self = Shifts { base: last.by, ..Shifts::default() };
        }
    }

    /// The number that stands for the sender's `sequence`.
    pub fn shift(&self, sequence: u32) -> u32 {
        let shift = self.shifts[..self.len].iter().rev().find(|s| reached(sequence, s.from));
        sequence.wrapping_add_signed(shift.map_or(self.base, |s| s.by))
    }

    /// The sender's number for which `shifted` stands, that the other side acknowledges.
    pub fn unshift(&self, shifted: u32) -> u32 {
        let own = |by: i32| shifted.wrapping_sub(by as u32);
        let shift = self.shifts[..self.len].iter().rev().find(|s| reached(own(s.by), s.from));
        own(shift.map_or(self.base, |s| s.by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_shift_from_where_they_were_told_to() {
        let mut s = Shifts::default();
        assert_eq!((s.shift(5), s.unshift(5), s.latest()), (5, 5, 0));
        assert!(s.add(100, 3) && s.add(200, -5));
        assert_eq!([99, 100, 199, 200, 300].map(|n| s.shift(n)), [99, 103, 202, 198, 298]);
        // 202 stands for two numbers, of which the later one is taken.
        assert_eq!([99, 103, 202, 198, 298].map(|n| s.unshift(n)), [99, 100, 204, 200, 300]);
        assert_eq!(s.latest(), -2);
        assert!(!s.add(150, 9), "before the last");
        assert!(s.add(200, 1), "at the last: together");
        assert_eq!((s.latest(), s.shift(201)), (-1, 200));
    }

    #[test]
    fn the_oldest_shifts_are_forgotten_not_the_sum() {
        let mut s = Shifts::default();
        (0..6).for_each(|i| assert!(s.add(i * 10, 1)));
        assert_eq!((s.shift(1_000), s.shift(50), s.shift(25)), (1_006, 56, 28));
        let far = 50 + FORGOTTEN;
        s.pass(far);
        assert_eq!((s.shift(25), s.shift(far), s.latest()), (31, far + 6, 6));
    }

    #[test]
    fn numbers_wrap() {
        let mut s = Shifts::default();
        assert!(s.add(u32::MAX - 1, 10));
        assert_eq!(s.shift(u32::MAX), 9);
        assert_eq!(s.unshift(9), u32::MAX);
        assert_eq!(s.shift(u32::MAX - 5), u32::MAX - 5);
    }
}
