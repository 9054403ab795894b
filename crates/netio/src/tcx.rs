//! Ports at tcx: a program in the kernel's stack forwards, and what it does not forward is the kernel's, or comes here.
//!
//! This is for virtual interfaces, where packets are longer than a wire's and have no checksums yet: the program works on the
//! stack's own packets and harms neither ([`crate::front::Place`]). Where ports bring luggage
//! ([`Front::brings_luggage`]) all that the program does not forward comes by a TAP of the port's own
//! ([`crate::parcel`]), whose device has the kernel cut super-packets and finish checksums. If that is set down it is set up again, and
//! without it the port is as if its own device were gone. Elsewhere nothing is received. What is to leave by such a port is sent by
//! a packet socket.

use crate::attachment::{Attachment, Followed, Held, Link};
use crate::completion::Completion;
use crate::device_counters::DeviceCounters;
use crate::front::{Front, is_of_a_front};
use crate::interface::{Interface, PromiscuousGuard};
use crate::link::LinkEvents;
use crate::offload::OffloadGuard;
use crate::port::{Capabilities, Events, Port, Queue, Rx, Tx};
use crate::statistics::{Statistic, Statistics};
use crate::{Error, ErrorKind, Result, afpacket, afxdp, parcel, tap};
use causeway_bpf::{TcxSide, tcx_programs};
use causeway_packet::{Batch, Packet, Receiver, pool};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};

/// Opens the interface `name` of the calling thread's network namespace behind `front`, with `queues` queues. If there can be no
/// program at tcx that takes packets, it is opened over AF_XDP instead, and its mode says why.
///
/// # Errors
/// One line each, with what to do: missing privileges, no such interface, one without Ethernet headers whose packets were to come
/// here, or what AF_XDP says.
pub fn open(name: &str, queues: usize, promiscuous: bool, front: &Arc<Front>) -> Result<Port> {
    let instead = |why: &str| {
        let options = afxdp::Options { promiscuous, ..afxdp::Options::default() };
        let port = afxdp::open(name, &options, front)?;
        Ok(Port { mode: format!("{}; not at tcx: {why}", port.mode), ..port })
    };
    let interface = Interface::open(name)?;
    if !front.has_room_at_tcx() {
        return instead("nothing is to run in the driver");
    }
    if !front.brings_luggage() {
        // What it takes, and whether that has Ethernet headers, is said by whoever decides for the port.
        let claim = front.claim_at_tcx(interface.index, Some(interface.mac))?;
        let halves = (0..queues.max(1)).map(|_| None).collect();
        let mode = "tcx: forwarded in the stack, or left to the kernel";
        return attach(interface, Parts { claim, promiscuous: None, above: None, halves, mode });
    }
    if !interface.ethernet {
        let what = format!("{name}: its packets have no Ethernet headers, and a graph receives frames");
        return Err(Error::new(ErrorKind::System, what).help("leave it to the kernel, or use `causeway up`"));
    }
    // It would have the packets first, and all of them.
    let others = tcx_programs(interface.index, TcxSide::Ingress).unwrap_or_default();
    if others.into_iter().any(is_of_a_front) {
        let what = format!("{name}: another router takes its packets");
        return Err(Error::new(ErrorKind::Busy, what).help("stop it (`causeway read list` names routers)"));
    }
    interface.check_mtu(|_| Packet::HEADROOM as u32 + parcel::MOST, pool::MOST_FRAME)?;
    let (tap, halves) = tap::open_above("above%d", queues)?;
    let claim = front.claim_all_at_tcx(interface.index, tap.index)?;
    let parts = Parts {
        claim,
        promiscuous: promiscuous.then(|| PromiscuousGuard::new(&interface)).transpose()?,
        above: Some(tap),
        halves: halves.into_iter().map(Some).collect(),
        mode: "tcx: in the stack, and from there by a TAP",
    };
    match attach(interface, parts) {
        Err(e) if e.kind() == ErrorKind::Unsupported => instead(&e.to_string()),
        attached => attached,
    }
}

/// What a port is made of.
struct Parts {
    claim: crate::front::Claim,
    promiscuous: Option<PromiscuousGuard>,
    /// The device that packets come by.
    above: Option<Interface>,
    /// For each queue what receives, if anything does.
    halves: Vec<Option<Box<dyn Rx>>>,
    mode: &'static str,
}

fn attach(interface: Interface, parts: Parts) -> Result<Port> {
    let Parts { claim, promiscuous, above, halves, mode } = parts;
    let link = Link::Tcx(claim.attach_at_tcx(&interface.name)?);
    // None is turned off.
    let offloads = OffloadGuard::turn_off(&interface, &[])?;
    let held = Held { _link: link, claim, _promiscuous: promiscuous };
    let attachment = Attachment::new(held, offloads, DeviceCounters::new(&interface));
    let needs = above.as_ref().map(|above| above.index);
    let above = Arc::new(above.as_ref().map(DeviceCounters::new));
    let queue = |(number, half)| -> Result<Queue> {
        let tx = Box::new(Sender { tx: afpacket::sender(&interface)?, attachment: attachment.clone() });
        let above = (number == 0).then(|| above.clone());
        Ok(Queue { rx: Box::new(Receiving { attachment: attachment.clone(), half, above }), tx })
    };
    let queues = halves.into_iter().enumerate().map(queue).collect::<Result<Vec<_>>>()?;
    let weak = Arc::downgrade(&attachment);
    let followed = |link| -> Box<dyn Events> { Box::new(Followed { link, attachment: weak }) };
    let events = LinkEvents::open_with(&interface, needs).map(followed);
    let mode = format!("{mode}{}", interface.down_note());
    let capabilities =
        Capabilities { tx_timestamps: None, queues: queues.len() as u32, ..Capabilities::default() };
    let Interface { name, index, mac, mtu, .. } = interface;
    Ok(Port { name, mac, mtu, ifindex: index, mode, generic: false, capabilities, events, queues })
}

/// The receiving half, which may have nothing to receive.
struct Receiving {
    attachment: Arc<Attachment>,
    half: Option<Box<dyn Rx>>,
    /// For the queue that tells what is counted for all together.
    above: Option<Arc<Option<DeviceCounters>>>,
}

impl Drop for Receiving {
    /// What receives goes behind the program, which would have nobody to send to, even if others still transmit.
    fn drop(&mut self) {
        if self.half.is_some() {
            self.attachment.let_go();
        }
    }
}

impl Receiver for Receiving {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        self.half.as_mut().is_some_and(|half| half.poll(batch, budget))
    }

    fn waiting(&mut self) -> usize {
        self.half.as_mut().map_or(0, |half| half.waiting())
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.half.as_ref().map_or_else(Vec::new, |half| half.fds())
    }
}

impl Rx for Receiving {
    fn statistics(&self) -> Arc<dyn Statistics> {
        let attachment = if self.above.is_some() { Arc::downgrade(&self.attachment) } else { Weak::new() };
        let half = self.half.as_ref().map(|half| half.statistics());
        Arc::new(Counted { half, attachment, above: self.above.clone() })
    }
}

/// What was received, and what the program decided, without keeping it where it is.
struct Counted {
    half: Option<Arc<dyn Statistics>>,
    attachment: Weak<Attachment>,
    above: Option<Arc<Option<DeviceCounters>>>,
}

impl Statistics for Counted {
    fn list(&self) -> Vec<Statistic> {
        let mut list = self.half.as_ref().map_or_else(Vec::new, |half| half.list());
        let above = self.above.as_deref().and_then(Option::as_ref);
        // What the device that packets come by was to transmit, and nobody has read in time.
        let lost = above.into_iter().flat_map(DeviceCounters::transmitted);
        let lost =
            lost.filter(|(name, _)| *name == "device_tx_dropped").map(|(_, n)| ("rx_drop_ring_full", n));
        list.extend(lost);
        let Some(attachment) = self.attachment.upgrade() else { return list };
        list.extend(attachment.verdicts());
        list.extend(attachment.counters.received());
        list
    }
}

/// The transmitting half, which keeps the program where it is if nothing receives.
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

#[cfg(test)]
mod tests;
