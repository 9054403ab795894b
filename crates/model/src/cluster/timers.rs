//! How long it takes until a failure is noticed: timers of the protocols, with the jitter that their daemons give them.

use fastrand::Rng;

/// What the front takes from knowing to forwarding another way, milliseconds: what `make cluster` found between 2 and 15.
pub const CHANGE_MS: f64 = 5.0;
/// The least part of an interval after which the next packet is sent where that is up to a quarter earlier, at random (RFC
/// 5880, 6.8.7; RFC 4271, section 10, for keepalives). BIRD does both; FRR does the first, and sends keepalives at the whole
/// interval (`bgp_keepalives.c`, which has one that is due in less than 100 ms go with others; that is left out).
const EARLIEST: f64 = 0.75;
/// A keepalive is sent three times in a hold time (RFC 4271, 4.4).
const KEEPALIVES: f64 = 3.0;

/// Who notices that a node is gone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    /// The port in front has no carrier.
    Carrier,
    /// BFD: nothing came for `multiplier` intervals.
    Bfd {
        /// Milliseconds.
        interval: f64,
        /// How many.
        multiplier: f64,
    },
    /// BGP's hold timer.
    Hold {
        /// Milliseconds.
        time: f64,
        /// Whether keepalives are sent up to a quarter earlier, at random.
        jitter: bool,
    },
    /// It says so itself, and goes on until it is heard.
    Drained,
}

impl Notice {
    /// BFD as `conf/cluster` has it, which is FRR's default.
    pub const STATED: Notice = Notice::Bfd { interval: 300.0, multiplier: 3.0 };
    /// BIRD's default.
    pub const BIRD: Notice = Notice::Bfd { interval: 100.0, multiplier: 5.0 };
    /// BGP's hold times by default: BIRD's, FRR's.
    pub const HOLD: [Notice; 2] =
        [Notice::Hold { time: 240_000.0, jitter: true }, Notice::Hold { time: 180_000.0, jitter: false }];

    /// For people.
    pub fn name(self) -> String {
        match self {
            Notice::Carrier => "cable pulled".to_owned(),
            Notice::Bfd { interval, multiplier } => format!("hangs, BFD {multiplier} x {interval} ms"),
            Notice::Hold { time, .. } => format!("hangs, hold time {} s", time / 1e3),
            Notice::Drained => "drained".to_owned(),
        }
    }

    /// The least and the most time from the failure until it is noticed, milliseconds.
    pub fn bounds_ms(self) -> (f64, f64) {
        match self {
            Notice::Carrier | Notice::Drained => (0.0, 0.0),
            Notice::Bfd { interval, multiplier } => ((multiplier - 1.0) * interval, multiplier * interval),
            Notice::Hold { time, .. } => (time - time / KEEPALIVES, time),
        }
    }

    /// A time from the failure until it is noticed, milliseconds: the node's last packet came some time before, and the other
    /// side's timer runs from then on (RFC 5880, 6.8.4).
    pub fn after_ms(self, rng: &mut Rng) -> f64 {
        let (interval, limit, jitter) = match self {
            Notice::Carrier | Notice::Drained => return 0.0,
            Notice::Bfd { interval, multiplier } => (interval, multiplier * interval, true),
            Notice::Hold { time, jitter } => (time / KEEPALIVES, time, jitter),
        };
        let earliest = if jitter { EARLIEST } else { 1.0 };
        // A moment at random is in a long interval more often than in a short one.
        let gap = loop {
            let gap = interval * (earliest + (1.0 - earliest) * rng.f64());
            if rng.f64() * interval < gap {
                break gap;
            }
        };
        limit - gap * rng.f64()
    }
}
