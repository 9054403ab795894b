//! What packets come from.

use crate::Batch;
use std::os::fd::BorrowedFd;

/// A source of packets from outside: a queue of a port, or all queues that one element receives from.
///
/// Whoever receives polls; when nothing comes any more he arms, and sleeps until one of the descriptors is readable, or
/// not at all if arming said that packets wait. So none is forgotten, whenever it comes: before the source is armed,
/// arming tells of it; afterwards a descriptor does.
pub trait Receiver {
    /// Appends at most `budget` packets, and no more than fit, to `batch`; never blocks. `true`: more may wait, so that
    /// it pays to poll again.
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool;

    /// From now on, a packet that comes makes one of [`Receiver::fds`] readable. `true`: packets may wait already, and
    /// nobody will be woken for them. An armed source may be armed again, to ask just that; it takes no system call
    /// where it can be avoided.
    fn arm(&mut self) -> bool {
        self.waiting() > 0
    }

    /// Lets the source be silent until it is armed again.
    fn disarm(&mut self) {}

    /// Packets that wait; a lower bound above zero is enough where the source does not know better. Only a mechanism that
    /// waits for several packets needs the number.
    fn waiting(&mut self) -> usize;

    /// Descriptors that become readable when packets come; none where waiting is not possible.
    fn fds(&self) -> Vec<BorrowedFd<'_>>;
}
