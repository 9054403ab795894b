//! A port that is open: its halves, while no element has them, and what anybody may ask of it.

use super::registry::{Method, OpenPorts};
use causeway_engine::{ControlSide, Cx, Error, PortStatistics};
use causeway_netio::interface::Interface;
use causeway_netio::{Capabilities, Event, Events, Port, RX_DROP, Rx, Statistic, Statistics, Tx};
use causeway_packet::Batch;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How long the thread that follows a port's events may take to find that the port is closed.
const LOOK: Duration = Duration::from_secs(1);

/// Events of a port that are counted, in the order of their counts.
const EVENTS: [&str; 8] =
    ["link_up", "link_down", "mtu_changed", "gone", "back", "renamed", "way_up_restored", "way_up_gone"];

/// An open port.
pub(crate) struct OpenPort {
    pub name: String,
    pub mac: [u8; 6],
    /// Which mode it got, and why not a better one.
    pub mode: String,
    /// Interface index of the kernel.
    pub ifindex: u32,
    /// Whether it takes frames by a generic XDP program.
    pub generic: bool,
    pub method: Method,
    capabilities: Capabilities,
    rx: Mutex<Vec<Option<Box<dyn Rx>>>>,
    tx: Vec<Mutex<Option<Box<dyn Tx>>>>,
    received: Vec<Arc<dyn Statistics>>,
    transmitted: Vec<Arc<dyn Statistics>>,
    events: [AtomicU64; EVENTS.len()],
    gone: AtomicBool,
    /// Whether its link is up, as far as it was told.
    up: AtomicBool,
}

/// Queues of a port that replica `(number, of)` of the graph serves: every `of`-th one.
fn share(queues: usize, (number, of): (usize, usize)) -> impl Iterator<Item = usize> {
    (number..queues).step_by(of.max(1))
}

impl OpenPort {
    /// A port that was opened by `method`. A thread follows its events as long as it is open.
    pub fn new(port: Port, method: Method, ports: &Arc<OpenPorts>) -> Arc<OpenPort> {
        let Port { name, mac, mode, ifindex, generic, capabilities, events, queues, .. } = port;
        // Of one that nobody tells of it stays what it is.
        let up = events.is_none() || Interface::open(&name).is_ok_and(|interface| interface.up);
        let received = queues.iter().map(|q| q.rx.statistics()).collect();
        let transmitted = queues.iter().map(|q| q.tx.statistics()).collect();
        let (rx, tx) = queues.into_iter().map(|q| (Some(q.rx), Mutex::new(Some(q.tx)))).unzip();
        let open = Arc::new(OpenPort {
            name,
            mac,
            mode,
            ifindex,
            generic,
            method,
            capabilities,
            rx: Mutex::new(rx),
            tx,
            received,
            transmitted,
            events: Default::default(),
            gone: AtomicBool::new(false),
            up: AtomicBool::new(up),
        });
        if let Some(events) = events {
            let (port, ports) = (Arc::downgrade(&open), Arc::downgrade(ports));
            let thread = std::thread::Builder::new().name("port-events".to_owned());
            if let Err(e) = thread.spawn(move || follow(&port, &ports, events)) {
                log::warn!("{}: what happens to the device is not followed: {e}", open.name);
            }
        }
        open
    }

    /// Whether its device is gone, so that the port is of no use any more.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Whether its device can transmit.
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// Takes the receiving halves of a replica's queues. None come while an element of the running graph has them;
    /// a hot swap hands them over then.
    #[expect(
        clippy::disallowed_methods,
        reason = "queues change hands when graphs do; who shares one makes a system call anyway"
    )]
    pub fn take_rx(&self, replica: (usize, usize)) -> Vec<(usize, Box<dyn Rx>)> {
        let mut halves = self.rx.lock().unwrap_or_else(PoisonError::into_inner);
        share(halves.len(), replica).filter_map(|q| Some((q, halves[q].take()?))).collect()
    }

    /// Puts receiving halves back.
    #[expect(
        clippy::disallowed_methods,
        reason = "queues change hands when graphs do; who shares one makes a system call anyway"
    )]
    pub fn put_rx(&self, back: impl Iterator<Item = (usize, Box<dyn Rx>)>) {
        let mut halves = self.rx.lock().unwrap_or_else(PoisonError::into_inner);
        back.for_each(|(q, half)| halves[q] = Some(half));
    }

    /// Takes the transmitting half of a replica's first queue, as [`OpenPort::take_rx`].
    pub fn take_tx(&self, replica: (usize, usize)) -> Option<(usize, Box<dyn Tx>)> {
        let queue = share(self.tx.len(), replica).next()?;
        Some((queue, self.tx(queue)?.take()?))
    }

    /// Puts a transmitting half back.
    pub fn put_tx(&self, (queue, half): (usize, Box<dyn Tx>)) {
        if let Some(mut place) = self.tx(queue) {
            *place = Some(half);
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "queues change hands when graphs do; who shares one makes a system call anyway"
    )]
    fn tx(&self, queue: usize) -> Option<MutexGuard<'_, Option<Box<dyn Tx>>>> {
        Some(self.tx.get(queue)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Transmits by a queue that stays where it is: for elements that share it. Says how many packets left.
    pub fn transmit(&self, queue: usize, batch: &mut Batch) -> usize {
        let mut place = self.tx(queue % self.tx.len().max(1));
        place.as_mut().and_then(|tx| tx.as_mut()).map_or(0, |tx| {
            let sent = tx.offer(batch);
            tx.flush();
            sent
        })
    }

    /// An error if a replica would have no queue.
    pub fn check_queues(&self, (number, of): (usize, usize)) -> Result<(), Error> {
        let queues = self.tx.len();
        match number < queues {
            true => Ok(()),
            false => Err(Error::new(format!(
                "{0} has {queues} queue(s) for {of} workers; `ethtool -L {0} combined {of}`, or fewer --threads",
                self.name
            ))),
        }
    }

    /// Logs which mode it got, once.
    pub fn announce(&self, cx: &Cx<'_>) {
        if cx.worker() == 0 {
            log::info!("{}: {}", self.name, self.mode);
        }
    }

    /// What the queues of a replica counted in one direction.
    fn statistics(&self, direction: Direction, replica: (usize, usize)) -> Vec<Statistic> {
        let halves = match direction {
            Direction::Receive => &self.received,
            Direction::Transmit => &self.transmitted,
        };
        share(halves.len(), replica).flat_map(|q| halves[q].list()).collect()
    }

    /// What tells the statistics of a replica's queues.
    pub fn teller(self: &Arc<Self>, direction: Direction, replica: (usize, usize)) -> PortStatistics {
        let port = self.clone();
        Box::new(move || port.statistics(direction, replica))
    }

    fn happened(&self, event: Event) {
        let (which, text) = match event {
            Event::LinkUp => (0, "the link is up".to_owned()),
            Event::LinkDown => (1, "the link is down".to_owned()),
            Event::MtuChanged(mtu) => (2, format!("the MTU is {mtu} now")),
            Event::Gone => (3, "the device is gone".to_owned()),
            Event::Back => (4, "there is a device of that name again".to_owned()),
            Event::Renamed => (5, "the device is called otherwise now, and goes on".to_owned()),
            Event::WayUpRestored => {
                (6, "the interface that its packets come by was down, and is up again".to_owned())
            }
            Event::WayUpGone => (7, "the interface that its packets come by is gone".to_owned()),
        };
        self.events[which].fetch_add(1, Ordering::Relaxed);
        match event {
            Event::LinkUp => self.up.store(true, Ordering::Relaxed),
            Event::LinkDown | Event::Gone => self.up.store(false, Ordering::Relaxed),
            _ => {}
        }
        match event {
            Event::Gone => {
                self.gone.store(true, Ordering::Relaxed);
                log::warn!("{}: {text}", self.name);
            }
            Event::WayUpRestored | Event::WayUpGone => log::warn!("{}: {text}", self.name),
            _ => log::info!("{}: {text}", self.name),
        }
    }
}

/// Follows the events of a port until it is closed.
fn follow(port: &Weak<OpenPort>, ports: &Weak<OpenPorts>, mut events: Box<dyn Events>) {
    let mut there = true;
    while port.strong_count() > 0 {
        let Some(event) = events.next(LOOK) else { continue };
        let Some(open) = port.upgrade() else { return };
        open.happened(event);
        if !open.is_up()
            && let Some(ports) = ports.upgrade()
        {
            ports.down(open.ifindex);
        }
        there = match event {
            Event::Gone => false,
            Event::Back => true,
            _ => there,
        };
        // It may not be possible to open it at once: until then every change is a reason to try again.
        if open.is_gone() && there {
            let name = open.name.clone();
            drop(open);
            if let Some(ports) = ports.upgrade() {
                ports.back(&name);
            }
        }
    }
}

/// The way of packets through a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Receive,
    Transmit,
}

/// Answers what concerns a port as a whole, without a worker.
pub(crate) struct PortControl {
    pub port: Arc<OpenPort>,
    pub direction: Direction,
}

impl ControlSide for PortControl {
    fn read(&mut self, handler: &str, _arg: &str) -> Option<Result<String, Error>> {
        let all = || self.port.statistics(self.direction, (0, 1));
        Some(Ok(match handler {
            "mode" => self.port.mode.clone(),
            "counters" => lines(all()),
            "kernel_drops" => kernel_drops(&all()).to_string(),
            "capabilities" => capabilities(&self.port.capabilities),
            "events" => {
                let counts = self.port.events.iter().map(|n| n.load(Ordering::Relaxed));
                lines(EVENTS.into_iter().zip(counts))
            }
            _ => return None,
        }))
    }

    fn write(&mut self, _handler: &str, _value: &str) -> Option<Result<(), Error>> {
        None
    }
}

fn capabilities(c: &Capabilities) -> String {
    let clock = |clock: Option<causeway_netio::completion::Clock>| clock.map_or("none", |clock| clock.name());
    format!(
        "tx_timestamps {}\nrx_timestamps {}\nmax_frame {}\nheadroom {}\nqueues {}\nzero_copy {}\n",
        clock(c.tx_timestamps),
        clock(c.rx_timestamps),
        c.max_frame,
        c.headroom,
        c.queues,
        c.zero_copy
    )
}

/// Packets lost before the graph, each once. Drivers that count what their sockets lost as dropped by the device, as
/// that of veth does, are why those two are not added. At tcx the device has handed packets over before they are lost by another.
fn kernel_drops(statistics: &[Statistic]) -> u64 {
    let sum = |wanted: fn(&str) -> bool| -> u64 {
        statistics.iter().filter(|(name, _)| wanted(name)).map(|(_, n)| n).sum()
    };
    let sockets = sum(|name| name.starts_with(RX_DROP));
    let device = sum(|name| name == "device_rx_dropped");
    let at_tcx = statistics.iter().any(|(name, _)| name.starts_with("tcx_"));
    let dropped = if at_tcx { sockets + device } else { sockets.max(device) };
    dropped + sum(|name| matches!(name, "device_rx_error" | "device_rx_fifo" | "tcx_drop_no_room"))
}

/// A line each, `name value`; those of one name are added.
fn lines(statistics: impl IntoIterator<Item = Statistic>) -> String {
    let mut sums: Vec<Statistic> = Vec::new();
    for (name, value) in statistics {
        match sums.iter_mut().find(|(n, _)| *n == name) {
            Some((_, sum)) => *sum += value,
            None => sums.push((name, value)),
        }
    }
    sums.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_packet_is_counted_once() {
        let counters = [
            ("rx_packets", 100),
            ("rx_drop_ring_full", 3),
            ("rx_drop_no_frame", 4),
            ("rx_fill_ring_empty", 9),
            ("device_rx_dropped", 7),
            ("device_rx_fifo", 1),
            ("tx_drop_error", 50),
        ];
        assert_eq!(kernel_drops(&counters), 8);
        assert_eq!(kernel_drops(&counters[..4]), 7);
        assert_eq!(kernel_drops(&[("device_rx_dropped", 2)]), 2);
        let at_tcx = [("tcx_taken", 50), ("tcx_drop_half_done", 30), ("tcx_drop_no_room", 20)];
        assert_eq!(kernel_drops(&[&counters[..], &at_tcx].concat()), 7 + 7 + 1 + 20);
    }
}
