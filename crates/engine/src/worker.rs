//! A worker: the tasks, timers and devices of one thread, without the thread.
//!
//! [`Worker::step`] does a bounded piece of what there is to do and says when to come again. It asks nobody for packets
//! but its devices and for the time but its clock, so that whoever calls it decides what both are: a thread that sleeps in
//! the kernel ([`crate::driver`]), or a simulation.

use crate::conf::Defaults;
use crate::core::Core;
use crate::devices::Devices;
use crate::task::Run;
use crate::waiter::Waiter;
use std::io;

/// Tasks run in one step.
const TASKS_A_STEP: usize = 129;
/// Timers run in one step.
const TIMERS_A_STEP: usize = 64;

/// What a step of a worker found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There was work, and there may be more.
    Worked,
    /// Nothing to do before that time on the worker's clock, nanoseconds, unless a device or another worker calls.
    Until(u64),
    /// Nothing to do until a device or another worker calls.
    Blocked,
    /// An element asked for the router to stop.
    Stopped,
}

/// One worker's elements and devices.
pub(crate) struct Worker {
    pub core: Core,
    pub devices: Devices,
    round: Round,
    pace: Option<Pace>,
}

/// How often a worker that has tasks looks after its timers, where it does so as Click does: every 32 rounds at first, and
/// the more often the later timers run. What a configuration shows of the order of tasks and timers comes from this.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Rounds since the worker started or was without tasks.
    rounds: u32,
    /// Rounds between two looks.
    stride: u32,
    /// Looks in a row at which timers were in time.
    in_time: u32,
}

impl Pace {
    /// Most rounds between two looks.
    const MOST: u32 = 32;
    /// Looks in time after which they become rarer.
    const PATIENCE: u32 = 12;
    /// How late a timer may be, in live time.
    const LATE_NS: u64 = 500_000;

    const NEW: Pace = Pace { rounds: 0, stride: Pace::MOST, in_time: 0 };

    /// Whether it is the timers' turn in a round whose tasks did something, or did not.
    fn turn(&mut self, worked: bool) -> bool {
        self.rounds = if worked { self.rounds + 1 } else { 0 };
        self.rounds.is_multiple_of(self.stride)
    }

    /// A timer is due that should have run so long ago.
    fn due(&mut self, late_ns: u64, simulated: bool) {
        if simulated || late_ns >= Pace::LATE_NS {
            self.in_time = 0;
            self.stride = (self.stride * 4 / 5).max(1);
        } else {
            self.in_time += 1;
            if self.in_time >= Pace::PATIENCE {
                (self.in_time, self.stride) = (0, (self.stride + 1).min(Pace::MOST));
            }
        }
    }
}

/// How far a round is: tasks, then timers, then reception.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    phase: Phase,
    /// Tasks or timers that ran in this phase.
    ran: usize,
    /// Tasks in a row that had nothing to do.
    idle: usize,
    worked: bool,
}

impl Round {
    /// Runs the next task; `None`: none is scheduled, or none of them had anything to do.
    #[inline]
    fn run_task(&mut self, core: &mut Core) -> Option<()> {
        match core.run_task()? {
            Run::Idle => {
                self.idle += 1;
                if self.idle >= core.tasks.scheduled() {
                    return None;
                }
            }
            Run::Worked => (self.worked, self.idle) = (true, 0),
            Run::Sleep => {}
        }
        self.ran += 1;
        Some(())
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Start,
    Tasks,
    /// With the time at which they are due.
    Timers(u64),
    Devices,
}

impl Worker {
    pub fn new(core: Core, devices: Devices) -> Worker {
        let pace = (core.context.defaults == Defaults::Click && core.costs.is_none()).then_some(Pace::NEW);
        Worker { core, devices, round: Round::default(), pace }
    }

    /// Does some of what there is to do: tasks, then timers, then reception.
    pub fn step(&mut self) -> Step {
        loop {
            if let Some(found) = self.piece(usize::MAX) {
                return found;
            }
        }
    }

    /// One piece of a step: the next task, timer or run of reception, which takes at most `limit` packets. Where work
    /// costs time, what it emitted is under way then, and each delivery of that is a piece too. The last piece says what
    /// the step found.
    #[inline]
    pub fn piece(&mut self, limit: usize) -> Option<Step> {
        let Worker { core, devices, round, pace } = self;
        if core.deliver_one() {
            round.worked = true;
            return None;
        }
        if core.run_count <= 0 {
            *round = Round::default();
            return (!core.runs_on()).then_some(Step::Stopped);
        }
        match round.phase {
            Phase::Start => {
                core.clock.touch();
                if core.watched {
                    core.forget_watchers();
                }
                round.phase = Phase::Tasks;
            }
            Phase::Tasks => {
                if round.ran == TASKS_A_STEP || round.run_task(core).is_none() {
                    core.clock.touch();
                    let turn = pace.as_mut().is_none_or(|pace| pace.turn(round.worked));
                    round.phase = match core.timers.next_ns().filter(|_| turn) {
                        Some(due_ns) => {
                            let now_ns = core.clock.now_ns();
                            if let Some(pace) = pace.as_mut().filter(|_| due_ns <= now_ns) {
                                pace.due(now_ns - due_ns, core.clock.is_simulated());
                            }
                            Phase::Timers(now_ns)
                        }
                        None => Phase::Devices,
                    };
                    round.ran = 0;
                }
            }
            Phase::Timers(now_ns) => {
                if round.ran < TIMERS_A_STEP && core.run_timer(now_ns) {
                    (round.ran, round.worked) = (round.ran + 1, true);
                } else {
                    round.phase = Phase::Devices;
                }
            }
            Phase::Devices => {
                round.worked |= devices.run(core, limit);
                if devices.under_way() {
                    return None;
                }
                let worked = std::mem::take(round).worked;
                return (core.run_count > 0).then(|| self.found(worked));
            }
        }
        None
    }

    fn found(&mut self, worked: bool) -> Step {
        let next = [self.core.timers.next_ns(), self.devices.deadline_ns()].into_iter().flatten().min();
        match (worked, next) {
            (true, _) => Step::Worked,
            (false, Some(when_ns)) => Step::Until(when_ns),
            (false, None) => Step::Blocked,
        }
    }

    /// Packets that its elements and its backlog hold, and those under way.
    pub fn held(&self) -> usize {
        let elements = self.core.nodes.iter().filter_map(|n| n.element.as_ref());
        let under_way: usize = self.core.stack.iter().map(|delivery| delivery.batch.len()).sum();
        elements.map(|e| e.held()).sum::<usize>() + self.devices.held() + under_way
    }

    /// Its graph has been replaced: its elements give back what others may take.
    pub fn retire(&mut self) {
        let elements = self.core.nodes.iter_mut().filter_map(|node| node.element.as_mut());
        elements.for_each(|element| element.retire());
    }

    /// A worker with the same number, clock and counters, and no elements.
    pub fn without_graph(&self) -> Worker {
        Worker::new(self.core.without_graph(), Devices::default())
    }

    /// Lets `waiter` wait for the devices, and sets reception going.
    pub fn register(&mut self, waiter: &Waiter) -> io::Result<()> {
        self.devices.register(&mut self.core, waiter)
    }

    /// The opposite of [`Worker::register`].
    pub fn unregister(&mut self, waiter: &Waiter) {
        self.devices.unregister(&mut self.core, waiter);
    }
}
