//! ToHost.

use super::from_host;
use super::names;
use super::open_port::{Direction, OpenPort};
use super::registry::{Method, PortOpener};
use causeway_engine::measure::Unit;
use causeway_engine::spec::{Copies, keyword, optional, phase, reads};
use causeway_engine::{Conf, Counter, Cx, Element, Error, Invalid, PortStatistics, Spec};
use causeway_packet::Batch;
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "ToHost",
    category: "devices",
    summary: "hands packets to the host's own stack",
    ports: "1/0",
    processing: "h/h",
    phase: phase::SINK_DEVICE,
    doc: "Packets appear to the host as received on the interface DEVNAME, which this element or a FromHost of the \
          same name makes: Ethernet frames with TYPE tap, the default, or IP packets with TYPE tun. Without DEVNAME, \
          as configurations for Click's kernel driver have it, the interface is called `causeway`. Several ToHosts may \
          share an interface. In a router that runs a copy of its graph on each of several workers, each copy has a \
          queue of its own, as far as the interface has so many.",
    args: &[
        optional("DEVNAME", "interface", "name of the interface; default `causeway`"),
        keyword("TYPE", "`tap` or `tun`", "frames or packets; default tap"),
    ],
    handlers: &[
        reads("count", "packets handed over").counts(Unit::Packets),
        reads("drops", "packets the host did not take").counts(Unit::Packets),
        reads("dev_name", "name of the interface"),
    ],
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> c :: Classifier(12/0800, -); c[0] -> Discard; c[1] -> ToHost(host0);",
    see: &["FromHost", "ToDevice"],
    copies: Copies::AsMany(names::any_number),
    build,
    ..Spec::DEFAULT
};

causeway_engine::drop_reasons! {
    enum Reason for SPEC {
        Refused = "refused", "the host did not take it: not enough memory, or not an Ethernet frame or IP packet";
    }
}

struct ToHost {
    name: String,
    opener: PortOpener,
    /// Each copy has a queue of its own, as far as there are so many.
    replica: (usize, usize),
    /// Whether it speaks for all that share the interface.
    first: bool,
    method: Method,
    port: Option<Arc<OpenPort>>,
    count: Counter,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let name: String = conf.optional("DEVNAME", "causeway".to_owned());
    let method = from_host::method(conf);
    conf.finish()?;
    let (opener, first) = PortOpener::shared(conf, &name, "sends to")?;
    let count = conf.counter("count");
    let replica = conf.replica();
    Ok(Box::new(ToHost { name, opener, replica, first, method, port: None, count }))
}

impl Element for ToHost {
    fn initialize(&mut self, _cx: &mut Cx<'_>) -> Result<(), Error> {
        self.port = Some(self.opener.open(self.method)?);
        Ok(())
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if let Some(port) = &self.port {
            self.count.add(port.transmit(self.replica.0, batch) as u64);
        }
        cx.count_drops(Reason::Refused, batch.len() as u64);
        batch.clear();
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "count" => self.count.get().to_string(),
            "dev_name" => self.name.clone(),
            _ => cx.dropped().to_string(),
        })
    }

    fn port_statistics(&self) -> Option<PortStatistics> {
        let port = self.port.as_ref().filter(|_| self.first)?;
        Some(port.teller(Direction::Transmit, self.replica))
    }
}
