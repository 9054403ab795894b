//! The router of OSR: what its figures look like, why, and that nothing is lost uncounted.
//!
//! Each shape has its ablation: without the mechanism that makes it, it is not there.

use causeway_engine::reception::Mechanism;
use causeway_model::event::{MILLISECOND, Time};
use causeway_model::figures::{Figure, Found, document, lines, ways, why};
use causeway_model::link::Link;
use causeway_model::machine::Machine;
use causeway_model::router::{Flow, Router, Scenario};
use causeway_model::run::{Effort, Outcome, run};
use causeway_model::software::linux::{Class, Drop, Role, Setup, Without};

fn machine() -> Machine {
    Machine::osr().expect("the machine of the paper")
}

fn figure(name: &str, machine: &Machine) -> Found {
    Figure::find(name).expect("a figure").run(machine, 1, Effort::SHORT, None).expect("enough ports")
}

fn dropped(outcome: &Outcome, drop: Drop) -> f64 {
    outcome.drops_fps[drop as usize]
}

#[test]
fn interrupts_livelock_and_napi_does_not() {
    let found = figure("OSR-4", &machine());
    for name in ["interrupt", "moderated"] {
        assert!(found.last_kpps(name) < 0.01 * found.peak_kpps(name), "{name} falls to zero");
        let last = found.curve(name).last().expect("a point");
        assert!(dropped(last, Drop::Backlog) > 0.0 || dropped(last, Drop::Ring) > 0.0, "{name}");
    }
    let (interrupt, moderated, napi) =
        (found.peak_kpps("interrupt"), found.peak_kpps("moderated"), found.peak_kpps("napi"));
    assert!(1.6 * interrupt < moderated && moderated < napi, "{interrupt} {moderated} {napi}");
    assert!(found.last_kpps("napi") > 0.99 * napi, "a plateau");
    // All its losses are in front of the kernel.
    let last = found.curve("napi").last().expect("a point");
    assert_eq!([Drop::Backlog, Drop::Queue].map(|drop| dropped(last, drop)), [0.0, 0.0]);
    assert!(dropped(last, Drop::Ring) > 10.0 * dropped(last, Drop::Fifo));
}

#[test]
fn without_a_backlog_there_is_no_livelock() {
    let at = |moderated: bool, backlog: bool, rate_fps: f64| {
        let one = scenario(Mechanism::Interrupt, Role::Forward, 64, rate_fps);
        let kernel = Setup { without: Without { backlog: !backlog, ..Without::default() }, ..one.kernel };
        let flows = vec![Flow { from: 0, to: vec![1], rate_fps }];
        let one = Scenario { flows, moderated, kernel, ..one };
        run(&machine(), &one, 1, Effort::SHORT, None).expect("ports").rate_fps()
    };
    for moderated in [false, true] {
        let [with, without] = [true, false].map(|backlog| {
            [200e3, 400e3, 700e3, 1e6, 1.488e6].map(|rate_fps| at(moderated, backlog, rate_fps))
        });
        assert!(with[4] < 0.01 * with[0], "moderated {moderated}, with a backlog: {with:?}");
        assert!(without[2..].iter().all(|one| *one > 0.9 * without[1]), "moderated {moderated}: {without:?}");
    }
}

#[test]
fn without_what_an_interrupt_costs_moderation_has_little_to_save() {
    let mut quick = machine();
    (quick.software.interrupt.value, quick.software.register_read.value) = (0, 0);
    let found = figure("OSR-4", &quick);
    let (interrupt, moderated) = (found.peak_kpps("interrupt"), found.peak_kpps("moderated"));
    assert!(interrupt > 0.8 * moderated, "{interrupt} {moderated}");
}

#[test]
fn short_frames_are_bound_by_the_processor_and_long_ones_by_the_wire() {
    let found = figure("OSR-5", &machine());
    let rates: Vec<f64> = found.curve("napi").iter().map(|one| one.rate_fps() / one.offered_fps).collect();
    assert!(rates[0] < 0.4 && rates[1] < 0.7, "{rates:?}");
    assert!(rates[2..].iter().all(|part| *part > 0.999), "{rates:?}");
    let of_processor = |outcome: &Outcome| outcome.classes.iter().sum::<f64>();
    assert!(of_processor(&found.curve("napi")[0]) > 0.99 && of_processor(&found.curve("napi")[4]) < 0.7);
    let mut fast = machine();
    fast.processor.clock.value *= 10;
    let found = figure("OSR-5", &fast);
    let first = &found.curve("napi")[0];
    assert!(first.rate_fps() > 600e3 && first.rate_fps() < 700e3, "then the card's reads are the limit");
    assert!(
        dropped(first, Drop::Queue) > 0.5 * dropped(first, Drop::Ring),
        "what the card does not read is dropped behind IP"
    );
}

#[test]
fn a_card_that_only_transmits_interrupts_once_a_turn_of_the_other() {
    let found = figure("OSR-6", &machine());
    let (one, both) = (found.near("napi, one way", 1e6), found.near("napi, both ways", 1e6));
    let turns = one.rate_fps() / 64.0;
    assert!((0.8..1.2).contains(&(one.interrupts[1] / turns)), "{} of {turns}", one.interrupts[1]);
    // Of the card that receives, and of both where both do, there are none: they are polled.
    let polled = [one.interrupts[0], both.interrupts[0], both.interrupts[1]];
    assert!(one.interrupts[1] > 5e3 && polled.iter().all(|one| *one < 200.0), "{polled:?}");
    assert!(both.rate_fps() > 1.005 * one.rate_fps());
    // Where an interrupt costs nothing, to send only is no drawback.
    let mut quick = machine();
    let s = &mut quick.software;
    (s.interrupt.value, s.register_read.value, s.register_write.value) = (0, 0, 0);
    let found = figure("OSR-6", &quick);
    let (one, both) = (found.near("napi, one way", 1e6), found.near("napi, both ways", 1e6));
    assert!(both.rate_fps() < 1.005 * one.rate_fps(), "{} {}", both.rate_fps(), one.rate_fps());
}

#[test]
fn recycling_saves_what_the_allocator_takes() {
    let found = figure("OSR-7", &machine());
    let gain = found.last_kpps("napi, recycling") / found.last_kpps("napi");
    assert!((1.15..1.20).contains(&gain), "{gain}");
    // Two rings of 256 buffers and what is under way.
    let buffers = found.curve("napi, recycling").last().expect("a point").buffers.0;
    assert!((540..660).contains(&buffers), "{buffers}");
    let mut vain = machine();
    vain.software.recycle = vain.software.allocate.clone();
    let found = figure("OSR-7", &vain);
    assert!((found.last_kpps("napi, recycling") / found.last_kpps("napi") - 1.0).abs() < 0.01);
}

#[test]
fn equal_quotas_share_to_max_min_fairness_and_others_by_themselves() {
    let machine = machine();
    let equal = figure("OSR-8", &machine);
    let past: Vec<&Outcome> = equal.curve("napi, Q 64").iter().skip(5).collect();
    for pair in past.windows(2) {
        let [before, after] =
            [pair[0], pair[1]].map(|one| (one.flows_fps[0], one.flows_fps[2], one.rate_fps()));
        assert!(
            after.1 > before.1 + 5e3 && after.0 < before.0 - 3e3,
            "the small one grows at the cost of the other"
        );
        assert!((after.2 / before.2 - 1.0).abs() < 0.02, "the sum is constant");
    }
    let small = past.last().expect("a point");
    assert!(small.flows_fps[2] > 0.99 * small.offered_fps / 11.0, "it is below its share, and loses nothing");
    // Without equal quotas it is held to its own.
    let own = figure("OSR-9", &machine);
    let last = own.curve("napi, Q 270 and 27").last().expect("a point");
    let ratio = last.flows_fps[0] / last.flows_fps[2];
    assert!((6.0..11.0).contains(&ratio), "{ratio}");
    assert!(last.flows_fps[2] < 0.6 * last.offered_fps / 11.0);
    assert!(own.last_kpps("napi, Q 270 and 27") > 1.01 * equal.last_kpps("napi, Q 64"), "the sum is higher");
    // With equal quotas it has its own share and the large one what is left.
    let last = equal.curve("napi, Q 64").last().expect("a point");
    let ratio = last.flows_fps[0] / last.flows_fps[2];
    assert!(ratio < 4.0, "{ratio}");
    // It is higher by the turns that longer quotas save.
    let mut easy = machine;
    let s = &mut easy.software;
    (s.poll.value, s.soft_interrupt.value, s.interrupt.value) = (0, 0, 0);
    (s.register_read.value, s.register_write.value) = (0, 0);
    let [own, equal] = [("OSR-9", "napi, Q 270 and 27"), ("OSR-8", "napi, Q 64")]
        .map(|(name, curve)| figure(name, &easy).last_kpps(curve));
    assert!(own < 1.01 * equal, "{own} {equal}");
}

#[test]
fn many_ports_cost_a_little_because_the_cache_does_not_hold_their_rings() {
    let rates = |machine: &Machine| {
        let found = figure("OSR-10", machine);
        [6, 10, 14].map(|ports| found.last_kpps(&format!("napi, {ports} ports, in pairs")))
    };
    let [six, ten, fourteen] = rates(&machine());
    assert!(six > 1.01 * ten && ten > fourteen && fourteen > 0.85 * six, "{six} {ten} {fourteen}");
    let mut large = machine();
    large.processor.cache.value *= 64;
    let [six, _, fourteen] = rates(&large);
    assert!(fourteen > 0.98 * six, "{six} {fourteen}");
}

#[test]
fn spreading_packets_over_all_ports_costs_a_little_for_their_descriptors() {
    let rates = |machine: &Machine| {
        let found = figure("OSR-11", machine);
        ["napi, 14 ports, in pairs", "napi, 14 ports, each to all"].map(|name| found.last_kpps(name))
    };
    let [pairs, all] = rates(&machine());
    assert!(all < 0.99 * pairs && all > 0.93 * pairs, "{pairs} {all}");
    let mut near = machine();
    near.memory.latency.value = 0;
    let [pairs, all] = rates(&near);
    assert!(all > 0.99 * pairs, "{pairs} {all}");
}

/// One port floods, another returns some of it.
fn scenario(mechanism: Mechanism, role: Role, bytes: u32, rate_fps: f64) -> Scenario {
    let flows = vec![
        Flow { from: 0, to: vec![1, 2], rate_fps },
        Flow { from: 1, to: vec![0], rate_fps: rate_fps / 3.0 },
    ];
    let kernel = Setup {
        mechanisms: vec![mechanism; 3],
        budget: 300,
        recycling: false,
        role,
        without: Without::default(),
    };
    Scenario { links: vec![Link { rate_bps: 1_000_000_000 }; 3], flows, bytes, moderated: false, kernel }
}

#[test]
fn every_packet_ends_in_one_counted_place() {
    let mechanisms =
        [Mechanism::Interrupt, Mechanism::Napi { quota: 64 }, Mechanism::DisableEnable, Mechanism::Polling];
    let backlog = |mechanism, without| (mechanism, Without { backlog: without, ..Without::default() });
    let all = mechanisms.map(|mechanism| backlog(mechanism, false)).into_iter();
    for (mechanism, without) in all.chain([backlog(Mechanism::Interrupt, true)]) {
        for (role, bytes, rate) in [
            (Role::Forward, 64, 1.4e6),
            (Role::Forward, 64, 3e5),
            (Role::Forward, 64, 1e5),
            (Role::Forward, 1518, 8e4),
            (Role::Count, 64, 1.4e6),
        ] {
            let mut scenario = scenario(mechanism, role, bytes, rate);
            scenario.kernel.without = without;
            let mut router = Router::new(&machine(), &scenario, 3, None).expect("ports");
            for stop in (1..40u64).map(|n| n * 377_777_777) {
                router.run(stop);
                let stack = &router.kernel().stack;
                let arrived: u64 = router.arrived.iter().sum();
                let ended = router.left.iter().sum::<u64>() + stack.counted + stack.drops.iter().sum::<u64>();
                assert_eq!(arrived, ended + router.held(), "{mechanism} {role:?} {bytes} {rate} at {stop}");
            }
            let buffers = &router.hardware().buffers;
            assert!(buffers.made < 3 * 256 + 3 * 1_300, "buffers are given back: {}", buffers.made);
        }
    }
    let silent = Scenario { flows: Vec::new(), ..scenario(Mechanism::Interrupt, Role::Generate, 64, 0.0) };
    let mut router = Router::new(&machine(), &silent, 3, None).expect("ports");
    router.run(5 * MILLISECOND);
    let generated = router.kernel().stack.generated;
    assert_eq!(generated, router.left.iter().sum::<u64>() + router.held());
    assert!(generated > 1_000);
}

#[test]
fn an_idle_router_forwards_a_packet_as_worked_out_by_hand() {
    let mut machine = machine();
    (machine.memory.latency.value, machine.memory.rate.value) = (0, 10_000_000_000_000);
    let one = Scenario {
        flows: vec![Flow { from: 0, to: vec![1], rate_fps: 2_000.0 }],
        ..scenario(Mechanism::Napi { quota: 64 }, Role::Forward, 64, 0.0)
    };
    let mut router = Router::new(&machine, &one, 1, Some(2)).expect("ports");
    router.run(3 * MILLISECOND);
    let at = |what: &str| {
        let step = router.trace.steps.iter().find(|(_, step)| step.contains(what));
        step.unwrap_or_else(|| panic!("{what}: {:?}", router.trace.lines())).0
    };
    // A burst of 64 bits by 133 MHz; 6 cycles around the data.
    let bus = |bytes: u64| (bytes.div_ceil(8) + 6) * 1_000_000 / 133;
    let cycles = |n: u64| n * 1_000_000 / 2_800;
    let close = |found: Time, expected: Time, what: &str| {
        assert!(found.abs_diff(expected) < 1_000, "{what}: {found} ps, by hand {expected} ps");
    };
    let s = &machine.software;
    close(at("is in memory") - at("has come in"), bus(64), "the frame is written");
    let interrupt = cycles(s.interrupt.value) + s.register_read.value + cycles(s.register_write.value);
    close(
        at("is taken") - at("is in memory"),
        bus(16) + interrupt,
        "the report, and the interrupt with its masking",
    );
    // The card is unmasked in the same run, behind the ring's new buffer and its register.
    let piece = [&s.soft_interrupt, &s.poll, &s.receive, &s.route, &s.transmit, &s.allocate]
        .map(|one| cycles(one.value));
    let registers = 2 * cycles(s.register_write.value);
    close(at("ring for transmission") - at("is taken"), piece.iter().sum::<Time>() + registers, "the kernel");
    let read = |bytes| bus(0) + machine.bus["pci-x"].read_latency.value + bus(bytes);
    close(
        at("sends it") - at("ring for transmission"),
        bus(4) + read(16) + read(64),
        "the card fetches both",
    );
    close(at("has left") - at("sends it"), 672_000, "the wire");
    // All packets are alike, so that the mean time inside is this one's.
    let left = router.left.iter().sum::<u64>();
    let way = at("has left") - at("has come in");
    let mean = (router.delay_ps / u128::from(left)) as Time;
    assert!((mean as f64 / way as f64 - 1.0).abs() < 0.01, "{mean} {way}");
}

#[test]
fn what_cards_move_keeps_memory_busy_and_waits_for_it() {
    let figure = Figure::find("OSR-tx").expect("a figure");
    let of = |machine: &Machine| {
        figure.run(machine, 1, Effort::SHORT, None).expect("a port").curve("packetgen")[0].clone()
    };
    // A packet is read, with a descriptor, and its descriptor is written.
    let (given, mut slow) = (of(&machine()), machine());
    let bytes = given.memory * machine().memory.rate.value as f64 / given.rate_fps();
    assert!((96.0..250.0).contains(&bytes), "{bytes} a packet");
    slow.memory.rate.value = 40_000_000;
    let bound = slow.memory.rate.value as f64 / 96.0;
    let held = of(&slow);
    assert!(held.rate_fps() < 1.01 * bound && held.memory > 0.9, "{} {}", held.rate_fps(), held.memory);
    // To receive is to write: the same frames, one way.
    let both = figure_of_long_frames();
    let bytes = both.memory * machine().memory.rate.value as f64 / both.rate_fps();
    assert!((2.0 * 1_518.0..2.6 * 1_518.0).contains(&bytes), "{bytes} a packet: in and out");
}

/// Frames of full size that are forwarded from port to port.
fn figure_of_long_frames() -> Outcome {
    let found = figure("OSR-5", &machine());
    found.curve("napi").last().expect("a point").clone()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_others() {
    let (figure, machine) = (Figure::find("osr-8").expect("a figure"), machine());
    let bytes = |seed| {
        let found = figure.run(&machine, seed, Effort::SHORT, None).expect("enough ports");
        let mut text = document(figure, &found, &machine, 7).to_json().expect("a document");
        lines(figure, &found).iter().chain(&why(&found)).for_each(|line| text += line);
        text
    };
    let first = bytes(1);
    assert_eq!(first, bytes(1));
    assert_ne!(first, bytes(2));
}

#[test]
fn the_picture_of_why_has_all_resources_and_their_parts_are_the_whole() {
    let (figure, machine) = (Figure::find("OSR-4").expect("a figure"), machine());
    let found = figure.run(&machine, 1, Effort::SHORT, None).expect("enough ports");
    let document = document(figure, &found, &machine, 1);
    for (curve, outcomes) in &found.curves {
        let sums = |of: &str| {
            let kind = format!("inside {}, 64 bytes: {of}", curve.name);
            let parts: Vec<_> = document
                .series
                .iter()
                .filter(|series| series.name.split_once('/').is_some_and(|(_, rest)| rest == kind))
                .collect();
            assert!(parts.iter().all(|part| part.quantity.starts_with("part of ")), "{kind} is stacked");
            let at = |n: usize| parts.iter().map(|part| part.measurements[n].repetitions[0]).sum::<f64>();
            (parts.len(), (0..outcomes.len()).map(at).collect::<Vec<f64>>())
        };
        for (of, count) in [("processor time", Class::ALL.len() + 1), ("bus 0", 2), ("memory", 2)] {
            let (parts, sums) = sums(of);
            assert_eq!(parts, count, "{of}");
            assert!(sums.iter().all(|sum| (sum - 100.0).abs() < 0.5), "{of}: {sums:?}");
        }
        // What rings and queues took in, or gave, meanwhile is in neither.
        let (parts, offered) = sums("losses");
        assert_eq!(parts, Drop::ALL.len() + 1);
        let measured_s = 3.0 * 5e-3;
        for (sum, outcome) in offered.iter().zip(outcomes) {
            let inside = (outcome.offered_fps - sum).abs() * measured_s;
            assert!(inside < 1_600.0, "{sum} {}", outcome.offered_fps);
        }
        let (sum, last) = (offered.last().expect("a point"), outcomes.last().expect("a point"));
        assert!((sum / last.offered_fps - 1.0).abs() < 0.005, "{sum} {}", last.offered_fps);
        let (parts, waiting) = sums("rings and queues");
        assert_eq!(parts, 4);
        assert!(waiting.last() > Some(&200.0), "a ring is full: {waiting:?}");
    }
    let page = causeway_results::html::page("t", &document).expect("a page");
    assert!(page.matches("<polygon").count() > 3 * 10, "it is drawn");
    assert!(page.contains("<summary>inside napi, 64 bytes: processor time</summary>"));
}

#[test]
fn everything_says_that_it_is_modelled_and_why_it_is_so() {
    let (figure, machine) = (Figure::find("OSR-5").expect("a figure"), machine());
    let found = figure.run(&machine, 1, Effort::SHORT, Some(20)).expect("enough ports");
    let text = lines(figure, &found).join("\n");
    assert!(text.starts_with("OSR-5, modelled: ") && text.contains("512 bytes, kpps"), "{text}");
    let reasons = why(&found);
    assert!(reasons[0].contains("modelled") && reasons[1].contains("64 bytes: processor; "), "{reasons:?}");
    assert!(
        reasons[1].contains("lost reception ring") && reasons[6].contains("nothing is saturated"),
        "{reasons:?}"
    );
    let way = ways(&found).join("\n");
    assert!(
        way.contains("modelled") && way.contains("0 ns  has come in") && way.contains("has left"),
        "{way}"
    );
    let document = document(figure, &found, &machine, 1);
    let modelled = |name: &str| document.series(name).expect(name).measurements[0].source.name();
    assert_eq!(modelled("napi/saturation forwarding rate"), "modelled");
    assert_eq!(modelled("the paper: napi/saturation forwarding rate"), "measured");
    let inside = document.series("IP/inside napi, 64 bytes: processor time").expect("a class of time");
    let part = found.curve("napi")[0].classes[Class::Ip as usize] * 100.0;
    assert_eq!(inside.measurements[0].repetitions, [part]);
}
