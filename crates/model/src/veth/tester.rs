//! The tester's processor: one thread that sends what is due and takes what has come, by turns.
//!
//! As in `crates/lab/src/tester/in_turns.rs`: it looks at the clock, writes what is due and gives it away by a system call, takes what
//! came, and looks again; it does not sleep. So what became due while frames were received, or others were sent, goes as a batch. The
//! laboratory's watch on processors that stand still takes it away for a moment now and then.
//!
//! Few frames are with the device one by one, many at the end of all of them. A frame that finds the device's processor asleep has
//! the sender wake it before he goes on, which on a virtual machine takes as long as many frames do: what becomes due meanwhile goes
//! together.

use super::machine::TesterValues;
use super::{Trial, paid};
use crate::event::{MICROSECOND, NANOSECOND, SECOND, Time};
use causeway_packet::BATCH;

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
    /// Looks at what is due and at what came, and finds nothing.
    Looks,
}

/// Frames that were written and are not with the device yet.
#[derive(Clone, Copy, Debug)]
struct Handing {
    left: u64,
    /// So many at a time, of which each takes so long.
    part: u64,
    each_ps: Time,
}

/// The processor.
#[derive(Clone, Debug)]
pub struct Tester {
    call_ps: Time,
    look_ps: Time,
    /// A frame: what is done with all of a batch before, and by itself; where few go together, and many.
    single_ps: [Time; 2],
    frame_ps: [Time; 2],
    many: u64,
    many_ps: Time,
    wakes_other_ps: Time,
    receive_ps: Time,
    ring: u64,
    vary: Vary,
    /// Between two frames that are due.
    period_ps: f64,
    /// Frames that leave together, when the last of them is due; and at most, if they are late.
    group: u64,
    most: u64,
    handing: Option<Handing>,
    /// Whether the device's processor has to be woken.
    has_to_wake: bool,
    /// Whether it is the turn of what came.
    takes: bool,
    /// When it began to look, if it does nothing else.
    looks_from_ps: Option<Time>,
    /// The laboratory's.
    watch: Sleeper,
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

    /// When it slept again, if it woke until now.
    pub fn woke(&mut self, now_ps: Time) -> Option<Time> {
        let mut sleeps_ps = None;
        while self.wakes_ps <= now_ps {
            sleeps_ps = Some(self.wakes_ps + self.takes_ps);
            self.wakes_ps += self.takes_ps + self.pause_ps;
        }
        sleeps_ps
    }

    /// When work ends that would end then, if it did not wake.
    pub fn puts_off(&mut self, mut end_ps: Time) -> Time {
        while self.wakes_ps <= end_ps {
            end_ps += self.takes_ps;
            self.wakes_ps += self.takes_ps + self.pause_ps;
        }
        end_ps
    }
}

/// The parts of a frame's time before others of its batch go, and by itself.
pub(super) fn divided(frame_ps: Time, together: u64) -> [Time; 2] {
    let before_ps = frame_ps * together / 1_000;
    [before_ps, frame_ps - before_ps]
}

impl Tester {
    /// One that is to send what a trial has.
    pub fn new(values: &TesterValues, trial: &Trial) -> Tester {
        let Trial { bytes, load_fps, group: (group, most), seed, .. } = *trial;
        let bytes = paid(bytes);
        let frame_ps = values.send.value + values.byte.value * bytes;
        let single_ps = values.single.value + values.single_byte.value * bytes;
        Tester {
            call_ps: values.call.value,
            // Whatever a file says, time passes.
            look_ps: values.look.value.max(10 * NANOSECOND),
            single_ps: divided(single_ps, values.together.value),
            frame_ps: divided(frame_ps, values.together.value),
            many: values.many.value,
            many_ps: values.many_call.value,
            wakes_other_ps: values.wakes.value,
            receive_ps: values.receive.value + values.receive_byte.value * bytes,
            ring: values.ring.value,
            vary: Vary::new(values.vary.value, seed),
            period_ps: SECOND as f64 / load_fps,
            group: u64::from(group.max(1)),
            most: u64::from(most.max(1)),
            handing: None,
            has_to_wake: false,
            takes: false,
            looks_from_ps: None,
            watch: Sleeper::new(values.watch.value, values.watched.value),
            sent: 0,
            squares: 0,
            waiting: 0,
            lost: 0,
            spent_ps: [0; 4],
        }
    }

    /// A frame came back. Whether there was room for it, and when that is seen if nothing else is done.
    pub fn came(&mut self, now_ps: Time) -> (bool, Option<Time>) {
        let room = self.waiting < self.ring;
        *(if room { &mut self.waiting } else { &mut self.lost }) += 1;
        let seen = self.looks_from_ps.map(|from_ps| {
            let looks = now_ps.saturating_sub(from_ps).div_ceil(self.look_ps).max(1);
            from_ps + looks * self.look_ps
        });
        (room, seen)
    }

    /// A frame found the device's processor asleep: whoever hands over wakes it before he goes on.
    pub fn has_to_wake(&mut self) {
        self.has_to_wake = true;
    }

    /// What is done from now on, and until when; a look ends when a frame comes.
    pub fn next(&mut self, now_ps: Time) -> (Piece, Time) {
        if let Some(from_ps) = self.looks_from_ps.take() {
            self.spent_ps[2] += now_ps - from_ps;
            // What the watch took while there was nothing to do nobody waited for, but for what is left of it.
            if let Some(until_ps) = self.watch.woke(now_ps).filter(|until_ps| *until_ps > now_ps) {
                self.spent_ps[3] += until_ps - now_ps;
                return (Piece::Looks, until_ps);
            }
        }
        let (piece, ps) = self.hand_over().unwrap_or_else(|| self.turn(now_ps));
        match piece {
            Piece::Writes(_) | Piece::HandsOver(_) | Piece::Wakes => self.spent_ps[0] += ps,
            Piece::Receives(_) => self.spent_ps[1] += ps,
            Piece::Looks => self.looks_from_ps = Some(now_ps),
        }
        if piece == Piece::Looks {
            return (piece, now_ps + ps);
        }
        let end_ps = self.watch.puts_off(now_ps + ps);
        self.spent_ps[3] += end_ps - now_ps - ps;
        (piece, end_ps)
    }

    /// What is left of a system call.
    fn hand_over(&mut self) -> Option<(Piece, Time)> {
        if std::mem::take(&mut self.has_to_wake) {
            let [ps] = self.vary.of([self.wakes_other_ps]);
            return Some((Piece::Wakes, ps));
        }
        let Handing { left, part, each_ps } = self.handing.take()?;
        if left > part {
            self.handing = Some(Handing { left: left - part, part, each_ps });
        }
        Some((Piece::HandsOver(part), part * each_ps))
    }

    fn turn(&mut self, now_ps: Time) -> (Piece, Time) {
        let due = self.due(now_ps);
        let takes = std::mem::take(&mut self.takes);
        if self.waiting > 0 && (takes || due == 0) {
            let frames = self.waiting.min(BATCH as u64);
            self.waiting -= frames;
            let [ps] = self.vary.of([frames * self.receive_ps]);
            return (Piece::Receives(frames), self.look_ps + ps);
        }
        if due == 0 {
            let last = self.sent - self.sent % self.group + self.group - 1;
            let left_ps = self.due_ps(last).saturating_sub(now_ps);
            return (Piece::Looks, left_ps.div_ceil(self.look_ps).max(1) * self.look_ps);
        }
        self.takes = true;
        self.send(due.min(self.most))
    }

    /// When the frame of this number is due.
    fn due_ps(&self, number: u64) -> Time {
        (number as f64 * self.period_ps) as Time
    }

    /// Frames that are due and were not sent, in whole groups.
    fn due(&self, now_ps: Time) -> u64 {
        // One more than by division, which rounds.
        let most = (now_ps as f64 / self.period_ps) as u64 + 2;
        let due = (most.saturating_sub(2)..=most).take_while(|&number| self.due_ps(number) <= now_ps).last();
        let whole = |number: u64| (number + 1) / self.group * self.group;
        due.map_or(0, |number| whole(number).saturating_sub(self.sent))
    }

    fn send(&mut self, frames: u64) -> (Piece, Time) {
        let (call_ps, [before_ps, each_ps], part) = match frames >= self.many {
            true => (self.call_ps + self.many_ps, self.frame_ps, frames),
            false => (self.call_ps, self.single_ps, 1),
        };
        let [before_ps, each_ps] = self.vary.of([call_ps + frames * before_ps, each_ps]);
        self.sent += frames;
        self.squares += frames * frames;
        self.handing = Some(Handing { left: frames, part, each_ps });
        (Piece::Writes(frames), before_ps)
    }
}
