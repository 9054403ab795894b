//! Machines of today and what is asked of them, from a TOML file: each value with its unit and where it comes from.

use super::check::{At, check};
use super::graph::Configuration;
use crate::dram::Standard;
use crate::link::Link;
use crate::machine::{
    BitRate, CacheSize, CardWays, Channels, Cores, Count, Cycles, Descriptors, Flows, Frequency, Generation,
    Lanes, LineSize, Packets, Part, Routes, Size, Span, Transfers, Value, Ways, from_toml, line, values,
};
use crate::pcie::PcieParameters;
use anyhow::{Context, Result, anyhow, bail, ensure};
use causeway_results::traffic::Sizes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;

/// Ports that a machine has at most.
pub const PORTS_MOST: usize = 64;
/// The shortest and the longest frame, with checksum, bytes.
const FRAMES: std::ops::RangeInclusive<u32> = 64..=9_216;
/// Machines that are ready: name and file.
const READY: [(&str, &str); 3] = [
    ("board-2x1g", include_str!("../../machines/board-2x1g.toml")),
    ("server-2x25g", include_str!("../../machines/server-2x25g.toml")),
    ("server-2x100g", include_str!("../../machines/server-2x100g.toml")),
];

/// A machine, its software, and its traffic.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub about: String,
    /// Its processor.
    pub processor: Processor,
    /// Its memory.
    pub memory: Dram,
    /// Where cards are, by name.
    pub slot: BTreeMap<String, Slot>,
    /// Its cards, all of one kind.
    pub card: Card,
    /// Ports, by slot.
    pub ports: Vec<Ports>,
    /// What forwards.
    pub software: Software,
    /// What comes in.
    pub traffic: Traffic,
    /// What element classes cost here, where it is not what they cost elsewhere.
    #[serde(default)]
    pub element: BTreeMap<String, ElementValues>,
    /// What the cores run instead of a mechanism, if it is a graph.
    #[serde(skip)]
    pub graph: Option<Arc<Configuration>>,
}

values! {
    /// A processor with its cores and their shared cache.
    Processor {
        /// Cycles a second.
        clock: Frequency,
        /// Cores that forward.
        cores: Cores,
        /// Bytes that a core has for itself.
        own_cache: CacheSize,
        /// Bytes of the shared cache.
        cache: CacheSize,
        /// Ways of it.
        cache_ways: Ways,
        /// Ways of it into which cards write; "0 ways": none.
        card_ways: CardWays,
        /// Bytes of a line.
        cache_line: LineSize,
        /// How long a core waits for a line of the shared cache.
        cache_latency: Span,
        /// Lines that a core waits for at a time.
        overlap: Count,
    }
    /// Memory.
    Dram {
        /// How fast a channel is.
        transfers: Transfers,
        /// Channels that are filled.
        channels: Channels,
        /// What changes of direction and of rows leave.
        usable: Part,
        /// How long a core waits for a line.
        latency: Span,
        ;
        /// Which.
        standard: Standard,
    }
    /// A slot of PCI Express.
    Slot {
        /// Of which generation.
        generation: Generation,
        /// Lanes.
        lanes: Lanes,
        /// Data of a packet at most.
        payload: Size,
        /// Data that a read asks for at most.
        read: Size,
        /// Reads of a card under way at most.
        tags: Count,
        /// Packets of writes which the host has room for.
        posted_headers: Count,
        /// Data of them.
        posted_data: Size,
        /// Requests for reads which the host has room for.
        read_headers: Count,
        /// What acknowledgements and credits take of the link.
        link_layer: Part,
        /// From a card's read to the host's answer, beside memory.
        latency: Span,
    }
    /// Network cards.
    Card {
        /// Memory for what comes in, for each port.
        receive_fifo: Size,
        /// And for what goes out.
        transmit_fifo: Size,
        /// Ring for reception of each core.
        receive_ring: Descriptors,
        /// Ring for transmission of each core.
        transmit_ring: Descriptors,
        /// Bytes of a descriptor.
        descriptor: Size,
        /// Fetched at a time.
        fetch: Descriptors,
        /// Reported at a time, unless the link has nothing else to do.
        report: Descriptors,
    }
    /// What a mechanism takes for what.
    Mechanism {
        /// A packet, with everything that finds its lines near.
        packet: Cycles,
        /// A turn in which there are packets: system calls, doorbells, ends of rings.
        turn: Cycles,
        /// Packets of a turn at most.
        batch: Packets,
        /// A line that is copied.
        line: Cycles,
        /// From a packet in the ring to the begin of a turn, where a core had nothing to do.
        wake: Span,
        ;
        /// How often a packet is copied on its way.
        copies: Copies,
    }
    /// What comes in by every port, for the next port to send.
    Traffic {
        /// Flows of each port, which cards spread over the cores.
        flows: Flows,
        /// Routes.
        routes: Routes,
        /// What is offered of each port's speed.
        load: Part,
        ;
        /// Lengths of frames, with checksum.
        sizes: Sizes,
        /// The networks behind the first ports, where a graph looks for them.
        networks: Option<Vec<String>>,
    }
    /// What elements of a class take.
    ElementValues {
        /// A packet.
        packet: Cycles,
        /// A visit: a call with a batch of packets, or with none.
        visit: Cycles,
        ;
        /// Lines of the table of routes that a packet reads, if it does.
        table: Option<Value<Count>>,
    }
    /// Ports in a slot.
    Ports {
        /// Of which speed.
        speed: BitRate,
        ;
        /// The slot.
        slot: Spanned<String>,
        /// How many ports.
        count: Spanned<usize>,
    }
    /// What forwards.
    Software {
        /// Bytes of the table of routes for each route.
        route: Size,
        /// Lines of it that a lookup reads.
        route_lines: Count,
        ;
        /// The mechanism that is used.
        mechanism: Spanned<String>,
        /// Mechanisms, by name.
        mechanisms: BTreeMap<String, Mechanism>,
    }
}

/// How often a packet is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Copies {
    /// Never.
    None,
    /// On the way in.
    In,
    /// On the way in, and on the way out.
    InAndOut,
}

impl Slot {
    /// As a link takes them.
    pub fn parameters(&self) -> PcieParameters {
        PcieParameters {
            generation: self.generation.value as usize,
            lanes: self.lanes.value as u32,
            payload_bytes: self.payload.value as u32,
            read_bytes: self.read.value as u32,
            tags: self.tags.value as u32,
            posted_headers: self.posted_headers.value as u32,
            posted_data: (self.posted_data.value / 16) as u32,
            read_headers: self.read_headers.value as u32,
            link_layer: self.link_layer.value as u32,
        }
    }
}

impl Dram {
    /// Bytes a second that it moves.
    pub fn bytes_per_s(&self) -> u64 {
        self.standard.bytes_per_s(self.transfers.value, self.channels.value, self.usable.value)
    }
}

impl Plan {
    /// Names of the machines that are ready.
    pub fn ready() -> impl Iterator<Item = &'static str> {
        READY.iter().map(|(name, _)| *name)
    }

    /// The file of a machine that is ready.
    pub fn text(name: &str) -> Option<&'static str> {
        READY.iter().find(|(ready, _)| *ready == name).map(|(_, text)| *text)
    }

    /// A machine that is ready, or one from a file.
    ///
    /// # Errors
    ///
    /// What is wrong, with file and line, and what is allowed.
    pub fn find(name: &str) -> Result<Plan> {
        if let Some(text) = Plan::text(name) {
            return Plan::parse(text, name);
        }
        let ready = || Plan::ready().collect::<Vec<_>>().join(", ");
        let text = std::fs::read_to_string(Path::new(name))
            .with_context(|| format!("cannot read {name}; ready are {}", ready()))?;
        Plan::parse(&text, name)
    }

    /// Reads a plan from a text that is called `name`.
    ///
    /// # Errors
    ///
    /// As [`Plan::find`].
    pub fn parse(text: &str, name: &str) -> Result<Plan> {
        let plan: Plan = from_toml(text, name)?;
        let at = |from: usize| format!("{name}, line {}", line(text, from));
        for ports in &plan.ports {
            let (slot, count) = (ports.slot.get_ref(), *ports.count.get_ref());
            let slots = || plan.slot.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            ensure!(
                plan.slot.contains_key(slot),
                "{}: no slot '{slot}' carries these ports; there are {}",
                at(ports.slot.span().start),
                slots()
            );
            ensure!(
                (1..=PORTS_MOST).contains(&count),
                "{}: {count} ports; 1 to {PORTS_MOST} are possible",
                at(ports.count.span().start)
            );
        }
        let used = &plan.software.mechanism;
        if !plan.software.mechanisms.contains_key(used.get_ref()) {
            let known = plan.software.mechanisms.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            bail!("{}: no mechanism '{}'; there are {known}", at(used.span().start), used.get_ref());
        }
        check(&plan, &At { text, name })?;
        Ok(plan)
    }

    /// Lengths of frames, in turns.
    ///
    /// # Errors
    ///
    /// If they are not possible.
    pub fn frames(&self) -> Result<Vec<u32>> {
        let frames = self.traffic.sizes.sequence().map_err(|what| anyhow!("sizes: {what}"))?;
        match frames.iter().find(|bytes| !FRAMES.contains(bytes)) {
            Some(bytes) => {
                bail!("sizes: a frame of {bytes} bytes; possible are {} to {}", FRAMES.start(), FRAMES.end())
            }
            None => Ok(frames),
        }
    }

    /// How many ports it has.
    pub fn port_count(&self) -> usize {
        self.ports.iter().fold(0usize, |sum, ports| sum.saturating_add(*ports.count.get_ref()))
    }

    /// The slot of each port, as a number in the order of names, and its link.
    pub fn links(&self) -> Vec<(usize, Link)> {
        let of = |ports: &Ports| {
            let slot = self.slot.keys().position(|name| name == ports.slot.get_ref()).unwrap_or_default();
            std::iter::repeat_n((slot, Link { rate_bps: ports.speed.value }), *ports.count.get_ref())
        };
        self.ports.iter().flat_map(of).collect()
    }

    /// What the mechanism that is used takes.
    ///
    /// # Panics
    ///
    /// If there is no such mechanism: a plan that was read has it.
    pub fn mechanism(&self) -> &Mechanism {
        &self.software.mechanisms[self.software.mechanism.get_ref()]
    }
}
