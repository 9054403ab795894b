//! The token buckets of RatedSplitter, RatedUnqueue and their kin: arguments, and who may pass.

use super::measure::Measure;
use crate::token_bucket::TokenBucket;
use causeway_engine::prelude::*;
use causeway_engine::value::{BytesPerSecond, Nanoseconds};

/// How long a bucket takes to fill, unless it is told otherwise.
const DURATION: Nanoseconds = Nanoseconds(20_000_000);
/// A bucket of bytes must hold so many for any packet to pass: more than the longest packet has. It holds so many more.
const LONGEST: u32 = 131_072;

/// Settings of a bucket.
pub(super) trait Limits: Settings + Configure + Send {
    /// What it counts.
    type Measure: Measure;

    /// Tokens a second.
    fn rate(&self) -> u64;

    /// BURST_DURATION, and BURST_SIZE or BURST_BYTES.
    fn burst(&self) -> (Option<Nanoseconds>, Option<u32>);

    /// Tokens that must be there for a packet to pass.
    const NEEDED: u32;
}

settings! {
    pub(super) struct PacketLimits {
        rate: u32 = required("RATE", "packets a second", "how many pass"), live("rate", "how many pass, packets a second");
        duration: Option<Nanoseconds> = keyword("BURST_DURATION", "seconds", "how long the rate may be saved up; default 20ms"), or(None);
        size: Option<u32> = keyword("BURST_SIZE", "packets", "how many packets may be saved up; instead of BURST_DURATION"), or(None);
    }
}

settings! {
    pub(super) struct ByteLimits {
        rate: BytesPerSecond = required("RATE", "bandwidth", "how much passes"), live("rate", "how much passes, as a bandwidth");
        duration: Option<Nanoseconds> = keyword("BURST_DURATION", "seconds", "how long the rate may be saved up; default 20ms"), or(None);
        size: Option<u32> = keyword("BURST_BYTES", "bytes", "how many bytes may be saved up; instead of BURST_DURATION"), or(None);
    }
}

impl Limits for PacketLimits {
    type Measure = super::measure::Packets;
    const NEEDED: u32 = 1;

    fn rate(&self) -> u64 {
        self.rate.into()
    }

    fn burst(&self) -> (Option<Nanoseconds>, Option<u32>) {
        (self.duration, self.size)
    }
}

impl Limits for ByteLimits {
    type Measure = super::measure::Bytes;
    const NEEDED: u32 = LONGEST;

    fn rate(&self) -> u64 {
        self.rate.0
    }

    fn burst(&self) -> (Option<Nanoseconds>, Option<u32>) {
        (self.duration, self.size)
    }
}

/// A bucket with its settings.
pub(super) struct Bucket<L> {
    pub limits: L,
    tokens: TokenBucket,
}

impl<L: Limits> Bucket<L> {
    /// Reads the arguments.
    pub fn configure(conf: &mut Conf<'_>) -> Self {
        let limits = L::configure(conf);
        if matches!(limits.burst(), (Some(_), Some(_))) {
            conf.error("cannot specify both BURST_DURATION and BURST_SIZE");
        }
        let (rate, depth) = measures(&limits);
        Bucket { limits, tokens: TokenBucket::in_ticks(rate, depth) }
    }

    /// The settings have changed.
    pub fn changed(&mut self) {
        let (rate, depth) = measures(&self.limits);
        self.tokens.set_rate_in_ticks(rate, depth);
    }

    /// Whether a packet may pass now.
    pub fn open(&mut self, now_ns: u64) -> bool {
        self.tokens.tokens(now_ns) >= u64::from(L::NEEDED)
    }

    /// A packet passes.
    pub fn take(&mut self, packet: &Packet) {
        self.tokens.take(L::Measure::of(packet));
    }

    /// When one may pass, if none does before; `None` if never.
    pub fn next_ns(&self) -> Option<u64> {
        self.tokens.when_ns(L::NEEDED.into())
    }
}

/// Tokens a second, and how many are saved up.
fn measures<L: Limits>(limits: &L) -> (u32, u32) {
    let most = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let rate = most(limits.rate());
    let (duration, size) = limits.burst();
    let milliseconds = duration.unwrap_or(DURATION).0 / 1_000_000;
    let saved = size.unwrap_or_else(|| most((u64::from(rate) * milliseconds) / 1_000));
    let room = if L::NEEDED > 1 { L::NEEDED } else { 0 };
    (rate, saved.saturating_add(room).max(1))
}
