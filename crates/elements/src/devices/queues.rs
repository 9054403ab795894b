//! The receiving halves that an element has, as one receiver.

use super::open_port::OpenPort;
use causeway_netio::Rx;
use causeway_packet::{Batch, Receiver};
use std::os::fd::BorrowedFd;

/// The receiving halves of a replica's queues.
#[derive(Default)]
pub(crate) struct Queues {
    halves: Vec<(usize, Box<dyn Rx>)>,
    /// Queue to look at first, so that none starves.
    next: usize,
}

impl Queues {
    pub fn is_empty(&self) -> bool {
        self.halves.is_empty()
    }

    /// Takes those of the replica's queues that nobody has.
    pub fn take(&mut self, port: &OpenPort, replica: (usize, usize)) {
        self.halves.extend(port.take_rx(replica));
    }

    /// Puts all back.
    pub fn put_back(&mut self, port: &OpenPort) {
        port.put_rx(self.halves.drain(..));
    }
}

impl Receiver for Queues {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        let n = self.halves.len();
        let (end, mut more) = (batch.len() + budget, false);
        for i in 0..n {
            // Those that there is nothing left for count as well: what is left there nobody knows.
            let left = end.saturating_sub(batch.len());
            more |= left == 0 || self.halves[(self.next + i) % n].1.poll(batch, left);
        }
        self.next = (self.next + 1) % n.max(1);
        more
    }

    fn arm(&mut self) -> bool {
        self.halves.iter_mut().fold(false, |waiting, (_, rx)| rx.arm() | waiting)
    }

    fn disarm(&mut self) {
        self.halves.iter_mut().for_each(|(_, rx)| rx.disarm());
    }

    fn waiting(&mut self) -> usize {
        self.halves.iter_mut().map(|(_, rx)| rx.waiting()).sum()
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.halves.iter().flat_map(|(_, rx)| rx.fds()).collect()
    }
}
