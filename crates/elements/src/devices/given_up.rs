//! Packets that a program in the driver has begun to handle and gave up: they enter the graph where the program left off.

use causeway_engine::Conf;
use causeway_packet::Packet;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Key of the [`GivenUp`] among the values that outlive a hot swap.
pub const GIVEN_UP: &str = "given up";

/// Where a packet enters the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// At the start: it is as it came.
    Start,
    /// By this output of the FromDevice, which no configuration has.
    At(usize),
    /// Nobody knows any more.
    Lost,
}

/// Knows what is to be known of the packets that the program at one interface gave up.
pub trait Luggage: Send + Sync {
    /// Makes of a received frame the packet that was given up, by what lies in front of it, and says where it goes on.
    fn unpack(&self, frame: &mut Packet) -> Entry;
}

/// What is known of packets that were given up, by interface. Whoever runs the programs keeps it.
#[derive(Default)]
pub struct GivenUp {
    slots: Mutex<BTreeMap<String, Arc<Slot>>>,
}

/// That of one interface.
#[derive(Default)]
struct Slot {
    /// How often it was set.
    version: AtomicU64,
    luggage: Mutex<Option<Arc<dyn Luggage>>>,
}

impl GivenUp {
    #[expect(clippy::disallowed_methods, reason = "when a graph is built, or a program is")]
    fn slot(&self, interface: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(interface.to_owned()).or_default().clone()
    }

    /// From now on this is known of an interface's packets; `None`: none bring anything along.
    #[expect(clippy::disallowed_methods, reason = "when a program is built")]
    pub fn set(&self, interface: &str, luggage: Option<Arc<dyn Luggage>>) {
        let slot = self.slot(interface);
        *slot.luggage.lock().unwrap_or_else(PoisonError::into_inner) = luggage;
        slot.version.fetch_add(1, Ordering::Release);
    }
}

/// One element's view of it.
pub(crate) struct Arrivals {
    slot: Arc<Slot>,
    version: u64,
    luggage: Option<Arc<dyn Luggage>>,
}

impl Arrivals {
    /// For the interface called `name`.
    pub fn find(conf: &mut Conf<'_>, name: &str) -> Option<Arrivals> {
        let given_up = conf.env.persistent(GIVEN_UP, GivenUp::default)?;
        Some(Arrivals { slot: given_up.slot(name), version: 0, luggage: None })
    }

    /// Who knows of the packets that have come by now.
    #[inline]
    pub fn luggage(&mut self) -> Option<&dyn Luggage> {
        let version = self.slot.version.load(Ordering::Acquire);
        if version != self.version {
            self.look(version);
        }
        self.luggage.as_deref()
    }

    #[cold]
    #[expect(clippy::disallowed_methods, reason = "once for each program")]
    fn look(&mut self, version: u64) {
        self.luggage = self.slot.luggage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.version = version;
    }
}
