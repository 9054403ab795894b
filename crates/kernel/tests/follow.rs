//! The mirror against the kernel itself, in namespaces: what becomes of packets as links, routes and neighbours change.

mod common;

use common::{Follower, HOST0_MAC, HOST1_MAC, Testbed, leg};

fn via_host0() -> (String, String) {
    (leg("r0", "10.0.0.2", 1, HOST0_MAC), leg("r0", "2001:db8::2", 1, HOST0_MAC))
}

#[test]
fn a_gateway_is_resolved_without_traffic() {
    let Some(bed) = Testbed::new("gw") else { return };
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2");
    bed.router.ip("-6 route add 2001:db8:9::/48 via 2001:db8::2");
    let mut follower = bed.follow(&["r0", "r1"]);
    let (v4, v6) = via_host0();
    follower.until("resolved", |f| f.to("10.9.1.1") == v4 && f.to("2001:db8:9::1") == v6);
    // A gateway of the other family (RFC 5549) is resolved in its own family's table.
    bed.router.ip("route add 10.8.0.0/16 via inet6 2001:db8:1::2");
    follower.until("IPv6 gateway", |f| f.to("10.8.0.1") == leg("r1", "2001:db8:1::2", 1, HOST1_MAC));
    follower.settle();
    // The rest of the machine: its own addresses, its links, what it has no route to.
    assert_eq!(follower.to("10.0.0.1"), "punt local");
    assert_eq!(follower.to("10.0.0.255"), "punt broadcast");
    assert_eq!(follower.to("127.0.0.1"), "punt local");
    assert_eq!(follower.to("2001:db8::1"), "punt local");
    assert_eq!(follower.to("ff02::1"), "punt multicast");
    assert_eq!(follower.to("10.0.0.77"), "punt on-link");
    assert_eq!(follower.to("192.0.2.1"), "none");
    assert!(follower.seen.addresses.contains(&"2001:db8:1::1".parse().unwrap()));
}

#[test]
fn a_host_on_the_link_is_forwarded_to_once_it_is_known() {
    let Some(bed) = Testbed::new("host") else { return };
    let mut follower = bed.follow(&["r0", "r1"]);
    follower
        .until("connected", |f| f.to("10.0.0.2") == "punt on-link" && f.to("2001:db8::2") == "punt on-link");
    let index = follower.watcher.mirror().link("r0").unwrap().index;
    let solicit = |f: &mut Follower| {
        // As packets would, which make the kernel ask. A link that has just come up may lose the first request.
        f.watcher.solicit(index, "10.0.0.2".parse().unwrap());
        f.watcher.solicit(index, "2001:db8::2".parse().unwrap());
    };
    let (v4, v6) = via_host0();
    follower.until_with("known", solicit, |f| f.to("10.0.0.2") == v4 && f.to("2001:db8::2") == v6);
    // A longer prefix that covers the host takes it away from the link, and gives it back.
    bed.router.ip("route add 10.0.0.0/30 via 10.0.1.2");
    let other = leg("r1", "10.0.1.2", 1, HOST1_MAC);
    follower.until("covered", |f| f.to("10.0.0.2") == other);
    bed.router.ip("route del 10.0.0.0/30");
    follower.until("uncovered", |f| f.to("10.0.0.2") == v4);
    // A host route without a gateway means the host itself.
    bed.router.ip("route add 192.0.2.7/32 dev r1");
    follower.until("unknown", |f| f.to("192.0.2.7") == "punt on-link");
    bed.router.ip("neigh add 192.0.2.7 lladdr 02:00:00:00:00:77 dev r1");
    follower.until("known", |f| f.to("192.0.2.7") == leg("r1", "192.0.2.7", 1, [2, 0, 0, 0, 0, 0x77]));
    bed.router.ip("neigh del 10.0.0.2 dev r0");
    follower.until("forgotten", |f| f.to("10.0.0.2") == "punt on-link");
    follower.settle();
}

#[test]
fn admin_down_takes_the_routes_that_the_kernel_takes_in_silence() {
    let Some(bed) = Testbed::new("admin") else { return };
    bed.router.ip("nexthop add id 1 via 10.0.0.2 dev r0");
    bed.router.ip("route add 10.9.0.0/16 nhid 1");
    bed.router.ip("route add 10.8.0.0/16 via 10.0.0.2");
    bed.router.ip("route add 10.8.0.0/16 via 10.0.1.2 metric 50");
    let mut follower = bed.follow(&["r0", "r1"]);
    let (v4, _) = via_host0();
    follower.until("up", |f| f.to("10.9.0.1") == v4 && f.to("10.8.0.1") == v4);
    bed.router.ip("link set r0 down");
    follower.until("gone", |f| f.to("10.9.0.1") == "none" && f.to("10.0.0.77") == "none");
    follower.until("promoted", |f| f.to("10.8.0.1") == leg("r1", "10.0.1.2", 1, HOST1_MAC));
    bed.router.ip("link set r0 up");
    follower.until("connected", |f| f.to("10.0.0.77") == "punt on-link");
    follower.settle();
}

#[test]
fn carrier_loss_is_dead_at_once() {
    let Some(bed) = Testbed::new("carrier") else { return };
    bed.router.ip("nexthop add id 1 via 10.0.0.2 dev r0");
    bed.router.ip("route add 10.9.0.0/16 nhid 1");
    bed.router.ip("route add 10.8.0.0/16 via 10.0.0.2");
    bed.router.ip("-6 route add 2001:db8:9::/48 via 2001:db8::2");
    bed.router.ip("route add 10.7.0.0/16 nexthop via 10.0.0.2 weight 3 nexthop via 10.0.1.2");
    let mut follower = bed.follow(&["r0", "r1"]);
    let (v4, v6) = via_host0();
    let other = leg("r1", "10.0.1.2", 1, HOST1_MAC);
    let both = format!("{}, {other}", leg("r0", "10.0.0.2", 3, HOST0_MAC));
    let up = |f: &Follower| f.to("10.8.0.1") == v4 && f.to("2001:db8:9::1") == v6 && f.to("10.7.0.1") == both;
    follower.until("up", up);
    assert_eq!(follower.to("10.9.0.1"), v4);
    bed.hosts.ip("link set h0 down");
    let lost = format!("r0 via 10.0.0.2 weight 3 unresolved, {other}");
    follower.until("the share of the leg is the kernel's", |f| f.to("10.7.0.1") == lost);
    assert_eq!(follower.to("10.8.0.1"), "punt link-down");
    // The kernel removed the object and its route in silence: the dump that follows says so.
    follower.until("object gone", |f| f.to("10.9.0.1") == "none");
    bed.hosts.ip("link set h0 up");
    follower.until("up again", up);
    follower.settle();
}

#[test]
fn an_object_that_changes_moves_its_prefixes_by_one_change() {
    let Some(bed) = Testbed::new("nh") else { return };
    bed.router.run("sysctl -qw net.ipv4.nexthop_compat_mode=0");
    bed.router.ip("nexthop add id 1 via 10.0.0.2 dev r0");
    bed.router.ip("nexthop add id 2 via 10.0.1.2 dev r1");
    bed.router.ip("nexthop add id 10 group 1");
    let routes: String =
        (0..1000).map(|i| format!("route add 11.{}.{}.0/24 nhid 10\n", i / 256, i % 256)).collect();
    bed.router.batch(&routes);
    let mut follower = bed.follow(&["r0", "r1"]);
    let (v4, _) = via_host0();
    follower.until("one leg", |f| f.to("11.3.200.1") == v4);
    follower.settle();
    let before = follower.route_changes;
    bed.router.ip("nexthop replace id 10 group 1,30/2,20");
    let both = format!("{}, {}", leg("r0", "10.0.0.2", 30, HOST0_MAC), leg("r1", "10.0.1.2", 20, HOST1_MAC));
    follower.until("two legs", |f| f.to("11.3.200.1") == both && f.to("11.0.0.1") == both);
    bed.router.ip("nexthop replace id 10 group 2");
    follower.until("the other leg", |f| f.to("11.0.0.1") == leg("r1", "10.0.1.2", 1, HOST1_MAC));
    bed.router.ip("nexthop replace id 2 blackhole");
    follower.until("blackhole", |f| f.to("11.0.0.1") == "punt blackhole");
    follower.settle();
    assert_eq!(follower.route_changes, before, "no prefix is told to have changed");
    bed.router.ip("nexthop del id 10");
    follower.until("gone", |f| f.to("11.0.0.1") == "none");
    bed.router.ip("nexthop add id 11 group 1 type resilient buckets 8");
    bed.router.ip("route add 11.0.0.0/24 nhid 11");
    follower.until("resilient", |f| f.to("11.0.0.1") == "punt resilient-group");
}

#[test]
fn the_lowest_metric_counts_and_the_next_is_promoted() {
    let Some(bed) = Testbed::new("metric") else { return };
    for (family, prefix, near, far) in [
        ("-4", "10.9.0.0/16", "10.0.0.2", "10.0.1.2"),
        ("-6", "2001:db8:9::/48", "2001:db8::2", "2001:db8:1::2"),
    ] {
        let address = prefix.split('/').next().unwrap();
        bed.router.ip(&format!("{family} route add {prefix} via {near} metric 10"));
        bed.router.ip(&format!("{family} route add {prefix} via {far} metric 20 proto bgp"));
        let mut follower = bed.follow(&["r0", "r1"]);
        let first = leg("r0", near, 1, HOST0_MAC);
        let second = leg("r1", far, 1, HOST1_MAC);
        follower.until("first", |f| f.to(address) == first);
        bed.router.ip(&format!("{family} route del {prefix} metric 10"));
        follower.until("promoted", |f| f.to(address) == second);
        bed.router.ip(&format!("{family} route add blackhole {prefix} metric 5"));
        follower.until("better", |f| f.to(address) == "punt blackhole");
        bed.router.ip(&format!("{family} route del blackhole {prefix} metric 5"));
        follower.until("worse", |f| f.to(address) == second);
        bed.router.ip(&format!("{family} route replace {prefix} via {near} metric 20 mtu 1400"));
        follower.until("replaced", |f| f.to(address) == format!("mtu 1400 {first}"));
        follower.settle();
    }
}

#[test]
fn ipv6_joins_routes_of_one_metric_and_takes_legs_apart() {
    let Some(bed) = Testbed::new("mp6") else { return };
    let mut follower = bed.follow(&["r0", "r1"]);
    let near = leg("r0", "2001:db8::2", 1, HOST0_MAC);
    let far = leg("r1", "2001:db8:1::2", 1, HOST1_MAC);
    bed.router.ip("-6 route add 2001:db8:9::/48 via 2001:db8::2");
    follower.until("one", |f| f.to("2001:db8:9::") == near);
    bed.router.ip("-6 route append 2001:db8:9::/48 via 2001:db8:1::2");
    follower.until("two", |f| f.to("2001:db8:9::") == format!("{near}, {far}"));
    bed.router.ip("-6 route del 2001:db8:9::/48 via 2001:db8::2");
    follower.until("the second", |f| f.to("2001:db8:9::") == far);
    bed.router
        .ip("-6 route replace 2001:db8:9::/48 nexthop via 2001:db8::2 nexthop via 2001:db8:1::2 weight 4");
    let weighted = format!("{near}, {}", leg("r1", "2001:db8:1::2", 4, HOST1_MAC));
    follower.until("weights", |f| f.to("2001:db8:9::") == weighted);
    bed.router.ip("-6 route del 2001:db8:9::/48");
    follower.until("none", |f| f.to("2001:db8:9::") == "none");
    follower.settle();
}

#[test]
fn gateways_are_kept_by_managed_entries_that_go_with_the_watcher() {
    let Some(bed) = Testbed::new("keep") else { return };
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2");
    let neighbours = || {
        let output =
            std::process::Command::new("ip").args(["-n", bed.router.name(), "neigh"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let mut follower = bed.follow(&["r0", "r1"]);
    let (v4, _) = via_host0();
    follower.until("resolved", |f| f.to("10.9.0.1") == v4);
    let entry = |f: &Follower| {
        let index = f.watcher.mirror().link("r0").unwrap().index;
        f.watcher.mirror().neighbour_entry(index, "10.0.0.2".parse().unwrap()).copied()
    };
    follower.until("managed", |f| entry(f).is_some_and(|entry| entry.managed));
    // Somebody deletes it: it comes back without a packet.
    bed.router.ip("neigh del 10.0.0.2 dev r0");
    follower.until("unresolved", |f| f.to("10.9.0.1").ends_with("unresolved"));
    follower.until("resolved again", |f| f.to("10.9.0.1") == v4);
    // The gateway gets another MAC address and says so.
    bed.hosts.ip("link set h0 address 02:00:00:00:01:77");
    bed.router.ip("neigh replace 10.0.0.2 lladdr 02:00:00:00:01:77 dev r0 nud reachable");
    follower.until("moved", |f| f.to("10.9.0.1") == leg("r0", "10.0.0.2", 1, [2, 0, 0, 0, 1, 0x77]));
    // A gateway that is not needed any more is let go, and the others at the end.
    bed.router.ip("route replace 10.9.0.0/16 via 10.0.1.2");
    follower.until("the other", |f| f.to("10.9.0.1") == leg("r1", "10.0.1.2", 1, HOST1_MAC));
    follower.until("let go", |f| !entry(f).is_some_and(|entry| entry.managed));
    assert!(neighbours().contains("managed"), "{}", neighbours());
    drop(follower);
    assert!(!neighbours().contains("managed"), "{}", neighbours());
}
