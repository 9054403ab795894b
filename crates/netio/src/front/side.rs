//! The programs at one place.

use super::ATTACHED;
use super::Place;
use super::code::{Maps, code};
use super::gate::Gate;
use super::graphs::Graphs;
use crate::Result;
use causeway_bpf::Program;

/// The programs that all ports at one place share.
#[derive(Debug)]
pub(super) struct Side {
    pub gate: Gate,
    /// The program behind the gate, which its array does not keep alive for test runs.
    pub program: Program,
    /// Programs of graphs, if there may be any.
    pub graphs: Option<Graphs>,
}

impl Side {
    /// Loads them.
    pub fn load(maps: &Maps<'_>, place: Place, with_graphs: bool) -> Result<Side> {
        let graphs = if with_graphs { Some(Graphs::new(maps, place)?) } else { None };
        let maps = Maps { graphs: graphs.as_ref().map(Graphs::programs), ..*maps };
        let program = Program::load(place.kind(), "causeway_port", &code(&maps, place)?)?;
        let gate = Gate::new(place.kind(), ATTACHED, &program)?;
        Ok(Side { gate, program, graphs })
    }
}
