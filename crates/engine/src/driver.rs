//! The thread of a worker: between two steps it carries out what the control side asks, and when a step finds nothing to
//! do it spins for a while, then sleeps.
//!
//! Between two steps is the only place where the graph of a worker changes, so a packet sees one graph or the other
//! ([`crate::exchange`]).

use crate::crossing::Doorbell;
use crate::exchange::Pending;
use crate::pulse::Pulse;
use crate::spin::Spin;
use crate::waiter::Waiter;
use crate::worker::{Step, Worker};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

/// Steps between two looks at descriptors while there is work.
const STEPS_A_LOOK: u32 = 32;
/// A worker that sleeps wakes at least that often, so that its pulse tells sleep from being stuck.
const BEAT: Duration = Duration::from_millis(250);

/// What is done on a worker's thread between two steps.
pub(crate) type Task = Box<dyn FnOnce(&mut Driver) + Send>;

/// What the control side asks of a worker.
pub(crate) enum Command {
    /// Run a closure between two steps.
    Call(Task),
    /// The same, and take a step before the next command: others like it follow.
    Piece(Task),
    /// Run tasks, timers and devices.
    Resume,
    /// Stop running them, but go on answering.
    Pause,
    /// End the thread.
    Exit,
}

/// What a worker tells the control side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An element asked the driver to stop; the worker waits.
    StopRequested {
        /// The worker's number.
        worker: usize,
    },
    /// The worker's thread ended; it failed if nobody told it to.
    Ended {
        /// The worker's number.
        worker: usize,
    },
}

/// What is to be done at once when a worker fails: when it panics, or cannot wait for its devices.
///
/// It is called with the worker's number on the worker's own thread, before its elements are dropped (but for one that
/// panicked), and must neither wait nor panic.
#[derive(Clone)]
pub struct OnFailure(Arc<dyn Fn(usize) + Send + Sync>);

impl OnFailure {
    /// Calls `f` when a worker fails.
    pub fn new(f: impl Fn(usize) + Send + Sync + 'static) -> OnFailure {
        OnFailure(Arc::new(f))
    }
}

impl fmt::Debug for OnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnFailure")
    }
}

/// Tells that the worker has ended, also when it panics.
struct Farewell {
    worker: usize,
    /// `None` once the worker has ended as it was told to.
    on_failure: Option<OnFailure>,
    events: Sender<Event>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        if let Some(OnFailure(f)) = &self.on_failure {
            f(self.worker);
        }
        // The control side may be gone.
        let _ = self.events.send(Event::Ended { worker: self.worker });
    }
}

/// A worker with its thread's means: what wakes it, what it is told, and whom it tells.
pub(crate) struct Driver {
    pub worker: Worker,
    /// The graph that is to follow, while there is one.
    pub pending: Option<Pending>,
    pub doorbell: Arc<Doorbell>,
    pub commands: Receiver<Command>,
    pub events: Sender<Event>,
    pub waiter: Waiter,
    pub spin: Spin,
    pub pulse: Pulse,
    /// Since when it is noted which receivers were found empty ([`Pulse::empty_ns`]).
    pub looking_ns: Option<u64>,
    pub on_failure: Option<OnFailure>,
    pub running: bool,
}

impl Driver {
    /// Runs until told to exit.
    pub fn run(mut self) {
        let (worker, events) = (self.worker.core.worker, self.events.clone());
        // A local value is dropped before the arguments, so that nobody waits for the elements to go.
        let mut farewell = Farewell { worker, on_failure: self.on_failure.take(), events };
        match self.steps() {
            Ok(()) => farewell.on_failure = None,
            Err(e) => log::error!("worker {worker}: {e}"),
        }
    }

    fn steps(&mut self) -> io::Result<()> {
        self.worker.register(&self.waiter)?;
        let mut steps = 0u32;
        while self.obey() {
            match self.step() {
                Step::Stopped => {}
                Step::Worked => {
                    self.spin.worked();
                    steps = steps.wrapping_add(1);
                    if steps.is_multiple_of(STEPS_A_LOOK) && self.worker.devices.any_armed() {
                        self.wait(Some(Duration::ZERO))?;
                    }
                }
                idle => self.idle(idle)?,
            }
        }
        Ok(())
    }

    /// Carries out commands; blocks for them while the worker is paused. False = exit.
    #[expect(clippy::disallowed_methods, reason = "a worker that is paused has nothing else to do")]
    fn obey(&mut self) -> bool {
        loop {
            self.exchange();
            let command = match self.running {
                true => match self.commands.try_recv() {
                    Ok(c) => c,
                    Err(TryRecvError::Empty) => return true,
                    Err(TryRecvError::Disconnected) => return false,
                },
                false => match self.commands.recv() {
                    Ok(c) => c,
                    Err(_) => return false,
                },
            };
            // What has its graph already may have sent it, and then means the next graph here as well.
            self.exchange();
            match command {
                Command::Call(f) => f(self),
                Command::Piece(f) => {
                    f(self);
                    if self.running {
                        return true;
                    }
                }
                Command::Resume => {
                    self.running = true;
                }
                Command::Pause => self.running = false,
                Command::Exit => return false,
            }
        }
    }

    /// One step of the worker, and what follows from it whatever it found.
    fn step(&mut self) -> Step {
        if self.looking_ns.is_none() {
            self.looking_ns = self.worker.core.clock.monotonic_ns();
            self.worker.devices.look_anew();
        }
        let step = self.worker.step();
        if let Some(now_ns) = self.worker.core.clock.monotonic_ns() {
            self.pulse.beat(now_ns);
        }
        if let Some(since_ns) = self.looking_ns
            && self.worker.devices.emptied()
        {
            self.pulse.emptied(since_ns);
            self.looking_ns = None;
        }
        if step == Step::Stopped {
            self.running = false;
            self.worker.core.run_count = 1;
            // The control side may be gone already; then the exit command or a closed channel follows.
            let _ = self.events.send(Event::StopRequested { worker: self.worker.core.worker });
        }
        step
    }

    /// There was nothing to do: simulated time jumps, and a worker that lives spins or sleeps.
    fn idle(&mut self, step: Step) -> io::Result<()> {
        if let Step::Until(when_ns) = step
            && self.worker.core.clock.jump(when_ns)
        {
            return Ok(());
        }
        let now_ns = self.worker.core.clock.now_ns();
        if self.worker.devices.polling() || self.spin.goes_on(now_ns) {
            std::hint::spin_loop();
            return Ok(());
        }
        self.doorbell.going_to_sleep();
        // The last look: packets sent before the line above rang no bell. Commands always do.
        let step = self.step();
        if matches!(step, Step::Until(_) | Step::Blocked) {
            let clock = &mut self.worker.core.clock;
            clock.touch();
            let now_ns = clock.now_ns();
            let beat = clock.monotonic_ns().map(|_| BEAT);
            let due = match step {
                Step::Until(when_ns) => {
                    let left_ns = clock.true_ns(when_ns.saturating_sub(now_ns));
                    Some(Duration::from_nanos(left_ns))
                }
                _ => None,
            };
            self.wait(due.into_iter().chain(beat).min())?;
            self.worker.core.clock.touch();
            self.spin.slept(now_ns, self.worker.core.clock.now_ns());
        }
        self.doorbell.awake();
        Ok(())
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let devices = &mut self.worker.devices;
        self.waiter.wait(timeout, |port| devices.interrupt(port))
    }
}
