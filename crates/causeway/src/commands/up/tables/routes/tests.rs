use super::*;
use causeway_fib::{Domain, Fib4Reader, Lookup, MISS, Rank24, Structure};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The index that leaves packets to the kernel.
const KERNEL: AdjacencyIndex = 99;

/// A table with room for so many routes, and a worker that stands still while so many changes are refused.
struct Narrow {
    table: Rank24,
    room: usize,
    refusals: Arc<AtomicU32>,
    /// How often all routes were put in at once.
    rebuilds: Arc<AtomicU32>,
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
        Ok(Narrow {
            table: Rank24::empty()?,
            room: usize::MAX,
            refusals: Arc::default(),
            rebuilds: Arc::default(),
        })
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
        self.rebuilds.fetch_add(1, Ordering::Relaxed);
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
    let routes = Routes::new(structure, KERNEL);
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
    let mut routes = Routes::new(Rank24::with_capacity(100).unwrap(), KERNEL);
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

/// The `m`th /24 of the `n`th block.
fn inner(n: u32, m: u32) -> Prefix<u32> {
    Prefix::truncated(n << 16 | m << 8, 24)
}

#[test]
fn what_finds_no_room_is_the_kernels_and_costs_nothing() {
    let structure = Narrow { room: 14, ..Narrow::empty().unwrap() };
    let rebuilds = structure.rebuilds.clone();
    let mut routes = Routes::new(structure, KERNEL);
    let reader = routes.fib().reader();
    let found = |n, m| reader.lookup(inner(n, m).first());
    let mut change =
        |changes| routes.change(changes, &mut Patience::new(None), &mut || ()).map(|()| routes.outside());
    let first = (0..24).map(|n| (inner(1 + n / 8, n % 8), Some(1 + n))).collect();
    assert_eq!(change(first), Err(FibError::Full));
    assert_eq!([found(1, 0), found(1, 7), found(2, 0), found(3, 7)], [1, 8, KERNEL, KERNEL]);
    let built = rebuilds.load(Ordering::Relaxed);
    // In a block that is closed, in one that is open, and until that one has no room.
    assert_eq!(change(vec![(inner(2, 0), Some(7))]), Err(FibError::Full));
    assert_eq!(change(vec![(inner(1, 0), Some(9)), (inner(1, 8), Some(5))]), Err(FibError::Full));
    assert_eq!([found(1, 0), found(1, 8), found(2, 0)], [9, 5, KERNEL]);
    assert_eq!(change((9..14).map(|m| (inner(1, m), Some(5))).collect()), Err(FibError::Full));
    assert_eq!(
        [found(1, 0), found(1, 13), found(2, 0), found(2, 1), found(3, 7)],
        [KERNEL, KERNEL, 7, 10, KERNEL]
    );
    assert_eq!(rebuilds.load(Ordering::Relaxed), built, "all routes were put in again");
    // A shorter route takes no packets of theirs.
    assert_eq!(change(vec![(Prefix::DEFAULT, Some(3))]), Err(FibError::Full));
    assert_eq!([found(1, 0), found(2, 1), found(3, 0), found(4, 0)], [KERNEL, 10, KERNEL, 3]);
    // There is room for one more block, and for all.
    assert_eq!(change((0..7).map(|m| (inner(2, m), None)).collect()), Err(FibError::Full));
    assert_eq!([found(1, 0), found(2, 7), found(3, 0)], [KERNEL, 16, 17]);
    assert_eq!(change((1..14).map(|m| (inner(1, m), None)).collect()), Ok(0));
    assert_eq!([found(1, 0), found(1, 1), found(2, 7), found(3, 7)], [9, 3, 16, 24]);
}

/// Whether the table says of these addresses what the routes say, or leaves them to the kernel.
fn is_sure(
    routes: &Routes<u32, impl Shared<u32>>,
    all: &Rib<u32>,
    addresses: impl Iterator<Item = u32>,
) -> Result<(), TestCaseError> {
    let table = routes.fib();
    for address in addresses {
        let (found, expected) = (table.lookup(address), all.lookup(address));
        let is_left = !routes.fit() && (found == KERNEL || found == MISS);
        prop_assert!(found == expected || is_left, "{:08x}: {} {}", address, found, expected);
    }
    Ok(())
}

/// Changes to routes in a few blocks, and shorter ones.
fn churn() -> impl Strategy<Value = Vec<Vec<(Prefix<u32>, Option<u32>)>>> {
    let prefix = (prop_oneof![Just(0u8), 8..30u8, 20..25u8], 0..6u32, any::<u16>());
    let change = (prefix, prop::option::weighted(0.7, 1..9u32)).prop_map(|((len, block, rest), index)| {
        (Prefix::truncated(block << 16 | u32::from(rest), len), index)
    });
    prop::collection::vec(prop::collection::vec(change, 0..40), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_table_without_room_says_what_the_routes_say_or_leaves_it_to_the_kernel(
        room in 0..120_u32,
        steps in churn(),
        seen in prop::collection::vec((0..6u32, any::<u16>()), 64),
    ) {
        let mut routes = Routes::new(Rank24::with_capacity(room).unwrap(), KERNEL);
        let mut all = Rib::default();
        for changes in steps {
            changes.iter().for_each(|&change| set(&mut all, change));
            let done = routes.change(changes, &mut Patience::new(None), &mut || ());
            prop_assert_eq!((done.is_ok(), routes.len()), (routes.fit(), all.len()));
            let firsts: Vec<u32> = all.iter().map(|(prefix, _)| prefix.first()).collect();
            let seen = seen.iter().map(|&(block, rest)| block << 16 | u32::from(rest));
            is_sure(&routes, &all, firsts.into_iter().chain(seen))?;
        }
    }

    #[test]
    fn with_room_again_and_readers_that_move_on_a_table_holds_all_routes(
        room in 1..6_usize,
        steps in prop::collection::vec(
            (prop::collection::vec((0..8_u32, prop::option::of(1..9_u32)), 0..5), 0..6_u32),
            1..20,
        ),
    ) {
        let (mut routes, _, refusals) = narrow(room);
        let mut all = Rib::default();
        for (changes, stalls) in steps {
            refusals.store(stalls, Ordering::Relaxed);
            let changes: Vec<_> = changes.into_iter().map(|(n, index)| (prefix(n), index)).collect();
            changes.iter().for_each(|&change| set(&mut all, change));
            let done = routes.change(changes, &mut Patience { waits: 1, readers: None }, &mut || ());
            prop_assert_eq!((done.is_ok(), routes.len()), (routes.fit(), all.len()));
            prop_assert!(done != Err(FibError::Full) || all.len() > room);
            prop_assert!(done.is_ok() || stalls > 0 || all.len() > room);
            is_sure(&routes, &all, (0..8).map(|n| prefix(n).first()))?;
        }
    }
}
