//! A worker: the tasks, timers and devices of one thread, without the thread.
//!
//! [`Worker::step`] does a bounded piece of what there is to do and says when to come again. It asks nobody for packets
//! but its devices and for the time but its clock, so that whoever calls it decides what both are: a thread that sleeps in
//! the kernel ([`crate::driver`]), or a simulation.

use crate::core::Core;
use crate::devices::Devices;
use crate::element::Run;
use crate::waiter::Waiter;
use std::io;

/// Tasks run in one step.
const TASKS_A_STEP: usize = 128;
/// Timers run in one step.
const TIMERS_A_STEP: usize = 64;

/// What a step found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
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
}

impl Worker {
    /// Does some of what there is to do: tasks, then timers, then reception.
    pub fn step(&mut self) -> Step {
        let core = &mut self.core;
        core.clock.touch();
        if core.watched {
            core.forget_watchers();
        }
        let (mut worked, mut idle) = (false, 0);
        for _ in 0..TASKS_A_STEP {
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
                return Step::Stopped;
            }
        }
        core.clock.touch();
        if core.timers.next_ns().is_some() {
            let now = core.clock.now_ns();
            worked |= core.run_timers(now, TIMERS_A_STEP) > 0;
        }
        worked |= self.devices.run(core);
        if core.stops > 0 {
            return Step::Stopped;
        }
        let next = [core.timers.next_ns(), self.devices.deadline_ns()].into_iter().flatten().min();
        match (worked, next) {
            (true, _) => Step::Worked,
            (false, Some(when_ns)) => Step::Until(when_ns),
            (false, None) => Step::Blocked,
        }
    }

    /// Packets that its elements and its backlog hold.
    pub fn held(&self) -> usize {
        let elements = self.core.nodes.iter().filter_map(|n| n.element.as_ref());
        elements.map(|e| e.held()).sum::<usize>() + self.devices.held()
    }

    /// A worker with the same number, clock and counters, and no elements.
    pub fn without_graph(&self) -> Worker {
        Worker { core: self.core.without_graph(), devices: Devices::default() }
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
