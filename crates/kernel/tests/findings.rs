//! What the router would pass by, made in a namespace and found there.

mod common;
mod inspection;

use causeway_kernel::{Finding, Severity, inspect};
use common::Testbed;
use inspection::{TestProbe, has_nft};

fn inside(bed: &Testbed, ports: &[&str]) -> Vec<Finding> {
    bed.router.enter(|| inspect(ports, &TestProbe::default()).unwrap())
}

/// A router that has nothing to find.
fn router(tag: &str) -> Option<Testbed> {
    let bed = inspection::router(tag)?;
    assert_eq!(inside(&bed, &["r0", "r1"]), []);
    Some(bed)
}

/// Code and place of what refuses.
fn refused(findings: &[Finding]) -> Vec<(&'static str, &str)> {
    let refused = findings.iter().filter(|f| f.severity == Severity::Refuse);
    refused.map(|f| (f.code(), f.place.as_str())).collect()
}

/// Runs the commands that mend all findings; then they must be gone.
fn mend(bed: &Testbed) {
    for finding in inside(bed, &["r0", "r1"]) {
        let done = std::process::Command::new("ip")
            .args(["netns", "exec", bed.router.name(), "sh", "-c", &finding.mend])
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(done.success(), "{finding}");
    }
    assert_eq!(inside(bed, &["r0", "r1"]), []);
}

#[test]
fn a_router_that_does_not_forward_is_warned_of() {
    let Some(bed) = router("plain") else { return };
    bed.router.run("sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0");
    let findings = inside(&bed, &["r0", "r1"]);
    let told: Vec<_> = findings.iter().map(|f| (f.severity, f.code(), f.place.as_str())).collect();
    let off = |port| (Severity::Warn, "forwarding-off", port);
    assert_eq!(told, [off("r0"), off("r0"), off("r1"), off("r1")]);
    mend(&bed);
    bed.router.run("sysctl -qw net.ipv4.conf.r0.forwarding=0");
    mend(&bed);
    assert_eq!(refused(&inside(&bed, &["r0", "r1", "nosuch"])), [("port-missing", "nosuch")]);
    bed.router.ip("link set r0 down");
    assert_eq!(inside(&bed, &["r0", "r1"])[0].code(), "port-down");
    mend(&bed);
}

#[test]
fn rules_that_are_not_followed_are_warned_of() {
    let Some(bed) = router("rule") else { return };
    let followed = [
        "to 10.1.0.0/16 table 100",
        "from all table 100",
        "table main suppress_prefixlength 0",
        "iif lo from 10.1.0.0/16 table 100",
        "oif r0 table 100",
        "iif h9 nop",
    ];
    let warned = [
        ("from 10.1.0.0/16 table 100", "packets from 10.1.0.0/16"),
        ("iif r1 table 100", "what comes in by r1"),
        ("iif r1 from 10.1.0.0/16 table 100", "packets from 10.1.0.0/16"),
        ("iif nosuch table 100", "packets for which the table 100 has a route"),
        ("fwmark 1 table 100", "packets for which the table 100 has a route"),
        ("not from 10.1.0.0/16 table 100", "packets for which the table 100 has a route"),
        (
            "to 10.2.0.0/16 ipproto udp table 100",
            "packets to 10.2.0.0/16 for which the table 100 has a route",
        ),
        ("to 10.1.0.0/16 blackhole", "packets to 10.1.0.0/16 for which no rule before it has a route"),
        ("table main suppress_ifgroup 7", "packets for which the table 254 has a route"),
    ];
    for rule in followed {
        bed.router.ip(&format!("rule add {rule} priority 77"));
        assert_eq!(inside(&bed, &["r0", "r1"]), [], "{rule}");
        bed.router.ip("rule del priority 77");
    }
    for (rule, which) in warned {
        bed.router.ip(&format!("rule add {rule} priority 77"));
        let [finding] = &inside(&bed, &["r0", "r1"])[..] else { panic!("one finding: {rule}") };
        assert_eq!((finding.code(), finding.severity), ("policy-rule", Severity::Warn), "{rule}");
        assert!(finding.what.ends_with(&format!("the kernel forwards {which}")), "{rule}: {}", finding.what);
        mend(&bed);
    }
    bed.router.ip("-6 rule add fwmark 1 table main priority 5");
    assert_eq!(inside(&bed, &["r0", "r1"])[0].place, "ip -6 rule");
    mend(&bed);
    // An interface may have names besides its own, and a rule hold to one of them.
    bed.router.ip("link property add dev r0 altname upstream");
    bed.router.ip("rule add iif upstream table 100 priority 77");
    let [finding] = &inside(&bed, &["r0", "r1"])[..] else { panic!("one finding") };
    assert!(finding.what.ends_with("the kernel forwards packets for which the table 100 has a route"));
    mend(&bed);
    bed.router.ip("rule del priority 32767");
    assert_eq!(
        refused(&inside(&bed, &["r0", "r1"])),
        [("policy-rule", "ip rule")],
        "one of the kernel's own"
    );
    mend(&bed);
}

#[test]
fn nftables_is_found_wherever_forwarded_packets_pass() {
    let Some(bed) = router("nft") else { return };
    if !has_nft() {
        return;
    }
    // Chains that forwarded packets do not go through, or that do nothing to them.
    bed.router.nft(
        "add table inet quiet; add chain inet quiet in { type filter hook input priority 0; policy drop; }; \
         add rule inet quiet in counter; \
         add chain inet quiet idle { type filter hook forward priority 0; policy accept; }; \
         add chain inet quiet jumped; add rule inet quiet jumped counter; \
         add chain inet quiet nat { type nat hook postrouting priority 0; }; \
         add table arp quiet; add chain arp quiet in { type filter hook input priority 0; policy drop; }",
    );
    bed.hosts.nft("add table ip t; add chain ip t f { type filter hook forward priority 0; policy drop; }");
    assert_eq!(inside(&bed, &["r0", "r1"]), []);
    bed.router.nft(
        "add table inet loud; add chain inet loud f { type filter hook forward priority 0; policy drop; }; \
         add chain inet loud post { type filter hook postrouting priority 0; }; \
         add rule inet loud post counter; \
         add chain inet loud i { type filter hook ingress device r0 priority 0; }; \
         add rule inet loud i counter; \
         add table ip loud; add chain ip loud pass { type filter hook forward priority 0; policy drop; }; \
         add rule ip loud pass ip saddr 10.0.0.0/8 accept; \
         add table ip6 loud; add chain ip6 loud pre { type filter hook prerouting priority 0; }; \
         add rule ip6 loud pre counter; \
         add table netdev dev; \
         add chain netdev dev in { type filter hook ingress devices = { lo, r1 } priority 0; }; \
         add rule netdev dev in counter; \
         add chain netdev dev out { type filter hook egress device r1 priority 0; policy drop; }",
    );
    let found = inside(&bed, &["r0", "r1"]);
    let mut expected = [
        ("nft-ingress", "nft inet loud i"),
        ("nft-ingress", "nft netdev dev in"),
        ("nft-prerouting", "nft ip6 loud pre"),
        ("nft-forward", "nft inet loud f"),
        ("nft-forward", "nft ip loud pass"),
        ("nft-postrouting", "nft inet loud post"),
        ("nft-egress", "nft netdev dev out"),
    ];
    let mut refused_here = refused(&found);
    refused_here.sort_unstable();
    expected.sort_unstable();
    assert_eq!(refused_here, expected);
    // A device that is not held does not matter.
    assert_eq!(refused(&inside(&bed, &["r0"])).len(), 5);
    mend(&bed);
    // A chain whose rules are in another that it jumps to has a rule, the jump.
    bed.router.nft("add rule inet quiet idle jump jumped");
    assert_eq!(refused(&inside(&bed, &["r0", "r1"])), [("nft-forward", "nft inet quiet idle")]);
    mend(&bed);
}

#[test]
fn iptables_legacy_is_found_by_its_rules_and_policies() {
    let Some(bed) = router("ipt") else { return };
    for (command, forward) in
        [("iptables-legacy", "-d 10.9.0.0/16"), ("ip6tables-legacy", "-d 2001:db8:9::/48")]
    {
        // A look at them makes the tables, which do nothing.
        for table in ["filter", "nat", "mangle", "raw", "security"] {
            if !bed.router.run(&format!("{command} -t {table} -Z")) {
                eprintln!("skipped: needs {command} (iptables) and a kernel with its table {table}");
                return;
            }
        }
        // Chains that forwarded packets do not pass.
        assert!(bed.router.run(&format!("{command} -A INPUT -j DROP")));
        assert!(bed.router.run(&format!("{command} -P INPUT DROP")));
        assert!(bed.router.run(&format!("{command} -t mangle -A OUTPUT -j ACCEPT")));
        assert!(bed.router.run(&format!("{command} -N unused")));
        assert!(bed.router.run(&format!("{command} -A unused -j DROP")));
        assert_eq!(inside(&bed, &["r0", "r1"]), []);
        for rule in [
            format!("-t raw -A PREROUTING {forward} -j ACCEPT"),
            format!("-t mangle -A PREROUTING {forward} -j ACCEPT"),
            format!("-t mangle -A FORWARD {forward} -j ACCEPT"),
            format!("-t mangle -A POSTROUTING {forward} -j ACCEPT"),
            format!("-t nat -A PREROUTING {forward} -j ACCEPT"),
            format!("-t nat -A POSTROUTING {forward} -j ACCEPT"),
            format!("-t filter -A FORWARD {forward} -j ACCEPT"),
            format!("-t security -A FORWARD {forward} -j ACCEPT"),
            "-t filter -P FORWARD DROP".to_owned(),
        ] {
            let words: Vec<&str> = rule.split_whitespace().collect();
            assert!(bed.router.run(&format!("{command} {rule}")), "{command} {rule}");
            let place = format!("{command} -t {} {}", words[1], words[3]);
            assert_eq!(refused(&inside(&bed, &["r0", "r1"])), [(command, place.as_str())], "{rule}");
            mend(&bed);
        }
        assert!(bed.router.run(&format!("{command} -A FORWARD {forward} -j unused")));
        assert!(bed.router.run(&format!("{command} -A FORWARD -j ACCEPT")));
        assert!(bed.router.run(&format!("{command} -P FORWARD DROP")));
        let found = inside(&bed, &["r0", "r1"]);
        assert_eq!(
            found[0].what,
            "forwarded packets would pass by this chain, its rules (2) and its policy, drop"
        );
        mend(&bed);
    }
}

/// Without a way to ask what is in it, a table of the old packet filter refuses.
#[test]
fn what_cannot_be_asked_refuses() {
    let Some(bed) = router("ask") else { return };
    if !bed.router.run("iptables-legacy -Z") {
        eprintln!("skipped: needs iptables-legacy (iptables)");
        return;
    }
    let findings = bed.router.enter(|| inspect(&["r0", "r1"], &()).unwrap());
    assert_eq!(refused(&findings), [("iptables-legacy", "iptables-legacy -t filter")]);
}

#[test]
fn traffic_control_and_masters_are_found() {
    let Some(bed) = router("tc") else { return };
    assert!(bed.router.run("tc qdisc replace dev r0 root tbf rate 10mbit burst 10k latency 50ms"));
    assert!(bed.router.run("tc qdisc add dev r1 clsact"));
    bed.router.ip("link add br0 type bridge");
    bed.router.ip("link set r1 master br0");
    let found = inside(&bed, &["r0", "r1"]);
    assert_eq!(refused(&found), [("port-enslaved", "r1"), ("qdisc", "r0"), ("tc-filter", "r1")]);
    mend(&bed);
    assert!(bed.router.run("tc qdisc add dev r1 ingress"));
    assert_eq!(refused(&inside(&bed, &["r0", "r1"])), [("tc-filter", "r1")]);
    mend(&bed);
    // One that only orders is no reason not to start.
    assert!(bed.router.run("tc qdisc replace dev r0 root pfifo"));
    let found = inside(&bed, &["r0", "r1"]);
    assert_eq!((found[0].code(), found[0].severity), ("qdisc", Severity::Warn));
    mend(&bed);
}

#[test]
fn what_takes_the_frames_of_a_port_is_found() {
    let Some(bed) = router("shared") else { return };
    for kind in ["macvlan", "macvtap"] {
        for mode in ["passthru", "source"] {
            bed.router.ip(&format!("link add m0 link r1 type {kind} mode {mode}"));
            let found = inside(&bed, &["r0", "r1"]);
            assert_eq!(refused(&found), [("port-shared", "r1")], "{kind} {mode}");
            mend(&bed);
        }
        // It takes the frames to its own address alone, which are no port's.
        bed.router.ip(&format!("link add m0 link r1 type {kind} mode bridge"));
        assert_eq!(inside(&bed, &["r0", "r1"]), [], "{kind}");
        bed.router.ip("link del m0");
    }
}

#[test]
fn ipsec_policies_of_both_families_and_defaults_are_found() {
    let Some(bed) = router("xfrm") else { return };
    for policy in ["10.0.0.0/8 dst 11.0.0.0/8", "2001:db8:a::/48 dst 2001:db8:b::/48"] {
        for direction in ["in", "fwd", "out"] {
            bed.router.ip(&format!("xfrm policy add dir {direction} src {policy} action block"));
            let found = inside(&bed, &["r0"]);
            assert_eq!(refused(&found), [("xfrm-policy", "ip xfrm policy")], "{direction}");
            mend(&bed);
        }
    }
    for direction in ["fwd", "out"] {
        bed.router.ip(&format!("xfrm policy setdefault {direction} block"));
        assert_eq!(refused(&inside(&bed, &["r0"])), [("xfrm-default", "ip xfrm policy")], "{direction}");
        mend(&bed);
    }
    bed.router.ip("xfrm policy setdefault in block");
    assert_eq!(inside(&bed, &["r0", "r1"]), [], "not of forwarded packets");
}

#[test]
fn settings_that_cannot_be_followed_are_found() {
    let Some(bed) = router("sysctl") else { return };
    let set = |settings: &str| assert!(bed.router.run(&format!("sysctl -qw {settings}")));
    set("net.ipv4.ip_forward_use_pmtu=1");
    let found = inside(&bed, &["r0", "r1"]);
    assert_eq!(refused(&found), [("forward-use-pmtu", "net.ipv4.ip_forward_use_pmtu")]);
    mend(&bed);
    // An interface that forwards takes redirects if both say so ...
    set("net.ipv4.conf.all.accept_redirects=0 net.ipv4.conf.r0.accept_redirects=1");
    assert_eq!(inside(&bed, &["r0", "r1"]), []);
    set("net.ipv4.conf.all.accept_redirects=1 net.ipv4.conf.r1.accept_redirects=0");
    assert_eq!(refused(&inside(&bed, &["r0", "r1"])), [("accept-redirects", "r0")]);
    mend(&bed);
    // ... and one that does not, if one says so: what comes in elsewhere still leaves there.
    set("net.ipv4.conf.all.accept_redirects=0 net.ipv4.conf.r0.accept_redirects=1");
    set("net.ipv4.conf.r0.forwarding=0");
    assert_eq!(refused(&inside(&bed, &["r0", "r1"])), [("accept-redirects", "r0")]);
    mend(&bed);
    // For IPv6 it is the interface's own forwarding that forbids them.
    set("net.ipv6.conf.r1.accept_redirects=1");
    assert_eq!(inside(&bed, &["r0", "r1"]), []);
    set("net.ipv6.conf.r1.forwarding=0");
    assert_eq!(refused(&inside(&bed, &["r0", "r1"])), [("accept-redirects", "r1")]);
    mend(&bed);
}
