//! The programs as readers of the table: an announcement stands for them.

use causeway_bpf::{GracePeriod, Result};
use causeway_fib::{Domain, Standing};
use std::sync::{Mutex, PoisonError};

/// Answers for the programs, which announce nothing themselves.
///
/// An announcement stands at all times, so that what is replaced in the table is not used again. Now and then a new one
/// takes its place: first it is made, then the programs that were running are waited for, then the old one goes. So every
/// program that runs began when one stood that still does.
pub struct Readers {
    domain: Domain,
    grace: GracePeriod,
    standing: Mutex<Standing>,
}

impl Readers {
    /// From now on programs may read tables of the domain.
    ///
    /// # Errors
    /// As [`GracePeriod::new`].
    pub fn new(domain: &Domain) -> Result<Readers> {
        let standing = Mutex::new(domain.stand());
        Ok(Readers { domain: domain.clone(), grace: GracePeriod::new()?, standing })
    }

    /// Waits for the programs that run. What was replaced before may be used again then.
    pub fn move_on(&self) {
        let next = self.domain.stand();
        match self.grace.wait() {
            Ok(()) => *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = next,
            // The old announcement goes on: there is less room for changes, and none is wrong.
            Err(error) => log::warn!("programs in the driver cannot be waited for: {error}"),
        }
    }
}
