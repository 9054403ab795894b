//! `causeway doctor`: what it finds, the codes that it says it by, and its exit status.

use crate::net::{CAUSEWAY, Net};
use crate::privileges::unprivileged;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// What `causeway doctor ARGS` printed, and its exit status.
fn doctor(net: &Net, args: &str) -> (Option<i32>, String) {
    let output = net.causeway(&format!("doctor {args}")).output().expect("causeway");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args}");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The same of `--json`, with the codes of the checks in that state.
fn codes(net: &Net, args: &str, state: &str) -> (Option<i32>, Value, BTreeSet<String>) {
    let (status, text) = doctor(net, &format!("{args} --json"));
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let checks = report["checks"].as_array().expect("a list").iter();
    let found = checks.filter(|check| check["state"] == state);
    let found = found.map(|check| check["code"].as_str().expect("a code").to_owned()).collect();
    (status, report, found)
}

fn set<const N: usize>(codes: [&str; N]) -> BTreeSet<String> {
    codes.map(str::to_owned).into()
}

#[test]
fn a_machine_that_lacks_nothing_is_told_where_up_would_attach() {
    let Some(net) = Net::new() else { return };
    // Their drivers name a bus, as those of hardware do.
    net.ip("r", "tuntap add dev tap0 mode tap");
    net.ip("r", "link add br0 type bridge");
    let (status, report, _) = codes(&net, "", "good");
    assert_eq!(status, Some(0), "{report}");
    let all = serde_json::json!({ "ra": "tcx", "rb": "tcx", "tap0": "tcx", "br0": "tcx" });
    assert_eq!(report["attach"], all, "virtual interfaces");
    let (status, text) = doctor(&net, "ra rb");
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("[port] ra: at tcx (veth, ") && text.contains("[port] rb: "), "{text}");
    assert!(!text.contains(" lo: "), "{text}");
    assert_eq!(text.lines().last(), Some("`causeway up` has what it needs"));

    assert!(text.contains("[port] all packets are left to the kernel"), "{text}");

    let (status, report, mut good) = codes(&net, "ra --attach xdp", "good");
    // What another test's router, killed meanwhile, has left is this machine's as well.
    good.remove("leftovers");
    assert!(!report.to_string().contains("all packets are left"), "{report}");
    assert_eq!((status, &report["verdict"], &report["exit_status"]), (Some(0), &"fine".into(), &0.into()));
    assert_eq!(report["attach"], serde_json::json!({ "ra": "xdp" }));
    assert_eq!(good, set(["kernel", "privileges", "bpf", "af-xdp", "tun", "port", "offload"]));
}

#[test]
fn jumbo_frames_are_the_kernels_and_nobody_is_told_to_change_an_mtu() {
    let Some(net) = Net::new() else { return };
    for (space, device) in [("a", "a0"), ("r", "ra")] {
        net.ip(space, &format!("link set {device} mtu 9000"));
    }
    let (status, text) = doctor(&net, "ra --attach xdp");
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("frames of more than 1792 bytes are left to the kernel"), "{text}");
    assert!(!text.contains("ip link set"), "{text}");
    let (status, text) = doctor(&net, "lo");
    assert!(status == Some(1) && text.contains("[port-kind] lo: ") && !text.contains("mtu"), "{text}");
}

#[test]
fn what_is_missing_is_named() {
    let Some(net) = Net::new() else { return };
    let (status, report, missing) = codes(&net, "ra nosuch0 lo", "missing");
    assert_eq!((status, &report["verdict"]), (Some(1), &"missing".into()));
    assert_eq!(missing, set(["port-missing", "port-kind"]));
    let (_, text) = doctor(&net, "ra nosuch0");
    assert!(text.contains("[port-missing] nosuch0: no such interface\n         to mend it: "), "{text}");
    assert_eq!(text.lines().last(), Some("`causeway up` lacks: port-missing"));

    let up = net.up();
    for args in ["ra", "ra --attach xdp"] {
        let (status, _, missing) = codes(&net, args, "missing");
        assert_eq!((status, missing), (Some(1), set(["port-taken"])), "{args}");
    }
    let (_, text) = doctor(&net, "ra");
    let whose = "[port-taken] ra: a router of Causeway is attached already: '";
    assert!(text.contains(whose) && text.contains(&format!("(process {})", up.child.id())), "{text}");
    let (status, report, warnings) = codes(&net, "", "warning");
    assert_eq!((status, warnings), (Some(0), set([])), "nobody named them: {report}");
    assert!(report["attach"].get("punt0").is_none(), "the router's own: {report}");
}

#[test]
fn what_refuses_is_told_from_what_is_missing_and_from_warnings() {
    let Some(net) = Net::new() else { return };
    net.ip("r", "link set rb down");
    let (status, _, warnings) = codes(&net, "ra rb --attach xdp", "warning");
    assert_eq!((status, warnings), (Some(0), set(["port-down"])));
    let (_, text) = doctor(&net, "ra rb --attach xdp");
    assert_eq!(text.lines().last(), Some("`causeway up` has what it needs; warnings: port-down"));

    net.inside("r", "tc", "qdisc add dev rb root tbf rate 100mbit burst 100kb latency 50ms");
    net.ip("r", "rule add from 10.0.0.0/8 lookup 100 priority 100");
    let (status, report, refuses) = codes(&net, "ra rb --attach xdp", "refuses");
    assert_eq!((status, &report["verdict"]), (Some(3), &"refused".into()));
    assert_eq!(refuses, set(["qdisc"]));
    let (_, text) = doctor(&net, "ra rb --attach xdp");
    assert!(text.contains("\n         to mend it: tc qdisc del dev rb root\n"), "{text}");
    let last = "`causeway up` is refused by: qdisc; warnings: port-down, policy-rule";
    assert_eq!(text.lines().last(), Some(last));
    let up = net.causeway("up ra rb --attach xdp --dry-run").output().expect("causeway");
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(up.status.code() == Some(3) && said.contains("[qdisc]"), "as up itself: {said}");

    let (status, ..) = codes(&net, "ra nosuch0 --attach xdp", "refuses");
    assert_eq!(status, Some(1), "what is missing comes first");
}

#[test]
fn missing_capabilities_are_named_and_nothing_else_is_blamed() {
    let Some(net) = Net::new() else { return };
    let Some(output) = unprivileged(&net, &["doctor", "ra"]) else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let all = "without CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON, CAP_IPC_LOCK;";
    assert!(text.contains("missing  [privileges] ") && text.contains(all), "{text}");
    assert_eq!(text.lines().last(), Some("`causeway up` lacks: privileges"));
}

#[test]
fn who_is_not_root_needs_a_sixth_capability_to_look_at_everything() {
    let Some(net) = Net::new() else { return };
    let folder = std::env::temp_dir().join(net.name("capable"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let binary = folder.join("causeway");
    std::fs::copy(CAUSEWAY, &binary).expect("a copy where everybody may go");
    let doctor = |capabilities: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &net.name("r"), "setpriv", "--reuid=61900", "--regid=61900"]);
        command.args(["--clear-groups", "--inh-caps", capabilities, "--ambient-caps", capabilities]);
        let output = command.arg(&binary).args(["doctor", "ra", "--attach", "xdp"]).output().expect("ip");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let five = "+net_admin,+net_raw,+bpf,+perfmon,+ipc_lock";
    let text = doctor(five);
    assert!(text.contains("good     [privileges]"), "{text}");
    // In kernels that have the old packet filter, the names of its tables are root's to read.
    for line in text.lines().skip_while(|l| !l.starts_with("refuses")) {
        let told = line.contains("tables-legacy]") || line.contains("CAP_DAC_READ_SEARCH");
        assert!(told || line.starts_with('`'), "{text}");
    }
    let text = doctor(&format!("{five},+dac_read_search"));
    std::fs::remove_dir_all(&folder).expect("removed");
    assert!(text.contains("good     [privileges]") && !text.contains("refuses"), "{text}");
}

#[test]
fn what_a_router_that_was_killed_left_behind_is_undone_and_said() {
    let Some(net) = Net::new() else { return };
    let offload = || net.inside("r", "ethtool", "-k ra").contains("rx-vlan-offload: on");
    assert!(offload());
    net.up().end(Signal::KILL);
    assert!(!offload(), "it was turned off");
    let (status, report, good) = codes(&net, "ra", "good");
    assert!(status == Some(0) && good.contains("leftovers"), "{report}");
    assert!(report.to_string().contains("rxvlan of ra on again"), "{report}");
    assert!(offload());
    let (_, report, good) = codes(&net, "ra", "good");
    assert!(!good.contains("leftovers"), "once: {report}");
}
