//! Translation of addresses and ports with few and with many flows.
//!
//! Each frame of the trace is the next of its flows, so that with a million of them no flow is in the processor's caches
//! when its packet comes. A third measurement has places for half of them: each packet is the first of a new flow and
//! another one's end.

use super::passage::Passage;
use super::report::Report;
use crate::Settings;
use anyhow::Result;
use causeway_packet::checksum::checksum;
use std::sync::Arc;

/// Flows, and what is said of the rewriter besides its pattern.
const CASES: &[(&str, usize, &str)] = &[
    ("1000 flows", 1_000, "MAPPING_CAPACITY 2000000"),
    ("1000000 flows", 1_000_000, "MAPPING_CAPACITY 2000000"),
    ("1000000 flows, each packet a new one", 1_000_000, "MAPPING_CAPACITY 500000, UDP_GUARANTEE 0"),
];

/// Measures all cases.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("NAT of UDP flows on one core, 64-byte frames, source to sink");
    let mut few = None;
    for &(case, flows, options) in CASES {
        let rewriter = format!("IPRewriter(pattern 1.0.0.1-1.63.255.255# - 0 1, drop, {options})");
        let passage = Passage {
            name: format!("nat/{case}"),
            graph: format!(
                "in -> MarkIPHeader -> rw :: {rewriter}; Idle -> [1] rw; rw[0] -> out; rw[1] -> Discard"
            ),
            trace: Arc::new((0..flows as u32).map(frame).collect()),
        };
        let row = passage.in_memory(settings)?;
        report.add(match &few {
            Some(few) => row.clone().against(few),
            None => row.clone(),
        });
        few.get_or_insert(row);
        passage.beside_click(settings, report)?;
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
