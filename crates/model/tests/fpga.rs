//! The router of FPGA with commercial cards: bound by the processor, and by half of the bus.

use causeway_model::figures::{Figure, Found};
use causeway_model::machine::Machine;
use causeway_model::run::{Effort, Outcome};

fn found(machine: &Machine) -> Found {
    Figure::find("FPGA-4").expect("a figure").run(machine, 1, Effort::SHORT, None).expect("enough ports")
}

fn ends(found: &Found) -> (&Outcome, &Outcome) {
    let all = found.curve("commercial cards, every wire full");
    (&all[0], &all[all.len() - 1])
}

/// What of the time the processor works, and the bus is held.
fn busy(outcome: &Outcome) -> (f64, f64) {
    (outcome.classes.iter().sum(), outcome.buses[0])
}

#[test]
fn short_frames_are_bound_by_the_processor_and_long_ones_by_the_bus() {
    let machine = Machine::fpga().expect("the machine of the paper");
    let with = found(&machine);
    let (short, long) = ends(&with);
    assert!(busy(short).0 > 0.99 && busy(short).1 < 0.6, "{:?}", busy(short));
    assert!(busy(long).1 > 0.97, "{:?}", busy(long));
    // On a bus that is half as fast, the one stays and the other is halved.
    let mut slow = machine.clone();
    slow.bus.values_mut().for_each(|bus| bus.clock.value /= 2);
    let halved = found(&slow);
    let (slow_short, slow_long) = ends(&halved);
    assert!(slow_short.rate_fps() > 0.95 * short.rate_fps());
    let part = slow_long.rate_fps() / long.rate_fps();
    assert!((0.45..0.6).contains(&part), "{part}");
    // Who offers no more than the bus carries twice has more of it.
    let most = with.curve("commercial cards, offered 4 Gbit/s").last().expect("a point");
    assert!(most.rate_fps() > 1.1 * long.rate_fps(), "{} {}", most.rate_fps(), long.rate_fps());
    // On a bus that carries all of it that is no advantage.
    let mut wide = machine;
    wide.bus.values_mut().for_each(|bus| bus.width.value *= 8);
    let unbound = found(&wide);
    let (_, long) = ends(&unbound);
    let most = unbound.curve("commercial cards, offered 4 Gbit/s").last().expect("a point");
    assert!(most.rate_fps() < long.rate_fps(), "{} {}", most.rate_fps(), long.rate_fps());
}
