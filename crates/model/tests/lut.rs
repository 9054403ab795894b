//! The router of LUT: what its figures look like, and why. Each shape has its ablation.

use causeway_engine::reception::Mechanism;
use causeway_model::figures::{Figure, Found};
use causeway_model::machine::Machine;
use causeway_model::run::{Effort, Outcome, run};
use causeway_model::software::linux::{Class, Setup};

fn machine() -> Machine {
    Machine::lut().expect("the machine of the paper")
}

fn figure(name: &str, machine: &Machine) -> Found {
    Figure::find(name).expect("a figure").run(machine, 1, Effort::SHORT, None).expect("enough ports")
}

fn rates(found: &Found, of: &str, numbers: &[u32]) -> Vec<f64> {
    numbers.iter().map(|n| found.last_kpps(&format!("{n} {of}"))).collect()
}

const SOURCES: [u32; 5] = [1, 256, 1_024, 8_192, 16_384];

#[test]
fn sources_cost_what_their_entries_cost_and_nothing_with_the_destination_as_key() {
    let keyed_by_flow = figure("LUT-2", &machine());
    let found = rates(&keyed_by_flow, "sources", &SOURCES);
    assert!(found.windows(2).all(|pair| pair[1] < 0.998 * pair[0]), "ever less: {found:?}");
    assert!(found[4] < 0.8 * found[0], "{found:?}");
    // The more sources, the longer packets are inside where the processor is the limit.
    let delay = |sources: u32| keyed_by_flow.near(&format!("{sources} sources"), 1.4e6).delay_ns;
    assert!(delay(16_384) > 1.1 * delay(1), "{} {}", delay(1), delay(16_384));
    let keyed_by_destination = figure("LUT-9", &machine());
    let found = rates(&keyed_by_destination, "sources", &SOURCES);
    assert!(found.iter().all(|one| (one / found[0] - 1.0).abs() < 0.005), "all the same: {found:?}");
}

#[test]
fn without_chains_and_misses_sources_cost_nothing() {
    let mut near = machine();
    (near.memory.latency.value, near.memory.rate.value) = (0, 10_000_000_000_000);
    let lookup = near.lookup.as_mut().expect("there");
    // With eight entries of a bucket, four steps more than with one: half of the others, on the average.
    assert_eq!(16_384 / lookup.buckets.value, 8);
    lookup.step.value = 300;
    let found = rates(&figure("LUT-2", &near), "sources", &[1, 16_384]);
    let steps = (1e6 / found[1] - 1e6 / found[0]) / (300.0 / 2.4);
    assert!((3.5..4.5).contains(&steps), "{steps}: {found:?}");
    near.lookup.as_mut().expect("there").step.value = 0;
    let found = rates(&figure("LUT-2", &near), "sources", &[1, 16_384]);
    assert!(found[1] > 0.97 * found[0], "{found:?}");
    let found = rates(&figure("LUT-12", &near), "destinations", &[256, 16_384]);
    assert!(found[1] > 0.97 * found[0], "nor do destinations: {found:?}");
    let profile = figure("LUT-5", &near);
    let of_ip = |curve: &str| profile.curve(curve)[9].classes[Class::Ip as usize];
    let times = of_ip("16384 sources") / of_ip("1 sources");
    assert!(times < 1.15, "and the part of IP is what it was: {times}");
}

#[test]
fn destinations_cost_as_sources_do_where_they_are_the_key() {
    let found = rates(&figure("LUT-12", &machine()), "destinations", &[256, 1_024, 8_192, 16_384]);
    assert!(found.windows(2).all(|pair| pair[1] < 0.998 * pair[0]), "{found:?}");
}

#[test]
fn the_part_of_ip_doubles_and_that_of_interrupts_falls_to_nothing() {
    let found = figure("LUT-5", &machine());
    let part = |outcome: &Outcome, class: Class| outcome.classes[class as usize];
    let [one, many] = ["1 sources", "16384 sources"].map(|name| found.curve(name));
    let last = |curve: &[Outcome]| part(&curve[curve.len() - 1], Class::Ip);
    let times = last(many) / last(one);
    assert!((1.8..2.2).contains(&times), "{times}");
    for curve in [one, many] {
        let of_interrupts: Vec<f64> = curve.iter().map(|one| part(one, Class::Interrupt)).collect();
        assert!(of_interrupts[0] > 0.2 && of_interrupts[9] < 0.02, "{of_interrupts:?}");
        // Everything else rises up to saturation and stays.
        let of_ip: Vec<f64> = curve.iter().map(|one| part(one, Class::Ip)).collect();
        assert!(of_ip[0] < of_ip[2] && (of_ip[9] / of_ip[6] - 1.0).abs() < 0.02, "{of_ip:?}");
    }
    // Where an interrupt costs nothing, its part is nothing at any load.
    let mut quick = machine();
    let s = &mut quick.software;
    (s.interrupt.value, s.register_read.value, s.register_write.value) = (0, 0, 0);
    let found = figure("LUT-5", &quick);
    assert!(found.curve("1 sources").iter().all(|one| part(one, Class::Interrupt) < 0.001));
}

#[test]
fn a_packet_is_polled_for_twice_until_polls_find_many() {
    let found = figure("LUT-7", &machine());
    let curve = found.curve("1 sources");
    let polls: Vec<f64> = curve.iter().map(|one| one.polls[0] / one.rate_fps()).collect();
    assert!((1.98..2.02).contains(&polls[0]), "one poll finds the packet and one nothing: {polls:?}");
    assert!(polls[29] < 0.03, "{polls:?}");
    let interrupts = |port: usize| curve.iter().map(|one| one.interrupts[port]).collect::<Vec<_>>();
    for port in [0, 1] {
        let all = interrupts(port);
        let most = all.iter().copied().fold(0.0, f64::max);
        assert!(most > 100e3 && all[29] < 0.15 * most, "port {port}: {all:?}");
    }
    // The ring for transmission is cleaned at every poll that finds something, and ever fuller.
    let cleaned = |n: usize| curve[n].rate_fps() / curve[n].cleanings[1];
    assert!(cleaned(0) < 1.2 && cleaned(29) > 10.0, "{} {}", cleaned(0), cleaned(29));
    assert!(curve[0].deferred > curve[29].deferred, "deferred work is entered once and stays");
    // Without the driver's second look there is a poll for each packet.
    let at = |n: usize, change: &dyn Fn(&mut Setup)| {
        let (curve, _) = &found.curves[0];
        let mut scenario = curve.points[n].1.clone();
        change(&mut scenario.kernel);
        run(&machine(), &scenario, 1, Effort::SHORT, None).expect("ports")
    };
    let once = at(0, &|kernel| kernel.without.second_look = true);
    assert!((once.polls[0] / once.rate_fps() - 1.0).abs() < 0.02, "{}", once.polls[0] / once.rate_fps());
    // Where a poll may take one packet, none finds many, and the ring for transmission is cleaned as often.
    let singly = at(29, &|kernel| kernel.mechanisms = vec![Mechanism::Napi { quota: 1 }; 2]);
    let polls = singly.polls[0] / singly.rate_fps();
    assert!(polls > 0.9 && singly.rate_fps() < 3.0 * singly.cleanings[1], "{polls} {}", singly.cleanings[1]);
}

#[test]
fn the_radix_tree_is_ahead_and_loses_some_of_it_with_its_depth() {
    let ahead = |machine: &Machine| {
        let found = figure("LUT-11", machine);
        let of = |name: &str, routes: u32| found.last_kpps(&format!("{name}, {routes} routes"));
        [256, 1_024, 8_192, 16_384].map(|routes| of("radix", routes) - of("lc-trie", routes))
    };
    let found = ahead(&machine());
    assert!(found.windows(2).all(|pair| pair[1] < pair[0]), "{found:?}");
    assert!(found.iter().all(|one| (20.0..55.0).contains(one)), "{found:?}");
    // Where nodes cost nothing, the tree keeps what it is ahead.
    let mut flat = machine();
    flat.memory.latency.value = 0;
    let lookup = flat.lookup.as_mut().expect("there");
    (lookup.radix_node.value, lookup.trie_node.value) = (0, 0);
    let found = ahead(&flat);
    assert!((found[0] / found[3] - 1.0).abs() < 0.1, "{found:?}");
}

#[test]
fn rules_cost_what_is_read_to_find_them() {
    let rates = |machine: &Machine| rates(&figure("LUT-rules", machine), "rules", &SOURCES[1..]);
    let found = rates(&machine());
    assert!(found.windows(2).all(|pair| pair[1] < 0.998 * pair[0]), "ever less: {found:?}");
    assert!(found[3] < 0.85 * found[0], "{found:?}");
    // Where reading costs nothing, rules do not.
    let mut flat = machine();
    (flat.memory.latency.value, flat.memory.rate.value) = (0, 10_000_000_000_000);
    let lookup = flat.lookup.as_mut().expect("there");
    (lookup.radix_node.value, lookup.step.value) = (0, 0);
    let found = rates(&flat);
    assert!(found.iter().all(|one| (one / found[0] - 1.0).abs() < 0.02), "{found:?}");
}

#[test]
fn recycling_gains_half_and_more() {
    let gain = |machine: &Machine| {
        let found = figure("LUT-skb", machine);
        found.last_kpps("recycling") / found.last_kpps("standard")
    };
    let with = gain(&machine());
    assert!((1.5..1.75).contains(&with), "{with}");
    let mut vain = machine();
    (vain.software.allocate, vain.software.free) =
        (vain.software.recycle.clone(), vain.software.recycle.clone());
    assert!((gain(&vain) - 1.0).abs() < 0.01);
}

#[test]
fn a_machine_that_says_nothing_of_lookups_is_refused_for_them() {
    let figure = Figure::find("LUT-2").expect("a figure");
    let machine = Machine::osr().expect("right");
    let error = figure.run(&machine, 1, Effort::SHORT, None).err().expect("refused").to_string();
    assert!(error.contains("[lookup]"), "{error}");
}
