//! The race: every table on every traffic, in interleaved rounds, medians, every result checked.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use causeway_results::stats;

use crate::contender::{Contender, Fill, Mode};
use crate::random::{Random, Zipf};
use crate::tables::{Family, Route, Update};

/// Addresses to look up and what a slow reference says about them.
pub struct Traffic<A> {
    /// `random`, `table` or `zipf`.
    pub name: &'static str,
    addresses: Vec<A>,
    expected: Vec<u32>,
}

/// Longest-prefix match by trying every length in a hash table.
struct Reference<A>(Vec<(u8, HashMap<A, u32>)>);

impl<A: Family> Reference<A> {
    fn new(routes: &[Route<A>]) -> Self {
        let mut lengths: Vec<HashMap<A, u32>> = vec![HashMap::new(); usize::from(A::BITS) + 1];
        for &(prefix, next_hop) in routes {
            lengths[usize::from(prefix.len())].insert(prefix.first(), next_hop);
        }
        let filled = (0..=A::BITS).zip(lengths).rev().filter(|(_, map)| !map.is_empty());
        Reference(filled.collect())
    }

    fn lookup(&self, address: A) -> u32 {
        self.0.iter().find_map(|(len, map)| map.get(&(address & A::mask(*len))).copied()).unwrap_or(0)
    }
}

/// Uniform, from-table and Zipf traffic of `count` addresses each.
pub fn traffic<A: Family>(routes: &[Route<A>], count: usize, seed: u64) -> Vec<Traffic<A>> {
    let mut random = Random::new(seed);
    let random_addresses = |random: &mut Random| -> Vec<A> {
        let any = |random: &mut Random| match A::BITS {
            32 => A::any(random),
            _ => A::any(random) >> 3 | (A::from_u32(1) << u32::from(A::BITS - 3)), // 2000::/3
        };
        (0..count).map(|_| any(random)).collect()
    };
    let from_table = |random: &mut Random| -> A {
        let prefix = routes[random.below(routes.len())].0;
        prefix.first() | (A::any(random) & !A::mask(prefix.len()))
    };
    let uniform = random_addresses(&mut random);
    let table: Vec<A> = (0..count).map(|_| from_table(&mut random)).collect();
    let destinations: Vec<A> = (0..1_000_000).map(|_| from_table(&mut random)).collect();
    let popularity = Zipf::new(destinations.len());
    let zipf = (0..count).map(|_| destinations[popularity.draw(&mut random)]).collect();
    let reference = Reference::new(routes);
    [("random", uniform), ("table", table), ("zipf", zipf)]
        .into_iter()
        .map(|(name, addresses): (_, Vec<A>)| {
            let expected = addresses.iter().map(|&address| reference.lookup(address)).collect();
            Traffic { name, addresses, expected }
        })
        .collect()
}

/// What one table did.
pub struct Score {
    /// Table.
    pub name: String,
    /// How it was filled.
    pub fill: Fill,
    /// Memory of the lookup structure, in bytes.
    pub bytes: usize,
    /// Prefixes in the table.
    pub prefixes: usize,
    /// Processor time to fill it, in milliseconds; none for a table that was filled before.
    pub build_ms: Option<f64>,
    /// Lookups by traffic.
    pub lookups: Vec<Lookups>,
    /// Updates: a second, and the median, 99th and 99.9th percentile in microseconds.
    pub updates: Option<Updates>,
}

/// The scores of one table of routes.
pub struct Section {
    /// Heading, for example `IPv4, synthetic table`.
    pub title: String,
    /// File name stem.
    pub stem: String,
    /// A row a contender.
    pub scores: Vec<Score>,
}

/// Lookups of one kind of traffic.
pub struct Lookups {
    /// Its name.
    pub traffic: &'static str,
    /// Nanoseconds a lookup in each round: chained, single, batch.
    pub rounds_ns: [Vec<f64>; 3],
}

impl Lookups {
    /// Medians of the rounds.
    pub fn median_ns(&self) -> [Option<f64>; 3] {
        std::array::from_fn(|mode| stats::median(&self.rounds_ns[mode]))
    }
}

/// How a table took an update stream.
pub struct Updates {
    /// Updates a second.
    pub rate_ups: f64,
    /// Time of an update at the 50th, 99th and 99.9th percentile, in microseconds.
    pub percentiles_us: [f64; 3],
}

const MODES: [Mode; 3] = [Mode::Chain, Mode::Single, Mode::Batch];
/// Places of chained and batched lookups among the modes.
pub const CHAINED: usize = 0;
pub const BATCHED: usize = 2;
/// Tables slower than this look up fewer addresses a round.
const SLOW_NS: f64 = 60.0;
const SLOW_COUNT: usize = 1 << 17;

fn ns_each(time: Duration, count: usize) -> f64 {
    time.as_nanos() as f64 / count as f64
}

fn check<A: Family>(contender: &dyn Contender<A>, mode: Mode, traffic: &Traffic<A>, results: &[u32]) {
    if let Some(at) = results.iter().zip(&traffic.expected).position(|(result, expected)| result != expected)
    {
        panic!(
            "{} ({mode:?}, {}): {} gives {}, the reference {}",
            contender.name(),
            traffic.name,
            traffic.addresses[at].to_ip(),
            results[at],
            traffic.expected[at]
        );
    }
}

/// Runs all rounds; contenders take turns in each.
pub fn lookups<A: Family>(
    contenders: &[Box<dyn Contender<A>>],
    traffics: &[Traffic<A>],
    prefixes: usize,
    rounds: usize,
) -> Vec<Score> {
    let mut samples: HashMap<(usize, usize, usize), Vec<f64>> = HashMap::new();
    let mut counts = vec![usize::MAX; contenders.len()];
    for round in 0..=rounds {
        for (t, traffic) in traffics.iter().enumerate() {
            for (m, &mode) in MODES.iter().enumerate() {
                for (c, contender) in contenders.iter().enumerate() {
                    let count = traffic.addresses.len().min(counts[c]);
                    let mut results = vec![u32::MAX; count];
                    let Some(time) = contender.run(mode, &traffic.addresses[..count], &mut results) else {
                        continue;
                    };
                    check(&**contender, mode, traffic, &results);
                    let each = ns_each(time, count);
                    if round == 0 {
                        // The first round warms up and finds out who is slow.
                        if mode == Mode::Batch && each > SLOW_NS {
                            counts[c] = SLOW_COUNT;
                        }
                    } else {
                        samples.entry((c, t, m)).or_default().push(each);
                    }
                }
            }
        }
    }
    let scores = contenders.iter().enumerate().map(|(c, contender)| Score {
        name: contender.name().to_owned(),
        fill: contender.fill(),
        bytes: contender.bytes(),
        prefixes,
        build_ms: Some(contender.build().as_secs_f64() * 1e3),
        lookups: (0..traffics.len())
            .map(|t| Lookups {
                traffic: traffics[t].name,
                rounds_ns: std::array::from_fn(|m| samples.get(&(c, t, m)).cloned().unwrap_or_default()),
            })
            .collect(),
        updates: None,
    });
    scores.collect()
}

/// Replays an update stream on each table that takes updates, one after the other; the others leave.
pub fn updates<A: Family>(
    contenders: &mut Vec<Box<dyn Contender<A>>>,
    stream: &[Update<A>],
    scores: &mut [Score],
) {
    let mut scores = scores.iter_mut();
    contenders.retain_mut(|contender| {
        let Some(score) = scores.next() else { return false };
        score.updates = replay(&mut **contender, stream);
        score.updates.is_some()
    });
}

/// The routes after an update stream, in order.
pub fn after<A: Family>(routes: &[Route<A>], stream: &[Update<A>]) -> Vec<Route<A>> {
    let mut after: BTreeMap<_, _> = routes.iter().copied().collect();
    for &(prefix, next_hop) in stream {
        match next_hop {
            Some(next_hop) => after.insert(prefix, next_hop),
            None => after.remove(&prefix),
        };
    }
    after.into_iter().collect()
}

fn replay<A: Family>(contender: &mut dyn Contender<A>, stream: &[Update<A>]) -> Option<Updates> {
    // Enough time for any structure to show its rate; those that rebuild the table would take hours.
    const PATIENCE: Duration = Duration::from_secs(20);
    let (first, rest) = stream.split_first()?;
    if !contender.update(first) {
        return None;
    }
    let mut times = Vec::with_capacity(rest.len());
    let start = crate::contender::cpu_time();
    for (done, update) in rest.iter().enumerate() {
        let before = std::time::Instant::now();
        contender.update(update);
        times.push(before.elapsed().as_nanos() as f64 / 1e3);
        if done % 1024 == 0 && crate::contender::cpu_time() - start > PATIENCE {
            eprintln!("{}: gave up after {done} of {} updates", contender.name(), rest.len());
            return None;
        }
    }
    let total = (crate::contender::cpu_time() - start).as_secs_f64();
    let percentile = |share| stats::quantile(&times, share);
    Some(Updates {
        rate_ups: rest.len() as f64 / total,
        percentiles_us: [percentile(0.5)?, percentile(0.99)?, percentile(0.999)?],
    })
}
