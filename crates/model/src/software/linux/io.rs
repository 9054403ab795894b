//! The ports as the mechanisms of reception ask them.

use super::Around;
use super::account::{Class, Drop};
use super::stack::{Hand, Stack};
use causeway_engine::reception::{BACKLOG, Ports, Received};
use causeway_packet::{Batch, Receiver};
use std::os::fd::BorrowedFd;

/// The interrupt of a port, as the mechanisms see it. That packets wait is told by the card alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub masked: bool,
}

impl Receiver for Line {
    fn poll(&mut self, _: &mut Batch, _: usize) -> bool {
        false
    }

    fn arm(&mut self) -> bool {
        self.masked = false;
        false
    }

    fn disarm(&mut self) {
        self.masked = true;
    }

    fn waiting(&mut self) -> usize {
        0
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

/// The ports, as the mechanisms ask them.
pub(super) struct Io<'a, 'b> {
    pub stack: &'a mut Stack,
    pub around: &'a mut Around<'b>,
}

impl Ports for Io<'_, '_> {
    fn receiver(&mut self, port: usize) -> Option<&mut dyn Receiver> {
        self.stack.lines.get_mut(port).map(|line| line as &mut dyn Receiver)
    }

    fn receive(&mut self, port: usize, _: usize) -> Received {
        let Io { stack, around } = self;
        if stack.turn != Some(port) || stack.emptied {
            stack.turn = Some(port);
            stack.emptied = false;
            stack.counters[port].polls += 1;
            stack.spent.add(Class::Scheduler, stack.costs.poll);
            stack.clean(port, around);
        }
        let Some(frame) = stack.take(port, around) else { return Received::default() };
        stack.route(&frame, around);
        stack.hand = Hand::Waits(frame, 0);
        let more = around.hardware.nics[port].waiting() > 0;
        stack.emptied = !more && stack.looks_again();
        Received { packets: 1, more: more || stack.emptied }
    }

    fn enqueue(&mut self, port: usize, _: usize, _: usize) -> Received {
        let Io { stack, around } = self;
        let Some(frame) = stack.take(port, around) else {
            stack.drained = true;
            return Received::default();
        };
        if stack.without.backlog {
            stack.route(&frame, around);
            stack.handled = Some(frame);
        } else if stack.backlog.len() < BACKLOG {
            stack.spent.add(Class::Receive, stack.costs.backlog);
            stack.backlog.push_back(frame);
        } else {
            stack.drop(frame, Drop::Backlog, around);
        }
        let more = around.hardware.nics[port].waiting() > 0;
        stack.drained = !more;
        Received { packets: 1, more }
    }

    fn forward(&mut self, max: usize) -> usize {
        let stack = &mut self.stack;
        // A handler asks in the middle of a packet: that one is still to be finished.
        if matches!(stack.hand, Hand::Empty)
            && let Some(frame) = stack.backlog.pop_front()
        {
            let before_ps = stack.spent.take();
            stack.route(&frame, self.around);
            stack.hand = Hand::Waits(frame, stack.spent.take());
            stack.spent.put_back(before_ps);
        }
        max
    }
}
