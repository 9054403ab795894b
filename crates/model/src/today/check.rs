//! What no value of a plan says by itself: whether they fit together. What does not is said with its line and what is possible.

use super::graph::Networks;
use super::machine::{PORTS_MOST, Plan};
use crate::machine::line_of;
use anyhow::{Result, anyhow, ensure};

/// Descriptors for reception that a machine has at most.
const DESCRIPTORS_MOST: u64 = 4_000_000;
/// Of a slot's link, the most that its link layer may take, in thousandths.
const LINK_LAYER_MOST: u64 = 500;

/// Places of a file.
pub(super) struct At<'a> {
    /// What it says.
    pub text: &'a str,
    /// Its name.
    pub name: &'a str,
}

impl At<'_> {
    fn key(&self, keys: &[&str]) -> String {
        format!("{}, line {}", self.name, line_of(self.text, keys))
    }
}

/// Whether all values of a plan fit together.
pub(super) fn check(plan: &Plan, at: &At<'_>) -> Result<()> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    ensure!(
        !plan.name.is_empty() && plan.name.chars().all(plain),
        "{}: the name '{}' is to be of letters, digits, '-', '_' and '.'",
        at.key(&["name"]),
        plan.name
    );
    let ports = plan.port_count();
    ensure!(
        (1..=PORTS_MOST).contains(&ports),
        "{}: {ports} ports; 1 to {PORTS_MOST} are possible",
        at.key(&["ports"])
    );
    check_memory(plan, at)?;
    check_slots(plan, at)?;
    check_card(plan, at)?;
    ensure!(
        plan.traffic.load.value > 0,
        "{}: a load of nothing; possible is more than 0 %, up to 100 %",
        at.key(&["traffic", "load"])
    );
    let networks = plan.traffic.networks.as_deref().unwrap_or_default();
    let wrong = |what| anyhow!("{}: {what}", at.key(&["traffic", "networks"]));
    Networks::new(networks, ports).map_err(wrong)?;
    Ok(())
}

/// Memory, and the cache before it.
fn check_memory(plan: &Plan, at: &At<'_>) -> Result<()> {
    let (transfers, all) = (plan.memory.transfers.value, plan.memory.standard.transfers());
    ensure!(
        all.contains(&transfers),
        "{}: memory of {transfers} MT/s; this kind has {} to {}",
        at.key(&["memory", "transfers"]),
        all.start(),
        all.end()
    );
    ensure!(
        plan.memory.usable.value > 0,
        "{}: memory of which nothing is usable; possible is more than 0 %, up to 100 %",
        at.key(&["memory", "usable"])
    );
    let p = &plan.processor;
    ensure!(
        p.card_ways.value <= p.cache_ways.value,
        "{}: cards write into {} ways of a cache that has {}",
        at.key(&["processor", "card_ways"]),
        p.card_ways.value,
        p.cache_ways.value
    );
    Ok(())
}

fn check_slots(plan: &Plan, at: &At<'_>) -> Result<()> {
    for (name, slot) in &plan.slot {
        let of = |key: &str| format!("{}: slot '{name}'", at.key(&["slot", name, key]));
        let lanes = slot.lanes.value;
        ensure!(lanes.is_power_of_two(), "{} has {lanes} lanes; possible are 1, 2, 4, 8, 16", of("lanes"));
        let (payload, room) = (slot.payload.value, slot.posted_data.value);
        ensure!(
            room >= payload,
            "{}: the host's room of {room} bytes is less than a packet's data, {payload}",
            of("posted_data")
        );
        ensure!(
            slot.link_layer.value <= LINK_LAYER_MOST,
            "{}: the link layer takes more than half of it; possible are 0 to {} %",
            of("link_layer"),
            LINK_LAYER_MOST / 10
        );
    }
    Ok(())
}

fn check_card(plan: &Plan, at: &At<'_>) -> Result<()> {
    let sizes = |what| anyhow!("{}: {what}", at.key(&["traffic", "sizes"]));
    let longest = u64::from(plan.frames().map_err(sizes)?.iter().copied().max().unwrap_or_default());
    let card = &plan.card;
    for (what, fifo) in [("receive_fifo", &card.receive_fifo), ("transmit_fifo", &card.transmit_fifo)] {
        ensure!(
            fifo.value >= longest,
            "{}: {what}: a frame of {longest} bytes does not fit into {}",
            at.key(&["card", what]),
            fifo.value
        );
    }
    let (ports, cores, ring) = (plan.port_count(), plan.processor.cores.value, card.receive_ring.value);
    ensure!(
        ports as u64 * cores * ring <= DESCRIPTORS_MOST,
        "{}: {ports} ports with a ring of {ring} for each of {cores} cores; at most {DESCRIPTORS_MOST} descriptors are possible",
        at.key(&["card", "receive_ring"])
    );
    Ok(())
}
