//! What the programs read and the control side writes.

use causeway_bpf::Result;
use causeway_elements::kernel::{InDriver, PORTS_MAX, Paths, PortPolicy};
use causeway_fastpath::SharedRegion;
use causeway_fib::{ADJACENCIES_MAX, AdjacencyIndex, Domain, FibError, MISS, Rank24, Rank24Layout, Region};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Room for two million routes of today's Internet.
pub const LAYOUT: Rank24Layout = Rank24Layout::new(23);

/// Memory of the routes, of what they are as ways back, and of the ports' policies. The first is the workers' as well.
pub struct Memory {
    pub routes: Arc<SharedRegion>,
    pub paths: SharedRegion,
    pub policies: SharedRegion,
}

impl Memory {
    /// Ports that there is room for.
    pub const POLICIES: u32 = (PORTS_MAX as u32).next_power_of_two();

    /// Without routes; nothing may be forwarded on any port yet.
    ///
    /// # Errors
    /// As [`SharedRegion::new`].
    pub fn new() -> Result<Memory> {
        let memory = Memory {
            routes: Arc::new(SharedRegion::new(LAYOUT.bytes())?),
            paths: SharedRegion::new(8 * ADJACENCIES_MAX as usize)?,
            policies: SharedRegion::new(8 * Self::POLICIES as usize)?,
        };
        memory.set_paths(MISS, Paths::nowhere());
        Ok(memory)
    }

    /// An empty table of routes in this memory, which must have none yet.
    ///
    /// # Errors
    /// As [`Rank24::in_region`].
    pub fn table(&self, domain: &Domain) -> std::result::Result<Rank24, FibError> {
        Rank24::in_region(LAYOUT, self.routes.clone(), domain)
    }
}

impl InDriver for Memory {
    fn set_paths(&self, index: AdjacencyIndex, paths: Paths) {
        if let Some(word) = self.paths.words().get(index as usize) {
            word.store(paths.to_bits(), Ordering::Relaxed);
        }
    }

    fn set_policy(&self, port: usize, policy: PortPolicy) {
        if let Some(word) = self.policies.words().get(port) {
            word.store(policy.to_bits().into(), Ordering::Release);
        }
    }
}
