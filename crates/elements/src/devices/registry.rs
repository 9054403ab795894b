//! The ports that are open, shared by the elements that receive and those that transmit, and kept open while a hot
//! swap replaces these.
//!
//! A port opens when the first element asks for it and closes when the last one that uses it is gone. Each half of
//! each queue belongs to one element at a time; an element that goes puts its halves back.

use causeway_engine::{Conf, Cx, Invalid, Persistent};
use causeway_netio::front::{Front, Take};
use causeway_netio::opener::{self, Request};
use causeway_netio::{Counter as PortCounter, Error, ErrorKind, Port, Rx, Tx};
use causeway_packet::Batch;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Key of the [`Front`] of all AF_XDP ports among the values that outlive a hot swap. Whoever keeps its lease and its
/// rules puts it there; else the first port does, and the lease has no end.
pub const FRONT: &str = "front";

/// How a port is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Method {
    /// First name of the opener.
    pub opener: &'static str,
    /// Whether frames to other addresses are received too.
    pub promiscuous: bool,
}

impl Method {
    /// The opener that most interfaces are opened with.
    pub const USUAL: Method = Method { opener: "afxdp", promiscuous: false };
}

/// The ports that are open, by name.
#[derive(Default)]
pub struct OpenPorts(Mutex<HashMap<String, Weak<Device>>>);

/// An open port.
pub(crate) struct Device {
    pub name: String,
    pub mac: [u8; 6],
    /// Which mode it got, and why not a better one.
    pub mode: String,
    /// Interface index of the kernel.
    pub ifindex: u32,
    /// Whether it takes frames by a generic XDP program.
    pub generic: bool,
    method: Method,
    rx: Mutex<Vec<Option<Box<dyn Rx>>>>,
    tx: Mutex<Vec<Option<Box<dyn Tx>>>>,
}

/// What an element needs to open its port.
#[derive(Clone)]
pub(crate) struct Opener {
    ports: Arc<OpenPorts>,
    values: Persistent,
    name: String,
}

impl Opener {
    /// For the port called `name`. In one graph only one element may receive from it, and only one transmit.
    pub fn new(conf: &mut Conf<'_>, name: &str, direction: &str) -> Result<Opener, Invalid> {
        let key = format!("{direction} {name} on worker {}", conf.worker());
        let mine = conf.name().clone();
        let owner = conf.env.shared(&key, || mine.clone()).ok_or(Invalid)?;
        if *owner != mine {
            conf.error(format!("'{owner}' {direction} {name} already; use one element and a Tee or a Queue"));
            return Err(Invalid);
        }
        let ports = conf.env.persistent("open ports", OpenPorts::default).ok_or(Invalid)?;
        let values = conf.env.persistent.clone();
        Ok(Opener { ports, values, name: name.to_owned() })
    }

    /// As [`Opener::new`], for an element that shares the port with others of its kind. Says whether it is the first.
    pub fn shared(conf: &mut Conf<'_>, name: &str, direction: &str) -> Result<(Opener, bool), Invalid> {
        let mine = conf.name().clone();
        let owner =
            conf.env.shared(&format!("{direction} {name}, shared"), || mine.clone()).ok_or(Invalid)?;
        let ports = conf.env.persistent("open ports", OpenPorts::default).ok_or(Invalid)?;
        let values = conf.env.persistent.clone();
        Ok((Opener { ports, values, name: name.to_owned() }, *owner == mine))
    }

    /// The port, opened now if it is not open.
    pub fn open(&self, method: Method) -> Result<Arc<Device>, String> {
        let mut ports = self.ports.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = ports.get(&self.name).and_then(Weak::upgrade) {
            let compatible = device.method == method || method == Method::USUAL;
            return match compatible {
                true => Ok(device),
                false => Err(format!(
                    "{} is open in another way already; write the same METHOD everywhere",
                    self.name
                )),
            };
        }
        let port = self.open_port(method).map_err(|e| e.to_string())?;
        let Port { name, mac, mode, ifindex, generic, queues, .. } = port;
        let (rx, tx) = queues.into_iter().map(|q| (Some(q.rx), Some(q.tx))).unzip();
        let (rx, tx) = (Mutex::new(rx), Mutex::new(tx));
        let device = Arc::new(Device { name, mac, mode, ifindex, generic, method, rx, tx });
        ports.retain(|_, d| d.strong_count() > 0);
        ports.insert(self.name.clone(), Arc::downgrade(&device));
        Ok(device)
    }

    fn open_port(&self, method: Method) -> causeway_netio::Result<Port> {
        let Some(opener) = opener::find(method.opener) else {
            let what = format!("{}: nobody opens ports of the kind '{}'", self.name, method.opener);
            return Err(Error::new(ErrorKind::Unsupported, what));
        };
        let front = || self.front();
        opener.open(&Request { name: &self.name, promiscuous: method.promiscuous, front: &front })
    }

    fn front(&self) -> causeway_netio::Result<Arc<Front>> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(front) = values.get(FRONT).and_then(|v| v.clone().downcast().ok()) {
            return Ok(front);
        }
        let front = Arc::new(Front::new(Take::TRANSIT)?);
        front.lease().renew(u64::MAX);
        values.insert(FRONT.to_owned(), front.clone());
        Ok(front)
    }
}

/// Queues of a port that replica `(number, of)` of the graph serves: every `of`-th one.
fn share(queues: usize, (number, of): (usize, usize)) -> impl Iterator<Item = usize> {
    (number..queues).step_by(of.max(1))
}

impl Device {
    /// Takes the receiving halves of a replica's queues. None come while an element of the running graph has them;
    /// a hot swap hands them over then.
    pub fn take_rx(&self, replica: (usize, usize)) -> Vec<(usize, Box<dyn Rx>)> {
        let mut halves = self.rx.lock().unwrap_or_else(PoisonError::into_inner);
        share(halves.len(), replica).filter_map(|q| Some((q, halves[q].take()?))).collect()
    }

    /// Puts receiving halves back.
    pub fn put_rx(&self, back: impl Iterator<Item = (usize, Box<dyn Rx>)>) {
        let mut halves = self.rx.lock().unwrap_or_else(PoisonError::into_inner);
        back.for_each(|(q, half)| halves[q] = Some(half));
    }

    /// Takes the transmitting half of a replica's first queue, as [`Device::take_rx`].
    pub fn take_tx(&self, replica: (usize, usize)) -> Option<(usize, Box<dyn Tx>)> {
        let mut halves = self.tx.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = share(halves.len(), replica).next()?;
        Some((queue, halves[queue].take()?))
    }

    /// Transmits by the first queue, which stays where it is: for elements that share it. Says how many packets left.
    pub fn transmit(&self, batch: &mut Batch) -> usize {
        let mut halves = self.tx.lock().unwrap_or_else(PoisonError::into_inner);
        halves.first_mut().and_then(Option::as_mut).map_or(0, |tx| {
            let sent = tx.transmit(batch);
            tx.flush();
            sent
        })
    }

    /// What the first queue counted, while no element has it.
    pub fn tx_counters(&self) -> Vec<PortCounter> {
        let halves = self.tx.lock().unwrap_or_else(PoisonError::into_inner);
        halves.first().and_then(Option::as_ref).map_or(Vec::new(), |tx| tx.counters())
    }

    /// Puts a transmitting half back.
    pub fn put_tx(&self, (queue, half): (usize, Box<dyn Tx>)) {
        let mut halves = self.tx.lock().unwrap_or_else(PoisonError::into_inner);
        halves[queue] = Some(half);
    }

    /// An error if a replica would have no queue.
    pub fn check_queues(&self, (number, of): (usize, usize)) -> Result<(), String> {
        let queues = self.rx.lock().unwrap_or_else(PoisonError::into_inner).len();
        match number < queues {
            true => Ok(()),
            false => Err(format!(
                "{0} has {queues} queue(s) for {of} workers; `ethtool -L {0} combined {of}`, or fewer --threads",
                self.name
            )),
        }
    }
}

/// A line of counters: `name value`.
pub(crate) fn lines(counters: impl IntoIterator<Item = (&'static str, u64)>) -> String {
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for (name, value) in counters {
        match sums.iter_mut().find(|(n, _)| *n == name) {
            Some((_, sum)) => *sum += value,
            None => sums.push((name, value)),
        }
    }
    sums.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}

/// Logs which mode a port got, once.
pub(crate) fn announce(device: &Device, cx: &Cx<'_>) {
    if cx.worker() == 0 {
        log::info!("{}: {}", device.name, device.mode);
    }
}
