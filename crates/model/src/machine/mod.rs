//! Machines: what the model is told of one, from a file, a value for each line, with where it comes from.

mod place;
mod quantity;
#[cfg(test)]
mod tests;

use place::all_under;
pub(crate) use place::{from_toml, line, line_of};
pub(crate) use quantity::quoted;
pub use quantity::{
    BitRate, Buckets, ByteRate, CacheSize, CardWays, Channels, Cores, Count, Cycles, Descriptors, Flows,
    Frequency, Generation, Kind, Lanes, LineSize, Lines, Origin, Packets, Part, Processors, Routes, Runs,
    Size, Span, Transfers, Value, Ways, Width,
};

use crate::bus::{Bus, BusParameters, Protocol};
use crate::nic::{Engine, NicParameters};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;

/// Values of a machine that may be calibrated: more would fit anything.
pub const CALIBRATED_MOST: usize = 6;

/// A machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// What it was, for people.
    pub bed: Bed,
    /// Its processor.
    pub processor: ProcessorValues,
    /// Its memory.
    pub memory: MemoryValues,
    /// Its buses, by name.
    pub bus: BTreeMap<String, BusValues>,
    /// Its network cards, all of one kind.
    pub card: CardValues,
    /// Where the cards are.
    pub ports: Vec<PortValues>,
    /// What its kernel takes for what.
    pub software: SoftwareValues,
    /// What it takes to find a route, where that is looked at.
    pub lookup: Option<LookupValues>,
    /// What Click takes for what, where it runs.
    pub click: Option<ClickValues>,
    /// Its processors, where there are several.
    pub several: Option<SeveralValues>,
}

/// What there is to know of a test bed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bed {
    /// Board and cards.
    pub about: String,
    /// The kernel.
    pub kernel: String,
    /// Its clock's interrupts.
    pub tick: String,
    /// The table of routes.
    pub routes: String,
    /// What reaches each wire.
    pub wires: String,
}

/// Parts of a machine, of which each line is a value of a kind; behind a semicolon, what is no quantity.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty,)*
        $(; $($(#[$other_doc:meta])* $other:ident: $type:ty,)*)?
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $crate::machine::Value<$kind>,)*
            $($($(#[$other_doc])* pub $other: $type,)*)?
        }
    )*};
}
pub(crate) use values;

values! {
    /// A processor.
    ProcessorValues {
        /// Cycles a second.
        clock: Frequency,
        /// Bytes of its last cache.
        cache: CacheSize,
        /// Ways of it.
        cache_ways: Ways,
        /// Bytes of a line.
        cache_line: LineSize,
    }
    /// Memory.
    MemoryValues {
        /// Bytes a second that it moves.
        rate: ByteRate,
        /// How long the processor waits for a line.
        latency: Span,
    }
    /// A bus.
    BusValues {
        /// Cycles a second.
        clock: Frequency,
        /// Lines for data.
        width: Width,
        /// Cycles of a burst beside its data.
        overhead: Cycles,
        /// Bytes of a burst at most.
        burst: Size,
        /// From a read to its first data.
        read_latency: Span,
        ;
        /// How it treats reads.
        protocol: Protocol,
        /// Whether each port has one of this kind for itself, as ports have lanes.
        #[serde(default)]
        each_port: bool,
    }
    /// Network cards.
    CardValues {
        /// Memory on the card for what comes in.
        receive_fifo: Size,
        /// And for what goes out.
        transmit_fifo: Size,
        /// Ring for reception.
        receive_ring: Descriptors,
        /// Ring for transmission.
        transmit_ring: Descriptors,
        /// Fetched at a time, at most.
        fetch: Descriptors,
        /// Reported at a time, unless there is nothing else to do.
        report: Descriptors,
        /// Least time between two interrupts, where they are moderated.
        throttle: Span,
    }
    /// What a kernel takes for what.
    SoftwareValues {
        /// An interrupt, without what its handler does.
        interrupt: Cycles,
        /// A read of a card's register.
        register_read: Span,
        /// A write to one.
        register_write: Cycles,
        /// Entry to deferred work.
        soft_interrupt: Cycles,
        /// Runs of it in a row, before what is left is a thread's (ksoftirqd).
        runs: Runs,
        /// To that thread, and back.
        switch: Cycles,
        /// A turn of a card that is polled.
        poll: Cycles,
        /// Taking a packet from the ring.
        receive: Cycles,
        /// The backlog, of a packet.
        backlog: Cycles,
        /// A buffer from the general allocator.
        allocate: Cycles,
        /// A buffer back to it.
        free: Cycles,
        /// Either with recycling.
        recycle: Cycles,
        /// The network layer.
        route: Cycles,
        /// Queue and driver on the way out.
        transmit: Cycles,
        /// A descriptor that was sent.
        clean: Cycles,
        /// A packet of the generator in the kernel.
        generate: Cycles,
        /// Packets of a queue on the way out.
        queue: Packets,
    }
    /// Several processors.
    SeveralValues {
        /// How many.
        processors: Processors,
        /// How many of them have a second-level cache together.
        of_a_cache: Processors,
        /// A line that is in another cache, written there.
        transfer: Span,
        /// A line that the neighbour in the same cache wrote.
        near: Span,
        /// Taking a spinlock and giving it back, where nobody holds it.
        lock: Cycles,
        /// Frames of one interrupt on the way in, at most, while there are few.
        few_frames: Packets,
        /// From the first of them to the interrupt, at most.
        few_time: Span,
        /// Frames a second, in and out, from which on there are many.
        many: Packets,
        /// As `few_frames`, while there are many.
        many_frames: Packets,
        /// As `few_time`.
        many_time: Span,
        /// Frames of one interrupt on the way out, at most.
        sent_frames: Packets,
        /// From the first of them to the interrupt, at most.
        sent_time: Span,
        /// From one look of the driver at how many frames there are to the next.
        look: Span,
        /// Frames that are cleaned, and posted from the queue, while the lock is held once.
        cleaned: Packets,
        /// Lines of what is known of a packet that whoever receives it writes, and again whoever frees it.
        known: Lines,
    }
    /// What Click takes for what.
    ClickValues {
        /// A look at a ring or a queue that finds nothing.
        look: Cycles,
        /// A packet from a ring, with its next buffer.
        receive: Cycles,
        /// Packets whose headers are on their way from memory while one is worked on.
        prefetch: Packets,
        /// A packet that is counted and freed.
        count: Cycles,
        /// A packet that its generator makes.
        generate: Cycles,
        /// A queue, of a packet: in and out.
        queue: Cycles,
        /// The elements of a router's graph, of a packet.
        graph: Cycles,
        /// A packet to a ring, and off it when it was sent.
        send: Cycles,
        /// Packets of a task's turn.
        burst: Packets,
    }
    /// What a kernel takes to find a route, beside waiting for memory.
    LookupValues {
        /// Buckets of the route cache.
        buckets: Buckets,
        /// An entry of a bucket's chain.
        step: Cycles,
        /// What each lookup takes that no cache answers: rules, and what is made of a route.
        table: Cycles,
        /// A node of the Radix tree.
        radix_node: Cycles,
        /// A lookup in the LC-trie.
        trie: Cycles,
        /// A node of it.
        trie_node: Cycles,
    }
}

/// Ports on a bus.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortValues {
    /// The bus.
    pub bus: Spanned<String>,
    /// How many ports.
    pub count: Spanned<usize>,
}

impl BusValues {
    /// As the bus takes them.
    pub fn parameters(&self) -> BusParameters {
        BusParameters {
            protocol: self.protocol,
            clock_hz: self.clock.value,
            width_bytes: (self.width.value / 8) as u32,
            overhead_cycles: self.overhead.value as u32,
            burst_bytes: self.burst.value as u32,
            read_latency_ps: self.read_latency.value,
        }
    }
}

impl CardValues {
    /// As a card takes them; without moderation nothing throttles its interrupts.
    pub fn parameters(&self, moderated: bool) -> NicParameters {
        NicParameters {
            receive_fifo_bytes: self.receive_fifo.value as u32,
            transmit_fifo_bytes: self.transmit_fifo.value as u32,
            receive_ring: self.receive_ring.value as usize,
            transmit_ring: self.transmit_ring.value as usize,
            fetch_descriptors: self.fetch.value as usize,
            report_descriptors: self.report.value as usize,
            throttle_ps: if moderated { self.throttle.value } else { 0 },
        }
    }
}

impl Machine {
    /// The machine of OSR.
    ///
    /// # Errors
    ///
    /// None, or the program was built with a file that is wrong.
    pub fn osr() -> Result<Machine> {
        Machine::parse(include_str!("../../machines/osr.toml"), "osr.toml")
    }

    /// The machine of FPGA, with commercial cards.
    ///
    /// # Errors
    ///
    /// As [`Machine::osr`].
    pub fn fpga() -> Result<Machine> {
        Machine::parse(include_str!("../../machines/fpga.toml"), "fpga.toml")
    }

    /// The machine of AFF.
    ///
    /// # Errors
    ///
    /// As [`Machine::osr`].
    pub fn aff() -> Result<Machine> {
        Machine::parse(include_str!("../../machines/aff.toml"), "aff.toml")
    }

    /// The machine of CvL.
    ///
    /// # Errors
    ///
    /// As [`Machine::osr`].
    pub fn cvl() -> Result<Machine> {
        Machine::parse(include_str!("../../machines/cvl.toml"), "cvl.toml")
    }

    /// The machine of LUT.
    ///
    /// # Errors
    ///
    /// As [`Machine::osr`].
    pub fn lut() -> Result<Machine> {
        Machine::parse(include_str!("../../machines/lut.toml"), "lut.toml")
    }

    /// Reads a machine from a file.
    ///
    /// # Errors
    ///
    /// What is wrong, with file and line, and what is allowed.
    pub fn read(file: &Path) -> Result<Machine> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Machine::parse(&text, &file.display().to_string())
    }

    /// Reads a machine from a text that is called `name`.
    ///
    /// # Errors
    ///
    /// As [`Machine::read`].
    pub fn parse(text: &str, name: &str) -> Result<Machine> {
        let machine: Machine = from_toml(text, name)?;
        for ports in &machine.ports {
            let at = |from: usize| format!("{name}, line {}", line(text, from));
            let buses = || machine.bus.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let bus = ports.bus.get_ref();
            let known = machine.bus.contains_key(bus);
            ensure!(
                known,
                "{}: no bus '{bus}' carries these ports; there are {}",
                at(ports.bus.span().start),
                buses()
            );
            let most = (Bus::MASTERS - 1) / Engine::COUNT;
            let on_it = machine.ports.iter().filter(|p| p.bus.get_ref() == bus);
            let all = on_it.fold(0usize, |sum, p| sum.saturating_add(*p.count.get_ref()));
            ensure!(
                all <= most && *ports.count.get_ref() > 0,
                "{}: bus '{bus}' would have {all} ports; 1 to {most} are possible",
                at(ports.count.span().start)
            );
        }
        let p = &machine.processor;
        let set = p.cache_ways.value * p.cache_line.value;
        ensure!(
            p.cache.value >= set,
            "{name}, line {}: a cache of {} bytes has no set of {set} bytes: ways by line; it has one at least",
            line_of(text, &["processor", "cache"]),
            p.cache.value
        );
        let calibrated = all_under(text, "calibrated");
        if let Some((line, _)) = calibrated.get(CALIBRATED_MOST) {
            let on = calibrated.iter().map(|(_, on)| on.as_str()).collect::<Vec<_>>().join("; ");
            let count = calibrated.len();
            bail!(
                "{name}, line {line}: {count} values are calibrated, at most {CALIBRATED_MOST} may be, on: {on}"
            );
        }
        Ok(machine)
    }

    /// How many ports it has.
    pub fn port_count(&self) -> usize {
        self.ports.iter().map(|ports| *ports.count.get_ref()).sum()
    }
}
