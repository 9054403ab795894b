//! KernelIPLookup and KernelIP6Lookup.

use super::flow::{FlowHash, FlowPolicy};
use super::forwarding::{Forwarding, KERNEL, Neighbor, Readers};
use causeway_engine::spec::{ArgDoc, HandlerDoc, reads, reads_with, rest};
use causeway_engine::{Conf, Counter, Cx, Element, Invalid, Spec};
use causeway_fib::{Address, AdjacencyReader, Fib4Reader, Fib6Reader, Lookup, MISS};
use causeway_packet::{BATCH, Batch, Packet};
use std::net::IpAddr;
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "KernelIPLookup",
    category: "kernel",
    summary: "looks up IPv4 destinations in a table that follows the kernel's routes",
    ports: "1/2-",
    processing: "h/h",
    doc: "Looks up the destination of each packet's IPv4 header, which must be marked, in the table that `causeway \
          up` keeps in step with the kernel's. Packets leave by the output of the interface that their route names, \
          in the order of the arguments, with the adjacency set for NeighborRewrite. Of a route with several next \
          hops, one is chosen by a hash of addresses, protocol and ports. The last output is for everything that \
          the table is not sure of, unchanged: no route, a route that the kernel must handle itself, a neighbor \
          that is not resolved, an interface that is not named, and packets longer than the route's MTU. Lead it \
          to ToKernel.",
    args: ARGS,
    handlers: HANDLERS,
    example: "FromDevice(eth0, METHOD TRANSIT) -> CheckIPHeader(14) -> r :: KernelIPLookup(eth1); \
              r[0] -> DecIPTTL -> NeighborRewrite(eth1) -> ToDevice(eth1, METHOD TRANSIT); r[1] -> ToKernel(eth0);",
    see: &["KernelIP6Lookup", "NeighborRewrite", "ToKernel", "IPLookup"],
    build: build::<u32>,
    ..Spec::DEFAULT
};

pub(crate) static SPEC6: Spec = Spec {
    name: "KernelIP6Lookup",
    summary: "looks up IPv6 destinations in a table that follows the kernel's routes",
    doc: "KernelIPLookup for IPv6.",
    example: "FromDevice(eth0, METHOD TRANSIT) -> CheckIP6Header(OFFSET 14) -> r :: KernelIP6Lookup(eth1); \
              r[0] -> DecIP6HLIM -> NeighborRewrite(eth1) -> ToDevice(eth1, METHOD TRANSIT); r[1] -> ToKernel(eth0);",
    see: &["KernelIPLookup", "NeighborRewrite", "ToKernel", "LookupIP6Route"],
    build: build::<u128>,
    ..SPEC
};

const ARGS: &[ArgDoc] = &[rest("IF", "interface", "the interfaces that the outputs stand for, in order")];

const HANDLERS: &[HandlerDoc] = &[
    reads("count", "packets that left by an interface's output"),
    reads("punts", "packets that left by the last output, by reason, a line each"),
    reads_with("lookup", "where packets to an address leave: interface and MAC address, `kernel`, or `none`"),
];

/// Why a packet leaves by the last output.
const PUNTS: [&str; 5] = ["no-route", "kernel", "too-long", "out-of-date", "no-header"];
const NO_ROUTE: usize = 0;
const LEFT_TO_KERNEL: usize = 1;
const TOO_LONG: usize = 2;
const OUT_OF_DATE: usize = 3;
const NO_HEADER: usize = 4;

/// What makes a flow: addresses, protocol and ports.
const FLOWS: FlowHash = FlowHash::new(FlowPolicy::L4, 0);

/// An IP version, as its headers show it.
trait Version: Address {
    type Table: Lookup<Self> + Send + 'static;
    /// Octets in the shortest header.
    const HEADER: usize;
    fn table(readers: Readers) -> (Self::Table, AdjacencyReader<Neighbor>);
    /// The destination in a header; zero if it is cut short.
    fn destination(header: &[u8]) -> Self;
    fn flow_hash(packet: &Packet) -> Option<u32>;
}

impl Version for u32 {
    type Table = Fib4Reader;
    const HEADER: usize = 20;

    fn table(readers: Readers) -> (Fib4Reader, AdjacencyReader<Neighbor>) {
        (readers.v4, readers.neighbors)
    }

    #[inline]
    fn destination(header: &[u8]) -> u32 {
        header.first_chunk::<20>().map_or(0, |h| u32::from_be_bytes([h[16], h[17], h[18], h[19]]))
    }

    fn flow_hash(packet: &Packet) -> Option<u32> {
        FLOWS.v4(packet.network_header()?)
    }
}

impl Version for u128 {
    type Table = Fib6Reader;
    const HEADER: usize = 40;

    fn table(readers: Readers) -> (Fib6Reader, AdjacencyReader<Neighbor>) {
        (readers.v6, readers.neighbors)
    }

    #[inline]
    fn destination(header: &[u8]) -> u128 {
        let address = header.get(24..).and_then(|h| h.first_chunk::<16>());
        address.map_or(0, |a| u128::from_be_bytes(*a))
    }

    fn flow_hash(packet: &Packet) -> Option<u32> {
        FLOWS.v6(packet.network_header()?)
    }
}

struct KernelLookup<A: Version> {
    forwarding: Arc<Forwarding>,
    table: A::Table,
    neighbors: AdjacencyReader<Neighbor>,
    /// Output by number of the port; the last output for ports that are not named.
    outputs: Vec<u16>,
    last: u16,
    count: Counter,
    punts: [Counter; PUNTS.len()],
}

fn build<A: Version>(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let names = conf.rest();
    let forwarding = Forwarding::find(conf)?;
    if names.len() + 1 != conf.n_outputs() {
        conf.error(format!(
            "{} interfaces need {} outputs, the last for the kernel",
            names.len(),
            names.len() + 1
        ));
    }
    let last = names.len() as u16;
    let mut outputs = vec![last; forwarding.ports().len()];
    for (output, name) in names.iter().enumerate() {
        if let Some(number) = forwarding.number(conf, name) {
            outputs[usize::from(number)] = output as u16;
        }
    }
    conf.finish()?;
    let (table, neighbors) = A::table(forwarding.readers());
    let (count, punts) = (conf.counter("count"), PUNTS.map(|reason| conf.counter(reason)));
    Ok(Box::new(KernelLookup::<A> { forwarding, table, neighbors, outputs, last, count, punts }))
}

impl<A: Version> KernelLookup<A> {
    /// What `lookup` answers for an address.
    fn describe(&self, address: A) -> String {
        let view = self.neighbors.pin();
        let found = self.table.lookup(address);
        match view.resolve(found, 0) {
            None => "none".to_owned(),
            Some(hop) => match self.forwarding.ports().get(usize::from(hop.port)) {
                None => "kernel".to_owned(),
                Some(name) => {
                    let mac: Vec<String> = hop.addresses[..6].iter().map(|b| format!("{b:02x}")).collect();
                    format!("{name} {}", mac.join(":"))
                }
            },
        }
    }
}

impl<A: Version> Element for KernelLookup<A> {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let n = batch.len();
        let last = usize::from(self.last);
        if !self.forwarding.is_trusted() {
            self.punts[OUT_OF_DATE].add(n as u64);
            batch.filter_map(|packet| {
                cx.emit(last, packet);
                None
            });
            return;
        }
        let mut addresses = [A::ZERO; BATCH];
        let mut found = [MISS; BATCH];
        for (address, packet) in addresses.iter_mut().zip(batch.iter()) {
            *address = A::destination(packet.network_header().unwrap_or(&[]));
        }
        // Pinned before the lookup, so that no index it finds is given to another neighbor meanwhile.
        let view = self.neighbors.pin();
        self.table.lookup_batch(&addresses[..n], &mut found[..n]);
        let mut punted = [0u64; PUNTS.len()];
        let mut indices = found.iter();
        batch.filter_map(|mut packet| {
            let index = indices.next().copied().unwrap_or(MISS);
            let mut hash = Some(0);
            let hop = view.resolve_with(index, || {
                hash = A::flow_hash(&packet);
                hash.unwrap_or(0)
            });
            let length = packet.network_header().map_or(0, <[u8]>::len);
            let reason = match hop {
                _ if length < A::HEADER => NO_HEADER,
                None => NO_ROUTE,
                Some(hop) if hop.port == KERNEL || hash.is_none() => LEFT_TO_KERNEL,
                Some(hop) if length > hop.mtu_bytes as usize => TOO_LONG,
                Some(hop) => {
                    let output = self.outputs.get(usize::from(hop.port)).copied().unwrap_or(self.last);
                    if output != self.last {
                        packet.set_adjacency(index);
                        packet.set_flow_hash(hash.unwrap_or(0));
                        cx.emit(usize::from(output), packet);
                        return None;
                    }
                    LEFT_TO_KERNEL
                }
            };
            punted[reason] += 1;
            cx.emit(last, packet);
            None
        });
        self.count.add(n as u64 - punted.iter().sum::<u64>());
        for (counter, n) in self.punts.iter_mut().zip(punted).filter(|(_, n)| *n > 0) {
            counter.add(n);
        }
    }

    fn read(&mut self, handler: &str, arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        match handler {
            "count" => Ok(self.count.get().to_string()),
            "punts" => Ok(PUNTS
                .iter()
                .zip(&self.punts)
                .map(|(reason, n)| format!("{reason} {}\n", n.get()))
                .collect()),
            _ => {
                let address = arg.trim().parse::<IpAddr>().ok().and_then(A::from_ip);
                Ok(self.describe(address.ok_or_else(|| format!("'{}' is not an address", arg.trim()))?))
            }
        }
    }
}
