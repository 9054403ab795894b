//! Which element takes the state of which one of the graph before, and which workers a swap makes wait for each other.

use crate::core::Core;
use crate::node::Place;
use std::collections::{BTreeSet, HashMap};

/// What a hot swap knows the elements of a graph by.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// By worker and node.
    keys: Vec<Vec<String>>,
    /// Those of elements that packets come to from outside.
    receive: BTreeSet<String>,
}

impl Keys {
    /// Those of a graph that has been initialised.
    pub fn of(cores: &mut [Core]) -> Keys {
        let mut keys = Keys::default();
        for core in cores {
            let of_worker: Vec<String> = (0..core.nodes.len()).map(|node| core.swap_key(node)).collect();
            for (node, key) in core.nodes.iter_mut().zip(&of_worker) {
                if node.element.as_mut().is_some_and(|element| element.receiver().is_some()) {
                    keys.receive.insert(key.clone());
                }
            }
            keys.keys.push(of_worker);
        }
        keys
    }

    fn places(&self) -> HashMap<&str, Vec<Place>> {
        let mut places: HashMap<&str, Vec<Place>> = HashMap::new();
        for (worker, of_worker) in self.keys.iter().enumerate() {
            for (node, key) in of_worker.iter().enumerate() {
                places.entry(key).or_default().push(Place { worker, node });
            }
        }
        places
    }

    /// For each worker the nodes that have a predecessor in `old`, and where that is: an element with the same key on the
    /// same worker, else on any.
    pub fn heirs(&self, old: &Keys) -> Vec<Vec<(usize, Place)>> {
        let places = old.places();
        let heirs = |(worker, keys): (usize, &Vec<String>)| {
            let predecessor = |(node, key): (usize, &String)| {
                let places = places.get(key.as_str())?;
                let place = places.iter().find(|place| place.worker == worker).or(places.first())?;
                Some((node, *place))
            };
            keys.iter().enumerate().filter_map(predecessor).collect()
        };
        self.keys.iter().enumerate().map(heirs).collect()
    }

    /// The workers that have to stop together: those between which state moves, because elements are on others than before,
    /// and those of which one may get the device that another had, by an element of another name.
    pub fn together(&self, old: &Keys) -> BTreeSet<usize> {
        let (places, before) = (self.places(), old.places());
        let workers = |of: Option<&Vec<Place>>| -> BTreeSet<usize> {
            of.into_iter().flatten().map(|place| place.worker).collect()
        };
        let (mut together, mut came, mut went) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let keys: BTreeSet<&str> = places.keys().chain(before.keys()).copied().collect();
        for key in keys {
            let (now, then) = (workers(places.get(key)), workers(before.get(key)));
            match (then.is_empty(), now.is_empty()) {
                (false, false) if now != then => together.extend(now.union(&then)),
                (true, _) if self.receive.contains(key) => came.extend(now),
                (_, true) if old.receive.contains(key) => went.extend(then),
                _ => {}
            }
        }
        if !came.is_empty() && !went.is_empty() {
            together.extend(came.union(&went));
        }
        if together.len() > 1 { together } else { BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys by worker; those that begin with a star are of elements that receive.
    fn keys(workers: &[&[&str]]) -> Keys {
        let all = workers.iter().copied().flatten();
        let receive = all.filter(|key| key.starts_with('*')).map(|key| (*key).to_owned()).collect();
        let of_worker = |keys: &&[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        Keys { keys: workers.iter().map(of_worker).collect(), receive }
    }

    #[test]
    fn an_heir_takes_from_its_own_worker_if_it_can() {
        let old = keys(&[&["a", "b"], &["b", "c"], &["d"]]);
        let new = keys(&[&["c", "b"], &["x", "b"], &[]]);
        let place = |worker, node| Place { worker, node };
        assert_eq!(
            new.heirs(&old),
            [vec![(0, place(1, 1)), (1, place(0, 1))], vec![(1, place(1, 0))], vec![]]
        );
    }

    #[test]
    fn only_workers_wait_for_each_other_between_which_something_moves() {
        let old = keys(&[&["*p", "a"], &["*p", "b"], &["c"], &["*q"]]);
        for (new, expected) in [
            (keys(&[&["*p", "a"], &["*p", "b"], &["c"], &["*q"]]), &[][..]),
            // What comes and goes moves nothing.
            (keys(&[&["*p", "x"], &["*p"], &["y"], &["*q", "z"]]), &[]),
            (keys(&[&["*p", "a"], &["*p"], &["b", "c"], &["*q"]]), &[1, 2]),
            // One copy less: what it had is another one's now.
            (keys(&[&["*p", "a"], &["b"], &["c"], &["*q"]]), &[0, 1]),
            // A device may have got another name on another worker; on the same one nobody else is concerned.
            (keys(&[&["*p", "a"], &["*p", "b"], &["*r"], &[]]), &[2, 3]),
            (keys(&[&["*p", "a"], &["*p", "b"], &["c"], &["*r"]]), &[]),
            (keys(&[&["*p", "a"], &["*p", "b"], &["*r"], &["*q"]]), &[]),
        ] {
            assert_eq!(new.together(&old), expected.iter().copied().collect(), "{new:?}");
        }
    }
}
