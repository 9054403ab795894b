//! TCP and UDP between hosts whose cards finish checksums and cut segments, which virtual ones only pretend to: every
//! transfer ends, what arrives is what was sent, and no wrong checksum is on the wire.

use crate::net::{Net, wait_for};
use crate::transfer::{datagrams, streams};
use std::process::Stdio;

const TARGETS: [&str; 2] = ["10.77.2.2", "2001:db8:2::2"];

/// Octets of a stream.
const LENGTH: usize = 4 << 20;

fn all_arrives(net: &Net) {
    for target in TARGETS {
        for flows in [1, 16] {
            streams(net, target, flows, LENGTH / flows);
        }
        datagrams(net, target, 400);
    }
}

/// Datagrams and segments that host `b` refused for their checksums.
pub fn refused(net: &Net) -> u64 {
    let text = net.inside("b", "nstat", "-asz TcpInCsumErrors UdpInCsumErrors Udp6InCsumErrors");
    let numbers = text.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    numbers.sum()
}

/// Turns the offloads of both hosts on or off.
pub fn offloads(net: &Net, on: bool) {
    for (host, device) in [("a", "a0"), ("b", "b0")] {
        let state = if on { "on" } else { "off" };
        net.inside(host, "ethtool", &format!("-K {device} tx {state} tso {state} gso {state}"));
    }
}

#[test]
fn containers_speak_through_the_default_ports() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    let up = net.start_with("r", "up ra rb", Stdio::inherit());
    all_arrives(&net);
    assert_eq!(refused(&net), 0);
    drop(up);
}

/// With programs in the drivers; the kernel is to finish checksums when it sends, so that all on the wire are right.
fn no_wrong_checksum(on: bool) {
    let Some(net) = Net::new() else { return };
    offloads(&net, on);
    net.inside("r", "ethtool", "-K rb tx off");
    // Merged segments would have the checksums of the first.
    net.inside("b", "ethtool", "-K b0 gro off");
    let up = net.up();
    net.meet(&up, false);
    net.meet(&up, true);
    let wire = crate::wire::Wire::tap(&net, "b", "b0");
    all_arrives(&net);
    let (good, wrong) = wire.end();
    assert!(good > 1_000 && wrong == 0, "{good} right checksums and {wrong} wrong ones");
    assert_eq!(refused(&net), 0);
    let partial = up.counted("in0", |name| name == "port.xdp_pass_partial_checksum");
    match on {
        true => assert!(partial > 1_000, "{partial} were left to the kernel"),
        false => assert!(partial < 50, "{partial} look as if they were unfinished"),
    }
    wait_for("the graph to have forwarded", || up.number("forward.count") > 0);
}

#[test]
fn what_hosts_finish_the_graph_forwards_right() {
    no_wrong_checksum(false);
}

#[test]
fn what_hosts_leave_unfinished_is_the_kernels() {
    no_wrong_checksum(true);
}
