//! The settings that a data plane has to follow: changed while the inspector runs, seen as they are in effect.

mod common;
mod inspection;

use causeway_kernel::{MultipathSettings, PortSettings4, PortSettings6, Settings, SourceCheck};
use inspection::{Watched, router, wait_while};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sets something, and waits until it is seen, without a doubt: what is read is known.
fn set(bed: &common::Testbed, watched: &mut Watched, settings: &str, seen: impl Fn(&Settings) -> bool) {
    assert!(bed.router.run(&format!("sysctl -qw {settings}")), "{settings}");
    assert_eq!(watched.until(settings, |w| seen(&w.settings)), [], "{settings}");
}

#[test]
fn ports_settings_are_those_in_effect() {
    let Some(bed) = router("sport") else { return };
    bed.router.run("sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.r0.rp_filter=0");
    let mut watched = Watched::quiet(&bed);
    assert_eq!(
        watched.settings.ports["r0"].v4,
        PortSettings4 {
            forwarding: true,
            reverse_path: SourceCheck::Off,
            accept_local: false,
            send_redirects: true,
            accept_redirects: false,
            ignore_linkdown: false,
            ruled: false,
        }
    );
    assert_eq!(
        watched.settings.ports["r0"].v6,
        PortSettings6 {
            forwarding: true,
            enabled: true,
            accept_redirects: false,
            ignore_linkdown: false,
            mtu_bytes: 1500,
            ruled: false,
        }
    );
    let w = &mut watched;
    set(&bed, w, "net.ipv4.conf.r1.forwarding=0", |s| !s.ports["r1"].v4.forwarding);
    assert!(w.settings.ports["r0"].v4.forwarding);
    set(&bed, w, "net.ipv4.conf.r1.forwarding=1", |s| s.ports["r1"].v4.forwarding);
    // The larger of the two, each way round.
    set(&bed, w, "net.ipv4.conf.r0.rp_filter=2", |s| s.ports["r0"].v4.reverse_path == SourceCheck::Loose);
    set(&bed, w, "net.ipv4.conf.all.rp_filter=1", |s| s.ports["r1"].v4.reverse_path == SourceCheck::Strict);
    assert_eq!(w.settings.ports["r0"].v4.reverse_path, SourceCheck::Loose);
    set(&bed, w, "net.ipv4.conf.all.rp_filter=0", |s| s.ports["r1"].v4.reverse_path == SourceCheck::Off);
    // Either of the two.
    set(&bed, w, "net.ipv4.conf.r0.accept_local=1", |s| s.ports["r0"].v4.accept_local);
    assert!(!w.settings.ports["r1"].v4.accept_local);
    set(&bed, w, "net.ipv4.conf.all.accept_local=1", |s| s.ports["r1"].v4.accept_local);
    set(&bed, w, "net.ipv4.conf.r0.send_redirects=0 net.ipv4.conf.all.send_redirects=0", |s| {
        !s.ports["r0"].v4.send_redirects && s.ports["r1"].v4.send_redirects
    });
    // The interface's own, of IPv6 also what is written for all of them.
    set(&bed, w, "net.ipv4.conf.r0.ignore_routes_with_linkdown=1", |s| s.ports["r0"].v4.ignore_linkdown);
    set(&bed, w, "net.ipv6.conf.all.ignore_routes_with_linkdown=1", |s| s.ports["r0"].v6.ignore_linkdown);
    set(&bed, w, "net.ipv6.conf.all.forwarding=0", |s| !s.ports["r0"].v6.forwarding);
    set(&bed, w, "net.ipv6.conf.r0.forwarding=1 net.ipv6.conf.all.proxy_ndp=1", |s| s.proxy_ndp);
    assert!(!w.settings.ports["r0"].v6.forwarding, "one interface's own says nothing");
    if bed.router.run("sysctl -qw net.ipv6.conf.r0.force_forwarding=1") {
        w.until("forced", |w| w.settings.ports["r0"].v6.forwarding);
        assert!(!w.settings.ports["r1"].v6.forwarding);
    } else {
        eprintln!("skipped: needs Linux 6.17 (force_forwarding)");
    }
    set(&bed, w, "net.ipv6.conf.all.forwarding=1", |s| s.ports["r1"].v6.forwarding);
    // A link event of the start that the kernel brings late sets it back, so it is set until it is seen.
    let seen = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !seen.load(Ordering::Relaxed) {
                bed.router.run("sysctl -qw net.ipv6.conf.r1.mtu=1300");
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        w.until("the MTU", |w| w.settings.ports["r1"].v6.mtu_bytes == 1300);
        seen.store(true, Ordering::Relaxed);
    });
    // The kernel sends a message about the link, too, so there may be a doubt.
    assert!(bed.router.run("sysctl -qw net.ipv6.conf.r1.disable_ipv6=1"));
    w.until("disable_ipv6", |w| !w.settings.ports["r1"].v6.enabled);
    let v6 = w.settings.ports["r1"].v6;
    assert!(!v6.forwarding && !v6.accept_redirects && v6.ignore_linkdown, "{v6:?}");
}

#[test]
fn multipath_settings_are_seen() {
    let Some(bed) = router("smulti") else { return };
    let mut watched = Watched::quiet(&bed);
    let w = &mut watched;
    assert_eq!((w.settings.multipath_hash_seed, w.settings.multipath4.policy), (0, 0));
    set(&bed, w, "net.ipv4.fib_multipath_hash_policy=1", |s| s.multipath4.policy == 1);
    set(&bed, w, "net.ipv6.fib_multipath_hash_policy=3 net.ipv6.fib_multipath_hash_fields=55", |s| {
        s.multipath6 == MultipathSettings { policy: 3, fields: 55 }
    });
    assert_eq!(w.settings.multipath4.policy, 1);
    set(&bed, w, "net.ipv4.fib_multipath_use_neigh=1", |s| s.multipath_use_neighbours);
    let seed = u32::MAX - 1;
    if bed.router.run(&format!("sysctl -qw net.ipv4.fib_multipath_hash_seed={seed}")) {
        w.until("the seed", |w| w.settings.multipath_hash_seed == seed);
    } else {
        eprintln!("skipped: needs Linux 6.11 (fib_multipath_hash_seed)");
    }
}

/// What the kernel does with packets is what the settings say.
#[test]
fn the_kernel_forwards_ipv4_by_these_settings() {
    let Some(bed) = router("skern") else { return };
    let mut watched = Watched::quiet(&bed);
    let forwards = |from: &str, device: &str, to: &str| {
        // A request for the route of a packet that comes in is the kernel's own lookup, with its checks.
        let args = ["-n", bed.router.name(), "route", "get", to, "from", from, "iif", device];
        std::process::Command::new("ip").args(args).output().unwrap().status.success()
    };
    let w = &mut watched;
    assert!(forwards("10.0.0.2", "r0", "10.0.1.2"));
    set(&bed, w, "net.ipv4.conf.r1.forwarding=0", |s| !s.ports["r1"].v4.forwarding);
    assert!(forwards("10.0.0.2", "r0", "10.0.1.2") && !forwards("10.0.1.2", "r1", "10.0.0.2"));
    set(&bed, w, "net.ipv4.conf.r1.forwarding=1", |s| s.ports["r1"].v4.forwarding);
    assert!(!forwards("10.0.1.1", "r0", "10.0.1.2"), "a source that is the machine's own");
    set(&bed, w, "net.ipv4.conf.all.accept_local=1", |s| s.ports["r0"].v4.accept_local);
    assert!(forwards("10.0.1.1", "r0", "10.0.1.2"));
    assert!(forwards("10.0.1.3", "r0", "10.0.1.2"));
    set(&bed, w, "net.ipv4.conf.r0.rp_filter=1", |s| s.ports["r0"].v4.reverse_path == SourceCheck::Strict);
    assert!(!forwards("10.0.1.3", "r0", "10.0.1.2"));
    set(&bed, w, "net.ipv4.conf.all.rp_filter=2", |s| s.ports["r0"].v4.reverse_path == SourceCheck::Loose);
    assert!(forwards("10.0.1.3", "r0", "10.0.1.2") && !forwards("192.0.2.1", "r0", "10.0.1.2"));
}

#[test]
fn the_kernel_forwards_ipv6_by_these_settings() {
    let Some(bed) = router("skern6") else { return };
    if !std::process::Command::new("ping").arg("-V").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: needs ping (apt install iputils-ping)");
        return;
    }
    bed.hosts.ip("-6 route add 2001:db8:1::9/128 via 2001:db8:0::1 dev h0");
    let mut watched = Watched::quiet(&bed);
    let count = || {
        let text = bed.router.enter(|| std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap());
        let line = text.lines().find(|line| line.starts_with("Ip6OutForwDatagrams")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    // Nobody answers.
    let forwards = || {
        let before = count();
        let args = ["netns", "exec", bed.hosts.name(), "ping", "-c1", "-W0.1", "-Ih0", "2001:db8:1::9"];
        let _ = std::process::Command::new("ip").args(args).output();
        count() > before
    };
    // The kernel takes some time to find out that links have a carrier.
    wait_while(|| !forwards());
    let w = &mut watched;
    let mut tried = 0;
    for settings in [
        "conf.r0.forwarding=0",
        "conf.all.forwarding=0",
        "conf.r0.forwarding=1",
        "conf.r1.force_forwarding=1",
        "conf.r0.force_forwarding=1",
        "conf.r0.disable_ipv6=1",
    ] {
        if !bed.router.run(&format!("sysctl -qw net.ipv6.{settings}")) {
            eprintln!("skipped: needs Linux 6.17 (force_forwarding)");
            continue;
        }
        w.mark();
        let said = w.settings.ports["r0"].v6.forwarding;
        assert_eq!(said, forwards(), "{settings}");
        tried += u32::from(said);
    }
    assert!((1..6).contains(&tried), "both were tried");
}
