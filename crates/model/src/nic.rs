//! A network card: FIFOs, rings of descriptors in the host's memory, DMA both ways, and when it interrupts.
//!
//! The card works by three engines, each with one bus transaction at a time: one receives, one transmits, one reports what
//! was transmitted. What they do with a descriptor costs transactions as frames do (OSR §2.4). A card asks for a
//! transaction and is told when it ended; it knows no bus and no clock.

use crate::bus::Transfer;
use crate::event::Time;
use std::collections::VecDeque;

/// Bytes of a descriptor.
pub const DESCRIPTOR: u32 = 16;

/// A frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// In the order of arrivals.
    pub number: u64,
    /// The port that it came in by.
    pub from: usize,
    /// The port that it is to leave by.
    pub to: usize,
    /// Its length with checksum.
    pub bytes: u32,
    /// When it had come in, picoseconds.
    pub arrived_ps: Time,
    /// The buffer in memory that it is in.
    pub buffer: u32,
}

/// What a card is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicParameters {
    /// Bytes of frames that come in which the card holds.
    pub receive_fifo_bytes: u32,
    /// Bytes of frames that go out which the card holds.
    pub transmit_fifo_bytes: u32,
    /// Descriptors of the ring for reception.
    pub receive_ring: usize,
    /// Descriptors of the ring for transmission.
    pub transmit_ring: usize,
    /// Descriptors that the card fetches at a time, at most.
    pub fetch_descriptors: usize,
    /// Received frames that the card reports at a time, unless it has nothing else to do.
    pub report_descriptors: usize,
    /// Least picoseconds between two interrupts.
    pub throttle_ps: Time,
}

/// Which engine of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Receives.
    Receive,
    /// Transmits.
    Transmit,
    /// Reports what was transmitted.
    Report,
}

impl Engine {
    /// How many there are.
    pub const COUNT: usize = 3;

    /// All of them.
    pub const ALL: [Engine; Engine::COUNT] = [Engine::Receive, Engine::Transmit, Engine::Report];
}

/// What an engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Fetch(usize),
    Frame,
    Report(usize),
}

/// What the end of a transaction did to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Descriptors or a frame were read.
    Read,
    /// A frame was written to its buffer.
    Received(Frame),
    /// Descriptors of the ring for reception were written, from this one on.
    ReportedReceived(usize, usize),
    /// Descriptors of the ring for transmission were written, from this one on.
    ReportedSent(usize, usize),
}

/// Why a card drops a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overrun {
    /// The FIFO is full because the ring has no descriptor for it.
    Ring,
    /// The FIFO is full because the bus does not take it away in time.
    Fifo,
}

/// A card.
#[derive(Clone, Debug)]
pub struct Nic {
    parameters: NicParameters,
    operation: [Option<Operation>; Engine::COUNT],

    receive_fifo: VecDeque<Frame>,
    receive_fifo_bytes: u32,
    /// Buffers of descriptors that the driver gave and the card has not fetched.
    given: VecDeque<u32>,
    /// Of those that it has fetched.
    known: VecDeque<u32>,
    /// In memory, not yet reported.
    unreported: VecDeque<Frame>,
    /// Reported, for the driver to take.
    received: VecDeque<Frame>,
    /// Frames that were ever reported.
    reported: usize,

    /// On the ring for transmission, not yet read; of the first so many the card knows the descriptors.
    posted: VecDeque<Frame>,
    posted_known: usize,
    transmit_fifo: VecDeque<Frame>,
    transmit_fifo_bytes: u32,
    on_wire: Option<Frame>,
    /// Sent, not yet reported.
    sent: VecDeque<Frame>,
    /// Reported, for the driver to clean.
    completed: VecDeque<Frame>,
    /// Frames that were ever sent and reported.
    completions: usize,
    /// Descriptors in use for transmission.
    transmit_used: usize,

    /// Something happened since the driver last asked.
    cause: bool,
    /// The driver does not want to hear of it.
    pub masked: bool,
    quiet_until_ps: Time,
    /// Interrupts that the processor took.
    pub interrupts: u64,
}

impl Nic {
    /// A card without buffers, whose interrupts are masked.
    pub fn new(parameters: NicParameters) -> Nic {
        Nic {
            parameters,
            operation: [None; Engine::COUNT],
            receive_fifo: VecDeque::new(),
            receive_fifo_bytes: 0,
            given: VecDeque::new(),
            known: VecDeque::new(),
            unreported: VecDeque::new(),
            received: VecDeque::new(),
            reported: 0,
            posted: VecDeque::new(),
            posted_known: 0,
            transmit_fifo: VecDeque::new(),
            transmit_fifo_bytes: 0,
            on_wire: None,
            sent: VecDeque::new(),
            completed: VecDeque::new(),
            completions: 0,
            transmit_used: 0,
            cause: false,
            masked: true,
            quiet_until_ps: 0,
            interrupts: 0,
        }
    }

    /// What the card is.
    pub fn parameters(&self) -> &NicParameters {
        &self.parameters
    }

    /// A frame has come in.
    ///
    /// # Errors
    ///
    /// Why the card drops it.
    pub fn arrive(&mut self, frame: Frame) -> Result<(), Overrun> {
        if self.receive_fifo_bytes + frame.bytes > self.parameters.receive_fifo_bytes {
            let no_descriptors = self.given.is_empty() && self.known.is_empty();
            return Err(if no_descriptors { Overrun::Ring } else { Overrun::Fifo });
        }
        self.receive_fifo_bytes += frame.bytes;
        self.receive_fifo.push_back(frame);
        Ok(())
    }

    /// What an idle engine wants of the bus next.
    pub fn next(&mut self, engine: Engine) -> Option<(Transfer, u32)> {
        if self.operation[engine as usize].is_some() {
            return None;
        }
        let (operation, transfer, bytes) = match engine {
            Engine::Receive => self.next_receive(),
            Engine::Transmit => self.next_transmit(),
            Engine::Report => {
                let n = self.sent.len();
                (n > 0).then_some((Operation::Report(n), Transfer::Write, n as u32 * DESCRIPTOR))
            }
        }?;
        self.operation[engine as usize] = Some(operation);
        Some((transfer, bytes))
    }

    fn next_receive(&self) -> Option<(Operation, Transfer, u32)> {
        let p = &self.parameters;
        let can_receive = !self.receive_fifo.is_empty() && !self.known.is_empty();
        let unreported = self.unreported.len();
        if unreported >= p.report_descriptors || (unreported > 0 && !can_receive) {
            return Some((Operation::Report(unreported), Transfer::Write, unreported as u32 * DESCRIPTOR));
        }
        if self.known.is_empty() && !self.given.is_empty() {
            let n = self.given.len().min(p.fetch_descriptors);
            return Some((Operation::Fetch(n), Transfer::Read, n as u32 * DESCRIPTOR));
        }
        can_receive.then(|| (Operation::Frame, Transfer::Write, self.receive_fifo[0].bytes))
    }

    fn next_transmit(&self) -> Option<(Operation, Transfer, u32)> {
        let p = &self.parameters;
        if self.posted_known == 0 {
            let n = self.posted.len().min(p.fetch_descriptors);
            return (n > 0).then_some((Operation::Fetch(n), Transfer::Read, n as u32 * DESCRIPTOR));
        }
        let bytes = self.posted.front()?.bytes;
        let fits = self.transmit_fifo_bytes + bytes <= p.transmit_fifo_bytes;
        fits.then_some((Operation::Frame, Transfer::Read, bytes))
    }

    /// The transaction of an engine ended; says what it did to memory.
    pub fn end(&mut self, engine: Engine) -> Option<Effect> {
        let operation = self.operation[engine as usize].take()?;
        match (engine, operation) {
            (Engine::Receive, Operation::Fetch(n)) => {
                self.known.extend(self.given.drain(..n));
                Some(Effect::Read)
            }
            (Engine::Receive, Operation::Frame) => {
                let frame = Frame { buffer: self.known.pop_front()?, ..self.receive_fifo.pop_front()? };
                self.receive_fifo_bytes -= frame.bytes;
                self.unreported.push_back(frame);
                Some(Effect::Received(frame))
            }
            (Engine::Transmit, Operation::Fetch(n)) => {
                self.posted_known += n;
                Some(Effect::Read)
            }
            (Engine::Transmit, Operation::Frame) => {
                let frame = self.posted.pop_front()?;
                self.posted_known -= 1;
                self.transmit_fifo_bytes += frame.bytes;
                self.transmit_fifo.push_back(frame);
                Some(Effect::Read)
            }
            (Engine::Report, Operation::Report(n)) => {
                self.completed.extend(self.sent.drain(..n));
                let first = self.completions;
                self.completions += n;
                self.cause = true;
                Some(Effect::ReportedSent(first % self.parameters.transmit_ring, n))
            }
            (_, Operation::Report(n)) => {
                self.received.extend(self.unreported.drain(..n));
                let first = self.reported;
                self.reported += n;
                self.cause = true;
                Some(Effect::ReportedReceived(first % self.parameters.receive_ring, n))
            }
            (Engine::Report, _) => None,
        }
    }

    /// The frame that the wire takes next, if it is idle and there is one.
    pub fn begin_wire(&mut self) -> Option<Frame> {
        if self.on_wire.is_some() {
            return None;
        }
        self.on_wire = self.transmit_fifo.pop_front();
        self.on_wire
    }

    /// The frame on the wire has left.
    pub fn end_wire(&mut self) -> Option<Frame> {
        let frame = self.on_wire.take()?;
        self.transmit_fifo_bytes -= frame.bytes;
        self.sent.push_back(frame);
        Some(frame)
    }

    /// The driver gives a buffer to receive into.
    pub fn give(&mut self, buffer: u32) {
        self.given.push_back(buffer);
    }

    /// The driver takes a frame that was received.
    pub fn take(&mut self) -> Option<Frame> {
        self.received.pop_front()
    }

    /// The buffer of a frame that waits for the driver, behind so many others.
    pub fn peek(&self, place: usize) -> Option<u32> {
        self.received.get(place).map(|frame| frame.buffer)
    }

    /// Frames that were sent and wait for the driver.
    pub fn to_clean(&self) -> usize {
        self.completed.len()
    }

    /// Frames that wait for the driver.
    pub fn waiting(&self) -> usize {
        self.received.len()
    }

    /// The place on the ring of the frame that the driver takes next.
    pub fn receive_place(&self) -> usize {
        (self.reported - self.received.len()) % self.parameters.receive_ring
    }

    /// Whether the driver may post a frame.
    pub fn has_room(&self) -> bool {
        self.transmit_used < self.parameters.transmit_ring
    }

    /// The place of the descriptor that is posted next.
    pub fn next_place(&self) -> usize {
        (self.completions + self.transmit_used - self.completed.len()) % self.parameters.transmit_ring
    }

    /// The driver posts a frame; the place of its descriptor.
    ///
    /// # Panics
    ///
    /// If there is no room.
    pub fn post(&mut self, frame: Frame) -> usize {
        assert!(self.has_room(), "the driver looks before it posts");
        let place = self.next_place();
        self.transmit_used += 1;
        self.posted.push_back(frame);
        place
    }

    /// The driver cleans a descriptor: its frame, and its place.
    pub fn clean(&mut self) -> Option<(Frame, usize)> {
        let place = (self.completions - self.completed.len()) % self.parameters.transmit_ring;
        let frame = self.completed.pop_front()?;
        self.transmit_used -= 1;
        Some((frame, place))
    }

    /// When it interrupts, if nothing else happens: from then on until it is asked.
    pub fn interrupts_at(&self) -> Option<Time> {
        (self.cause && !self.masked).then_some(self.quiet_until_ps)
    }

    /// The processor takes the interrupt and asks for its cause, which is forgotten.
    pub fn acknowledge(&mut self, now_ps: Time) {
        self.cause = false;
        self.quiet_until_ps = now_ps + self.parameters.throttle_ps;
        self.interrupts += 1;
    }

    /// The frame that the card reads next.
    pub fn next_to_read(&self) -> Option<Frame> {
        self.posted.front().copied()
    }

    /// Frames that came in and are in the card or on the ring for reception.
    pub fn held_received(&self) -> usize {
        self.receive_fifo.len() + self.unreported.len() + self.received.len()
    }

    /// Frames that the driver posted and that have not left.
    pub fn held_to_send(&self) -> usize {
        self.posted.len() + self.transmit_fifo.len() + usize::from(self.on_wire.is_some())
    }
}

#[cfg(test)]
mod tests;
