//! Routers that say nothing to anybody, routers of the same name in two namespaces, and hot swaps that fail.

use crate::net::{Net, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

#[test]
fn a_reader_of_the_log_who_has_enough_changes_nothing() {
    let Some(net) = Net::new() else { return };
    let mut up = net.start_with("r", "up ra rb --attach xdp", Stdio::piped());
    let stderr = up.child.stderr.take().expect("a pipe");
    // As with `causeway up ra rb 2>&1 | head`.
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("control socket")));
    drop(lines);
    net.meet(&up, false);
    // The thread that follows the kernel has something to say about this.
    net.inside("r", "tc", "qdisc add dev rb root tbf rate 1gbit burst 100kb latency 50ms");
    std::thread::sleep(Duration::from_millis(500));
    net.inside("r", "tc", "qdisc del dev rb root");
    net.ip("r", "route add 10.78.0.0/24 via 10.77.2.2");
    wait_for("the new route", || up.read("forward.lookup 10.78.0.1").starts_with("rb "));
    net.ip("r", "route del 10.78.0.0/24");
    wait_for("the route to go", || up.read("forward.lookup 10.78.0.1") == "none");
    assert_eq!(up.end(Signal::TERM), Some(0));
}

/// A router without a name of its own, and where its control socket is.
struct Unnamed {
    child: Child,
    socket: String,
}

impl Unnamed {
    /// Runs a graph with an element that is called as the namespace.
    fn start(net: &Net, space: &str) -> Unnamed {
        let mut command = net.causeway_in(space, "");
        command.args(["run", "-e", &format!("{space} :: Idle -> Discard;")]).stderr(Stdio::piped());
        let mut child = command.spawn().expect("causeway");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut lines = stderr.lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("control socket")).expect("it starts");
        std::thread::spawn(move || lines.for_each(drop));
        let socket = line.split_once("control socket ").and_then(|(_, rest)| rest.split_once(','));
        Unnamed { child, socket: socket.expect("a path").0.to_owned() }
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

#[test]
fn routers_without_names_get_two_and_are_found_from_their_namespaces() {
    let Some(net) = Net::new() else { return };
    let (a, b) = (Unnamed::start(&net, "a"), Unnamed::start(&net, "b"));
    assert_ne!(a.socket, b.socket);
    let read = |space: &str| net.causeway_in(space, "read list").output().expect("causeway");
    for space in ["a", "b"] {
        let list = String::from_utf8_lossy(&read(space).stdout).into_owned();
        assert!(list.lines().any(|name| name == space), "{space}: {list}");
    }
    let elsewhere = read("r");
    let said = String::from_utf8_lossy(&elsewhere.stderr).into_owned();
    assert!(!elsewhere.status.success() && said.contains("several routers run"), "{said}");
    for router in [&a, &b] {
        assert!(said.contains(&format!("--socket {}  (", router.socket)), "{said}");
    }
}

#[test]
fn a_hot_swap_that_fails_leaves_interfaces_alone() {
    let Some(net) = Net::new() else { return };
    let graph = |address: &str| format!("FromHost(host0, {address}) -> Discard;");
    let router = net.start("r", "run udpcount.click -D dev=ra");
    let addresses = || net.ip("r", "-4 -br addr show dev host0");
    router.write("hotconfig", &graph("10.77.8.1/24")).expect("a good configuration");
    assert!(addresses().contains("10.77.8.1/24"), "{}", addresses());
    let bad = graph("10.77.9.1/24") + " Idle -> ToDump(/no/such/folder/x);";
    let wrong = router.write("hotconfig", &bad).expect_err("a configuration that fails");
    assert!(wrong.contains("/no/such/folder/x"), "{wrong}");
    assert!(addresses().contains("10.77.8.1/24"), "{}", addresses());
    router.write("hotconfig", &graph("10.77.9.1/24")).expect("a good configuration");
    assert!(addresses().contains("10.77.9.1/24"), "{}", addresses());
}
