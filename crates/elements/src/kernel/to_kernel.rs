//! ToKernel.

use super::punts::{PUNTS, Punts};
use crate::devices::open_port::OpenPort;
use crate::devices::registry::{Method, PortOpener};
use crate::token_bucket::TokenBucket;
use causeway_engine::PortStatistics;
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_netio::punt::Punt;
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "ToKernel",
    category: "kernel",
    summary: "hands packets to the kernel's stack as received on an interface",
    ports: "1-/0",
    processing: "h/h",
    phase: phase::SINK_DEVICE,
    doc: "Packets of input i, with their Ethernet headers as they came in, appear to the kernel as received on the \
          i-th interface, which the graph receives from with FromDevice; they do not come back to the graph. The kernel \
          forwards them, answers with ICMP, or drops them, as if there were no router beside it. The interfaces must \
          have a driver with XDP. Each packet costs a system call: this is the way of the few packets that the graph \
          is not sure of, and what comes faster than RATE is dropped, so that it cannot take the worker's time from \
          the others.",
    args: &[
        rest("IF", "interface", "where the packets came in, an interface for each input"),
        keyword("RATE", "packets a second", "at most; default 200000"),
    ],
    handlers: &[
        reads("count", "packets handed over").counts(Unit::Packets),
        reads("drops", "packets that were not: refused by the kernel, or too many").counts(Unit::Packets),
    ],
    drops: Reason::DOCS,
    example: "FromDevice(eth0, METHOD TRANSIT) -> ToKernel(eth0);",
    see: &["FromDevice", "KernelForward", "ToHost"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Refused = "refused", "the kernel did not take it: not enough memory, or no Ethernet frame";
        Policed = "policed", "more came than RATE allows";
    }
}

/// Packets a second that one worker hands over unless told otherwise, and how many of a second may come at once: one in
/// so many.
const RATE: u64 = 200_000;
const BURST_OF_S: u64 = 20;

struct ToKernel {
    openers: Vec<PortOpener>,
    /// Which of the ways into the kernel: one for each copy of the graph.
    number: usize,
    punts: Arc<Punts>,
    /// Kept open while frames are handed over for them.
    ports: Vec<Arc<OpenPort>>,
    punt: Option<Punt>,
    bucket: TokenBucket,
    count: Counter,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let rate: u64 = conf.keyword("RATE", RATE);
    let texts = conf.rest();
    let names: Vec<String> = texts.iter().filter_map(|text| conf.parse("IF", text)).collect();
    if names.len() != conf.n_inputs() {
        conf.error(format!("{} interfaces need {} inputs", names.len(), names.len()));
    }
    conf.finish()?;
    let opener = |name: &String| PortOpener::new(conf, name, "punts to the kernel as received on");
    let openers = names.iter().map(opener).collect::<Result<Vec<_>, _>>()?;
    let punts = conf.env.persistent(PUNTS, Punts::default).ok_or(Invalid)?;
    let depth = (rate / BURST_OF_S).max(1);
    let bucket = TokenBucket::new(rate, depth, depth);
    let (number, count) = (conf.replica().0, conf.counter("count"));
    Ok(Box::new(ToKernel { openers, number, punts, ports: Vec::new(), punt: None, bucket, count }))
}

impl ToKernel {
    /// Tells the way into the kernel where the frames of each input come in.
    fn set_origins(&self) -> Result<(), Error> {
        let Some(punt) = &self.punt else { return Ok(()) };
        let mut origins = self.ports.iter().enumerate();
        origins.try_for_each(|(i, port)| punt.set_origin(i, port.ifindex).map_err(Error::caused_by))
    }
}

impl Element for ToKernel {
    fn initialize(&mut self, _cx: &mut Cx<'_>) -> Result<(), Error> {
        for opener in &self.openers {
            let port = opener.open(Method::USUAL)?;
            if port.generic {
                return Err(Error::new(format!(
                    "{}: frames cannot be given back in generic XDP mode, which would take them again",
                    port.name
                )));
            }
            self.ports.push(port);
        }
        // None while the element of the running graph has it; a hot swap hands it over then.
        self.punt = self.punts.take(self.number).map_err(Error::caused_by)?;
        self.set_origins()
    }

    fn push(&mut self, input: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let tokens = self.bucket.tokens(cx.now_ns()).min(batch.len() as u64);
        cx.count_drops(Reason::Policed, batch.len() as u64 - tokens);
        self.bucket.take(tokens);
        let mut allowed = Batch::new();
        allowed.append_up_to(batch, tokens as usize);
        batch.clear();
        let taken = self.punt.as_mut().map_or(0, |punt| punt.transmit(input, &mut allowed)) as u64;
        self.count.add(taken);
        cx.count_drops(Reason::Refused, tokens - taken);
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(if handler == "count" { self.count.get() } else { cx.dropped() }.to_string())
    }

    fn port_statistics(&self) -> Option<PortStatistics> {
        let (punts, number) = (self.punts.clone(), self.number);
        Some(Box::new(move || punts.statistics(number)))
    }

    fn swap_key(&self) -> Option<String> {
        Some("punts to the kernel".to_owned())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<ToKernel>()
            && let Some(punt) = old.punt.take()
        {
            self.punt = Some(punt);
            if let Err(e) = self.set_origins() {
                log::error!("frames cannot be given back to the kernel: {e}");
            }
        }
    }
}

impl Drop for ToKernel {
    fn drop(&mut self) {
        if let Some(punt) = self.punt.take() {
            self.punts.put(self.number, punt);
        }
    }
}
