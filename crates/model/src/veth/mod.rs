//! A tester and a device between veth pairs, each with a processor of its own: the laboratory's bed on this machine, simulated.
//!
//! The way of a frame: the tester's thread writes it and hands it to the kernel, which takes it through the veth within the same
//! system call to the device's queue ([`tester`]); the device is woken if it sleeps, and works in turns ([`device`]); a frame has
//! left when the kernel takes it at the other veth, where the laboratory notes its time; the tester's thread takes it from there
//! when it comes to it. Waiting comes from this alone: from batches that became due while the tester did something else, such as to wake the
//! device, from turns, and from being woken.
//!
//! Not modelled: what processors take from each other's caches, and that the machine below has other guests. What costs depend on beside the length, such as that what is cold is slow, is not in it either.

pub mod device;
pub mod fit;
pub mod machine;
pub mod tester;
#[cfg(test)]
mod tests;

use crate::event::{MILLISECOND, Queue, SECOND, Time};
use crate::trace::Trace;
use causeway_results::traffic::group;
use device::{Comes, Device, Goes};
use machine::BedValues;
use tester::{Piece, Tester};

/// What is offered where more is asked for than any tester sends.
pub const FULL_FPS: f64 = 2e6;
/// What passes before anything counts.
const WARM_UP_PS: Time = 10 * MILLISECOND;

/// The frame by whose bytes a cost for each is told.
const LONGEST: u64 = 1_518;

/// For how many bytes a frame of this length pays. As many as it has if it is the longest; shorter ones pay as the root of their
/// length, since memory that is read on and on is fetched ahead, and the first lines of a frame are waited for.
pub fn paid(bytes: u32) -> u64 {
    (u64::from(bytes) * LONGEST).isqrt()
}

/// What is offered, and for how long after a warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Length of frames.
    pub bytes: u32,
    /// Frames a second.
    pub load_fps: f64,
    /// Frames that leave together, when the last of them is due; and at most, if they are late.
    pub group: (u32, u32),
    /// How long.
    pub duration_ps: Time,
    /// What is random follows from it.
    pub seed: u64,
    /// The frame that is followed, from 0.
    pub followed: Option<u64>,
}

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The tester goes on, if it still intends to.
    Tester(u64),
    /// The device goes on, if it still intends to.
    Device(u64),
    /// A frame leaves.
    Leaves(u32),
}

/// The bed while it runs.
struct Bed {
    queue: Queue<Event>,
    tester: Tester,
    device: Device,
    /// When each frame was written.
    written_ps: Vec<Time>,
    /// Of those, how many were taken to the device.
    handed_over: u32,
    /// What the tester does.
    piece: Piece,
    /// Numbers what it intends, so that an end that was overtaken is known.
    intention: u64,
    /// Of each frame that left since things count, how long it was inside.
    inside_ps: Vec<Time>,
    from_ps: Time,
    trace: Trace,
}

/// What a run gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Frames a second that were sent.
    pub offered_fps: f64,
    /// That came back.
    pub forwarded_fps: f64,
    /// That the device had no room for.
    pub lost_fps: f64,
    /// Time inside, microseconds: of half of the frames at most, and of 99 of 100.
    pub inside_us: [f64; 2],
    /// Frames of the hand-over in which a frame goes, mean over the frames.
    pub together: f64,
    /// The tester's time, as parts: it sends, receives, looks at what is due, is interrupted; the device's: it works, looks out for
    /// frames.
    pub parts: [(&'static str, f64); 6],
    /// Frames of a turn, mean.
    pub turn: f64,
    /// How often the device is woken, a second.
    pub wakes: f64,
    /// The way of the frame that was followed.
    pub trace: Vec<String>,
    /// Events that happened.
    pub events: u64,
}

/// What is counted from the start on.
#[derive(Clone, Copy)]
struct Counts {
    sent: u64,
    lost: u64,
    turns: u64,
    wakes: u64,
    squares: u64,
    spent_ps: [Time; 6],
}

impl Trial {
    /// Frames that leave as the laboratory has them leave.
    pub fn new(bytes: u32, load_fps: f64, duration_ps: Time, seed: u64) -> Trial {
        let group = group(load_fps, f64::from(bytes));
        Trial { bytes, load_fps, group, duration_ps, seed, followed: None }
    }
}

impl Bed {
    fn new(values: &BedValues, trial: &Trial) -> Bed {
        let Trial { bytes, seed, followed, .. } = *trial;
        let mut queue = Queue::new();
        queue.at(0, Event::Tester(0));
        Bed {
            queue,
            tester: Tester::new(&values.tester, trial),
            device: Device::new(&values.device, bytes, !seed),
            written_ps: Vec::new(),
            handed_over: 0,
            piece: Piece::Looks,
            intention: 0,
            inside_ps: Vec::new(),
            from_ps: Time::MAX,
            trace: Trace::of(followed),
        }
    }

    fn run(&mut self, until_ps: Time) {
        while let Some(event) = self.queue.before(until_ps) {
            let now_ps = self.queue.now_ps();
            match event {
                Event::Tester(intention) if intention == self.intention => self.tester_goes_on(now_ps),
                Event::Device(intention) if intention == self.device.intention => {
                    self.device_goes_on(now_ps);
                }
                // It was overtaken.
                Event::Tester(_) | Event::Device(_) => {}
                Event::Leaves(frame) => self.leaves(frame, now_ps),
            }
        }
    }

    fn tester_goes_on(&mut self, now_ps: Time) {
        if let Piece::HandsOver(frames) = self.piece {
            for _ in 0..frames {
                self.comes(self.handed_over, now_ps);
                self.handed_over += 1;
            }
        }
        let (piece, end_ps) = self.tester.next(now_ps);
        if let Piece::Writes(frames) = piece {
            for _ in 0..frames {
                self.trace.note(self.written_ps.len() as u64, now_ps, "is written by the tester");
                self.written_ps.push(now_ps);
            }
        }
        self.piece = piece;
        self.tester_intends(end_ps);
    }

    fn tester_intends(&mut self, when_ps: Time) {
        self.intention += 1;
        self.queue.at(when_ps, Event::Tester(self.intention));
    }

    fn comes(&mut self, frame: u32, now_ps: Time) {
        let lost = self.device.lost;
        let Comes { goes_on_ps, wakes } = self.device.comes(frame, now_ps);
        let what = match (self.device.lost > lost, goes_on_ps, wakes) {
            (true, ..) => "finds no room at the device",
            (false, Some(_), true) => "is with the device, which is woken",
            (false, Some(_), false) => "is with the device, which goes on because of it",
            (false, None, _) => "is with the device, and waits",
        };
        self.trace.note(u64::from(frame), now_ps, what);
        if wakes {
            self.tester.has_to_wake();
        }
        if let Some(when_ps) = goes_on_ps {
            self.queue.at(when_ps, Event::Device(self.device.intention));
        }
    }

    fn device_goes_on(&mut self, now_ps: Time) {
        let before = self.device.taken.len();
        let when_ps = match self.device.goes_on(now_ps) {
            Goes::Sleeps => return,
            Goes::LooksOut(until_ps) => until_ps,
            Goes::Takes(until_ps) => {
                for &frame in &self.device.taken[before..] {
                    self.trace.note(u64::from(frame), now_ps, "is taken in a turn");
                }
                until_ps
            }
            Goes::Turn(turn) => {
                for (n, frame) in (0..).zip(self.device.taken.drain(..)) {
                    self.queue.at(turn.first_ps + n * turn.each_ps, Event::Leaves(frame));
                }
                turn.end_ps
            }
        };
        self.queue.at(when_ps, Event::Device(self.device.intention));
    }

    fn leaves(&mut self, frame: u32, now_ps: Time) {
        self.trace.note(u64::from(frame), now_ps, "has left");
        let (room, seen_ps) = self.tester.came(now_ps);
        if room && now_ps >= self.from_ps {
            self.inside_ps.push(now_ps - self.written_ps[frame as usize]);
        }
        if let Some(seen_ps) = seen_ps {
            self.tester_intends(seen_ps);
        }
    }

    fn counts(&self) -> Counts {
        let [sends, receives, looks, interrupts] = self.tester.spent_ps;
        let [works, looks_out] = self.device.spent_ps;
        Counts {
            sent: self.tester.sent,
            lost: self.device.lost,
            turns: self.device.turns,
            wakes: self.device.wakes,
            squares: self.tester.squares,
            spent_ps: [sends, receives, looks, interrupts, works, looks_out],
        }
    }
}

/// Makes a trial. Same values and seed, same numbers.
pub fn run(values: &BedValues, trial: &Trial) -> Outcome {
    let duration_ps = trial.duration_ps;
    let mut bed = Bed::new(values, trial);
    bed.run(WARM_UP_PS);
    let before = bed.counts();
    bed.from_ps = WARM_UP_PS;
    bed.run(WARM_UP_PS + duration_ps);
    let after = bed.counts();
    let a_second = |count: u64| count as f64 * SECOND as f64 / duration_ps.max(1) as f64;
    let names = ["the tester sends", "receives", "looks", "is interrupted", "the device works", "looks out"];
    let part = |n: usize| (after.spent_ps[n] - before.spent_ps[n]) as f64 / duration_ps.max(1) as f64;
    let forwarded = bed.inside_ps.len();
    bed.inside_ps.sort_unstable();
    let at = |part: usize| bed.inside_ps.get(forwarded * part / 100).map_or(0.0, |&ps| ps as f64 / 1e6);
    Outcome {
        offered_fps: a_second(after.sent - before.sent),
        forwarded_fps: a_second(forwarded as u64),
        lost_fps: a_second(after.lost - before.lost),
        inside_us: [at(50), at(99)],
        together: (after.squares - before.squares) as f64 / (after.sent - before.sent).max(1) as f64,
        parts: std::array::from_fn(|n| (names[n], part(n))),
        turn: forwarded as f64 / (after.turns - before.turns).max(1) as f64,
        wakes: a_second(after.wakes - before.wakes),
        trace: bed.trace.lines(),
        events: bed.queue.happened(),
    }
}
