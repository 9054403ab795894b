//! What ports are offered: a load, a frame size and a mix of destinations and classes for each.

/// Bytes of preamble, start delimiter and gap around a frame (IEEE 802.3 clauses 3 and 4.2).
pub const OVERHEAD_BYTES: u64 = 20;

/// When frames follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// At equal distances, as a router tester sends.
    Exact,
    /// At exponentially distributed distances, never closer than the line allows.
    Poisson,
}

/// What one port is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The port.
    pub port: u8,
    /// Share of the line rate, above 0 and up to 1; preamble and gap count.
    pub load: f64,
    /// Bytes with check sequence, 64 to 1518.
    pub frame_bytes: u16,
    /// Destination networks, taken in turn; at least one.
    pub dests: Vec<u8>,
    /// Share of the high class; spread evenly.
    pub high_share: f64,
    /// The spacing.
    pub spacing: Spacing,
    /// The first frame's time.
    pub start_ns: u64,
}

impl Source {
    /// At load 1 and at exact distances: 64-byte frames of the low class.
    pub fn full(port: u8, dests: &[u8]) -> Source {
        Source {
            port,
            load: 1.0,
            frame_bytes: 64,
            dests: dests.to_vec(),
            high_share: 0.0,
            spacing: Spacing::Exact,
            // Not all ports at once: equal phases would favour nobody, but would be the one case in millions.
            start_ns: u64::from(port) * 136,
        }
    }
}

/// Every port sends at line rate to all others in turn.
pub fn mesh(cards: u8, frame_bytes: u16) -> Vec<Source> {
    (0..cards).map(|port| Source { frame_bytes, ..Source::full(port, &others(port, cards)) }).collect()
}

/// The other ports, beginning with the next one, so that no output is everybody's first.
fn others(port: u8, cards: u8) -> Vec<u8> {
    (1..cards).map(|k| (port + k) % cards).collect()
}

/// A frame that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The network it is for.
    pub dest: u8,
    /// Whether it is of the high class.
    pub high: bool,
}

/// Says when a [`Source`] sends which frame.
#[derive(Clone, Debug)]
pub struct Generator {
    source: Source,
    random: u64,
    next_ns: f64,
    period_ns: f64,
    turn: usize,
    high_credit: f64,
    high_now: bool,
}

impl Generator {
    /// A generator; the seed matters for random spacing only.
    pub fn new(source: Source, seed: u64) -> Self {
        let line_bytes = u64::from(source.frame_bytes) + OVERHEAD_BYTES;
        let seed = seed ^ u64::from(source.port) << 32;
        Self {
            period_ns: (line_bytes * 8) as f64 / source.load,
            next_ns: source.start_ns as f64,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            source,
            turn: 0,
            high_credit: 0.5,
            high_now: false,
        }
    }

    /// What is sent.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The next frame, if it is due; the caller sends it now.
    pub fn due(&mut self, now_ns: u64) -> Option<Due> {
        if self.next_ns > now_ns as f64 {
            return None;
        }
        self.next_ns += match self.source.spacing {
            Spacing::Exact => self.period_ns,
            Spacing::Poisson => -(1.0 - self.uniform()).ln() * self.period_ns,
        };
        let dest = self.source.dests[self.turn % self.source.dests.len()];
        // The class changes after a whole turn of destinations, so that every destination sees the same mix.
        if self.turn.is_multiple_of(self.source.dests.len()) {
            self.high_credit += self.source.high_share;
            self.high_now = self.high_credit >= 1.0;
            self.high_credit -= f64::from(u8::from(self.high_now));
        }
        self.turn += 1;
        Some(Due { dest, high: self.high_now })
    }

    /// A number from 0 to below 1 (xorshift64*, Vigna 2016).
    fn uniform(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let bits = self.random.wrapping_mul(0x2545_f491_4f6c_dd1d);
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }
}
