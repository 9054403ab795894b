//! Several paths, as the kernel chooses among them: the order of the legs, which of them count, and their weights.
//!
//! The kernel's own choice is asked for many flows (`ip route get`). The hash of a flow is not known, but that of the same
//! flow is the same whatever the route is: a route of two paths whose weights are those of the legs up to some leg and of the
//! legs after it tells on which side of that leg's bound each flow is.

mod common;

use std::time::{Duration, Instant};

use causeway_kernel::Action;
use common::{Follower, HOST0_MAC, Namespace, Testbed, leg};

const FLOWS: u32 = 250;

/// One family's addresses and commands.
#[derive(Clone, Copy)]
struct Side {
    family: &'static str,
    prefix: &'static str,
    destination: &'static str,
    source: &'static str,
    /// Gateways by number of the port, and host number there.
    gateway: fn(u32, u32) -> String,
}

const V4: Side = Side {
    family: "-4",
    prefix: "10.9.0.0/16",
    destination: "10.9.0.1",
    source: "10.0.0.9",
    gateway: |port, host| format!("10.0.{port}.{host}"),
};
const V6: Side = Side {
    family: "-6",
    prefix: "2001:db8:9::/48",
    destination: "2001:db8:9::1",
    source: "2001:db8::9",
    gateway: |port, host| {
        if port == 0 { format!("2001:db8::{host}") } else { format!("2001:db8:{port}::{host}") }
    },
};

impl Side {
    /// Sets the route to the paths, each a gateway and a weight.
    fn replace(&self, router: &Namespace, legs: &[(String, u32)]) {
        let paths: Vec<String> =
            legs.iter().map(|(gateway, weight)| format!("nexthop via {gateway} weight {weight}")).collect();
        router.ip(&format!("{} route replace {} {}", self.family, self.prefix, paths.join(" ")));
    }

    /// The gateway that the kernel gives each flow.
    fn choices(&self, router: &Namespace) -> Vec<String> {
        let question = |flow: u32| {
            let (to, from) = (self.destination, self.source);
            format!(
                "route get {to} from {from} iif r0 ipproto udp sport {} dport {}\n",
                1000 + flow,
                7000 + 3 * flow
            )
        };
        let answers = router.ask(self.family, &(0..FLOWS).map(question).collect::<String>());
        let mut words = answers.split_whitespace();
        let mut gateways = Vec::new();
        while words.any(|word| word == "via") {
            gateways.extend(words.next().map(str::to_owned));
        }
        assert_eq!(gateways.len() as u32, FLOWS, "{answers}");
        gateways
    }

    /// What the kernel must choose for each flow if these are the legs.
    fn predict(&self, router: &Namespace, legs: &[(String, u32)]) -> Vec<String> {
        let total: u32 = legs.iter().map(|(_, weight)| weight).sum();
        let (low, high) = ((self.gateway)(1, 51), (self.gateway)(1, 52));
        let mut left: Vec<Option<String>> = vec![None; FLOWS as usize];
        let mut bound = 0;
        for (gateway, weight) in &legs[..legs.len() - 1] {
            bound += weight;
            self.replace(router, &[(low.clone(), bound), (high.clone(), total - bound)]);
            for (choice, side) in left.iter_mut().zip(self.choices(router)) {
                if side == low {
                    choice.get_or_insert(gateway.clone());
                }
            }
        }
        let last = &legs[legs.len() - 1].0;
        left.into_iter().map(|choice| choice.unwrap_or(last.clone())).collect()
    }

    /// The legs that the mirror gives, in its order.
    fn legs(&self, follower: &Follower) -> Vec<(String, u32)> {
        let hop = follower.seen.lookup(self.destination.parse().unwrap());
        let Some(Action::Forward { legs, .. }) = hop.map(|hop| &hop.action) else { return vec![] };
        legs.iter()
            .map(|leg| (follower.seen.adjacencies[&leg.adjacency].address.to_string(), u32::from(leg.weight)))
            .collect()
    }

    /// Follows until these are the legs.
    fn until_legs(&self, follower: &mut Follower, wanted: &[(String, u32)]) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.legs(follower) != wanted {
            assert!(Instant::now() < end, "{:?} and not {wanted:?}", self.legs(follower));
            follower.step();
        }
    }

    /// Legs by port and weight, to host 2 each.
    fn to(&self, legs: &[(u32, u32)]) -> Vec<(String, u32)> {
        legs.iter().map(|&(port, weight)| ((self.gateway)(port, 2), weight)).collect()
    }
}

/// Three ports, and a seed, so that the kernel's choice can be repeated.
fn bed(tag: &str) -> Option<Testbed> {
    let bed = Testbed::with_ports(tag, 3)?;
    bed.router.sysctl("ipv4.fib_multipath_hash_policy=1");
    bed.router.sysctl("ipv6.fib_multipath_hash_policy=1");
    bed.router.sysctl("ipv4.ip_forward=1");
    bed.router.sysctl("ipv6.conf.all.forwarding=1");
    bed.router.sysctl("ipv6.conf.all.keep_addr_on_down=1");
    if !bed.router.run("sysctl -qw net.ipv4.fib_multipath_hash_seed=4711") {
        eprintln!("skipped: needs Linux 6.11 (fib_multipath_hash_seed)");
        return None;
    }
    Some(bed)
}

const PORTS: [&str; 3] = ["r0", "r1", "r2"];

#[test]
fn legs_are_in_the_kernels_order_with_its_weights() {
    let Some(bed) = bed("order") else { return };
    let mut follower = bed.follow(&PORTS);
    for side in [V4, V6] {
        for legs in [&[(2, 3), (0, 1), (1, 4)][..], &[(1, 200), (2, 9), (0, 1)], &[(0, 1), (2, 1)]] {
            let legs = side.to(legs);
            let predicted = side.predict(&bed.router, &legs);
            side.replace(&bed.router, &legs);
            side.until_legs(&mut follower, &legs);
            assert_eq!(side.choices(&bed.router), predicted, "{legs:?}");
        }
    }
    // A new dump shows the same order.
    let fresh = bed.follow(&PORTS);
    for side in [V4, V6] {
        assert_eq!(side.legs(&fresh), side.legs(&follower));
    }
}

#[test]
fn the_order_of_joined_routes_is_that_in_which_they_came() {
    let Some(bed) = bed("join") else { return };
    let mut follower = bed.follow(&PORTS);
    let path = |verb: &str, port: u32| {
        bed.router.ip(&format!("-6 route {verb} {} via {}", V6.prefix, (V6.gateway)(port, 2)));
    };
    path("add", 1);
    path("append", 0);
    path("append", 2);
    V6.until_legs(&mut follower, &V6.to(&[(1, 1), (0, 1), (2, 1)]));
    path("del", 1);
    V6.until_legs(&mut follower, &V6.to(&[(0, 1), (2, 1)]));
    let (third, fourth) = ((V6.gateway)(1, 2), (V6.gateway)(1, 3));
    bed.router.ip(&format!("-6 route append {} nexthop via {third} nexthop via {fourth}", V6.prefix));
    let legs: Vec<_> = V6.to(&[(0, 1), (2, 1), (1, 1)]).into_iter().chain([(fourth, 1)]).collect();
    V6.until_legs(&mut follower, &legs);
    let chosen = V6.choices(&bed.router);
    assert_eq!(V6.legs(&bed.follow(&PORTS)), legs);
    assert_eq!(V6.predict(&bed.router, &legs), chosen);
    assert_eq!(follower.watcher.stats().unclear, 0);
}

#[test]
fn a_group_of_objects_has_its_own_order_and_wide_weights() {
    let Some(bed) = bed("group") else { return };
    let mut follower = bed.follow(&PORTS);
    for (side, first) in [(V4, 1), (V6, 31)] {
        for port in 0..3 {
            let via = (side.gateway)(port, 2);
            bed.router.ip(&format!("{} nexthop add id {} via {via} dev r{port}", side.family, first + port));
        }
        let group = first + 10;
        let set = |verb: &str, legs: &[(u32, u32)]| {
            let members: Vec<String> =
                legs.iter().map(|(port, weight)| format!("{},{weight}", first + port)).collect();
            bed.router.ip(&format!("nexthop {verb} id {group} group {}", members.join("/")));
        };
        let legs = [(2, 3), (0, 1), (1, 4)];
        let predicted = side.predict(&bed.router, &side.to(&legs));
        bed.router.ip(&format!("{} route del {}", side.family, side.prefix));
        set("add", &legs);
        bed.router.ip(&format!("{} route add {} nhid {group}", side.family, side.prefix));
        side.until_legs(&mut follower, &side.to(&legs));
        assert_eq!(side.choices(&bed.router), predicted);
        set("replace", &[(1, 2), (2, 7)]);
        side.until_legs(&mut follower, &side.to(&[(1, 2), (2, 7)]));
        // A member that is deleted goes from the group.
        bed.router.ip(&format!("nexthop del id {}", first + 1));
        side.until_legs(&mut follower, &side.to(&[(2, 7)]));
        // The command takes no weight above 256.
        if !bed.router.enter(|| common::wide_group(group, &[(first + 2, 300), (first, 65_000)])) {
            eprintln!("skipped: needs Linux 6.12 (weights of 16 bits)");
            continue;
        }
        side.until_legs(&mut follower, &side.to(&[(2, 300), (0, 65_000)]));
    }
}

#[test]
fn a_path_whose_device_is_down_gives_its_share_to_the_others() {
    let Some(bed) = bed("dead") else { return };
    let mut follower = bed.follow(&PORTS);
    for side in [V4, V6] {
        let all = side.to(&[(2, 3), (1, 1), (0, 4)]);
        let left = side.to(&[(2, 3), (0, 4)]);
        let predicted = side.predict(&bed.router, &left);
        side.replace(&bed.router, &all);
        side.until_legs(&mut follower, &all);
        bed.router.ip("link set r1 down");
        side.until_legs(&mut follower, &left);
        assert_eq!(side.choices(&bed.router), predicted);
        bed.router.ip("link set r1 up");
        side.until_legs(&mut follower, &all);
    }
}

#[test]
fn a_path_without_carrier_is_left_out_only_where_the_kernel_is_told_to() {
    let Some(bed) = bed("carrier") else { return };
    let mut follower = bed.follow(&PORTS);
    for (side, version) in [(V4, "ipv4"), (V6, "ipv6")] {
        let all = side.to(&[(2, 3), (1, 1), (0, 4)]);
        let left = side.to(&[(2, 3), (0, 4)]);
        let (with_all, with_left) = (side.predict(&bed.router, &all), side.predict(&bed.router, &left));
        for (ignored, legs, predicted) in [(0, &all, &with_all), (1, &left, &with_left)] {
            bed.router.sysctl(&format!("{version}.conf.r1.ignore_routes_with_linkdown={ignored}"));
            side.replace(&bed.router, &all);
            side.until_legs(&mut follower, &all);
            follower.settle();
            bed.hosts.ip("link set h1 down");
            let dead = (side.gateway)(1, 2);
            let at_once = |f: &Follower| {
                let unresolved =
                    f.to(side.destination).contains(&format!("r1 via {dead} weight 1 unresolved"));
                side.legs(f) == *legs && unresolved == (ignored == 0)
            };
            follower.until("the carrier is lost", at_once);
            follower.settle();
            assert!(at_once(&follower), "and a dump does not change it");
            assert_eq!(&side.choices(&bed.router), predicted);
            // The kernel does not settle the shares again when the setting changes, and the mirror did not see it if it
            // comes now.
            let unclear = "punt unclear";
            assert_eq!(bed.follow(&PORTS).to(side.destination), unclear);
            bed.router.sysctl(&format!("{version}.conf.r1.ignore_routes_with_linkdown={}", 1 - ignored));
            follower.until("the setting changed", |f| f.to(side.destination) == unclear);
            assert_eq!(&side.choices(&bed.router), predicted);
            bed.hosts.ip("link set h1 up");
            side.until_legs(&mut follower, &all);
            assert_eq!(side.choices(&bed.router), with_all);
        }
    }
}

#[test]
fn a_member_without_carrier_is_taken_out_of_its_group() {
    let Some(bed) = bed("member") else { return };
    let mut follower = bed.follow(&PORTS);
    for port in 0..3 {
        bed.router.ip(&format!("nexthop add id {} via 10.0.{port}.2 dev r{port}", 1 + port));
    }
    let left = V4.to(&[(2, 3), (0, 4)]);
    let predicted = V4.predict(&bed.router, &left);
    bed.router.ip("route del 10.9.0.0/16");
    bed.router.ip("nexthop add id 10 group 3,3/2,1/1,4");
    bed.router.ip("route add 10.9.0.0/16 nhid 10");
    V4.until_legs(&mut follower, &V4.to(&[(2, 3), (1, 1), (0, 4)]));
    bed.hosts.ip("link set h1 down");
    V4.until_legs(&mut follower, &left);
    assert_eq!(V4.choices(&bed.router), predicted);
    follower.settle();
    assert_eq!(V4.legs(&follower), left);
    // It does not come back with the carrier.
    bed.hosts.ip("link set h1 up");
    follower.settle();
    assert_eq!(V4.legs(&follower), left);
}

/// The kernel gives the flows of a gateway that it cannot resolve to others in a group of objects; none of another's moves.
#[test]
fn flows_of_a_gateway_that_is_not_there_are_the_kernels() {
    let Some(bed) = bed("failed") else { return };
    for port in 0..3 {
        bed.router.ip(&format!("nexthop add id {} via 10.0.{port}.2 dev r{port}", 1 + port));
    }
    bed.router.ip("nexthop add id 10 group 3,3/1,1/2,4");
    bed.router.ip("route add 10.9.0.0/16 nhid 10");
    let before = V4.choices(&bed.router);
    bed.router.ip("neigh replace 10.0.0.2 dev r0 nud failed");
    let after = V4.choices(&bed.router);
    assert_ne!(before, after);
    assert!(before.iter().zip(&after).all(|(b, a)| b == a || b == "10.0.0.2"), "{before:?}");
    let mut follower = bed.follow_without_keeping(&PORTS);
    follower.settle();
    assert!(
        follower.to("10.9.0.1").contains("r0 via 10.0.0.2 weight 1 unresolved"),
        "{}",
        follower.to("10.9.0.1")
    );
}

#[test]
fn two_legs_may_have_the_same_neighbour() {
    let Some(bed) = bed("same") else { return };
    let mut follower = bed.follow(&PORTS);
    let legs = V4.to(&[(0, 2), (1, 1), (0, 3)]);
    V4.replace(&bed.router, &legs);
    V4.until_legs(&mut follower, &legs);
    follower.until("resolved", |f| f.to("10.9.0.1").starts_with(&leg("r0", "10.0.0.2", 2, HOST0_MAC)));
    V4.replace(&bed.router, &V4.to(&[(1, 1), (2, 1)]));
    V4.until_legs(&mut follower, &V4.to(&[(1, 1), (2, 1)]));
    follower.settle();
}
