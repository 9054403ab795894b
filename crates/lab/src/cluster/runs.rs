//! The stories: what happens to the nodes of a cluster, with traffic under it.

use super::node::{Failure, Node};
use super::records::{Record, Steady};
use super::site::{Plan, Site};
use super::trial::{Edges, Observed};
use super::{Hashing, Run};
use crate::tester::TrialClock;
use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Traffic before something happens: each flow is seen several times.
const BEFORE: Duration = Duration::from_millis(500);
/// And after it.
const AFTER: Duration = Duration::from_millis(700);
/// How long nothing happens where nothing is to happen.
const STEADY: Duration = Duration::from_millis(1_500);
/// In a resilient group, what is not used for a second moves to a node that came.
const IDLE: Duration = Duration::from_millis(1_800);
/// A flood: so many frames at most, at a rate that nothing here forwards.
const FLOOD_FRAMES: u64 = 800_000;
const FLOOD_FPS: f64 = 1e6;

/// What came of a story.
pub enum Found {
    /// Something happened.
    Event(Record),
    /// Nothing did.
    Steady(Steady),
}

/// A cluster under test.
pub struct Course<'a> {
    // Its sockets hold namespaces.
    edges: Edges,
    site: Site,
    plan: Plan,
    group: String,
    interrupted: Arc<AtomicBool>,
    found: &'a mut dyn FnMut(Found),
}

impl<'a> Course<'a> {
    /// Sets a cluster up, of which no node runs yet; `found` is told of each result.
    pub fn new(
        plan: Plan,
        interrupted: Arc<AtomicBool>,
        found: &'a mut dyn FnMut(Found),
    ) -> Result<Course<'a>> {
        let site = Site::new(plan)?;
        let edges = Edges::new(&site, interrupted.clone())?;
        Ok(Course { edges, site, plan, group: plan.name(), interrupted, found })
    }

    /// Starts the nodes; one after the other, with a look at each number of them, if that is asked for.
    pub fn start(&mut self, steady: bool) -> Result<()> {
        for number in 1..=self.plan.nodes {
            self.site.nodes[number - 1].start()?;
            if steady {
                self.site.wait_for(number, &self.interrupted)?;
                self.steady(number)?;
            }
        }
        self.site.wait_for(self.plan.nodes, &self.interrupted)?;
        self.settle()
    }

    /// Tells a run's story.
    pub fn run(&mut self, run: Run) -> Result<()> {
        match run {
            // The nodes' start is that.
            Run::Steady => Ok(()),
            Run::Router => self.router(1),
            Run::Silent => (1..=self.plan.nodes).try_for_each(|node| self.failure(node, Failure::Silent)),
            Run::Cable => self.failure(1, Failure::Cable),
            Run::Drain => self.drain(1),
        }
        .with_context(|| format!("{}, {}", self.group, run.name()))
    }

    /// Gives buckets without traffic the time to move.
    fn settle(&mut self) -> Result<()> {
        match self.plan.hashing {
            Hashing::Threshold => Ok(()),
            Hashing::Resilient => self.site.pause(IDLE, &self.interrupted),
        }
    }

    fn steady(&mut self, nodes: usize) -> Result<()> {
        self.settle()?;
        let Course { site, edges, .. } = self;
        let (seen, ()) = edges.during(|_, interrupted| site.pause(STEADY, interrupted))?;
        let flood = edges.flood(FLOOD_FRAMES, FLOOD_FPS, site)?;
        let total = seen.outcome.analysis.total();
        let mut shares = seen.paths.shares(Observed::END_NS);
        shares.truncate(nodes);
        let forwarded = site.nodes[..nodes].iter().map(Node::forwarded).sum::<Result<u64>>()?;
        let (sent, lost) = (total.sent, total.lost);
        let flood_fps = flood.outcome.forwarding_fps();
        (self.found)(Found::Steady(Steady {
            group: self.group.clone(),
            shares,
            sent,
            lost,
            flood_fps,
            forwarded,
        }));
        Ok(())
    }

    /// Traffic, an event of a node, and what follows. The event says when the front knew of it, if it is to know.
    fn event(
        &mut self,
        what: &'static str,
        node: usize,
        event: impl FnOnce(&mut Site, TrialClock, &AtomicBool) -> Result<Option<u64>>,
    ) -> Result<()> {
        let Course { site, edges, .. } = self;
        let (seen, (at_ns, known_ns)) = edges.during(|clock, interrupted| {
            site.pause(BEFORE, interrupted)?;
            let at_ns = clock.ns();
            let known_ns = event(site, clock, interrupted)?;
            site.pause(AFTER, interrupted)?;
            Ok((at_ns, known_ns))
        })?;
        (self.found)(Found::Event(Record::new(&self.group, what, node, (at_ns, known_ns), &seen)));
        Ok(())
    }

    fn router(&mut self, node: usize) -> Result<()> {
        self.event("router killed", node, |site, _, _| site.nodes[node - 1].kill_router().map(|()| None))?;
        self.event("router started", node, |site, _, _| site.nodes[node - 1].start().map(|()| None))
    }

    fn failure(&mut self, node: usize, how: Failure) -> Result<()> {
        let others = self.plan.nodes - 1;
        let (gone, back) = match how {
            Failure::Silent => ("node hangs", "comes back"),
            Failure::Cable => ("cable pulled", "cable back"),
        };
        self.event(gone, node, |site, clock, interrupted| {
            site.nodes[node - 1].fail(how)?;
            site.wait_for(others, interrupted)?;
            Ok(Some(clock.ns()))
        })?;
        self.event(back, node, |site, clock, interrupted| {
            site.nodes[node - 1].come_back(how)?;
            site.wait_for(others + 1, interrupted)?;
            Ok(Some(clock.ns()))
        })?;
        self.settle()
    }

    fn drain(&mut self, node: usize) -> Result<()> {
        let others = self.plan.nodes - 1;
        self.event("drained, stopped", node, |site, clock, interrupted| {
            site.nodes[node - 1].drain()?;
            site.wait_for(others, interrupted)?;
            let known_ns = clock.ns();
            site.pause(AFTER, interrupted)?;
            site.nodes[node - 1].stop()?;
            Ok(Some(known_ns))
        })?;
        self.site.nodes[node - 1].come_back(Failure::Cable)?;
        self.site.wait_for(others + 1, &self.interrupted)?;
        self.settle()
    }
}
