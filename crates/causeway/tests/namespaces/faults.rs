//! Routers that are killed, stopped, hung or behind while a flow goes through them: the kernel forwards instead. How
//! many packets may be lost until then is ten times what `make faults` aims at (docs/results/faults.md).

use crate::flow::{Account, Flow, PER_MS};
use crate::hold::Hold;
use crate::log::Log;
use crate::net::{Net, Router, wait_for};
use rustix::process::Signal;
use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Packets in ten times the 10 ms within which a death is noticed.
pub const DEATH: u32 = 10 * 10 * PER_MS;
/// Packets in ten times the second within which a hang is noticed.
pub const HANG: u32 = 10 * 1_000 * PER_MS;

/// Starts the router between the hosts and more ports, `ports` in all, and waits until it forwards.
pub fn start(net: &Net, ports: usize) -> (Router, Log) {
    let more = net.cables(ports - 2).join(" ");
    let (up, log) = Log::up(net, "r", &format!("ra rb {more} --attach xdp"));
    net.meet(&up, false);
    (up, log)
}

fn assert_graph_carries(up: &Router, flow: &Flow) {
    let before = up.number("forward.count");
    flow.wait(100);
    let more = up.number("forward.count") - before;
    assert!(more >= 90, "the graph carries the load: {more}");
}

/// Kills a router of `ports` ports under the flow.
pub fn kill(net: &Net, ports: usize) -> Account {
    let (mut up, _log) = start(net, ports);
    let flow = Flow::start(net);
    assert_graph_carries(&up, &flow);
    up.end(Signal::KILL);
    flow.wait(500);
    flow.end()
}

fn kill_among(ports: usize) {
    let Some(net) = Net::new() else { return };
    let account = kill(&net, ports);
    assert!(account.lost <= DEATH && account.duplicates == 0, "{account:?}");
    let links = net.ip("r", "link show");
    assert!(!links.contains("xdp") && !links.contains("punt"), "{links}");
}

#[test]
fn the_kernel_forwards_when_a_router_of_2_ports_is_killed() {
    kill_among(2);
}

#[test]
fn the_kernel_forwards_when_a_router_of_8_ports_is_killed() {
    kill_among(8);
}

#[test]
fn the_kernel_forwards_when_a_router_of_16_ports_is_killed() {
    kill_among(16);
}

/// What a fault costs that does not end the process: the kernel forwards while it lasts, and the router again afterwards.
pub fn pass<F>(net: &Net, up: &Router, log: &Log, begin: impl FnOnce() -> F, end: impl FnOnce(F)) -> Account {
    let flow = Flow::start(net);
    assert_graph_carries(up, &flow);
    let told = log.count("forwarding", "forwarding again");
    let fault = begin();
    // What is in the rings now is lost or late; what comes after it is the kernel's.
    flow.wait(500);
    end(fault);
    log.wait(told, "forwarding", "forwarding again");
    assert_graph_carries(up, &flow);
    flow.end()
}

fn passes<F>(net: &Net, up: &Router, log: &Log, begin: impl FnOnce() -> F, end: impl FnOnce(F)) {
    let account = pass(net, up, log, begin, end);
    assert!(account.lost <= HANG && account.duplicates == 0, "{account:?}");
}

#[test]
fn the_kernel_forwards_while_the_process_is_stopped() {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net, 2);
    let told = log.count("silent", "the kernel forward");
    passes(&net, &up, &log, || up.signal(Signal::STOP), |()| up.signal(Signal::CONT));
    assert!(log.count("silent", "the kernel forward") > told, "{}", log.text());
}

/// The threads without which forwarding would be wrong.
#[test]
fn the_kernel_forwards_while_a_thread_hangs() {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net, 2);
    for (thread, who) in [
        ("worker-0", "worker 0"),
        ("kernel", "the follower of the kernel's routes"),
        ("netlink", "news of the kernel's routes"),
        ("inspector", "the inspector of filters and settings"),
    ] {
        let told = log.count("silent", who);
        let hang = || {
            let hold = Hold::thread(&up, thread);
            log.wait(told, "silent", who);
            hold
        };
        passes(&net, &up, &log, hang, drop);
    }
}

#[test]
fn the_kernel_forwards_while_the_keeper_of_the_right_hangs() {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net, 2);
    let hang = || {
        let hold = Hold::thread(&up, "lease");
        let mut before = 0;
        wait_for("the kernel to forward", || {
            let count = up.number("forward.count");
            std::mem::replace(&mut before, count) == count
        });
        hold
    };
    let told = log.count("silent", "the kernel forward");
    passes(&net, &up, &log, hang, drop);
    assert!(log.count("silent", "the kernel forward") > told, "{}", log.text());
}

/// Applies many changes to the router's routes at once.
fn batch(net: &Net, lines: &str) {
    let mut command = Command::new("ip");
    command.args(["-n", &net.name("r"), "-batch", "-"]).stdin(Stdio::piped());
    let mut child = command.spawn().expect("ip");
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("written");
    assert!(child.wait().expect("ip").success());
}

#[test]
fn a_follower_that_lost_messages_reads_all_anew_before_it_vouches() {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net, 2);
    let routes = |verb: &str, via: &str| {
        (0..60_000u32).fold(String::new(), |mut text, n| {
            let _ = writeln!(text, "route {verb} 20.{}.{}.0/24 via {via}", n >> 8, n & 255);
            text
        })
    };
    let (add, delete) = (routes("add", "10.77.2.2"), routes("del", "10.77.2.2"));
    net.ip("r", "neigh replace 10.77.1.3 lladdr 02:00:00:00:00:03 dev ra nud permanent");
    let flow = Flow::start(&net);
    {
        // Whoever follows reads, too, when it reads all anew.
        let _hold = ["netlink", "kernel"].map(|thread| Hold::thread(&up, thread));
        for _ in 0..3 {
            batch(&net, &add);
            batch(&net, &delete);
        }
        batch(&net, &routes("add", "10.77.1.3"));
    }
    log.wait(0, "messages-lost", "the kernel forwards everything");
    log.wait(0, "forwarding", "forwarding again");
    let way = || up.read("forward.lookup 20.1.2.3");
    assert!(!way().starts_with("rb "), "not as it was before the last messages");
    wait_for("the routes as they are", || way().starts_with("ra 02:00:00:00:00:03"));
    assert_graph_carries(&up, &flow);
    let account = flow.end();
    assert!(account.lost <= HANG, "{account:?}");
}

#[test]
fn a_router_that_is_told_to_stop_loses_nothing() {
    let Some(net) = Net::new() else { return };
    for signal in [Signal::TERM, Signal::INT] {
        let (mut up, _log) = start(&net, 2);
        let flow = Flow::start(&net);
        assert_graph_carries(&up, &flow);
        assert_eq!(up.end(signal), Some(0));
        flow.wait(200);
        let account = flow.end();
        assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
    }
}
