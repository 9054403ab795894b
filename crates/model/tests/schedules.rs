//! Each mechanism against a schedule that was worked out by hand, on OSR's machine with memory that nothing waits for.

use causeway_engine::reception::Mechanism;
use causeway_model::event::{MICROSECOND, MILLISECOND, Time};
use causeway_model::link::Link;
use causeway_model::machine::Machine;
use causeway_model::router::{Flow, Router, Scenario};
use causeway_model::several::{Affinity, Several};
use causeway_model::software::linux::{Role, Setup, Without};

/// Times of pieces are rounded to picoseconds each.
const ROUNDING_PS: Time = 1_000;

fn machine() -> Machine {
    let mut machine = Machine::osr().expect("the machine of the paper");
    (machine.memory.latency.value, machine.memory.rate.value) = (0, 10_000_000_000_000);
    machine
}

/// Frames of 64 bytes from the first port to the second, evenly spaced.
fn scenario(mechanism: Mechanism, moderated: bool, rate_fps: f64) -> Scenario {
    let kernel = Setup {
        mechanisms: vec![mechanism; 2],
        budget: 300,
        recycling: false,
        role: Role::Forward,
        without: Without::default(),
    };
    Scenario {
        links: vec![Link { rate_bps: 1_000_000_000 }; 2],
        flows: vec![Flow { from: 0, to: vec![1], rate_fps }],
        bytes: 64,
        moderated,
        kernel,
    }
}

/// When what happened to the packet of this number.
fn followed(machine: &Machine, scenario: &Scenario, number: u64) -> impl Fn(&str) -> Time + use<> {
    let mut router = Router::new(machine, scenario, 1, Some(number)).expect("ports");
    router.run(4 * MILLISECOND);
    move |what| {
        let step = router.trace.steps.iter().find(|(_, step)| step.contains(what));
        step.unwrap_or_else(|| panic!("{what}: {:?}", router.trace.lines())).0
    }
}

fn close(found: Time, expected: Time, what: &str) {
    assert!(found.abs_diff(expected) < ROUNDING_PS, "{what}: {found} ps, by hand {expected} ps");
}

/// A burst of 64 bits by 133 MHz; 6 cycles around the data.
fn bus(bytes: u64) -> Time {
    (bytes.div_ceil(8) + 6) * 1_000_000 / 133
}

fn cycles(n: u64) -> Time {
    n * 1_000_000 / 2_800
}

/// What the parts of OSR's kernel take.
struct Parts {
    interrupt: Time,
    register: Time,
    soft: Time,
    poll: Time,
    receive: Time,
    backlog: Time,
    allocate: Time,
    forward: Time,
}

fn parts(machine: &Machine) -> Parts {
    let s = &machine.software;
    Parts {
        interrupt: cycles(s.interrupt.value) + s.register_read.value,
        register: cycles(s.register_write.value),
        soft: cycles(s.soft_interrupt.value),
        poll: cycles(s.poll.value),
        receive: cycles(s.receive.value),
        backlog: cycles(s.backlog.value),
        allocate: cycles(s.allocate.value),
        forward: cycles(s.route.value) + cycles(s.transmit.value),
    }
}

/// The handler takes the packet to the backlog and gives the ring a buffer; what is deferred takes it from there.
#[test]
fn by_interrupts_a_packet_goes_over_the_backlog() {
    let machine = machine();
    let p = parts(&machine);
    let at = followed(&machine, &scenario(Mechanism::Interrupt, false, 2_000.0), 2);
    close(at("is taken") - at("is in memory"), bus(16) + p.interrupt, "the report, and the interrupt");
    let handler = p.receive + p.backlog + p.allocate + p.register;
    close(at("ring for transmission") - at("is taken"), handler + p.soft + p.forward, "handler and kernel");
}

/// A frame each 50 us and an interrupt each 125: the first one's comes at once, and 125 us behind it that of the next two, which
/// the handler takes one after the other.
#[test]
fn a_moderated_interrupt_waits_for_its_time_and_takes_what_came_meanwhile() {
    let machine = machine();
    let p = parts(&machine);
    let scenario = scenario(Mechanism::Interrupt, true, 20_000.0);
    let [first, second, third] = [0, 1, 2].map(|number| followed(&machine, &scenario, number));
    close(first("is taken") - first("is in memory"), bus(16) + p.interrupt, "at once");
    let throttle = machine.card.throttle.value;
    assert_eq!(throttle, 125 * MICROSECOND);
    close(second("is taken") - first("is taken"), throttle, "the second waits 75 us");
    close(third("is taken") - second("is taken"), p.receive + p.backlog, "the third in the same handler");
    assert!(third("has come in") - second("has come in") > 49 * MICROSECOND);
}

/// The handler masks the card; the deferred run takes the packet, finds no more, gives the ring a buffer and lets interrupts
/// through, before the packet goes on.
#[test]
fn disable_enable_takes_the_packet_in_the_run_behind_its_interrupt() {
    let machine = machine();
    let p = parts(&machine);
    let at = followed(&machine, &scenario(Mechanism::DisableEnable, false, 2_000.0), 2);
    close(at("is taken") - at("is in memory"), bus(16) + p.interrupt + p.register, "report, interrupt, mask");
    let run = p.soft + p.poll + p.receive + p.forward + p.allocate + 2 * p.register;
    close(at("ring for transmission") - at("is taken"), run, "the run");
}

/// Nobody interrupts: the ports are looked at in turn, so that a packet waits for two looks at most.
#[test]
fn polling_finds_the_packet_in_the_turn_of_its_port() {
    let machine = machine();
    let p = parts(&machine);
    let scenario = scenario(Mechanism::Polling, false, 2_000.0);
    // The very first packet has the entry to deferred work, too, which then never ends.
    for number in 1..5 {
        let at = followed(&machine, &scenario, number);
        let waited = at("is taken") - at("is in memory") - bus(16);
        assert!(waited <= 2 * p.poll + ROUNDING_PS, "{waited} ps of {}", 2 * p.poll);
        let turn = p.poll + p.receive + p.forward + p.allocate + p.register;
        close(at("ring for transmission") - at("is taken"), turn, "the turn");
    }
    let mut router = Router::new(&machine, &scenario, 1, None).expect("ports");
    router.run(4 * MILLISECOND);
    assert!(router.hardware().nics.iter().all(|nic| nic.interrupts == 0));
}

/// Frames come faster than they can be counted, and a thread makes others. It makes none while deferred work is a soft
/// interrupt: 300 packets of each run. From then on both are threads and have a piece each in turn.
#[test]
fn deferred_work_that_does_not_end_becomes_a_thread() {
    for runs in [1, 10] {
        let mut machine = machine();
        machine.software.runs.value = runs;
        machine.software.receive.value = 5_000;
        let napi = scenario(Mechanism::Napi { quota: 64 }, false, 1.4e6);
        let scenario = Scenario { kernel: Setup { role: Role::Generate, ..napi.kernel.clone() }, ..napi };
        let mut router = Router::new(&machine, &scenario, 1, None).expect("ports");
        let mut now_ps = 0;
        let mut until = |router: &mut Router, done: &dyn Fn(u64, u64) -> bool| loop {
            now_ps += MICROSECOND;
            router.run(now_ps);
            let stack = &router.kernel().stack;
            if done(stack.counted, stack.generated) {
                return (stack.counted, stack.generated);
            }
            assert!(now_ps < 20 * MILLISECOND, "{} {}", stack.counted, stack.generated);
        };
        let (_, before) = until(&mut router, &|counted, _| counted >= 50);
        let (counted, made) = until(&mut router, &|_, made| made > before);
        assert!(counted.abs_diff(300 * runs) <= 2, "{runs} runs: {counted}");
        let (more, made) = {
            let (counted_then, made_then) = until(&mut router, &|later, _| later >= counted + 500);
            (counted_then - counted, made_then - made)
        };
        assert!(more.abs_diff(made) <= 10, "in turn: {more} counted, {made} made");
    }
}

/// Two cards have more than can be counted. In turn each has its quota, and its ring gets as many buffers; what is deferred never ends
/// and is entered once.
#[test]
fn by_napi_cards_have_their_quotas_in_turns() {
    let machine = machine();
    let p = parts(&machine);
    for quotas in [[8, 8], [64, 64], [64, 16]] {
        let mut scenario = scenario(Mechanism::Polling, false, 1.4e6);
        scenario.flows = [0, 1].map(|from| Flow { from, to: vec![from], rate_fps: 1.4e6 }).into();
        scenario.kernel.role = Role::Count;
        // A run that ends between turns cuts none short.
        scenario.kernel.budget = 3 * quotas.iter().sum::<u32>() as usize;
        scenario.kernel.mechanisms = quotas.map(|quota| Mechanism::Napi { quota }).into();
        let mut router = Router::new(&machine, &scenario, 1, None).expect("ports");
        router.run(5 * MILLISECOND);
        let before = router.kernel().stack.counted_by.clone();
        router.run(15 * MILLISECOND);
        let packet = p.receive + cycles(machine.software.free.value) + p.allocate;
        let turns: Time = quotas.iter().map(|&quota| p.poll + u64::from(quota) * packet + p.register).sum();
        for port in [0, 1] {
            let counted = router.kernel().stack.counted_by[port] - before[port];
            let expected = u64::from(quotas[port]) * 10 * MILLISECOND / turns;
            let off = counted.abs_diff(expected);
            assert!(
                off <= 2 * u64::from(quotas[port]) + expected / 100,
                "{quotas:?}: {counted} of {expected}"
            );
        }
    }
}

/// Two cards receive in turn, each on a processor of its own, and the third sends. The buffer is a new one, which no cache has;
/// the lock, the head of its queue and the line of the descriptor were last written by who cleaned what was sent before: in
/// mode I on the other chip, in mode II by the neighbour.
#[test]
fn with_several_processors_a_packet_waits_for_three_lines_of_who_sends() {
    let mut machine = Machine::aff().expect("the machine of the paper");
    (machine.memory.latency.value, machine.memory.rate.value) = (0, 10_000_000_000_000);
    let (s, several) = (&machine.software, machine.several.as_ref().expect("several"));
    let cycles = |n: u64| n * 1_000_000 / 1_600;
    let [interrupt, soft, poll, register] =
        [&s.interrupt, &s.soft_interrupt, &s.poll, &s.register_write].map(|one| cycles(one.value));
    let forward: Time =
        [&s.receive, &s.route, &s.transmit, &s.allocate].iter().map(|one| cycles(one.value)).sum();
    for (processors, line) in [([0, 1, 2], several.transfer.value), ([0, 2, 1], several.near.value)] {
        // The handler does all itself, or masks the card, leaves it to a deferred run, and that lets interrupts through again.
        let mechanisms =
            [(Mechanism::DisableEnable, 0), (Mechanism::Napi { quota: 64 }, soft + 2 * register)];
        for (mechanism, more) in mechanisms {
            let affinity = Affinity { processors, mixed: false };
            let role = Role::Affinity(affinity);
            let mut scenario = scenario(mechanism, false, 1_000.0);
            scenario.kernel = Setup { mechanisms: vec![mechanism; 3], role, ..scenario.kernel };
            scenario.links = vec![Link { rate_bps: 1_000_000_000 }; 3];
            scenario.flows = [0, 1].map(|from| Flow { from, to: vec![2], rate_fps: 1_000.0 }).into();
            let mut router = Several::new(&machine, &scenario, affinity, Some(2)).expect("ports");
            router.run(4 * MILLISECOND);
            let at = |what: &str| {
                let step = router.trace.steps.iter().find(|(_, step)| step.contains(what));
                step.unwrap_or_else(|| panic!("{what}: {:?}", router.trace.lines())).0
            };
            let receives = interrupt + poll + forward + register;
            let sends = cycles(several.lock.value) + register + 3 * line;
            let found = at("ring for transmission") - at("is taken");
            close(found, receives + sends + more, &format!("{mechanism} {processors:?}"));
        }
    }
}
