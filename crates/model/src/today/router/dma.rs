//! What cards do on their links: frames and descriptors both ways, reports, and what the host makes of them.

use super::super::card::{Job, What};
use super::super::cores::buffer_address;
use super::{Drop, Event, Router};
use crate::pcie::{Direction, Kind, Packet};

/// Bytes of a register that a core writes.
const REGISTER: u32 = 4;
/// Packets of each kind that a card has ready for its link. The rest waits in the card, so that what it receives and what it
/// sends take turns.
const READY: usize = 4;

impl Router {
    /// Begins what may go on a slot's link, either way.
    pub(super) fn begin(&mut self, slot: usize) {
        for direction in [Direction::Up, Direction::Down] {
            if let Some(took_ps) = self.slots[slot].begin(direction) {
                self.queue.after(took_ps, Event::Link(slot, direction));
            }
        }
    }

    fn ask(&mut self, kind: Kind, job: Job, bytes: u32) {
        let slot = self.links[job.port].0;
        self.slots[slot].ask(kind, job.number(), bytes);
        self.begin(slot);
    }

    fn descriptors(&self, n: u32) -> u32 {
        n * self.plan.card.descriptor.value as u32
    }

    /// Writes the frames of a port for which there are buffers, and drops those for which there are none.
    pub(super) fn receive(&mut self, port: usize) {
        while let Some(&(inside, core)) = self.ports[port].fifo.front() {
            self.fetch_given(port, core);
            if self.slots[self.links[port].0].waiting()[0] >= READY {
                return;
            }
            let of_port = &mut self.ports[port];
            let rings = &mut of_port.rings[core];
            let frame = &mut self.frames[inside as usize];
            if rings.given_known > 0
                && let Some(buffer) = rings.given.pop_front()
            {
                rings.given_known -= 1;
                frame.buffer = buffer;
                of_port.fifo.pop_front();
                let (bytes, job) = (frame.bytes, Job { what: What::Received, port, core, value: inside });
                self.ask(Kind::Write, job, bytes);
            } else if rings.fetching_given {
                return;
            } else {
                of_port.fifo_bytes -= frame.bytes;
                of_port.fifo.pop_front();
                self.counts.drops[Drop::Ring as usize] += 1;
                self.note(inside, "is dropped by the card");
                self.forget(inside);
            }
        }
    }

    /// Fetches descriptors for reception, if it is time.
    pub(super) fn fetch_given(&mut self, port: usize, core: usize) {
        if let Some(n) = self.ports[port].to_fetch_given(core, &self.plan.card) {
            self.ports[port].rings[core].fetching_given = true;
            let job = Job { what: What::FetchReceive, port, core, value: n };
            self.ask(Kind::Read, job, self.descriptors(n));
        }
    }

    /// Reads the frames of a port that fit into its memory, and their descriptors.
    pub(super) fn send(&mut self, port: usize) {
        let cores = self.cores.len();
        let slot = self.links[port].0;
        let mut looked = 0;
        while looked < cores && self.slots[slot].waiting()[1] < READY {
            let core = self.ports[port].next;
            if let Some(n) = self.ports[port].to_fetch_posted(core, &self.plan.card) {
                self.ports[port].rings[core].fetching_posted = true;
                let job = Job { what: What::FetchTransmit, port, core, value: n };
                self.ask(Kind::Read, job, self.descriptors(n));
            }
            let of_port = &mut self.ports[port];
            of_port.next = (core + 1) % cores;
            looked += 1;
            let rings = &mut of_port.rings[core];
            let Some(&inside) = rings.posted.front().filter(|_| rings.posted_known > 0) else { continue };
            let frame = &mut self.frames[inside as usize];
            if u64::from(of_port.sending_bytes + frame.bytes) > self.plan.card.transmit_fifo.value {
                of_port.next = core;
                return;
            }
            rings.posted.pop_front();
            rings.posted_known -= 1;
            frame.moved = 0;
            of_port.sending.push_back(inside);
            of_port.sending_bytes += frame.bytes;
            looked = 0;
            let (bytes, job) = (frame.bytes, Job { what: What::Transmit, port, core, value: inside });
            self.ask(Kind::Read, job, bytes);
        }
    }

    /// Tells a card of so many new frames of a ring, or of new buffers.
    pub(super) fn ring_bell(&mut self, port: usize, core: usize, value: u32) {
        let job = Job { what: What::Doorbell, port, core, value };
        let slot = self.links[port].0;
        let packet = Packet { kind: Kind::Register, number: job.number(), bytes: REGISTER, last: true };
        self.slots[slot].send(packet);
        self.begin(slot);
    }

    /// What went this way on a link is there.
    pub(super) fn moved(&mut self, slot: usize, direction: Direction) {
        let Some(packet) = self.slots[slot].end(direction) else { return };
        let job = Job::of(packet.number);
        match packet.kind {
            Kind::Write => self.written(slot, job, packet),
            Kind::Read => self.asked(slot, job, packet),
            Kind::Completion => self.answered(job, packet),
            Kind::Register => self.told(job),
        }
        if direction == Direction::Up {
            self.go_on(slot, job.port);
        }
        self.begin(slot);
    }

    /// There is room for more of what the cards of a slot do; the port after the one that had its turn comes first.
    fn go_on(&mut self, slot: usize, last: usize) {
        let ports = self.ports.len();
        for port in (1..=ports).map(|n| (last + n) % ports) {
            if self.links[port].0 == slot {
                self.receive(port);
                self.send(port);
                if self.slots[slot].waiting()[0] == 0 {
                    (0..self.cores.len()).for_each(|core| self.report(port, core));
                }
            }
        }
    }

    fn written(&mut self, slot: usize, job: Job, packet: Packet) {
        let now_ps = self.queue.now_ps();
        let (mut wait_ps, home) = (0, self.home(job.core));
        if job.what == What::Received {
            let frame = &mut self.frames[job.value as usize];
            let address = buffer_address(home, frame.buffer) + u64::from(frame.moved);
            frame.moved += packet.bytes;
            let moved = self.near.cache.card_writes(address, packet.bytes);
            // What goes to memory is taken when memory is done with what came before.
            wait_ps = self.near.moved(now_ps, moved);
        }
        match wait_ps {
            0 => self.slots[slot].taken(packet.bytes),
            _ => self.queue.after(wait_ps, Event::Taken(slot, packet.bytes)),
        }
        if !packet.last {
            return;
        }
        match job.what {
            What::Received => {
                self.ports[job.port].fifo_bytes -= self.frames[job.value as usize].bytes;
                self.ports[job.port].rings[job.core].unreported.push_back(job.value);
                self.note(job.value, "is in memory");
            }
            What::ReportReceived => {
                let rings = &mut self.ports[job.port].rings[job.core];
                rings.reporting -= job.value;
                rings.ready.extend(rings.unreported.drain(..job.value as usize));
                self.hand_over(job.port, job.core);
            }
            What::ReportSent => self.cleaned(job.port, job.core, job.value as usize),
            _ => {}
        }
        self.report(job.port, job.core);
    }

    /// Reports of a ring that are due.
    pub(super) fn report(&mut self, port: usize, core: usize) {
        self.report_received(port, core);
        self.report_sent(port, core);
    }

    /// Whether a report of so many is due: enough of them, or nothing else to do.
    fn is_due(&self, port: usize, n: u32) -> bool {
        let idle = || self.slots[self.links[port].0].waiting()[0] == 0;
        n > 0 && (u64::from(n) >= self.plan.card.report.value || idle())
    }

    fn report_received(&mut self, port: usize, core: usize) {
        let rings = &self.ports[port].rings[core];
        let n = rings.unreported.len() as u32 - rings.reporting;
        if self.is_due(port, n) {
            self.ports[port].rings[core].reporting += n;
            let job = Job { what: What::ReportReceived, port, core, value: n };
            self.ask(Kind::Write, job, self.descriptors(n));
        }
    }

    fn report_sent(&mut self, port: usize, core: usize) {
        let n = self.ports[port].rings[core].unreported_sent;
        if self.is_due(port, n) {
            self.ports[port].rings[core].unreported_sent = 0;
            let job = Job { what: What::ReportSent, port, core, value: n };
            self.ask(Kind::Write, job, self.descriptors(n));
        }
    }

    /// The host reads for a card.
    fn asked(&mut self, slot: usize, job: Job, packet: Packet) {
        let mut wait_ps = 0;
        if job.what == What::Transmit {
            let now_ps = self.queue.now_ps();
            let home = self.home(job.core);
            let frame = &mut self.frames[job.value as usize];
            let address = buffer_address(home, frame.buffer);
            let moved = self.near.cache.card_reads(address, packet.bytes);
            wait_ps = self.near.moved(now_ps, moved);
        }
        let answer = Packet { kind: Kind::Completion, ..packet };
        self.queue.after(self.latencies_ps[slot] + wait_ps, Event::Answer(slot, answer));
    }

    fn answered(&mut self, job: Job, packet: Packet) {
        let rings = &mut self.ports[job.port].rings[job.core];
        match job.what {
            What::Transmit => {
                self.frames[job.value as usize].moved += packet.bytes;
                if packet.last {
                    self.note(job.value, "is in the card that sends it");
                }
                self.begin_wire(job.port);
            }
            // A read of descriptors may come in parts.
            What::FetchReceive if packet.last => {
                rings.given_known += job.value as usize;
                rings.fetching_given = false;
                self.fetch_given(job.port, job.core);
                self.receive(job.port);
            }
            What::FetchTransmit if packet.last => {
                rings.posted_known += job.value as usize;
                rings.fetching_posted = false;
                self.send(job.port);
            }
            _ => {}
        }
    }

    /// A card is told of frames to send, or of buffers.
    fn told(&mut self, job: Job) {
        let rings = &mut self.ports[job.port].rings[job.core];
        if job.value == 0 {
            self.fetch_given(job.port, job.core);
            return;
        }
        let n = (job.value as usize).min(rings.untold.len());
        rings.posted.extend(rings.untold.drain(..n));
        self.send(job.port);
    }
}
