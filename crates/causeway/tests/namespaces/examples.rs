//! The example configurations that need devices, between hosts.

use crate::net::{Net, Router, wait_for};
use rustix::process::Signal;

/// conf/router.click between the hosts, with what `more` defines. The kernel does not forward beside it.
pub fn router(net: &Net, more: &str) -> Router {
    net.inside("r", "sysctl", "-qw net.ipv4.ip_forward=0");
    let (mac0, mac1) = (net.mac("r", "ra"), net.mac("r", "rb"));
    let link0 = format!("-D dev0=ra -D addr0=10.77.1.1/24 -D mac0={mac0}");
    let link1 = format!("-D dev1=rb -D addr1=10.77.2.1/24 -D mac1={mac1}");
    net.start("r", &format!("run router.click {link0} {link1} -D gateway=10.77.2.2 {more}"))
}

#[test]
fn bridge_passes_frames_both_ways() {
    let Some(net) = Net::new() else { return };
    for (host, address) in [("a", "10.77.3.1/24"), ("b", "10.77.3.2/24")] {
        net.ip(host, &format!("addr add {address} dev {host}0"));
    }
    let bridge = net.start("r", "run bridge.click -D dev0=ra -D dev1=rb");
    for (host, target) in [("a", "10.77.3.2"), ("b", "10.77.3.1")] {
        let (good, text) = net.ping_from(host, &format!("-c 20 -s 1400 {target}"));
        assert!(good && text.contains("ttl=64"), "{text}");
    }
    assert_eq!(bridge.counted("", |name| name.starts_with("drop.")), 0);
    // Each ping crosses twice, and an ARP request and its reply before the first.
    for way in ["there.count", "back.count"] {
        assert!(bridge.number(way) >= 41, "{way} {}", bridge.number(way));
    }
}

#[test]
fn router_does_what_a_router_owes() {
    let Some(net) = Net::new() else { return };
    let _router = router(&net, "-D mtu1=1280");
    let (good, text) = net.ping("-c 10 10.77.2.2");
    assert!(good && text.contains("ttl=63"), "{text}");
    let (good, text) = net.ping_from("b", "-c 10 10.77.1.2");
    assert!(good && text.contains("ttl=63"), "{text}");
    let neighbours = net.ip("a", "neigh show 10.77.1.1");
    assert!(neighbours.contains(&net.mac("r", "ra")), "{neighbours}");
    let (good, text) = net.ping("-c 2 10.77.1.1");
    assert!(good && text.contains("from 10.77.1.1"), "the router answers pings: {text}");
    assert!(!text.contains("Redirect"), "it does not redirect itself: {text}");
    let (_, text) = net.ping("-c 1 -W 10 10.77.2.77");
    assert!(text.contains("10.77.1.1") && text.contains("Destination Host Unreachable"), "{text}");
    let (_, text) = net.ping("-c 1 -t 1 10.77.2.2");
    assert!(text.contains("10.77.1.1") && text.contains("Time to live exceeded"), "{text}");
    let (_, text) = net.ping("-c 1 -M do -s 1400 10.77.2.2");
    assert!(text.contains("10.77.1.1") && text.contains("mtu = 1280"), "{text}");
    let (good, text) = net.ping("-c 2 -M dont -s 1400 10.77.2.2");
    assert!(good, "in fragments: {text}");
}

/// Sends 10 000 packets by conf/udpsend.click from host `a` to the router's end of its cable, and accounts for each.
fn send_and_account(net: &Net, count: &Router, stalled: bool) {
    let arrived = |name: &str| name == "port.rx_packets" || name.starts_with("port.rx_drop_");
    let before = (net.sent("a", "a0"), count.counted("", arrived), count.number("good.count"));
    let link = format!("-D dev=a0 -D from={} -D to={}", net.mac("a", "a0"), net.mac("r", "ra"));
    let flow = "-D src=10.77.1.2 -D dst=10.77.1.1 -D rate=20000 -D limit=10000";
    if stalled {
        count.signal(Signal::STOP);
    }
    let mut sender = net.start("a", &format!("run udpsend.click {link} {flow}"));
    let mut shared = sender.shared_counters();
    assert!(sender.child.wait().expect("the sender").success());
    let (sent, refused) = (shared.get("out", "count"), shared.get("out", "drop.ring-full"));
    assert_eq!(sent + refused, 10_000, "the sender knows of each");
    if stalled {
        count.signal(Signal::CONT);
    }
    // The interface sends a few frames of the host's own too.
    let crossed = || net.sent("a", "a0") - before.0;
    assert!(crossed() >= sent);
    wait_for("each to be counted", || count.counted("", arrived) - before.1 >= crossed());
    let good = count.number("good.count") - before.2;
    match stalled {
        false => assert_eq!(good, sent),
        true => {
            let lost = count.counted("FromDevice@1", |name| name == "port.rx_drop_ring_full");
            assert!(lost > 0 && good + lost >= sent && good <= sent, "{good} + {lost} of {sent}");
            assert_eq!(count.number("FromDevice@1.kernel_drops"), lost);
        }
    }
}

#[test]
fn udpcount_counts_what_udpsend_sends_or_says_where_it_was_lost() {
    let Some(net) = Net::new() else { return };
    // Nothing moves by itself: what one end sends and the other counts can be compared.
    for (space, device) in [("a", "a0"), ("r", "ra")] {
        net.inside(space, "sysctl", &format!("-qw net.ipv6.conf.{device}.disable_ipv6=1"));
    }
    let count = net.start("r", "run udpcount.click -D dev=ra");
    send_and_account(&net, &count, false);
    // A receiver that does not run for longer than its ring lasts.
    send_and_account(&net, &count, true);
}
