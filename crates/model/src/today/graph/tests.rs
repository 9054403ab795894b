//! Graphs on machines of today, against a schedule by hand, bounds, and each other; and what is said of those that cannot be.

use super::super::machine::Plan;
use super::super::router::{Outcome, Router, run};
use super::super::what_if::{document, first, lines, neighbours};
use super::{Account, Configuration};
use crate::event::{MICROSECOND, MILLISECOND, SECOND, Time};
use causeway_lang::NoLibraries;
use causeway_results::traffic::Sizes;
use std::sync::Arc;

const TEXT: &str = include_str!("../../../machines/server-2x100g.toml");
/// A lookup and what surrounds it, one way.
const ONE_WAY: &str = "in :: FromDevice(eth0) -> strip :: Strip(14) -> check :: CheckIPHeader -> get :: GetIPAddress(16)
    -> routes :: IPLookup(10.0.0.0/24 0, 10.0.1.0/24 1) [1] -> ttl :: DecIPTTL
    -> ether :: EtherEncap(0x0800, 02:00:00:00:00:02, 02:00:00:00:01:02) -> q :: Queue(1000) -> out :: ToDevice(eth1);
    routes[0] -> none :: Discard;";
/// The first half of it on one worker, the second on another.
const HALVES: &str =
    "StaticThreadSched(in 0, strip 0, check 0, get 0, routes 0, none 0, ttl 1, ether 1, q 1, out 1);";

/// Frames of one length, few routes, nothing to wait for in the cache, and sections of its own: what is left is easy to reckon.
fn machine(bytes: u32, cores: u64, own: &str) -> Plan {
    let mut plan = Plan::parse(&format!("{TEXT}\n{own}"), "mine.toml").expect("right");
    plan.traffic.sizes = Sizes::Fixed(bytes);
    plan.traffic.routes.value = 1;
    plan.processor.cores.value = cores;
    plan.processor.cache_latency.value = 0;
    plan
}

/// A load that every graph here carries on one core.
const LIGHT: f64 = 0.005;
/// One that keeps two cores busy.
const FULL: f64 = 0.25;

fn engine_plan(text: &str) -> causeway_engine::Plan {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    causeway_engine::Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())))
}

/// A machine that runs this graph.
fn with(mut plan: Plan, text: &str) -> Plan {
    let graph = Configuration::new("test", engine_plan(text), &plan).unwrap_or_else(|e| panic!("{e}"));
    plan.graph = Some(Arc::new(graph));
    plan
}

fn section(class: &str, packet: u64, visit: u64) -> String {
    format!(
        "[element.{class}]\npacket = {{ value = \"{packet} cycles\", assumed = \"a test\" }}\n\
         visit = {{ value = \"{visit} cycles\", assumed = \"a test\" }}\n"
    )
}

fn outcome(plan: &Plan, load: f64) -> Outcome {
    run(plan, load, 1, None).unwrap_or_else(|e| panic!("{e}"))
}

/// What an element took, as part of all cores' time.
fn part(outcome: &Outcome, name: &str) -> f64 {
    outcome.elements.iter().find(|one| one.name == name).map_or(0.0, |one| one.part)
}

#[test]
fn every_frame_ends_in_one_counted_place() {
    let both = format!("{ONE_WAY} FromDevice(eth1) -> back :: Queue(50) -> ToDevice(eth0);");
    let polling = ONE_WAY.replace("(eth0)", "(eth0, RECEPTION polling)");
    let interrupts = ONE_WAY.replace("(eth0)", "(eth0, RECEPTION interrupt)");
    let moderated = ONE_WAY.replace("(eth0)", "(eth0, RECEPTION moderated)");
    let disable = ONE_WAY.replace("(eth0)", "(eth0, RECEPTION disable-enable)");
    for (text, cores, load) in [
        (ONE_WAY, 1, FULL),
        (ONE_WAY, 4, FULL),
        (ONE_WAY, 1, 0.01),
        (&both, 2, FULL),
        (&polling, 2, 0.1),
        (&interrupts, 1, FULL),
        (&moderated, 1, 0.05),
        (&disable, 1, FULL),
    ] {
        let plan = with(machine(64, cores, ""), text);
        let mut router = Router::new(&plan, load, 1, None).expect("possible");
        for n in 1..=3 {
            router.run(n * 100 * MICROSECOND + n * 12_345);
            let [came, left, dropped] = router.ended();
            assert_eq!(came, left + dropped + router.held(), "{cores} cores, {load}: {text}");
        }
        let [came, left, dropped] = router.ended();
        assert!(left > 0 || text == interrupts, "{left} of {came}: {text}");
        assert!(dropped > 0 || load < FULL || cores > 2, "{dropped} of {came}: {text}");
        let graph = router.graph().expect("there");
        let received: u64 = graph.read("in", "count").parse().expect("a number");
        assert!(received > 0 && graph.made == 0, "{received}: {text}");
    }
}

/// Cycles that are nanoseconds, of few elements.
fn by_hand(text: &str) -> Plan {
    let own = [("FromDevice", 100, 1_000), ("Queue", 10, 20), ("ToDevice", 200, 3_000)];
    let own: String = own.into_iter().map(|(class, packet, visit)| section(class, packet, visit)).collect();
    let mut plan = machine(64, 1, &own);
    plan.processor.clock.value = 1_000_000_000;
    with(plan, text)
}

const SHORT: &str = "in :: FromDevice(eth0) -> q :: Queue -> out :: ToDevice(eth1);";

#[test]
fn a_frame_alone_takes_what_it_takes_by_hand() {
    let plan = by_hand(SHORT);
    let slot = plan.slot["a"].parameters();
    let wire =
        |bytes: u64| (u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(slot.rate_bps())) as Time;
    let latency_ps = plan.slot["a"].latency.value;
    // In: the frame and its report, and until the core looks.
    let arrive = wire(64 + 24) + wire(16 + 24) + plan.mechanism().wake.value;
    // It is received, pushed to the queue, pulled from it, and the task has run that pulled.
    let graph = (1_000 + 100) + (20 + 10) + (20 + 10) + (3_000 + 200);
    // Out: the doorbell; the descriptor is asked for and comes, then the frame.
    let descriptor = wire(4 + 24) + wire(24) + latency_ps + wire(16 + 20);
    let frame = wire(24) + latency_ps + wire(64 + 20);
    let expected = arrive + graph * 1_000 + descriptor + frame + (64 + 20) * 80;
    let found = outcome(&plan, 0.000_1).delay_ns[0];
    // A look at a worker's clock takes a nanosecond.
    let more = found - expected as f64 / 1e3;
    assert!((0.0..8.0).contains(&more), "{found} ns, by hand {} ns", expected / 1_000);
}

/// What the elements of a graph have done after so many microseconds at a load.
fn accounts(plan: &Plan, load: f64, us: u64) -> (Vec<Account>, u64) {
    let mut router = Router::new(plan, load, 1, None).expect("possible");
    router.run(us * MICROSECOND);
    (router.graph().expect("there").accounts(), router.ended()[1])
}

#[test]
fn a_few_packets_are_charged_what_the_schedule_by_hand_has() {
    let (accounts, left) = accounts(&by_hand(SHORT), 0.000_1, 300);
    assert!((2..10).contains(&left), "{left} frames, alone each");
    let of = |name: &str| accounts.iter().find(|account| account.name == name).expect("there").sums();
    // At the start the task of the device finds nothing. A packet is received by one visit, pushed by one and pulled by one;
    // the task runs for it, and once more, and its second pull is in vain.
    assert_eq!(of("in"), [left * 1_100_000, left, left]);
    assert_eq!(of("q"), [(left * (30 + 30 + 20) + 20) * 1_000, 2 * left, 3 * left + 1]);
    assert_eq!(of("out"), [(left * (3_200 + 3_000) + 3_000) * 1_000, left, 2 * left + 1]);
    assert_eq!(accounts.len(), 3, "{accounts:?}");
}

#[test]
fn batches_are_those_of_the_live_worker() {
    let found = outcome(&with(machine(64, 1, ""), ONE_WAY), FULL);
    let batch = |name: &str| found.elements.iter().find(|one| one.name == name).expect("there").batch;
    // A turn of reception is a budget of 300: four quotas of 64, and 44.
    assert!((batch("in") - 60.0).abs() < 0.1 && (batch("check") - 60.0).abs() < 0.1, "{}", batch("in"));
    // Then the device pulls 256, and 44, and finds nothing more.
    assert!((batch("out") - 100.0).abs() < 0.5, "{}", batch("out"));
}

#[test]
fn the_same_seed_gives_the_same_numbers_and_another_others() {
    let text = format!("{ONE_WAY} {HALVES}");
    for (text, cores) in [(ONE_WAY, 2), (&text, 2)] {
        let plan = with(machine(64, cores, ""), text);
        let found = |seed| format!("{:?}", run(&plan, 0.2, seed, Some(30)).expect("possible"));
        assert_eq!(found(1), found(1));
        assert_ne!(found(1), found(2));
    }
}

#[test]
fn an_element_that_is_made_expensive_bounds_the_rate() {
    let usual = outcome(&with(machine(64, 1, ""), ONE_WAY), FULL);
    assert_eq!(usual.first().name, "cores");
    assert!(first(&usual).contains("for want of a descriptor"), "{}", first(&usual));
    let dear = outcome(&with(machine(64, 1, &section("CheckIPHeader", 2_000, 30)), ONE_WAY), FULL);
    assert_eq!(dear.elements[0].name, "check");
    assert!(part(&usual, "check") < 0.1 && part(&dear, "check") > 0.9, "{:?}", dear.elements);
    // What all others take of a packet stays what it was.
    let others_s = 1.0 / usual.rate_fps() * (1.0 - part(&usual, "check"));
    let bound = 1.0 / (others_s + (2_000.0 + 30.0 / 64.0) / 2.7e9);
    assert!((dear.rate_fps() / bound - 1.0).abs() < 0.01, "{} of {bound}", dear.rate_fps());
    let all: f64 = dear.elements.iter().map(|one| one.part).sum();
    assert!((all - dear.first().part).abs() < 0.01, "all of a core's time is some element's: {all}");
}

#[test]
fn without_its_queue_a_graph_drops_elsewhere_and_holds_less() {
    // Two wires into one.
    let text = "FromDevice(eth0) -> q :: Queue(1000) -> out :: ToDevice(eth0); FromDevice(eth1) -> q;";
    let with_queue = outcome(&with(machine(1_518, 1, ""), text), 1.0);
    let without = outcome(&with(machine(1_518, 1, ""), &text.replace("q :: Queue(1000)", "q :: Null")), 1.0);
    assert_eq!(with_queue.dropped_by[0].0, "q (full)", "{:?}", with_queue.dropped_by);
    assert_eq!(without.dropped_by[0].0, "out (ring-full)", "{:?}", without.dropped_by);
    assert!(first(&with_queue).contains("losses in the graph, at q (full)"), "{}", first(&with_queue));
    let wire_fps = 100e9 / ((1_518.0 + 20.0) * 8.0);
    for found in [&with_queue, &without] {
        assert!((found.rate_fps() / wire_fps - 1.0).abs() < 0.01, "{}", found.rate_fps());
        let lost_fps: f64 = found.drops_fps.iter().sum();
        // What is inside goes up and down.
        assert!((lost_fps / wire_fps - 1.0).abs() < 0.05, "{:?}", found.drops_fps);
    }
    // A thousand frames in the queue, and the 256 that the device has pulled and holds until its ring has room, wait for as
    // long as the wire takes for them.
    let more_ns = with_queue.delay_ns[0] - without.delay_ns[0];
    let queue_ns = 1_256.0 / wire_fps * 1e9;
    assert!((0.95..1.05).contains(&(more_ns / queue_ns)), "{more_ns} ns, a full queue takes {queue_ns} ns");
}

#[test]
fn two_workers_share_the_work_as_the_graph_says() {
    let own = section("CheckIPHeader", 400, 30) + &section("DecIPTTL", 400, 30);
    let pinned = format!("{ONE_WAY} {HALVES}");
    let one = outcome(&with(machine(64, 1, &own), ONE_WAY), FULL);
    let plan = with(machine(64, 2, &own), &pinned);
    let two = outcome(&plan, FULL);
    let gain = two.rate_fps() / one.rate_fps();
    assert!((1.6..2.0).contains(&gain), "{gain}: {:?} {:?}", two.resources, two.elements);
    let classes: Vec<&str> = two.elements.iter().map(|one| one.class).collect();
    assert!(classes.contains(&"ToWorker") && classes.contains(&"FromWorker"), "{classes:?}");
    assert!(part(&two, "check") > 0.3 && part(&two, "ttl") > 0.3, "{:?}", two.elements);
    let mut router = Router::new(&plan, FULL, 1, None).expect("possible");
    router.run(MILLISECOND);
    let [came, left, dropped] = router.ended();
    assert_eq!(came, left + dropped + router.held());
    // Where all is on one of them, the other has nothing to do, and is not told of.
    let lonely =
        outcome(&with(machine(64, 2, &own), &format!("{ONE_WAY} {}", HALVES.replace(" 0", " 1"))), FULL);
    let cores: Vec<&str> = lonely.resources.iter().map(|one| one.name.as_str()).collect();
    assert!(!cores.contains(&"core 0") && lonely.first().name == "core 1", "{:?}", lonely.resources);
    // And a copy of the graph for each is what cores share when it says nothing.
    let copies = outcome(&with(machine(64, 2, &own), ONE_WAY), FULL);
    assert!((copies.rate_fps() / one.rate_fps() - 2.0).abs() < 0.05, "{}", copies.rate_fps());
}

#[test]
fn what_waits_for_memory_is_the_elements_that_wait() {
    let mut plan = with(machine(64, 1, ""), ONE_WAY);
    let near = outcome(&plan, FULL);
    plan.traffic.routes.value = 50_000_000;
    let far = outcome(&plan, FULL);
    let more_ns = 1e9 / far.rate_fps() - 1e9 / near.rate_fps();
    let wait_ns = plan.memory.latency.value as f64 / 1e3 * 2.0 / plan.processor.overlap.value as f64;
    assert!((0.4 * wait_ns..1.3 * wait_ns).contains(&more_ns), "{more_ns} ns, two lines are {wait_ns}");
    assert!(part(&far, "routes") > 3.0 * part(&near, "routes"));
    let mut copies = with(machine(64, 1, ""), ONE_WAY);
    let name = copies.software.mechanism.get_ref().clone();
    let mechanism = copies.software.mechanisms.get_mut(&name).expect("there");
    (mechanism.copies, mechanism.line.value) = (super::super::machine::Copies::InAndOut, 200);
    let copies = outcome(&copies, FULL);
    assert!(part(&copies, "in") > part(&near, "in") && part(&copies, "out") > part(&near, "out"));
}

#[test]
fn the_standard_router_runs_as_it_is() {
    let text = include_str!("../../../../../conf/router.click");
    let plan = with(machine(64, 1, ""), text);
    let found = outcome(&plan, LIGHT);
    assert!(found.rate_fps() > 0.99 * found.offered_fps, "{found:?}");
    let mut router = Router::new(&plan, LIGHT, 1, None).expect("possible");
    router.run(MILLISECOND);
    let graph = router.graph().expect("there");
    assert!((2..600).contains(&graph.made), "it asks its neighbours for their addresses: {}", graph.made);
    let text = lines(&plan, &answer(&plan)).join("\n");
    assert!(text.contains("processor time by element") && text.contains(":: ARPQuerier"), "{text}");
}

fn answer(plan: &Plan) -> super::super::what_if::Answer {
    super::super::what_if::Answer { planned: outcome(plan, LIGHT), loads: Vec::new(), neighbours: Vec::new() }
}

#[test]
fn what_was_found_is_in_the_common_format() {
    let plan = with(machine(64, 1, ""), ONE_WAY);
    let json = document(&plan, &answer(&plan), 1).to_json().expect("valid");
    for name in ["check :: CheckIPHeader/processor time", "as planned/forwarding rate", "--graph"] {
        assert!(json.contains(name), "{name}: {json}");
    }
    assert!(!json.contains("\"measured\""));
    assert!(neighbours(&plan).iter().all(|one| !one.what.starts_with("mechanism")));
    let text = lines(&plan, &answer(&plan)).join("\n");
    assert!(text.contains("test on eth0, eth1, zero-copy (no copies)"), "{text}");
}

#[test]
fn a_frame_is_followed_through_a_graph() {
    let found = run(&with(machine(64, 1, ""), ONE_WAY), 0.000_1, 1, Some(5)).expect("possible");
    let steps =
        ["has come in", "is in memory", "is taken", "ring for transmission", "card that sends", "has left"];
    assert_eq!(found.trace.len(), steps.len(), "{:?}", found.trace);
    assert!(found.trace.iter().zip(steps).all(|(line, step)| line.contains(step)), "{:?}", found.trace);
}

/// What is said of a graph that cannot be modelled.
fn refused(text: &str) -> String {
    let plan = machine(64, 1, "");
    Configuration::new("mine.click", engine_plan(text), &plan).expect_err("it cannot be").to_string()
}

#[test]
fn what_cannot_be_modelled_is_said_with_its_place() {
    let text = refused("FromDevice(eth0) -> Queue\n-> slow :: CoDel(5ms, 100ms)\n-> Discard;");
    assert!(text.starts_with("test:2: nobody says what slow :: CoDel costs"), "{text}");
    assert!(text.contains("[element.CoDel] with packet and visit, in cycles"), "{text}");
    let text = refused("FromDevice(eth0) -> ToDump(/tmp/x) ; FromHost(x) -> Discard;");
    assert!(text.matches("reaches out of the graph").count() == 2, "{text}");
    let text = refused("InfiniteSource -> ToDevice(eth0);");
    assert!(text.contains("mine.click: there is no FromDevice, so that nothing comes in"), "{text}");
    let text = refused("FromDevice(a) -> Discard; FromDevice(b) -> Discard; FromDevice(c) -> Discard;");
    assert!(text.contains("has 3 interfaces (a, b, c), and server-2x100g has 2 ports"), "{text}");
    // A section of the machine's own file is enough.
    let own = section("CoDel", 10, 10);
    with(machine(64, 1, &own), "FromDevice(eth0) -> Queue -> CoDel -> Discard;");
}

#[test]
fn what_is_wrong_only_when_it_is_built_or_runs_is_said_too() {
    let error = |plan: &Plan| run(plan, 0.1, 1, None).map(|_| ()).expect_err("it cannot be").to_string();
    let text = error(&with(machine(64, 1, ""), "FromDevice(eth0) -> Queue(many) -> Discard;"));
    assert!(text.contains("test: the graph cannot be built") && text.contains("test:1"), "{text}");
    let free =
        ["Queue", "Unqueue"].map(|class| section(class, 0, 0)).concat() + &section("InfiniteSource", 1, 1);
    let text =
        "in :: FromDevice(eth0) -> end :: Discard; s :: InfiniteSource(LIMIT 1) -> q :: Queue -> u :: Unqueue -> q;
                StaticThreadSched(in 0, end 0, s 1, q 1, u 1);";
    let text = error(&with(machine(64, 2, &free), text));
    assert!(text.contains("takes no time"), "{text}");
    let text = error(&with(machine(9_000, 1, ""), ONE_WAY));
    assert!(text.contains("a frame of 9000 bytes; packets of a graph have at most"), "{text}");
    let own = TEXT.replacen("\nload = {", "\nnetworks = [\"10.0.0.0/30\"]\nload = {", 1);
    let text = Plan::parse(&own, "mine.toml").expect_err("too small").to_string();
    assert!(text.contains("'10.0.0.0/30' is no network such as 10.0.0.0/24"), "{text}");
}

#[test]
fn frames_go_to_the_networks_that_the_machine_names() {
    let own =
        TEXT.replacen("\nload = {", "\nnetworks = [\"192.0.2.0/24\", \"198.51.100.0/24\"]\nload = {", 1);
    let mut plan = Plan::parse(&own, "mine.toml").expect("right");
    (plan.traffic.sizes, plan.processor.cores.value) = (Sizes::Fixed(64), 1);
    let text = ONE_WAY.replace("10.0.1.0/24", "198.51.100.0/24");
    let found = outcome(&with(plan.clone(), &text), 0.01);
    assert!(found.rate_fps() > 0.99 * found.offered_fps);
    let lost = outcome(&with(plan, ONE_WAY), 0.01);
    assert!(lost.rate_fps() == 0.0 && lost.dropped_by[0].0.starts_with("routes ("), "{:?}", lost.dropped_by);
}
