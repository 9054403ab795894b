//! Every table against a list of routes that is searched from end to end, under random routes and updates.

use causeway_fib::baseline::{
    dir24_8::Dir24_8, lctrie::LcTrie, linear::Linear, radix::Radix, ranges::Ranges,
};
use causeway_fib::rivals::{btree6::BTree6, poptrie::Poptrie};
use causeway_fib::{
    Address, Compact16, CompactFib4, Fib, Fib4, Fib6, FibError, LeftRight, Lines6, Lookup, MISS, Prefix,
    Rank24, Structure, Table,
};
use proptest::prelude::*;

/// The naive model: a list of routes.
#[derive(Default)]
struct Naive<A>(Vec<(Prefix<A>, u32)>);

impl<A: Address> Naive<A> {
    fn set(&mut self, prefix: Prefix<A>, adjacency: u32) {
        self.remove(prefix);
        self.0.push((prefix, adjacency));
    }

    fn remove(&mut self, prefix: Prefix<A>) -> bool {
        let before = self.0.len();
        self.0.retain(|route| route.0 != prefix);
        self.0.len() < before
    }

    fn longest(&self, address: A) -> Option<(Prefix<A>, u32)> {
        self.0.iter().copied().filter(|route| route.0.contains(address)).max_by_key(|route| route.0.len())
    }
}

#[derive(Clone, Debug)]
enum Change<A: Address> {
    Set(Prefix<A>, u32),
    Remove(prop::sample::Index),
}

/// Addresses that share many bits, so that prefixes nest, touch and repeat.
fn address4() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        (0_u32..4, 0_u32..1 << 14).prop_map(|(high, low)| 0x0a00_0000 | high << 16 | low),
        Just(0),
        Just(u32::MAX),
    ]
}

fn address6() -> impl Strategy<Value = u128> {
    let base = 0x2001_0db8_u128 << 96;
    prop_oneof![
        any::<u128>(),
        (0_u128..8, 0_u32..112).prop_map(move |(bits, shift)| base | bits << shift),
        (0_u128..4, 0_u128..4, 0_u128..64)
            .prop_map(move |(site, net, host)| base | site << 80 | net << 64 | host),
        Just(0),
        Just(u128::MAX),
    ]
}

fn changes<A: Address>(address: impl Strategy<Value = A>) -> impl Strategy<Value = Vec<Change<A>>> {
    let prefix = (address, prop_oneof![0..=A::BITS, A::BITS / 2..=A::BITS])
        .prop_map(|(address, len)| Prefix::new(address, len).unwrap());
    let change = prop_oneof![
        3 => (prefix, 1..40_u32).prop_map(|(prefix, adjacency)| Change::Set(prefix, adjacency)),
        2 => any::<prop::sample::Index>().prop_map(Change::Remove),
    ];
    prop::collection::vec(change, 1..120)
}

/// First, last and outside neighbours of every prefix, and the ends of the address space.
fn probes<A: Address>(prefixes: &[Prefix<A>]) -> Vec<A> {
    let mut probes = vec![A::ZERO, A::MAX];
    for prefix in prefixes {
        let (first, last) = (prefix.first(), prefix.last());
        probes.extend([first, last]);
        probes.extend(last.successor());
        // The address before `first` ends in ones where `first` ends in zeros.
        if first != A::ZERO {
            let len = (0..=A::BITS).find(|&len| first & A::mask(len) == first).unwrap();
            probes.push((first ^ (A::mask(len) & !A::mask(len - 1))) | !A::mask(len));
        }
    }
    probes
}

/// A table seen as a lookup only.
struct ByRef<'a, T>(&'a T);

impl<A: Address, T: Lookup<A>> Lookup<A> for ByRef<'_, T> {
    fn lookup(&self, address: A) -> u32 {
        self.0.lookup(address)
    }

    fn lookup_batch(&self, addresses: &[A], results: &mut [u32]) {
        self.0.lookup_batch(addresses, results);
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

fn check<A: Address, T: Table<A>>(table: &T, reader: Option<&dyn Lookup<A>>, naive: &Naive<A>, probes: &[A]) {
    let mut results = vec![MISS; probes.len()];
    let own: &dyn Lookup<A> = &ByRef(table);
    for reader in reader.into_iter().chain([own]) {
        reader.lookup_batch(probes, &mut results);
        for (&address, &result) in probes.iter().zip(&results) {
            let expected = naive.longest(address).map_or(MISS, |route| route.1);
            assert_eq!(result, expected, "batch, {}", address.to_ip());
            assert_eq!(reader.lookup(address), expected, "single, {}", address.to_ip());
        }
    }
    for &address in probes {
        assert_eq!(table.rib().longest(address), naive.longest(address), "longest, {}", address.to_ip());
    }
}

fn replay<A: Address, T: Table<A>>(
    table: &mut T,
    reader: Option<&dyn Lookup<A>>,
    changes: &[Change<A>],
) -> Result<(), TestCaseError> {
    let mut naive = Naive::default();
    let mut seen = Vec::new();
    for (step, change) in changes.iter().enumerate() {
        match change {
            Change::Set(prefix, adjacency) => {
                let before = naive.0.iter().find(|route| route.0 == *prefix).map(|route| route.1);
                prop_assert_eq!(table.replace(*prefix, *adjacency).unwrap(), before);
                naive.set(*prefix, *adjacency);
                seen.push(*prefix);
            }
            Change::Remove(_) if seen.is_empty() => {}
            Change::Remove(index) => {
                let prefix = *index.get(&seen);
                let present = naive.remove(prefix);
                prop_assert_eq!(table.withdraw(prefix).is_ok(), present);
            }
        }
        if step % 16 == 0 || step + 1 == changes.len() {
            check(table, reader, &naive, &probes(&seen));
        }
    }
    let mut expected = naive.0.clone();
    expected.sort();
    prop_assert_eq!(table.rib().iter().collect::<Vec<_>>(), expected.clone());
    for &outer in &seen {
        let inside: Vec<_> = expected.iter().copied().filter(|route| outer.covers(route.0)).collect();
        prop_assert_eq!(table.rib().covered(outer).collect::<Vec<_>>(), inside);
    }
    let mut loaded_in_one = expected.clone();
    loaded_in_one.reverse();
    table.load(&loaded_in_one).unwrap();
    check(table, reader, &naive, &probes(&seen));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn fib4(changes in changes(address4())) {
        let mut table = Fib4::new().unwrap();
        let reader = table.reader();
        replay(&mut table, Some(&reader), &changes)?;
    }

    #[test]
    fn compact_fib4(changes in changes(address4())) {
        let mut table = CompactFib4::new().unwrap();
        let reader = table.reader();
        replay(&mut table, Some(&reader), &changes)?;
    }

    #[test]
    fn fib6(changes in changes(address6())) {
        let mut table = Fib6::new().unwrap();
        let reader = table.reader();
        replay(&mut table, Some(&reader), &changes)?;
    }
}

/// The same changes, many at once: each call is taken whole.
fn replay_batches<A: Address, T: Table<A>>(
    table: &mut T,
    reader: Option<&dyn Lookup<A>>,
    changes: &[Change<A>],
    sizes: &[usize],
) -> Result<(), TestCaseError> {
    let mut naive = Naive::default();
    let (mut seen, mut rest) = (Vec::new(), changes);
    for &size in sizes.iter().cycle() {
        let (some, others) = rest.split_at(size.min(rest.len()));
        rest = others;
        let mut batch = Vec::new();
        for change in some {
            match change {
                Change::Set(prefix, adjacency) => {
                    naive.set(*prefix, *adjacency);
                    seen.push(*prefix);
                    batch.push((*prefix, Some(*adjacency)));
                }
                Change::Remove(_) if seen.is_empty() => {}
                Change::Remove(index) => {
                    let prefix = *index.get(&seen);
                    naive.remove(prefix);
                    batch.push((prefix, None));
                }
            }
        }
        table.apply(&batch).unwrap();
        check(table, reader, &naive, &probes(&seen));
        if rest.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn batches4(changes in changes(address4()), sizes in prop::collection::vec(1_usize..40, 1..8)) {
        let mut table = Fib4::new().unwrap();
        let reader = table.reader();
        replay_batches(&mut table, Some(&reader), &changes, &sizes)?;
        let mut table = CompactFib4::new().unwrap();
        let reader = table.reader();
        replay_batches(&mut table, Some(&reader), &changes, &sizes)?;
        let mut table = Fib::<u32, LeftRight<u32, Radix<u32>>>::new().unwrap();
        let reader = table.reader();
        replay_batches(&mut table, Some(&reader), &changes, &sizes)?;
    }

    #[test]
    fn batches6(changes in changes(address6()), sizes in prop::collection::vec(1_usize..40, 1..8)) {
        let mut table = Fib6::new().unwrap();
        let reader = table.reader();
        replay_batches(&mut table, Some(&reader), &changes, &sizes)?;
    }

    #[test]
    fn batches_of_papers_and_rivals(
        changes in changes(address6()),
        sizes in prop::collection::vec(1_usize..40, 1..8),
    ) {
        replay_batches(&mut Fib::<u128, LcTrie<u128>>::new().unwrap(), None, &changes, &sizes)?;
        replay_batches(&mut Fib::<u128, Radix<u128>>::new().unwrap(), None, &changes, &sizes)?;
        replay_batches(&mut Fib::<u128, Linear<u128>>::new().unwrap(), None, &changes, &sizes)?;
    }
}

fn replay_plain<A: Address, S: Structure<A>>(changes: &[Change<A>]) -> Result<(), TestCaseError> {
    replay(&mut Fib::<A, S>::new().unwrap(), None, changes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn papers_and_rivals4(changes in changes(address4())) {
        replay_plain::<u32, Radix<u32>>(&changes)?;
        replay_plain::<u32, LcTrie<u32>>(&changes)?;
        replay_plain::<u32, Linear<u32>>(&changes)?;
    }

    #[test]
    fn papers_and_rivals6(changes in changes(address6())) {
        replay_plain::<u128, Radix<u128>>(&changes)?;
        replay_plain::<u128, LcTrie<u128>>(&changes)?;
        replay_plain::<u128, Linear<u128>>(&changes)?;
        replay_plain::<u128, BTree6>(&changes)?;
    }

    #[test]
    fn two_copies(changes in changes(address4())) {
        let mut table = Fib::<u32, LeftRight<u32, Radix<u32>>>::new().unwrap();
        let reader = table.reader();
        replay(&mut table, Some(&reader), &changes)?;
        let mut table = Fib::<u32, LeftRight<u32, LcTrie<u32>>>::new().unwrap();
        let reader = table.reader();
        replay(&mut table, Some(&reader), &changes)?;
    }

    #[test]
    fn lc_trie_parameters(changes in changes(address4()), fill in 0.1_f32..1.0, root in 1_u8..12) {
        let mut table = Fib::with_structure(LcTrie::<u32>::with_parameters(fill, root));
        replay(&mut table, None, &changes)?;
    }
}

proptest! {
    // These are compiled whole at every change.
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn built_whole(four in changes(address4()), six in changes(address6())) {
        replay_plain::<u32, Ranges<u32>>(&four)?;
        replay_plain::<u128, Ranges<u128>>(&six)?;
        replay_plain::<u32, Poptrie>(&four)?;
        replay_plain::<u128, Poptrie>(&six)?;
        replay_plain::<u32, Dir24_8>(&four)?;
    }
}

#[test]
fn refused_changes_leave_the_table_as_it_was() {
    let mut table = Fib4::new().unwrap();
    let prefix = "10.0.0.0/8".parse().unwrap();
    table.insert(prefix, 1).unwrap();
    assert_eq!(table.insert(prefix, 2), Err(FibError::Exists));
    assert_eq!(table.withdraw("10.0.0.0/9".parse().unwrap()), Err(FibError::NotFound));
    assert!(matches!(table.replace(prefix, 0), Err(FibError::AdjacencyRange { .. })));
    assert!(matches!(table.replace(prefix, 1 << 15), Err(FibError::AdjacencyRange { .. })));
    assert_eq!((table.lookup(0x0a00_0001), table.rib().len()), (1, 1));
}

#[test]
fn the_largest_adjacency_is_found_and_the_next_is_refused() {
    fn largest<A: Address, S: Structure<A>>() {
        let mut fib = Fib::<A, S>::new().unwrap();
        let host = Prefix::host(A::from_u32(0x0a01_0203) << (u32::from(A::BITS) - 32));
        // At each level of the structure, the last in the place of all others.
        for len in [0, 8, 16, 20, 24, 28, 32, A::BITS] {
            let prefix = Prefix::truncated(host.first(), len);
            fib.replace(prefix, S::ADJACENCY_MAX).unwrap();
            assert_eq!(fib.lookup(host.first()), S::ADJACENCY_MAX, "{}: {prefix}", S::NAME);
            if let Some(more) = S::ADJACENCY_MAX.checked_add(1) {
                let refused = fib.replace(prefix, more);
                assert!(matches!(refused, Err(FibError::AdjacencyRange { .. })), "{}: {refused:?}", S::NAME);
            }
            fib.withdraw(prefix).unwrap();
        }
    }
    largest::<u32, Rank24>();
    largest::<u32, Compact16>();
    largest::<u128, Lines6>();
    // As many as their elements can tell apart.
    assert_eq!((Rank24::ADJACENCY_MAX, Compact16::ADJACENCY_MAX), ((1 << 15) - 1, (1 << 15) - 1));
}

/// More /24s with host routes inside than a leaf of 15 bits could name.
fn hosts_in_many_blocks<T: Table<u32>>(table: &mut T) {
    let host = |number: u32| Prefix::host(number << 8 | number & 255);
    let routes: Vec<_> = (0..40_000).map(|number| (host(number), 1 + number % 30_000)).collect();
    table.load(&routes).unwrap();
    let far = 200_000;
    table.insert(host(far), 7).unwrap();
    table.withdraw(host(3)).unwrap();
    for number in (0..40_000).chain([far]) {
        let expected = match number {
            3 => MISS,
            _ if number == far => 7,
            _ => 1 + number % 30_000,
        };
        let address = host(number).first();
        assert_eq!(table.lookup(address), expected, "host {number}");
        assert_eq!(table.lookup(address ^ 1), MISS, "beside host {number}");
    }
}

#[test]
fn host_routes_do_not_run_out_of_leaves() {
    hosts_in_many_blocks(&mut Fib4::new().unwrap());
    hosts_in_many_blocks(&mut CompactFib4::new().unwrap());
}
