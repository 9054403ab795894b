//! Any changes, against plain rules.

use super::*;
use crate::lookup::MISS;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Indices to play with; changes name them by their place, so that they meet those in use.
const PLACES: usize = 8;

type Members<Index> = Vec<(Index, u32)>;

#[derive(Clone, Debug, PartialEq)]
enum Leads<Index> {
    To(u32),
    Among(Members<Index>),
}

#[derive(Clone, Debug)]
enum Change {
    Acquire(u32),
    Group(Members<usize>),
    Release(usize),
    /// Whether the kind has to stay.
    Set(usize, Leads<usize>, bool),
}

fn change() -> impl Strategy<Value = Change> {
    let members = prop::collection::vec((0..PLACES, 0_u32..4), 0..5);
    let leads = prop_oneof![(0_u32..6).prop_map(Leads::To), members.clone().prop_map(Leads::Among)];
    prop_oneof![
        4 => (0_u32..6).prop_map(Change::Acquire),
        2 => members.prop_map(Change::Group),
        4 => (0..PLACES).prop_map(Change::Release),
        3 => (0..PLACES, leads, any::<bool>()).prop_map(|(at, leads, keep)| Change::Set(at, leads, keep)),
    ]
}

struct Held {
    leads: Leads<AdjacencyIndex>,
    users: u32,
}

/// What every index in use leads to.
#[derive(Default)]
struct Naive(BTreeMap<AdjacencyIndex, Held>);

impl Naive {
    fn is_next_hop(&self, index: AdjacencyIndex) -> bool {
        self.0.get(&index).is_some_and(|held| matches!(held.leads, Leads::To(_)))
    }

    fn is_member(&self, index: AdjacencyIndex) -> bool {
        self.0.values().any(|held| match &held.leads {
            Leads::To(_) => false,
            Leads::Among(members) => members.iter().any(|member| member.0 == index),
        })
    }

    fn is_group(&self, members: &Members<AdjacencyIndex>) -> bool {
        members.iter().all(|member| self.is_next_hop(member.0)) && members.iter().any(|member| member.1 > 0)
    }

    /// Whether an index may lead to something else.
    fn may_lead(&self, index: AdjacencyIndex, leads: &Leads<AdjacencyIndex>, keep: bool) -> bool {
        let kind = std::mem::discriminant(leads);
        let fits = match leads {
            Leads::To(_) => true,
            Leads::Among(members) => {
                let is_own = members.iter().any(|member| member.0 == index);
                self.is_group(members) && !is_own && !self.is_member(index)
            }
        };
        let held = self.0.get(&index);
        fits && held.is_some_and(|held| !keep || std::mem::discriminant(&held.leads) == kind)
    }

    /// Forgets what nobody holds: groups first, then what only they held.
    fn sweep(&mut self) {
        for _ in 0..2 {
            let is_unheld = |index: &AdjacencyIndex| self.0[index].users == 0 && !self.is_member(*index);
            let unheld: Vec<_> = self.0.keys().copied().filter(is_unheld).collect();
            unheld.iter().for_each(|index| drop(self.0.remove(index)));
        }
    }

    /// Hash-threshold, from end to end.
    fn choose(&self, index: AdjacencyIndex, flow_hash: u32) -> Option<(AdjacencyIndex, u32)> {
        let members = match &self.0.get(&index)?.leads {
            Leads::To(next_hop) => return Some((index, *next_hop)),
            Leads::Among(members) => members,
        };
        let total: u64 = members.iter().map(|member| u64::from(member.1)).sum();
        let mut sum = 0;
        let chosen = members.iter().find(|member| {
            sum += u64::from(member.1);
            u64::from(flow_hash >> 1) < (sum * (1 << 31) + total / 2) / total
        });
        chosen.and_then(|member| self.choose(member.0, flow_hash))
    }
}

struct Both {
    table: Adjacencies<u32>,
    naive: Naive,
    places: [AdjacencyIndex; PLACES],
}

impl Both {
    fn named(&self, members: &Members<usize>) -> Members<AdjacencyIndex> {
        members.iter().map(|&(at, weight)| (self.places[at], weight)).collect()
    }

    fn set(&mut self, at: usize, leads: Leads<usize>, keep: bool) -> Result<(), TestCaseError> {
        let index = self.places[at];
        let leads = match leads {
            Leads::To(hop) => Leads::To(hop),
            Leads::Among(members) => Leads::Among(self.named(&members)),
        };
        let done = match (&leads, keep) {
            (Leads::To(hop), true) => self.table.set_next_hop(index, *hop),
            (Leads::To(hop), false) => self.table.replace(index, Target::NextHop(*hop)),
            (Leads::Among(members), true) => self.table.set_members(index, members),
            (Leads::Among(members), false) => self.table.replace(index, Target::Group(members)),
        };
        prop_assert_eq!(done.is_ok(), self.naive.may_lead(index, &leads, keep), "{:?}", done);
        if done.is_ok() {
            self.naive.0.get_mut(&index).into_iter().for_each(|held| held.leads = leads.clone());
        }
        Ok(())
    }

    fn apply(&mut self, change: Change, place: usize) -> Result<(), TestCaseError> {
        match change {
            Change::Acquire(hop) => {
                let index = self.table.acquire(hop)?;
                let held = self.naive.0.entry(index).or_insert(Held { leads: Leads::To(hop), users: 0 });
                prop_assert_eq!(&held.leads, &Leads::To(hop), "the index of something else");
                held.users += 1;
                self.places[place] = index;
            }
            Change::Group(members) => {
                let members = self.named(&members);
                let index = self.table.group(&members);
                prop_assert_eq!(index.is_ok(), self.naive.is_group(&members));
                if let Ok(index) = index {
                    let held = Held { leads: Leads::Among(members), users: 1 };
                    prop_assert!(self.naive.0.insert(index, held).is_none(), "an index in use");
                    self.places[place] = index;
                }
            }
            Change::Release(at) => {
                let held = self.naive.0.get_mut(&self.places[at]).filter(|held| held.users > 0);
                prop_assert_eq!(self.table.release(self.places[at]).is_ok(), held.is_some());
                held.into_iter().for_each(|held| held.users -= 1);
            }
            Change::Set(at, leads, keep) => self.set(at, leads, keep)?,
        }
        self.naive.sweep();
        Ok(())
    }

    fn check(&self, reader: &AdjacencyReader<u32>) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.table.len(), self.naive.0.len());
        let view = reader.pin();
        for index in self.places.into_iter().chain(self.naive.0.keys().copied()) {
            for flow_hash in (0..16).map(|n| n << 28).chain([u32::MAX]) {
                let found = view.choose_with(index, || flow_hash).map(|(index, &hop)| (index, hop));
                let expected = self.naive.choose(index, flow_hash);
                prop_assert_eq!(found, expected, "{} by {:#x}", index, flow_hash);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn changes_add_up_to_what_plain_rules_say(changes in prop::collection::vec(change(), 1..60)) {
        let (table, naive) = (Adjacencies::new(), Naive::default());
        let reader = table.reader();
        let mut both = Both { table, naive, places: [MISS; PLACES] };
        for (step, change) in changes.into_iter().enumerate() {
            both.apply(change, step % PLACES)?;
            both.check(&reader)?;
        }
    }
}
