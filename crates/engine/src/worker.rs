//! A worker: one thread that runs tasks, timers and devices, and sleeps when there is nothing to do.
//!
//! Between two rounds it carries out what the control side asks: read a counter, write a handler, change the
//! graph. That is the only place where the graph of a worker changes, so a packet sees one graph or the other.

use crate::core::Core;
use crate::crossing::Doorbell;
use crate::devices::Devices;
use crate::element::Run;
use crate::pulse::Pulse;
use mio::{Events, Poll, Token};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

/// Tasks run between two looks at timers, devices and commands.
const TASKS_A_ROUND: usize = 128;
/// Timers run in one round.
const TIMERS_A_ROUND: usize = 64;
/// Rounds between two looks at descriptors while there is work.
const ROUNDS_A_POLL: u32 = 32;
/// A worker that sleeps wakes at least that often, so that its pulse tells sleep from being stuck.
const BEAT: Duration = Duration::from_millis(250);
/// Token of the doorbell; devices use their node number.
pub(crate) const DOORBELL: Token = Token(usize::MAX);

/// What the control side asks of a worker.
pub(crate) enum Command {
    /// Run a closure between two rounds.
    Call(Box<dyn FnOnce(&mut Worker) + Send>),
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

/// One worker's state.
pub(crate) struct Worker {
    pub core: Core,
    pub devices: Devices,
    pub doorbell: Arc<Doorbell>,
    pub commands: Receiver<Command>,
    pub events: Sender<Event>,
    pub poll: Poll,
    pub pulse: Pulse,
    pub on_failure: Option<OnFailure>,
    running: bool,
}

impl Worker {
    pub fn new(
        core: Core,
        devices: Devices,
        doorbell: Arc<Doorbell>,
        poll: Poll,
        commands: Receiver<Command>,
        events: Sender<Event>,
    ) -> Self {
        let pulse = Pulse::default();
        Worker { core, devices, doorbell, commands, events, poll, pulse, on_failure: None, running: false }
    }

    /// Runs until told to exit.
    pub fn run(mut self) {
        let (worker, events) = (self.core.worker, self.events.clone());
        // A local value is dropped before the arguments, so that nobody waits for the elements to go.
        let mut farewell = Farewell { worker, on_failure: self.on_failure.take(), events };
        match self.rounds() {
            Ok(()) => farewell.on_failure = None,
            Err(e) => log::error!("worker {worker}: {e}"),
        }
    }

    fn rounds(&mut self) -> io::Result<()> {
        self.devices.register(&mut self.core, &self.poll)?;
        let mut events = Events::with_capacity(64);
        let mut round = 0u32;
        while self.obey() {
            let worked = self.round();
            round = round.wrapping_add(1);
            if self.core.stops > 0 {
                self.running = false;
                // The control side may be gone already; then the exit command or a closed channel follows.
                let _ = self.events.send(Event::StopRequested { worker: self.core.worker });
            } else if !worked {
                self.sleep(&mut events)?;
            } else if round.is_multiple_of(ROUNDS_A_POLL) && self.devices.any_armed() {
                self.wait(&mut events, Some(Duration::ZERO))?;
            }
        }
        Ok(())
    }

    /// Carries out commands; blocks for them while the worker is paused. False = exit.
    fn obey(&mut self) -> bool {
        loop {
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
            match command {
                Command::Call(f) => f(self),
                Command::Resume => {
                    self.core.stops = 0;
                    self.running = true;
                }
                Command::Pause => self.running = false,
                Command::Exit => return false,
            }
        }
    }

    /// One round of tasks, timers and devices; says whether any had work.
    fn round(&mut self) -> bool {
        let core = &mut self.core;
        core.clock.touch();
        let (mut worked, mut idle) = (false, 0);
        for _ in 0..TASKS_A_ROUND {
            match core.run_task() {
                None => break,
                Some(Run::Idle) => {
                    idle += 1;
                    if idle >= core.tasks.scheduled() {
                        break;
                    }
                }
                Some(Run::Worked) => (worked, idle) = (true, 0),
                Some(Run::Sleep) => {}
            }
            if core.stops > 0 {
                return true;
            }
        }
        core.clock.touch();
        if core.timers.next_ns().is_some() {
            let now = core.clock.now_ns();
            worked |= core.run_timers(now, TIMERS_A_ROUND) > 0;
        }
        worked |= self.devices.run(core);
        if let Some(now_ns) = core.clock.monotonic_ns() {
            self.pulse.beat(now_ns);
        }
        worked
    }

    /// Sleeps until a timer, a device or the doorbell. Simulated time jumps instead.
    fn sleep(&mut self, events: &mut Events) -> io::Result<()> {
        let next = [self.core.timers.next_ns(), self.devices.deadline_ns()].into_iter().flatten().min();
        if let Some(when) = next
            && self.core.clock.jump(when)
        {
            return Ok(());
        }
        self.doorbell.going_to_sleep();
        // The last look: packets sent before the line above rang no bell. Commands always do.
        if !self.round() && self.core.stops == 0 && !self.devices.polling() {
            let next = [self.core.timers.next_ns(), self.devices.deadline_ns()].into_iter().flatten().min();
            self.core.clock.touch();
            let now = self.core.clock.now_ns();
            let due = next.map(|when| Duration::from_nanos(when.saturating_sub(now)));
            let beat = self.core.clock.monotonic_ns().map(|_| BEAT);
            self.wait(events, due.into_iter().chain(beat).min())?;
        }
        self.doorbell.awake();
        if self.core.stops > 0 {
            self.running = false;
            let _ = self.events.send(Event::StopRequested { worker: self.core.worker });
        }
        Ok(())
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(events, timeout) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
            _ => {}
        }
        for event in events.iter().filter(|e| e.token() != DOORBELL) {
            self.devices.interrupt(event.token().0);
        }
        Ok(())
    }
}
