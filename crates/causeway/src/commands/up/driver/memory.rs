//! What the programs read and the control side writes.

use causeway_bpf::Result;
use causeway_elements::kernel::{InDriver, PORTS_MAX, Paths, PortPolicy};
use causeway_fastpath::SharedRegion;
use causeway_fib::{
    ADJACENCIES_MAX, AdjacencyIndex, Domain, FibError, Lines6, Lines6Layout, MISS, Rank24, Rank24Layout,
    Region,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Room for two million IPv4 routes of today's Internet.
pub const LAYOUT: Rank24Layout = Rank24Layout::new(23);
/// Room for half a million IPv6 routes, and for what changes replace.
pub const LAYOUT6: Lines6Layout = Lines6Layout::new(18);

/// Memory of the routes, of what they are as ways back, and of the ports' policies. The routes are the workers' as well.
pub struct Memory {
    pub routes: Arc<SharedRegion>,
    pub routes6: Arc<SharedRegion>,
    pub paths: SharedRegion,
    pub policies: SharedRegion,
    /// How flows of IPv4 and of IPv6 are spread over the paths of a route.
    pub spread: SharedRegion,
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
            routes6: Arc::new(SharedRegion::new(LAYOUT6.bytes())?),
            paths: SharedRegion::new(8 * ADJACENCIES_MAX as usize)?,
            policies: SharedRegion::new(8 * Self::POLICIES as usize)?,
            spread: SharedRegion::new(16)?,
        };
        memory.set_paths(MISS, Paths::nowhere());
        Ok(memory)
    }

    /// Empty tables of routes in this memory, which must have none yet.
    ///
    /// # Errors
    /// As [`Rank24::in_region`] and [`Lines6::in_region`].
    pub fn tables(&self, domain: &Domain) -> std::result::Result<(Rank24, Lines6), FibError> {
        let v4 = Rank24::in_region(LAYOUT, self.routes.clone(), domain)?;
        Ok((v4, Lines6::in_region(LAYOUT6, self.routes6.clone(), domain)?))
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

    fn set_flow_hashes(&self, bits: [u64; 2]) {
        self.spread.words().iter().zip(bits).for_each(|(word, bits)| word.store(bits, Ordering::Release));
    }
}
