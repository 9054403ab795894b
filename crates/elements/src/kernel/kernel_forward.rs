//! KernelForward.

use super::flow::FlowHash;
use super::forwarding::{Forwarding, KERNEL, Neighbour, PORTS_MAX, PortPolicy};
use super::version::{ETHERNET, Header, Version};
use crate::devices::Handled;
use crate::devices::handled::{Role, Share, look_again};
use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc};
use causeway_fib::{
    Address, AdjacencyIndex, AdjacencyReader, AdjacencyView, Fib4Reader, Fib6Reader, Lookup, MISS,
    Participant, Pinned,
};
use causeway_netio::front::monotonic_ns;
use causeway_packet::BATCH;
use std::net::IpAddr;
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "KernelForward",
    category: "kernel",
    summary: "forwards by the kernel's routes, as the kernel would, or leaves packets to it",
    ports: "1-/2-",
    processing: "h/h",
    doc: "Input i takes the frames that came in by the i-th of N interfaces. Each IPv4 or IPv6 packet is looked up in \
          the tables that `causeway up` keeps in step with the kernel's; one that the kernel would forward leaves by \
          the output of its next hop's interface (0 to N-1), with its time to live decremented and new Ethernet \
          addresses, cut to its IP length. Of a route with several next hops one is chosen by a hash of the flow. \
          Sources are checked as the interface's rp_filter says (RFC 3704). Everything else leaves by output N+i, \
          exactly as it came, to be led to ToKernel: what the kernel itself is to handle, drop or answer, and all \
          packets while the tables are not known to be right.",
    args: ARGS,
    handlers: HANDLERS,
    example: "FromDevice(eth0, METHOD TRANSIT) -> f :: KernelForward(eth0, eth1); \
              FromDevice(eth1, METHOD TRANSIT) -> [1]f; \
              f[0] -> ToDevice(eth0, METHOD TRANSIT); f[1] -> ToDevice(eth1, METHOD TRANSIT); \
              f[2] -> ToKernel(eth0); f[3] -> ToKernel(eth1);",
    see: &["ToKernel", "FromDevice", "IPLookup", "LookupIP6Route"],
    build,
    ..Spec::DEFAULT
};

const ARGS: &[ArgDoc] =
    &[rest("IF", "interface", "the interfaces that inputs and outputs stand for, in order")];

const HANDLERS: &[HandlerDoc] = &[
    reads("count", "packets forwarded").counts(Unit::Packets),
    reads(
        "driver",
        "packets forwarded in the driver, which `count` has as well, by interfaces in and out, a line each",
    )
    .counts(Unit::Packets)
    .by("way"),
    reads("punts", "packets left to the kernel, by reason, a line each").counts(Unit::Packets).by("reason"),
    reads(
        "differences",
        "routes by which the driver's self-check found that the kernel forwards otherwise, and did so when asked again",
    )
    .counts(Unit::None)
    .across(Across::First),
    reads_with(
        "lookup",
        "where packets to an address leave: interface and MAC address, `kernel` and why, or `none`",
    ),
];

/// Why a packet is left to the kernel, besides the reasons of the routes.
const PUNTS: [&str; 9] = [
    "lease",
    "not-forwarding",
    "bad-header",
    "no-route",
    "source",
    "redirect",
    "too-long",
    "other-port",
    "flow",
];
const LEASE: usize = 0;
const NOT_FORWARDING: usize = 1;
const BAD_HEADER: usize = 2;
const NO_ROUTE: usize = 3;
const SOURCE: usize = 4;
const REDIRECT: usize = 5;
const TOO_LONG: usize = 6;
const OTHER_PORT: usize = 7;
const FLOW: usize = 8;

/// The timer for what was forwarded in the driver.
const HANDLED: u32 = 0;

struct KernelForward {
    forwarding: Arc<Forwarding>,
    v4: Fib4Reader,
    v6: Fib6Reader,
    neighbours: AdjacencyReader<Neighbour>,
    participant: Participant,
    /// Number of the port at each input.
    inputs: Vec<u16>,
    /// Output by number of the port; none for ports that are not named.
    outputs: Vec<Option<u16>>,
    /// What the engine's clock is ahead of that of deadlines, nanoseconds.
    clock_ahead_ns: u64,
    count: Counter,
    /// By input, what is forwarded in the driver, and by output.
    shares: [Vec<Option<Share>>; 2],
    /// All of it.
    handled: Option<Arc<Handled>>,
    /// By [`PUNTS`], then by the reasons of the routes.
    punts: Vec<Counter>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let texts = conf.rest();
    let names: Vec<String> = texts.iter().filter_map(|text| conf.parse("IF", text)).collect();
    let forwarding = Forwarding::find(conf)?;
    let n = names.len();
    if conf.n_inputs() != n || conf.n_outputs() != 2 * n {
        conf.error(format!(
            "{n} interfaces need {n} inputs, and {} outputs, the last {n} for the kernel",
            2 * n
        ));
    }
    if n > PORTS_MAX {
        conf.error(format!("{n} interfaces are more than the {PORTS_MAX} that one router can have"));
    }
    let mut outputs = vec![None; forwarding.ports().len()];
    let mut inputs = Vec::new();
    for (output, name) in names.iter().enumerate() {
        let number = forwarding.number(conf, name);
        inputs.push(number.unwrap_or(KERNEL));
        if let Some(number) = number {
            outputs[usize::from(number)] = Some(output as u16);
        }
    }
    conf.finish()?;
    let readers = forwarding.readers();
    let reasons = PUNTS.iter().chain(forwarding.reasons());
    let punts = reasons.map(|reason| conf.counter(&format!("punt.{reason}"))).collect();
    Ok(Box::new(KernelForward {
        v4: u32::table(&readers),
        v6: u128::table(&readers),
        neighbours: readers.neighbours,
        participant: readers.participant,
        forwarding,
        inputs,
        outputs,
        clock_ahead_ns: 0,
        count: conf.counter("count"),
        shares: [Role::Decides, Role::Leads]
            .map(|role| names.iter().map(|name| Share::find(conf, role, name)).collect()),
        // Of several copies of the element the first tells.
        handled: if conf.replica().0 == 0 { Handled::find(conf) } else { None },
        punts,
    }))
}

/// What the packets of a batch have in common.
struct Scene<'a> {
    view: AdjacencyView<'a, Neighbour>,
    forwarding: &'a Forwarding,
    outputs: &'a [Option<u16>],
    port: u16,
    policy: PortPolicy,
    /// For IPv4 and IPv6.
    flow_hashes: [Option<FlowHash>; 2],
}

impl Scene<'_> {
    /// Makes a frame whose destination and source led to these adjacencies what its next hop needs, and says by which
    /// output it leaves; or leaves it as it is and says why it is the kernel's.
    #[inline]
    fn forward<V: Version>(
        &self,
        header: &Header<V>,
        (found, back): (AdjacencyIndex, AdjacencyIndex),
        packet: &mut Packet,
    ) -> Result<u16, usize> {
        if !V::forwards(self.policy) {
            return Err(NOT_FORWARDING);
        }
        let back = self.forwarding.paths(back);
        // The kernel looks at no IPv6 source but those that are nobody's.
        let fine =
            if V::BITS == 32 { back.allow(self.policy.reverse_path, self.port) } else { !back.is_ours() };
        if !fine {
            return Err(SOURCE);
        }
        // Only a route with several paths asks for it.
        let mut unclear = false;
        let hash = || {
            let by = self.flow_hashes[usize::from(V::BITS != 32)].as_ref();
            let hash = by.and_then(|by| V::flow_hash(packet.data(), by));
            unclear = hash.is_none();
            hash.unwrap_or(0)
        };
        let hop = self.view.resolve_with(found, hash).ok_or(NO_ROUTE)?;
        if unclear {
            return Err(FLOW);
        }
        if hop.port == KERNEL || hop.is_bare() {
            return Err(PUNTS.len() + usize::from(hop.reason));
        }
        if header.len > hop.mtu_bytes as usize {
            return Err(TOO_LONG);
        }
        if hop.port == self.port && !V::may_return(self.policy) {
            return Err(REDIRECT);
        }
        let output = self.outputs.get(usize::from(hop.port)).copied().flatten().ok_or(OTHER_PORT)?;
        self.forwarding.mark(hop.mark);
        packet.truncate(ETHERNET + header.len);
        let frame = packet.data_mut();
        V::decrement(frame);
        if let Some(addresses) = frame.first_chunk_mut::<12>() {
            *addresses = hop.addresses;
        }
        Ok(output)
    }
}

/// The headers of a batch's packets of one version, and what their destinations and sources led to.
struct Lookups<V: Version> {
    headers: [Option<Header<V>>; BATCH],
    found: [AdjacencyIndex; BATCH],
    back: [AdjacencyIndex; BATCH],
}

impl<V: Version> Lookups<V> {
    /// None if no packet is of this version.
    #[inline]
    fn new(batch: &Batch, table: &V::Table, pinned: &Pinned<'_>) -> Option<Self> {
        let n = batch.len();
        let of_version = |p: &Packet| p.data().get(12..ETHERNET) == Some(&V::ETHERTYPE);
        let first = batch.iter().position(of_version)?;
        let mut lookups = Lookups { headers: [None; BATCH], found: [MISS; BATCH], back: [MISS; BATCH] };
        let (mut destinations, mut sources) = ([V::ZERO; BATCH], [V::ZERO; BATCH]);
        for (i, packet) in batch.iter().enumerate().skip(first).filter(|(_, p)| of_version(p)) {
            lookups.headers[i] = V::check(packet.data());
            if let Some(header) = &lookups.headers[i] {
                (destinations[i], sources[i]) = (header.destination, header.source);
            }
        }
        V::look_up(table, pinned, &destinations[..n], &mut lookups.found[..n]);
        V::look_up(table, pinned, &sources[..n], &mut lookups.back[..n]);
        Some(lookups)
    }

    /// The packet at place `i`, if it is of this version and sound.
    #[inline]
    fn at(lookups: &Option<Self>, i: usize) -> Option<(&Header<V>, (AdjacencyIndex, AdjacencyIndex))> {
        let lookups = lookups.as_ref()?;
        Some((lookups.headers[i].as_ref()?, (lookups.found[i], lookups.back[i])))
    }
}

impl KernelForward {
    /// Whether the right to forward stands.
    fn may_forward(&self, cx: &mut Cx<'_>) -> bool {
        let now_ns = cx.now_ns().wrapping_sub(self.clock_ahead_ns);
        self.forwarding.deadline_ns() >= now_ns
    }

    /// Counts what was forwarded in the driver since the last time.
    fn count_handled(&self, cx: &Cx<'_>) {
        let [inputs, outputs] = &self.shares;
        for (output, share) in outputs.iter().enumerate() {
            cx.count_left(output, share.as_ref().map_or(0, Share::take));
        }
        for (port, share) in self.inputs.iter().zip(inputs) {
            let handled = share.as_ref().map_or(0, Share::take);
            if handled > 0 {
                self.count.add(handled);
                self.forwarding.count(*port, handled, 0);
            }
        }
    }

    /// Leaves all packets to the kernel.
    fn give_up(&self, batch: &mut Batch, reason: usize, output: usize, cx: &mut Cx<'_>) {
        self.punts[reason].add(batch.len() as u64);
        cx.emit_each(batch, &[output as u32; BATCH][..batch.len()]);
    }

    /// What `lookup` answers for an address.
    fn describe<V: Address>(&self, address: V, table: &impl Lookup<V>) -> String {
        let view = self.neighbours.pin();
        let Some(hop) = view.resolve(table.lookup(address), 0) else { return "none".to_owned() };
        match self.forwarding.ports().get(usize::from(hop.port)) {
            None => {
                let reason = self.forwarding.reasons().get(usize::from(hop.reason));
                format!("kernel {}", reason.unwrap_or(&""))
            }
            Some(name) if hop.is_bare() => name.clone(),
            Some(name) => {
                let mac: Vec<String> = hop.addresses[..6].iter().map(|b| format!("{b:02x}")).collect();
                format!("{name} {}", mac.join(":"))
            }
        }
    }
}

impl Element for KernelForward {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.clock_ahead_ns = cx.now_ns().wrapping_sub(monotonic_ns());
        if self.shares.iter().flatten().any(Option::is_some) {
            look_again(HANDLED, cx);
        }
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        self.count_handled(cx);
        look_again(HANDLED, cx);
    }

    fn push(&mut self, input: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let n = batch.len();
        let to_kernel = self.inputs.len() + input;
        let port = self.inputs.get(input).copied().unwrap_or(KERNEL);
        // One announcement for all tables, from the lookups to the last frame written: no index that they return leads to
        // another neighbour. It comes before the look at the right to forward: who takes that away can wait for it.
        let pinned = self.participant.pin();
        if !self.may_forward(cx) {
            return self.give_up(batch, LEASE, to_kernel, cx);
        }
        let scene = Scene {
            view: self.neighbours.under(&pinned),
            forwarding: &self.forwarding,
            outputs: &self.outputs,
            port,
            policy: self.forwarding.policy(port),
            flow_hashes: self.forwarding.flow_hashes(),
        };
        let four = Lookups::<u32>::new(batch, &self.v4, &pinned);
        let six = Lookups::<u128>::new(batch, &self.v6, &pinned);
        let mut punted = 0;
        let mut outputs = [to_kernel as u32; BATCH];
        for i in 0..n {
            let packet = &mut batch[i];
            let way = match (Lookups::at(&four, i), Lookups::at(&six, i)) {
                (Some((header, led_to)), _) => scene.forward(header, led_to, packet),
                (_, Some((header, led_to))) => scene.forward(header, led_to, packet),
                _ => Err(BAD_HEADER),
            };
            match way {
                Ok(output) => outputs[i] = output.into(),
                Err(reason) => {
                    punted += 1;
                    self.punts[reason.min(self.punts.len() - 1)].add(1);
                }
            }
        }
        cx.emit_each(batch, &outputs[..n]);
        self.count.add(n as u64 - punted);
        self.forwarding.count(port, n as u64, punted);
    }

    fn read(&mut self, handler: &str, arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        self.count_handled(cx);
        match handler {
            "count" => Ok(self.count.get().to_string()),
            "driver" => {
                let ways = self.handled.iter().flat_map(|handled| handled.ways());
                Ok(ways.map(|(way, packets)| format!("{way} {packets}\n")).collect())
            }
            "differences" => Ok(self.forwarding.differences().to_string()),
            "punts" => {
                let reasons = PUNTS.iter().chain(self.forwarding.reasons());
                let lines = reasons.zip(&self.punts).filter(|(_, n)| n.get() > 0);
                Ok(lines.map(|(reason, n)| format!("{reason} {}\n", n.get())).collect())
            }
            _ => match arg.trim().parse() {
                Ok(IpAddr::V4(address)) => Ok(self.describe(u32::from(address), &self.v4)),
                Ok(IpAddr::V6(address)) => Ok(self.describe(u128::from(address), &self.v6)),
                Err(_) => Err(Error::new(format!("'{}' is not an address", arg.trim()))),
            },
        }
    }
}
