//! ToDevice.

use super::egress::WayOut;
use super::from_device;
use super::handled::{Role, Share, look_again};
use super::open_port::{Direction, OpenPort, PortControl};
use super::registry::{Method, PortOpener};
use causeway_engine::measure::Unit;
use causeway_engine::spec::{Copies, keyword, phase, reads, reads_writes, required};
use causeway_engine::{
    Conf, ControlSide, Counter, Cx, Defaults, Element, Error, Invalid, PortStatistics, Run, Spec,
};
use causeway_netio::Tx;
use causeway_packet::{BATCH, Batch};
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "ToDevice",
    category: "devices",
    summary: "sends packets to a network interface",
    ports: "1/0",
    processing: "a/a",
    phase: phase::SINK_DEVICE,
    doc: "Sends packets, which must have their Ethernet headers, to the interface DEVNAME. Behind a Queue it pulls, \
          at most BURST packets at a time, and leaves packets in the queue while the interface's ring is full. \
          Without a queue packets are pushed to it, and those that find the ring full are dropped. It shares the \
          interface with a FromDevice of the same name.",
    args: &[
        required("DEVNAME", "interface", "where to send"),
        keyword("BURST", "packets", "most packets pulled at a time, 1 to 256; default 256"),
        keyword(
            "METHOD",
            "word",
            "as for FromDevice; default: whatever that has, else AFXDP, or PACKET under the name click",
        ),
        keyword("NO_PAD", "boolean", "accepted for compatibility"),
        keyword("DEBUG", "boolean", "accepted for compatibility"),
    ],
    handlers: causeway_engine::handlers!(
        &[
            reads("count", "packets handed to the interface").counts(Unit::Packets),
            reads("drops", "packets dropped because the ring was full").counts(Unit::Packets),
            reads("q", "whether packets that were pulled wait for the ring"),
            reads("signal", "whether what it pulls from says that there are packets"),
            reads_writes("debug", "DEBUG"),
            reads("mode", "how the interface is sent to"),
            reads("counters", "all that the interface and its sockets counted, a line each"),
            from_device::CAPABILITIES,
            from_device::EVENTS,
        ],
        causeway_engine::handler::own::TASK,
    ),
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> Queue(200) -> ToDevice(eth1);",
    see: &["FromDevice", "ToHost", "ToDump"],
    copies: Copies::AsMany(super::names::queues),
    build,
    ..Spec::DEFAULT
};

causeway_engine::drop_reasons! {
    enum Reason for SPEC {
        RingFull = "ring-full", "pushed while the interface's ring was full";
    }
}

/// How long packets wait in a ring that the device does not empty before it is asked again.
const RETRY_NS: u64 = 50_000;
const RETRY: u32 = 0;
/// The timer for what was sent in the driver.
const HANDLED: u32 = 1;
/// The same while there is no device.
const GONE_RETRY_NS: u64 = 250_000_000;

struct ToDevice {
    opener: PortOpener,
    method: Method,
    replica: (usize, usize),
    burst: usize,
    pulled: bool,
    /// As it was written; nothing is told that the handlers do not.
    debug: bool,
    port: Option<Arc<OpenPort>>,
    tx: Option<(usize, Box<dyn Tx>)>,
    /// Pulled, and not yet taken by the ring.
    waiting: Box<Batch>,
    count: Counter,
    /// What is sent in the driver.
    share: Option<Share>,
    /// Who wants to know of what is sent here.
    way_out: Option<WayOut>,
}

/// How the interface is opened: as METHOD says, else as the graph receives from it.
pub(super) fn method_of(conf: &mut Conf<'_>, name: &str) -> Method {
    if let Some(method) = from_device::method(conf, false) {
        return method;
    }
    match conf.env.shared_if_made::<Method>(&from_device::method_key(name)) {
        Some(method) => *method,
        None => from_device::default_method(conf.env.defaults == Defaults::Click, false),
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let name: String = conf.required("DEVNAME");
    let burst = conf.keyword("BURST", BATCH as u32);
    conf.keyword("NO_PAD", false);
    let debug = conf.keyword("DEBUG", false);
    let method = method_of(conf, &name);
    conf.finish()?;
    let opener = PortOpener::new(conf, &name, "sends to")?;
    Ok(Box::new(ToDevice {
        opener,
        method,
        replica: conf.replica(),
        burst: (burst as usize).clamp(1, BATCH),
        pulled: false,
        debug,
        port: None,
        tx: None,
        waiting: Box::default(),
        count: conf.counter("count"),
        share: Share::find(conf, Role::Sends, &name),
        way_out: WayOut::find(conf, &name),
    }))
}

impl ToDevice {
    /// Gives `batch` to the ring; what does not fit stays.
    fn transmit(&mut self, batch: &mut Batch) {
        let Some((_, tx)) = &mut self.tx else { return };
        let mut offer = |batch: &mut Batch| {
            let mut sent = tx.offer(batch);
            if !batch.is_empty() {
                // The device may have finished with some frames since.
                tx.flush();
                sent += tx.offer(batch);
            }
            sent
        };
        let sent = match &self.way_out {
            Some(way_out) => way_out.sending(batch, offer),
            None => offer(batch),
        };
        self.count.add(sent as u64);
    }

    /// Tells how much waits to be sent, if anybody wants to know.
    fn tell_waiting(&mut self, cx: &Cx<'_>) {
        if let Some(way_out) = &mut self.way_out {
            way_out.tell(self.waiting.len(), cx);
        }
    }

    /// Counts what was sent in the driver since the last time.
    fn count_handled(&self) {
        if let Some(share) = &self.share {
            self.count.add(share.take());
        }
    }

    /// Flushes, and comes back later while packets are under way.
    fn flush(&mut self, cx: &mut Cx<'_>) {
        if let Some((_, tx)) = &mut self.tx {
            tx.flush();
            if tx.in_flight() > 0 || !self.waiting.is_empty() {
                // Packets that are under way to a device that is gone stay so.
                let gone = self.port.as_ref().is_some_and(|port| port.is_gone());
                let when = cx.now_ns() + if gone { GONE_RETRY_NS } else { RETRY_NS };
                cx.set_timer(RETRY, when);
            }
        }
    }

    fn pull_and_send(&mut self, cx: &mut Cx<'_>) -> Run {
        let mut batch = std::mem::take(&mut self.waiting);
        if batch.is_empty() {
            cx.pull(0, self.burst, &mut batch);
        }
        let had = batch.len();
        self.transmit(&mut batch);
        let moved = had > batch.len();
        self.waiting = batch;
        self.tell_waiting(cx);
        self.flush(cx);
        match moved {
            true => Run::Worked,
            // The ring is full: the retry timer wakes the task.
            false if !self.waiting.is_empty() => Run::Sleep,
            false if cx.packets_upstream(0) => Run::Idle,
            false => Run::Sleep,
        }
    }
}

impl Element for ToDevice {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.pulled = cx.pulls_from(0);
        if let Some(way_out) = &mut self.way_out {
            way_out.initialize(cx);
        }
        let port = self.opener.open(self.method)?;
        port.check_queues(self.replica)?;
        self.tx = port.take_tx(self.replica);
        self.port = Some(port);
        if self.pulled {
            cx.wake();
        }
        if self.share.is_some() {
            look_again(HANDLED, cx);
        }
        Ok(())
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.transmit(batch);
        cx.count_drops(Reason::RingFull, batch.len() as u64);
        batch.clear();
        // The flush comes once for all batches of this round.
        cx.wake();
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if self.pulled {
            return self.pull_and_send(cx);
        }
        self.flush(cx);
        Run::Sleep
    }

    fn timer(&mut self, key: u32, cx: &mut Cx<'_>) {
        if key == HANDLED {
            self.count_handled();
            return look_again(HANDLED, cx);
        }
        cx.wake();
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        self.count_handled();
        Ok(match handler {
            "count" => self.count.get().to_string(),
            "q" => (!self.waiting.is_empty()).to_string(),
            "signal" => (self.pulled && cx.packets_upstream(0)).to_string(),
            "debug" => self.debug.to_string(),
            _ => cx.dropped().to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.debug = cx.value(handler, value)?;
        Ok(())
    }

    fn control_side(&self, _cx: &mut Cx<'_>) -> Option<Box<dyn ControlSide>> {
        let port = self.port.clone()?;
        Some(Box::new(PortControl { port, direction: Direction::Transmit }))
    }

    fn port_statistics(&self) -> Option<PortStatistics> {
        Some(self.port.as_ref()?.teller(Direction::Transmit, self.replica))
    }

    fn swap_key(&self) -> Option<String> {
        self.port.as_ref().map(|port| format!("sends to {}", port.name))
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<ToDevice>() {
            if same(&self.port, &old.port) {
                self.tx = old.tx.take().or(self.tx.take());
            }
            self.waiting = std::mem::take(&mut old.waiting);
            // What was pushed in the old graph's last round waits in the ring for a flush.
            cx.wake();
        }
    }

    fn held(&self) -> usize {
        self.waiting.len()
    }
}

/// Whether it is the same port, and not one that was opened anew in its place.
fn same(a: &Option<Arc<OpenPort>>, b: &Option<Arc<OpenPort>>) -> bool {
    a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| Arc::ptr_eq(a, b))
}

impl Drop for ToDevice {
    fn drop(&mut self) {
        if let (Some(port), Some(half)) = (&self.port, self.tx.take()) {
            port.put_tx(half);
        }
    }
}
