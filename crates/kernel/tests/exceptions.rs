//! Destinations of which the kernel has learned what its routes do not say. That it is learned and asked for is tried with whole
//! routers (the binary's test `oracle`).

mod common;

use std::collections::BTreeSet;
use std::net::IpAddr;

use common::{HOST0_MAC, HOST1_MAC, Testbed, leg};

#[test]
fn what_was_learned_of_a_destination_leaves_it_to_the_kernel_until_it_is_forgotten() {
    let Some(bed) = Testbed::new("learn") else { return };
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2");
    bed.router.ip("-6 route add 2001:db8:9::/48 via 2001:db8:1::2");
    let (v4, v6) = (leg("r0", "10.0.0.2", 1, HOST0_MAC), leg("r1", "2001:db8:1::2", 1, HOST1_MAC));
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("resolved", |f| f.to("10.9.0.7") == v4 && f.to("2001:db8:9::7") == v6);
    let own = follower.to("10.0.0.1");
    let learned = ["10.9.0.7", "2001:db8:9::7", "10.0.0.1"].map(|to| to.parse::<IpAddr>().unwrap());
    follower.watcher.set_exceptions(BTreeSet::from(learned));
    follower
        .until("learned", |f| ["10.9.0.7", "2001:db8:9::7"].iter().all(|to| f.to(to) == "punt exception"));
    assert_eq!(follower.to("10.0.0.1"), own, "it stays this machine's");
    assert_eq!((follower.to("10.9.0.8"), follower.to("2001:db8:9::8")), (v4.clone(), v6.clone()));

    // Another route to it does not matter, nor that it goes.
    bed.router.ip("route add 10.9.0.7/32 via 10.0.0.2");
    bed.router.ip("route del 10.9.0.0/16");
    follower.until("the route is gone", |f| f.to("10.9.0.8") != v4);
    assert_eq!(follower.to("10.9.0.7"), "punt exception");
    follower.watcher.set_exceptions(BTreeSet::new());
    follower.until("forgotten", |f| f.to("10.9.0.7") == v4 && f.to("2001:db8:9::7") == v6);
}
