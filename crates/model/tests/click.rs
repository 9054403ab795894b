//! Click against schedules that were worked out by hand, on CvL's machine with memory that is always waited for as long.

use causeway_engine::reception::Mechanism;
use causeway_model::event::{MILLISECOND, NANOSECOND, Time};
use causeway_model::link::Link;
use causeway_model::machine::Machine;
use causeway_model::router::{Flow, Router, Scenario};
use causeway_model::software::linux::{Graph, Role, Setup, Without};

/// Times of pieces are rounded to picoseconds each, and memory moves a line in some.
const ROUNDING_PS: Time = 1_000;
/// What is waited for a line that is not in the cache: more than what is done with a packet beside.
const LINE_PS: Time = 1_000 * NANOSECOND;
const LINK: Link = Link { rate_bps: 1_000_000_000 };

fn machine() -> Machine {
    let mut machine = Machine::cvl().expect("the machine of the paper");
    (machine.memory.latency.value, machine.memory.rate.value) = (LINE_PS, 10_000_000_000_000);
    machine
}

/// Frames of 64 bytes from the first port to another, evenly spaced: when what happened to the one of this number.
fn followed(
    machine: &Machine,
    (graph, to): (Graph, usize),
    rate_fps: f64,
    number: u64,
) -> impl Fn(&str) -> Time + use<> {
    let links = vec![LINK; to + 1];
    let mechanisms = vec![Mechanism::Polling; links.len()];
    let kernel = Setup {
        mechanisms,
        budget: 300,
        recycling: true,
        role: Role::Click(graph),
        without: Without::default(),
    };
    let flows = vec![Flow { from: 0, to: vec![to], rate_fps }];
    let scenario = Scenario { links, flows, bytes: 64, moderated: false, kernel };
    let mut router = Router::new(machine, &scenario, 1, Some(number)).expect("ports");
    router.run(2 * MILLISECOND);
    move |what| {
        let step = router.trace.steps.iter().find(|(_, step)| step.contains(what));
        step.unwrap_or_else(|| panic!("{what}: {:?}", router.trace.lines())).0
    }
}

fn close(found: Time, expected: Time, what: &str) {
    assert!(found.abs_diff(expected) < ROUNDING_PS, "{what}: {found} ps, by hand {expected} ps");
}

fn cycles(n: u64) -> Time {
    n * 1_000_000 / 2_800
}

/// Cycles of the bus, 133 MHz.
fn bus(cycles: u64) -> Time {
    cycles * 1_000_000 / 133
}

/// A packet that is alone, from wire to wire. Around data the bus has 6 cycles; a read is two transactions and what is between.
#[test]
fn a_packet_alone_goes_through_all_tasks() {
    let machine = machine();
    let click = machine.click.as_ref().expect("there");
    let [look, receive] = [click.look.value, click.receive.value].map(cycles);
    let [graph, queue, send] = [click.graph.value, click.queue.value, click.send.value].map(cycles);
    let register = cycles(machine.software.register_write.value);
    let at = followed(&machine, (Graph::Route, 1), 2_000.0, 2);
    close(at("is in memory") - at("has come in"), bus(8 + 6), "64 bytes over the bus");
    // The report of 16 bytes, and the other three tasks look first at most.
    let waited = at("is taken") - at("is in memory") - bus(2 + 6);
    assert!(waited <= 4 * look + ROUNDING_PS, "{waited} ps");
    // Descriptor and header, which the card wrote, and what is known of a buffer that is new; no other packet waits, so that
    // nothing is asked for ahead. Its task looks once more and tells the card of the buffer; two tasks look; the fourth sends.
    let taken = receive + 3 * LINE_PS + graph + queue;
    let tasks = taken + (look + register) + 2 * look + send;
    close(at("ring for transmission") - at("is taken"), tasks, "the tasks");
    // The doorbell; the descriptor is asked for and comes, then the frame.
    let answer = machine.bus["a"].read_latency.value;
    let card = bus(1 + 6) + bus(6) + answer + bus(2 + 6) + bus(6) + answer + bus(8 + 6);
    close(at("the card that sends") - at("ring for transmission"), card, "the card");
    close(at("has left") - at("the card that sends"), (64 + 20) * 8 * NANOSECOND, "the wire");
}

/// Packets of a whole burst that all wait already: from the begin of each to that of the next.
fn burst(machine: &Machine) -> Vec<Time> {
    // The ring of 256 places has not begun again yet: none is dropped, and each has a descriptor and a buffer that are new.
    let begins = (40..=48).map(|number| followed(machine, (Graph::Count, 0), 1.4e6, number)("is taken"));
    let begins: Vec<Time> = begins.collect();
    begins.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Header and what is known of the next packet are asked for once this one's are there, so that a packet takes one wait and
/// nothing else. The first of a burst waits for its descriptor meanwhile, of which a line has eight; the last tells the card.
#[test]
fn headers_come_while_the_packet_before_is_worked_on() {
    let mut machine = machine();
    let click = machine.click.as_ref().expect("there");
    assert_eq!((click.burst.value, click.prefetch.value), (8, 1));
    let work = cycles(click.receive.value) + cycles(click.count.value);
    let register = cycles(machine.software.register_write.value);
    assert!(work + register < LINE_PS, "the wait is what is seen");
    let found = burst(&machine);
    close(found[0], work + LINE_PS, "the first");
    found[1..7].iter().for_each(|&one| close(one, LINE_PS, "the next six"));
    close(found[7], LINE_PS + register, "the last");
    // Without it each waits for both, one after the other, before it is worked on.
    machine.click.as_mut().expect("there").prefetch.value = 0;
    let found = burst(&machine);
    close(found[0], work + 3 * LINE_PS, "the first");
    found[1..7].iter().for_each(|&one| close(one, work + 2 * LINE_PS, "the next six"));
    close(found[7], work + 2 * LINE_PS + register, "the last");
}
