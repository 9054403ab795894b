//! The tester's processor: a thread that sends and one that receives, which take turns.
//!
//! As in `crates/lab/src/tester`. Who sends writes what is due and gives it away by a system call, and offers the processor to the
//! other where nothing is due. Who receives takes what has come until nothing is left, and sleeps. So what became due while frames
//! were received, or others were sent, goes as a batch. A thread that does not make way by itself does so at the clock's next tick.

use super::machine::TesterValues;
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
    /// Sends so many frames: when the first is with the device, and how long after it each other one.
    Sends {
        /// How many.
        frames: u64,
        /// From the begin.
        first_ps: Time,
        /// From one to the next.
        each_ps: Time,
    },
    /// Takes so many frames that came.
    Receives(u64),
    /// Looks at what is due, and finds nothing.
    Looks,
    /// The receiver finds nothing, and sleeps.
    Sleeps,
}

/// The processor.
#[derive(Clone, Debug)]
pub struct Tester {
    call_ps: Time,
    look_ps: Time,
    /// A frame: what is done with all of a batch before, and by itself.
    frame_ps: [Time; 2],
    batch: u64,
    receive_ps: Time,
    pause_ps: Time,
    slice_ps: Time,
    ring: u64,
    vary: Vary,
    /// Between two frames that are due.
    period_ps: f64,
    runs: Thread,
    since_ps: Time,
    /// When the receiver wakes, or woke.
    wakes_ps: Time,
    /// Frames sent so far.
    pub sent: u64,
    /// Frames that came and were not taken.
    waiting: u64,
    /// Frames that found no room.
    pub lost: u64,
    /// Time that went into sending, receiving and looking.
    pub spent_ps: [Time; 3],
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

/// The parts of a frame's time before others of its batch go, and by itself.
pub(super) fn divided(frame_ps: Time, together: u64) -> [Time; 2] {
    let before_ps = frame_ps * together / 1_000;
    [before_ps, frame_ps - before_ps]
}

impl Tester {
    /// One that is to send so many frames of this length a second.
    pub fn new(values: &TesterValues, bytes: u32, load_fps: f64, seed: u64) -> Tester {
        let frame_ps = values.send.value + values.byte.value * u64::from(bytes);
        Tester {
            call_ps: values.call.value,
            // Whatever a file says, time passes.
            look_ps: values.look.value.max(10 * NANOSECOND),
            frame_ps: divided(frame_ps, values.together.value),
            batch: values.batch.value,
            receive_ps: values.receive.value,
            pause_ps: values.pause.value.max(MICROSECOND),
            slice_ps: values.slice.value.max(MICROSECOND),
            ring: values.ring.value,
            vary: Vary::new(values.vary.value, seed),
            period_ps: SECOND as f64 / load_fps,
            runs: Thread::Sends,
            since_ps: 0,
            wakes_ps: 0,
            sent: 0,
            waiting: 0,
            lost: 0,
            spent_ps: [0; 3],
        }
    }

    /// A frame came back; whether there was room for it.
    pub fn came(&mut self) -> bool {
        let room = self.waiting < self.ring;
        *(if room { &mut self.waiting } else { &mut self.lost }) += 1;
        room
    }

    /// What is done from now on, and until when.
    pub fn next(&mut self, now_ps: Time) -> (Piece, Time) {
        let (piece, ps) = loop {
            let over = now_ps - self.since_ps >= self.slice_ps;
            let due = self.due(now_ps);
            match self.runs {
                Thread::Sends if self.wakes_ps <= now_ps && (due == 0 || over) => {
                    self.make_way(Thread::Receives, now_ps);
                }
                Thread::Sends if due == 0 => break (Piece::Looks, self.looks_ps(now_ps)),
                Thread::Sends => break self.send(due.min(self.batch)),
                Thread::Receives if self.waiting == 0 => {
                    self.make_way(Thread::Sends, now_ps);
                    let [pause_ps] = self.vary.of([self.pause_ps]);
                    self.wakes_ps = now_ps + self.call_ps + pause_ps;
                    break (Piece::Sleeps, self.call_ps);
                }
                // Who sends waits for its turn.
                Thread::Receives if over => self.make_way(Thread::Sends, now_ps),
                Thread::Receives => {
                    let frames = self.waiting.min(self.batch);
                    self.waiting -= frames;
                    let [ps] = self.vary.of([frames * self.receive_ps]);
                    break (Piece::Receives(frames), ps);
                }
            }
        };
        let what = match piece {
            Piece::Sends { .. } => 0,
            Piece::Receives(_) | Piece::Sleeps => 1,
            Piece::Looks => 2,
        };
        self.spent_ps[what] += ps;
        (piece, now_ps + ps)
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
        let [together_ps, each_ps] = self.frame_ps;
        let [before_ps, each_ps] = self.vary.of([self.call_ps + frames * together_ps, each_ps]);
        self.sent += frames;
        (Piece::Sends { frames, first_ps: before_ps + each_ps, each_ps }, before_ps + frames * each_ps)
    }

    /// Looks follow each other until something is to be done.
    fn looks_ps(&self, now_ps: Time) -> Time {
        let until_ps = self.due_ps(self.sent).min(self.wakes_ps);
        (until_ps.saturating_sub(now_ps)).div_ceil(self.look_ps).max(1) * self.look_ps
    }
}
