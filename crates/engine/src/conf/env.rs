//! What the elements of one router share while they are configured.

use crate::counters::Counters;
use crate::names::Names;
use crate::said::ElementWarning;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Whose defaults arguments have, where Click's are not what a router of our own should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Defaults {
    /// Ours.
    #[default]
    Causeway,
    /// Click's, for configurations written for it.
    Click,
}

/// What the configuration of an element depends on besides its text and the ports in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    pub names: Names,
    pub defaults: Defaults,
}

/// Values by name that outlive a hot swap, such as which devices are open.
pub type Persistent = Arc<Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>>;

/// What the elements of one router share while they are configured.
pub struct Env {
    /// Names of addresses (AddressInfo), by scope.
    pub names: Names,
    /// Scheduling weights by element name (ScheduleInfo), 1.0 = usual.
    pub weights: HashMap<String, f64>,
    /// Workers by element name or compound prefix (StaticThreadSched); `None` = quiescent.
    pub threads: Vec<(String, Option<usize>)>,
    /// Seed of the workers' random numbers.
    pub seed: u64,
    /// Names of all elements.
    pub elements: Vec<Arc<str>>,
    /// Their classes.
    pub classes: Vec<&'static str>,
    /// What is odd about configurations and does not make them fail.
    pub warnings: Vec<ElementWarning>,
    /// The router's counters.
    pub counters: Counters,
    /// Values that outlive a hot swap.
    pub persistent: Persistent,
    /// Copies of the graph, one a worker; 1 when it is not replicated.
    pub replicas: usize,
    /// Whose defaults arguments have.
    pub defaults: Defaults,
    shared: HashMap<String, Arc<dyn Any + Send + Sync>>,
}

impl Env {
    /// An environment without names whose counters are `counters`.
    pub fn new(counters: Counters) -> Self {
        Env {
            names: Names::default(),
            weights: HashMap::new(),
            threads: Vec::new(),
            seed: fastrand::u64(..),
            elements: Vec::new(),
            classes: Vec::new(),
            warnings: Vec::new(),
            counters,
            persistent: Persistent::default(),
            replicas: 1,
            defaults: Defaults::default(),
            shared: HashMap::new(),
        }
    }

    /// What elements are configured with, for those that are configured anew later.
    pub(crate) fn context(&self) -> Arc<Context> {
        Arc::new(Context { names: self.names.clone(), defaults: self.defaults })
    }

    /// The value called `key` that all elements of the router share, made by `make` for the first who asks.
    /// `None` if it was made with another type.
    pub fn shared<T: Any + Send + Sync>(&mut self, key: &str, make: impl FnOnce() -> T) -> Option<Arc<T>> {
        let entry = self.shared.entry(key.to_owned()).or_insert_with(|| Arc::new(make()));
        entry.clone().downcast().ok()
    }

    /// As [`Env::shared`], if somebody has made the value.
    pub fn shared_if_made<T: Any + Send + Sync>(&self, key: &str) -> Option<Arc<T>> {
        self.shared.get(key)?.clone().downcast().ok()
    }

    /// As [`Env::shared`], with the elements of the graphs before and after a hot swap as well.
    #[expect(clippy::disallowed_methods, reason = "taken when a graph is built")]
    pub fn persistent<T: Any + Send + Sync>(
        &mut self,
        key: &str,
        make: impl FnOnce() -> T,
    ) -> Option<Arc<T>> {
        let mut values = self.persistent.lock().unwrap_or_else(PoisonError::into_inner);
        values.entry(key.to_owned()).or_insert_with(|| Arc::new(make())).clone().downcast().ok()
    }
}
