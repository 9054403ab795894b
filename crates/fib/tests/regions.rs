//! Tables in memory that a caller gives, read by code that knows the base of it and the layout, and nothing of the crate:
//! scalar, with masked indices, as a program in the driver reads the value of a map.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use causeway_fib::{
    Address, Domain, Fib, FibError, Lines6, Lines6Layout, Lookup, Place, Prefix, Rank24, Rank24Layout,
    Region, Rib, Shared, Table,
};
use proptest::prelude::*;

/// A caller's memory.
struct Given {
    words: Vec<AtomicU64>,
    /// Up to the first cache line.
    skipped: usize,
}

impl Given {
    fn new(bytes: usize) -> Given {
        let words: Vec<_> = (0..bytes.div_ceil(8) + 8).map(|_| AtomicU64::new(0)).collect();
        let skipped = words.as_ptr().align_offset(64);
        Given { words, skipped }
    }

    /// `SIZE` bytes of the element at an index of a part, at most eight.
    fn load<const SIZE: usize>(&self, part: Place, index: u32) -> u64 {
        let at = part.offset as usize + SIZE * (index & part.mask) as usize;
        let word = self.words()[at / 8].load(Ordering::Relaxed);
        word >> (8 * (at % 8)) & (u64::MAX >> (64 - 8 * SIZE))
    }
}

impl Region for Given {
    fn words(&self) -> &[AtomicU64] {
        &self.words[self.skipped..]
    }
}

/// The adjacency of an address in a table of `Rank24`.
fn look_up4(memory: &Given, layout: &Rank24Layout, address: u32) -> u32 {
    let word = memory.load::<8>(layout.words, address >> 13);
    let slot = address >> 8 & 31;
    let index = ((word >> 32) as u32).wrapping_add(((word as u32) << (31 - slot)).count_ones());
    let leaf = |index| memory.load::<2>(layout.leaves, index) as u32;
    let found = leaf(index);
    if found & 0x8000 == 0 {
        return found;
    }
    let number = index.wrapping_add(found & 0x7fff);
    let line = leaf(number) | leaf(number.wrapping_add(1)) << 16;
    let (byte, part) = (address & 255, address >> 6 & 3);
    let bits = memory.load::<8>(layout.nodes, 8 * line + part);
    let head = memory.load::<8>(layout.nodes, 8 * line + 4);
    let before = (head >> (32 + 8 * part)) as u32 & 255;
    let rank = (bits << (63 - (byte & 63))).count_ones() + before;
    let quarters = Place { mask: 4 * layout.nodes.mask + 3, ..layout.nodes };
    memory.load::<2>(quarters, (head as u32).wrapping_add(rank)) as u32
}

/// What a leaf of `Lines6` has for an address: a result, or where to go on.
fn leaf6(memory: &Given, layout: &Lines6Layout, leaf: u32, address: u128) -> u32 {
    let halves = Place { mask: 32 * layout.leaves.mask + 31, ..layout.leaves };
    let half = |place: u32| memory.load::<2>(halves, 32 * (leaf & layout.leaves.mask) + place) as u32;
    let window = half(31);
    let key = (address >> (8 * (window & 15))) as u32 ^ 1 << 31;
    let place = if window & 1 << 8 == 0 {
        let boundary = |place: u32| (half(2 * place) | half(2 * place + 1) << 16) as i32;
        20 + (0..10).filter(|&place| boundary(place) < key as i32).count()
    } else {
        15 + (0..15).filter(|&place| (half(place) as i16) < (key >> 16) as i16).count()
    };
    let found = half(place as u32);
    let below = half(29) | half(30) << 16;
    match found >> 14 {
        0 | 1 => found,
        2 => 1 << 31 | below.wrapping_add(found & 0x3fff),
        _ => below,
    }
}

/// The leaf of a slot of a word.
fn word6(memory: &Given, layout: &Lines6Layout, slot: u32) -> u32 {
    let word = memory.load::<8>(layout.words, slot >> 5);
    1 << 31 | ((word >> 32) as u32).wrapping_add(((word as u32) << (!slot & 31)).count_ones())
}

/// The adjacency of an address in a table of `Lines6`.
fn look_up6(memory: &Given, layout: &Lines6Layout, address: u128) -> u32 {
    let upper = (address >> 64) as u64;
    let root = memory.load::<4>(layout.root, (upper >> 48) as u32) as u32 ^ 63;
    let rest = upper << 16;
    let index = (root >> 6).wrapping_add((rest >> (root & 63)) as u32);
    let rest = rest << (root.wrapping_neg() & 63);
    let entry = memory.load::<4>(layout.entries, index) as u32;
    let slot = (entry >> 1 & !31).wrapping_add((rest >> (entry & 63)) as u32);
    let mut at = word6(memory, layout, slot);
    while at >> 30 != 0 {
        at = if at >> 31 == 1 {
            leaf6(memory, layout, at, address)
        } else if at >> 29 == 2 {
            let branches = Place { mask: 8 * layout.branches.mask + 7, ..layout.branches };
            let first = 8 * (at & layout.branches.mask);
            let half = |place| u128::from(memory.load::<8>(branches, first + place));
            let rank = (0..3).filter(|n| (half(2 * n) << 64 | half(2 * n + 1)) < address).count() as u32;
            (half(6 + rank / 2) >> (32 * (rank % 2))) as u32
        } else {
            let deep = memory.load::<8>(layout.deep, at);
            let (first, position, bits) = ((deep >> 32) as u32, deep as u32 >> 8 & 255, deep as u32 & 255);
            let offset = (address << (position & 127) >> 64) as u64 >> ((64 - bits) & 63);
            word6(memory, layout, (first << 5).wrapping_add(offset as u32))
        };
    }
    at
}

/// Changes, each a prefix and where it leads or nothing.
fn changes<A: Address>() -> impl Strategy<Value = Vec<(Prefix<A>, Option<u32>)>> {
    // Some beside one another, some anywhere, of all lengths.
    let bits = prop_oneof![
        (0_u32..4, 0_u32..64).prop_map(|(top, low)| [top << 30, low]),
        any::<[u32; 2]>(),
        (0_u32..1 << 14).prop_map(|n| [0x2001_0000 | n >> 6, n << 26])
    ];
    let prefix = (bits, 0..=A::BITS).prop_map(|([high, low], len)| {
        let high = A::from_u32(high) << u32::from(A::BITS - 32);
        let low = A::from_u32(low) << (u32::from(A::BITS) / 2 - 16) | A::from_u32(low & 255);
        Prefix::truncated(high ^ low, len)
    });
    prop::collection::vec((prefix, prop::option::weighted(0.8, 1..200_u32)), 1..400)
}

/// A table in a region of the caller's agrees with its routes, read by `look_up` and by the crate.
fn agree<A: Address, S: Shared<A>>(
    structure: S,
    look_up: impl Fn(A) -> u32,
    changes: &[(Prefix<A>, Option<u32>)],
) -> Result<(), TestCaseError> {
    let mut fib = Fib::with_structure(structure);
    let mut routes: Rib<A> = Rib::default();
    for part in changes.chunks(40) {
        fib.apply(part).unwrap();
        for &(prefix, adjacency) in part {
            match adjacency {
                Some(adjacency) => routes.set(prefix, adjacency),
                None => routes.remove(prefix),
            };
        }
        let around = |prefix: &Prefix<A>| {
            let (first, last) = (prefix.first(), prefix.last());
            [Some(first), Some(last), last.successor(), Some(first ^ A::from_u32(1))]
        };
        for address in changes.iter().flat_map(|change| around(&change.0)).flatten() {
            let expected = routes.lookup(address);
            prop_assert_eq!(look_up(address), expected, "{:?} by base and layout", address);
            prop_assert_eq!(fib.lookup(address), expected, "{:?}", address);
        }
    }
    Ok(())
}

fn given(bytes: usize) -> (Arc<Given>, Arc<dyn Region>) {
    let given = Arc::new(Given::new(bytes));
    (given.clone(), given)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn an_ipv4_table_is_read_by_its_base_and_its_layout(changes in changes::<u32>(), bits in 15..18_u32) {
        let layout = Rank24Layout::new(bits);
        let (memory, region) = given(layout.bytes());
        let structure = Rank24::in_region(layout, region, &Domain::new()).unwrap();
        agree(structure, |address| look_up4(&memory, &layout, address), &changes)?;
    }

    #[test]
    fn an_ipv6_table_is_read_by_its_base_and_its_layout(changes in changes::<u128>()) {
        let layout = Lines6Layout::new(16);
        let (memory, region) = given(layout.bytes());
        let structure = Lines6::in_region(layout, region, &Domain::new()).unwrap();
        agree(structure, |address| look_up6(&memory, &layout, address), &changes)?;
    }
}

/// Neighbouring routes that no leaf tells apart, so that lookups go through what lies below leaves.
#[test]
fn crowded_ipv6_routes_are_read_by_base_and_layout() {
    let layout = Lines6Layout::new(16);
    let (memory, region) = given(layout.bytes());
    let mut fib = Fib::with_structure(Lines6::in_region(layout, region, &Domain::new()).unwrap());
    let near = (0..600_u128).map(|n| Prefix::host(0x2001_0db8 << 96 | (n * n)));
    let far =
        (0..600_u128).map(|n| Prefix::truncated(0x2001_0db8 << 96 | n << (n % 90), 128 - (n % 90) as u8));
    let routes: Vec<_> = near.chain(far).zip((1..30).cycle()).collect();
    fib.load(&routes).unwrap();
    for (prefix, _) in &routes {
        for address in [prefix.first(), prefix.last(), prefix.last() + 1, prefix.first() - 1] {
            assert_eq!(look_up6(&memory, &layout, address), fib.rib().lookup(address), "{address:x}");
        }
    }
}

#[test]
fn a_small_region_is_filled_and_no_further() {
    let layout = Rank24Layout::new(16);
    let (memory, region) = given(layout.bytes());
    let mut fib = Fib::with_structure(Rank24::in_region(layout, region, &Domain::new()).unwrap());
    let prefix = |n: u32| Prefix::truncated(n << 9 | 1 << 8, 24);
    let refused = (0..1 << 20).find(|&n| fib.insert(prefix(n), 1 + n % 9).is_err()).expect("room for all");
    assert!(refused > 10_000, "room for {refused}");
    assert!((0..refused).all(|n| look_up4(&memory, &layout, prefix(n).first()) == 1 + n % 9));
    assert_eq!(look_up4(&memory, &layout, prefix(refused).first()), 0);
}

/// Of 2^16 leaves, half are set aside; runs of 32 fill the others to the last.
#[test]
fn a_small_region_has_room_for_as_many_leaves_as_its_layout_says() {
    let layout = Rank24Layout::new(16);
    let (memory, region) = given(layout.bytes());
    let mut fib = Fib::with_structure(Rank24::in_region(layout, region, &Domain::new()).unwrap());
    let net = |n: u32| (Prefix::truncated(n << 8, 24), 1 + n % 9);
    let routes: Vec<_> = (0..1 << 15).map(net).collect();
    fib.load(&routes).unwrap();
    assert!(
        routes.iter().all(|&(prefix, adjacency)| look_up4(&memory, &layout, prefix.first()) == adjacency)
    );
    assert_eq!(fib.insert(net(1 << 15).0, 1), Err(FibError::Full));
}

#[test]
fn a_change_that_says_what_is_there_writes_nothing() {
    let layout = Rank24Layout::new(16);
    let (memory, region) = given(layout.bytes());
    let mut fib = Fib::with_structure(Rank24::in_region(layout, region, &Domain::new()).unwrap());
    let prefix = |text: &str| text.parse::<Prefix<u32>>().unwrap();
    for (number, net) in ["10.0.0.0/8", "10.0.3.0/24", "10.0.5.0/24", "10.0.7.0/24"].into_iter().enumerate() {
        fib.insert(prefix(net), 1 + number as u32).unwrap();
    }
    let words = || memory.words().iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let before = words();
    fib.insert(prefix("10.0.5.128/25"), 3).unwrap();
    assert!(words() == before, "the same route in two pieces");
    fib.replace(prefix("10.0.5.128/25"), 4).unwrap();
    assert!(words() != before);
}

#[test]
fn a_region_that_is_no_place_for_a_table_is_refused() {
    let layout = Rank24Layout::new(16);
    let refused = |given: Given| {
        let made = Rank24::in_region(layout, Arc::new(given), &Domain::new());
        matches!(made.err(), Some(FibError::Memory { .. }))
    };
    let mut short = Given::new(layout.bytes());
    short.words.truncate(short.skipped + layout.bytes() / 8 - 1);
    assert!(refused(short));
    let mut crooked = Given::new(layout.bytes());
    crooked.skipped += 1;
    assert!(refused(crooked));
    assert!(!refused(Given::new(layout.bytes())));
    let six = Lines6Layout::new(16);
    let made = Lines6::in_region(six, Arc::new(Given::new(six.bytes() - 72)), &Domain::new());
    assert!(matches!(made.err(), Some(FibError::Memory { .. })));
}

#[test]
fn layouts_are_for_any_size_and_their_parts_apart() {
    fn check(bytes: usize, parts: &[(Place, usize)]) {
        let mut end = 0;
        for &(part, size) in parts {
            assert!(
                part.offset as usize >= end && part.offset % 64 == 0 && (part.mask + 1).is_power_of_two()
            );
            end = part.offset as usize + (part.mask as usize + 1) * size;
        }
        assert_eq!(end, bytes);
    }
    for bits in 0..40 {
        let four = Rank24Layout::new(bits);
        check(four.bytes(), &[(four.leaves, 2), (four.nodes, 8), (four.words, 8)]);
        let six = Lines6Layout::new(bits);
        let lines = [(six.leaves, 64), (six.branches, 64)];
        let (first, last) = ([(six.entries, 4), (six.words, 8)], [(six.deep, 8), (six.root, 4)]);
        check(six.bytes(), &[&first[..], &lines, &last].concat());
    }
    assert_eq!(Rank24Layout::new(3), Rank24Layout::new(16));
    assert_eq!(Lines6Layout::new(99), Lines6Layout::new(22));
}
