//! Asking workers: what they do between two steps, and until when whoever asked waits for the answers.

use super::Router;
use crate::driver::{Command, Driver, Task};
use crate::error::NoAnswer;
use crate::worker::Worker;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long the workers may take to answer one request, all of them together: a handler that writes a table of a million
/// routes down takes a second.
const ANSWER: Duration = Duration::from_secs(5);

/// Until when one request waits, however many workers it asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit(Instant);

impl Limit {
    /// That of a request that begins now.
    pub fn new() -> Limit {
        Limit::after(ANSWER)
    }

    /// So long from now.
    #[expect(clippy::disallowed_methods, reason = "the control side")]
    pub fn after(time: Duration) -> Limit {
        Limit(Instant::now() + time)
    }

    /// How much of it is left.
    #[expect(clippy::disallowed_methods, reason = "the control side")]
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// A worker that has been asked.
pub(super) struct Asked<R> {
    worker: usize,
    answer: Receiver<R>,
}

impl<R> Asked<R> {
    /// Waits for the answer. A worker that answers too late has done it all the same.
    #[expect(clippy::disallowed_methods, reason = "the control side")]
    pub fn wait(&self, limit: Limit) -> Result<R, NoAnswer> {
        self.answer.recv_timeout(limit.left()).map_err(|_| NoAnswer(self.worker))
    }
}

impl Router {
    /// Has `f` run on a worker between two steps and returns its result.
    pub(super) fn call<R: Send + 'static>(
        &self,
        worker: usize,
        limit: Limit,
        f: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<R, NoAnswer> {
        self.ask(Command::Call, worker, |driver| f(&mut driver.worker))?.wait(limit)
    }

    /// The same on all workers, at the same time.
    pub(super) fn call_all<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Worker) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, NoAnswer> {
        self.call_each(Limit::new(), (0..self.handles.len()).map(|worker| (worker, f.clone())))
    }

    /// Has each of these workers run what is beside its number, at the same time, and returns the results in order.
    pub(super) fn call_each<R: Send + 'static, F: FnOnce(&mut Worker) -> R + Send + 'static>(
        &self,
        limit: Limit,
        calls: impl Iterator<Item = (usize, F)>,
    ) -> Result<Vec<R>, NoAnswer> {
        let ask = |(worker, f): (usize, F)| self.ask(Command::Call, worker, |d| f(&mut d.worker));
        let asked: Vec<Asked<R>> = calls.map(ask).collect::<Result<_, _>>()?;
        asked.iter().map(|asked| asked.wait(limit)).collect()
    }

    /// Asks for `f` to be run by `command`, with the means of the worker's thread.
    pub(super) fn ask<R: Send + 'static>(
        &self,
        command: fn(Task) -> Command,
        worker: usize,
        f: impl FnOnce(&mut Driver) -> R + Send + 'static,
    ) -> Result<Asked<R>, NoAnswer> {
        let (sender, answer) = mpsc::channel();
        let command = command(Box::new(move |driver| {
            // The asker may have gone; nobody misses the answer then.
            let _ = sender.send(f(driver));
        }));
        self.send(worker, command)?;
        Ok(Asked { worker, answer })
    }

    pub(super) fn send(&self, worker: usize, command: Command) -> Result<(), NoAnswer> {
        let handle = self.handles.get(worker).ok_or(NoAnswer(worker))?;
        handle.commands.send(command).map_err(|_| NoAnswer(worker))?;
        handle.doorbell.wake();
        Ok(())
    }
}
