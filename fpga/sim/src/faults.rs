//! What can go wrong around a card: the testbed does it at the time that it is told.

use causeway_nic_driver::registers::Write;

use crate::card::Edges;

/// A fault, or the end of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The card loses the bus, in both directions, wherever a sequence is.
    Unplug(u8),
    /// It is back, as it was.
    Plug(u8),
    /// Resets are asserted, by the clock that each belongs to.
    Reset(u8, Edges),
    /// They end.
    Release(u8),
    /// The driver sets the card up anew, as after its reset.
    SetUp(u8),
    /// The card's receive clock stands: no link.
    StopReceiveClock(u8),
    /// It runs again.
    StartReceiveClock(u8),
    /// The card gets no grant: it is slow.
    Starve(u8),
    /// It gets grants again.
    Feed(u8),
    /// The host answers so many reads not at all.
    IgnoreReads(u32),
    /// The host answers so many reads after the card has given them up.
    AnswerLate(u32),
    /// Of so many address, attribute and data words on the bus from now on, these bits turn over; parity does not know.
    CorruptWords(u32, u64),
    /// The driver writes a register.
    Write(u8, Write),
    /// The bus overhead changes: faster or slower arbitration.
    BusExtraCycles(u64),
}

/// A fault and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// From the beginning of the simulation.
    pub at_ps: u64,
    /// What.
    pub fault: Fault,
}
