//! Sending through sockets: what the kernel has no room for waits, and the worker does not.

use causeway_engine::prelude::*;
use std::collections::VecDeque;

/// Packets that wait for room, of those that are pushed.
const WAITING: usize = 256;
/// How long until the kernel is asked again.
const RETRY_NS: u64 = 1_000_000;
const RETRY: u32 = 0;
/// How long until it is seen again whether anybody has connected.
const CONNECT_NS: u64 = 10_000_000;

drop_reasons! {
    /// Why a packet is not sent.
    pub(super) enum Reason {
        Full = "full", "256 packets wait already for room in the socket";
        NoPeer = "no-peer", "nobody has connected, or has sent a datagram that could be answered";
        Refused = "refused", "the kernel refused it";
        Runt = "runt", "it is shorter than an IPv4 header";
        Denied = "denied", "a datagram from an address that is not allowed";
    }
}

/// What became of a packet.
pub(super) enum Sent {
    Done,
    /// There is no room for what is left of it.
    Blocked,
    Never(Reason),
}

/// Whether there is anybody to send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    There,
    /// Somebody may come.
    Awaited,
    Never,
}

/// The way out of an element.
pub(super) struct Outlet {
    waiting: VecDeque<Packet>,
    pulled: bool,
}

impl Outlet {
    pub fn new() -> Outlet {
        Outlet { waiting: VecDeque::with_capacity(WAITING), pulled: false }
    }

    /// To be called when the element is initialised.
    pub fn start(&mut self, cx: &mut Cx<'_>) {
        self.pulled = cx.pulls_from(0);
        if self.pulled {
            cx.wake();
        }
    }

    /// Sends what waits; whether all of it has gone.
    fn flush(&mut self, send: &mut impl FnMut(&mut Packet) -> Sent, cx: &mut Cx<'_>) -> bool {
        while let Some(mut packet) = self.waiting.pop_front() {
            match send(&mut packet) {
                Sent::Done => {}
                Sent::Never(reason) => cx.drop(reason, packet),
                Sent::Blocked => {
                    self.waiting.push_front(packet);
                    let when_ns = cx.now_ns() + RETRY_NS;
                    cx.set_timer(RETRY, when_ns);
                    return false;
                }
            }
        }
        true
    }

    /// Sends pushed packets.
    pub fn push(&mut self, batch: &mut Batch, mut send: impl FnMut(&mut Packet) -> Sent, cx: &mut Cx<'_>) {
        for packet in batch.drain() {
            if self.waiting.len() < WAITING {
                self.waiting.push_back(packet);
            } else {
                cx.drop(Reason::Full, packet);
            }
            if self.waiting.len() == 1 {
                self.flush(&mut send, cx);
            }
        }
    }

    /// Sends what waits, and then what it pulls if there is anybody to send it to: the element's task.
    pub fn run(&mut self, peer: Peer, mut send: impl FnMut(&mut Packet) -> Sent, cx: &mut Cx<'_>) -> Run {
        if !self.flush(&mut send, cx) || !self.pulled || peer == Peer::Never {
            return Run::Sleep;
        }
        if peer == Peer::Awaited {
            let when_ns = cx.now_ns() + CONNECT_NS;
            cx.set_timer(RETRY, when_ns);
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        cx.pull(0, WAITING, &mut batch);
        let pulled = batch.len();
        self.waiting.extend(batch.drain());
        cx.return_batch(batch);
        match self.flush(&mut send, cx) {
            // The timer wakes the task.
            false => Run::Sleep,
            true if pulled > 0 => Run::Worked,
            true if cx.packets_upstream(0) => Run::Idle,
            true => Run::Sleep,
        }
    }

    /// Takes over what waits.
    pub fn go_on(&mut self, old: &mut Outlet, cx: &mut Cx<'_>) {
        self.waiting.append(&mut old.waiting);
        if !self.waiting.is_empty() {
            cx.wake();
        }
    }

    pub fn held(&self) -> usize {
        self.waiting.len()
    }
}
