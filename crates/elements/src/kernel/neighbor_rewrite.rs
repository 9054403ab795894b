//! NeighborRewrite.

use super::forwarding::{Forwarding, KERNEL, Neighbor};
use causeway_engine::spec::{drops, reads, required};
use causeway_engine::{Conf, Counter, Cx, Element, Invalid, Spec};
use causeway_fib::AdjacencyReader;
use causeway_packet::Batch;

pub(crate) static SPEC: Spec = Spec {
    name: "NeighborRewrite",
    category: "kernel",
    summary: "writes the Ethernet addresses of the neighbor that a kernel lookup found",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Writes destination and source address of the Ethernet header at the start of each packet, as the \
          adjacency needs it that KernelIPLookup or KernelIP6Lookup found; the type stays. IF is the interface the \
          packets are to leave by. If the neighbor has gone since the lookup, or its route leads elsewhere now, the \
          packet goes to output 1 unchanged, or is dropped if that is not connected.",
    args: &[required("IF", "interface", "where the packets leave")],
    handlers: &[reads("count", "packets rewritten"), reads("gone", "packets whose neighbor was gone")],
    drops: &[drops("neighbor-gone", "the neighbor has gone since the lookup, and output 1 is not connected")],
    example: "FromDevice(eth0, METHOD TRANSIT) -> CheckIPHeader(14) -> r :: KernelIPLookup(eth1); \
              r[0] -> DecIPTTL -> NeighborRewrite(eth1) -> ToDevice(eth1, METHOD TRANSIT); r[1] -> ToKernel(eth0);",
    see: &["KernelIPLookup", "KernelIP6Lookup", "EtherEncap"],
    build,
    ..Spec::DEFAULT
};

const GONE: usize = 0;

struct NeighborRewrite {
    neighbors: AdjacencyReader<Neighbor>,
    port: u16,
    count: Counter,
    gone: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let name: String = conf.required("IF");
    let forwarding = Forwarding::find(conf)?;
    let port = forwarding.number(conf, &name).unwrap_or(KERNEL);
    conf.finish()?;
    let neighbors = forwarding.readers().neighbors;
    Ok(Box::new(NeighborRewrite { neighbors, port, count: conf.counter("count"), gone: 0 }))
}

impl Element for NeighborRewrite {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let view = self.neighbors.pin();
        batch.filter_map(|mut packet| {
            let found = view.resolve(packet.adjacency(), packet.flow_hash());
            let hop = found.filter(|hop| hop.port == self.port && hop.port != KERNEL);
            match (hop, packet.data_mut().first_chunk_mut::<12>()) {
                (Some(hop), Some(addresses)) => {
                    *addresses = hop.addresses;
                    Some(packet)
                }
                _ => {
                    self.gone += 1;
                    cx.divert(1, GONE, packet);
                    None
                }
            }
        });
        self.count.add(batch.len() as u64);
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(if handler == "count" { self.count.get() } else { self.gone }.to_string())
    }
}
