//! FromHost.

use super::names;
use super::open_port::{Direction, OpenPort};
use super::queues::Queues;
use super::registry::{Method, PortOpener};
use causeway_engine::measure::Unit;
use causeway_engine::spec::{Copies, keyword, optional, phase, reads, required};
use causeway_engine::value::Prefix4;
use causeway_engine::{Conf, Counter, Cx, Element, Invalid, PortStatistics, Spec};
use causeway_netio::interface;
use causeway_packet::{Batch, Receiver};
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
          routes the prefix to it. The interface goes with the router. ToHost of the same name is the way back. In a router \
          that runs a copy of its graph on each of several workers, each copy has a queue of its own.",
    args: &[
        required("DEVNAME", "interface", "name of the interface to make"),
        optional("DST", "prefix", "IPv4 address and prefix length to give it"),
        keyword("TYPE", "`tap` or `tun`", "frames or packets; default tap"),
        keyword("HEADROOM", "bytes", "accepted for compatibility"),
    ],
    handlers: &[reads("count", "packets received from the host").counts(Unit::Packets)],
    example: "FromHost(host0, 10.9.0.1/24) -> Print(host) -> Discard;",
    see: &["ToHost", "FromDevice"],
    copies: Copies::AsMany(names::any_number),
    build,
    ..Spec::DEFAULT
};

/// The openers of what carries frames, and of what carries packets.
const TAP: &str = "tap";
const TUN: &str = "tun";

struct FromHost {
    opener: PortOpener,
    replica: (usize, usize),
    method: Method,
    address: Option<Prefix4>,
    name: String,
    port: Option<Arc<OpenPort>>,
    queues: Queues,
    count: Counter,
}

impl FromHost {
    fn set_address(&self) -> Result<(), String> {
        let Some(p) = self.address else { return Ok(()) };
        interface::set_address(&self.name, p.address, p.len).map_err(|e| e.to_string())
    }
}

/// What TYPE says.
pub(super) fn method(conf: &mut Conf<'_>) -> Method {
    let opener = match conf.keyword("TYPE", TAP.to_owned()).to_ascii_lowercase().as_str() {
        TAP | "ether" => TAP,
        TUN | "ip" => TUN,
        other => {
            conf.error(format!("TYPE: '{other}' is not 'tap' or 'tun'"));
            TAP
        }
    };
    Method { opener, promiscuous: false }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let name: String = conf.required("DEVNAME");
    let text: String = conf.optional("DST", String::new());
    let address = if text.is_empty() { None } else { conf.parse::<Prefix4>("DST", &text) };
    conf.keyword("HEADROOM", 0u32);
    let method = method(conf);
    conf.finish()?;
    let opener = PortOpener::new(conf, &name, "receives from")?;
    let count = conf.counter("count");
    let replica = conf.replica();
    let queues = Queues::default();
    Ok(Box::new(FromHost { opener, replica, method, address, name, port: None, queues, count }))
}

impl Element for FromHost {
    fn initialize(&mut self, _cx: &mut Cx<'_>) -> Result<(), String> {
        let port = self.opener.open(self.method)?;
        self.queues.take(&port, self.replica);
        self.port = Some(port);
        // The graph that runs has the other half of an interface that was there before, and keeps its address.
        if self.queues.is_empty() { Ok(()) } else { self.set_address() }
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
        if let Err(e) = self.set_address() {
            log::error!("{}: {e}", cx.name());
        }
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        let bare = self.method.opener == TUN;
        batch.iter_mut().for_each(|p| if bare { p.set_network_header(0) } else { p.set_mac_header(0) });
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.count.get().to_string())
    }

    fn port_statistics(&self) -> Option<PortStatistics> {
        Some(self.port.as_ref()?.teller(Direction::Receive, self.replica))
    }

    fn swap_key(&self) -> Option<String> {
        Some(format!("receives from {}", self.name))
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
