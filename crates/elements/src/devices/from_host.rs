//! FromHost.

use super::names;
use super::open_port::{Direction, OpenPort};
use super::queues::Queues;
use super::registry::{Method, PortOpener};
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_engine::value::{Ether, Prefix4, Value};
use causeway_engine::{PortStatistics, Scope};
use causeway_netio::interface;
use causeway_packet::Receiver;
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "FromHost",
    category: "devices",
    summary: "receives packets that the host's own stack sends to an interface made for it",
    ports: "0/1",
    processing: "h/h",
    phase: phase::SOURCE_DEVICE,
    doc: "Makes the interface DEVNAME and pushes what the host sends there: Ethernet frames with TYPE tap, the \
          default, or bare IP packets with TYPE tun. With DST the interface gets that address, so that the host \
          routes the prefix to it, and with GATEWAY also what it has no other route for. The interface goes with the \
          router. ToHost of the same name is the way back. In a router \
          that runs a copy of its graph on each of several workers, each copy has a queue of its own.",
    args: Own::ARGS,
    handlers: handlers!(
        Own::HANDLERS,
        &[
            reads("dev_name", "the interface's name"),
            reads("signal", "whether the queues that its packets go to have room"),
        ]
    ),
    example: "FromHost(host0, 10.9.0.1/24) -> Print(host) -> Discard;",
    see: &["ToHost", "FromDevice"],
    copies: Copies::AsMany(names::any_number),
    build,
    ..Spec::DEFAULT
};

/// The openers of what carries frames, and of what carries packets.
const TAP: &str = "tap";
const TUN: &str = "tun";

settings! {
    struct Own {
        devname: String = required("DEVNAME", "interface", "name of the interface to make");
        dst: Option<Prefix4> = optional("DST", "prefix", "IPv4 address and prefix length to give it"), or(None);
        gateway: Option<Ipv4Addr> = keyword("GATEWAY", "IP address", "of the network of DST: the host sends there what it has no other route for"), or(None);
        ether: Option<Ether> = keyword("ETHER", "Ethernet address", "of the interface; default what the kernel chooses"), or(None);
        kind: Kind = keyword("TYPE", "`tap` or `tun`", "frames or packets; default tap"), or(Kind(TAP));
        headroom: u32 = keyword("HEADROOM", "bytes", "accepted for compatibility"), or(0);
        mtu: Option<u32> = keyword("MTU", "bytes", "longest packet that the host sends there; default 1500"), or(None);
    }
    counts {
        count: Counter = reads("count", "packets received from the host").counts(Unit::Packets);
    }
}

struct FromHost {
    own: Own,
    opener: PortOpener,
    replica: (usize, usize),
    port: Option<Arc<OpenPort>>,
    queues: Queues,
}

impl FromHost {
    fn method(&self) -> Method {
        Method { opener: self.own.kind.0, promiscuous: false }
    }

    /// Gives the interface its addresses and what else was asked for.
    fn set_up(&self) -> Result<(), Error> {
        let (own, name) = (&self.own, &self.own.devname);
        let mac = own.ether.map_or(Ok(()), |ether| interface::set_mac(name, ether.0));
        let mtu = own.mtu.map_or(Ok(()), |mtu| interface::set_mtu(name, mtu));
        let address = own.dst.map_or(Ok(()), |p| interface::set_address(name, p.address, p.len));
        let done = mac.and(mtu).and(address);
        let done = done.and_then(|()| own.gateway.map_or(Ok(()), |g| interface::add_default_route(name, g)));
        done.map_err(Error::caused_by)
    }
}

/// What TYPE says: the opener of the port.
#[derive(Clone, Copy)]
pub(super) struct Kind(&'static str);

impl Value for Kind {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        match text.to_ascii_lowercase().as_str() {
            TAP | "ether" => Ok(Kind(TAP)),
            TUN | "ip" => Ok(Kind(TUN)),
            other => Err(Error::new(format!("'{other}' is not 'tap' or 'tun'"))),
        }
    }

    fn placeholder() -> Self {
        Kind(TAP)
    }
}

/// What TYPE says.
pub(super) fn method(conf: &mut Conf<'_>) -> Method {
    Method { opener: conf.keyword("TYPE", Kind(TAP)).0, promiscuous: false }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = Own::configure(conf);
    if own.gateway.is_some_and(|gateway| own.dst.is_some_and(|dst| !dst.contains(gateway))) {
        conf.error("bad GATEWAY");
    }
    if own.ether.is_some() && own.kind.0 == TUN {
        conf.error("ETHER: bare packets have no Ethernet addresses");
    }
    conf.finish()?;
    let opener = PortOpener::new(conf, &own.devname, "receives from")?;
    let replica = conf.replica();
    Ok(Box::new(FromHost { own, opener, replica, port: None, queues: Queues::default() }))
}

impl Element for FromHost {
    fn initialize(&mut self, _cx: &mut Cx<'_>) -> Result<(), Error> {
        let port = self.opener.open(self.method())?;
        self.queues.take(&port, self.replica);
        self.port = Some(port);
        // The graph that runs has the other half of an interface that was there before, and leaves it as it is.
        if self.queues.is_empty() { Ok(()) } else { self.set_up() }
    }

    fn retire(&mut self) {
        if let Some(port) = &self.port {
            self.queues.put_back(port);
        }
    }

    fn commit(&mut self, cx: &mut Cx<'_>) {
        if let Some(port) = &self.port {
            self.queues.take(port, self.replica);
        }
        if let Err(e) = self.set_up() {
            log::error!("{}: {e}", cx.name());
        }
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        self.own.count.add(batch.len() as u64);
        let bare = self.own.kind.0 == TUN;
        batch.iter_mut().for_each(|p| if bare { p.set_network_header(0) } else { p.set_mac_header(0) });
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.own)
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(if handler == "signal" { cx.room_downstream(0).to_string() } else { self.own.devname.clone() })
    }

    fn port_statistics(&self) -> Option<PortStatistics> {
        Some(self.port.as_ref()?.teller(Direction::Receive, self.replica))
    }

    fn swap_key(&self) -> Option<String> {
        Some(format!("receives from {}", self.own.devname))
    }

    fn receiver(&mut self) -> Option<&mut dyn Receiver> {
        Some(&mut self.queues)
    }
}

impl Drop for FromHost {
    fn drop(&mut self) {
        if let Some(port) = &self.port {
            self.queues.put_back(port);
        }
    }
}
