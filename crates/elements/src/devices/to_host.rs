//! ToHost.

use super::registry::{Device, Method, Opener};
use causeway_engine::measure::Unit;
use causeway_engine::spec::{Copies, drops, keyword, optional, phase, reads};
use causeway_engine::{Conf, Counter, Cx, Element, Invalid, Spec};
use causeway_netio::{Counter as PortCounter, Tx, tap};
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
          as configurations for Click's kernel driver have it, the interface is called `causeway`.",
    args: &[
        optional("DEVNAME", "interface", "name of the interface; default `causeway`"),
        keyword("TYPE", "`tap` or `tun`", "frames or packets; default tap"),
    ],
    handlers: &[
        reads("count", "packets handed over").counts(Unit::Packets),
        reads("drops", "packets the host did not take").counts(Unit::Packets),
    ],
    drops: &[drops(
        "refused",
        "the host did not take it: not enough memory, or not an Ethernet frame or IP packet",
    )],
    example: "FromDevice(eth0) -> c :: Classifier(12/0800, -); c[0] -> Discard; c[1] -> ToHost(host0);",
    see: &["FromHost", "ToDevice"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

struct ToHost {
    opener: Opener,
    kind: tap::Kind,
    name: String,
    device: Option<Arc<Device>>,
    tx: Option<(usize, Box<dyn Tx>)>,
    count: Counter,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let name: String = conf.optional("DEVNAME", "causeway".to_owned());
    let kind = match conf.keyword("TYPE", "tap".to_owned()).to_ascii_lowercase().as_str() {
        "tap" | "ether" => tap::Kind::Tap,
        "tun" | "ip" => tap::Kind::Tun,
        other => {
            conf.error(format!("TYPE: '{other}' is not 'tap' or 'tun'"));
            tap::Kind::Tap
        }
    };
    conf.finish()?;
    let opener = Opener::new(conf, &name, "sends to")?;
    let count = conf.counter("count");
    Ok(Box::new(ToHost { opener, kind, name, device: None, tx: None, count }))
}

impl Element for ToHost {
    fn initialize(&mut self, _cx: &mut Cx<'_>) -> Result<(), String> {
        let device = self.opener.open(Method::Tap(self.kind))?;
        self.tx = device.take_tx((0, 1));
        self.device = Some(device);
        Ok(())
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if let Some((_, tx)) = &mut self.tx {
            let sent = tx.transmit(batch);
            tx.flush();
            self.count.add(sent as u64);
        }
        cx.count_drops(0, batch.len() as u64);
        batch.clear();
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(if handler == "count" { self.count.get() } else { cx.dropped() }.to_string())
    }

    fn port_counters(&self) -> Vec<PortCounter> {
        self.tx.iter().flat_map(|(_, tx)| tx.counters()).collect()
    }

    fn swap_key(&self) -> Option<String> {
        Some(format!("sends to {}", self.name))
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<ToHost>() {
            self.tx = old.tx.take().or(self.tx.take());
        }
    }
}

impl Drop for ToHost {
    fn drop(&mut self) {
        if let (Some(device), Some(half)) = (&self.device, self.tx.take()) {
            device.put_tx(half);
        }
    }
}
