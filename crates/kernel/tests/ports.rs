//! Ports that come, go and change: told without delay, and no way out from then on.

mod common;

use causeway_kernel::{Changes, Link, Message, Mirror, Object, Operation, Scope};
use common::{Follower, HOST0_MAC, HOST1_MAC, Testbed, leg};
use std::time::{Duration, Instant};

fn via_r0() -> String {
    leg("r0", "10.0.0.2", 1, HOST0_MAC)
}

fn via_r1() -> String {
    leg("r1", "10.0.1.2", 1, HOST1_MAC)
}

/// A router with a route by each port, and a watcher that holds both.
fn routed(tag: &str) -> Option<(Testbed, Follower)> {
    let bed = Testbed::new(tag)?;
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2");
    bed.router.ip("route add 10.8.0.0/16 via 10.0.1.2");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("up", |f| f.to("10.9.0.1") == via_r0() && f.to("10.8.0.1") == via_r1());
    follower.settle();
    Some((bed, follower))
}

/// The changes that tell what is looked for, of a link of that index.
fn until_told(follower: &mut Follower, index: u32, wanted: impl Fn(Option<&Link>) -> bool) -> Changes {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let changes = follower.watcher.wait(Duration::from_millis(200)).unwrap();
        follower.seen.apply(&changes);
        if changes.links.iter().any(|(i, link)| *i == index && wanted(link.as_ref())) {
            return changes;
        }
        assert!(Instant::now() < end, "never told");
    }
}

#[test]
fn a_new_address_or_size_of_a_port_is_in_what_is_told_of_it() {
    let Some((bed, mut follower)) = routed("mac") else { return };
    let index = follower.watcher.mirror().link("r0").unwrap().index;
    bed.router.ip("link set r0 address 02:00:00:00:77:01");
    until_told(&mut follower, index, |link| link.is_some_and(|l| l.mac == Some([2, 0, 0, 0, 0x77, 1])));
    let source = |f: &Follower| {
        let all = f.seen.adjacencies.values().filter(|a| a.ifindex == index);
        all.filter_map(|a| a.rewrite).map(|r| (r.source, r.mtu_bytes)).collect::<Vec<_>>()
    };
    follower.until("rewritten", |f| source(f).iter().all(|(mac, _)| *mac == [2, 0, 0, 0, 0x77, 1]));
    bed.router.ip("link set r0 mtu 1400");
    until_told(&mut follower, index, |link| {
        link.is_some_and(|l| (l.mtu_bytes, l.mtu6_bytes) == (1400, 1400))
    });
    // This one the kernel does not tell.
    bed.router.sysctl("ipv6.conf.r0.mtu=1300");
    follower.watcher.look_again(Scope::LINKS);
    until_told(&mut follower, index, |link| {
        link.is_some_and(|l| (l.mtu_bytes, l.mtu6_bytes) == (1400, 1300))
    });
    follower.until("smaller", |f| source(f).iter().all(|(_, mtu)| [1400, 1300].contains(mtu)));
    bed.router.ip("link set r0 name zz0");
    until_told(&mut follower, index, |link| link.is_some_and(|l| l.name == "zz0"));
    follower.until("still a way out", |f| f.to("10.9.0.1").starts_with("zz0 via 10.0.0.2"));
}

#[test]
fn a_port_that_cannot_be_one_is_no_way_out_from_the_change_that_tells_it() {
    let Some((bed, mut follower)) = routed("unfit") else { return };
    let index = follower.watcher.mirror().link("r0").unwrap().index;
    bed.router.ip("link add br0 type bridge");
    bed.router.ip("link set r0 master br0");
    until_told(&mut follower, index, |link| {
        link.is_some_and(|l| l.master.is_some() && l.master_kind.as_deref() == Some("bridge"))
    });
    assert_eq!(follower.to("10.9.0.1"), "punt enslaved");
    bed.router.ip("link set r0 nomaster");
    until_told(&mut follower, index, |link| link.is_some_and(|l| l.master.is_none()));
    bed.router.ip("link set r0 arp off");
    until_told(&mut follower, index, |link| link.is_some_and(|l| l.no_arp));
    assert_eq!(follower.to("10.9.0.1"), "punt not-ethernet");
    bed.router.ip("link set r0 arp on");
    until_told(&mut follower, index, |link| link.is_some_and(|l| !l.no_arp));
    follower.until("a way out again", |f| f.to("10.9.0.1") == via_r0());
}

#[test]
fn a_port_that_comes_again_is_one_when_the_user_says_so() {
    let Some((bed, mut follower)) = routed("again") else { return };
    let old = follower.watcher.mirror().link("r0").unwrap().index;
    bed.router.ip("link del r0");
    until_told(&mut follower, old, |link| link.is_none());
    assert_eq!(follower.to("10.9.0.1"), "punt link-missing");
    follower.until("the kernel has no route", |f| f.to("10.9.0.1") == "none");
    // It comes with another number.
    let hosts = bed.hosts.name();
    bed.router
        .ip(&format!("link add r0 index 77 type veth peer name h0 netns {hosts} address 02:00:00:00:01:01"));
    bed.router.ip("addr add 10.0.0.1/24 dev r0");
    bed.hosts.ip("addr add 10.0.0.2/24 dev h0");
    bed.hosts.ip("link set h0 up");
    bed.router.ip("link set r0 up");
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2");
    until_told(&mut follower, 77, |link| link.is_some_and(|l| l.name == "r0"));
    follower.until("routed", |f| f.to("10.9.0.1") == "punt outside-ports");
    let other = follower.watcher.mirror().link("r1").unwrap().index;
    follower.watcher.set_ports([77, other]);
    follower.until("held", |f| f.to("10.9.0.1") == via_r0());
    assert_eq!(follower.to("10.8.0.1"), via_r1(), "the other was one all the time");
    // A port that is given up is none, whatever it is.
    follower.watcher.set_ports([77]);
    follower.step();
    assert_eq!(follower.to("10.8.0.1"), "punt outside-ports");
    assert_eq!(follower.to("10.0.1.2"), "punt outside-ports");
    follower.watcher.set_ports([77, other]);
    follower.until("held again", |f| f.to("10.8.0.1") == via_r1());
    follower.settle();
}

#[test]
fn a_port_that_moves_to_another_namespace_is_gone() {
    let Some((bed, mut follower)) = routed("moved") else { return };
    let index = follower.watcher.mirror().link("r0").unwrap().index;
    bed.router.ip(&format!("link set r0 netns {}", bed.hosts.name()));
    until_told(&mut follower, index, |link| link.is_none());
    assert!(!follower.to("10.9.0.1").contains("via"), "{}", follower.to("10.9.0.1"));
    follower.until("no route", |f| f.to("10.9.0.1") == "none");
    assert!(!follower.seen.addresses.contains(&"10.0.0.1".parse().unwrap()));
    follower.settle();
}

#[test]
fn a_change_of_a_port_does_not_wait_for_more() {
    let link = |index: u32| Link {
        index,
        name: format!("p{index}"),
        other_names: Vec::new(),
        kind: None,
        parent: None,
        mac: Some([2; 6]),
        ethernet: true,
        bare: false,
        no_arp: false,
        loopback: false,
        up: true,
        carrier: true,
        mtu_bytes: 1500,
        mtu6_bytes: 1500,
        master: None,
        master_kind: None,
        takes_from: None,
        rx_queues: 1,
        tx_queues: 1,
        xdp_program: None,
    };
    let mut mirror = Mirror::new([1]);
    let mut is_urgent = |operation: Operation, link: Link| {
        mirror.apply(Message { operation, object: Object::Link(link) });
        mirror.take_urgent()
    };
    let added = Operation::Added { replace: false, append: false };
    for index in [1, 2] {
        let is_port = index == 1;
        let old = link(index);
        assert_eq!(is_urgent(added, old.clone()), is_port);
        assert!(!is_urgent(added, old.clone()), "nothing changed");
        assert_eq!(is_urgent(added, Link { mac: Some([4; 6]), ..old.clone() }), is_port);
        assert_eq!(is_urgent(added, Link { mtu6_bytes: 1300, ..old.clone() }), is_port);
        assert_eq!(is_urgent(added, Link { name: "other".into(), ..old.clone() }), is_port);
        assert_eq!(is_urgent(added, Link { master: Some(9), ..old.clone() }), is_port);
        assert_eq!(is_urgent(Operation::Removed, old), is_port);
    }
}
