//! What the kernel does without a word: until a dump tells, the answer is the kernel's or a punt, never what was known before.

mod common;

use std::time::Instant;

use common::{Follower, HOST0_MAC, HOST1_MAC, Testbed, leg};

/// Follows until nothing is in doubt. From when all is taken in that the kernel said until now, each answer must be this one
/// or leave the packet to the kernel; at the end it must be this one.
fn never_guesses(follower: &mut Follower, address: &str, truth: &str) {
    let now = Instant::now();
    loop {
        follower.step();
        let answer = follower.to(address);
        if follower.watcher.as_of() > now {
            let passes = answer.starts_with("punt") || answer == "none" || answer.contains("unresolved");
            assert!(answer == truth || passes, "{address}: {answer} and not {truth}");
            if !follower.watcher.in_doubt() {
                break;
            }
        }
    }
    follower.until(truth, |f| f.to(address) == truth);
}

fn via_r0() -> String {
    leg("r0", "10.0.0.2", 1, HOST0_MAC)
}

fn via_r1() -> String {
    leg("r1", "10.0.1.2", 1, HOST1_MAC)
}

/// Neighbours that no flap takes away, so that only routes decide.
fn bed(tag: &str) -> Option<Testbed> {
    let bed = Testbed::new(tag)?;
    bed.router.sysctl("ipv6.conf.all.keep_addr_on_down=1");
    neighbours(&bed);
    Some(bed)
}

fn neighbours(bed: &Testbed) {
    for port in 0..2 {
        bed.router.ip(&format!(
            "neigh replace 10.0.{port}.2 lladdr 02:00:00:00:01:0{} dev r{port} nud permanent",
            port + 1
        ));
        bed.router.ip(&format!(
            "neigh replace 2001:db8:{port}::2 lladdr 02:00:00:00:01:0{} dev r{port} nud permanent",
            port + 1
        ));
    }
}

#[test]
fn routes_of_a_link_that_was_down_for_a_moment() {
    let Some(bed) = bed("flap") else { return };
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2");
    bed.router.ip("route add 10.9.0.0/16 via 10.0.1.2 metric 50");
    bed.router.ip("route add 10.8.0.0/16 via 10.0.0.2");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("up", |f| f.to("10.9.0.1") == via_r0() && f.to("10.8.0.1") == via_r0());
    bed.router.batch("link set r0 down\nlink set r0 up\n");
    neighbours(&bed);
    never_guesses(&mut follower, "10.9.0.1", &via_r1());
    assert_eq!(follower.to("10.8.0.1"), "none");
}

#[test]
fn ipv6_routes_that_go_in_silence_if_the_kernel_is_told_so() {
    let Some(bed) = bed("flap6") else { return };
    bed.router.sysctl("ipv6.route.skip_notify_on_dev_down=1");
    bed.router.ip("-6 route add 2001:db8:9::/48 via 2001:db8::2");
    bed.router.ip("-6 route add 2001:db8:9::/48 via 2001:db8:1::2 metric 2000");
    let mut follower = bed.follow(&["r0", "r1"]);
    let far = leg("r1", "2001:db8:1::2", 1, HOST1_MAC);
    follower.until("up", |f| f.to("2001:db8:9::1") == leg("r0", "2001:db8::2", 1, HOST0_MAC));
    bed.router.batch("link set r0 down\nlink set r0 up\n");
    neighbours(&bed);
    never_guesses(&mut follower, "2001:db8:9::1", &far);
}

#[test]
fn a_path_that_was_dead_for_a_moment_has_its_share_again() {
    let Some(bed) = bed("revive") else { return };
    bed.router.ip("route add 10.9.0.0/16 nexthop via 10.0.0.2 weight 2 nexthop via 10.0.1.2");
    bed.router.ip("-6 route add 2001:db8:9::/48 nexthop via 2001:db8::2 weight 2 nexthop via 2001:db8:1::2");
    let mut follower = bed.follow(&["r0", "r1"]);
    let both = format!("{}, {}", leg("r0", "10.0.0.2", 2, HOST0_MAC), via_r1());
    let both6 =
        format!("{}, {}", leg("r0", "2001:db8::2", 2, HOST0_MAC), leg("r1", "2001:db8:1::2", 1, HOST1_MAC));
    let up = |f: &Follower| f.to("10.9.0.1") == both && f.to("2001:db8:9::1") == both6;
    follower.until("up", up);
    bed.router.batch("link set r0 down\nlink set r0 up\n");
    neighbours(&bed);
    never_guesses(&mut follower, "10.9.0.1", &both);
    // The kernel takes some time for these, and announces the link then.
    follower.until("up again", up);
}

#[test]
fn routes_of_an_object_that_came_again_under_its_number() {
    let Some(bed) = bed("object") else { return };
    bed.router.ip("nexthop add id 1 via 10.0.0.2 dev r0");
    bed.router.ip("route add 10.9.0.0/16 nhid 1");
    bed.router.ip("route add 10.9.0.0/16 via 10.0.1.2 metric 50");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("up", |f| f.to("10.9.0.1") == via_r0());
    bed.router.batch("nexthop del id 1\nnexthop add id 1 via 10.0.0.2 dev r0\n");
    never_guesses(&mut follower, "10.9.0.1", &via_r1());
    bed.router.ip("route add 10.9.0.0/16 nhid 1");
    follower.until("added again", |f| f.to("10.9.0.1") == via_r0());
}

#[test]
fn objects_of_a_link_that_was_without_carrier() {
    let Some(bed) = bed("carrier") else { return };
    bed.router.ip("nexthop add id 1 via 10.0.0.2 dev r0");
    bed.router.ip("nexthop add id 2 via 10.0.1.2 dev r1");
    bed.router.ip("nexthop add id 10 group 1,5/2");
    bed.router.ip("route add 10.9.0.0/16 nhid 10");
    bed.router.ip("route add 10.8.0.0/16 nhid 1");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("up", |f| f.to("10.8.0.1") == via_r0());
    bed.hosts.ip("link set h0 down");
    follower.until("the member is gone", |f| f.to("10.9.0.1") == via_r1());
    bed.hosts.ip("link set h0 up");
    never_guesses(&mut follower, "10.9.0.1", &via_r1());
    assert_eq!(follower.to("10.8.0.1"), "none");
}

#[test]
fn routes_whose_source_address_goes() {
    let Some(bed) = bed("source") else { return };
    bed.router.ip("addr add 10.7.0.1/24 dev r1");
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2 src 10.7.0.1");
    bed.router.ip("route add 10.9.0.0/16 via 10.0.1.2 metric 50");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("up", |f| f.to("10.9.0.1") == via_r0());
    bed.router.batch("addr del 10.7.0.1/24 dev r1\naddr add 10.7.0.1/24 dev r1\n");
    never_guesses(&mut follower, "10.9.0.1", &via_r1());
}

#[test]
fn paths_of_a_device_that_lost_its_last_address() {
    let Some(bed) = bed("last") else { return };
    bed.router.ip("route add 10.9.0.0/16 nexthop via 10.0.0.2 weight 2 nexthop via 10.0.1.2");
    let mut follower = bed.follow(&["r0", "r1"]);
    let both = format!("{}, {}", leg("r0", "10.0.0.2", 2, HOST0_MAC), via_r1());
    follower.until("up", |f| f.to("10.9.0.1") == both);
    bed.router.ip("addr del 10.0.0.1/24 dev r0");
    // The path is dead, and would come back as silently as it went.
    never_guesses(&mut follower, "10.9.0.1", "punt unclear");
    bed.router.ip("addr add 10.0.0.1/24 dev r0");
    never_guesses(&mut follower, "10.9.0.1", &both);
}

#[test]
fn routes_of_a_device_that_came_again_under_its_number() {
    let Some(bed) = bed("again") else { return };
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2");
    bed.router.ip("route add 10.9.0.0/16 via 10.0.1.2 metric 50");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("up", |f| f.to("10.9.0.1") == via_r0());
    let link = follower.watcher.mirror().link("r0").unwrap().clone();
    let mac = link.mac.unwrap().map(|octet| format!("{octet:02x}")).join(":");
    bed.router.batch(&format!(
        "link del r0\nlink add r0 index {} address {mac} type veth peer name h0 netns {}\nlink set r0 up\n\
         addr add 10.0.0.1/24 dev r0\nneigh add 10.0.0.2 lladdr 02:00:00:00:01:01 dev r0\n",
        link.index,
        bed.hosts.name()
    ));
    bed.hosts.ip("link set h0 up");
    never_guesses(&mut follower, "10.9.0.1", &via_r1());
}

/// The largest packet that a connected route allows holds for the hosts on the link.
#[test]
fn a_route_to_a_link_limits_what_its_hosts_get() {
    let Some(bed) = bed("mtu") else { return };
    bed.router.ip("route replace 10.0.0.0/24 dev r0 proto kernel scope link src 10.0.0.1 mtu 1300");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("limited", |f| f.to("10.0.0.2") == format!("mtu 1300 {}", via_r0()));
}

/// IPv6 has no rule for the default table.
#[test]
fn ipv6_routes_in_the_default_table_are_not_looked_up() {
    let Some(bed) = bed("table") else { return };
    bed.router.ip("-6 route add 2001:db8:9::/48 via 2001:db8::2 table 253");
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2 table 253");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("the other family", |f| f.to("10.9.0.1") == via_r0());
    assert_eq!(follower.to("2001:db8:9::1"), "none");
}

#[test]
fn a_route_that_ends_by_itself_is_the_kernels() {
    let Some(bed) = bed("expires") else { return };
    bed.router.ip("-6 route add 2001:db8:9::/48 via 2001:db8::2 expires 100");
    bed.router
        .ip("-6 route add 2001:db8:8::/48 via 2001:db8::2 hoplimit 9 mtu lock 1400 quickack 1 features ecn");
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2 realm 3");
    let mut follower = bed.follow(&["r0", "r1"]);
    let near = leg("r0", "2001:db8::2", 1, HOST0_MAC);
    follower.until("up", |f| f.to("2001:db8:8::1") == format!("mtu 1400 {near}"));
    assert_eq!(follower.to("2001:db8:9::1"), "punt lifetime");
    assert_eq!(follower.to("10.9.0.1"), via_r0());
}

/// What differs in something that is not kept is still two routes.
#[test]
fn one_of_two_routes_that_look_alike_stays() {
    let Some(bed) = bed("alike") else { return };
    let mut follower = bed.follow(&["r0", "r1"]);
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2 realm 3");
    bed.router.ip("route append 10.9.0.0/16 via 10.0.0.2 realm 4");
    bed.router.ip("route append 10.9.0.0/16 via 10.0.0.2 realm 4 hoplimit 7");
    follower.until("up", |f| f.to("10.9.0.1") == via_r0());
    for realm in ["3", "4 hoplimit 7"] {
        bed.router.ip(&format!("route del 10.9.0.0/16 via 10.0.0.2 realm {realm}"));
        never_guesses(&mut follower, "10.9.0.1", &via_r0());
    }
    bed.router.ip("route del 10.9.0.0/16 via 10.0.0.2 realm 4");
    never_guesses(&mut follower, "10.9.0.1", "none");
    assert_eq!(follower.watcher.stats().unclear, 0);
}

#[test]
fn objects_are_followed_in_either_way_of_announcing_their_routes() {
    for compatible in ["1", "0"] {
        let Some(bed) = bed("compat") else { return };
        bed.router.sysctl(&format!("ipv4.nexthop_compat_mode={compatible}"));
        bed.router.ip("nexthop add id 1 via 10.0.0.2 dev r0");
        bed.router.ip("-6 nexthop add id 31 via 2001:db8::2 dev r0");
        bed.router.ip("nexthop add id 5 blackhole");
        bed.router.ip("-6 nexthop add id 35 blackhole");
        let mut follower = bed.follow(&["r0", "r1"]);
        bed.router.ip("route add 10.9.0.0/16 nhid 1");
        bed.router.ip("route add 10.8.0.0/16 nhid 5");
        bed.router.ip("-6 route add 2001:db8:9::/48 nhid 31");
        bed.router.ip("-6 route add 2001:db8:8::/48 nhid 35");
        let near = leg("r0", "2001:db8::2", 1, HOST0_MAC);
        let far = leg("r1", "2001:db8:1::2", 1, HOST1_MAC);
        follower.until("up", |f| f.to("10.9.0.1") == via_r0() && f.to("2001:db8:9::1") == near);
        let discards = |f: &Follower, to| f.to(to) == "punt blackhole";
        follower.until("discarded", |f| discards(f, "10.8.0.1") && discards(f, "2001:db8:8::1"));
        assert_eq!(follower.from("10.8.0.1"), "not unicast");
        let resyncs = follower.watcher.stats().resyncs;
        bed.router.ip("nexthop replace id 1 via 10.0.1.2 dev r1");
        bed.router.ip("-6 nexthop replace id 31 via 2001:db8:1::2 dev r1");
        bed.router.ip("nexthop replace id 5 via 10.0.0.2 dev r0");
        bed.router.ip("-6 nexthop replace id 35 via 2001:db8::2 dev r0");
        follower.until("moved", |f| f.to("10.9.0.1") == via_r1() && f.to("2001:db8:9::1") == far);
        follower.until("no blackhole", |f| f.to("10.8.0.1") == via_r0() && f.to("2001:db8:8::1") == near);
        bed.router.ip("route del 10.8.0.0/16");
        bed.router.ip("-6 route del 2001:db8:8::/48");
        follower.until("deleted", |f| f.to("10.8.0.1") == "none" && f.to("2001:db8:8::1") == "none");
        assert_eq!(follower.watcher.stats().resyncs, resyncs, "messages tell all of this");
        bed.router.ip("nexthop del id 1");
        bed.router.ip("nexthop del id 31");
        never_guesses(&mut follower, "10.9.0.1", "none");
        assert_eq!(follower.to("2001:db8:9::1"), "none");
    }
}
