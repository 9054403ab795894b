//! In memory: translation of addresses and ports with few and with many flows, from source to sink on one worker.
//!
//! Each frame of the trace is the next of its flows, so that with a million of them no flow is in the processor's caches
//! when its packet comes. A third measurement has places for half of them: each packet is the first of a new flow and
//! another one's end.

use super::elements::{SINK, SOURCE, TRACE, Trace};
use super::report::{Report, Row};
use crate::Settings;
use anyhow::{Result, anyhow, bail};
use causeway_engine::{Library, Options, Plan, Router};
use causeway_lang::NoLibraries;
use causeway_packet::checksum::checksum;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Flows, and what is said of the rewriter besides its pattern.
const CASES: &[(&str, usize, &str)] = &[
    ("1000 flows", 1_000, "MAPPING_CAPACITY 2000000"),
    ("1000000 flows", 1_000_000, "MAPPING_CAPACITY 2000000"),
    ("1000000 flows, each packet a new one", 1_000_000, "MAPPING_CAPACITY 500000, UDP_GUARANTEE 0"),
];

/// Measures all cases.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("In memory: NAT of UDP flows on one core, 64-byte frames, source to sink");
    let mut few = None;
    for &(case, flows, options) in CASES {
        let trace = Arc::new((0..flows as u32).map(frame).collect());
        let row = measure(settings, options, &trace, &format!("nat/{case}"))?;
        report.add(match &few {
            Some(few) => row.clone().against(few),
            None => row.clone(),
        });
        few.get_or_insert(row);
    }
    Ok(())
}

/// The first packet of flow `n`, an IP packet.
fn frame(n: u32) -> Vec<u8> {
    let mut f = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 9, 9, 9, 9];
    f[13..16].copy_from_slice(&(n >> 4).to_be_bytes()[1..]);
    let sum = checksum(&f);
    f[10..12].copy_from_slice(&sum.to_be_bytes());
    f.extend((1_024 + (n & 15) as u16).to_be_bytes());
    f.extend([0, 53, 0, 26, 0, 0]);
    f.resize(46, 0);
    f
}

fn library() -> Library {
    Library::new(causeway_elements::library().iter().chain([&SOURCE, &SINK]))
}

/// Million packets a second that reach the sink once all flows have been seen.
fn measure(settings: &Settings, options: &str, trace: &Arc<Trace>, name: &str) -> Result<Row> {
    let text = format!(
        "source :: TraceSource -> MarkIPHeader -> rw :: IPRewriter(pattern 1.0.0.1-1.63.255.255# - 0 1, drop, {options}); \
         Idle -> [1] rw; rw[0] -> Queue(1024) -> sink :: PullSink; rw[1] -> Discard;"
    );
    let compiled = causeway_lang::compile("bench", text.as_bytes(), &NoLibraries, &library(), &[])
        .map_err(|f| anyhow!("the benchmark's rewriter: {}", f.diagnostics.messages().join("; ")))?;
    let start = Options { processors: vec![settings.processor], seed: Some(1), ..Options::default() };
    if let Ok(mut values) = start.persistent.lock() {
        values.insert(TRACE.to_owned(), trace.clone());
    }
    let router = Router::start(library(), Plan::new(&compiled), start).map_err(|e| anyhow!("{name}: {e}"))?;
    let number = |element: &str, handler: &str| -> Result<u64> {
        let text = router.read(element, handler, "").map_err(|e| anyhow!("{name}: {e}"))?;
        text.parse().map_err(|_| anyhow!("{name}: {element}.{handler} is '{text}'"))
    };
    router.resume();
    let limit = Instant::now() + Duration::from_secs(60);
    while number("source", "count")? < 2 * trace.len() as u64 {
        if Instant::now() > limit {
            bail!("{name}: the flows are not set up after a minute");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut rounds = Vec::new();
    for _ in 0..settings.rounds {
        let (start, before) = (Instant::now(), number("sink", "count")?);
        std::thread::sleep(settings.round);
        let (after, seconds) = (number("sink", "count")?, start.elapsed().as_secs_f64());
        rounds.push((after - before) as f64 / seconds / 1e6);
    }
    router.pause();
    Row::of(name, "forwarding rate", "Mpps", &rounds).ok_or_else(|| anyhow!("no rounds"))
}
