//! The receiving devices of one worker under the reception mechanisms.

use crate::core::Core;
use crate::counters::{Counter, Counters};
use crate::measure::Unit;
use crate::reception::{Mechanism, PortCounters, Ports, Received, Reception};
use crate::waiter::Waiter;
use crate::work::Work;
use crate::worker::Worker;
use causeway_packet::{BATCH, Packet, Receiver};
use std::collections::VecDeque;
use std::io;

struct Device {
    node: usize,
    published: [Counter; 7],
}

/// The devices of one worker.
#[derive(Default)]
pub(crate) struct Devices {
    reception: Reception,
    devices: Vec<Device>,
    /// Packets between the interrupt handler and forwarding, with the device they came from.
    backlog: VecDeque<(usize, Packet)>,
}

/// [`Ports`] over the elements of a worker.
struct Elements<'a> {
    core: &'a mut Core,
    devices: &'a [Device],
    backlog: &'a mut VecDeque<(usize, Packet)>,
}

impl Devices {
    /// The devices among the elements of `core`; those that do not say how they want to be received from use
    /// `default`.
    pub fn new(core: &mut Core, counters: &mut Counters, default: Mechanism, budget: usize) -> Self {
        let mut reception = Reception::new(budget);
        let mut devices = Vec::new();
        for node in 0..core.nodes.len() {
            let n = &mut core.nodes[node];
            let Some(element) = &mut n.element else { continue };
            if element.receiver().is_none() {
                continue;
            }
            reception.add(element.mechanism().unwrap_or(default));
            let published =
                NAMES.map(|name| counters.add(core.worker, &n.name, &format!("rx.{name}"), Unit::None));
            devices.push(Device { node, published });
        }
        Devices { reception, devices, backlog: VecDeque::new() }
    }

    /// Sets reception going.
    pub fn start(&mut self, core: &mut Core) {
        let mut io = Elements { core, devices: &self.devices, backlog: &mut self.backlog };
        self.reception.start(&mut io);
    }

    /// Lets `waiter` wait for the devices' descriptors, and sets reception going.
    pub fn register(&mut self, core: &mut Core, waiter: &Waiter) -> io::Result<()> {
        let mut io = Elements { core, devices: &self.devices, backlog: &mut self.backlog };
        for port in 0..self.devices.len() {
            let fds = io.receiver(port).map_or(Vec::new(), |r| r.fds());
            fds.into_iter().try_for_each(|fd| waiter.add(fd, port))?;
        }
        self.start(core);
        Ok(())
    }

    /// Lets `waiter` forget the descriptors.
    pub fn unregister(&mut self, core: &mut Core, waiter: &Waiter) {
        let mut io = Elements { core, devices: &self.devices, backlog: &mut self.backlog };
        for port in 0..self.devices.len() {
            let fds = io.receiver(port).map_or(Vec::new(), |r| r.fds());
            fds.into_iter().for_each(|fd| waiter.remove(fd));
        }
    }

    /// Goes on where the devices of `old` were: what they counted, and what waits to be forwarded.
    pub fn take_over(&mut self, core: &mut Core, old: &mut Worker) {
        let key = |core: &Core, device: &Device| core.swap_key(device.node);
        let before: Vec<String> = old.devices.devices.iter().map(|d| key(&old.core, d)).collect();
        let now: Vec<String> = self.devices.iter().map(|d| key(core, d)).collect();
        let successor = |port: usize| now.iter().position(|k| *k == before[port]);
        for port in 0..before.len() {
            if let Some((to, counters)) = successor(port).zip(old.devices.reception.counters(port)) {
                self.reception.set_counters(to, *counters);
            }
        }
        let waiting = std::mem::take(&mut old.devices.backlog);
        for (port, packet) in waiting {
            match successor(port) {
                Some(to) => self.backlog.push_back((to, packet)),
                None => old.devices.backlog.push_back((port, packet)),
            }
        }
        self.reception.set_backlog(self.backlog.len());
        self.publish();
    }

    /// The descriptor with token `port` became readable.
    pub fn interrupt(&mut self, port: usize) {
        self.reception.interrupt(port);
    }

    /// One turn of reception, which takes at most `limit` packets; says whether it found work.
    pub fn run(&mut self, core: &mut Core, limit: usize) -> bool {
        if self.devices.is_empty() {
            return false;
        }
        let now_ns = core.clock.now_ns();
        let mut io = Elements { core, devices: &self.devices, backlog: &mut self.backlog };
        let (forwarded, more) = self.reception.run(&mut io, now_ns, limit);
        if forwarded > 0 {
            self.publish();
        }
        forwarded > 0 || more
    }

    /// From now on it is noted which devices are found empty.
    pub fn look_anew(&mut self) {
        self.reception.look_anew();
    }

    /// Whether each device was found empty since it was looked at anew, and what came of them is forwarded.
    pub fn emptied(&self) -> bool {
        self.reception.emptied()
    }

    /// Whether the last turn stopped at its limit, so that the next one is the rest of it.
    pub fn under_way(&self) -> bool {
        self.reception.under_way()
    }

    /// Shows what the devices have counted. An idle turn, which only looked for packets, leaves that to the next one.
    pub fn publish(&self) {
        for (port, device) in self.devices.iter().enumerate() {
            if let Some(c) = self.reception.counters(port) {
                device.published.iter().zip(values(c)).for_each(|(word, value)| word.set(value));
            }
        }
    }

    /// When reception wants to run again although no device says so.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.reception.deadline_ns()
    }

    /// The nodes of the devices, by port.
    pub fn nodes(&self) -> impl Iterator<Item = usize> {
        self.devices.iter().map(|device| device.node)
    }

    /// Whether some device is polled, so that the worker must not sleep.
    pub fn polling(&self) -> bool {
        self.reception.polls_for_ever()
    }

    /// Whether some device may interrupt.
    pub fn any_armed(&self) -> bool {
        self.reception.any_armed()
    }

    /// Packets between interrupt and forwarding.
    pub fn held(&self) -> usize {
        self.backlog.len()
    }
}

const NAMES: [&str; 7] =
    ["interrupts", "polls", "empty-polls", "packets", "quota-hits", "backlog-drops", "rearms"];

fn values(c: &PortCounters) -> [u64; 7] {
    [c.interrupts, c.polls, c.empty_polls, c.packets, c.quota_hits, c.backlog_drops, c.rearms]
}

impl Ports for Elements<'_> {
    fn receiver(&mut self, port: usize) -> Option<&mut dyn Receiver> {
        let node = self.devices.get(port)?.node;
        self.core.nodes.get_mut(node)?.element.as_mut()?.receiver()
    }

    fn receive(&mut self, port: usize, budget: usize) -> Received {
        self.devices.get(port).map_or(Received::default(), |d| self.core.receive(d.node, budget))
    }

    fn enqueue(&mut self, port: usize, room: usize, budget: usize) -> Received {
        let mut received = Received { packets: 0, more: true };
        let mut batch = self.core.take_batch();
        while received.more && received.packets < budget {
            let most = (budget - received.packets).min(BATCH);
            received.more = self.receiver(port).is_some_and(|r| r.poll(&mut batch, most));
            let free = room.saturating_sub(received.packets);
            received.packets += batch.len();
            received.more &= !batch.is_empty();
            if let Some(device) = self.devices.get(port) {
                self.core.charge(device.node, Work::Enqueue, batch.len());
            }
            self.backlog.extend(batch.drain().take(free).map(|packet| (port, packet)));
        }
        self.core.keep_batch(batch);
        received
    }

    fn forward(&mut self, max: usize) -> usize {
        let max = if self.defers() { max.min(1) } else { max };
        let mut forwarded = 0;
        while forwarded < max
            && let Some((port, packet)) = self.backlog.pop_front()
        {
            let mut batch = self.core.take_batch();
            // An empty batch has room for one.
            let _ = batch.push(packet);
            if let Some(device) = self.devices.get(port) {
                self.core.inject(device.node, batch);
            }
            forwarded += 1;
        }
        forwarded
    }

    fn defers(&self) -> bool {
        self.core.costs.is_some()
    }
}
