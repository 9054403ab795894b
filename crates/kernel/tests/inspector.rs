//! What the router would pass by, changed while it runs: told by messages, or asked for again and again.

mod common;
mod inspection;

use std::net::UdpSocket;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use causeway_kernel::{Attachment, Inspection, InspectionDoubt as Doubt, Program};
use common::Testbed;
use inspection::{TestProbe, Watched, has_nft, router, wait_while};

/// Runs a command line in the router's namespace; nft's commands may have `;` in them, others not.
fn run(bed: &Testbed, line: &str) {
    match line.strip_prefix("nft ") {
        Some(commands) => bed.router.nft(commands),
        None => assert!(bed.router.run(line), "{line}"),
    }
}

/// Something that comes and goes: the code of its finding, what makes it come and what makes it go.
type Change = (&'static str, &'static str, &'static str);

/// Changes that are told by messages: what is in doubt is said before it is looked at.
fn told(tag: &str, doubt: &Doubt, changes: &[Change]) {
    let Some(bed) = router(tag) else { return };
    let mut watched = Watched::quiet(&bed);
    for (code, come, go) in changes {
        run(&bed, come);
        let doubts = watched.until(come, |w| w.found(code));
        assert_eq!(doubts.first(), Some(doubt), "{come}");
        run(&bed, go);
        let doubts = watched.until(go, |w| w.findings.is_empty());
        assert_eq!(doubts.first(), Some(doubt), "{go}");
    }
}

/// Changes that there are no messages about: what is asked for is known at once.
fn silent(tag: &str, changes: &[Change]) {
    let Some(bed) = router(tag) else { return };
    let mut watched = Watched::quiet(&bed);
    for (code, come, go) in changes {
        run(&bed, come);
        assert_eq!(watched.until(come, |w| w.found(code)), [], "{come}");
        run(&bed, go);
        assert_eq!(watched.until(go, |w| w.findings.is_empty()), [], "{go}");
    }
}

#[test]
fn nftables_is_told() {
    if !has_nft() {
        return;
    }
    told(
        "inft",
        &Doubt::Netfilter,
        &[
            (
                "nft-forward",
                "nft add table ip t; add chain ip t f { type filter hook forward priority 0; }; add rule ip t f drop",
                "nft flush chain ip t f",
            ),
            ("nft-forward", "nft add rule ip t f drop", "nft delete chain ip t f"),
            (
                "nft-prerouting",
                "nft add chain ip t p { type filter hook prerouting priority 0; policy drop; }",
                "nft add chain ip t p { policy accept; }",
            ),
            ("nft-prerouting", "nft add chain ip t p { policy drop; }", "nft delete table ip t"),
            (
                "nft-egress",
                "nft add table netdev t; \
                 add chain netdev t e { type filter hook egress device r1 priority 0; policy drop; }",
                "nft delete table netdev t",
            ),
        ],
    );
}

/// The rules are gone, but what the kernel keeps of the connection is not, and its translator is called while a chain is there.
#[test]
fn connections_are_told_that_are_translated_without_rules() {
    let Some(bed) = router("inat") else { return };
    if !has_nft() {
        return;
    }
    let mut watched = Watched::quiet(&bed);
    bed.router.nft(
        "add table ip t; add chain ip t p { type nat hook postrouting priority 100; }; \
         add chain ip t o { type nat hook output priority -100; }; add rule ip t o udp dport 7 dnat to 127.0.0.1:8",
    );
    let connection = || UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", "127.0.0.1:7").unwrap();
    bed.router.enter(connection);
    watched.until("translated", |w| w.found("netfilter-hook"));
    bed.router.nft("flush chain ip t o");
    watched.mark();
    assert!(watched.found("netfilter-hook"), "without rules, too");
    bed.router.nft("delete table ip t");
    watched.until("no translator", |w| w.findings.is_empty());
    // As the kernel has it, the connection may live on; it counts again when a chain comes back.
    bed.router.nft("add table ip t; add chain ip t p { type nat hook postrouting priority 100; }");
    watched.until("still there", |w| w.found("netfilter-hook"));
}

#[test]
fn ipsec_policies_are_told() {
    told(
        "ixfrm",
        &Doubt::Xfrm,
        &[
            (
                "xfrm-policy",
                "ip xfrm policy add dir fwd src 10.0.0.0/8 dst 11.0.0.0/8 action block",
                "ip xfrm policy del dir fwd src 10.0.0.0/8 dst 11.0.0.0/8",
            ),
            (
                "xfrm-policy",
                "ip xfrm policy add dir out src 2001:db8::/32 dst 2001:db8::/32 action block",
                "ip xfrm policy flush",
            ),
            ("xfrm-default", "ip xfrm policy setdefault fwd block", "ip xfrm policy setdefault fwd accept"),
        ],
    );
}

#[test]
fn queueing_disciplines_are_told() {
    told(
        "itc",
        &Doubt::TrafficControl,
        &[
            (
                "qdisc",
                "tc qdisc replace dev r0 root tbf rate 10mbit burst 10k latency 50ms",
                "tc qdisc del dev r0 root",
            ),
            ("tc-filter", "tc qdisc add dev r1 clsact", "tc qdisc del dev r1 clsact"),
        ],
    );
}

#[test]
fn policy_rules_are_told() {
    told(
        "irule",
        &Doubt::Rules,
        &[
            ("policy-rule", "ip rule add from 10.1.0.0/16 table 100 priority 7", "ip rule del priority 7"),
            ("policy-rule", "ip -6 rule add fwmark 1 table 100 priority 7", "ip -6 rule del priority 7"),
        ],
    );
    let Some(bed) = router("iiif") else { return };
    let mut watched = Watched::quiet(&bed);
    let ruled = |w: &Watched| {
        ["r0", "r1"].map(|port| (w.settings.ports[port].v4.ruled, w.settings.ports[port].v6.ruled))
    };
    run(&bed, "ip -6 rule add iif r0 table 100 priority 7");
    assert_eq!(watched.until("a port's rule", |w| w.found("policy-rule"))[0], Doubt::Rules);
    assert_eq!(ruled(&watched), [(false, true), (false, false)]);
    run(&bed, "ip -6 rule del priority 7");
    watched.until("no rule", |w| w.findings.is_empty());
    assert_eq!(ruled(&watched), [(false, false); 2]);
}

#[test]
fn links_are_told() {
    told(
        "ilink",
        &Doubt::Links,
        &[
            ("port-down", "ip link set r0 down", "ip link set r0 up"),
            ("port-kind", "ip link set r0 arp off", "ip link set r0 arp on"),
            ("port-shared", "ip link add m0 link r0 type macvlan mode passthru", "ip link del m0"),
        ],
    );
    let Some(bed) = router("igone") else { return };
    bed.router.ip("link add b0 type bridge");
    let mut watched = Watched::quiet(&bed);
    run(&bed, "ip link set r1 master b0");
    assert_eq!(watched.until("enslaved", |w| w.found("port-enslaved"))[0], Doubt::Links);
    run(&bed, "ip link set r1 nomaster");
    assert_eq!(watched.until("free", |w| w.findings.is_empty())[0], Doubt::Links);
    run(&bed, "ip link del r0");
    assert_eq!(watched.until("gone", |w| w.found("port-missing"))[0], Doubt::Links);
    assert!(!watched.settings.ports["r0"].v4.forwarding, "what is not there does not forward");
    // Another interface of that name is that port again, and its settings are its own.
    run(&bed, "ip link add r0 type veth peer name other");
    run(&bed, "ip link set r0 up");
    watched.until("back", |w| w.findings.is_empty() && w.settings.ports["r0"].v4.forwarding);
}

#[test]
fn iptables_legacy_is_asked_for() {
    let Some(bed) = router("iask") else { return };
    for command in ["iptables-legacy", "ip6tables-legacy"] {
        if !bed.router.run(&format!("{command} -Z")) {
            eprintln!("skipped: needs {command} (iptables)");
            return;
        }
    }
    drop(bed);
    silent(
        "iipt",
        &[
            ("iptables-legacy", "iptables-legacy -A FORWARD -j DROP", "iptables-legacy -F FORWARD"),
            ("iptables-legacy", "iptables-legacy -P FORWARD DROP", "iptables-legacy -P FORWARD ACCEPT"),
            (
                "ip6tables-legacy",
                "ip6tables-legacy -t mangle -A POSTROUTING -j ACCEPT",
                "ip6tables-legacy -t mangle -F POSTROUTING",
            ),
        ],
    );
}

#[test]
fn settings_that_cannot_be_followed_are_asked_for() {
    silent(
        "iset",
        &[
            (
                "forward-use-pmtu",
                "sysctl -qw net.ipv4.ip_forward_use_pmtu=1",
                "sysctl -qw net.ipv4.ip_forward_use_pmtu=0",
            ),
            (
                "accept-redirects",
                "sysctl -qw net.ipv4.conf.all.accept_redirects=1 net.ipv4.conf.r0.accept_redirects=1",
                "sysctl -qw net.ipv4.conf.all.accept_redirects=0",
            ),
            (
                "forwarding-off",
                "sysctl -qw net.ipv4.conf.r0.forwarding=0",
                "sysctl -qw net.ipv4.conf.r0.forwarding=1",
            ),
        ],
    );
}

#[test]
fn programs_are_asked_for() {
    let Some(bed) = router("iprog") else { return };
    let mut watched = Watched::quiet(&bed);
    let attachments = [
        (Attachment::Ingress(1), "tc-program"),
        (Attachment::Egress(1), "tc-program"),
        (Attachment::Xdp(1), "xdp-program"),
        (Attachment::Netfilter, "netfilter-program"),
    ];
    for (attachment, code) in attachments {
        *watched.probe.programs.lock().unwrap() = vec![Program { attachment, id: 7 }];
        assert_eq!(watched.until("comes", |w| w.found(code)), []);
        watched.probe.programs.lock().unwrap().clear();
        assert_eq!(watched.until("goes", |w| w.findings.is_empty()), []);
    }
}

#[test]
fn what_does_not_concern_forwarded_packets_is_no_doubt() {
    let Some(bed) = router("iidle") else { return };
    if !has_nft() {
        return;
    }
    bed.router.nft("add table inet t; add set inet t s { type ipv4_addr; }");
    let mut watched = Watched::quiet(&bed);
    bed.router.nft("add element inet t s { 10.0.0.1 }; delete element inet t s { 10.0.0.1 }");
    bed.router.nft("add chain inet t in { type filter hook input priority 0; }; add rule inet t in counter");
    bed.router.nft("add chain inet t jumped; add rule inet t jumped counter; delete chain inet t in");
    bed.router.ip("link add other type veth peer name another");
    bed.router.ip("link set other up");
    bed.router.ip("link del other");
    bed.router.ip("addr add 10.9.9.9/32 dev r0");
    bed.router.ip("route add 10.8.0.0/16 via 10.0.0.2");
    bed.router.ip("link set r0 promisc on");
    assert!(bed.router.run("tc qdisc replace dev lo root tbf rate 10mbit burst 10k latency 50ms"));
    assert_eq!(watched.mark(), []);
}

#[test]
fn a_storm_ends_in_the_truth() {
    let Some(bed) = router("istorm") else { return };
    let mut watched = Watched::quiet(&bed);
    let lines = |line: &str, range: std::ops::Range<u32>| -> String {
        range.map(|i| format!("rule {line} priority {}\n", 100 + i)).collect()
    };
    for left in 1..5 {
        bed.router.batch(&lines("add from 10.1.0.0/16 table 100", 0..500));
        bed.router.batch(&lines("del", left..500));
        watched.until("the rules that are left", |w| w.findings.len() == left as usize);
        bed.router.batch(&lines("del", 0..left));
        watched.until("no rules", |w| w.findings.is_empty());
    }
}

/// What changes between the look and the telling is not told as known.
#[test]
fn nothing_is_known_that_a_message_has_overtaken() {
    let Some(bed) = router("irace") else { return };
    let name = bed.router.name().to_owned();
    let add = move || {
        let args = ["-n", &name, "rule", "add", "from", "10.1.0.0/16", "table", "100", "priority", "7"];
        assert!(std::process::Command::new("ip").args(args).status().unwrap().success());
    };
    let probe = TestProbe { meanwhile: Mutex::new(Some(Box::new(add))), ..TestProbe::default() };
    let mut watched = Watched::open_with(&bed, 4 << 20, probe);
    assert_eq!(watched.until("the first that is known", |_| true), [Doubt::Start]);
    assert!(watched.found("policy-rule"), "{:?}", watched.findings);
}

#[test]
fn lost_messages_are_a_doubt() {
    let Some(bed) = router("ilost") else { return };
    if !has_nft() {
        return;
    }
    bed.router.nft("add table inet t; add set inet t s { type ipv4_addr; }");
    let mut watched = Watched::open(&bed, 8 << 10);
    watched.until("all is known", |_| true);
    assert_eq!(watched.findings, []);
    let programs = vec![Program { attachment: Attachment::Netfilter, id: 1 }];
    watched.hold_up(
        |watched| *watched.probe.programs.lock().unwrap() = programs,
        |_| {
            // None of these is a reason to look, but they are more than there is room for.
            for round in 0..20u32 {
                let elements: Vec<String> =
                    (0..1000u32).map(|i| format!("10.{round}.{}.{}", i >> 8, i & 255)).collect();
                bed.router.nft(&format!("add element inet t s {{ {} }}", elements.join(", ")));
            }
        },
    );
    assert_eq!(watched.until("what was begun", |w| w.found("netfilter-program")), []);
    assert_eq!(watched.next("the loss"), Inspection::Doubt(Doubt::Lost));
    assert_eq!(watched.until("all again", |w| w.found("netfilter-program")), []);
}

#[test]
fn what_cannot_be_asked_is_a_doubt_until_it_can() {
    let Some(bed) = router("ifail") else { return };
    let mut watched = Watched::quiet(&bed);
    *watched.probe.broken.lock().unwrap() = true;
    let failed = Inspection::Doubt(Doubt::Failed("broken".into()));
    assert_eq!(watched.next("failure"), failed);
    *watched.probe.broken.lock().unwrap() = false;
    assert_eq!(watched.until("recovery", |w| w.findings.is_empty()), []);
}

#[test]
fn the_pulse_stands_still_when_the_thread_does() {
    let Some(bed) = router("ipulse") else { return };
    let mut watched = Watched::quiet(&bed);
    let beat = |watched: &Watched| watched.pulse.load(Ordering::Relaxed);
    for _ in 0..3 {
        let before = beat(&watched);
        wait_while(|| beat(&watched) == before);
    }
    watched.hold_up(
        |_| bed.router.ip("link set r0 down"),
        |watched| {
            let stood = beat(watched);
            std::thread::sleep(Duration::from_millis(700));
            assert_eq!(beat(watched), stood);
        },
    );
    let stood = beat(&watched);
    watched.until("down", |w| w.found("port-down"));
    wait_while(|| beat(&watched) == stood);
}
