//! The ways into the kernel's stack, kept open while a hot swap replaces the elements that use them.

use causeway_netio::Result;
use causeway_netio::punt::Punt;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Key of the [`Punts`] among the values that outlive a hot swap.
pub const PUNTS: &str = "punts";

/// One way for each copy of the graph, by its number. None while an element has it.
#[derive(Default)]
pub struct Punts(Mutex<HashMap<usize, Option<Punt>>>);

impl Punts {
    /// Opens the ways of `copies` copies of the graph beforehand: for who may not do so later.
    ///
    /// # Errors
    /// As [`Punt::open`].
    pub fn prepare(copies: usize) -> Result<Punts> {
        let opened = (0..copies).map(|number| Ok((number, Some(Punt::open()?))));
        Ok(Punts(Mutex::new(opened.collect::<Result<_>>()?)))
    }

    /// Takes way `number`, opened now if it was not; none while somebody has it.
    pub(super) fn take(&self, number: usize) -> Result<Option<Punt>> {
        let mut punts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match punts.get_mut(&number) {
            Some(place) => Ok(place.take()),
            None => {
                let punt = Punt::open()?;
                punts.insert(number, None);
                Ok(Some(punt))
            }
        }
    }

    /// Puts a way back.
    pub(super) fn put(&self, number: usize, punt: Punt) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number, Some(punt));
    }
}
