use super::*;
use causeway_fib::{Domain, Fib4Reader, Lookup, MISS, Rank24, Structure};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A table with room for so many routes, and a worker that stands still while so many changes are refused.
struct Narrow {
    table: Rank24,
    room: usize,
    refusals: Arc<AtomicU32>,
}

impl Lookup<u32> for Narrow {
    fn lookup(&self, address: u32) -> AdjacencyIndex {
        self.table.lookup(address)
    }

    fn bytes(&self) -> usize {
        self.table.bytes()
    }
}

impl Structure<u32> for Narrow {
    const NAME: &'static str = "narrow";
    const ADJACENCY_MAX: AdjacencyIndex = Rank24::ADJACENCY_MAX;

    fn empty() -> Result<Self, FibError> {
        Ok(Narrow { table: Rank24::empty()?, room: usize::MAX, refusals: Arc::default() })
    }

    fn update(&mut self, rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Result<(), FibError> {
        let count = |left: u32| left.checked_sub(1);
        match rib.len() {
            0 => self.table.update(rib, changed),
            len if len > self.room => Err(FibError::Full),
            _ if self.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok() => {
                Err(FibError::Busy)
            }
            _ => self.table.update(rib, changed),
        }
    }

    fn rebuild(&mut self, rib: &Rib<u32>) -> Result<(), FibError> {
        self.update(rib, &[Prefix::DEFAULT])
    }
}

impl Shared<u32> for Narrow {
    type Handle = <Rank24 as Shared<u32>>::Handle;

    fn in_domain(domain: &Domain) -> Result<Self, FibError> {
        Ok(Narrow { table: Rank24::in_domain(domain)?, ..Narrow::empty()? })
    }

    fn handle(&self) -> Self::Handle {
        self.table.handle()
    }
}

fn narrow(room: usize) -> (Routes<u32, Narrow>, Fib4Reader, Arc<AtomicU32>) {
    let structure = Narrow { room, ..Narrow::empty().unwrap() };
    let refusals = structure.refusals.clone();
    let routes = Routes::new(structure);
    let reader = routes.fib().reader();
    (routes, reader, refusals)
}

/// The `n`th of prefixes beside one another.
fn prefix(n: u32) -> Prefix<u32> {
    Prefix::truncated(n << 16, 16)
}

fn found(reader: &Fib4Reader, n: u32) -> AdjacencyIndex {
    reader.lookup(prefix(n).first())
}

#[test]
fn patience_ends() {
    let (mut patience, mut tries) = (Patience::new(None), 0);
    let mut busy = || -> Result<(), FibError> {
        tries += 1;
        Err(FibError::Busy)
    };
    assert_eq!(patience.until(&mut busy), Err(FibError::Busy));
    assert_eq!(patience.until(&mut busy), Err(FibError::Busy));
    assert_eq!(tries, WAITS + 2);
    let mut full = [Err(FibError::Full), Ok(())].into_iter();
    assert_eq!(
        Patience::new(None).until(|| full.next().unwrap()),
        Err(FibError::Full),
        "no waiting makes room"
    );
}

#[test]
fn a_worker_that_moves_on_is_waited_for() {
    let (mut routes, reader, refusals) = narrow(9);
    routes.change(vec![(prefix(1), Some(1))], &mut Patience::new(None), &mut || ()).unwrap();
    refusals.store(3, Ordering::Relaxed);
    let mut patience = Patience { waits: 3, readers: None };
    routes.change(vec![(prefix(1), Some(2)), (prefix(2), Some(3))], &mut patience, &mut || ()).unwrap();
    assert_eq!([found(&reader, 1), found(&reader, 2), patience.waits], [2, 3, 0]);
}

#[test]
fn a_worker_that_stands_still_leaves_all_to_the_kernel_until_a_change_after_it_moves() {
    let (mut routes, reader, refusals) = narrow(9);
    let first = (1..5).map(|n| (prefix(n), Some(n))).collect();
    routes.change(first, &mut Patience::new(None), &mut || ()).unwrap();
    refusals.store(u32::MAX, Ordering::Relaxed);
    for change in [(prefix(1), None), (prefix(2), Some(7)), (prefix(5), Some(5))] {
        assert_eq!(
            routes.change(vec![change], &mut Patience { waits: 2, readers: None }, &mut || ()),
            Err(FibError::Busy)
        );
        assert!(!routes.fit() && (1..6).all(|n| found(&reader, n) == MISS), "part of the routes");
    }
    refusals.store(0, Ordering::Relaxed);
    routes.change(vec![(prefix(3), Some(8))], &mut Patience { waits: 0, readers: None }, &mut || ()).unwrap();
    assert!(routes.fit());
    assert_eq!((0..6).map(|n| found(&reader, n)).collect::<Vec<_>>(), [MISS, MISS, 7, 8, 4, 5]);
}

#[test]
fn a_table_cut_to_pieces_is_built_anew() {
    let mut routes = Routes::new(Rank24::with_capacity(100).unwrap());
    let reader = routes.fib().reader();
    // Pieces of three leaves, a /19 each, until there is no room for another.
    let small: Vec<_> = (0..32).map(|n| (Prefix::truncated(n << 13 | 1 << 8, 24), Some(1))).collect();
    let every_second = small.iter().step_by(2).map(|&(prefix, _)| (prefix, None)).collect();
    // Room for a piece of 31 leaves, but not in one piece.
    let large: Vec<_> =
        (0..31).map(|n| (Prefix::truncated(99 << 13 | n << 8, 24), Some(1 + n % 2))).collect();
    // One by one, as into a table that is not empty.
    routes.change(vec![(prefix(0x8000), Some(3))], &mut Patience::new(None), &mut || ()).unwrap();
    for changes in [small.clone(), every_second, large.clone()] {
        routes.change(changes, &mut Patience::new(None), &mut || ()).unwrap();
    }
    let left = small.into_iter().skip(1).step_by(2).chain(large);
    assert!(left.into_iter().all(|(prefix, index)| Some(reader.lookup(prefix.first())) == index));
    assert_eq!(routes.fib().rib().len(), 1 + 16 + 31);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_table_holds_all_routes_or_none(
        room in 1..6_usize,
        steps in prop::collection::vec(
            (prop::collection::vec((0..8_u32, prop::option::of(1..9_u32)), 0..5), 0..6_u32),
            1..20,
        ),
    ) {
        let (mut routes, reader, refusals) = narrow(room);
        let mut all = BTreeMap::new();
        for (changes, stalls) in steps {
            refusals.store(stalls, Ordering::Relaxed);
            for &(n, index) in &changes {
                match index {
                    Some(index) => all.insert(n, index),
                    None => all.remove(&n),
                };
            }
            let changes = changes.into_iter().map(|(n, index)| (prefix(n), index)).collect();
            let done = routes.change(changes, &mut Patience { waits: 1, readers: None }, &mut || ());
            prop_assert_eq!(done.is_ok(), routes.fit());
            prop_assert!(done != Err(FibError::Full) || all.len() > room);
            prop_assert!(done.is_ok() || stalls > 0 || all.len() > room);
            for n in 0..8 {
                let expected = all.get(&n).copied().filter(|_| routes.fit()).unwrap_or(MISS);
                prop_assert_eq!(found(&reader, n), expected);
            }
        }
    }
}
