//! Programs of graphs out of the way: somebody wants to see packets where they are seen, in the graph in user space.

use super::{Front, Place};
use causeway_bpf::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The programs of graphs, and whether they are to be in force.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By interface index, also of interfaces that are no ports yet.
    pub programs: BTreeMap<u32, Arc<Program>>,
    /// Interfaces whose frames have no room for luggage, likewise.
    pub bare: BTreeSet<u32>,
    /// How many want them out of the way.
    asides: usize,
}

impl Known {
    /// Whether the programs are out of the way.
    pub fn is_aside(&self) -> bool {
        self.asides > 0
    }

    /// The program that frames of an interface go through now.
    pub fn in_force(&self, ifindex: u32) -> Option<&Program> {
        let program = self.programs.get(&ifindex).filter(|_| !self.is_aside())?;
        Some(program)
    }
}

/// While one of these is there, frames in transit go through no program of a graph and are taken, whatever ports come and
/// go meanwhile and whichever programs they have ([`Front::set_graph`]). Packets at tcx come to no graph in user space either
/// way.
#[derive(Debug)]
pub struct Aside(Arc<Front>);

impl Front {
    /// Has the programs of all graphs stand aside. A frame that one has already may still go its way. `None` if there is no
    /// room for any.
    #[must_use]
    pub fn stand_aside(self: &Arc<Self>) -> Option<Aside> {
        let graphs = self.at_xdp.graphs.as_ref()?;
        let claims = self.claims();
        let mut known = graphs.known();
        known.asides += 1;
        if known.asides == 1 {
            let ports = claims.values().filter(|port| port.place == Place::Xdp);
            ports.for_each(|port| graphs.end(port.graph));
        }
        Some(Aside(self.clone()))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let Some(graphs) = &self.0.at_xdp.graphs else { return };
        let claims = self.0.claims();
        let mut known = graphs.known();
        known.asides -= 1;
        for (ifindex, port) in claims.iter().filter(|(_, port)| port.place == Place::Xdp) {
            if let Some(program) = known.in_force(*ifindex) {
                // It was there before. If the kernel refuses all the same, the graph goes on with the port's frames.
                let _ = graphs.put(port.graph, program);
            }
        }
    }
}
