//! The router of CvL: what its figures look like, and why. Each shape has its ablation.

use causeway_engine::reception::Mechanism;
use causeway_model::event::MILLISECOND;
use causeway_model::figures::{Figure, Found};
use causeway_model::link::Link;
use causeway_model::machine::Machine;
use causeway_model::router::{Flow, Router, Scenario};
use causeway_model::run::{Effort, Outcome, run};
use causeway_model::software::linux::{Drop, Graph, Role, Setup, Without};

fn machine() -> Machine {
    Machine::cvl().expect("the machine of the paper")
}

fn figure(name: &str, machine: &Machine) -> Found {
    Figure::find(name).expect("a figure").run(machine, 1, Effort::SHORT, None).expect("enough ports")
}

/// The rates of a curve, thousands of packets a second.
fn kpps(found: &Found, name: &str) -> Vec<f64> {
    found.curve(name).iter().map(|one| one.rate_fps() / 1e3).collect()
}

fn busy(outcome: &Outcome) -> f64 {
    outcome.classes.iter().sum()
}

#[test]
fn to_touch_a_header_costs_a_miss_unless_it_is_prefetched() {
    let found = figure("CvL-4", &machine());
    let [touched, untouched, click] =
        ["linux udpcount", "linux no touch", "click udpcount"].map(|name| kpps(&found, name));
    for n in 0..8 {
        assert!(touched[n] < 0.85 * untouched[n], "{n}: {} {}", touched[n], untouched[n]);
        assert!(n == 0 || untouched[n] < 0.6 * click[n], "{n}: {} {}", untouched[n], click[n]);
    }
    assert!(touched[7] < 0.98 * touched[0] && untouched[7] < 0.98 * untouched[0], "more cards cost a little");
    assert!(click[0] > 1_487.0 && click[1] > 2.0 * 1_450.0, "{click:?}");
    assert!(click[1..].iter().all(|one| (one / click[7] - 1.0).abs() < 0.05), "{click:?}");
    // Without the wait for memory, there is nothing to touch and nothing to prefetch.
    let mut near = machine();
    near.memory.latency.value = 0;
    let found = figure("CvL-4", &near);
    let parted = kpps(&found, "linux udpcount")[7] / kpps(&found, "linux no touch")[7];
    assert!(parted > 0.95, "{parted}");
    let mut blind = machine();
    blind.click.as_mut().expect("there").prefetch.value = 0;
    let without = kpps(&figure("CvL-4", &blind), "click udpcount");
    assert!(without[7] < 0.75 * click[7], "{without:?}");
    // More cards cost nothing where their rings and buffers fit into the cache.
    let mut large = machine();
    large.processor.cache.value *= 64;
    let untouched = kpps(&figure("CvL-4", &large), "linux no touch");
    assert!(untouched[7] > 0.995 * untouched[0], "{untouched:?}");
}

#[test]
fn what_is_received_is_shared_equally() {
    let found = figure("CvL-4", &machine());
    for name in ["linux udpcount", "click udpcount"] {
        let last = found.curve(name).last().expect("a point");
        assert!(busy(last) > 0.99, "the processor is the limit");
        let polls = &last.polls;
        let mean = polls.iter().sum::<f64>() / polls.len() as f64;
        assert!(polls.iter().all(|one| (one / mean - 1.0).abs() < 0.1), "{name}: {polls:?}");
        assert!(uneven(last) < 0.1, "{name}: {:?}", last.flows_fps);
    }
    // Without turns the first cards have more than the last ones: handlers of interrupts that count what they take come in the
    // order of the cards, and Click begins with its first card again.
    let without = |name: &str, change: &dyn Fn(&mut Setup)| {
        let (curve, _) = found.curves.iter().find(|(curve, _)| curve.name == name).expect("a curve");
        let mut scenario = curve.points[7].1.clone();
        change(&mut scenario.kernel);
        run(&machine(), &scenario, 1, Effort::SHORT, None).expect("ports")
    };
    let by_interrupts = without("linux udpcount", &|kernel| {
        kernel.mechanisms = vec![Mechanism::Interrupt; 8];
        kernel.without.backlog = true;
    });
    let first_again = without("click udpcount", &|kernel| kernel.without.turns = true);
    for outcome in [by_interrupts, first_again] {
        assert!(uneven(&outcome) > 1.0, "{:?}", outcome.flows_fps);
    }
}

/// How far the card with the largest share is from the mean, as a part of it.
fn uneven(outcome: &Outcome) -> f64 {
    let all = &outcome.flows_fps;
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    all.iter().copied().fold(0.0, f64::max) / mean.max(1.0) - 1.0
}

#[test]
fn one_card_is_bound_by_its_reads_and_many_by_the_processor() {
    let found = figure("CvL-5", &machine());
    let (linux, click) = (kpps(&found, "linux packetgen"), kpps(&found, "click udpgen"));
    assert!(
        linux[1..].windows(2).all(|pair| pair[1] < 1.005 * pair[0]) && linux[7] < 0.95 * linux[1],
        "{linux:?}"
    );
    let nearly = |n: usize| click[n - 1] / click[0] / n as f64;
    assert!(nearly(3) > 0.8 && nearly(7) > 0.75 && nearly(7) < 0.9, "nearly linear: {click:?}");
    assert!(busy(&found.curve("linux packetgen")[7]) > 0.99);
    let mut fast = machine();
    fast.software.generate.value /= 4;
    let unbound = kpps(&figure("CvL-5", &fast), "linux packetgen");
    assert!(unbound[7] > 1.5 * linux[7], "it was the processor: {unbound:?}");
    // What bounds one card is what a read waits for.
    let mut near = machine();
    near.bus.values_mut().for_each(|bus| bus.read_latency.value /= 2);
    let sooner = kpps(&figure("CvL-5", &near), "click udpgen");
    assert!(sooner[0] > 1.4 * click[0], "{} {}", sooner[0], click[0]);
}

#[test]
fn linux_transfers_what_it_can_receive_and_click_as_much_again() {
    let found = figure("CvL-6a", &machine());
    let (linux, click) = (kpps(&found, "linux"), kpps(&found, "click"));
    assert!(linux[0] < 750.0 && (linux[0] / click[0] - 1.0).abs() < 0.1, "the card that sends is the limit");
    let first = &found.curve("linux")[0];
    let dropped = |drop: Drop| first.drops_fps[drop as usize];
    assert!(
        dropped(Drop::Queue) > 1.2 * (dropped(Drop::Ring) + dropped(Drop::Fifo)),
        "and what it cannot send is dropped"
    );
    assert!(linux[1] > 1.5 * linux[0] && linux[3] < 1.02 * linux[1], "{linux:?}");
    assert!(click[1] > 1.8 * click[0] && click[2] > 2.6 * click[0] && click[3] < 3.2 * click[0], "{click:?}");
    // With cards that read sooner, one flow is as many as the processor takes.
    let mut near = machine();
    near.bus.values_mut().for_each(|bus| bus.read_latency.value = 0);
    let sooner = kpps(&figure("CvL-6a", &near), "linux");
    assert!(sooner[0] > 1.3 * linux[0], "{sooner:?}");
    // Click is ahead by what it does not do: with less of that Linux follows.
    let mut easy = machine();
    let s = &mut easy.software;
    (s.receive.value, s.transmit.value, s.poll.value, s.clean.value) = (0, 0, 0, 0);
    let light = kpps(&figure("CvL-6a", &easy), "linux");
    assert!(light[3] > 1.4 * linux[3] && light[3] < click[3], "{light:?} {linux:?}");
}

#[test]
fn long_frames_both_ways_are_bound_by_the_buses() {
    let found = figure("CvL-6b", &machine());
    for name in ["linux", "click"] {
        let one_way = found.near(&format!("{name}, one way"), 1_518.0);
        assert!(one_way.rate_fps() > 0.999 * one_way.offered_fps, "four gigabits are carried");
        let both_ways = found.near(&format!("{name}, both ways"), 1_518.0);
        let last = both_ways.rate_fps() / both_ways.offered_fps;
        assert!((0.55..0.85).contains(&last), "{name}: {last}");
        assert!(both_ways.buses.iter().all(|part| *part > 0.95), "{:?}", both_ways.buses);
    }
    let mut wide = machine();
    wide.bus.values_mut().for_each(|bus| bus.width.value *= 4);
    let found = figure("CvL-6b", &wide);
    let both_ways = found.near("linux, both ways", 1_518.0);
    assert!(both_ways.rate_fps() > 0.99 * both_ways.offered_fps);
}

#[test]
fn to_look_at_the_address_costs_a_third_and_more() {
    let (transfer, routing) = (figure("CvL-6a", &machine()), figure("CvL-7", &machine()));
    let (without, with) = (kpps(&transfer, "linux")[2], kpps(&routing, "linux")[2]);
    assert!(with < 0.7 * without && with > 0.4 * without, "{with} {without}");
    let mut easy = machine();
    easy.software.route.value = 0;
    easy.memory.latency.value = 0;
    let with = kpps(&figure("CvL-7", &easy), "linux")[2];
    assert!(with > 0.95 * without, "{with} {without}");
}

#[test]
fn every_packet_of_click_ends_in_one_counted_place() {
    for (graph, bytes, rate_fps) in [
        (Graph::Count, 64, 1.4e6),
        (Graph::Transfer, 64, 1.4e6),
        (Graph::Transfer, 1_518, 8e4),
        (Graph::Route, 64, 3e5),
    ] {
        let link = Link { rate_bps: 1_000_000_000 };
        let flows = [(0, 1), (1, 0), (2, 3)].map(|(from, to)| Flow { from, to: vec![to], rate_fps });
        let kernel = Setup {
            mechanisms: Vec::new(),
            budget: 300,
            recycling: true,
            role: Role::Click(graph),
            without: Without::default(),
        };
        let kernel = Setup { mechanisms: vec![Mechanism::Polling; 4], ..kernel };
        let scenario =
            Scenario { links: vec![link; 4], flows: flows.into(), bytes, moderated: false, kernel };
        let mut router = Router::new(&machine(), &scenario, 3, None).expect("ports");
        for stop in (1..20u64).map(|n| n * 377_777_777) {
            router.run(stop.min(10 * MILLISECOND));
            let stack = &router.kernel().stack;
            let arrived: u64 = router.arrived.iter().sum();
            let ended = router.left.iter().sum::<u64>() + stack.counted + stack.drops.iter().sum::<u64>();
            assert_eq!(arrived, ended + router.held(), "{graph:?} {bytes} at {stop}");
        }
        let nics = &router.hardware().nics;
        assert!(nics.iter().all(|nic| nic.interrupts == 0), "it polls");
        assert!(router.hardware().buffers.made < 4 * 256 + 4 * 1_300, "buffers are given back");
    }
}

#[test]
fn a_packet_of_click_is_followed() {
    let figure = Figure::find("CvL-7").expect("a figure");
    let found = figure.run(&machine(), 1, Effort::SHORT, Some(30)).expect("enough ports");
    let way = found.curve("click")[0].trace.join("\n");
    assert!(
        way.contains("has come in") && way.contains("is taken from the ring") && way.contains("has left"),
        "{way}"
    );
}
