//! The ends of a chain under test: a source that is told what to push, and sinks that note all there is to see.

use causeway_engine::spec::writes;
use causeway_engine::{Conf, Cx, Element, Error, Invalid, Persistent, Spec};
use causeway_packet::meta::ANNO_BYTES;
use causeway_packet::{Anno, Batch, Packet, PacketType};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// A packet to push: its bytes, and what a device or an earlier element noted on it.
#[derive(Clone)]
pub(super) struct Given {
    pub bytes: Vec<u8>,
    pub packet_type: PacketType,
    pub paint: u8,
    pub fix_source: bool,
    pub adjacency: u32,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Given { packet_type, paint, fix_source, adjacency, .. } = self;
        write!(f, "{packet_type:?} paint {paint} fix {fix_source} adjacency {adjacency} {}", hex(&self.bytes))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Given {
    pub fn packet(&self) -> Packet {
        let mut packet = Packet::from_bytes(&self.bytes).unwrap();
        // Unstrip brings to light what lies there; another packet's may differ from one run to the next.
        let headroom = packet.headroom();
        packet.push(headroom).unwrap()[..headroom].fill(0);
        packet.pull(headroom).unwrap();
        packet.set_mac_header(0);
        packet.set_packet_type(self.packet_type);
        packet.set_paint(self.paint);
        packet.set_anno_u8(Anno::FIX_IP_SRC.offset, self.fix_source as u8);
        packet.set_adjacency(self.adjacency);
        packet.set_flow_hash(self.flow());
        packet.set_timestamp_ns(7);
        packet
    }

    /// A number for source and destination, if there are any.
    fn flow(&self) -> u32 {
        number(self.bytes.get(26..34).unwrap_or_default())
    }
}

fn number(addresses: &[u8]) -> u32 {
    addresses.iter().fold(NO_FLOW, |flow: u32, &b| flow.wrapping_mul(251).wrapping_add(b.into()))
}

/// What is of no flow has this number; its order does not count.
pub(super) const NO_FLOW: u32 = 1;

/// The number of the flow that a packet belongs to, or, being an ICMP error, is about. ARP queries and the like
/// are of no flow: [`NO_FLOW`].
fn flow(packet: &Packet) -> u32 {
    match packet.flow_hash() {
        0 => number(packet.transport_header().and_then(|icmp| icmp.get(20..28)).unwrap_or_default()),
        flow => flow,
    }
}

/// All that a later element may read of a packet.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub bytes: Vec<u8>,
    wire_len: usize,
    headers: (Option<i32>, Option<usize>, Option<usize>),
    pub annotations: [u8; ANNO_BYTES],
    packet_type: PacketType,
    adjacency: u32,
    flow_hash: u32,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seen { wire_len, headers, packet_type, adjacency, .. } = self;
        write!(f, "{packet_type:?} {wire_len} {headers:?} adjacency {adjacency} ")?;
        write!(f, "annotations {} {}", hex(&self.annotations), hex(&self.bytes))
    }
}

impl Seen {
    pub fn of(packet: &Packet) -> Seen {
        let mut bytes = packet.data().to_vec();
        if let (0, Some(header)) = (packet.flow_hash(), packet.network_offset()) {
            // ICMP errors are numbered as they come, about whichever flow.
            for field in [4..6, 10..12] {
                bytes[header..].get_mut(field).into_iter().flatten().for_each(|b| *b = 0);
            }
        }
        Seen {
            bytes,
            wire_len: packet.wire_len(),
            headers: (packet.mac_distance(), packet.network_offset(), packet.transport_offset()),
            annotations: packet.anno_bytes(0),
            packet_type: packet.packet_type(),
            adjacency: packet.adjacency(),
            flow_hash: packet.flow_hash(),
        }
    }
}

/// What came out, by sink and flow. The order within a flow counts.
pub(super) type Arrivals = BTreeMap<(String, u32), Vec<Seen>>;

/// What the ends share with the test.
#[derive(Default)]
pub(super) struct Desk {
    pub rounds: Mutex<Vec<Vec<Given>>>,
    pub arrivals: Mutex<Arrivals>,
}

const DESK: &str = "desk";

/// Values in which a router's ends find `desk`.
pub(super) fn values(desk: &Arc<Desk>) -> Persistent {
    let values = Persistent::default();
    values.lock().unwrap().insert(DESK.to_owned(), desk.clone());
    values
}

fn desk(conf: &mut Conf<'_>) -> Arc<Desk> {
    conf.env.persistent(DESK, Desk::default).unwrap()
}

pub(super) static INJECT: Spec = Spec {
    name: "Inject",
    ports: "0/1",
    processing: "h/h",
    handlers: &[writes("round", "pushes the packets of the round of this number")],
    build: |conf| Ok(Box::new(Inject(desk(conf)))),
    ..Spec::DEFAULT
};

struct Inject(Arc<Desk>);

impl Element for Inject {
    fn write(&mut self, _handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let round: usize = value.parse().map_err(|_| "no number")?;
        self.0.rounds.lock().unwrap()[round].iter().for_each(|given| cx.emit(0, given.packet()));
        Ok(())
    }
}

pub(super) static CAPTURE: Spec =
    Spec { name: "Capture", ports: "1/0", processing: "h/h", build: capture, ..Spec::DEFAULT };

struct Capture(Arc<Desk>);

fn capture(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    Ok(Box::new(Capture(desk(conf))))
}

impl Element for Capture {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut arrivals = self.0.arrivals.lock().unwrap();
        for packet in batch.drain() {
            let place = arrivals.entry((cx.name().to_owned(), flow(&packet))).or_default();
            place.push(Seen::of(&packet));
        }
    }
}
