//! Ports that are renamed, deleted, made anew, moved and enslaved while the router runs: it says so, leaves them to the
//! kernel, and attaches them again.

use crate::driver::{self, TCX, XDP, pings};
use crate::hold::Hold;
use crate::log::Log;
use crate::net::{Net, Router, wait_for};

fn start(net: &Net) -> (Router, Log) {
    let (up, log) = Log::up(net, "r", "ra rb --attach xdp");
    net.meet(&up, false);
    (up, log)
}

const ADDRESSES: [&str; 3] =
    ["addr add 10.77.1.1/24 dev ra", "addr add 2001:db8:1::1/64 dev ra nodad", "link set ra up"];

#[test]
fn a_port_is_renamed_and_named_back() {
    let Some(net) = Net::new() else { return };
    let (mut up, log) = start(&net);
    let go = ["link set ra down", "link set ra name other", "link set other up"];
    go.iter().for_each(|args| drop(net.ip("r", args)));
    log.wait(0, "port-gone", "its interface is called other now");
    assert!(net.ping("-c 3 10.77.2.2").0, "the kernel forwards by it");
    net.ip("r", "link set other down");
    net.ip("r", "link set other name ra");
    net.ip("r", "-6 addr replace 2001:db8:1::1/64 dev ra nodad");
    net.ip("r", "link set ra up");
    net.meet(&up, false);
    assert!(log.count("port-attached", "ra: attached again") > 0);
    assert!(up.child.try_wait().expect("wait").is_none());
}

#[test]
fn a_port_is_deleted_and_made_anew() {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net);
    for round in 1..=2 {
        net.ip("r", "link del ra");
        log.wait(round - 1, "port-gone", "ra: there is no interface of that name any more");
        net.link("a", 1);
        log.wait(round - 1, "port-attached", "ra: attached again");
        net.meet(&up, false);
    }
}

#[test]
fn without_any_port_a_written_graph_gives_way_and_counts_stay() {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net);
    let graph = up.read("config");
    up.write("hotconfig", &format!("{graph} Idle -> Discard;")).expect("a graph of one's own");
    assert!(net.ping("-c 20 10.77.2.2").0);
    let before = up.number("forward.count");
    for port in ["ra", "rb"] {
        net.ip("r", &format!("link del {port}"));
        log.wait(0, "port-detached", &format!("{port}: not attached any more"));
    }
    assert_eq!(log.count("graph-replaced", "gives way to the router's own"), 1, "once");
    for (n, host) in [(1, "a"), (2, "b")] {
        net.link(host, n);
        log.wait(0, "port-attached", &format!("r{host}: attached again"));
    }
    net.meet(&up, false);
    assert!(before >= 20 && up.number("forward.count") > before);
}

#[test]
fn a_port_that_is_deleted_and_made_anew_at_once_is_another_one() {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net);
    net.ip("r", "link del ra");
    net.link("a", 1);
    log.wait(0, "port-attached", "ra: attached again");
    net.meet(&up, false);
    net.meet(&up, true);
}

#[test]
fn a_port_is_moved_to_another_namespace_and_back() {
    let Some(net) = Net::new() else { return };
    let (mut up, log) = start(&net);
    let go = format!("link set ra netns {}", net.name("b"));
    let (gone, attached) = (log.count("port-gone", "ra: "), log.count("port-attached", "ra: "));
    net.ip("r", &go);
    log.wait(gone, "port-gone", "ra: ");
    net.ip("b", &format!("link set ra netns {}", net.name("r")));
    ADDRESSES.iter().for_each(|args| drop(net.ip("r", args)));
    log.wait(attached, "port-attached", "ra: ");
    net.meet(&up, false);
    assert!(up.child.try_wait().expect("wait").is_none());
}

/// It has the same index then, so that who looks only now and then sees no other interface.
#[test]
fn a_port_that_was_moved_away_and_back_unseen_is_attached_again() {
    for args in [XDP, TCX] {
        let Some(net) = Net::new() else { return };
        let (up, log) = driver::start(&net, args);
        let hold = Hold::thread(&up, "kernel");
        // The host has no interface of that index.
        net.ip("r", &format!("link set rb netns {}", net.name("a")));
        net.ip("a", &format!("link set rb netns {}", net.name("r")));
        for address in ["addr add 10.77.2.1/24", "addr add 2001:db8:2::1/64 nodad"] {
            net.ip("r", &format!("{address} dev rb"));
        }
        net.ip("r", "link set rb up");
        drop(hold);
        wait_for("the driver", || pings(&net, &up) == (true, 0));
        let seen = ["port-gone", "port-other"].map(|code| log.count(code, "rb: "));
        assert_eq!(seen, [0; 2], "nobody saw it");
    }
}

#[test]
fn a_port_of_a_bridge_is_the_bridges() {
    let Some(net) = Net::new() else { return };
    let (mut up, log) = start(&net);
    net.ip("r", "link add br0 type bridge");
    let forwarded = up.number("forward.count");
    net.ip("r", "link set ra master br0");
    log.wait(0, "port-gone", "ra: it belongs to a bridge");
    net.ip("r", "link set br0 up");
    net.ip("r", "addr del 10.77.1.1/24 dev ra");
    net.ip("r", "addr add 10.77.1.1/24 dev br0");
    net.ip("a", "neigh flush dev a0");
    wait_for("the kernel to forward by the bridge", || net.ping("-c 3 10.77.2.2").0);
    assert!(up.number("forward.count") <= forwarded + 2, "the graph forwards nothing of it");
    net.ip("r", "addr del 10.77.1.1/24 dev br0");
    net.ip("r", "link set ra nomaster");
    net.ip("r", "addr add 10.77.1.1/24 dev ra");
    net.ip("a", "neigh flush dev a0");
    log.wait(0, "port-attached", "ra: attached again");
    net.meet(&up, false);
    assert!(up.child.try_wait().expect("wait").is_none());
}

#[test]
fn two_routers_share_a_namespace() {
    let Some(net) = Net::new() else { return };
    let one = net.start("r", "up ra --attach xdp");
    let command = format!("up rb --attach xdp --name {}2", net.name("r"));
    let mut other = net.causeway(&command).spawn().expect("causeway");
    wait_for("the other to run", || net.ip("r", "link show rb").contains("xdp"));
    let both = net.ping("-c 5 10.77.2.2");
    other.kill().expect("kill");
    other.wait().expect("wait");
    assert!(both.0 && both.1.contains("ttl=63"), "{}", both.1);
    assert!(
        one.read("forward.lookup 10.77.2.2").starts_with("kernel "),
        "the other's port is none of its own"
    );
    assert!(net.ping("-c 5 10.77.2.2").0);
}
