//! Routing tables: candidates by prefix, and which of them the kernel takes.

use std::collections::BTreeMap;

use crate::model::Family;
use crate::prefix::Prefix;
use crate::reason::PuntReason;

/// A route to a prefix; whether it is used depends on the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub hop: u32,
    pub metric: u32,
    pub generation: u32,
    pub tos: u8,
    pub protocol: u8,
    pub kind: Kind,
}

/// What sort of candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// IPv6: joined with others of the same metric.
    Joining,
    /// For packets from some sources only; from which is not kept.
    SourceSpecific,
    /// Only the kernel knows which routes there are.
    Unclear,
}

impl Candidate {
    pub fn same_as(&self, other: &Candidate) -> bool {
        Candidate { generation: other.generation, ..*self } == *other
    }

    /// Whether the two compete for one place in the kernel's list.
    pub fn same_place(&self, other: &Candidate) -> bool {
        let place = |c: &Candidate| (c.tos, c.metric, matches!(c.kind, Kind::SourceSpecific));
        place(self) == place(other) && self.kind != Kind::Unclear && other.kind != Kind::Unclear
    }

    pub fn joins(&self) -> bool {
        self.kind == Kind::Joining
    }
}

/// One routing table.
#[derive(Debug)]
pub(super) struct Table {
    pub routes: BTreeMap<Prefix, Vec<Candidate>>,
    /// Prefixes by length, to look for covering ones only where there are some.
    lengths: [[u32; 129]; 2],
}

impl Default for Table {
    fn default() -> Self {
        Table { routes: BTreeMap::new(), lengths: [[0; 129]; 2] }
    }
}

impl Table {
    pub fn candidates(&self) -> usize {
        self.routes.values().map(Vec::len).sum()
    }

    /// The lengths of the prefixes that cover `prefix`, and their candidates, the longest first.
    pub fn covering(&self, prefix: Prefix) -> impl Iterator<Item = (u8, &[Candidate])> {
        let lengths = &self.lengths[prefix.family() as usize];
        (0..=prefix.len()).rev().filter(|&len| lengths[usize::from(len)] > 0).filter_map(move |len| {
            Some((len, self.routes.get(&Prefix::new(prefix.address(), len))?.as_slice()))
        })
    }

    pub fn list(&mut self, prefix: Prefix) -> &mut Vec<Candidate> {
        let lengths = &mut self.lengths[prefix.family() as usize];
        self.routes.entry(prefix).or_insert_with(|| {
            lengths[usize::from(prefix.len())] += 1;
            Vec::with_capacity(1)
        })
    }

    pub fn drop_if_empty(&mut self, prefix: Prefix) {
        if self.routes.get(&prefix).is_some_and(Vec::is_empty) {
            self.routes.remove(&prefix);
            self.lengths[prefix.family() as usize][usize::from(prefix.len())] -= 1;
        }
    }
}

/// Which candidate the kernel takes for every packet to the prefix, or why that cannot be said.
pub(super) fn best(family: Family, candidates: &[Candidate]) -> Result<u32, PuntReason> {
    if candidates.iter().any(|c| c.kind == Kind::Unclear) {
        return Err(PuntReason::Unclear);
    }
    if candidates.iter().any(|c| c.kind == Kind::SourceSpecific) {
        return Err(PuntReason::SourceSpecific);
    }
    if candidates.iter().any(|c| c.tos != 0) {
        return Err(PuntReason::TypeOfService);
    }
    // Of equal ones IPv4 takes the first; IPv6 judges by reachability and by the interface asked for.
    let Some(best) = candidates.iter().min_by_key(|c| c.metric) else { return Err(PuntReason::UnknownType) };
    let equals = candidates.iter().filter(|c| c.metric == best.metric).count();
    if family == Family::V6 && equals > 1 { Err(PuntReason::Ambiguous) } else { Ok(best.hop) }
}
