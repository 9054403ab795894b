//! The tester's processor: a thread that sends and one that receives, which take turns.
//!
//! As in `crates/lab/src/tester`. Who sends writes what is due and gives it away by a system call, and offers the processor to the
//! other where nothing is due. Who receives takes what has come until nothing is left, and sleeps. So what became due while frames
//! were received, or others were sent, goes as a batch. Each sleep ends with an interrupt of the clock, which takes its time from
//! whoever runs, and the thread that wakes has the processor as soon as the other's system call is over: it has slept, and is owed
//! time. One that does not make way by itself does so at the clock's next tick. A thread at the other port, where nothing comes,
//! wakes as well, if seldom, and so does the laboratory's watch.
//!
//! Few frames are with the device one by one, many in parts, each at its end. A frame that finds the device's processor asleep has
//! the sender wake it before he goes on, which on a virtual machine takes as long as many frames do: what becomes due meanwhile goes
//! together.

use super::machine::TesterValues;
use super::paid;
use crate::event::{MICROSECOND, NANOSECOND, SECOND, Time};

/// Who has the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Sends,
    Receives,
}

/// What the processor does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Writes so many frames that are due.
    Writes(u64),
    /// Takes so many of those to the device, where they are in the end.
    HandsOver(u64),
    /// Wakes the device's processor.
    Wakes,
    /// Takes so many frames that came.
    Receives(u64),
    /// Looks at what is due, and finds nothing.
    Looks,
    /// The receiver finds nothing, and sleeps.
    Sleeps,
}

/// Frames that were written and are not with the device yet.
#[derive(Clone, Copy, Debug)]
struct Handing {
    left: u64,
    /// So many at a time, what one of the first of these takes, and of others.
    part: u64,
    each_ps: [Time; 2],
}

/// The processor.
#[derive(Clone, Debug)]
pub struct Tester {
    call_ps: Time,
    look_ps: Time,
    /// A frame: what is done with all of a batch before, and by itself; where few go together, and many.
    single_ps: [Time; 2],
    first_ps: [Time; 2],
    frame_ps: [Time; 2],
    many: u64,
    many_ps: Time,
    batch: u64,
    chunk: u64,
    wakes_other_ps: Time,
    receive_ps: Time,
    interrupt_ps: Time,
    rouse_ps: Time,
    pause_ps: Time,
    slice_ps: Time,
    ring: u64,
    vary: Vary,
    /// Between two frames that are due.
    period_ps: f64,
    runs: Thread,
    since_ps: Time,
    handing: Option<Handing>,
    /// Whether the device's processor has to be woken.
    has_to_wake: bool,
    /// When the receiver wakes, or woke; when it is its turn if it waits.
    wakes_ps: Time,
    /// Whether the clock's interrupt for that is yet to come.
    rings: bool,
    /// The thread at the other port, and the laboratory's watch.
    others: [Sleeper; 2],
    /// Frames sent so far.
    pub sent: u64,
    /// The sum over hand-overs of the square of how many frames went together.
    pub squares: u64,
    /// Frames that came and were not taken.
    waiting: u64,
    /// Frames that found no room.
    pub lost: u64,
    /// Time that went into sending, receiving, looking and interrupts.
    pub spent_ps: [Time; 4],
}

/// By how much pieces of work take longer or shorter, as chance has it.
#[derive(Clone, Debug)]
pub(super) struct Vary {
    random: fastrand::Rng,
    part: f64,
}

impl Vary {
    /// By so many thousandths at most.
    pub fn new(thousandths: u64, seed: u64) -> Vary {
        Vary { random: fastrand::Rng::with_seed(seed), part: thousandths as f64 / 1e3 }
    }

    /// How long a piece takes that mostly takes so long, and one that goes with it.
    pub fn of<const N: usize>(&mut self, pieces_ps: [Time; N]) -> [Time; N] {
        let factor = 1.0 + self.part * (2.0 * self.random.f64() - 1.0);
        pieces_ps.map(|ps| (ps as f64 * factor).round() as Time)
    }
}

/// A thread that wakes now and then, has nothing to do and sleeps again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleeper {
    wakes_ps: Time,
    pause_ps: Time,
    takes_ps: Time,
}

impl Sleeper {
    /// One that sleeps so long, and then takes the processor for so long.
    pub fn new(pause_ps: Time, takes_ps: Time) -> Sleeper {
        let pause_ps = pause_ps.max(MICROSECOND);
        Sleeper { wakes_ps: pause_ps, pause_ps, takes_ps }
    }

    /// How long it takes the processor if it wakes until then.
    pub fn wakes(&mut self, until_ps: Time) -> Option<Time> {
        let wakes = self.wakes_ps <= until_ps;
        self.wakes_ps += if wakes { self.takes_ps + self.pause_ps } else { 0 };
        wakes.then_some(self.takes_ps)
    }
}

/// The parts of a frame's time before others of its batch go, and by itself.
pub(super) fn divided(frame_ps: Time, together: u64) -> [Time; 2] {
    let before_ps = frame_ps * together / 1_000;
    [before_ps, frame_ps - before_ps]
}

impl Tester {
    /// One that is to send so many frames of this length a second.
    pub fn new(values: &TesterValues, bytes: u32, load_fps: f64, seed: u64) -> Tester {
        let bytes = paid(bytes);
        let frame_ps = values.send.value + values.byte.value * bytes;
        let first_ps = values.first.value + values.first_byte.value * bytes;
        let single_ps = values.single.value + values.single_byte.value * bytes;
        let pause_ps = values.pause.value.max(MICROSECOND);
        let rouse_ps = values.interrupt.value + values.rouse.value;
        let others = [&values.long_pause, &values.watch].map(|pause| Sleeper::new(pause.value, rouse_ps));
        Tester {
            call_ps: values.call.value,
            // Whatever a file says, time passes.
            look_ps: values.look.value.max(10 * NANOSECOND),
            single_ps: divided(single_ps, values.together.value),
            first_ps: divided(first_ps, values.together.value),
            frame_ps: divided(frame_ps, values.together.value),
            many: values.many.value,
            many_ps: values.many_call.value,
            batch: values.batch.value,
            chunk: values.chunk.value.max(1),
            wakes_other_ps: values.wakes.value,
            receive_ps: values.receive.value + values.receive_byte.value * bytes,
            interrupt_ps: values.interrupt.value,
            rouse_ps: values.rouse.value,
            pause_ps,
            slice_ps: values.slice.value.max(MICROSECOND),
            ring: values.ring.value,
            vary: Vary::new(values.vary.value, seed),
            period_ps: SECOND as f64 / load_fps,
            runs: Thread::Sends,
            since_ps: 0,
            handing: None,
            has_to_wake: false,
            wakes_ps: pause_ps,
            rings: true,
            others,
            sent: 0,
            squares: 0,
            waiting: 0,
            lost: 0,
            spent_ps: [0; 4],
        }
    }

    /// A frame came back; whether there was room for it.
    pub fn came(&mut self) -> bool {
        let room = self.waiting < self.ring;
        *(if room { &mut self.waiting } else { &mut self.lost }) += 1;
        room
    }

    /// A frame found the device's processor asleep: whoever hands over wakes it before he goes on.
    pub fn has_to_wake(&mut self) {
        self.has_to_wake = true;
    }

    /// What is done from now on, and until when.
    pub fn next(&mut self, now_ps: Time) -> (Piece, Time) {
        let (piece, ps) = self.hand_over().unwrap_or_else(|| self.turn(now_ps));
        let what = match piece {
            Piece::Writes(_) | Piece::HandsOver(_) | Piece::Wakes => 0,
            Piece::Receives(_) | Piece::Sleeps => 1,
            Piece::Looks => 2,
        };
        self.spent_ps[what] += ps;
        let mut end_ps = now_ps + ps;
        while let Some(stop_ps) = self.interrupted(end_ps) {
            self.spent_ps[3] += stop_ps;
            end_ps += stop_ps;
        }
        (piece, end_ps)
    }

    /// What is left of a system call, in which threads do not make way.
    fn hand_over(&mut self) -> Option<(Piece, Time)> {
        if std::mem::take(&mut self.has_to_wake) {
            let [ps] = self.vary.of([self.wakes_other_ps]);
            return Some((Piece::Wakes, ps));
        }
        let Handing { left, part, each_ps } = self.handing.take()?;
        let frames = left.min(part);
        if left > frames {
            self.handing = Some(Handing { left: left - frames, part, each_ps: [each_ps[1]; 2] });
        }
        Some((Piece::HandsOver(frames), frames * each_ps[0]))
    }

    fn turn(&mut self, now_ps: Time) -> (Piece, Time) {
        loop {
            let over = now_ps - self.since_ps >= self.slice_ps;
            let due = self.due(now_ps);
            match self.runs {
                Thread::Sends if self.wakes_ps <= now_ps || due == 0 && self.waits() => {
                    self.make_way(Thread::Receives, now_ps);
                }
                Thread::Sends if due == 0 => return (Piece::Looks, self.looks_ps(now_ps)),
                Thread::Sends => return self.send(due.min(self.batch)),
                Thread::Receives if self.waiting == 0 => {
                    self.make_way(Thread::Sends, now_ps);
                    let [pause_ps, rouse_ps] = self.vary.of([self.pause_ps, self.rouse_ps]);
                    let ps = self.call_ps + rouse_ps;
                    (self.wakes_ps, self.rings) = (now_ps + ps + pause_ps, true);
                    return (Piece::Sleeps, ps);
                }
                // Who sends waits for its turn, which is as long.
                Thread::Receives if over => {
                    self.make_way(Thread::Sends, now_ps);
                    (self.wakes_ps, self.rings) = (now_ps + self.slice_ps, false);
                }
                Thread::Receives => {
                    let frames = self.waiting.min(self.batch);
                    self.waiting -= frames;
                    let [ps] = self.vary.of([frames * self.receive_ps]);
                    return (Piece::Receives(frames), ps);
                }
            }
        }
    }

    /// How long the clock's next interrupt until then takes, if there is one.
    fn interrupted(&mut self, until_ps: Time) -> Option<Time> {
        if let Some(stop_ps) = self.others.iter_mut().find_map(|other| other.wakes(until_ps)) {
            return Some(stop_ps);
        }
        let receiver = self.rings && self.wakes_ps <= until_ps;
        self.rings &= !receiver;
        receiver.then_some(self.interrupt_ps)
    }

    /// While the other sends: whether the receiver waits for its turn, and does not sleep.
    fn waits(&self) -> bool {
        !self.rings
    }

    fn make_way(&mut self, other: Thread, now_ps: Time) {
        (self.runs, self.since_ps) = (other, now_ps);
    }

    /// When the frame of this number is due.
    fn due_ps(&self, number: u64) -> Time {
        (number as f64 * self.period_ps) as Time
    }

    /// Frames that are due and were not sent.
    fn due(&self, now_ps: Time) -> u64 {
        // One more than by division, which rounds.
        let most = (now_ps as f64 / self.period_ps) as u64 + 2;
        let due = (most.saturating_sub(2)..=most).take_while(|&number| self.due_ps(number) <= now_ps).last();
        due.map_or(0, |number| (number + 1).saturating_sub(self.sent))
    }

    fn send(&mut self, frames: u64) -> (Piece, Time) {
        let many = frames >= self.many;
        let (call_ps, [first_ps, frame_ps], part) = match many {
            true => (self.call_ps + self.many_ps, [self.first_ps, self.frame_ps], self.chunk),
            false => (self.call_ps, [self.single_ps; 2], 1),
        };
        let first = frames.min(part);
        let together_ps = first * first_ps[0] + (frames - first) * frame_ps[0];
        let [before_ps, first_ps, each_ps] = self.vary.of([call_ps + together_ps, first_ps[1], frame_ps[1]]);
        let each_ps = [first_ps, each_ps];
        self.sent += frames;
        self.squares += frames * frames;
        self.handing = Some(Handing { left: frames, part, each_ps });
        (Piece::Writes(frames), before_ps)
    }

    /// Looks follow each other until something is to be done.
    fn looks_ps(&self, now_ps: Time) -> Time {
        let until_ps = self.due_ps(self.sent).min(self.wakes_ps);
        (until_ps.saturating_sub(now_ps)).div_ceil(self.look_ps).max(1) * self.look_ps
    }
}
