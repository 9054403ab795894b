//! A port of a card of today: a ring for each core and direction, descriptors fetched ahead, frames reported several at a time.

use super::machine::Card;
use std::collections::VecDeque;

/// The number of a frame inside.
pub type Inside = u32;

/// What a card does on its link: the number of a packet says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Writes a frame.
    Received,
    /// Reports frames that it wrote.
    ReportReceived,
    /// Fetches descriptors for reception.
    FetchReceive,
    /// Fetches descriptors for transmission.
    FetchTransmit,
    /// Reads a frame.
    Transmit,
    /// Reports frames that left.
    ReportSent,
    /// Is told of descriptors for transmission, or of buffers.
    Doorbell,
}

const ALL: [What; 7] = [
    What::Received,
    What::ReportReceived,
    What::FetchReceive,
    What::FetchTransmit,
    What::Transmit,
    What::ReportSent,
    What::Doorbell,
];

/// Something that a port does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// What.
    pub what: What,
    /// Which port.
    pub port: usize,
    /// Of which core's ring.
    pub core: usize,
    /// A frame, or how many descriptors.
    pub value: u32,
}

impl Job {
    /// As the number of a packet.
    pub fn number(self) -> u64 {
        (self.what as u64) << 56 | (self.port as u64) << 48 | (self.core as u64) << 32 | u64::from(self.value)
    }

    /// Of the number of a packet.
    pub fn of(number: u64) -> Job {
        Job {
            what: ALL[(number >> 56) as usize % ALL.len()],
            port: (number >> 48 & 0xff) as usize,
            core: (number >> 32 & 0xffff) as usize,
            value: number as u32,
        }
    }
}

/// The rings of a core on a port.
#[derive(Clone, Debug, Default)]
pub struct Rings {
    /// Buffers that the card may receive into, and of how many it has the descriptors.
    pub given: VecDeque<u32>,
    pub given_known: usize,
    pub fetching_given: bool,
    /// Frames in memory whose report has not arrived, and of how many it is under way.
    pub unreported: VecDeque<Inside>,
    pub reporting: u32,
    /// Frames that the core may take.
    pub ready: VecDeque<Inside>,
    /// Frames to send that the core has not told the card of.
    pub untold: VecDeque<Inside>,
    /// Frames that the card may read, and of how many it has the descriptors.
    pub posted: VecDeque<Inside>,
    pub posted_known: usize,
    pub fetching_posted: bool,
    /// Frames that left and are not reported.
    pub unreported_sent: u32,
    /// Buffers of frames that left, for the core to take back: first those that are not reported.
    pub sent: VecDeque<u32>,
    /// How many of them are reported.
    pub cleanable: usize,
    /// Descriptors in use for transmission.
    pub used: usize,
}

/// A port.
#[derive(Clone, Debug)]
pub struct Port {
    /// By core.
    pub rings: Vec<Rings>,
    /// Frames that came in and have not been written whole, bytes.
    pub fifo_bytes: u32,
    /// Of those, the ones that wait for a descriptor.
    pub fifo: VecDeque<(Inside, usize)>,
    /// Frames that were asked for or are there to be sent, in order, and their bytes.
    pub sending: VecDeque<Inside>,
    pub sending_bytes: u32,
    pub wire_busy: bool,
    /// The ring that is asked next for a frame to send.
    pub next: usize,
}

impl Port {
    /// A port with empty rings.
    pub fn new(cores: usize) -> Port {
        Port {
            rings: vec![Rings::default(); cores],
            fifo_bytes: 0,
            fifo: VecDeque::new(),
            sending: VecDeque::new(),
            sending_bytes: 0,
            wire_busy: false,
            next: 0,
        }
    }

    /// How many descriptors for reception it is to fetch of a ring now, if any.
    pub fn to_fetch_given(&self, core: usize, card: &Card) -> Option<u32> {
        let rings = &self.rings[core];
        fetch(rings.given.len(), rings.given_known, rings.fetching_given, card)
    }

    /// The same for transmission.
    pub fn to_fetch_posted(&self, core: usize, card: &Card) -> Option<u32> {
        let rings = &self.rings[core];
        fetch(rings.posted.len(), rings.posted_known, rings.fetching_posted, card)
    }
}

/// A card fetches when it has less than it fetches at a time.
fn fetch(there: usize, known: usize, fetching: bool, card: &Card) -> Option<u32> {
    let most = card.fetch.value as usize;
    let n = (there - known).min(most);
    (!fetching && known < most && n > 0).then_some(n as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_what_its_number_says() {
        for (n, what) in ALL.into_iter().enumerate() {
            let job = Job { what, port: 63, core: 255, value: u32::MAX - n as u32 };
            assert_eq!(Job::of(job.number()), job);
        }
    }
}
