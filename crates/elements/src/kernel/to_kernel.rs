//! ToKernel.

use crate::devices::registry::{Device, Method, Opener};
use causeway_engine::spec::{drops, phase, reads, required};
use causeway_engine::{Conf, Counter, Cx, Element, Invalid, Spec};
use causeway_netio::{Counter as PortCounter, Tx};
use causeway_packet::Batch;
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "ToKernel",
    category: "kernel",
    summary: "hands packets to the kernel's stack as received on an interface",
    ports: "1/0",
    processing: "h/h",
    phase: phase::SINK_DEVICE,
    doc: "Packets, with their Ethernet headers as they came in, appear to the kernel as received on the interface \
          IF, which the graph receives from with FromDevice; they do not come back to the graph. The kernel \
          forwards them, answers with ICMP, or drops them, as if there were no router beside it. It needs an \
          interface whose driver has XDP. Each packet costs a system call: this is the way of the few packets that \
          the graph is not sure of.",
    args: &[required("IF", "interface", "where the packets came in")],
    handlers: &[
        reads("count", "packets handed over"),
        reads("drops", "packets that the kernel did not take"),
    ],
    drops: &[drops("refused", "the kernel did not take it: not enough memory, or no Ethernet frame")],
    example: "FromDevice(eth0, METHOD TRANSIT) -> ToKernel(eth0);",
    see: &["FromDevice", "KernelForward", "ToHost"],
    build,
    ..Spec::DEFAULT
};

const REFUSED: usize = 0;

struct ToKernel {
    opener: Opener,
    /// Which of the ways into the kernel: one for each copy of the graph.
    number: usize,
    name: String,
    device: Option<Arc<Device>>,
    tx: Option<Box<dyn Tx>>,
    count: Counter,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let name: String = conf.required("IF");
    conf.finish()?;
    let opener = Opener::new(conf, &name, "punts to the kernel as received on")?;
    let (number, count) = (conf.replica().0, conf.counter("count"));
    Ok(Box::new(ToKernel { opener, number, name, device: None, tx: None, count }))
}

impl Element for ToKernel {
    fn initialize(&mut self, _cx: &mut Cx<'_>) -> Result<(), String> {
        let device = self.opener.open(Method::AfXdp { promiscuous: false, generic: false })?;
        self.tx = device.take_punt(self.number)?;
        self.device = Some(device);
        Ok(())
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if let Some(tx) = &mut self.tx {
            self.count.add(tx.transmit(batch) as u64);
            tx.flush();
        }
        cx.count_drops(REFUSED, batch.len() as u64);
        batch.clear();
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(if handler == "count" { self.count.get() } else { cx.dropped() }.to_string())
    }

    fn port_counters(&self) -> Vec<PortCounter> {
        self.tx.iter().flat_map(|tx| tx.counters()).collect()
    }

    fn swap_key(&self) -> Option<String> {
        Some(format!("punts to the kernel as received on {}", self.name))
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<ToKernel>() {
            self.tx = old.tx.take().or(self.tx.take());
        }
    }
}

impl Drop for ToKernel {
    fn drop(&mut self) {
        if let (Some(device), Some(tx)) = (&self.device, self.tx.take()) {
            device.put_punt(self.number, tx);
        }
    }
}
