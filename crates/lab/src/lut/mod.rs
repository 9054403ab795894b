//! The experiments of the lookup paper (Bolla and Bruschi, *The IP Lookup Mechanism in a Linux Software Router*), each
//! on the structures alone and inside the standard IP router.
//!
//! - LUT-2 to 4 and LUT-9: one destination, 1 to 16 384 sources, against each key of the route cache.
//! - LUT-10 and 12: one source, 1 to 16 384 destinations.
//! - LUT-11 and 13 to 15: no cache, Radix against LC-trie, for 16 to 1 048 576 routes hit uniformly, beside the default
//!   table; inside the router also with its chain fused.
//!
//! A packet's time is processor time, so what else runs on the machine counts less.

mod alone;
mod inside;

use super::elements::Trace;
use super::graph::{Random, Route, address_in, frame, routes_to};
use super::report::{Report, Row};
use crate::Settings;
use anyhow::Result;
use causeway_fib::baseline::{lctrie::LcTrie, radix::Radix};
use causeway_fib::route_cache::{CacheKey, Flow};
use causeway_fib::{Fib, Rank24};
use causeway_results::Axis;
use inside::Contender;
use std::sync::Arc;

/// Packets of every trace, so that traces weigh the same on the caches of the processor.
const PACKETS: usize = 1 << 16;
/// Routes of the table behind a cache.
const ROUTES: usize = 16_384;
/// Chains of the cache: what Linux 2.6 gave a machine of the paper's size.
const BUCKETS: usize = 4096;
/// The keys of the cache, as CachedIPLookup calls them. The first is what the others are compared with.
const KEYS: [(&str, CacheKey); 3] =
    [("none", CacheKey::Off), ("destination", CacheKey::Destination), ("flow", CacheKey::Flow)];

/// The points of one experiment.
struct Experiment<'a> {
    name: &'static str,
    /// What there are more and more of.
    of: &'static str,
    settings: &'a Settings,
    report: &'a mut Report,
}

/// What was measured of one curve at one point.
struct Point {
    curve: String,
    rounds_ns: Vec<f64>,
    /// Entries of the cache.
    entries: Option<u64>,
}

/// Runs all of them; the plots go beside the result file.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let routes = routes_to(ROUTES);
    let exponents = (0..=14).step_by(2);
    let counts: Vec<usize> = exponents.map(|exponent| 1 << exponent).collect();
    report.heading("LUT-2 to 4, LUT-9: one destination, more and more sources; a cache before a radix tree");
    let mut sources = Experiment::new("sources", "sources", settings, report);
    for &count in &counts {
        sources.cached(&routes, &flows(&routes, count, 1), count, &KEYS)?;
    }
    sources.plot()?;
    report.heading("LUT-10 and 12: one source, more and more destinations; a cache before a radix tree");
    let mut destinations = Experiment::new("destinations", "destinations", settings, report);
    for &count in &counts {
        destinations.cached(&routes, &flows(&routes, 1, count), count, &KEYS[..2])?;
    }
    destinations.plot()?;
    report.heading("LUT-11, 13 to 15: no cache, more and more routes");
    let mut tables = Experiment::new("tables", "routes", settings, report);
    for exponent in (4..=20).step_by(2) {
        tables.uncached(&routes_to(1 << exponent))?;
    }
    tables.plot()
}

/// Packets of `sources` times `destinations` flows in random order.
fn flows(routes: &[Route], sources: usize, destinations: usize) -> Vec<Flow<u32>> {
    let mut random = Random(13);
    let mut some =
        |count: usize| -> Vec<u32> { (0..count).map(|_| address_in(routes, &mut random)).collect() };
    let (sources, destinations) = (some(sources), some(destinations));
    let mut random = Random(17);
    let mut any = |all: &[u32]| all[random.next() as usize % all.len()];
    (0..PACKETS).map(|_| Flow { source: any(&sources), destination: any(&destinations), tos: 0 }).collect()
}

fn trace(flows: &[Flow<u32>]) -> Arc<Trace> {
    Arc::new(flows.iter().map(|flow| frame(flow.source, flow.destination)).collect())
}

impl<'a> Experiment<'a> {
    fn new(name: &'static str, of: &'static str, settings: &'a Settings, report: &'a mut Report) -> Self {
        Experiment { name, of, settings, report }
    }

    fn cached(
        &mut self,
        routes: &[Route],
        flows: &[Flow<u32>],
        count: usize,
        keys: &[(&str, CacheKey)],
    ) -> Result<()> {
        let rounds = self.settings.rounds;
        let table = Fib::<u32, Radix<u32>>::build(&alone::routes(routes))?;
        let alone = keys.iter().map(|&(key, as_key)| {
            let (rounds_ns, entries) = alone::cached(table.structure(), as_key, BUCKETS, flows, rounds);
            Point { curve: format!("{key}, alone"), rounds_ns, entries: Some(entries) }
        });
        let mut points: Vec<Point> = alone.collect();
        let class = |key| format!("CachedIPLookup KEY {key}, TABLE radix, BUCKETS {BUCKETS}");
        let contenders: Vec<Contender> = keys
            .iter()
            .map(|(key, _)| Contender::plain(&format!("{key}, router"), &class(key), routes))
            .collect::<Result<_>>()?;
        points.extend(inside::measure(contenders, &trace(flows), self.settings)?);
        self.add(count, keys.len(), points);
        Ok(())
    }

    fn uncached(&mut self, routes: &[Route]) -> Result<()> {
        let rounds = self.settings.rounds;
        let flows = flows(routes, 1, PACKETS);
        let addresses: Vec<u32> = flows.iter().map(|flow| flow.destination).collect();
        let alone =
            |curve: &str, rounds_ns| Point { curve: format!("{curve}, alone"), rounds_ns, entries: None };
        let mut points = vec![
            alone("radix", alone::uncached::<Radix<u32>>(routes, &addresses, rounds)?),
            alone("lc-trie", alone::uncached::<LcTrie<u32>>(routes, &addresses, rounds)?),
            alone("default", alone::uncached::<Rank24>(routes, &addresses, rounds)?),
        ];
        let classes = [("radix", "RadixIPLookup"), ("lc-trie", "LCTrieIPLookup"), ("default", "IPLookup")];
        let mut contenders = Vec::new();
        for (curve, class) in classes {
            contenders.push(Contender::plain(&format!("{curve}, router"), class, routes)?);
        }
        let fused =
            contenders.iter().zip(classes).map(|(plain, (curve, _))| plain.fused(&format!("{curve}, fused")));
        let fused: Vec<Contender> = fused.collect();
        contenders.extend(fused);
        points.extend(inside::measure(contenders, &trace(&flows), self.settings)?);
        self.add(routes.len(), classes.len(), points);
        Ok(())
    }

    /// Reports points at `x`; the first of each `group` is what the others of it are compared with.
    fn add(&mut self, x: usize, group: usize, points: Vec<Point>) {
        let mut first: Option<Row> = None;
        for (number, point) in points.into_iter().enumerate() {
            let name = format!("lut/{} {}/{}", x, self.of, point.curve);
            let Some(row) = Row::of(name, "processor time a packet", "ns", &point.rounds_ns) else {
                continue;
            };
            let entries = point.entries.map_or(String::new(), |entries| format!(", {entries} cache entries"));
            let note = format!("{:.2} Mpps{entries}", 1e3 / row.median());
            let axis = Axis { quantity: self.of.to_owned(), unit: String::new() };
            let row = row.at(&format!("{}{}", self.prefix(), point.curve), axis, x as f64).note(note);
            match &first {
                Some(first) if number % group > 0 => self.report.add(row.against(first)),
                _ => {
                    first = Some(row.clone());
                    self.report.add(row);
                }
            }
        }
    }

    /// What the names of its series begin with.
    fn prefix(&self) -> String {
        format!("lut/{}/", self.name)
    }

    fn plot(self) -> Result<()> {
        let file = self.settings.output.with_file_name(format!("lut-{}.svg", self.name));
        let title = format!("Nanoseconds a packet against {}", self.of);
        self.report.plot(&self.prefix(), &title, &file)
    }
}
