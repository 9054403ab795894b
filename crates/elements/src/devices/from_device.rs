//! FromDevice and PollDevice.

use super::given_up::{Arrivals, Entry};
use super::handled::{Role, Share, look_again};
use super::open_port::{Direction, OpenPort, PortControl};
use super::queues::Queues;
use super::registry::{Method, PortOpener};
use crate::traces::encap;
use causeway_engine::ir::{Builder, Program};
use causeway_engine::measure::{Across, Unit};
use causeway_engine::reception::{DEFAULT_QUOTA, Mechanism};
use causeway_engine::spec::{ArgDoc, Copies, HandlerDoc, keyword, optional, phase, reads, required, writes};
use causeway_engine::value::{Nanoseconds, Raw};
use causeway_engine::{
    Conf, ControlSide, Counter, Cx, Defaults, Element, Error, Invalid, PortStatistics, Spec,
};
use causeway_netio::opener;
use causeway_packet::wire::ethernet::field::ETHER_TYPE;
use causeway_packet::{Batch, Packet, PacketType, Receiver};
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "FromDevice",
    category: "devices",
    summary: "receives packets from a network interface",
    ports: "0/1-2",
    processing: "h/h",
    phase: phase::SOURCE_DEVICE,
    doc: "Receives frames from the interface DEVNAME and pushes them with their Ethernet headers. The packet type \
          annotation says whether a frame was for this host. By default it receives over AF_XDP, in the driver and \
          without copies where these can be had; `mode` says what was got and why. All frames come to the graph \
          then and the kernel sees none, so the graph must answer ARP itself; with METHOD TRANSIT only those come \
          that are surely in transit, and the kernel keeps the rest; with METHOD TCX, for virtual interfaces, all come from the \
          kernel's stack to `causeway run --driver`, where part of the graph runs, and otherwise over AF_XDP; \
          `causeway up --driver` writes it too, and there none come, since a program forwards what it can and the kernel the rest; with \
          METHOD PACKET (AF_PACKET) the kernel sees each frame as well, which is the default under the name `click`. With FORCE_IP only IPv4 packets leave by output 0, with \
          their headers marked; the others go to output 1 if that is connected, and are dropped otherwise. In a router that runs a copy of its graph on each of several workers, each copy \
          receives from its share of the interface's queues. An interface that is renamed stays the graph's. One that is \
          deleted or moved away is let go, and nothing is sent to it any more; `causeway run` opens it again when \
          there is one of that name, while the others go on.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> Counter -> Queue -> ToDevice(eth1);",
    see: &["ToDevice", "PollDevice", "FromHost", "FromDump"],
    copies: Copies::AsMany(super::names::queues),
    build: |conf| build(conf, None),
    ..Spec::DEFAULT
};

pub(crate) static POLL: Spec = Spec {
    name: "PollDevice",
    summary: "receives packets from a network interface by polling",
    doc: "FromDevice with RECEPTION polling: the worker looks at the interface in every round and never sleeps. \
          (Click's class of this name belongs to its kernel driver; configurations for it run here.)",
    example: "PollDevice(eth0) -> Counter -> Queue -> ToDevice(eth1);",
    see: &["FromDevice", "ToDevice"],
    build: |conf| build(conf, Some(Mechanism::Polling)),
    ..SPEC
};

const ARGS: &[ArgDoc] = &[
    required("DEVNAME", "interface", "where to receive"),
    optional("PROMISC", "boolean", "receive frames to other addresses too; default false"),
    optional(
        "SNAPLEN",
        "bytes",
        "longer frames are cut to this; default: none are. PollDevice has BURST here",
    ),
    keyword(
        "METHOD",
        "word",
        "how: AFXDP, the default, TRANSIT, GENERIC, TCX, PACKET, TAP, TUN, MEMORY, or what a backend adds. LINUX and PCAP \
             mean PACKET",
    ),
    keyword("CAPTURE", "word", "the same as METHOD, in older configurations"),
    keyword(
        "RECEPTION",
        "mechanism",
        "how the worker learns of packets: interrupt, moderated, napi, disable-enable or \
             polling; default that of the command line",
    ),
    keyword("QUOTA", "packets", "with napi: packets in one turn; default 64"),
    keyword("PACKETS", "packets", "with moderated: packets that raise an interrupt; default 32"),
    keyword("TIME", "time", "with moderated: from the first packet to the interrupt; default 100us"),
    keyword(
        "SNIFFER",
        "boolean",
        "true is METHOD PACKET: the kernel sees the frames as well; default false, and true under the name click",
    ),
    keyword("BURST", "packets", "accepted for compatibility: QUOTA"),
    keyword("FORCE_IP", "boolean", "whether to pass IPv4 only and mark its headers; default false"),
    keyword("PROTOCOL", "Ethernet type", "receive only frames of that type; default 0, any"),
    keyword("TIMESTAMP", "boolean", "whether packets keep the time at which they came; default true"),
    keyword("OUTBOUND", "boolean", "receive frames that the host sends too; only false is possible"),
    keyword("BPF_FILTER", "expression", "accepted for compatibility and ignored, with a warning"),
    keyword(
        "ENCAP",
        "word",
        "what frames begin with, as ToDump's ENCAP has it, for FORCE_IP and `encap`; default ETHER",
    ),
    keyword("HEADROOM", "bytes", "accepted for compatibility"),
];

causeway_engine::drop_reasons! {
    enum Reason for SPEC {
        NotIp = "not-ip", "FORCE_IP, it is no IPv4 packet, and output 1 is not connected";
        OtherProtocol = "other-protocol", "it is not of the type that PROTOCOL says";
        GivenUp = "given-up", "a program in the driver gave it up that nobody knows any more";
        Refused = "refused", "a program in the driver was done with it, and it was too short for a frame, or there was no room in front of it";
    }
}

const HANDLERS: &[HandlerDoc] = &[
    reads("count", "packets received").counts(Unit::Packets),
    writes("reset_counts", "sets the count to zero"),
    reads("encap", "ENCAP, as ToDump's has it"),
    reads("mode", "how the interface is received from, and why not better"),
    reads(
        "counters",
        "all that the interface and its sockets counted, drops by reason included, a line each",
    ),
    reads("kernel_drops", "packets that the interface or its sockets dropped before the graph")
        .counts(Unit::Packets)
        .across(Across::First),
    CAPABILITIES,
    EVENTS,
];

pub(super) const CAPABILITIES: HandlerDoc = reads(
    "capabilities",
    "what the port can do: clocks of time stamps, longest frame, headroom, queues, zero copy, a line each",
);
pub(super) const EVENTS: HandlerDoc =
    reads("events", "what happened to the interface since it was opened: how often, a line each");

/// The timer for what was received in the driver.
const HANDLED: u32 = 0;

struct FromDevice {
    opener: PortOpener,
    method: Method,
    mechanism: Option<Mechanism>,
    replica: (usize, usize),
    snaplen: usize,
    force_ip: bool,
    /// What frames begin with.
    linktype: u32,
    /// Any, if 0.
    protocol: u16,
    timestamp: bool,
    port: Option<Arc<OpenPort>>,
    queues: Queues,
    count: Counter,
    /// What is received in the driver.
    share: Option<Share>,
    /// What was given up there.
    arrivals: Option<Arrivals>,
}

/// What METHOD says, if it is given.
pub(super) fn method(conf: &mut Conf<'_>, promiscuous: bool) -> Option<Method> {
    let older: Option<String> = conf.keyword_given("CAPTURE");
    let name: String = conf.keyword_given("METHOD").or(older)?;
    match opener::find(&name).and_then(|opener| opener.names().first()) {
        Some(opener) => Some(Method { opener, promiscuous }),
        None => {
            conf.error(format!("METHOD: '{name}' is not one of {}", opener::list()));
            None
        }
    }
}

/// The method where METHOD is not given. A `sniffer` leaves the kernel its packets.
pub(super) fn default_method(sniffer: bool, promiscuous: bool) -> Method {
    match sniffer {
        true => Method { opener: "packet", promiscuous },
        false => Method { promiscuous, ..Method::USUAL },
    }
}

/// Key of the method by which an interface is received from, for whoever sends to it.
pub(super) fn method_key(device: &str) -> String {
    format!("method of {device}")
}

/// The reception mechanism that the keywords ask for, if any.
fn mechanism(conf: &mut Conf<'_>, burst: u32) -> Option<Mechanism> {
    let quota = conf.keyword("QUOTA", burst);
    let packets = conf.keyword("PACKETS", 32u32);
    let time = conf.keyword("TIME", Nanoseconds(100_000));
    let name: String = conf.keyword_given("RECEPTION")?;
    let found = Mechanism::by_name(&name, quota, packets, time.0);
    if found.is_none() {
        conf.error(format!("RECEPTION: '{name}' is not one of {}", Mechanism::NAMES.join(", ")));
    }
    found
}

fn build(conf: &mut Conf<'_>, default: Option<Mechanism>) -> Result<Box<dyn Element>, Invalid> {
    let name: String = conf.required("DEVNAME");
    let promiscuous = conf.optional("PROMISC", false);
    // What is third is the length for one class, and the burst for the other.
    let third = conf.optional(if default.is_some() { "BURST" } else { "SNAPLEN" }, u32::MAX);
    let (snaplen, burst) = match default.is_some() {
        true => (conf.keyword("SNAPLEN", u32::MAX), third),
        false => (third, conf.keyword("BURST", u32::MAX)),
    };
    let burst = if burst == u32::MAX { DEFAULT_QUOTA } else { burst };
    let sniffer = conf.keyword("SNIFFER", conf.env.defaults == Defaults::Click);
    let method = method(conf, promiscuous).unwrap_or(default_method(sniffer, promiscuous));
    let mechanism = mechanism(conf, burst).or(default);
    let force_ip = conf.keyword("FORCE_IP", false);
    let protocol = conf.keyword("PROTOCOL", 0u16);
    let timestamp = conf.keyword("TIMESTAMP", true);
    if conf.keyword("OUTBOUND", false) {
        conf.error("OUTBOUND: frames that the host sends cannot be received");
    }
    if conf.keyword_given::<Raw>("BPF_FILTER").is_some() {
        conf.warn("not using METHOD PCAP, BPF filter ignored");
    }
    let linktype = encap::by_name(&conf.keyword("ENCAP", "ETHER".to_owned())).unwrap_or_else(|| {
        conf.error("bad encapsulation type");
        encap::ETHER
    });
    conf.keyword("HEADROOM", 0u32);
    conf.finish()?;
    let opener = PortOpener::new(conf, &name, "receives from")?;
    conf.env.shared(&method_key(&name), || method);
    Ok(Box::new(FromDevice {
        opener,
        method,
        mechanism,
        replica: conf.replica(),
        snaplen: snaplen as usize,
        force_ip,
        linktype,
        protocol,
        timestamp,
        port: None,
        queues: Queues::default(),
        count: conf.counter("count"),
        share: Share::find(conf, Role::Receives, &name),
        // Of others what lies in front of a frame says nothing.
        arrivals: if has_luggage(method) { Arrivals::find(conf, &name) } else { None },
    }))
}

/// Whether a program in the driver may be in front of a port that is opened so, whose frames bring luggage then.
fn has_luggage(method: Method) -> bool {
    matches!(method.opener, "afxdp" | "transit" | "generic" | "tcx")
}

/// How a frame was addressed, for a host whose address is `mac`.
fn packet_type(frame: &[u8], mac: &[u8; 6]) -> PacketType {
    match frame.first_chunk::<6>() {
        Some(to) if to == mac => PacketType::Host,
        Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => PacketType::Broadcast,
        Some([first, ..]) if first & 1 == 1 => PacketType::Multicast,
        _ => PacketType::OtherHost,
    }
}

impl FromDevice {
    /// What few configurations ask for.
    #[cold]
    fn choose(&self, batch: &mut Batch, cx: &mut Cx<'_>) {
        batch.filter_map(|mut packet| {
            let of_type = |p: &Packet| p.data().get(ETHER_TYPE) == Some(&self.protocol.to_be_bytes()[..]);
            if self.protocol != 0 && !of_type(&packet) {
                cx.drop(Reason::OtherProtocol, packet);
                return None;
            }
            if !self.timestamp {
                packet.set_timestamp_ns(0);
            }
            if self.force_ip && !encap::mark(&mut packet, self.linktype) {
                cx.divert(1, Reason::NotIp, packet);
                return None;
            }
            Some(packet)
        });
    }
}

impl FromDevice {
    /// Sends the packets on that a program in the driver gave up, each where it left off.
    #[inline]
    fn take_up(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let Some(luggage) = self.arrivals.as_mut().and_then(Arrivals::luggage) else { return };
        batch.filter_map(|mut packet| match luggage.unpack(&mut packet) {
            Entry::Start => Some(packet),
            Entry::At(output) => {
                cx.emit(output, packet);
                None
            }
            Entry::Lost => {
                cx.drop(Reason::GivenUp, packet);
                None
            }
        });
    }

    /// Counts what was received in the driver since the last time.
    fn count_handled(&self, cx: &Cx<'_>) {
        if let Some(share) = &self.share {
            let handled = share.take();
            self.count.add(handled);
            cx.count_left(0, handled);
        }
    }
}

impl Element for FromDevice {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let port = self.opener.open(self.method)?;
        port.check_queues(self.replica)?;
        self.queues.take(&port, self.replica);
        if !self.queues.is_empty() {
            port.announce(cx);
        }
        self.port = Some(port);
        if self.share.is_some() {
            look_again(HANDLED, cx);
        }
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        self.count_handled(cx);
        look_again(HANDLED, cx);
    }

    /// Received packets pass through here before they leave by the output.
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        let mac = self.port.as_ref().map_or([0; 6], |port| port.mac);
        batch.iter().take(8).for_each(|p| p.prefetch_data());
        for i in 0..batch.len() {
            batch.prefetch_data(i + 8);
            let packet = &mut batch[i];
            if packet.len() > self.snaplen {
                packet.set_wire_len(packet.len());
                packet.truncate(self.snaplen);
            }
            packet.set_mac_header(0);
            packet.set_packet_type(packet_type(packet.data(), &mac));
        }
        if self.force_ip || self.protocol != 0 || !self.timestamp {
            self.choose(batch, cx);
        }
        self.take_up(batch, cx);
    }

    /// To packets that it receives in the driver: nothing that is not known there.
    fn lower(&self) -> Option<Program> {
        let chooses =
            self.force_ip || self.protocol != 0 || !self.timestamp || self.snaplen < u32::MAX as usize;
        if chooses || !has_luggage(self.method) { None } else { Builder::pass() }
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        if handler == "encap" {
            return Ok(encap::name(self.linktype));
        }
        self.count_handled(cx);
        Ok(self.count.get().to_string())
    }

    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), Error> {
        self.count.set(0);
        Ok(())
    }

    fn control_side(&self, _cx: &mut Cx<'_>) -> Option<Box<dyn ControlSide>> {
        let port = self.port.clone()?;
        Some(Box::new(PortControl { port, direction: Direction::Receive }))
    }

    fn port_statistics(&self) -> Option<PortStatistics> {
        Some(self.port.as_ref()?.teller(Direction::Receive, self.replica))
    }

    fn swap_key(&self) -> Option<String> {
        self.port.as_ref().map(|port| format!("receives from {}", port.name))
    }

    fn retire(&mut self) {
        if let Some(port) = &self.port {
            self.queues.put_back(port);
        }
    }

    fn commit(&mut self, _cx: &mut Cx<'_>) {
        if let Some(port) = &self.port {
            self.queues.take(port, self.replica);
        }
    }

    fn receiver(&mut self) -> Option<&mut dyn Receiver> {
        Some(&mut self.queues)
    }

    fn mechanism(&self) -> Option<Mechanism> {
        self.mechanism
    }
}

impl Drop for FromDevice {
    fn drop(&mut self) {
        if let Some(port) = &self.port {
            self.queues.put_back(port);
        }
    }
}

#[cfg(test)]
mod tests;
