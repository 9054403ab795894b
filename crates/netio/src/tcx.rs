//! Ports at tcx: a program in the kernel's stack forwards, and what it does not forward is the kernel's.
//!
//! This is for virtual interfaces, where packets are longer than a wire's and have no checksums yet: the program works on the
//! stack's own packets and harms neither ([`crate::front::Place`]). Nothing is received here. What comes to the graph from
//! other ports, and is to leave by such a port, is sent by a packet socket.

use crate::attachment::{Attachment, Followed, Held, Link};
use crate::completion::Completion;
use crate::device_counters::DeviceCounters;
use crate::front::Front;
use crate::interface::Interface;
use crate::link::LinkEvents;
use crate::offload::OffloadGuard;
use crate::port::{Capabilities, Events, Port, Queue, Rx, Tx};
use crate::statistics::{Statistic, Statistics};
use crate::{Result, afpacket};
use causeway_packet::{Batch, Receiver};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};

/// Opens the interface `name` of the calling thread's network namespace behind `front`, with `queues` queues.
///
/// # Errors
/// One line each, with what to do: missing privileges, no such interface, a kernel without tcx, a front without graphs.
pub fn open(name: &str, queues: usize, front: &Arc<Front>) -> Result<Port> {
    let interface = Interface::open(name)?;
    // What it takes, and whether that has Ethernet headers, is said by whoever decides for the port.
    let claim = front.claim_at_tcx(interface.index, Some(interface.mac))?;
    let link = Link::Tcx(claim.attach_at_tcx(name)?);
    // None is turned off.
    let offloads = OffloadGuard::turn_off(&interface, &[])?;
    let held = Held { _link: link, claim, _promiscuous: None };
    let attachment = Attachment::new(held, offloads, DeviceCounters::new(&interface));
    let queue = |number| -> Result<Queue> {
        let tx = Box::new(Sender { tx: afpacket::sender(&interface)?, attachment: attachment.clone() });
        Ok(Queue { rx: Box::new(Nothing { attachment: attachment.clone(), first: number == 0 }), tx })
    };
    let queues = (0..queues.max(1)).map(queue).collect::<Result<Vec<_>>>()?;
    let weak = Arc::downgrade(&attachment);
    let followed = |link| -> Box<dyn Events> { Box::new(Followed { link, attachment: weak }) };
    let events = LinkEvents::open(&interface).map(followed);
    let mode = format!("tcx: forwarded in the stack, or left to the kernel{}", interface.down_note());
    let capabilities =
        Capabilities { tx_timestamps: None, queues: queues.len() as u32, ..Capabilities::default() };
    let Interface { name, index, mac, mtu, .. } = interface;
    Ok(Port { name, mac, mtu, ifindex: index, mode, generic: false, capabilities, events, queues })
}

/// The receiving half, which has nothing to receive.
#[derive(Debug)]
struct Nothing {
    attachment: Arc<Attachment>,
    /// Whether it tells what is counted for all queues together.
    first: bool,
}

impl Receiver for Nothing {
    fn poll(&mut self, _: &mut Batch, _: usize) -> bool {
        false
    }

    fn waiting(&mut self) -> usize {
        0
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

impl Rx for Nothing {
    fn statistics(&self) -> Arc<dyn Statistics> {
        let attachment = if self.first { Arc::downgrade(&self.attachment) } else { Weak::new() };
        Arc::new(Verdicts(attachment))
    }
}

/// What the program decided, without keeping it where it is.
struct Verdicts(Weak<Attachment>);

impl Statistics for Verdicts {
    fn list(&self) -> Vec<Statistic> {
        let Some(attachment) = self.0.upgrade() else { return Vec::new() };
        let mut list = attachment.verdicts();
        list.extend(attachment.counters.received());
        list
    }
}

/// The transmitting half, which keeps the program where it is.
struct Sender {
    tx: Box<dyn Tx>,
    #[allow(dead_code, reason = "held until it is dropped")]
    attachment: Arc<Attachment>,
}

impl Tx for Sender {
    fn offer(&mut self, batch: &mut Batch) -> usize {
        self.tx.offer(batch)
    }

    fn flush(&mut self) {
        self.tx.flush();
    }

    fn completions(&mut self, sink: &mut dyn FnMut(Completion)) {
        self.tx.completions(sink);
    }

    fn statistics(&self) -> Arc<dyn Statistics> {
        self.tx.statistics()
    }
}
