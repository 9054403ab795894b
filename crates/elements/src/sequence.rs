//! Order, loss and duplication of one flow's frames, by their numbers.

/// Numbers below a flow's highest that are remembered one by one.
pub const WINDOW: u64 = 1 << 14;
const WORDS: usize = (WINDOW / 64) as usize;

/// What a frame is beside those of its flow that came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Its number is above all before.
    InOrder {
        /// How many numbers between the highest before and this one have not come.
        missing: u64,
    },
    /// It comes the first time, and one of a higher number came before.
    Reordered,
    /// It has come before.
    Duplicate,
    /// It is so far behind that nobody remembers.
    TooLate,
}

/// Frames of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// That were sent.
    pub sent: u64,
    /// That came in order.
    pub in_order: u64,
    /// That came the first time after one of a higher number.
    pub reordered: u64,
    /// That came again.
    pub duplicated: u64,
    /// That came too far behind to tell.
    pub too_late: u64,
    /// That were sent and came neither in order nor reordered.
    pub lost: u64,
    /// The most that a frame was behind the highest number before it, in numbers.
    pub farthest_behind: u64,
}

impl Counts {
    /// Frames that came, each counted once.
    pub fn received(&self) -> u64 {
        self.in_order + self.reordered
    }

    /// Those of both.
    #[must_use]
    pub fn plus(&self, other: &Counts) -> Counts {
        Counts {
            sent: self.sent + other.sent,
            in_order: self.in_order + other.in_order,
            reordered: self.reordered + other.reordered,
            duplicated: self.duplicated + other.duplicated,
            too_late: self.too_late + other.too_late,
            lost: self.lost + other.lost,
            farthest_behind: self.farthest_behind.max(other.farthest_behind),
        }
    }
}

/// The numbers of a flow that have come.
#[derive(Debug)]
pub struct Sequence {
    /// One above the highest so far.
    next: u64,
    /// A bit for each of the [`WINDOW`] numbers below `next`, at its place modulo the window: whether it has come.
    came: Box<[u64; WORDS]>,
    counts: Counts,
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence { next: 0, came: Box::new([0; WORDS]), counts: Counts::default() }
    }
}

impl Sequence {
    /// The frame of this number came.
    #[inline]
    pub fn arrived(&mut self, number: u32) -> Arrival {
        let number = u64::from(number);
        if number >= self.next {
            let missing = number - self.next;
            self.forget(self.next, missing);
            self.next = number + 1;
            self.mark(number);
            self.counts.in_order += 1;
            return Arrival::InOrder { missing };
        }
        let behind = self.next - 1 - number;
        if behind >= WINDOW {
            self.counts.too_late += 1;
            return Arrival::TooLate;
        }
        if self.mark(number) {
            self.counts.duplicated += 1;
            return Arrival::Duplicate;
        }
        self.counts.reordered += 1;
        self.counts.farthest_behind = self.counts.farthest_behind.max(behind);
        Arrival::Reordered
    }

    /// Sets the bit of a number; says whether it was set.
    #[inline]
    fn mark(&mut self, number: u64) -> bool {
        let place = number % WINDOW;
        let word = &mut self.came[(place / 64) as usize];
        let bit = 1 << (place % 64);
        let was = *word & bit != 0;
        *word |= bit;
        was
    }

    /// Clears the bits of `count` numbers from `first` on and of the one after them.
    #[inline]
    fn forget(&mut self, first: u64, count: u64) {
        if count >= WINDOW {
            self.came.fill(0);
            return;
        }
        for number in first..=first + count {
            let place = number % WINDOW;
            self.came[(place / 64) as usize] &= !(1 << (place % 64));
        }
    }

    /// Frames that came, each counted once.
    pub fn received(&self) -> u64 {
        self.counts.received()
    }

    /// One above the highest number that came.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The counts, of so many frames sent.
    pub fn counts(&self, sent: u64) -> Counts {
        Counts { sent, lost: sent.saturating_sub(self.received()), ..self.counts }
    }
}
