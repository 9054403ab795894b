//! What the router would pass by, made in a namespace and found there.

mod common;

use causeway_kernel::{Check, Finding, Severity, inspect};
use common::Testbed;

fn inside(bed: &Testbed, ports: &[&str]) -> Vec<Finding> {
    bed.router.enter(|| inspect(ports).unwrap())
}

/// The findings of one kind, as place and command.
fn of(findings: &[Finding], check: Check, severity: Severity) -> Vec<(String, String)> {
    let wanted = findings.iter().filter(|f| f.check == check && f.severity == severity);
    wanted.map(|f| (f.place.clone(), f.mend.clone())).collect()
}

/// Runs the commands that mend the findings of a kind; then they must be gone.
fn mend(bed: &Testbed, check: Check) {
    for finding in inside(bed, &["r0", "r1"]).iter().filter(|finding| finding.check == check) {
        let done = std::process::Command::new("ip")
            .args(["netns", "exec", bed.router.name(), "sh", "-c", &finding.mend])
            .status()
            .unwrap();
        assert!(done.success(), "{finding}");
    }
    let left: Vec<_> =
        inside(bed, &["r0", "r1"]).into_iter().filter(|finding| finding.check == check).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_plain_router_has_only_its_settings_to_mend() {
    let Some(bed) = Testbed::new("plain") else { return };
    bed.router
        .run("sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0 net.ipv4.conf.r0.rp_filter=1");
    let findings = inside(&bed, &["r0", "r1", "nosuch"]);
    assert_eq!(of(&findings, Check::Port, Severity::Refuse)[0].0, "nosuch");
    assert_eq!(of(&findings, Check::Forwarding, Severity::Warn).len(), 4, "{findings:?}");
    assert!(of(&findings, Check::ReversePath, Severity::Warn).iter().any(|(place, _)| place == "r0"));
    mend(&bed, Check::Forwarding);
    mend(&bed, Check::ReversePath);
    assert_eq!(inside(&bed, &["r0", "r1"]), []);
}

#[test]
fn rules_are_found_and_everything_is_left_to_the_kernel() {
    let Some(bed) = Testbed::new("rule") else { return };
    bed.router.ip("route add 10.9.0.0/16 via 10.0.0.2");
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.until("forwards", |f| f.to("10.9.0.1").starts_with("r0 via"));
    bed.router.ip("rule add from 10.1.0.0/16 table 100 priority 77");
    follower.until("punts", |f| f.to("10.9.0.1") == "punt policy-rules");
    assert_eq!(follower.to("10.0.0.1"), "punt local");
    let findings = bed.router.lend(&mut follower.watcher, |watcher| watcher.findings().unwrap());
    assert_eq!(
        of(&findings, Check::Rules, Severity::Refuse),
        [("ip rule".into(), "ip rule del priority 77".into())]
    );
    mend(&bed, Check::Rules);
    follower.until("forwards", |f| f.to("10.9.0.1").starts_with("r0 via"));
    // A rule of the other family leaves this one alone; one of the kernel's own that is missing does not.
    bed.router.ip("-6 rule add fwmark 1 table main priority 5");
    bed.router.ip("rule del priority 32766");
    follower.until("punts", |f| f.to("10.9.0.1") == "punt policy-rules");
    mend(&bed, Check::Rules);
    follower.until("forwards", |f| f.to("10.9.0.1").starts_with("r0 via"));
}

#[test]
fn the_packet_filter_is_found() {
    let Some(bed) = Testbed::new("nft") else { return };
    if !bed.router.run("nft list ruleset") {
        eprintln!("skipped: needs nft (nftables)");
        return;
    }
    let mut follower = bed.follow(&["r0", "r1"]);
    follower.settle();
    // Chains that forwarded packets do not go through, or that do nothing to them.
    bed.router.nft(
        "add table inet quiet; add chain inet quiet in { type filter hook input priority 0; policy drop; }",
    );
    bed.router.nft("add chain inet quiet idle { type filter hook forward priority 0; policy accept; }");
    assert_eq!(of(&inside(&bed, &["r0", "r1"]), Check::Netfilter, Severity::Refuse), []);
    bed.router.nft(
        "add table ip loud; add chain ip loud pass { type filter hook forward priority 0; policy drop; }",
    );
    bed.router.nft("add rule ip loud pass ip saddr 10.0.0.0/8 accept");
    bed.router.nft("add table ip6 loud; add chain ip6 loud pre { type filter hook prerouting priority 0; }");
    bed.router.nft("add rule ip6 loud pre counter");
    bed.router.nft(
        "add table netdev dev; add chain netdev dev in { type filter hook ingress device r1 priority 0; }",
    );
    bed.router.nft("add rule netdev dev in counter");
    let changed =
        (0..25).any(|_| follower.watcher.wait(std::time::Duration::from_millis(200)).unwrap().findings);
    assert!(changed, "a change of the rules calls for another look");
    let found = of(&inside(&bed, &["r0", "r1"]), Check::Netfilter, Severity::Refuse);
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places.len(), 3, "{places:?}");
    for place in ["nft ip loud pass", "nft ip6 loud pre", "nft netdev dev in"] {
        assert!(places.contains(&place), "{places:?}");
    }
    // A device that is not held does not matter.
    assert_eq!(of(&inside(&bed, &["r0"]), Check::Netfilter, Severity::Refuse).len(), 2);
    mend(&bed, Check::Netfilter);
}

#[test]
fn traffic_control_masters_and_ipsec_are_found() {
    let Some(bed) = Testbed::new("tc") else { return };
    assert!(bed.router.run("tc qdisc replace dev r0 root tbf rate 10mbit burst 10k latency 50ms"));
    assert!(bed.router.run("tc qdisc add dev r1 clsact"));
    bed.router.ip("link add br0 type bridge");
    bed.router.ip("link set r1 master br0");
    let findings = inside(&bed, &["r0", "r1"]);
    assert_eq!(of(&findings, Check::Qdisc, Severity::Refuse).len(), 2, "{findings:?}");
    assert_eq!(
        of(&findings, Check::Port, Severity::Refuse),
        [("r1".into(), "ip link set dev r1 nomaster".into())]
    );
    mend(&bed, Check::Qdisc);
    mend(&bed, Check::Port);
    bed.router.ip("xfrm policy add dir fwd src 10.0.0.0/8 dst 11.0.0.0/8 action block");
    assert_eq!(of(&inside(&bed, &["r0"]), Check::Xfrm, Severity::Refuse).len(), 1);
    mend(&bed, Check::Xfrm);
}
