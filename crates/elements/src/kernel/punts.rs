//! The ways into the kernel's stack, kept open while a hot swap replaces the elements that use them.

use causeway_netio::punt::Punt;
use causeway_netio::{Result, Statistic, Statistics};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Key of the [`Punts`] among the values that outlive a hot swap.
pub const PUNTS: &str = "punts";

/// One way for each copy of the graph, by its number.
#[derive(Default)]
pub struct Punts(Mutex<HashMap<usize, Way>>);

struct Way {
    /// None while an element has it.
    punt: Option<Punt>,
    statistics: Arc<dyn Statistics>,
}

impl Way {
    fn open() -> Result<Way> {
        let punt = Punt::open()?;
        Ok(Way { statistics: punt.statistics(), punt: Some(punt) })
    }
}

impl Punts {
    /// Opens the ways of `copies` copies of the graph beforehand: for who may not do so later.
    ///
    /// # Errors
    /// As [`Punt::open`].
    pub fn prepare(copies: usize) -> Result<Punts> {
        let opened = (0..copies).map(|number| Ok((number, Way::open()?)));
        Ok(Punts(Mutex::new(opened.collect::<Result<_>>()?)))
    }

    /// Takes way `number`, opened now if it was not; none while somebody has it.
    pub(super) fn take(&self, number: usize) -> Result<Option<Punt>> {
        match self.ways().entry(number) {
            Entry::Occupied(mut way) => Ok(way.get_mut().punt.take()),
            Entry::Vacant(place) => Ok(place.insert(Way::open()?).punt.take()),
        }
    }

    /// Puts a way back.
    pub(super) fn put(&self, number: usize, punt: Punt) {
        if let Some(way) = self.ways().get_mut(&number) {
            way.punt = Some(punt);
        }
    }

    /// What way `number` counted, whoever has it.
    pub(super) fn statistics(&self, number: usize) -> Vec<Statistic> {
        let statistics = self.ways().get(&number).map(|way| way.statistics.clone());
        statistics.map_or(Vec::new(), |statistics| statistics.list())
    }

    #[expect(clippy::disallowed_methods, reason = "ways change hands when graphs do")]
    fn ways(&self) -> MutexGuard<'_, HashMap<usize, Way>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
