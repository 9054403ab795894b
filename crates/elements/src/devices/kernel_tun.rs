//! KernelTun, and the element behind KernelTap.

use super::names;
use super::open_port::{Direction, OpenPort};
use super::queues::Queues;
use super::registry::{Method, PortOpener};
use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc, phase};
use causeway_engine::value::{Ether, Prefix4};
use causeway_engine::{PortStatistics, RECEIVED};
use causeway_netio::interface;
use causeway_packet::Receiver;
use causeway_packet::wire::{Ipv4, Ipv6, ethernet, ipv4, ipv6};
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "KernelTun",
    category: "devices",
    summary: "exchanges IP packets with the host by an interface that it makes",
    ports: "0-1/1-2",
    processing: "a/h",
    flow: "x/y",
    phase: phase::SOURCE_DEVICE,
    doc: "Makes a TUN interface with the address and mask of ADDR and, with GATEWAY, routes what the host has no other route for \
          to that address of its network. IP packets that the host sends by it leave by output 0 with their headers marked, \
          and what is no IPv4 or IPv6 packet by output 1, if that is connected. Packets of the input, pushed or pulled, appear to the host \
          as received by the interface, without what is in front of their marked IP header. The \
          interface goes with the router.\n\n\
          The host itself answers packets to the address in ADDR; those to other addresses of its network come here. With TAP it is a KernelTap. In a router that runs a copy of its graph on each of several \
          workers, each copy has a queue of its own.",
    args: ARGS,
    handlers: handlers!(HANDLERS, TASK),
    drops: Reason::DOCS,
    example: "tun :: KernelTun(10.9.0.1/24, DEVNAME tun9) -> IPClassifier(icmp type echo) -> ICMPPingResponder -> tun;",
    see: &["KernelTap", "FromHost", "ToHost", "RawSocket"],
    copies: Copies::AsMany(names::any_number),
    build: |conf| build(conf, false),
    ..Spec::DEFAULT
};

pub(super) const ARGS: &[ArgDoc] = &[
    required("ADDR", "IP prefix", "the interface's address, and how many bits its network has"),
    optional("GATEWAY", "IP address", "of the network: the host sends there what it has no other route for"),
    keyword("DEVNAME", "interface", "its name; default the first that is free"),
    keyword("DEV_NAME", "interface", "the same"),
    keyword("ETHER", "Ethernet address", "of a TAP; default what the kernel chooses"),
    keyword(
        "MTU",
        "bytes",
        "longest packet, without an Ethernet header; longer ones are dropped; default 1500",
    ),
    keyword("TAP", "boolean", "whether it carries Ethernet frames; default false, and true for KernelTap"),
    keyword("BURST", "packets", "accepted for compatibility; default 1"),
    keyword("HEADROOM", "bytes", "accepted for compatibility: packets have 128"),
    keyword(
        "IGNORE_QUEUE_OVERFLOWS",
        "boolean",
        "accepted for compatibility: overflows are counted, and never printed",
    ),
];

pub(super) const HANDLERS: &[HandlerDoc] = &[
    reads("dev_name", "the interface's name"),
    reads("selected_calls", "how often packets were received, several at a time").counts(Unit::None),
    reads("packets", "packets received from the host").counts(Unit::Packets),
];

drop_reasons! {
    pub(super) enum Reason for SPEC {
        NotIp = "not-ip", "what the host sent is no IP packet, and output 1 is not connected";
        NoHeader = "no-header", "no whole IP header is marked, or it is of another version";
        Short = "short", "it is shorter than an Ethernet header";
        TooLong = "too-long", "it is longer than MTU";
        Refused = "refused", "the host did not take it";
    }
}

const DEFAULT_MTU: u32 = 1_500;
/// Packets pulled at a time.
const BURST: usize = 64;

struct KernelTun {
    tap: bool,
    address: Prefix4,
    gateway: Option<Ipv4Addr>,
    ether: Option<Ether>,
    mtu: u32,
    opener: PortOpener,
    replica: (usize, usize),
    port: Option<Arc<OpenPort>>,
    queues: Queues,
    pulled: bool,
    calls: u64,
    packets: Counter,
}

/// The element of a class whose interfaces carry frames by default, or packets.
pub(super) fn build(conf: &mut Conf<'_>, frames: bool) -> Result<Box<dyn Element>, Invalid> {
    let address: Prefix4 = conf.required("ADDR");
    let gateway = conf.optional("GATEWAY", None::<Ipv4Addr>).filter(|g| !g.is_unspecified());
    let tap = conf.keyword("TAP", frames);
    let headroom: u32 = conf.keyword("HEADROOM", 0);
    let burst: u32 = conf.keyword("BURST", 1);
    let ether = conf.keyword_given::<Ether>("ETHER");
    conf.keyword("IGNORE_QUEUE_OVERFLOWS", false);
    let mtu = conf.keyword("MTU", DEFAULT_MTU);
    let old_name = conf.keyword_given::<String>("DEV_NAME");
    let name = conf.keyword_given("DEVNAME").or(old_name).filter(|name| !name.is_empty());
    if gateway.is_some_and(|gateway| !address.contains(gateway)) {
        conf.error("bad GATEWAY");
    } else if burst < 1 {
        conf.error("BURST must be >= 1");
    } else if mtu < ipv4::HEADER_LEN as u32 {
        conf.error(format!("MTU must be greater than {}", ipv4::HEADER_LEN));
    } else if headroom > 8_192 {
        conf.error("HEADROOM too big");
    }
    conf.finish()?;
    if ether.is_some() && !tap {
        conf.warn("could not set interface Ethernet address: it carries bare packets");
    }
    let opener = match &name {
        Some(name) => PortOpener::new(conf, name, "receives from")?,
        None => PortOpener::unnamed(conf, if tap { "tap%d" } else { "tun%d" })?,
    };
    Ok(Box::new(KernelTun {
        tap,
        address,
        gateway,
        ether: ether.filter(|_| tap),
        mtu,
        opener,
        replica: conf.replica(),
        port: None,
        queues: Queues::default(),
        pulled: false,
        calls: 0,
        packets: conf.counter("packets"),
    }))
}

/// Marks the header of an IP packet without a link-layer header; says whether it is one.
pub(crate) fn mark_ip(packet: &mut Packet) -> bool {
    let data = packet.data();
    let header_len = match data.first().map(|first| first >> 4) {
        Some(4) => Ipv4::new_quoted(data).ok().map(|ip| ip.header_len()),
        Some(6) => Ipv6::new_checked(data).ok().map(|_| ipv6::HEADER_LEN),
        _ => None,
    };
    let Some(header_len) = header_len else { return false };
    packet.set_network_headers(0, header_len);
    true
}

impl KernelTun {
    fn method(&self) -> Method {
        Method { opener: if self.tap { "tap" } else { "tun" }, promiscuous: false }
    }

    /// Gives the interface its addresses and what else was asked for.
    fn set_up(&self) -> Result<(), Error> {
        let Some(port) = &self.port else { return Ok(()) };
        let name = &port.name;
        let mac = self.ether.map_or(Ok(()), |ether| interface::set_mac(name, ether.0));
        let mtu = if self.mtu == DEFAULT_MTU { Ok(()) } else { interface::set_mtu(name, self.mtu) };
        let done = mac.and(mtu).and(interface::set_address(name, self.address.address, self.address.len));
        let done = done.and_then(|()| self.gateway.map_or(Ok(()), |g| interface::add_default_route(name, g)));
        done.map_err(Error::caused_by)
    }

    /// What the host sent.
    fn receive(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.calls += 1;
        self.packets.add(batch.len() as u64);
        let now_ns = cx.now_ns();
        batch.iter_mut().for_each(|packet| packet.set_timestamp_ns(now_ns));
        if self.tap {
            return batch.iter_mut().for_each(|packet| packet.set_mac_header(0));
        }
        batch.filter_map(|mut packet| {
            if mark_ip(&mut packet) {
                return Some(packet);
            }
            cx.divert(1, Reason::NotIp, packet);
            None
        });
    }

    /// Makes a packet what the interface carries.
    fn prepare(&self, packet: &mut Packet) -> Result<(), Reason> {
        let len = if self.tap {
            packet.len().checked_sub(ethernet::HEADER_LEN).ok_or(Reason::Short)?
        } else {
            let header = packet.network_header().filter(|h| h.len() >= ipv4::HEADER_LEN);
            if !matches!(header.map(|h| h[0] >> 4), Some(4 | 6)) {
                return Err(Reason::NoHeader);
            }
            // As far as that is, there are bytes.
            let _ = packet.pull(packet.network_offset().unwrap_or_default());
            packet.len()
        };
        if len > self.mtu as usize { Err(Reason::TooLong) } else { Ok(()) }
    }

    /// Gives packets to the host.
    fn send(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        batch.filter_map(|mut packet| match self.prepare(&mut packet) {
            Ok(()) => Some(packet),
            Err(reason) => {
                cx.drop(reason, packet);
                None
            }
        });
        if let Some(port) = self.port.as_ref().filter(|_| !batch.is_empty()) {
            port.transmit(self.replica.0, batch);
        }
        cx.count_drops(Reason::Refused, batch.len() as u64);
        batch.clear();
    }
}

impl Element for KernelTun {
    fn swap_key(&self) -> Option<String> {
        self.port.as_ref().map(|port| format!("receives from {}", port.name))
    }

    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.pulled = cx.pulls_from(0);
        let port = self.opener.open(self.method())?;
        self.queues.take(&port, self.replica);
        self.port = Some(port);
        if self.pulled {
            cx.wake();
        }
        // The graph that runs has the other half of an interface that was there before, and leaves it as it is.
        if self.queues.is_empty() { Ok(()) } else { self.set_up() }
    }

    fn retire(&mut self) {
        if let Some(port) = &self.port {
            self.queues.put_back(port);
        }
    }

    fn commit(&mut self, cx: &mut Cx<'_>) {
        // One that was made for this graph is set up already.
        if let Some(port) = self.port.as_ref().filter(|_| self.queues.is_empty()) {
            self.queues.take(port, self.replica);
            if let Err(e) = self.set_up() {
                log::error!("{}: {e}", cx.name());
            }
        }
    }

    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        match port {
            RECEIVED => self.receive(batch, cx),
            _ => self.send(batch, cx),
        }
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if !self.pulled {
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        cx.pull(0, BURST, &mut batch);
        let pulled = !batch.is_empty();
        self.send(&mut batch, cx);
        cx.return_batch(batch);
        match pulled {
            true => Run::Worked,
            false if cx.packets_upstream(0) => Run::Idle,
            false => Run::Sleep,
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "packets" => self.packets.get().to_string(),
            "selected_calls" => self.calls.to_string(),
            _ => self.port.as_ref().map_or(String::new(), |port| port.name.clone()),
        })
    }

    fn port_statistics(&self) -> Option<PortStatistics> {
        Some(self.port.as_ref()?.teller(Direction::Receive, self.replica))
    }

    fn receiver(&mut self) -> Option<&mut dyn Receiver> {
        Some(&mut self.queues)
    }
}

impl Drop for KernelTun {
    fn drop(&mut self) {
        if let Some(port) = &self.port {
            self.queues.put_back(port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn bad_configurations_are_named() {
        let error = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap().join("|");
        assert_eq!(error("10.9.0.1/24, 10.8.0.1"), "bad GATEWAY");
        assert_eq!(error("10.9.0.1/24, BURST 0"), "BURST must be >= 1");
        assert_eq!(error("10.9.0.1/24, MTU 19"), "MTU must be greater than 20");
        assert_eq!(error("10.9.0.1/24, HEADROOM 8193"), "HEADROOM too big");
        assert_eq!(error(""), "ADDR: required argument missing");
    }

    #[test]
    fn ip_packets_are_marked() {
        let mut six = [0; 40];
        six[0] = 0x60;
        for (bytes, marked) in
            [(&[0x45; 20][..], Some(20)), (&six, Some(40)), (&[0x45; 19], None), (&[0x15; 40], None)]
        {
            let mut p = packet(bytes);
            assert_eq!((mark_ip(&mut p), p.transport_offset()), (marked.is_some(), marked), "{bytes:?}");
        }
    }
}
