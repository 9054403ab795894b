//! What appears while the router runs and would be passed by: the kernel forwards from then on, until it is gone again.
//! Both are logged, with the time and a stable code.

use crate::flow::{Flow, PER_MS};
use crate::log::Log;
use crate::net::{Net, Router, wait_for};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Packets in ten times the 10 ms within which a message of the kernel's counts.
const TOLD: u64 = 10 * 10 * PER_MS as u64;
/// Packets in ten times the second within which counts what sends no message.
const SILENT: u64 = 10 * 1_000 * PER_MS as u64;

/// What is said when the right to forward goes.
const KERNEL: &str = "the kernel forwards everything";

/// The router between the hosts, and a flow that its graph carries.
struct Scene {
    net: Net,
    up: Router,
    log: Log,
    flow: Flow,
}

impl Scene {
    fn new() -> Option<Scene> {
        let net = Net::new()?;
        let (up, log) = Log::up(&net, "r", "ra rb --attach xdp");
        net.meet(&up, false);
        let flow = Flow::start(&net);
        Some(Scene { net, up, log, flow })
    }

    /// Runs a command in the router's namespace.
    fn router(&self, command: &str) {
        let (program, args) = command.split_once(' ').expect("a program and arguments");
        self.net.inside("r", program, args);
    }

    fn forwarded(&self) -> u64 {
        self.up.number("forward.count")
    }

    /// Makes a change that forbids the graph to forward, and takes it back. At most `leak` packets are forwarded after it
    /// was made.
    fn forbids(&self, code: &str, leak: u64, change: &[&str], back: &[&str]) {
        let (told, again) = (self.log.count(code, KERNEL), self.log.count("forwarding", "forwarding again"));
        change.iter().for_each(|command| self.router(command));
        let before = self.forwarded();
        self.log.wait(told, code, KERNEL);
        let mut last = before;
        wait_for("the graph to forward nothing", || {
            self.flow.run(50);
            let now = self.forwarded();
            std::mem::replace(&mut last, now) == now
        });
        assert!(last - before <= leak, "{code}: {} were forwarded all the same", last - before);
        let (_, text) = self.net.ping("-c 1 10.77.2.2");
        assert!(text.contains("ttl=63") || code == "xfrm-policy", "the kernel forwards: {text}");
        back.iter().for_each(|command| self.router(command));
        self.log.wait(again, "forwarding", "forwarding again");
        assert!(self.log.count(code, "no longer so") > 0, "{}", self.log.text());
        wait_for("the graph to forward again", || self.forwarded() > last);
    }
}

#[test]
fn an_nftables_rule_counts_at_once() {
    let Some(scene) = Scene::new() else { return };
    let table = "nft add table ip t";
    let chain = "nft add chain ip t f { type filter hook forward priority 0 ; }";
    let drop = "nft add rule ip t f udp dport 4000 counter drop";
    scene.forbids("nft-forward", TOLD, &[table, chain, drop], &["nft delete table ip t"]);
    // A second time is as the first; and the rule is obeyed meanwhile, as if there were no router.
    scene.forbids(
        "nft-forward",
        TOLD,
        &[table, chain, drop],
        &["nft flush chain ip t f", "nft delete table ip t"],
    );
    let account = scene.flow.end();
    assert!(account.lost > 0 && account.duplicates == 0, "{account:?}");
}

#[test]
fn an_ipsec_policy_counts_at_once() {
    let Some(scene) = Scene::new() else { return };
    let policy = "src 10.77.1.0/24 dst 10.77.2.0/24 dir fwd";
    let (add, delete) =
        (format!("ip xfrm policy add {policy} action block"), format!("ip xfrm policy delete {policy}"));
    scene.forbids("xfrm-policy", TOLD, &[&add], &[&delete]);
}

#[test]
fn a_queueing_discipline_counts_at_once() {
    let Some(scene) = Scene::new() else { return };
    let tbf = "tc qdisc add dev rb root tbf rate 100mbit burst 100kb latency 50ms";
    scene.forbids("qdisc", TOLD, &[tbf], &["tc qdisc del dev rb root"]);
}

/// Packets that a rule is about are the kernel's, and all others are not.
#[test]
fn a_policy_rule_counts_soon() {
    let Some(scene) = Scene::new() else { return };
    for (about, not_about) in [("from 10.77.1.0/24", "from 192.0.2.0/24"), ("iif ra", "iif rb")] {
        let (told, before) = (scene.log.count("policy-rule", "the kernel forwards"), scene.forwarded());
        scene.router(&format!("ip rule add {about} lookup 100 priority 100"));
        let mut last = before;
        wait_for("the graph to forward nothing", || {
            scene.flow.run(50);
            let now = scene.forwarded();
            std::mem::replace(&mut last, now) == now
        });
        scene.log.wait(told, "policy-rule", "the kernel forwards");
        assert!(last - before <= SILENT, "{about}: {} were forwarded all the same", last - before);
        let (_, text) = scene.net.ping("-c 1 10.77.2.2");
        assert!(text.contains("ttl=63"), "the kernel forwards: {text}");
        scene.router("ip rule del priority 100");
        scene.router(&format!("ip rule add {not_about} lookup 100 priority 100"));
        wait_for("the graph to forward again", || scene.forwarded() > last);
        scene.router("ip rule del priority 100");
    }
    let account = scene.flow.end();
    assert!(account.duplicates == 0, "{account:?}");
}

/// Rules by the source and by the destination that come to the same for the flow, each made before the other goes: at no time is
/// there a rule by which it is forwarded.
#[test]
fn rules_that_are_exchanged_let_nothing_through_that_both_keep_back() {
    let Some(scene) = Scene::new() else { return };
    scene.router("ip route add blackhole 10.77.2.0/24 table 100");
    let rules = [("from 10.77.1.0/24", 100), ("to 10.77.2.0/24", 101)];
    let rule = |verb: &str, (selector, priority): (&str, u32)| {
        scene.router(&format!("ip rule {verb} {selector} lookup 100 priority {priority}"));
    };
    rule("add", rules[0]);
    let settle = || std::thread::sleep(Duration::from_secs(6));
    settle();
    let before = scene.flow.received();
    for (old, new) in [(rules[0], rules[1]), (rules[1], rules[0])] {
        rule("add", new);
        rule("del", old);
        settle();
        assert!(scene.up.read("forward.lookup 10.77.1.2").starts_with("ra "), "the others are forwarded");
        assert_eq!(scene.flow.received(), before, "from {old:?} to {new:?}");
    }
    rule("del", rules[0]);
    wait_for("the flow to be forwarded", || scene.flow.received() > before);
}

#[test]
fn a_rule_of_the_old_packet_filter_counts_soon() {
    let Some(scene) = Scene::new() else { return };
    let there = Command::new("iptables-legacy").arg("-V").stdout(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        eprintln!("skipped: needs iptables-legacy (apt install iptables)");
        return;
    }
    let rule = "FORWARD -p udp --dport 4000 -j DROP";
    let (add, delete) = (format!("iptables-legacy -A {rule}"), format!("iptables-legacy -D {rule}"));
    scene.forbids("iptables-legacy", SILENT, &[&add], &[&delete]);
}

#[test]
fn a_place_for_filters_before_a_port_counts_at_once() {
    let Some(scene) = Scene::new() else { return };
    scene.forbids("tc-filter", TOLD, &["tc qdisc add dev ra clsact"], &["tc qdisc del dev ra clsact"]);
}
