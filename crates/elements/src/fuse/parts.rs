//! What elements of a chain offer to the fused element in front of them, while they are configured.

use crate::ip::check_ip_header::Sources;
use crate::iproute::hops::View;
use causeway_engine::{Conf, Counter};
use causeway_fib::Lookup;
use std::any::Any;
use std::sync::{Mutex, PoisonError};

/// Looks up batches; what is called once a batch may be called through a table of functions.
pub(crate) trait BatchLookup: Send {
    /// As [`Lookup::lookup_batch`].
    fn lookup_batch(&self, addresses: &[u32], results: &mut [u32]);
    /// Another handle of the same table.
    fn another(&self) -> Box<dyn BatchLookup>;
}

impl<R: Lookup<u32> + Clone + Send + 'static> BatchLookup for R {
    fn lookup_batch(&self, addresses: &[u32], results: &mut [u32]) {
        Lookup::lookup_batch(self, addresses, results);
    }

    fn another(&self) -> Box<dyn BatchLookup> {
        Box::new(self.clone())
    }
}

/// A routing table.
pub(crate) struct LookupPart {
    pub reader: Box<dyn BatchLookup>,
    pub hops: View<u32>,
}

impl Clone for LookupPart {
    fn clone(&self) -> Self {
        LookupPart { reader: self.reader.another(), hops: self.hops.clone() }
    }
}

/// A header check.
#[derive(Clone)]
pub(crate) struct HeaderPart {
    pub checksum: bool,
    pub sources: Sources,
    /// The element's count of good packets.
    pub good: Counter,
}

fn key(element: &str, worker: usize) -> String {
    format!("part of {element} on worker {worker}")
}

/// Offers a part of the element that is being configured.
pub(crate) fn offer<T: Any + Send>(conf: &mut Conf<'_>, part: T) {
    let key = key(conf.name(), conf.worker());
    conf.env.shared(&key, || Mutex::new(part));
}

/// The part that `element` offered on the worker of the element that is being configured.
pub(crate) fn of<T: Any + Send + Clone>(conf: &mut Conf<'_>, element: &str) -> Option<T> {
    let key = key(element, conf.worker());
    let part = conf.env.shared_if_made::<Mutex<T>>(&key)?;
    let part = part.lock().unwrap_or_else(PoisonError::into_inner);
    Some(part.clone())
}
