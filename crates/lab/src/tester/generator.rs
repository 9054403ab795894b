//! Which frames are due, without a clock and without a port.

use super::hand_over::HandOvers;
use super::sending::Source;
use crate::analyser::Sent;
use crate::frame::{Seen, Tag, Template, look};
use crate::search::Request;
use crate::timetable::Timetable;
use causeway_packet::{BATCH, Batch, Packet};
use causeway_results::traffic::{Plan, Traffic};

/// What one port sends in a trial.
pub struct Generator<'a> {
    templates: &'a [Template],
    order: &'a [u16],
    timetable: Timetable,
    /// Frames that leave together, when the last of them is due; and how many do at most, if they are late.
    group: u32,
    most: usize,
    /// Those that leave next: when, and how many.
    next: Option<(u64, u32)>,
    load_fps: f64,
    /// Mean length of frames.
    bytes: f64,
    trial: u16,
    place: usize,
    sent: Vec<Sent>,
    /// What the times in frames count from, in nanoseconds before the start.
    before_ns: u64,
    hand_overs: HandOvers,
}

/// What a port sent.
pub struct Report {
    /// Of each flow of the whole plan.
    pub sent: Vec<Sent>,
    /// Frames that were to be sent.
    pub intended: u64,
    /// When sending ended, in nanoseconds from the start.
    pub last_ns: u64,
    /// How it was given to the kernel.
    pub hand_overs: HandOvers,
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
        let mut timetable = Timetable::new(traffic, plan, request, port);
        let next = timetable.next().map(|due_ns| (due_ns, 1));
        Generator {
            templates,
            order: plan.order(port),
            timetable,
            group: 1,
            most: BATCH,
            next,
            load_fps: request.load_fps() * plan.share(port),
            bytes: traffic.mean_length().unwrap_or_default(),
            trial,
            place: 0,
            sent: vec![Sent::default(); plan.flows().len()],
            before_ns: 0,
            hand_overs: HandOvers::with_room(),
        }
    }

    /// Frames a second, of so many bytes.
    pub fn load(&self) -> (f64, f64) {
        (self.load_fps, self.bytes)
    }

    /// So many frames leave together, when the last of them is due; and not more than so many at a time, if they are late.
    pub fn gather(&mut self, (group, most): (u32, u32)) {
        (self.group, self.most) = (group, most as usize);
        self.next = self.gathered(self.next);
    }

    /// With these as many as leave together, or as many as there are.
    fn gathered(&mut self, some: Option<(u64, u32)>) -> Option<(u64, u32)> {
        let frames = some.map_or(0, |(_, frames)| frames);
        let more = (frames..self.group).map_while(|frames| Some((self.timetable.next()?, frames + 1)));
        more.last().or(some)
    }

    /// With times of the epoch in its frames, of which the start is so many nanoseconds: for a receiver that does not know it.
    pub fn of_epoch(self, start_ns: u64) -> Generator<'a> {
        Generator { before_ns: start_ns, ..self }
    }
}

impl Source for Generator<'_> {
    type Report = Report;

    #[inline]
    fn fill(&mut self, now_ns: u64, batch: &mut Batch) -> Option<u64> {
        while let Some((due_ns, left)) = self.next {
            if due_ns > now_ns || batch.len() >= self.most {
                return Some(due_ns);
            }
            let flow = self.order[self.place];
            let (template, sent) = (&self.templates[usize::from(flow)], &mut self.sent[usize::from(flow)]);
            let sent_ns = self.before_ns.wrapping_add(now_ns);
            let tag = Tag { trial: self.trial, flow, sequence: sent.frames as u32, sent_ns };
            let Some(packet) = frame(template, tag) else { return Some(due_ns) };
            // There is room for it.
            let _ = batch.push(packet);
            *sent = Sent { frames: sent.frames + 1, last_ns: now_ns };
            self.place = (self.place + 1) % self.order.len();
            self.next = if left > 1 { Some((due_ns, left - 1)) } else { self.gathered(None) };
        }
        None
    }

    #[inline]
    fn gone(&mut self, frames: usize, took_ns: u64) {
        self.hand_overs.note(frames, took_ns);
    }

    fn finish(mut self, left: &Batch, last_ns: u64) -> Report {
        let made: u64 = self.sent.iter().map(|sent| sent.frames).sum();
        for packet in left.iter() {
            if let Seen::Test(tag) = look(packet.data()) {
                self.sent[usize::from(tag.flow)].frames -= 1;
            }
        }
        let later = self.next.map_or(0, |(_, left)| u64::from(left)) + self.timetable.remaining();
        Report { sent: self.sent, intended: made + later, last_ns, hand_overs: self.hand_overs }
    }
}

#[inline]
fn frame(template: &Template, tag: Tag) -> Option<Packet> {
    let mut packet = Packet::new()?;
    template.write(tag, packet.put(template.length(tag.sequence)).ok()?);
    Some(packet)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::frame::Ends;
    use causeway_packet::wire::MacAddr;
    use causeway_results::traffic::{Family, Matrix, Sizes, Stream};

    /// What is to be sent in a millisecond, of two streams in the ratio 2:1.
    pub fn with_generator(load_fps: f64, test: impl FnOnce(Generator<'_>)) {
        let stream =
            |name: &str, weight| Stream { weight, ..Stream::new(name, Family::Ipv4, Sizes::Fixed(64)) };
        let streams = vec![stream("a", 2), stream("b", 1)];
        let traffic = Traffic { matrix: Matrix::Unidirectional, streams, ..Traffic::simple(64) };
        let plan = Plan::new(&traffic, 2).expect("a plan");
        let network = "198.18.0.0/18".parse().expect("a network");
        let mac = MacAddr([2; 6]);
        let ends = Ends { source_mac: mac, gateway_mac: mac, source: network, destination: network };
        let template = |flow: &causeway_results::traffic::Flow| {
            Template::new(&traffic.streams[flow.stream], flow, &ends).expect("a template")
        };
        let templates: Vec<Template> = plan.flows().iter().map(template).collect();
        let request = Request::new(load_fps, 1_000_000);
        test(Generator::new(&traffic, &plan, &request, &templates, 0, 7));
    }

    fn tags(batch: &Batch) -> Vec<(u16, u32, u64)> {
        let tag = |packet: &Packet| match look(packet.data()) {
            Seen::Test(tag) => (tag.flow, tag.sequence, tag.sent_ns),
            other => panic!("{other:?}"),
        };
        batch.iter().map(tag).collect()
    }

    #[test]
    fn what_is_due_is_made_and_nothing_else() {
        with_generator(1e6, |mut generator| {
            let mut batch = Batch::new();
            assert_eq!(generator.fill(0, &mut batch), Some(1_000));
            assert_eq!(generator.fill(999, &mut batch), Some(1_000));
            assert_eq!(tags(&batch), [(0, 0, 0)]);
            assert_eq!(generator.fill(3_500, &mut batch), Some(4_000));
            assert_eq!(tags(&batch)[1..], [(1, 0, 3_500), (0, 1, 3_500), (0, 2, 3_500)]);
        });
    }

    /// 1 000 frames by 64 are 15 times as many, and 40 that leave with the last of all.
    #[test]
    fn frames_that_leave_together_do_so_when_the_last_is_due() {
        with_generator(1e6, |mut generator| {
            assert_eq!(generator.load(), (1e6, 64.0));
            generator.gather((64, 192));
            let mut batch = Batch::new();
            assert_eq!(generator.fill(62_999, &mut batch), Some(63_000));
            assert!(batch.is_empty());
            assert_eq!(generator.fill(63_000, &mut batch), Some(127_000));
            assert_eq!(tags(&batch)[..2], [(0, 0, 63_000), (1, 0, 63_000)]);
            assert_eq!(batch.len(), 64);
            // Who is late sends several groups, and no more than so many.
            assert_eq!(generator.fill(300_000, &mut batch), Some(255_000));
            assert_eq!(batch.len(), 192);
            batch.clear();
            let mut last_ns = 0;
            while let Some(due_ns) = generator.fill(last_ns, &mut batch) {
                batch.clear();
                last_ns = due_ns;
            }
            assert_eq!((last_ns, batch.len()), (999_000, 40));
            assert_eq!(generator.finish(&Batch::new(), last_ns).intended, 1_000);
        });
    }

    #[test]
    fn what_is_left_of_a_group_is_still_intended() {
        with_generator(1e6, |mut generator| {
            generator.gather((64, 256));
            let mut batch = Batch::new();
            generator.fill(300_000, &mut batch);
            let report = generator.finish(&batch, 300_000);
            assert_eq!((batch.len(), report.intended), (256, 1_000));
        });
    }

    #[test]
    fn a_full_batch_holds_back_what_is_due_and_what_is_never_sent_does_not_count() {
        with_generator(1e6, |mut generator| {
            let mut batch = Batch::new();
            assert_eq!(generator.fill(900_000, &mut batch), Some(BATCH as u64 * 1_000));
            assert_eq!(batch.len(), BATCH);
            let mut unsent = Batch::new();
            unsent.append_up_to(&mut batch, BATCH);
            // Six of the last were not taken: of streams in the ratio 2:1, four and two.
            let mut kept = Batch::new();
            kept.append_up_to(&mut unsent, BATCH - 6);
            let report = generator.finish(&unsent, 900_000);
            assert_eq!(report.intended, 1_000);
            let sent: u64 = report.sent.iter().map(|sent| sent.frames).sum();
            assert_eq!(sent, BATCH as u64 - 6);
            let made = tags(&kept);
            for (flow, sent) in report.sent.iter().enumerate() {
                assert_eq!(made.iter().filter(|tag| usize::from(tag.0) == flow).count() as u64, sent.frames);
            }
        });
    }

    #[test]
    fn the_end_has_nothing_due() {
        with_generator(1e6, |mut generator| {
            let (mut batch, mut made) = (Batch::new(), 0);
            while generator.fill(u64::MAX, &mut batch).is_some() {
                made += batch.len();
                batch.clear();
            }
            made += batch.len();
            batch.clear();
            let report = generator.finish(&batch, 0);
            assert_eq!((made, report.intended), (1_000, 1_000));
        });
    }
}
