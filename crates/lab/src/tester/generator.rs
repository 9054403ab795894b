//! Which frames are due, without a clock and without a port.

use crate::analyser::Sent;
use crate::frame::{Seen, Tag, Template, look};
use crate::search::Request;
use crate::timetable::Timetable;
use causeway_packet::{Batch, Packet};
use causeway_results::traffic::{Plan, Traffic};
use std::iter::Peekable;

/// What one port sends in a trial.
pub struct Generator<'a> {
    templates: &'a [Template],
    order: &'a [u16],
    timetable: Peekable<Timetable>,
    trial: u16,
    place: usize,
    sent: Vec<Sent>,
}

/// What a port sent.
pub struct Report {
    /// Of each flow of the whole plan.
    pub sent: Vec<Sent>,
    /// Frames that were to be sent.
    pub intended: u64,
    /// When sending ended, in nanoseconds from the start.
    pub last_ns: u64,
}

impl<'a> Generator<'a> {
    /// What `port` sends, which the plan has send something.
    pub fn new(
        traffic: &Traffic,
        plan: &'a Plan,
        request: &Request,
        templates: &'a [Template],
        port: usize,
        trial: u16,
    ) -> Generator<'a> {
        let timetable = Timetable::new(traffic, plan, request, port).peekable();
        let sent = vec![Sent::default(); plan.flows().len()];
        Generator { templates, order: plan.order(port), timetable, trial, place: 0, sent }
    }

    /// Appends the frames that are due at `now_ns`, as far as `batch` and the pool have room. Says when the next is due
    /// that was not appended; `None`: there is none.
    #[inline]
    pub fn fill(&mut self, now_ns: u64, batch: &mut Batch) -> Option<u64> {
        while let Some(&due_ns) = self.timetable.peek() {
            if due_ns > now_ns || batch.is_full() {
                return Some(due_ns);
            }
            let flow = self.order[self.place];
            let (template, sent) = (&self.templates[usize::from(flow)], &mut self.sent[usize::from(flow)]);
            let tag = Tag { trial: self.trial, flow, sequence: sent.frames as u32, sent_ns: now_ns };
            let Some(packet) = frame(template, tag) else { return Some(due_ns) };
            // There is room for it.
            let _ = batch.push(packet);
            *sent = Sent { frames: sent.frames + 1, last_ns: now_ns };
            self.place = (self.place + 1) % self.order.len();
            self.timetable.next();
        }
        None
    }

    /// Ends it at `last_ns`. What is left in `batch` was not sent after all.
    pub fn finish(mut self, batch: &Batch, last_ns: u64) -> Report {
        let made: u64 = self.sent.iter().map(|sent| sent.frames).sum();
        for packet in batch.iter() {
            if let Seen::Test(tag) = look(packet.data()) {
                self.sent[usize::from(tag.flow)].frames -= 1;
            }
        }
        Report { sent: self.sent, intended: made + self.timetable.count() as u64, last_ns }
    }
}

#[inline]
fn frame(template: &Template, tag: Tag) -> Option<Packet> {
    let mut packet = Packet::new()?;
    template.write(tag, packet.put(template.length(tag.sequence)).ok()?);
    Some(packet)
}
