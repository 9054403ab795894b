//! The kernel's settings, addresses and limits, at the start and while the router runs: what the kernel would not forward,
//! or not so, the router does not either.

use crate::flow::receive_from;
use crate::net::{Net, Router, wait_for};

/// An interface that does not forward takes ICMP redirects as a host does; a router is told to leave everything to the kernel
/// then.
const NO_REDIRECTS: &str = "net.ipv4.conf.ra.accept_redirects=0";
const B4: &str = "10.77.2.2";
const B6: &str = "2001:db8:2::2";

fn set(net: &Net, setting: &str) {
    net.inside("r", "sysctl", &format!("-qw {setting}"));
}

/// Nothing comes through, and the graph forwards nothing.
fn assert_stays(net: &Net, up: &Router, target: &str) {
    wait_for("packets to stop", || !net.ping_from("a", &format!("-c 1 -W 1 {target}")).0);
    let before = up.number("forward.count");
    assert!(!net.ping(&format!("-c 3 {target}")).0);
    assert_eq!(up.number("forward.count"), before);
}

#[test]
fn what_the_kernel_does_not_forward_later_stays() {
    let Some(net) = Net::new() else { return };
    set(&net, NO_REDIRECTS);
    let up = net.up();
    for (off, on) in [
        ("net.ipv4.ip_forward=0", "net.ipv4.ip_forward=1"),
        ("net.ipv4.conf.ra.forwarding=0", "net.ipv4.conf.ra.forwarding=1"),
    ] {
        net.meet(&up, false);
        set(&net, off);
        assert_stays(&net, &up, B4);
        net.meet(&up, true);
        set(&net, on);
    }
    net.meet(&up, false);
    for (off, on) in [
        ("net.ipv6.conf.all.forwarding=0", "net.ipv6.conf.all.forwarding=1"),
        ("net.ipv6.conf.ra.disable_ipv6=1", "net.ipv6.conf.ra.disable_ipv6=0"),
    ] {
        net.meet(&up, true);
        set(&net, off);
        assert_stays(&net, &up, B6);
        net.meet(&up, false);
        set(&net, on);
        // The kernel takes these addresses away with IPv6.
        let address = "2001:db8:1::1/64 dev ra nodad";
        if off.contains("disable") {
            net.ip("r", &format!("-6 addr replace {address}"));
        }
    }
    net.meet(&up, true);
}

#[test]
fn what_the_kernel_does_not_forward_at_the_start_stays() {
    let Some(net) = Net::new() else { return };
    for (off, on, target) in [
        ("net.ipv4.ip_forward=0", "net.ipv4.ip_forward=1", B4),
        ("net.ipv4.conf.ra.forwarding=0", "net.ipv4.conf.ra.forwarding=1", B4),
        ("net.ipv6.conf.all.forwarding=0", "net.ipv6.conf.all.forwarding=1", B6),
    ] {
        set(&net, off);
        set(&net, NO_REDIRECTS);
        let up = net.up();
        net.meet(&up, target == B4);
        assert_stays(&net, &up, target);
        set(&net, on);
        net.meet(&up, target == B6);
    }
}

#[test]
fn sources_are_checked_as_rp_filter_says() {
    let Some(net) = Net::new() else { return };
    // Host `a` sends from two networks that the router would not answer there, and from the router's own addresses.
    for address in ["10.98.0.5", "10.99.0.5", "10.77.1.1", "10.77.2.1"] {
        net.ip("a", &format!("addr add {address}/32 dev lo"));
    }
    net.ip("a", "route replace 10.77.1.0/24 dev a0 src 10.77.1.2");
    net.ip("r", "route add 10.98.0.0/24 via 10.77.2.2");
    let hops =
        [("10.77.1.2", [true; 3]), ("10.98.0.5", [true, false, true]), ("10.99.0.5", [true, false, false])];
    let own = [("10.77.1.1", [false; 3]), ("10.77.2.1", [false; 3])];
    let check = |up: Option<&Router>| {
        for mode in 0..3 {
            set(&net, &format!("net.ipv4.conf.ra.rp_filter={mode}"));
            set(&net, &format!("net.ipv4.conf.all.rp_filter={mode}"));
            if let Some(up) = up {
                // What sends no message counts within a second.
                std::thread::sleep(std::time::Duration::from_millis(1_500));
                net.meet(up, false);
            }
            for (source, passes) in hops.iter().chain(&own) {
                let before = up.map(|up| up.number("forward.count"));
                let came = receive_from(&net, source, 20);
                let wanted = if passes[mode] { 20 } else { 0 };
                assert_eq!(came, wanted, "from {source} with rp_filter {mode}, router: {}", up.is_some());
                let Some((up, before)) = up.zip(before) else { continue };
                let forwarded = up.number("forward.count") - before;
                let all = u64::from(came);
                assert!(
                    forwarded >= all && forwarded <= all + 5,
                    "{source}, {mode}: {forwarded} by the graph"
                );
            }
        }
    };
    check(None);
    let up = net.up();
    check(Some(&up));
}

#[test]
fn a_port_may_get_another_ethernet_address() {
    let Some(net) = Net::new() else { return };
    let up = net.up();
    net.meet(&up, false);
    let mac = "02:00:5e:00:01:0a";
    let table =
        "add table netdev t ; add chain netdev t in { type filter hook ingress device a0 priority 0 ; }";
    net.inside("a", "nft", table);
    net.inside("a", "nft", &format!("add rule netdev t in ip protocol icmp ether saddr != {mac} counter"));
    net.ip("r", &format!("link set ra address {mac}"));
    net.ip("a", &format!("neigh replace 10.77.1.1 lladdr {mac} dev a0 nud permanent"));
    net.meet(&up, false);
    let (good, text) = net.ping("-c 10 10.77.2.2");
    assert!(good && text.contains("ttl=63"), "{text}");
    let rules = net.inside("a", "nft", "list ruleset");
    assert!(rules.contains("counter packets 0 "), "what leaves has the new address: {rules}");
}

#[test]
fn mtus_that_change_count() {
    let Some(net) = Net::new() else { return };
    let up = net.up();
    net.meet(&up, false);
    let mtu = |bytes: u32| {
        for (space, device) in [("a", "a0"), ("r", "ra"), ("r", "rb"), ("b", "b0")] {
            net.ip(space, &format!("link set {device} mtu {bytes}"));
        }
    };
    // Longer than a frame of the pool: the kernel's.
    for bytes in [3_000, 1_500, 2_000, 1_500] {
        mtu(bytes);
        wait_for("packets of the new size", || {
            net.ping(&format!("-c 3 -M do -s {} {B4}", bytes - 28)).0
                && net.ping(&format!("-c 3 -M do -s {} {B6}", bytes - 48)).0
        });
        net.meet(&up, false);
    }
    net.ip("r", "link set rb mtu 1300");
    wait_for("the router's word of the new MTU", || {
        net.inside("a", "ip", "route flush cache");
        net.ping(&format!("-c 1 -M do -s 1400 {B4}")).1.contains("mtu = 1300")
    });
    assert!(net.ping(&format!("-c 3 -M do -s 1272 {B4}")).0);
}

#[test]
fn hosts_are_told_of_a_better_way() {
    let Some(net) = Net::new() else { return };
    net.ip("a", "addr add 10.77.1.3/24 dev a0");
    net.ip("r", "route add 10.88.0.0/24 via 10.77.1.3");
    let up = net.up();
    net.meet(&up, false);
    let told = || {
        net.inside("a", "ip", "route flush cache");
        net.ping("-c 3 -W 1 -I 10.77.1.2 10.88.0.1").1.contains("Redirect")
    };
    wait_for("the route", || up.read("forward.lookup 10.88.0.1").starts_with("ra "));
    wait_for("a redirect", told);
    for which in ["all", "ra"] {
        set(&net, &format!("net.ipv4.conf.{which}.send_redirects=0"));
    }
    wait_for("the graph to send them back", || {
        let before = up.number("forward.count");
        net.ping("-c 3 -W 1 -I 10.77.1.2 10.88.0.1");
        up.number("forward.count") >= before + 3
    });
    assert!(!told());
}
