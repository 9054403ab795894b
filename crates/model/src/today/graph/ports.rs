//! The ports of a graph in the model: a backend of the live router's ports, over the rings of the modelled cards.

use super::desk::{Shared, of};
use super::frames::port_mac;
use causeway_netio::completion::Completion;
use causeway_netio::opener::{Opener, Request, register};
use causeway_netio::{Capabilities, Error, ErrorKind, Port, Queue, Result, Rx, Statistics, Tx};
use causeway_packet::{Batch, Receiver};
use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Once};

/// The word by which a graph asks for these ports.
pub const METHOD: &str = "modelled";
/// Bytes of a packet without its Ethernet header.
const MTU: u32 = 1_500;

/// What a graph that is being built finds its ports in.
#[derive(Clone)]
pub struct Bed {
    /// What its ports and its workers share.
    pub desk: Shared,
    /// The interfaces, in the order of ports.
    pub devices: Vec<String>,
    /// Queues of each.
    pub queues: usize,
}

thread_local! {
    /// The registry of backends is one for the process, and many routers are modelled at a time: a graph opens its ports on the
    /// thread that builds it.
    static BED: RefCell<Option<Bed>> = const { RefCell::new(None) };
}

/// Has `build` open its ports in `bed`.
pub fn opened_in<R>(bed: Bed, build: impl FnOnce() -> R) -> R {
    static REGISTERED: Once = Once::new();
    // Nobody else has that name.
    REGISTERED.call_once(|| drop(register(Modelled)));
    BED.set(Some(bed));
    let built = build();
    BED.set(None);
    built
}

struct Modelled;

impl Opener for Modelled {
    fn names(&self) -> &'static [&'static str] {
        &[METHOD]
    }

    fn needs(&self) -> &'static str {
        "causeway model"
    }

    fn queues(&self, _name: &str) -> usize {
        BED.with_borrow(|bed| bed.as_ref().map_or(1, |bed| bed.queues))
    }

    fn open(&self, request: &Request<'_>) -> Result<Port> {
        let bed = BED.with_borrow(Clone::clone);
        let found = bed.and_then(|bed| {
            let port = bed.devices.iter().position(|device| device == request.name)?;
            Some((bed, port))
        });
        let Some((bed, port)) = found else {
            let what = format!("{}: there are such ports in `causeway model` alone", request.name);
            return Err(Error::new(ErrorKind::Unsupported, what));
        };
        let half = |queue| Half { desk: bed.desk.clone(), port, queue };
        Ok(Port {
            name: request.name.to_owned(),
            mac: port_mac(port),
            mtu: MTU,
            ifindex: 0,
            mode: "a port of the model".to_owned(),
            generic: false,
            capabilities: Capabilities {
                queues: bed.queues as u32,
                zero_copy: true,
                ..Capabilities::default()
            },
            events: None,
            queues: (0..bed.queues).map(|n| Queue { rx: Box::new(half(n)), tx: Box::new(half(n)) }).collect(),
        })
    }
}

/// Either half of a queue.
struct Half {
    desk: Shared,
    port: usize,
    queue: usize,
}

/// What they count is counted by the model.
struct Nothing;

impl Statistics for Nothing {
    fn list(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

impl Receiver for Half {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        let mut desk = of(&self.desk);
        desk.places[self.port][self.queue].worker = Some(desk.worker);
        desk.take(self.port, self.queue, batch, budget)
    }

    fn waiting(&mut self) -> usize {
        let mut desk = of(&self.desk);
        let worker = desk.worker;
        let place = &mut desk.places[self.port][self.queue];
        place.worker = Some(worker);
        place.ready.len()
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

impl Rx for Half {
    fn statistics(&self) -> Arc<dyn Statistics> {
        Arc::new(Nothing)
    }
}

impl Tx for Half {
    fn offer(&mut self, batch: &mut Batch) -> usize {
        of(&self.desk).give(self.port, self.queue, batch)
    }

    fn flush(&mut self) {
        let mut desk = of(&self.desk);
        desk.clean(self.port, self.queue);
        desk.places[self.port][self.queue].flushed = true;
    }

    fn completions(&mut self, _sink: &mut dyn FnMut(Completion)) {}

    fn statistics(&self) -> Arc<dyn Statistics> {
        Arc::new(Nothing)
    }
}
