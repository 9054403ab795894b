//! Tables without room: a withdrawal is never refused, no route is followed that is gone, and what lookups miss
//! meanwhile comes back.

use causeway_fib::baseline::radix::Radix;
use causeway_fib::{
    Address, AdjacencyIndex, Change, Compact16, Fib, FibError, LeftRight, Lines6, Lookup, MISS, Prefix,
    Rank24, Rib, Shared, Structure, Table,
};
use proptest::prelude::*;

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// A route, by its place among few, and where it leads.
    Put(usize, AdjacencyIndex),
    Withdraw(usize),
    /// Several at once.
    WithdrawAll(Vec<usize>),
    /// A reader stops, or goes on.
    Stop(bool),
    Settle,
}

const PLACES: usize = 24;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..PLACES, 1..5_u32).prop_map(|(place, adjacency)| Step::Put(place, adjacency)),
        4 => (0..PLACES).prop_map(Step::Withdraw),
        1 => prop::collection::vec(0..PLACES, 1..8).prop_map(Step::WithdrawAll),
        2 => any::<bool>().prop_map(Step::Stop),
        1 => Just(Step::Settle),
    ];
    prop::collection::vec(step, 1..80)
}

/// Holds a table against its routes: it finds what they say or, if some are missing for want of room, nothing.
fn check<A: Address>(
    lookup: impl Fn(A) -> AdjacencyIndex,
    fib: &impl Table<A>,
    prefixes: &[Prefix<A>],
) -> Result<(), TestCaseError> {
    let mut misses = false;
    for address in prefixes.iter().flat_map(|prefix| [prefix.first(), prefix.last()]) {
        let (found, expected) = (lookup(address), fib.rib().lookup(address));
        prop_assert!(
            found == expected || found == MISS,
            "{:?} leads to {}, not {}",
            address,
            found,
            expected
        );
        misses |= found != expected;
    }
    prop_assert!(!misses || fib.unsettled() > 0, "routes are missing, and none is counted");
    Ok(())
}

fn history<A: Address, S: Shared<A>>(
    structure: S,
    prefixes: &[Prefix<A>],
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    let mut fib = Fib::with_structure(structure);
    let reader = fib.reader();
    let stopped = reader.domain().participant();
    let mut pin = None;
    for step in steps {
        match step {
            Step::Put(place, adjacency) => {
                let before = fib.rib().exact(prefixes[place]);
                let done = fib.replace(prefixes[place], adjacency);
                prop_assert!(matches!(done, Ok(_) | Err(FibError::Busy | FibError::Full)), "{:?}", done);
                let now = if done.is_ok() { Some(adjacency) } else { before };
                prop_assert_eq!(fib.rib().exact(prefixes[place]), now);
            }
            Step::Withdraw(place) => {
                let before = fib.rib().exact(prefixes[place]);
                prop_assert_eq!(fib.withdraw(prefixes[place]), before.ok_or(FibError::NotFound));
                prop_assert_eq!(fib.rib().exact(prefixes[place]), None);
            }
            Step::WithdrawAll(places) => {
                let changes: Vec<Change<A>> = places.iter().map(|&place| (prefixes[place], None)).collect();
                prop_assert_eq!(fib.apply(&changes), Ok(()));
                prop_assert!(places.iter().all(|&place| fib.rib().exact(prefixes[place]).is_none()));
            }
            Step::Stop(true) => pin = Some(stopped.pin()),
            Step::Stop(false) => pin = None,
            Step::Settle => prop_assert!(fib.settle().is_err() || fib.unsettled() == 0),
        }
        check(|address| reader.lookup(address), &fib, prefixes)?;
    }
    pin.take();
    // What is left fits in one piece, and was there before.
    let all: Vec<_> = fib.rib().iter().collect();
    fib.load(&[]).unwrap();
    prop_assert_eq!((fib.unsettled(), reader.lookup(prefixes[0].first())), (0, MISS));
    if fib.load(&all).is_ok() {
        prop_assert_eq!(fib.unsettled(), 0);
        let rib: Rib<A> = all.into_iter().collect();
        prop_assert!(prefixes.iter().all(|p| reader.lookup(p.first()) == rib.lookup(p.first())));
    }
    Ok(())
}

/// Of all lengths, around one another and beside one another.
fn prefixes<A: Address>() -> Vec<Prefix<A>> {
    let address = |place: usize| A::from_u32(0x20_0100 | (place as u32 % 8) << 2) << u32::from(A::BITS - 24);
    (0..PLACES)
        .map(|place| Prefix::truncated(address(place), [14, 22, 24][place / 8] + place as u8 % 3))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn the_ipv4_table_lets_go_of_routes_whatever_is_left(steps in steps(), room in 4..40_u32) {
        history(Rank24::with_capacity(room).unwrap(), &prefixes::<u32>(), steps)?;
    }

    #[test]
    fn the_ipv6_table_lets_go_of_routes_whatever_is_left(steps in steps(), room in 1..12_u32) {
        history(Lines6::with_capacity(room).unwrap(), &prefixes::<u128>(), steps)?;
    }
}

proptest! {
    // Each wait for a reader that has stopped takes its time.
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn a_table_in_two_copies_lets_go_of_routes_whatever_is_left(steps in steps()) {
        history(LeftRight::new(Radix::<u32>::empty().unwrap()), &prefixes::<u32>(), steps)?;
    }
}

#[test]
fn what_a_withdrawal_hides_comes_back_when_readers_move_on() {
    let mut fib = Fib::with_structure(Rank24::with_capacity(10).unwrap());
    let reader = fib.reader();
    let stopped = reader.domain().participant();
    let prefix = |text: &str| text.parse::<Prefix<u32>>().unwrap();
    let routes = [("10.0.1.0/24", 1), ("10.0.3.0/24", 2), ("10.0.5.0/24", 5), ("11.0.0.0/8", 4)];
    fib.load(&routes.map(|(text, adjacency)| (prefix(text), adjacency))).unwrap();
    let pin = stopped.pin();
    // Seven leaves are in use and stay so for the reader; five are needed.
    assert_eq!(fib.withdraw(prefix("10.0.5.0/24")), Ok(5));
    let found = || routes.map(|(text, _)| reader.lookup(prefix(text).first()));
    assert_eq!(found(), [MISS, MISS, MISS, 4]);
    assert_eq!((fib.unsettled(), fib.settle()), (2, Err(FibError::Busy)));
    assert_eq!(fib.forgotten(), [prefix("10.0.0.0/19")], "the whole word");
    assert_eq!(fib.insert(prefix("12.0.1.0/24"), 1), Err(FibError::Busy), "what was there goes before");
    drop(pin);
    assert_eq!((fib.settle(), fib.unsettled(), fib.forgotten().len()), (Ok(()), 0, 0));
    assert_eq!(found(), [1, 2, MISS, 4]);
}

#[test]
fn nothing_can_always_be_loaded() {
    let routes = [(Prefix::DEFAULT, 1)];
    let mut fib = Fib::<u32, LeftRight<u32, Radix<u32>>>::build(&routes).unwrap();
    let reader = fib.reader();
    let stopped = reader.domain().participant();
    let pin = stopped.pin();
    assert_eq!(fib.load(&[(Prefix::DEFAULT, 2)]), Ok(()));
    assert_eq!(fib.load(&routes), Err(FibError::Busy), "the reader may see the other copy");
    assert_eq!((fib.load(&[]), reader.lookup(0), fib.rib().len()), (Ok(()), MISS, 0));
    drop(pin);
    fib.load(&routes).unwrap();
    assert_eq!(reader.lookup(0), 1);
}

#[test]
fn a_structure_tells_what_it_forgot() {
    fn check<A: Address, S: Structure<A>>(around: u8) {
        let prefix = |n: u32| Prefix::truncated(A::from_u32(n << 8) << u32::from(A::BITS - 32), 24);
        let mut structure = S::empty().unwrap();
        let routes = [(prefix(0x0a_0001), 1), (prefix(0x0a_0003), 2), (prefix(0x0b_0001), 3)];
        structure.rebuild(&routes.into_iter().collect()).unwrap();
        let gone = structure.forget(&[routes[1], routes[2]].into_iter().collect(), &[routes[0].0]);
        assert_eq!(gone, [Prefix::truncated(routes[0].0.first(), around)], "{}", S::NAME);
        assert_eq!(
            routes.map(|(prefix, _)| structure.lookup(prefix.first())),
            [MISS, MISS, 3],
            "{}",
            S::NAME
        );
    }
    check::<u32, Rank24>(19);
    check::<u32, Compact16>(16);
    check::<u128, Lines6>(16);
}
