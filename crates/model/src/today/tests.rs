//! Routers of today against a schedule by hand, bounds, and each other; and what is said of files that are wrong.

use super::machine::{Copies, Plan};
use super::router::{Router, run};
use super::what_if::{ask, document, first, lines, neighbours, ways};
use crate::event::{MICROSECOND, MILLISECOND, SECOND, Time};
use causeway_results::traffic::Sizes;

const TEXT: &str = include_str!("../../machines/server-2x100g.toml");

/// Frames of one length, few routes, nothing to wait for in the cache: what is left is easy to reckon.
fn plain(bytes: u32, cores: u64) -> Plan {
    let mut plan = Plan::find("server-2x100g").expect("ready");
    plan.traffic.sizes = Sizes::Fixed(bytes);
    plan.traffic.routes.value = 1;
    plan.processor.cores.value = cores;
    plan.processor.cache_latency.value = 0;
    plan
}

/// What a core does a second at most.
fn core_bound(plan: &Plan) -> f64 {
    let m = plan.mechanism();
    let cycles = m.turn.value as f64 / m.batch.value as f64 + m.packet.value as f64;
    plan.processor.clock.value as f64 / cycles
}

#[test]
fn one_frame_takes_what_it_takes_by_hand() {
    let plan = plain(64, 1);
    let slot = plan.slot["a"].parameters();
    let wire =
        |bytes: u64| (u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(slot.rate_bps())) as Time;
    let m = plan.mechanism();
    let turn_ps = ((m.turn.value + m.packet.value) as f64 * SECOND as f64 / 2.7e9) as Time;
    let latency_ps = plan.slot["a"].latency.value;
    // In: the frame and its report. A turn. Out: the doorbell; the descriptor is asked for and comes, then the frame.
    let arrive = wire(64 + 24) + wire(16 + 24) + m.wake.value;
    let descriptor = wire(4 + 24) + wire(24) + latency_ps + wire(16 + 20);
    let frame = wire(24) + latency_ps + wire(64 + 20);
    let expected = arrive + turn_ps + descriptor + frame + (64 + 20) * 80;
    // So rare that frames are alone.
    let found = run(&plan, 0.000_1, 1, None).expect("possible").delay_ns[0];
    assert!((found - expected as f64 / 1e3).abs() <= 1.0, "{found} ns, by hand {} ns", expected / 1_000);
}

#[test]
fn cores_that_are_saturated_forward_what_they_can() {
    for cores in [1, 2] {
        let plan = plain(64, cores);
        let outcome = run(&plan, 1.0, 1, None).expect("possible");
        let bound = core_bound(&plan) * cores as f64;
        let part = outcome.rate_fps() / bound;
        assert!((0.98..1.001).contains(&part), "{cores} cores: {part} of the bound");
        assert_eq!(outcome.first().name, "cores", "{:?}", outcome.resources);
        assert!(
            first(&outcome).contains("saturated") && first(&outcome).contains("for want of a descriptor")
        );
    }
}

/// Frames a second that a link carries at most both ways: the way to the card has frames and descriptors, that to the host
/// frames, reports, and requests.
fn link_bound(plan: &Plan, bytes: f64) -> [f64; 2] {
    let p = plan.slot["a"].parameters();
    let rate = p.rate_bps() as f64 / 8.0;
    let packets = (bytes / f64::from(p.payload_bytes)).ceil();
    let requests = (bytes / f64::from(p.read_bytes)).ceil();
    let (report, fetch) = (4.0, 32.0);
    let descriptors = 2.0 * (16.0 * fetch + 40.0) / fetch;
    let down = bytes + packets * 20.0 + descriptors;
    let up =
        bytes + packets * 24.0 + requests * 24.0 + 2.0 * (16.0 * report + 24.0) / report + 2.0 * 24.0 / fetch;
    [rate / up, rate / down]
}

#[test]
fn a_link_that_is_saturated_carries_what_it_can() {
    let mut plan = plain(1_518, 8);
    plan.slot.values_mut().for_each(|slot| slot.generation.value = 2);
    let outcome = run(&plan, 1.0, 1, None).expect("possible");
    let bound = link_bound(&plan, 1_518.0);
    let part = outcome.rate_fps() / bound[0].min(bound[1]);
    assert!((0.95..1.005).contains(&part), "{part} of {bound:?}: {:?}", outcome.resources);
    assert_eq!(outcome.first().name, "slot a, to the host");
    assert!(first(&outcome).contains("in the card's memory"), "{}", first(&outcome));
}

#[test]
fn wires_that_are_full_of_long_frames_stay_full() {
    let mut plan = plain(1_518, 8);
    plan.slot.values_mut().for_each(|slot| slot.generation.value = 5);
    let outcome = run(&plan, 1.0, 1, None).expect("possible");
    assert!(outcome.rate_fps() > 0.999 * outcome.offered_fps, "{outcome:?}");
    assert!((outcome.wire_bps / 200e9 - 1.0).abs() < 0.01, "{}", outcome.wire_bps);
    assert!(first(&outcome).starts_with("nothing: all is forwarded"), "{}", first(&outcome));
}

#[test]
fn reads_of_which_few_are_under_way_bound_the_rate() {
    let mut plan = plain(64, 8);
    plan.slot.values_mut().for_each(|slot| slot.tags.value = 16);
    let outcome = run(&plan, 1.0, 1, None).expect("possible");
    // Each holds a tag for the host's latency and both ways; descriptors take some of them, 32 at a time.
    let hold_s = 450e-9 + (24.0 + 84.0) * 8.0 / plan.slot["a"].parameters().rate_bps() as f64;
    let bound = 16.0 / hold_s / (1.0 + 2.0 / 32.0);
    let part = outcome.rate_fps() / bound;
    assert!((0.85..1.05).contains(&part), "{part} of {bound}: {:?}", outcome.resources);
    assert_eq!(outcome.first().name, "slot a, reads under way");
}

#[test]
fn every_frame_ends_in_one_counted_place() {
    // Once with rings so short, and one core, that frames are dropped.
    for (name, load, short) in [
        ("board-2x1g", 1.0, false),
        ("server-2x25g", 0.3, false),
        ("server-2x100g", 1.0, false),
        ("server-2x100g", 1.0, true),
    ] {
        let mut plan = Plan::find(name).expect("ready");
        if short {
            (plan.processor.cores.value, plan.card.receive_ring.value) = (1, 64);
        }
        let mut router = Router::new(&plan, load, 1, None).expect("possible");
        for n in 1..=3 {
            router.run(n * 100 * MICROSECOND);
            let [arrived, left, dropped] = router.ended();
            assert_eq!(arrived, left + dropped + router.held(), "{name}");
        }
        let [_, left, dropped] = router.ended();
        assert!(left > 0 && (dropped > 0 || !short), "{name}: {left} left, {dropped} dropped");
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers_and_another_others() {
    let plan = Plan::find("server-2x25g").expect("ready");
    let [a, b, other] = [1, 1, 2].map(|seed| format!("{:?}", run(&plan, 0.5, seed, None).expect("possible")));
    assert_eq!(a, b);
    assert_ne!(a, other);
}

#[test]
fn what_one_more_buys_is_told_of_what_goes_first() {
    let of_cores = ask(&plain(64, 2), 1, None).expect("possible");
    let gain = |answer: &super::what_if::Answer, what: &str| {
        let (_, outcome) = answer.neighbours.iter().find(|(name, _)| name == what).expect("there");
        outcome.rate_fps() / answer.planned.rate_fps()
    };
    let (core, slots) = ("one more core", "slots of the next generation");
    assert!((gain(&of_cores, core) - 1.5).abs() < 0.02, "{}", gain(&of_cores, core));
    assert!((gain(&of_cores, slots) - 1.0).abs() < 0.02, "{}", gain(&of_cores, slots));
    assert!(gain(&of_cores, "mechanism copy") < 0.3);
    let mut narrow = plain(1_518, 8);
    narrow.slot.values_mut().for_each(|slot| slot.generation.value = 2);
    let of_links = ask(&narrow, 1, None).expect("possible");
    assert!((gain(&of_links, core) - 1.0).abs() < 0.02, "{}", gain(&of_links, core));
    assert!((gain(&of_links, slots) - 2.0).abs() < 0.1, "{}", gain(&of_links, slots));
    assert!(gain(&of_links, "one more card with one port") > 1.2);
    let text = lines(&narrow, &of_links).join("\n");
    assert!(text.contains("what goes first                  slot a, to the host, saturated"), "{text}");
    let page = document(&narrow, &of_links, 1).to_json().expect("valid");
    assert!(page.contains("modelled") && !page.contains("\"measured\""));
}

#[test]
fn the_last_generation_has_no_next() {
    let mut plan = plain(64, 1);
    let named = |plan: &Plan| neighbours(plan).iter().any(|one| one.what.starts_with("slots of"));
    assert!(named(&plan));
    plan.slot.values_mut().for_each(|slot| slot.generation.value = 5);
    assert!(!named(&plan));
}

#[test]
fn a_card_that_does_not_write_into_the_cache_costs_memory_and_cores() {
    let plan = plain(64, 2);
    let mut without = plan.clone();
    without.processor.card_ways.value = 0;
    let [with, without] = [plan, without].map(|plan| run(&plan, 1.0, 1, None).expect("possible"));
    let memory = |outcome: &super::router::Outcome| {
        outcome.resources.iter().find(|one| one.name == "memory").expect("there").part
    };
    assert!(without.rate_fps() < 0.75 * with.rate_fps(), "{} {}", without.rate_fps(), with.rate_fps());
    assert!(with.found > 0.9 && without.found < 0.2, "{} {}", with.found, without.found);
    let per_frame = |outcome: &super::router::Outcome| memory(outcome) / outcome.rate_fps();
    assert!(per_frame(&without) > 3.0 * per_frame(&with));
}

#[test]
fn copies_cost_by_the_line() {
    let mut plan = plain(1_518, 2);
    // Rings that fit into the ways of cards.
    plan.card.receive_ring.value = 128;
    let none = run(&plan, 1.0, 1, None).expect("possible").rate_fps();
    let name = plan.software.mechanism.get_ref().clone();
    let mechanism = plan.software.mechanisms.get_mut(&name).expect("there");
    (mechanism.copies, mechanism.line.value) = (Copies::InAndOut, 20);
    let copies = run(&plan, 1.0, 1, None).expect("possible").rate_fps();
    // 2 × 24 lines of 20 cycles beside what a packet took before, and what copies wait for.
    let at_most = 2.0 * 2.7e9 / (1_200.0 / 64.0 + 170.0 + 48.0 * 20.0);
    assert!(copies < 1.001 * at_most && copies > 0.7 * at_most, "{copies}, at most {at_most}");
    assert!(none > 3.0 * copies);
}

#[test]
fn machines_that_are_ready_are_right_and_are_found_by_name() {
    for name in Plan::ready() {
        let plan = Plan::find(name).expect("right");
        assert_eq!((plan.name.as_str(), plan.port_count()), (name, 2));
        let mut router = Router::new(&plan, 0.01, 1, None).expect("possible");
        router.run(MILLISECOND);
        let [arrived, left, _] = router.ended();
        assert!(left > 0 && left + 4 >= arrived / 2, "{name}: {left} of {arrived}");
    }
    let error = format!("{:#}", Plan::find("/nowhere/mine.toml").expect_err("there is none"));
    assert!(error.contains("ready are board-2x1g, server-2x25g, server-2x100g"), "{error}");
}

/// What is said of the file with one text replaced.
fn refused(old: &str, new: &str) -> String {
    assert!(TEXT.contains(old), "{old}");
    Plan::parse(&TEXT.replacen(old, new, 1), "mine.toml").expect_err(new).to_string()
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_what_is_allowed() {
    let line = |text: &str| TEXT.lines().position(|line| line.starts_with(text)).expect("there") + 1;
    for (old, new, at, said) in [
        ("\"4 generation\"", "\"6 generation\"", "generation", "out of range: 1 generation to 5 generation"),
        ("\"100 Gbit/s\"", "\"100 GB/s\"", "speed", "possible are Mbit/s, Gbit/s"),
        ("\"8 cores\"", "\"0 cores\"", "cores", "out of range: 1 cores to 256 cores"),
        ("slot = \"a\"", "slot = \"b\"", "slot =", "no slot 'b' carries these ports; there are a"),
        ("count = 2", "count = 0", "count", "0 ports; 1 to 64 are possible"),
        (
            "mechanism = \"zero-copy\"",
            "mechanism = \"dpdk\"",
            "mechanism =",
            "there are copy, kernel, zero-copy",
        ),
        ("standard = \"ddr5\"", "standard = \"ddr3\"", "standard", "`ddr4`"),
        ("copies = \"none\"", "copies = \"once\"", "copies", "`in-and-out`"),
        ("own_cache", "l2", "own_cache", "unknown field `l2`"),
        ("assumed = \"a full table\"", "guess = \"x\"", "routes", "guess"),
        ("sizes = { mix", "sizes = { mixed", "sizes", "unknown variant `mixed`"),
    ] {
        let text = refused(old, new);
        let at = format!("mine.toml, line {}: ", line(at));
        assert!(text.contains(&at) && text.contains(said), "{old} -> {new}: {text}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let line = |text: &str| TEXT.lines().position(|line| line.starts_with(text)).expect("there") + 1;
    for (old, new, at, said) in [
        ("name = \"server-2x100g\"", "name = \"../x\"", "name", "the name '../x' is to be of letters"),
        ("\"4800 MT/s\"", "\"2400 MT/s\"", "transfers", "memory of 2400 MT/s; this kind has 3200 to 8800"),
        ("\"85 %\"", "\"0 %\"", "usable", "nothing is usable; possible is more than 0 %"),
        ("\"2 ways\"", "\"16 ways\"", "card_ways", "cards write into 16 ways of a cache that has 15"),
        ("\"16 lanes\"", "\"12 lanes\"", "lanes", "slot 'a' has 12 lanes; possible are 1, 2, 4, 8, 16"),
        ("\"16 KiB\"", "\"128 bytes\"", "posted_data", "room of 128 bytes is less than a packet's data, 256"),
        ("\"8 %\"", "\"60 %\"", "link_layer", "more than half of it; possible are 0 to 50 %"),
        (
            "\"512 KiB\"",
            "\"1 KiB\"",
            "receive_fifo",
            "receive_fifo: a frame of 1518 bytes does not fit into 1024",
        ),
        (
            "\"256 KiB\"",
            "\"1 KiB\"",
            "transmit_fifo",
            "transmit_fifo: a frame of 1518 bytes does not fit into 1024",
        ),
        ("A = 594", "A = 20", "sizes", "a frame of 20 bytes; possible are 64 to 9216"),
        ("7a4A1g", "7a4B1g", "sizes", "letter 'B' has no length"),
        ("\"100 %\", assumed = \"the wires", "\"0 %\", assumed = \"the wires", "load", "a load of nothing"),
    ] {
        let text = refused(old, new);
        let at = format!("mine.toml, line {}: ", line(at));
        assert!(text.starts_with(&at) && text.contains(said), "{old} -> {new}: {text}");
    }
    // Values may be possible each by itself and together be too many.
    let many = TEXT
        .replace("count = 2", "count = 64")
        .replace("receive_ring = { value = \"1024", "receive_ring = { value = \"65536");
    let error = Plan::parse(&many, "mine.toml").expect_err("too many").to_string();
    assert!(error.starts_with(&format!("mine.toml, line {}: 64 ports", line("receive_ring"))), "{error}");
    assert!(error.ends_with("at most 4000000 descriptors are possible"), "{error}");
    let many = TEXT.replace("count = 2", "count = 64")
        + "\n[[ports]]\nslot = \"a\"\ncount = 1\n\
        speed = { value = \"100 Gbit/s\", assumed = \"as the others\" }\n";
    let error = Plan::parse(&many, "mine.toml").expect_err("too many").to_string();
    assert!(error.starts_with(&format!("mine.toml, line {}: 65 ports", line("[[ports]]"))), "{error}");
}

#[test]
fn a_frame_is_followed_to_where_it_ends() {
    // So few that the frame is alone: the steps are those that its time inside is made of.
    let calm = run(&plain(64, 1), 0.000_1, 1, Some(20)).expect("possible");
    let steps = [
        "has come in",
        "is in memory",
        "is taken",
        "ring for transmission",
        "the card that sends",
        "has left",
    ];
    assert_eq!(calm.trace.len(), steps.len(), "{:?}", calm.trace);
    for (line, step) in calm.trace.iter().zip(steps) {
        assert!(line.contains(step), "{step}: {line}");
    }
    let time =
        |line: &str| line.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).expect("a time");
    assert!((time(&calm.trace[5]) - calm.delay_ns[0]).abs() <= 1.0, "{:?} {:?}", calm.trace, calm.delay_ns);
    // One that is dropped says where.
    let flood = |number| run(&plain(64, 1), 1.0, 1, Some(number)).expect("possible").trace;
    let dropped =
        (30_000..30_003).map(flood).find(|way| way.last().is_some_and(|line| line.contains("dropped")));
    assert_eq!(dropped.expect("most are").len(), 2, "it came in, and was dropped");
    let answer = ask(&plain(64, 1), 1, Some(3)).expect("possible");
    let way = ways(&answer).join("\n");
    assert!(
        way.contains("as planned (modelled)") && way.contains("at 10 % of what is forwarded (modelled)"),
        "{way}"
    );
    assert_eq!(way.matches("has come in").count(), 4, "{way}");
}

#[test]
fn a_full_table_costs_cores_what_its_lines_take() {
    let mut plan = Plan::find("server-2x100g").expect("ready");
    (plan.traffic.sizes, plan.processor.cores.value) = (Sizes::Fixed(64), 1);
    plan.traffic.routes.value = 1;
    let few = run(&plan, 0.5, 1, None).expect("possible").rate_fps();
    // Larger than all caches, so that most of both lines come from memory.
    plan.traffic.routes.value = 50_000_000;
    let many = run(&plan, 0.5, 1, None).expect("possible").rate_fps();
    let more_ns = 1e9 / many - 1e9 / few;
    let wait_ns = plan.memory.latency.value as f64 / 1e3 * 2.0 / plan.processor.overlap.value as f64;
    assert!((0.4 * wait_ns..1.3 * wait_ns).contains(&more_ns), "{more_ns} ns, two lines are {wait_ns}");
}

#[test]
fn a_card_that_holds_one_frame_to_send_reads_and_sends_in_turns() {
    let mut plan = plain(1_518, 8);
    let rate = |plan: &Plan| run(plan, 1.0, 1, None).expect("possible").rate_fps();
    let many = rate(&plan);
    plan.card.transmit_fifo.value = 1_518;
    assert!(rate(&plan) < 0.5 * many, "{many}");
}

#[test]
fn a_frame_that_is_in_memory_is_waited_for_by_core_and_card() {
    let delay = |latency_ns: u64| {
        let mut plan = plain(1_518, 1);
        (plan.processor.card_ways.value, plan.processor.overlap.value) = (0, 1);
        plan.memory.latency.value = latency_ns * 1_000;
        run(&plan, 0.000_1, 1, None).expect("possible").delay_ns[0]
    };
    let more = delay(1_100) - delay(100);
    assert!((1_950.0..2_100.0).contains(&more), "once by the core, once by the card: {more} ns");
}
