//! Random faults, several at a time, from a seed each: the rules of `faults` hold whatever happens, and the router is
//! whole again afterwards.
//!
//! `NIC_SOAK_FIRST=200 NIC_SOAK_CASES=100 cargo test -p causeway-nic-sim --test soak -- --nocapture` runs
//! others of them, and `NIC_SOAK_SEED=17` that one alone. The seed of the case that runs stands in `soak.seed` of cargo's
//! folder for test files, because a failed assertion of the Verilog ends the process.

#[allow(dead_code)] // Each test file uses its own part.
mod common;

use std::path::Path;

use causeway_nic_driver::corpus::Random;
use causeway_nic_driver::registers as reg;
use causeway_nic_sim::card::Edges;
use causeway_nic_sim::faults::Fault;
use causeway_nic_sim::scenario::{ResponsePolicy, scheduler_register};
use causeway_nic_sim::testbed::{PCI_66_PS, PCI_133_PS};
use common::{CARDS, CORE, Router, mesh, setup};

/// Seeds that once found something. 264: card 1 loses the bus in the very cycle in which it has taken a packet's last word,
/// so that its sender counts as lost what leaves; 30 ns before or after all is counted exactly.
const KEPT: [u64; 1] = [264];
/// Cases in CI, beside those.
const CASES: u64 = 8;
/// When the last incident has begun.
const BEGUN_NS: u64 = 400_000;

/// What one case does.
#[derive(Debug, Default)]
struct Case {
    faults: Vec<(u64, Fault)>,
    end_ns: u64,
    /// Cards to which something is done.
    victims: u8,
    /// Resets of packet logic, and of a side of the MAC.
    resets: [u64; 2],
    /// Cards whose transmission may be cut off.
    cut: u8,
    /// Something was done to the bus, or to the host, that everybody notices.
    shared: bool,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        let mut case = Self::default();
        for _ in 0..1 + random.below(5) {
            case.add_incident(random);
        }
        case
    }

    fn add_incident(&mut self, random: &mut Random) {
        let nic = random.below(CARDS.into()) as u8;
        let begin_ns = 10_000 + random.below(BEGUN_NS);
        let longest_ns = [20_000, 300_000][random.below(2) as usize];
        let end_ns = begin_ns + 5_000 + random.below(longest_ns);
        let mut faults = Vec::new();
        let mut add = |at_ns, fault| faults.push((at_ns, fault));
        let mut victim = true;
        match random.below(10) {
            0 | 1 => {
                add(begin_ns, Fault::Unplug(nic));
                add(end_ns, Fault::Plug(nic));
            }
            2 | 3 => {
                // The driver's part would go wrong if the same card were reset again before it.
                let again = |(_, fault): &(u64, Fault)| matches!(fault, Fault::SetUp(n) if *n == nic);
                if self.faults.iter().any(again) {
                    return;
                }
                add(begin_ns, Fault::Reset(nic, CORE));
                add(begin_ns + 200 + random.below(2_000), Fault::Release(nic));
                add(end_ns, Fault::SetUp(nic));
                self.resets[0] += 1;
                self.cut |= 1 << nic;
            }
            4 => {
                let side = random.below(2) == 0;
                add(begin_ns, Fault::Reset(nic, Edges { rx: side, tx: !side, ..Edges::default() }));
                add(begin_ns + 30 + random.below(3_000), Fault::Release(nic));
                self.resets[1] += 1;
                self.cut |= 1 << nic;
            }
            5 => {
                add(begin_ns, Fault::Starve(nic));
                add(end_ns, Fault::Feed(nic));
            }
            6 => {
                add(begin_ns, Fault::StopReceiveClock(nic));
                add(end_ns, Fault::StartReceiveClock(nic));
            }
            7 => {
                let count = 1 + random.below(3) as u32;
                add(
                    begin_ns,
                    if random.below(2) == 0 { Fault::IgnoreReads(count) } else { Fault::AnswerLate(count) },
                );
                victim = false;
                self.shared = true;
            }
            8 => {
                for _ in 0..1 + random.below(8) {
                    let at_ns = begin_ns + random.below(end_ns - begin_ns);
                    let bit = random.below(64);
                    add(at_ns, Fault::CorruptWords(1 + bit as u32 % 3, 1 << bit));
                }
                victim = false;
                self.shared = true;
            }
            _ => add(begin_ns, Fault::Write(nic, (reg::PEER_RESYNC, random.below(8)))),
        }
        self.faults.extend(faults);
        self.end_ns = self.end_ns.max(end_ns);
        if victim {
            self.victims |= 1 << nic;
        }
    }
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let mut setup = setup(seed);
    setup.bus_extra_cycles = [1, 5, 11][random.below(3) as usize];
    setup.bus_period_ps = [PCI_66_PS, PCI_133_PS][random.below(2) as usize];
    let policy = ResponsePolicy::ALL[random.below(4) as usize];
    setup.registers.push((reg::SCHEDULER, scheduler_register(policy)));
    setup.registers.push((reg::GRANT_MIN_WORDS, [0, 191, 1_920][random.below(3) as usize]));
    let case = Case::new(&mut random);
    println!("seed {seed}: {policy:?} {case:?}");
    let mut router = Router::new(&setup, &mesh(0.05 + 0.01 * random.below(30) as f64));
    router.schedule(&case.faults);
    router.run(case.end_ns);
    router.heal();
    let vanished =
        case.faults.iter().filter(|(_, fault)| matches!(fault, Fault::Unplug(_) | Fault::Reset(..)));
    let done = router.finish_after(vanished.count() as u64);
    assert!(
        done.uncounted <= 1_500 * case.resets[0] + 4 * case.resets[1],
        "{} {:?}",
        done.uncounted,
        done.counters
    );
    let errors = done.testbed.line_errors.iter().filter(|e| case.cut >> e.0 & 1 == 0);
    assert_eq!(errors.count(), 0, "{:?}", done.testbed.line_errors);
    if !case.shared {
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            if case.victims & (1 << a | 1 << b) == 0 {
                assert_eq!(done.lost_between(a, b), 0, "{a} {b} {:?}", done.counters);
            }
        }
    }
}

#[test]
fn whatever_fails_nothing_comes_wrong_and_all_is_well_afterwards() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = match number("NIC_SOAK_SEED") {
        Some(seed) => vec![seed],
        None => {
            let first = number("NIC_SOAK_FIRST").unwrap_or(0);
            KEPT.into_iter()
                .chain((first..).take(number("NIC_SOAK_CASES").unwrap_or(CASES) as usize))
                .collect()
        }
    };
    for seed in cases {
        std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak.seed"), seed.to_string()).unwrap();
        run(seed);
    }
}
