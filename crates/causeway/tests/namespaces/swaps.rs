//! What a hot swap costs the packets of the worker that it is about, and those of another one.

use crate::flow::Flow;
use crate::net::Net;
use std::fmt::Write;
use std::time::Duration;

/// Hosts on one wire, and a worker for each direction. The first one's graph has so many counters on the way.
fn wire(counters: usize) -> String {
    let on_the_way: String = (0..counters).map(|n| format!("-> c{n} :: Counter ")).collect();
    let first: String = (0..counters).map(|n| format!("c{n} 0, ")).collect();
    format!(
        "StaticThreadSched({first}in0 0, q0 0, out0 0, in1 1, q1 1, out1 1);
         in0 :: FromDevice(ra, PROMISC true) {on_the_way}-> q0 :: Queue -> out0 :: ToDevice(rb);
         in1 :: FromDevice(rb, PROMISC true) -> q1 :: Queue -> out1 :: ToDevice(ra);"
    )
}

/// What was seen of one swap, or of as long without one.
#[derive(Clone, Copy, Default)]
struct Seen {
    lost: u32,
    silence: Duration,
}

/// The flows through both workers around what `act` does.
fn look(net: &Net, act: impl FnOnce()) -> [Seen; 2] {
    let flows = [(["a", "b"], "10.77.3.2:4001"), (["b", "a"], "10.77.3.1:4002")]
        .map(|(hosts, target)| Flow::dense(net, hosts, target));
    flows.iter().for_each(|flow| flow.wait(200));
    act();
    flows.iter().for_each(|flow| flow.wait(200));
    flows.map(|flow| {
        let account = flow.end();
        Seen { lost: account.lost, silence: account.silence }
    })
}

/// Median and worst.
fn of(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    match values.last() {
        Some(worst) => format!("{:.0} | {worst:.0}", values[values.len() / 2]),
        None => "- | -".to_owned(),
    }
}

/// The part of the page about hot swaps: `rounds` of them, and as often none.
pub fn table(rounds: usize) -> String {
    let net = Net::new().expect("root");
    for (host, address) in [("a", "10.77.3.1/24"), ("b", "10.77.3.2/24")] {
        net.ip(host, &format!("addr add {address} dev {host}0"));
    }
    let file = std::env::temp_dir().join(format!("{}.click", net.name("swap")));
    std::fs::write(&file, wire(0)).expect("a file");
    let router = net.start("r", &format!("run {} --threads 2", file.display()));
    let _ = std::fs::remove_file(file);
    assert!(net.ping("-c 3 10.77.3.2").0);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let mut stood_still = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        without.push(look(&net, || ()));
        let text = wire(1 + round % 2);
        with.push(look(&net, || router.write("hotconfig", &text).expect("a good configuration")));
        let times = router.read("stood_still_ns");
        let microseconds = times.lines().filter_map(|ns| Some(ns.parse::<f64>().ok()? / 1e3));
        stood_still.iter_mut().zip(microseconds).for_each(|(times, time)| times.push(time));
    }
    let mut text = String::new();
    for (worker, which) in ["whose graph changes", "whose graph stays"].into_iter().enumerate() {
        let silence = |seen: &[[Seen; 2]]| {
            of(seen.iter().map(|round| round[worker].silence.as_secs_f64() * 1e6).collect())
        };
        let lost: u32 = with.iter().map(|round| round[worker].lost).sum();
        let _ = writeln!(
            text,
            "| the one {which} | {rounds} | {lost} | {} | {} | {} |",
            silence(&without),
            silence(&with),
            of(stood_still[worker].clone())
        );
    }
    print!("{text}");
    text
}
