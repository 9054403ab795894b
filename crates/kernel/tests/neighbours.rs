//! The kernel's neighbour entries: what is kept, what is left alone, and what is given back.

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use causeway_kernel::{ManagedNeighbour, WatcherConfig, release_managed};
use common::{Follower, HOST0_MAC, HOST1_MAC, Testbed, leg};

/// The kernel's line about a neighbour.
fn entry(bed: &Testbed, port: &str, address: &str) -> String {
    bed.router.show(&format!("neigh show {address} dev {port}")).trim().to_owned()
}

fn managed(bed: &Testbed) -> usize {
    bed.router.show("neigh").lines().filter(|line| line.contains("managed")).count()
}

fn routed(tag: &str) -> Option<Testbed> {
    let bed = Testbed::new(tag)?;
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2");
    bed.router.ip("-6 route add 2001:db8:9::/48 via 2001:db8:1::2");
    Some(bed)
}

fn resolved(f: &Follower) -> bool {
    f.to("10.9.0.1") == leg("r0", "10.0.0.2", 1, HOST0_MAC)
        && f.to("2001:db8:9::1") == leg("r1", "2001:db8:1::2", 1, HOST1_MAC)
}

#[test]
fn what_was_kept_stays_resolved_when_it_is_given_back() {
    let Some(bed) = routed("back") else { return };
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("resolved", |f| resolved(f) && f.watcher.managed().len() == 2);
    follower.until("managed", |_| managed(&bed) == 2);
    drop(follower);
    assert_eq!(managed(&bed), 0);
    for (port, address, mac) in
        [("r0", "10.0.0.2", "02:00:00:00:01:01"), ("r1", "2001:db8:1::2", "02:00:00:00:01:02")]
    {
        let entry = entry(&bed, port, address);
        assert!(entry.contains(mac) && !entry.contains("extern_learn"), "{entry}");
        assert!(
            ["REACHABLE", "DELAY", "PROBE", "STALE"].iter().any(|state| entry.ends_with(state)),
            "{entry}"
        );
    }
}

#[test]
fn an_administrators_entry_is_never_touched() {
    let Some(bed) = routed("admin") else { return };
    let (before, after) = ("02:00:00:00:00:aa", "02:00:00:00:00:bb");
    bed.router.ip(&format!("neigh add 10.0.0.2 lladdr {before} dev r0 nud permanent"));
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("the other is managed", |_| managed(&bed) == 1);
    // One that was kept is made permanent.
    bed.router.ip(&format!("neigh replace 2001:db8:1::2 lladdr {after} dev r1 nud permanent"));
    follower.until("seen", |f| f.to("2001:db8:9::1").contains("bb]"));
    let index = follower.watcher.mirror().link("r0").unwrap().index;
    for _ in 0..8 {
        // As if a stale host were in use.
        follower.watcher.solicit(index, "10.0.0.2".parse().unwrap());
        follower.step();
    }
    follower.until("no claim is left", |f| f.watcher.managed().is_empty());
    drop(follower);
    assert_eq!(entry(&bed, "r0", "10.0.0.2"), format!("10.0.0.2 lladdr {before} PERMANENT"));
    assert_eq!(entry(&bed, "r1", "2001:db8:1::2"), format!("2001:db8:1::2 lladdr {after} PERMANENT"));
}

#[test]
fn what_another_program_learned_or_manages_is_left_to_it() {
    let Some(bed) = routed("other") else { return };
    bed.router.ip("neigh add 10.0.0.2 lladdr 02:00:00:00:01:01 dev r0 extern_learn nud reachable");
    bed.router.ip("neigh add 2001:db8:1::2 managed extern_learn dev r1");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("resolved", resolved);
    for _ in 0..8 {
        follower.step();
    }
    assert_eq!(follower.watcher.managed(), []);
    drop(follower);
    assert!(entry(&bed, "r0", "10.0.0.2").contains("lladdr 02:00:00:00:01:01 extern_learn"));
    assert!(entry(&bed, "r1", "2001:db8:1::2").contains("managed extern_learn"));
}

#[test]
fn a_host_that_no_packet_goes_to_is_not_asked_about() {
    let Some(bed) = Testbed::new("idle") else { return };
    let (used, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (use_it, count) = (used.clone(), asked.clone());
    let mut follower = bed.open_with(&["r0", "r1"], |config| WatcherConfig {
        was_used: Box::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            use_it.load(Ordering::Relaxed)
        }),
        ..config
    });
    bed.router.ip("neigh add 10.0.0.2 lladdr 02:00:00:00:01:01 dev r0 nud stale");
    follower.until("known", |f| f.to("10.0.0.2") == leg("r0", "10.0.0.2", 1, HOST0_MAC));
    follower.until("asked", |_| asked.load(Ordering::Relaxed) >= 3);
    assert!(entry(&bed, "r0", "10.0.0.2").ends_with("STALE"), "{}", entry(&bed, "r0", "10.0.0.2"));
    assert_eq!(follower.watcher.stats().asked, 0);
    // Packets go to it: the kernel is asked, and finds it. Then it is not stale, and nothing more is asked.
    used.store(true, Ordering::Relaxed);
    follower.until("in use", |_| !entry(&bed, "r0", "10.0.0.2").ends_with("STALE"));
    assert!(follower.watcher.stats().asked > 0);
}

/// It may be ended by force at any time before.
#[test]
fn who_has_not_taken_a_place_yet_only_says_that_gateways_are_in_use() {
    let Some(bed) = routed("before") else { return };
    let mut follower = bed.open_with(&["r0", "r1"], |config| WatcherConfig { manage: false, ..config });
    follower.until("resolved", resolved);
    assert_eq!((managed(&bed), follower.watcher.managed()), (0, Vec::new()));
    follower.watcher.adopt(&[]);
    follower.until("managed", |f| managed(&bed) == 2 && f.watcher.managed().len() == 2);
}

#[test]
fn the_list_of_what_is_managed_outlives_its_watcher() {
    let Some(bed) = routed("list") else { return };
    let told: Arc<Mutex<Vec<Vec<ManagedNeighbour>>>> = Arc::default();
    let ear = told.clone();
    let kernel = bed.router.name().to_owned();
    let mut follower = bed.open_with(&["r0", "r1"], |config| WatcherConfig {
        on_managed: Box::new(move |list| {
            // Who is told has to know before the kernel does.
            let output = std::process::Command::new("ip").args(["-n", &kernel, "neigh"]).output().unwrap();
            let made = String::from_utf8_lossy(&output.stdout).matches("managed").count();
            assert!(made <= list.len(), "{made} of {list:?}");
            ear.lock().unwrap().push(list.to_vec());
        }),
        ..config
    });
    follower.until("managed", |f| resolved(f) && managed(&bed) == 2 && f.watcher.managed().len() == 2);
    let list = follower.watcher.managed();
    assert_eq!(told.lock().unwrap().last(), Some(&list));
    let names: Vec<(&str, String)> =
        list.iter().map(|n| (n.ifname.as_str(), n.address.to_string())).collect();
    assert_eq!(names, [("r0", "10.0.0.2".to_owned()), ("r1", "2001:db8:1::2".to_owned())]);

    // It ends without a chance to give anything back. An entry that somebody took over is not touched, nor one of another
    // interface by that number.
    std::mem::forget(follower);
    bed.router.ip("neigh replace 10.0.0.2 lladdr 02:00:00:00:00:cc dev r0 nud permanent");
    assert_eq!(bed.router.enter(|| release_managed(&list[..1]).unwrap()), 0);
    assert!(entry(&bed, "r0", "10.0.0.2").ends_with("PERMANENT"));
    bed.router.ip("link set r1 down");
    bed.router.ip("link set r1 name other");
    bed.router.ip("link set other up");
    bed.router.ip("addr replace 2001:db8:1::1/64 dev other nodad");
    bed.router.ip("neigh replace 2001:db8:1::2 managed extern_learn dev other");
    assert_eq!(bed.router.enter(|| release_managed(&list).unwrap()), 0);
    assert_eq!(managed(&bed), 1);
    let renamed = ManagedNeighbour { ifname: "other".into(), ..list[1].clone() };
    assert_eq!(bed.router.enter(|| release_managed(&[renamed.clone(), renamed]).unwrap()), 1);
    assert_eq!(managed(&bed), 0);
    assert!(!entry(&bed, "other", "2001:db8:1::2").is_empty(), "the entry is still there");
}

#[test]
fn a_gateway_of_a_link_without_carrier_is_not_asked_for() {
    let Some(bed) = routed("carrier") else { return };
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("managed", |f| resolved(f) && f.watcher.managed().len() == 2);
    bed.hosts.ip("link set h0 down");
    follower.until("let go", |f| f.watcher.managed().len() == 1);
    bed.hosts.ip("link set h0 up");
    follower.until("kept again", |f| resolved(f) && f.watcher.managed().len() == 2);
}
