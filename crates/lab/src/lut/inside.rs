//! The structures inside the standard IP router, from source to sink.

use super::super::elements::Trace;
use super::super::graph::{Route, Running, plan, process_ns};
use super::Point;
use crate::Settings;
use anyhow::{Result, ensure};
use causeway_elements::optimise;
use causeway_engine::Plan;
use std::sync::Arc;
use std::time::Duration;

/// How long a router runs before a round counts: enough for caches to fill.
const WARM_UP: Duration = Duration::from_millis(30);

/// A router that takes part.
pub struct Contender {
    curve: String,
    plan: Plan,
}

impl Contender {
    /// The router with a table of that class; see [`plan`].
    pub fn plain(curve: &str, table: &str, routes: &[Route]) -> Result<Contender> {
        Ok(Contender { curve: curve.to_owned(), plan: plan(table, routes)? })
    }

    /// The same router after the optimiser.
    pub fn fused(&self, curve: &str) -> Contender {
        Contender { curve: curve.to_owned(), plan: optimise(&self.plan).plan }
    }
}

/// Nanoseconds of processor time a packet in each round. The routers take turns, so that what disturbs one disturbs
/// all.
///
/// # Errors
/// If a router loses a packet, or forwards none.
pub fn measure(contenders: Vec<Contender>, trace: &Arc<Trace>, settings: &Settings) -> Result<Vec<Point>> {
    let mut running = Vec::new();
    for Contender { curve, plan } in contenders {
        let router = Running::start(plan, trace, settings.processor, &curve)?;
        running.push((router, Point { curve, rounds_ns: Vec::new(), entries: None }));
    }
    for _ in 0..settings.rounds {
        for (router, point) in &mut running {
            router.resume();
            std::thread::sleep(WARM_UP);
            let (before, start_ns) = (router.arrived()?, process_ns());
            std::thread::sleep(settings.round);
            let (after, end_ns) = (router.arrived()?, process_ns());
            router.pause();
            ensure!(after > before, "{}: no packet arrived", point.curve);
            point.rounds_ns.push((end_ns - start_ns) as f64 / (after - before) as f64);
        }
    }
    let mut points = Vec::new();
    for (router, mut point) in running {
        point.entries = router.number("rt", "active").ok();
        router.finish()?;
        points.push(point);
    }
    Ok(points)
}
