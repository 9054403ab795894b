//! The device's processor: it sleeps, is woken, works in turns, and looks out for more.
//!
//! The kernel takes from its backlog what is there and what comes meanwhile, up to a poll's weight, and only then do they leave, when
//! the other veth is polled; when nothing is left its processor halts, and the next frame has whoever brings it wake it by an
//! interrupt. Causeway's worker takes a batch from its ring, and looks on for as long as that has paid lately ([`Spin`], the
//! live router's) before it sleeps. What a turn takes all of its frames wait for.

use super::machine::DeviceValues;
use super::paid;
use super::tester::{Sleeper, Vary, divided};
use crate::event::Time;
use causeway_engine::{Spin, SpinTime};
use std::collections::VecDeque;

const PS_PER_NS: u64 = 1_000;

/// What the processor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sleeps,
    Wakes,
    /// Takes frames of a turn.
    Takes,
    /// They leave.
    Works,
    LooksOut,
}

/// What comes of a frame that comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comes {
    /// When the processor goes on because of it, if it does.
    pub goes_on_ps: Option<Time>,
    /// Whether who brought it has to wake the processor.
    pub wakes: bool,
}

/// The second half of a turn: when the first of its frames leaves, how long after it each other one, and when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Of the first.
    pub first_ps: Time,
    /// From one to the next.
    pub each_ps: Time,
    /// Of the last, with which it ends.
    pub end_ps: Time,
}

/// What comes of going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// It takes frames until then.
    Takes(Time),
    /// Those that it took leave.
    Turn(Turn),
    /// It looks out until then.
    LooksOut(Time),
    /// It sleeps.
    Sleeps,
}

/// The processor, and what waits for it.
#[derive(Clone, Debug)]
pub struct Device {
    wake_ps: Time,
    look_ps: Time,
    turn_ps: Time,
    frame_ps: [Time; 2],
    /// How much longer a frame takes where few leave together; from how many on they are many; what those take beside the frames.
    single_ps: Time,
    many: u64,
    many_ps: Time,
    batch: u64,
    joins: u64,
    room: usize,
    vary: Vary,
    watch: Sleeper,
    spin: Spin,
    state: State,
    since_ps: Time,
    /// Numbers of frames that wait.
    pub queue: VecDeque<u32>,
    /// Those that were taken in this turn.
    pub taken: Vec<u32>,
    /// Numbers intentions, so that an end that was overtaken is known.
    pub intention: u64,
    /// Frames that found no room.
    pub lost: u64,
    /// Turns so far.
    pub turns: u64,
    /// Times that it was woken.
    pub wakes: u64,
    /// Time that went into work and into looking out.
    pub spent_ps: [Time; 2],
}

impl Device {
    /// One that forwards frames of this length.
    pub fn new(values: &DeviceValues, bytes: u32, seed: u64) -> Device {
        let frame_ps = values.frame.value + values.byte.value * paid(bytes);
        Device {
            wake_ps: values.wake.value,
            look_ps: values.look.value,
            turn_ps: values.turn.value,
            frame_ps: divided(frame_ps, values.together.value),
            single_ps: values.single.value,
            many: values.many.value,
            many_ps: values.many_call.value,
            batch: values.batch.value.max(1),
            joins: values.joins.value,
            room: values.room.value as usize,
            vary: Vary::new(values.vary.value, seed),
            watch: Sleeper::new(values.watch.value, values.watched.value),
            spin: Spin::new(SpinTime::Adaptive(values.spin.value / PS_PER_NS)),
            state: State::Sleeps,
            since_ps: 0,
            queue: VecDeque::new(),
            taken: Vec::new(),
            intention: 0,
            lost: 0,
            turns: 0,
            wakes: 0,
            spent_ps: [0; 2],
        }
    }

    /// A frame comes.
    pub fn comes(&mut self, frame: u32, now_ps: Time) -> Comes {
        if self.queue.len() >= self.room {
            self.lost += 1;
            return Comes::default();
        }
        self.queue.push_back(frame);
        let (ps, wakes) = match self.state {
            State::Wakes | State::Takes | State::Works => return Comes::default(),
            State::Sleeps => {
                self.wakes += 1;
                let [wake_ps] = self.vary.of([self.wake_ps]);
                self.spin.slept(self.since_ps / PS_PER_NS, (now_ps + wake_ps) / PS_PER_NS);
                self.state = State::Wakes;
                (wake_ps, true)
            }
            State::LooksOut => {
                self.spent_ps[1] += now_ps - self.since_ps;
                self.state = State::Works;
                (self.look_ps, false)
            }
        };
        self.intention += 1;
        Comes { goes_on_ps: Some(now_ps + ps), wakes }
    }

    /// It goes on: with a turn if frames wait, else it looks out for more, or sleeps.
    pub fn goes_on(&mut self, now_ps: Time) -> Goes {
        self.intention += 1;
        if self.state == State::Takes {
            // What came meanwhile joins.
            let more =
                (self.queue.len() as u64).min(self.joins.saturating_sub(self.taken.len() as u64)).min(1);
            return if more > 0 { self.takes(more, 0, now_ps) } else { self.turn(now_ps) };
        }
        let looked = self.state == State::LooksOut;
        let since_ps = std::mem::replace(&mut self.since_ps, now_ps);
        if !self.queue.is_empty() {
            let first = if self.joins > 1 { 1 } else { self.batch };
            return self.takes(first.min(self.queue.len() as u64), self.turn_ps, now_ps);
        }
        if looked {
            self.spent_ps[1] += now_ps - since_ps;
        }
        let spin_ps = self.spin.now_ns() * PS_PER_NS;
        if looked || spin_ps == 0 {
            self.state = State::Sleeps;
            return Goes::Sleeps;
        }
        self.state = State::LooksOut;
        Goes::LooksOut(now_ps + spin_ps)
    }

    fn takes(&mut self, frames: u64, before_ps: Time, now_ps: Time) -> Goes {
        self.taken.extend(self.queue.drain(..frames as usize));
        self.state = State::Takes;
        let [ps] = self.vary.of([before_ps + frames * self.frame_ps[0]]);
        let end_ps = self.watched(now_ps, ps);
        self.spent_ps[0] += end_ps - now_ps;
        Goes::Takes(end_ps)
    }

    fn turn(&mut self, now_ps: Time) -> Goes {
        let frames = self.taken.len() as u64;
        let (call_ps, more_ps) = if frames >= self.many { (self.many_ps, 0) } else { (0, self.single_ps) };
        let [call_ps, each_ps] = self.vary.of([call_ps, self.frame_ps[1] + more_ps]);
        let work_ps = call_ps + frames * each_ps;
        let end_ps = self.watched(now_ps, work_ps);
        let first_ps = end_ps - work_ps + call_ps + each_ps;
        self.state = State::Works;
        self.turns += 1;
        self.spent_ps[0] += end_ps - now_ps;
        Goes::Turn(Turn { first_ps, each_ps, end_ps })
    }

    /// When work that takes so long ends, which the watch puts off.
    fn watched(&mut self, now_ps: Time, work_ps: Time) -> Time {
        // What it took of a processor that slept nobody waited for.
        self.watch.woke(now_ps);
        self.watch.puts_off(now_ps + work_ps)
    }
}
