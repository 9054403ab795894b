//! The program against the golden model on the shared corpus, in the kernel; `fpga/sim/tests/card.rs` holds the NIC
//! to the same frames under the same tables.

use causeway_bpf::{Map, action};
use causeway_netio::ErrorKind;
use causeway_nic_driver::corpus::{self, Random};
use causeway_nic_driver::golden::{process, process_reaching};
use causeway_nic_driver::rules::MAX_NICS;
use causeway_nic_driver::{DropReason, Mac, Route, RuleTable, Target, Verdict};
use causeway_nic_xdp::counters::{DROP_CHECKSUM, DROP_TRUNCATED, DROP_TTL, NO_PORT, forwarded};
use causeway_nic_xdp::{Card, Error, router};

/// The loopback interface: test runs decide about redirects and do not carry them out.
const ANY_INTERFACE: u32 = 1;

/// A device map with an interface for every card; nothing, with a message, where maps cannot be made.
fn full_map() -> Option<Map> {
    let ports = match router::ports() {
        Ok(ports) => ports,
        Err(Error::Kernel(e)) if e.kind() == ErrorKind::Privilege => {
            eprintln!("skipped: needs root to load programs");
            return None;
        }
        Err(e) => panic!("{e}"),
    };
    for nic in 0..MAX_NICS as u32 {
        ports.insert_u32(nic, ANY_INTERFACE).unwrap();
    }
    Some(ports)
}

/// A card, and what its counters have to be.
struct Subject {
    card: Card,
    counts: Vec<u64>,
}

impl Subject {
    fn new(table: &RuleTable, nic: u8, ports: &Map) -> Self {
        let card = Card::load(table, nic, ports).unwrap_or_else(|e| panic!("card {nic} of {table:?}: {e}"));
        Self { card, counts: vec![0; forwarded(MAX_NICS as u8, false) as usize] }
    }

    /// One frame has this verdict, is this afterwards, and adds one to this counter.
    fn check(&mut self, frame: &[u8], verdict: i32, after: &[u8], counter: u32) {
        let run = self.card.program().test_run(frame, None, 1).unwrap();
        assert_eq!((run.verdict, &run.data[..]), (verdict, after), "{frame:02x?}");
        let count = &mut self.counts[counter as usize];
        *count += 1;
        assert_eq!(self.card.counters().get(counter).unwrap(), *count, "counter {counter}, {frame:02x?}");
    }

    /// The same as `process` says.
    fn agrees(&mut self, table: &RuleTable, nic: u8, frame: &[u8]) {
        let mut after = frame.to_vec();
        let (verdict, counter) = translated(process(table, nic, &mut after), nic);
        self.check(frame, verdict, &after, counter);
    }

    /// No counter has risen but those expected.
    fn finish(self) {
        let counts: Vec<u64> =
            (0..self.counts.len() as u32).map(|index| self.card.counters().get(index).unwrap()).collect();
        assert_eq!(counts, self.counts);
    }
}

/// What the program has to do where the golden model says `verdict`: its own verdict and its counter.
fn translated(verdict: Verdict, own: u8) -> (i32, u32) {
    match verdict {
        Verdict::Fast { nic, high } => (action::XDP_REDIRECT, forwarded(nic, high)),
        Verdict::Slow { high } => (action::XDP_PASS, forwarded(own, high)),
        Verdict::Drop(DropReason::TtlExpired) => (action::XDP_DROP, DROP_TTL),
        Verdict::Drop(DropReason::BadChecksum) => (action::XDP_DROP, DROP_CHECKSUM),
        Verdict::Drop(DropReason::Truncated) => (action::XDP_DROP, DROP_TRUNCATED),
    }
}

#[test]
fn the_program_does_to_the_corpus_what_the_golden_model_says() {
    let Some(ports) = full_map() else { return };
    for setup in corpus::setups() {
        let mut subject = Subject::new(&setup.table, setup.nic, &ports);
        for frame in corpus::frames(u64::from(setup.nic) + 11).take(4_000) {
            subject.agrees(&setup.table, setup.nic, &frame);
        }
        subject.finish();
    }
}

#[test]
fn rules_of_any_shape_compile_to_what_they_say() {
    let Some(ports) = full_map() else { return };
    let mut random = Random::new(23);
    for seed in 0..40 {
        let nic = random.below(4) as u8;
        let table = corpus::random_table(&mut random, nic);
        let mut subject = Subject::new(&table, nic, &ports);
        // Behind the edge cases, which are the same in every stream.
        for frame in corpus::frames(seed).skip(1_500).take(300) {
            subject.agrees(&table, nic, &frame);
        }
        subject.finish();
    }
}

#[test]
fn the_largest_table_loads_and_agrees() {
    let Some(ports) = full_map() else { return };
    let mut table = corpus::table();
    for nic in 4..MAX_NICS as u8 {
        let value = 0x0a00_0400 | u32::from(nic - 4) << 6;
        table.nics.push(Mac([2, 0, 0, 0, 0, nic]));
        let to = Target::Nic { nic, next_hop: Mac([2, 0, 0, 0, 1, nic]) };
        table.routes.push(Route { value, mask: 0xffff_ffc0, to });
    }
    let mut random = Random::new(3);
    table.classes = std::array::from_fn(|_| corpus::random_table(&mut random, 0).host_class);
    for nic in [0, 7] {
        table.nics.swap(0, nic);
        let mut subject = Subject::new(&table, nic as u8, &ports);
        for frame in corpus::frames(5).take(3_000) {
            subject.agrees(&table, nic as u8, &frame);
        }
        subject.finish();
        table.nics.swap(0, nic);
    }
}

#[test]
fn without_an_interface_the_frame_goes_to_the_host_as_it_came() {
    let Some(ports) = full_map() else { return };
    ports.remove(&2u32.to_ne_bytes()).unwrap();
    let table = corpus::table();
    let mut subject = Subject::new(&table, 0, &ports);
    let mut fell_back = 0;
    for frame in corpus::frames(3).take(4_000) {
        let mut after = frame.clone();
        let verdict = process_reaching(&table, 0, !(1 << 2), &mut after);
        let (action, counter) = translated(verdict, 0);
        subject.check(&frame, action, &after, counter);
        // What would have been forwarded there, or dropped on the way, is counted as without a port too.
        if verdict != process(&table, 0, &mut frame.clone()) {
            subject.counts[NO_PORT as usize] += 1;
            fell_back += 1;
        }
    }
    subject.finish();
    assert!(fell_back > 200, "{fell_back}");
}

#[test]
fn counters_add_up_and_bear_the_registers_names() {
    let Some(ports) = full_map() else { return };
    let card = Card::load(&corpus::table(), 0, &ports).unwrap();
    for frame in corpus::frames(4).take(3_000) {
        card.program().test_run(&frame, None, 1).unwrap();
    }
    let counters = card.counters().read().unwrap();
    let sum = |of: &dyn Fn(&str) -> bool| counters.iter().filter(|c| of(&c.0)).map(|c| c.1).sum::<u64>();
    let get = |name: &str| sum(&|other| other == name);
    assert_eq!(get("rx_frames"), 3_000);
    let registers: Vec<&str> =
        causeway_nic_driver::registers::COUNTER_TABLE.iter().map(|counter| counter.name).collect();
    let apart = ["rx_frames", "slow_no_port"];
    assert_eq!(sum(&|name| !apart.contains(&name) && registers.contains(&name)), 3_000);
    assert_eq!(sum(&|name| name.starts_with("rx_nic")), get("rx_fast"));
    assert_eq!(sum(&|name| name.starts_with("rx_host")), get("rx_slow"));
    for name in ["drop_ttl", "drop_truncated", "rx_nic1_high", "rx_nic2_high", "rx_nic3_low", "rx_host_high"]
    {
        assert!(get(name) > 0, "{name} in {counters:?}");
    }
}

#[test]
fn a_table_that_fails_its_checks_is_refused() {
    let Some(ports) = full_map() else { return };
    let mut table = corpus::table();
    assert!(matches!(Card::load(&table, 4, &ports), Err(Error::Rules(_))));
    table.routes[0].to = Target::Nic { nic: 9, next_hop: Mac::default() };
    assert!(matches!(Card::load(&table, 0, &ports), Err(Error::Rules(_))));
}
