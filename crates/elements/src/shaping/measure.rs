//! What shapers count by: packets, or their bytes.

use causeway_engine::value::{BytesPerSecond, Value};
use causeway_packet::Packet;
use std::fmt::Display;

/// What a rate is a rate of.
pub(super) trait Measure: Send + 'static {
    /// The rate as an argument.
    type Rate: Value + Display + Copy + Send;

    /// Whether rates are written with units.
    const HAS_UNITS: bool;

    /// The rate as a number a second.
    fn per_s(rate: Self::Rate) -> u64;

    /// What a packet counts.
    fn of(packet: &Packet) -> u64;
}

/// Packets a second.
pub(super) struct Packets;

impl Measure for Packets {
    type Rate = u32;
    const HAS_UNITS: bool = false;

    fn per_s(rate: u32) -> u64 {
        rate.into()
    }

    fn of(_packet: &Packet) -> u64 {
        1
    }
}

/// Bytes a second.
pub(super) struct Bytes;

impl Measure for Bytes {
    type Rate = BytesPerSecond;
    const HAS_UNITS: bool = true;

    fn per_s(rate: BytesPerSecond) -> u64 {
        rate.0
    }

    fn of(packet: &Packet) -> u64 {
        packet.len() as u64
    }
}
