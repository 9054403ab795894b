//! A watcher that knows when it does not know: losses are said at once, certainty only when it has been put to use, and the
//! pulse is that of who does the work.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use causeway_kernel::{Cause, Doubt, Pulse, Snapshot, WatcherConfig};
use common::{Follower, HOST0_MAC, Testbed, leg};

/// What was said, and on which thread.
type Said = Arc<Mutex<Vec<(Doubt, Option<String>)>>>;

fn listen(said: &Said) -> impl Fn(WatcherConfig) -> WatcherConfig + Send + use<> {
    let said = said.clone();
    move |config| {
        let said = said.clone();
        let on_doubt = Arc::new(move |doubt| {
            let thread = std::thread::current().name().map(str::to_owned);
            said.lock().unwrap().push((doubt, thread));
        });
        WatcherConfig { on_doubt, ..config }
    }
}

fn last(said: &Said) -> Option<Doubt> {
    said.lock().unwrap().last().map(|(doubt, _)| *doubt)
}

/// Follows until all is known; returns what users had put to use when that was said.
fn until_cleared(follower: &mut Follower, said: &Said) -> Snapshot {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let before = follower.seen.clone();
        follower.step();
        if last(said) == Some(Doubt::Cleared) {
            return before;
        }
        assert!(Instant::now() < end, "never cleared: {said:?}");
    }
}

fn prefix(i: u32) -> String {
    format!("{}.{}.{}.0/24", 16 + (i >> 16), (i >> 8) & 255, i & 255)
}

#[test]
fn a_loss_is_said_at_once_and_cleared_when_a_later_dump_is_in_use() {
    let Some(bed) = Testbed::new("loss") else { return };
    let said = Said::default();
    let listening = listen(&said);
    // The least that the kernel gives.
    let mut follower = bed.open_with(&["r0", "r1"], |config| WatcherConfig {
        receive_buffer_bytes: 1,
        keep_resolved: false,
        ..listening(config)
    });
    assert_eq!(last(&said), None, "nothing is known before the first changes are in use");
    until_cleared(&mut follower, &said);
    said.lock().unwrap().clear();
    let as_of = follower.watcher.as_of();

    // Nobody drives the watcher meanwhile.
    let add: String = (0..50_000).map(|i| format!("route add {} via 10.0.0.2\n", prefix(i))).collect();
    bed.router.batch(&add);
    let lost = (Doubt::Raised(Cause::MessagesLost), Some("netlink".to_owned()));
    assert_eq!(*said.lock().unwrap(), [lost], "by the thread that reads, and once");

    let used = until_cleared(&mut follower, &said);
    let count = used.routes.keys().filter(|prefix| prefix.len() == 24).count();
    assert_eq!(count, 50_000 + 2, "all is in use when it is said to be known");
    assert!(follower.watcher.as_of() > as_of);
    assert!(follower.watcher.stats().overruns > 0);
}

#[test]
fn while_messages_are_missing_the_state_does_not_grow_younger() {
    let Some(bed) = Testbed::new("age") else { return };
    let said = Said::default();
    let listening = listen(&said);
    let mut follower = bed.open_with(&["r0", "r1"], |config| WatcherConfig {
        receive_buffer_bytes: 1,
        keep_resolved: false,
        ..listening(config)
    });
    until_cleared(&mut follower, &said);
    let add: String = (0..50_000).map(|i| format!("route add {} via 10.0.0.2\n", prefix(i))).collect();
    bed.router.batch(&add);
    let told = Instant::now();
    assert_eq!(last(&said), Some(Doubt::Raised(Cause::MessagesLost)));
    while follower.watcher.as_of() < told {
        follower.step();
    }
    assert!(follower.seen.routes.len() > 50_000);
    assert!(follower.watcher.stats().overruns > 0, "nothing was lost, so nothing was tested");
}

#[test]
fn what_the_kernel_did_before_as_of_is_in_what_was_handed_out() {
    let Some(bed) = Testbed::new("asof") else { return };
    bed.router.ip("neigh add 10.0.0.2 lladdr 02:00:00:00:01:01 dev r0");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.settle();
    for i in 0..40 {
        bed.router.ip(&format!("route add {} via 10.0.0.2", prefix(i)));
        let done = Instant::now();
        while follower.watcher.as_of() < done {
            follower.step();
        }
        let address = prefix(i).replace("/24", "").to_string();
        assert_eq!(follower.to(&address), leg("r0", "10.0.0.2", 1, HOST0_MAC), "route {i}");
    }
}

#[test]
fn the_pulse_is_that_of_who_does_the_work() {
    let Some(bed) = Testbed::new("pulse") else { return };
    let add: String = (0..100_000).map(|i| format!("route add {} via 10.0.0.2\n", prefix(i))).collect();
    bed.router.batch(&add);
    let pulse = Pulse::new();
    assert_eq!(pulse.last_ns(), 0);
    // Beats that are seen from outside while all routes are dumped, and while they are handed out.
    let count_beats = |work: &mut (dyn FnMut() + Send)| {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let counter = scope.spawn(|| {
                let (mut beats, mut last) = (0, pulse.last_ns());
                while !done.load(Ordering::Acquire) {
                    let now = pulse.last_ns();
                    beats += usize::from(now != last);
                    last = now;
                    std::thread::yield_now();
                }
                beats
            });
            work();
            done.store(true, Ordering::Release);
            counter.join().unwrap()
        })
    };
    let mut follower = None;
    let beats = count_beats(&mut || {
        let beating = pulse.clone();
        let change = |config| WatcherConfig { pulse: beating, keep_resolved: false, ..config };
        follower = Some(bed.open_with(&["r0", "r1"], change));
    });
    assert!(beats >= 5, "{beats} while dumping");
    let mut follower = follower.unwrap();
    let beats = count_beats(&mut || follower.step());
    assert!(follower.seen.routes.len() > 100_000);
    assert!(beats >= 5, "{beats} while handing out");

    // Nobody waits: nothing keeps it going, though messages come in.
    let still = pulse.last_ns();
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(pulse.last_ns(), still);
    follower.step();
    assert!(pulse.last_ns() > still);
}

/// Messages that come one by one do not fill the row of those that wait.
#[test]
fn nothing_is_lost_while_nobody_takes_it_in() {
    let Some(bed) = Testbed::new("row") else { return };
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.settle();
    let add: String = (0..20_000).map(|i| format!("route add {} via 10.0.0.2\n", prefix(i))).collect();
    bed.router.batch(&add);
    let all = |f: &Follower| f.seen.routes.keys().filter(|prefix| prefix.len() == 24).count() == 20_000 + 2;
    follower.until("all", all);
    assert_eq!(follower.watcher.stats().overruns, 0);
}

#[test]
fn wait_comes_back_soon_whatever_it_was_told() {
    let Some(bed) = Testbed::new("wait") else { return };
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.settle();
    // It would be an hour otherwise. A late route, as those that come when an address has been found to be unique, ends
    // a wait of itself.
    while !follower.watcher.wait(Duration::from_secs(3600)).unwrap().routes.is_empty() {}
}

/// While the tree of IPv6 routes changes, the kernel's dumps pass over some routes and do not say so.
#[test]
fn a_dump_of_ipv6_routes_that_is_disturbed_does_not_count() {
    let Some(bed) = Testbed::new("disturb") else { return };
    let stay = |i: u32| format!("2001:db8:9{:x}:{:x}::/64", i >> 8, i & 255);
    let churn = |i: u32| format!("2001:db8:1{:x}:{:x}::/64", i >> 8, i & 255);
    let add: String = (0..8000).map(|i| format!("route add {} via 2001:db8:1::2\n", stay(i))).collect();
    bed.router.batch(&add);
    let count = |seen: &Snapshot| {
        seen.routes.keys().filter(|prefix| prefix.to_string().starts_with("2001:db8:9")).count()
    };
    let verbs = ["add", "del"].map(|verb| {
        let line = |i| format!("route {verb} {} via 2001:db8:1::2\n", churn(i));
        (0..2000).map(line).collect::<String>()
    });
    let mut followed = bed.follow(&["r0", "r1"]);
    followed.settle();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| bed.router.batch(&verbs.concat().repeat(20)));
        while !writer.is_finished() {
            let said = Said::default();
            let listening = listen(&said);
            let mut fresh = bed.open_with(&["r0", "r1"], |config| WatcherConfig {
                keep_resolved: false,
                ..listening(config)
            });
            for _ in 0..2 {
                let used = fresh.seen.clone();
                fresh.step();
                if last(&said) == Some(Doubt::Cleared) {
                    assert_eq!(count(&used), 8000, "all is said to be known");
                }
            }
        }
    });
    followed.step();
    assert_eq!(count(&followed.seen), 8000, "none of them has gone");
    followed.settle();
    assert_eq!(count(&followed.seen), 8000);
}
