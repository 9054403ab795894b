//! What tables take of a process, and what happens where there is none.

use std::process::Command;

use causeway_fib::{
    CompactFib4, Fib, Fib4, Fib6, FibError, Lookup, Memory, Prefix, Shared, Structure, Table,
};

/// Routes of a customer, here and there.
fn small<A: causeway_fib::Address>(number: u32) -> Vec<(Prefix<A>, u32)> {
    let address = |n: u32| A::from_u32(number * 7 + n * 0x0a01) << u32::from(A::BITS - 24);
    (0..10).map(|n| (Prefix::truncated(address(n), 24), 1 + n % 3)).collect()
}

#[test]
fn a_small_table_takes_few_pages() {
    fn most<A: causeway_fib::Address, S: Structure<A>>() -> usize {
        let tables: Vec<_> = (0..20).map(|number| Fib::<A, S>::build(&small(number)).unwrap()).collect();
        tables.iter().map(|table| table.memory().resident_bytes).max().unwrap()
    }
    let kib = [
        most::<u32, causeway_fib::Rank24>(),
        most::<u32, causeway_fib::Compact16>(),
        most::<u128, causeway_fib::Lines6>(),
    ];
    assert!(kib.iter().all(|&bytes| bytes <= 96 << 10), "{kib:?} bytes");
    let empty = Fib6::new().unwrap().memory();
    assert!(empty.resident_bytes <= 32 << 10, "{empty:?}");
}

/// Resident memory of this process by its own account, in bytes.
fn process_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap() * 4096
}

/// Runs one of these tests in a process of its own, under limits of the shell.
fn alone(test: &str, limits: &str) {
    let own = std::env::current_exe().unwrap();
    let script = format!("{limits} exec \"$0\" --exact {test} --nocapture");
    let output = Command::new("sh").args(["-c", &script]).arg(own).env("ALONE", test).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn what_is_said_of_many_tables_is_what_the_process_pays() {
    const NAME: &str = "what_is_said_of_many_tables_is_what_the_process_pays";
    if std::env::var("ALONE").is_err() {
        return alone(NAME, "");
    }
    let before = process_bytes();
    let four: Vec<_> = (0..255).map(|number| CompactFib4::build(&small(number)).unwrap()).collect();
    let six: Vec<_> = (0..255).map(|number| Fib6::build(&small(number)).unwrap()).collect();
    let paid = process_bytes() - before;
    let of = |memory: Memory| memory.resident_bytes + memory.writer_bytes;
    let said: usize =
        four.iter().map(|table| of(table.memory())).chain(six.iter().map(|table| of(table.memory()))).sum();
    assert!(paid < 60 << 20, "{paid} bytes for 510 tables");
    assert!(said * 10 > paid * 7, "{said} bytes of {paid}");
}

#[test]
fn a_table_that_gets_no_address_space_is_an_error() {
    const NAME: &str = "a_table_that_gets_no_address_space_is_an_error";
    if std::env::var("ALONE").is_err() {
        return alone(NAME, "ulimit -v 2000000;");
    }
    fn until_refused<A: causeway_fib::Address, S: Shared<A>>() {
        let mut tables = Vec::new();
        let refused = (0..100).find_map(|number| match Fib::<A, S>::build(&small(number)) {
            Ok(table) => {
                tables.push(table);
                None
            }
            Err(error) => Some(error),
        });
        assert!(matches!(refused, Some(FibError::Memory { .. })), "{refused:?} after {}", tables.len());
        assert!(!tables.is_empty(), "none at all");
    }
    until_refused::<u32, causeway_fib::Rank24>();
    until_refused::<u32, causeway_fib::Compact16>();
    until_refused::<u128, causeway_fib::Lines6>();
}

#[test]
fn memory_is_told_apart() {
    fn check<A: causeway_fib::Address, S: Shared<A>>() {
        let net = |n: u32| A::from_u32(n.wrapping_mul(0x9e37_79b9)) << u32::from(A::BITS - 32);
        let nets = (0..25_000).map(|n| (Prefix::truncated(net(n), 24), 1 + n % 200));
        let inside = (0..25_000).map(|n| (Prefix::truncated(net(n), 30), 201));
        let routes: Vec<_> = nets.chain(inside).collect();
        let mut fib = Fib::<A, S>::build(&routes).unwrap();
        let full = fib.memory();
        assert!(full.index_bytes <= full.resident_bytes && full.writer_bytes > routes.len() * 12, "{full:?}");
        fib.load(&[]).unwrap();
        // What was replaced waits until the table is changed again.
        (0..200).for_each(|n| drop(fib.replace(Prefix::DEFAULT, 1 + n % 2)));
        let empty = fib.memory();
        assert!(empty.index_bytes < full.index_bytes, "{}: {empty:?} after {full:?}", S::NAME);
        assert!(empty.writer_bytes < full.writer_bytes, "{}: {empty:?} after {full:?}", S::NAME);
    }
    check::<u32, causeway_fib::Rank24>();
    check::<u32, causeway_fib::Compact16>();
    check::<u128, causeway_fib::Lines6>();
}

#[test]
fn what_is_free_between_others_is_counted() {
    fn check<S: Structure<u32>>() {
        let routes = (0..20_000u32).flat_map(|n| [(n << 16, 24, 1), (n << 16 | 8, 30, 2 + n % 3)]);
        let routes: Vec<_> = routes.map(|(bits, len, to)| (Prefix::truncated(bits, len), to)).collect();
        let mut fib = Fib::<u32, S>::build(&routes).unwrap();
        let writer_bytes = |fib: &Fib<u32, S>| fib.structure().memory().writer_bytes;
        let before = writer_bytes(&fib);
        // Of each second network the line that its last bits take.
        routes.iter().skip(1).step_by(4).for_each(|route| drop(fib.withdraw(route.0)));
        let grown = writer_bytes(&fib).saturating_sub(before);
        assert!((8_000 * 4..1 << 20).contains(&grown), "{}: {grown} bytes", S::NAME);
    }
    check::<causeway_fib::Rank24>();
    check::<causeway_fib::Compact16>();
}

#[test]
fn what_waits_for_readers_is_counted() {
    fn check<A: causeway_fib::Address, S: Shared<A>>() {
        let mut fib = Fib::<A, S>::build(&small(1)).unwrap();
        let reader = fib.reader();
        let stopped = reader.domain().participant();
        let pinned = stopped.pin();
        let before = fib.memory().writer_bytes;
        for (n, (prefix, _)) in (10..2_010).zip(small(1).into_iter().cycle()) {
            fib.replace(prefix, n).unwrap();
        }
        let grown = fib.memory().writer_bytes - before;
        assert!((2_000 * 4..2_000 * 100).contains(&grown), "{}: {grown} bytes", S::NAME);
        drop(pinned);
    }
    check::<u32, causeway_fib::Rank24>();
    check::<u32, causeway_fib::Compact16>();
    check::<u128, causeway_fib::Lines6>();
}

/// What lookups walk is as large as what one knows to be in it: the first level, always there, and at least a leaf for each
/// stretch of addresses that leads somewhere else than the one before.
#[test]
fn what_lookups_walk_is_counted() {
    fn grown<S: Structure<u32>>(first_level: usize, leaf_bytes: usize) {
        // Neighbours differ, so no stretch is longer than a /24; each with a host route inside has a node as well.
        let routes = |hosts: bool| {
            let nets = (0..40_000u32).map(|n| (Prefix::truncated(n << 8, 24), 1 + n % 2));
            let inside = (0..40_000u32).filter(move |_| hosts).map(|n| (Prefix::host(n << 8 | 9), 3));
            nets.chain(inside).collect::<Vec<_>>()
        };
        let memories = [Vec::new(), routes(false), routes(true)].map(|routes| {
            let fib = Fib::<u32, S>::build(&routes).unwrap();
            assert!(fib.bytes() >= fib.memory().index_bytes, "{}: what is free is not used", S::NAME);
            assert!(fib.bytes() < 4 * fib.memory().index_bytes, "{}: {} bytes", S::NAME, fib.bytes());
            fib.memory()
        });
        let [empty, nets, hosts] = memories;
        let within = |bytes: usize, least: usize, most: usize| {
            assert!((least..most).contains(&bytes), "{}: {bytes} of {memories:?}", S::NAME);
        };
        within(empty.index_bytes, first_level, first_level + 4096);
        within(nets.index_bytes, first_level + 40_000 * leaf_bytes, first_level + 40_000 * 12);
        within(hosts.index_bytes, nets.index_bytes + 40_000 * 8, nets.index_bytes + 40_000 * 80);
        // The first level's pages are there as far as they are written; a page holds more than one value.
        within(empty.resident_bytes, 0, 96 << 10);
        within(nets.resident_bytes, 40_000 * leaf_bytes, first_level + 40_000 * 40);
        within(hosts.resident_bytes, nets.resident_bytes + 40_000 * 8, nets.resident_bytes + 40_000 * 120);
        // A prefix and where it leads for each route.
        within(nets.writer_bytes, 40_000 * 9, 40_000 * 120 + (1 << 20));
    }
    grown::<causeway_fib::Rank24>((1 << 24) / 32 * 8, 2);
    grown::<causeway_fib::Compact16>((1 << 16) * 4, 2);
}

#[test]
fn an_empty_table_is_its_first_level_and_what_its_writer_plans() {
    fn empty<A: causeway_fib::Address, S: Structure<A>>() -> (usize, Memory) {
        let fib = Fib::<A, S>::new().unwrap();
        (fib.bytes(), fib.memory())
    }
    assert_eq!(empty::<u32, causeway_fib::Rank24>().0, (1 << 24) / 32 * 8);
    assert_eq!(empty::<u32, causeway_fib::Compact16>().0, (1 << 16) * 4);
    let (bytes, memory) = empty::<u128, causeway_fib::Lines6>();
    assert!(bytes >= (1 << 16) * 4 && memory.index_bytes >= (1 << 16) * 4, "{bytes}, {memory:?}");
    // Two numbers for each /16.
    assert!((1 << 19..(1 << 19) + (1 << 16)).contains(&memory.writer_bytes), "{memory:?}");
}

#[test]
fn words_are_in_use_on_every_page_only_with_many_routes() {
    let few: Vec<_> = (0..1 << 14).map(|n| (Prefix::truncated(n << 8, 24), 1 + n % 2)).collect();
    let mut fib = Fib4::build(&few).unwrap();
    let first_level = (1 << 24) / 32 * 8;
    assert!(fib.memory().resident_bytes < first_level, "{:?}", fib.memory());
    fib.insert("192.0.2.0/24".parse().unwrap(), 1).unwrap();
    assert!(fib.memory().resident_bytes >= first_level, "{:?}", fib.memory());
    fib.insert("198.51.100.0/24".parse().unwrap(), 1).unwrap();
    assert!(fib.memory().resident_bytes >= first_level, "{:?}", fib.memory());
}

#[test]
fn the_lines_of_adjacencies_are_counted() {
    let writer_bytes = |adjacency| {
        let fib = CompactFib4::build(&[("10.0.0.0/8".parse().unwrap(), adjacency)]).unwrap();
        fib.memory().writer_bytes
    };
    // One number for each up to the largest in use.
    let more = writer_bytes(32_767) - writer_bytes(1);
    assert!((32_000 * 4..32_767 * 9).contains(&more), "{more} bytes");
}
