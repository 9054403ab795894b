//! Stride scheduling: each task advances by a stride inverse to its tickets, and the one least advanced runs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a task says when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// It did something and wants to run again.
    Worked,
    /// It found nothing to do and wants to run again; the worker may look after other things first.
    Idle,
    /// It wants to run only after [`Cx::wake`], a notifier or a write handler wakes it.
    Sleep,
}

/// Tickets of a task with relative weight 1.
pub const DEFAULT_TICKETS: u32 = 1_024;
/// Most tickets that a task can have.
pub const MAX_TICKETS: u32 = 32_768;
/// Stride of a task with one ticket.
const STRIDE_1: u64 = 65_536;

#[derive(Clone, Copy)]
struct Task {
    tickets: u32,
    pass: u64,
    scheduled: bool,
    /// In the queue; a sleeping task's entry is skipped when it comes up.
    queued: bool,
}

impl Default for Task {
    fn default() -> Self {
        Task { tickets: DEFAULT_TICKETS, pass: 0, scheduled: false, queued: false }
    }
}

/// The tasks of one worker, at most one a node.
#[derive(Default)]
pub(crate) struct Tasks {
    tasks: Vec<Task>,
    /// Least pass first, then first come.
    queue: BinaryHeap<Reverse<(u64, u64, usize)>>,
    sequence: u64,
    /// Pass of the task that ran last: where a woken task joins.
    pass: u64,
}

impl Tasks {
    fn slot(&mut self, node: usize) -> &mut Task {
        if node >= self.tasks.len() {
            self.tasks.resize(node + 1, Task::default());
        }
        &mut self.tasks[node]
    }

    fn enqueue(&mut self, node: usize) {
        let sequence = self.sequence;
        self.sequence += 1;
        let task = self.slot(node);
        task.queued = true;
        let entry = (task.pass, sequence, node);
        self.queue.push(Reverse(entry));
    }

    /// Schedules the task of `node`, unless it is scheduled already.
    pub fn wake(&mut self, node: usize) {
        let pass = self.pass;
        let task = self.slot(node);
        task.scheduled = true;
        if !task.queued {
            task.pass = task.pass.max(pass);
            self.enqueue(node);
        }
    }

    /// Takes the task of `node` off the schedule.
    pub fn sleep(&mut self, node: usize) {
        self.slot(node).scheduled = false;
    }

    pub fn is_scheduled(&self, node: usize) -> bool {
        self.tasks.get(node).is_some_and(|t| t.scheduled)
    }

    pub fn tickets(&self, node: usize) -> u32 {
        self.tasks.get(node).map_or(DEFAULT_TICKETS, |t| t.tickets)
    }

    pub fn set_tickets(&mut self, node: usize, tickets: u32) {
        self.slot(node).tickets = tickets.clamp(1, MAX_TICKETS);
    }

    /// The task to run now. It is scheduled no more until [`Tasks::done`] or a wake-up says so.
    pub fn next(&mut self) -> Option<usize> {
        while let Some(Reverse((pass, _, node))) = self.queue.pop() {
            let task = self.slot(node);
            task.queued = false;
            if std::mem::replace(&mut task.scheduled, false) {
                self.pass = pass;
                return Some(node);
            }
        }
        None
    }

    /// Takes note of what the task of `node` said when it returned.
    pub fn done(&mut self, node: usize, run: Run) {
        let task = self.slot(node);
        task.pass += STRIDE_1 / task.tickets as u64;
        if run == Run::Sleep && !task.scheduled {
            return;
        }
        task.scheduled = true;
        if run == Run::Idle
            && let Some(Reverse((next, ..))) = self.queue.peek()
        {
            // A task without work lets its successor go first, whatever their tickets.
            let next = *next + 1;
            let task = self.slot(node);
            task.pass = task.pass.max(next);
        }
        if !self.slot(node).queued {
            self.enqueue(node);
        }
    }

    /// Number of tasks that want to run.
    pub fn scheduled(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(tickets: &[u32], runs: usize) -> Vec<usize> {
        let mut tasks = Tasks::default();
        for (node, &t) in tickets.iter().enumerate() {
            tasks.set_tickets(node, t);
            tasks.wake(node);
        }
        let mut share = vec![0; tickets.len()];
        for _ in 0..runs {
            let node = tasks.next().unwrap();
            share[node] += 1;
            tasks.done(node, Run::Worked);
        }
        share
    }

    #[test]
    fn equal_tickets_alternate() {
        let mut tasks = Tasks::default();
        tasks.wake(0);
        tasks.wake(1);
        let order: Vec<_> = (0..6)
            .map(|_| {
                let n = tasks.next().unwrap();
                tasks.done(n, Run::Worked);
                n
            })
            .collect();
        assert_eq!(order, [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn shares_follow_tickets() {
        assert_eq!(shares(&[1_024, 2_048, 1_024], 400), [100, 200, 100]);
    }

    #[test]
    fn a_sleeper_stays_off_until_woken_and_does_not_catch_up() {
        let mut tasks = Tasks::default();
        tasks.wake(0);
        tasks.wake(1);
        let first = tasks.next().unwrap();
        tasks.done(first, Run::Sleep);
        for _ in 0..100 {
            let n = tasks.next().unwrap();
            assert_eq!(n, 1);
            tasks.done(n, Run::Worked);
        }
        tasks.wake(0);
        let mut share = [0; 2];
        for _ in 0..10 {
            let n = tasks.next().unwrap();
            share[n] += 1;
            tasks.done(n, Run::Worked);
        }
        assert_eq!(share, [5, 5]);
    }

    #[test]
    fn an_idle_task_lets_the_next_one_go_first() {
        let mut tasks = Tasks::default();
        tasks.set_tickets(0, MAX_TICKETS);
        tasks.wake(0);
        tasks.wake(1);
        assert_eq!(tasks.next(), Some(0));
        tasks.done(0, Run::Idle);
        assert_eq!(tasks.next(), Some(1));
    }
}
