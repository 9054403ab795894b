//! What workers, ports and cards leave for each other between two pieces of work.
//!
//! While a worker works, its ports take frames that a card has reported, and leave those that are to be sent; what its elements
//! do is charged, and what of it waits for memory is left for who has that. All of it is one value, which the ports and the
//! cost hook share with the simulation.

use super::costs::Costs;
use super::frames::{CHECKSUM, Maker, Reply, answer};
use causeway_engine::simulation::{Visit, Work};
use causeway_packet::{Batch, Packet};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Picoseconds in a second.
const SECOND_PS: u128 = 1_000_000_000_000;
/// What ends and begins an edge between workers.
const CROSSINGS: [&str; 4] = ["ToWorker", "ToWorkers", "FromWorker", "PullToWorker"];
/// What takes packets out of such an edge.
const FROM_RING: &str = "FromWorker";
/// The class that hands packets to a ring: how many it took of those that it pulled is not said to the cost hook.
const SENDER: &str = "ToDevice";

/// A frame that a card has reported.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Its number inside.
    pub inside: u32,
    pub bytes: u32,
    pub flow: u64,
    pub reply: Option<Reply>,
}

/// A frame that a worker has taken: from now on its packet carries a tag.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub port: usize,
    pub queue: usize,
    pub inside: u32,
    pub tag: u64,
}

/// A packet on a ring for transmission.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// `None`: the graph made it.
    pub tag: Option<u64>,
    pub bytes: u32,
    /// What comes back for it from the wire.
    pub answer: Option<Reply>,
}

/// A core's queue of a port.
#[derive(Debug, Default)]
pub struct Place {
    pub ready: VecDeque<Ready>,
    /// Descriptors that are free for transmission, and those that the card has reported since.
    pub room: usize,
    pub cleanable: usize,
    pub offered: Vec<Offered>,
    /// Whether the card is to be told of them.
    pub flushed: bool,
    /// The worker that takes from it, once that is known.
    pub worker: Option<usize>,
}

/// What an element has done.
#[derive(Clone, Debug)]
pub struct Account {
    pub name: String,
    pub class: &'static str,
    pub busy_ps: u64,
    pub packets: u64,
    pub visits: u64,
    packet: u64,
    visit: u64,
    /// Lines of a table that a packet reads.
    lines: u64,
}

impl Account {
    /// Its time, its packets and its visits.
    pub fn sums(&self) -> [u64; 3] {
        [self.busy_ps, self.packets, self.visits]
    }
}

/// All of that.
pub struct Desk {
    maker: Maker,
    costs: Costs,
    clock_hz: u64,
    /// By port and queue.
    pub places: Vec<Vec<Place>>,
    /// Who works.
    pub worker: usize,
    /// Less than a nanosecond that a worker's clock has not been charged yet.
    rest_ps: Vec<u64>,
    pub taken: Vec<Taken>,
    tags: u64,
    /// Packets given to a ring that have not been charged.
    given: usize,
    /// Lines of tables that an element read in this piece of work.
    pub lookups: Vec<(usize, u64)>,
    /// The elements that received and sent last.
    pub receiver: usize,
    pub sender: usize,
    /// Whether another worker may have got something to do.
    pub crossed: bool,
    /// Whether a worker's last task was that of the end of an edge, and whether a task has pulled something.
    from_ring: Vec<bool>,
    pulled: bool,
    pub accounts: Vec<Account>,
    /// Both ends of an edge between workers have the same name.
    by_name: HashMap<String, Vec<usize>>,
    /// Why it cannot go on.
    pub failed: Option<String>,
}

/// As its users have it.
pub type Shared = Arc<Mutex<Desk>>;

/// The desk, for a moment.
pub fn of(desk: &Shared) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// For so many ports, each with a queue for each of so many workers and with so much room for transmission.
    pub fn new(maker: Maker, costs: Costs, clock_hz: u64, ports: usize, workers: usize, room: usize) -> Desk {
        let places = || (0..workers).map(|_| Place { room, ..Place::default() }).collect();
        Desk {
            maker,
            costs,
            clock_hz,
            places: (0..ports).map(|_| places()).collect(),
            worker: 0,
            rest_ps: vec![0; workers],
            taken: Vec::new(),
            tags: 0,
            given: 0,
            lookups: Vec::new(),
            receiver: 0,
            sender: 0,
            crossed: false,
            from_ring: vec![false; workers],
            pulled: false,
            accounts: Vec::new(),
            by_name: HashMap::new(),
            failed: None,
        }
    }

    /// Moves frames of a queue into `batch`, as packets. Says whether more wait.
    pub fn take(&mut self, port: usize, queue: usize, batch: &mut Batch, budget: usize) -> bool {
        let n = self.places[port][queue].ready.len().min(budget).min(batch.room());
        for _ in 0..n {
            let place = &mut self.places[port][queue];
            let Some(ready) = place.ready.pop_front() else { break };
            let packet = match ready.reply {
                Some(reply) => self.maker.reply(reply),
                None => self.maker.packet(port, ready.flow, ready.bytes),
            };
            let Some(mut packet) = packet else {
                self.places[port][queue].ready.push_front(ready);
                self.failed =
                    Some("the graph holds more packets than there are frames in the pool".to_owned());
                return false;
            };
            self.tags += 1;
            packet.set_transmit_tag(self.tags);
            self.taken.push(Taken { port, queue, inside: ready.inside, tag: self.tags });
            // There is room for as many.
            let _ = batch.push(packet);
        }
        !self.places[port][queue].ready.is_empty()
    }

    /// Moves packets of `batch` to a ring as far as there is room; says how many.
    pub fn give(&mut self, port: usize, queue: usize, batch: &mut Batch) -> usize {
        self.clean(port, queue);
        let place = &mut self.places[port][queue];
        let mut taken = Batch::new();
        let n = taken.append_up_to(batch, place.room);
        place.room -= n;
        let offered = |packet: &Packet| Offered {
            tag: packet.transmit_tag(),
            bytes: (packet.len() + CHECKSUM).max(64) as u32,
            answer: answer(packet.data()),
        };
        place.offered.extend(taken.iter().map(offered));
        self.given += n;
        n
    }

    /// Takes back the descriptors of what has been sent.
    pub fn clean(&mut self, port: usize, queue: usize) {
        let place = &mut self.places[port][queue];
        place.room += std::mem::take(&mut place.cleanable);
    }

    /// Says how many nanoseconds a piece of work takes, without what it waits for.
    pub fn charge(&mut self, worker: usize, visit: &Visit<'_>) -> u64 {
        let Some(n) = self.account_of(visit) else { return 0 };
        let mut packets = visit.packets as u64;
        let account = &mut self.accounts[n];
        if account.class == SENDER {
            let given = std::mem::take(&mut self.given) as u64;
            packets = if visit.work == Work::Push { packets } else { given };
            self.sender = n;
        }
        if matches!(visit.work, Work::Receive | Work::Enqueue) {
            self.receiver = n;
        }
        if account.lines > 0 && packets > 0 {
            self.lookups.push((n, account.lines * packets));
        }
        account.packets += packets;
        account.visits += 1;
        let (class, cycles) = (account.class, account.visit + account.packet * packets);
        self.crossed |= self.crosses(worker, class, visit.work, packets);
        let took_ps = (u128::from(cycles) * SECOND_PS / u128::from(self.clock_hz)) as u64;
        self.whole_ns(worker, n, took_ps)
    }

    /// Whether another worker may have got something to do by this: packets, or room for some. What is done in vain is nothing to
    /// wake anybody for.
    fn crosses(&mut self, worker: usize, class: &str, work: Work, packets: u64) -> bool {
        let from_ring = &mut self.from_ring[worker];
        match work {
            Work::Push | Work::Pull if packets > 0 => {
                self.pulled |= work == Work::Pull;
                // The first that is pushed behind a ring's end came out of it.
                std::mem::take(from_ring) || CROSSINGS.contains(&class)
            }
            Work::Task => {
                *from_ring = class == FROM_RING;
                std::mem::take(&mut self.pulled) && CROSSINGS.contains(&class)
            }
            _ => false,
        }
    }

    /// Adds to an element's time; says how many nanoseconds its worker's clock goes on.
    pub fn whole_ns(&mut self, worker: usize, element: usize, took_ps: u64) -> u64 {
        if let Some(account) = self.accounts.get_mut(element) {
            account.busy_ps += took_ps;
        }
        let all_ps = self.rest_ps[worker] + took_ps;
        self.rest_ps[worker] = all_ps % 1_000;
        all_ps / 1_000
    }

    fn account_of(&mut self, visit: &Visit<'_>) -> Option<usize> {
        let named = self.by_name.get(visit.element).into_iter().flatten();
        if let Some(n) = named.copied().find(|n| self.accounts[*n].class == visit.class) {
            return Some(n);
        }
        let Some(cost) = self.costs.get(visit.class) else {
            let Visit { element, class, .. } = visit;
            let what = format!("nobody says what {element} :: {class} costs: it does something after all");
            self.failed.get_or_insert(what);
            return None;
        };
        self.accounts.push(Account {
            name: visit.element.to_owned(),
            class: visit.class,
            busy_ps: 0,
            packets: 0,
            visits: 0,
            packet: cost.packet.value,
            visit: cost.visit.value,
            lines: cost.table.as_ref().map_or(0, |lines| lines.value),
        });
        let n = self.accounts.len() - 1;
        self.by_name.entry(visit.element.to_owned()).or_default().push(n);
        Some(n)
    }
}
