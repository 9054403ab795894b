//! What policy rules cost: `fib-bench policy`.

use std::num::NonZeroU8;

use causeway_fib::policy::{Action, Policy, PolicyKey, Rule};
use causeway_fib::{Compact16, Lookup, Prefix, Structure, Table};

use crate::Result;
use crate::contender::cpu_time;
use crate::random::Random;
use crate::tables::Route;

const MAIN: NonZeroU8 = NonZeroU8::MIN;
const LOCAL: NonZeroU8 = NonZeroU8::new(3).unwrap();
const PACKETS: usize = 1 << 18;
const ROUNDS: usize = 15;
const COUNTS: [u32; 6] = [1, 16, 256, 1024, 4096, 16_384];

/// A rule that selects everything.
const ANY: Rule<u32> = Rule {
    priority: u32::MAX,
    source: None,
    tos: None,
    mark: None,
    interface: None,
    action: Action::Table(1),
};

type Keys = Vec<PolicyKey<u32>>;

/// Rules and the packets to put through them.
struct Case {
    name: &'static str,
    rules: fn(u32) -> Vec<Rule<u32>>,
    /// Gives packets their sources, marks, ToS and interfaces, by the number of rules and of the packet.
    dress: fn(&mut Random, u32, usize, &mut PolicyKey<u32>),
}

const CASES: [Case; 4] = [
    Case {
        name: "rules by source, mark and interface that hardly a packet meets, and one for the rest",
        rules: unmet,
        dress: |_, _, _, key| key.mark = 7,
    },
    Case {
        name: "a rule for each customer's /24, packets from customers",
        rules: |count| (1..count).map(customer).chain([ANY]).collect(),
        dress: |random, count, _, key| {
            let number = random.below(count as usize) as u32;
            key.source = customer(number).source.map_or(0, Prefix::first) | (random.next() as u32 & 255);
        },
    },
    Case {
        name: "a local table asked first, customers by source and by interface, packets from customers",
        rules: |count| {
            let local = Rule { priority: 0, action: Action::Table(3), ..ANY };
            let by_interface = |number| Rule { source: None, interface: Some(number), ..customer(number) };
            let each =
                |number: u32| if number.is_multiple_of(4) { by_interface(number) } else { customer(number) };
            std::iter::once(local).chain((1..count).map(each)).chain([ANY]).collect()
        },
        dress: |random, count, packet, key| {
            let number = random.below(count as usize) as u32;
            key.source = customer(number).source.map_or(0, Prefix::first) | (random.next() as u32 & 255);
            key.tos = random.next() as u8;
            // Batches come from one interface each.
            key.interface = packet as u32 / 256 % 64;
        },
    },
    Case {
        name: "crafted: every combination of fields under 32 nested sources, all packets different",
        rules: crafted,
        dress: |random, _, _, key| {
            key.source = u32::MAX;
            key.tos = random.next() as u8;
            key.mark = random.next() as u32;
            key.interface = random.below(64) as u32;
        },
    },
];

fn unmet(count: u32) -> Vec<Rule<u32>> {
    let rule = |number: u32| Rule {
        priority: number,
        source: Prefix::new((number << 18).reverse_bits(), 24).ok(),
        tos: None,
        mark: number.is_multiple_of(2).then_some((number, u32::MAX)),
        interface: number.is_multiple_of(3).then_some(number % 64),
        action: Action::Table(2),
    };
    (1..count).map(rule).chain([ANY]).collect()
}

/// Customer `number`'s /24 out of 10.0.0.0/8, neighbours side by side.
fn customer(number: u32) -> Rule<u32> {
    Rule { priority: number, source: Prefix::new(0x0a00_0000 | number << 8, 24).ok(), ..ANY }
}

/// Rules that a packet from the last address nearly meets: each asks for one value that is wrong.
fn crafted(count: u32) -> Vec<Rule<u32>> {
    let rule = |number: u32| {
        let fields = number / 32;
        Rule {
            priority: number,
            source: Some(Prefix::truncated(u32::MAX, 1 + (number % 32) as u8)),
            tos: (fields & 1 != 0).then_some((number >> 3) as u8),
            mark: Some((number, u32::MAX >> (fields >> 1 & 7))),
            interface: Some(1_000_000 + number),
            action: Action::Table(2),
        }
    };
    (1..count).map(rule).chain([ANY]).collect()
}

/// Prints nanoseconds a packet in batches of 256 and one by one, for more and more rules and for the table alone.
pub fn run(routes: &[Route<u32>]) -> Result<()> {
    let mut policy = Policy::<u32, Compact16>::new()?;
    policy.table(MAIN).and_then(|table| table.load(routes))?;
    // A local table: no packet that is to be forwarded finds anything there.
    policy.table(LOCAL).and_then(|table| table.insert(Prefix::host(0x7f00_0001), 1))?;
    for case in CASES {
        println!("{}; ns a packet in batches of 256 / one by one:", case.name);
        for count in COUNTS {
            let rules = (case.rules)(count);
            let start = std::time::Instant::now();
            policy.set_rules(&rules)?;
            let compile_ms = start.elapsed().as_secs_f64() * 1e3;
            let mut random = Random::new(31);
            let mut keys = packets(routes, &mut random);
            let numbered = keys.iter_mut().enumerate();
            numbered.for_each(|(packet, key)| (case.dress)(&mut random, count, packet, key));
            let [batch, single, batch_alone, single_alone] = measure(&mut policy, &keys);
            println!(
                "{count:>6} rules: {batch:.2} / {single:.2}, {:.2} / {:.2} more than {} alone; compiled in {compile_ms:.1} ms",
                batch - batch_alone,
                single - single_alone,
                <Compact16 as Structure<u32>>::NAME
            );
        }
    }
    Ok(())
}

/// Packets to what the routes cover, from anywhere.
fn packets(routes: &[Route<u32>], random: &mut Random) -> Keys {
    (0..PACKETS)
        .map(|_| {
            let prefix = routes[random.below(routes.len())].0;
            let destination = prefix.first() | (random.next() as u32 & (prefix.last() ^ prefix.first()));
            PolicyKey { source: random.next() as u32, destination, ..PolicyKey::default() }
        })
        .collect()
}

/// Medians of some rounds of batches, single packets, and the same of the table alone, in nanoseconds a packet.
/// All start from the packets' keys.
fn measure(policy: &mut Policy<u32, Compact16>, keys: &[PolicyKey<u32>]) -> [f64; 4] {
    let mut results = [0; 256];
    let mut destinations = [0; 256];
    let mut rounds: [Vec<f64>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let policy_batch = timed(|| {
            keys.chunks(256).for_each(|some| policy.lookup_batch(some, &mut results));
        });
        let policy_single = timed(|| {
            keys.iter().zip((0..256).cycle()).for_each(|(key, place)| results[place] = policy.lookup(key));
        });
        let Ok(table) = policy.table(MAIN) else { break };
        let batch = timed(|| {
            for some in keys.chunks(256) {
                destinations.iter_mut().zip(some).for_each(|(to, key)| *to = key.destination);
                table.lookup_batch(&destinations[..some.len()], &mut results);
            }
        });
        let single = timed(|| {
            let places = keys.iter().zip((0..256).cycle());
            places.for_each(|(key, place)| results[place] = table.lookup(key.destination));
        });
        let round = [policy_batch, policy_single, batch, single];
        rounds.iter_mut().zip(round).for_each(|(rounds, ns)| rounds.push(ns));
        std::hint::black_box(&results);
    }
    rounds.map(|mut ns| {
        ns.sort_by(f64::total_cmp);
        ns.get(ns.len() / 2).copied().unwrap_or(f64::NAN)
    })
}

fn timed(pass: impl FnOnce()) -> f64 {
    let start = cpu_time();
    pass();
    (cpu_time() - start).as_nanos() as f64 / PACKETS as f64
}
