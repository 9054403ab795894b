//! The router that `causeway new router` writes, and the examples of IPv6, between hosts.

use crate::net::Net;
use std::process::Command;

/// Writes a configuration by the interfaces of the router's namespace, and returns its path.
pub fn written(net: &Net) -> String {
    let path = std::env::temp_dir().join(format!("causeway-new-router-{}.click", std::process::id()));
    let path = path.to_str().expect("a path in ASCII").to_owned();
    let output = net.causeway_in("r", &format!("new router ra rb -o {path}")).output().expect("the binary");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// The kernel forwards nothing beside it.
fn alone(net: &Net) {
    for setting in ["net.ipv4.ip_forward=0", "net.ipv6.conf.all.forwarding=0"] {
        net.inside("r", "sysctl", &format!("-qw {setting}"));
    }
}

#[test]
fn the_written_router_forwards_both_versions() {
    let Some(net) = Net::new() else { return };
    let path = written(&net);
    alone(&net);
    let router = net.start("r", &format!("run {path}"));
    let _ = std::fs::remove_file(&path);
    let (good, text) = net.ping("-c 10 10.77.2.2");
    assert!(good && text.contains("ttl=63"), "{text}");
    let (good, text) = net.ping("-c 10 2001:db8:2::2");
    assert!(good && text.contains("ttl=63"), "{text}");
    let (good, text) = net.ping_from("b", "-6 -c 5 2001:db8:1::2");
    assert!(good && text.contains("ttl=63"), "{text}");
    let (good, text) = net.ping("-c 2 10.77.1.1");
    assert!(good, "the router answers pings: {text}");
    let (_, text) = net.ping("-c 1 -t 1 2001:db8:2::2");
    assert!(text.contains("Hop limit") || text.contains("Time exceeded"), "{text}");
    let neighbours = net.ip("a", "-6 neigh show 2001:db8:1::1");
    assert!(neighbours.contains(&net.mac("r", "ra")), "{neighbours}");
    assert!(router.number("nd0.count") >= 1 && router.number("nd1.count") >= 1);
}

#[test]
fn wrong_words_are_answered() {
    for (args, why) in [
        (&["new", "router", "nonexistent0"][..], "nonexistent0 is no interface"),
        (&["new", "router", "x0=02:00:00:00:00:01"], "x0 has no address"),
        (&["new", "router"], "required"),
    ] {
        let output = Command::new(crate::net::CAUSEWAY).args(args).output().expect("the binary");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(why), "{args:?}: {text}");
    }
}

#[test]
fn router6_discovers_neighbours_and_forwards() {
    let Some(net) = Net::new() else { return };
    alone(&net);
    let (mac0, mac1) = (net.mac("r", "ra"), net.mac("r", "rb"));
    let link0 = format!("-D dev0=ra -D addr0=2001:db8:1::1 -D net0=2001:db8:1::/64 -D mac0={mac0}");
    let link1 = format!("-D dev1=rb -D addr1=2001:db8:2::1 -D net1=2001:db8:2::/64 -D mac1={mac1}");
    let _router =
        net.start("r", &format!("run router6.click {link0} {link1} -D gateway=2001:db8:2::2 -D mtu1=1400"));
    let (good, text) = net.ping("-c 10 2001:db8:2::2");
    assert!(good && text.contains("ttl=63"), "{text}");
    let (_, text) = net.ping("-c 1 -t 1 2001:db8:2::2");
    assert!(text.contains("2001:db8:1::1") || text.contains("2001:db8:2::1"), "{text}");
    let (_, text) = net.ping("-c 1 -M do -s 1440 2001:db8:2::2");
    assert!(text.contains("mtu") && text.contains("1400"), "{text}");
}

#[test]
fn the_translator_lets_ipv6_hosts_reach_ipv4_hosts() {
    let Some(net) = Net::new() else { return };
    alone(&net);
    net.ip("a", "addr add 64:ff9b::10.77.1.9/128 dev a0 nodad");
    net.ip("a", "-6 route add 64:ff9b::/96 via 2001:db8:1::1 src 64:ff9b::10.77.1.9");
    let (mac6, mac4) = (net.mac("r", "ra"), net.mac("r", "rb"));
    let six = format!("-D dev6=ra -D addr6=2001:db8:1::1 -D mac6={mac6}");
    let four = format!("-D dev4=rb -D addr4=10.77.2.1/24 -D mac4={mac4}");
    let _router = net.start("r", &format!("run 6to4.click {six} {four}"));
    let (good, text) = net.ping("-c 10 -s 1000 64:ff9b::10.77.2.2");
    assert!(good && text.contains("ttl=63"), "{text}");
    // The other way.
    let (good, text) = net.ping_from("b", "-c 5 10.77.1.9");
    assert!(good && text.contains("ttl=63"), "{text}");
    let (_, text) = net.ping("-c 1 -t 1 64:ff9b::10.77.2.2");
    assert!(text.contains("2001:db8:1::1"), "{text}");
}
