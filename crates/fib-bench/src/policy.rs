//! What policy rules cost: `fib-bench policy`.

use causeway_fib::papers::policy::{Action, Policy, PolicyKey, Rule};
use causeway_fib::{Compact16, Lookup, Prefix, Structure, Table};

use crate::contender::cpu_time;
use crate::random::Random;
use crate::tables::Route;

const PACKETS: usize = 1 << 16;
const ROUNDS: usize = 5;

/// Prints nanoseconds a packet in batches of 256 for more and more rules before the one that matches, and for the
/// table alone.
pub fn run(routes: &[Route<u32>]) -> Result<(), String> {
    let full = |error: causeway_fib::FibError| error.to_string();
    let mut random = Random(31);
    let keys: Vec<PolicyKey<u32>> = (0..PACKETS)
        .map(|_| {
            let prefix = routes[random.below(routes.len())].0;
            let destination = prefix.first() | (random.next() as u32 & (prefix.last() ^ prefix.first()));
            PolicyKey { source: random.next() as u32, destination, mark: 7, ..PolicyKey::default() }
        })
        .collect();
    let destinations: Vec<u32> = keys.iter().map(|key| key.destination).collect();
    let mut policy = Policy::<u32, Compact16>::new().map_err(full)?;
    let table = policy.table(1).ok_or("table 1 exists")?;
    table.load(routes).map_err(full)?;
    let mut results = [0; 256];
    let alone = best(|| {
        destinations.chunks(256).for_each(|some| table.lookup_batch(some, &mut results));
    });
    println!("{} alone: {alone:.2} ns a packet in batches of 256", <Compact16 as Structure<u32>>::NAME);
    for count in [1, 16, 256, 1024, 4096, 16_384] {
        // Rules by source, mark and interface that nearly no packet meets, and one at the end for the rest.
        let rule = |number: u32| Rule {
            priority: number,
            source: Prefix::new((number << 18).reverse_bits(), 24).ok(),
            tos: None,
            mark: number.is_multiple_of(2).then_some((number, u32::MAX)),
            interface: number.is_multiple_of(3).then_some(number % 64),
            action: Action::Table(2),
        };
        let mut rules: Vec<_> = (1..count).map(rule).collect();
        let any = Rule {
            priority: u32::MAX,
            source: None,
            tos: None,
            mark: None,
            interface: None,
            action: Action::Table(1),
        };
        rules.push(any);
        policy.set_rules(&rules).map_err(full)?;
        let ns = best(|| keys.chunks(256).for_each(|some| policy.lookup_batch(some, &mut results)));
        println!("{count:>6} rules: {ns:.2} ns a packet, {:.2} more than the table alone", ns - alone);
    }
    Ok(())
}

/// The least of some rounds, in nanoseconds a packet.
fn best(mut pass: impl FnMut()) -> f64 {
    let mut round = || {
        let start = cpu_time();
        pass();
        (cpu_time() - start).as_nanos() as f64 / PACKETS as f64
    };
    (0..=ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}
