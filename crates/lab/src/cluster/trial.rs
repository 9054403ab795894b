//! Traffic through a cluster while something happens to it.

use super::node::Node;
use super::paths::Paths;
use super::site::Site;
use crate::search::{Outcome, Request};
use crate::tester::{Attached, Manner, TrialClock, one_way};
use anyhow::{Context, Result};
use causeway_packet::wire::MacAddr;
use causeway_results::traffic::{Family, Sizes, Stream, Traffic, Values};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Flows, each with addresses and ports of its own.
pub const FLOWS: u32 = 512;
/// Frames a second of all flows together, in turns.
pub const RATE_FPS: f64 = 8_192.0;
/// From one frame of a flow to the next.
pub const PERIOD_NS: u64 = FLOWS as u64 * 1_000_000_000 / RATE_FPS as u64;
/// Bytes of a frame, with the checksum.
pub const LENGTH: u32 = 128;
/// No story takes longer.
const LONGEST: Duration = Duration::from_secs(40);

/// What came of a trial.
#[derive(Clone, Debug)]
pub struct Observed {
    /// What arrived.
    pub outcome: Outcome,
    /// Which way.
    pub paths: Paths,
}

impl Observed {
    /// The end of the trial: all that was sent was sent before.
    pub const END_NS: u64 = u64::MAX;

    /// From `from_ns` to the sending of the last frame that was lost, in nanoseconds; `None` if nothing was lost.
    pub fn last_lost_after_ns(&self, from_ns: u64) -> Option<u64> {
        let analysis = &self.outcome.analysis;
        let lost = analysis.total().lost > 0;
        // That of the frame of the same flow that came next is known.
        let next_ns = analysis.last_loss_ns.filter(|_| lost)?;
        Some(next_ns.saturating_sub(PERIOD_NS + from_ns))
    }

    /// Frames lost of flows that went through this node at that time, and of all others.
    pub fn lost(&self, node: usize, at_ns: u64) -> [u64; 2] {
        let mut lost = [0; 2];
        for (flow, counts) in self.outcome.analysis.flows.iter().enumerate() {
            lost[usize::from(self.paths.node(flow, at_ns) != Some(node))] += counts.lost;
        }
        lost
    }
}

/// Sends and receives at the edges of a cluster.
pub struct Edges {
    ports: [Attached; 2],
    nodes: Vec<MacAddr>,
    trial: u16,
    interrupted: Arc<AtomicBool>,
}

impl Edges {
    /// Of a cluster.
    pub fn new(site: &Site, interrupted: Arc<AtomicBool>) -> Result<Edges> {
        let nodes = site.nodes.iter().map(Node::mac).collect::<Result<_>>()?;
        Ok(Edges { ports: site.open()?, nodes, trial: 0, interrupted })
    }

    /// Has the flows flow until `story` has ended.
    ///
    /// # Errors
    /// Those of the story.
    pub fn during<T>(
        &mut self,
        story: impl FnOnce(TrialClock, &AtomicBool) -> Result<T>,
    ) -> Result<(Observed, T)> {
        self.trial(&Request::new(RATE_FPS, LONGEST.as_nanos() as u64), story)
    }

    /// Offers `frames` frames at `rate_fps`.
    pub fn flood(&mut self, frames: u64, rate_fps: f64, site: &mut Site) -> Result<Observed> {
        let request = Request::burst(frames, rate_fps);
        let time = Duration::from_nanos(request.duration_ns());
        Ok(self.trial(&request, |_, interrupted| site.pause(time, interrupted))?.0)
    }

    fn trial<T>(
        &mut self,
        request: &Request,
        story: impl FnOnce(TrialClock, &AtomicBool) -> Result<T>,
    ) -> Result<(Observed, T)> {
        self.trial = self.trial.wrapping_add(1);
        let mut paths = Paths::new(self.nodes.clone(), FLOWS as usize);
        let manner =
            Manner { processors: Vec::new(), settle: Duration::from_millis(300), pause: Duration::ZERO };
        let [source, sink] = &mut self.ports;
        let show = |tag, frame: &[u8]| paths.saw(tag, frame);
        let interrupted = &*self.interrupted;
        let (outcome, told) =
            one_way([source, sink], &traffic(), request, &manner, self.trial, show, |clock| {
                story(clock, interrupted)
            })
            .context("a trial")?;
        Ok((Observed { outcome, paths }, told))
    }
}

/// Each flow is a stream: the same addresses and ports in all its frames.
pub fn traffic() -> Traffic {
    let stream = |n: u32| Stream {
        source_host: Values::Fixed(2 + n % 250),
        destination_host: Values::Fixed(2 + n % 251),
        source_port: Values::Fixed(1_024 + n),
        destination_port: Values::Fixed(7),
        ..Stream::new(&format!("flow {n}"), Family::Ipv4, Sizes::Fixed(LENGTH))
    };
    Traffic { streams: (0..FLOWS).map(stream).collect(), ..Traffic::simple(LENGTH) }
}
