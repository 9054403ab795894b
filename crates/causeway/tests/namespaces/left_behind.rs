//! What a router needs, what it gives up, and what is left of it when it has ended: nothing, or what the next start undoes.

use crate::flow::Flow;
use crate::log::Log;
use crate::net::{CAUSEWAY, Net, Router, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_PERFMON and CAP_BPF by their numbers (capability.h).
const FIVE: u64 = 1 << 12 | 1 << 13 | 1 << 14 | 1 << 38 | 1 << 39;

/// The values after `name` in the status of each of a router's threads.
fn of_threads(up: &Router, name: &str) -> Vec<Vec<String>> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", up.child.id())).expect("a process");
    // One may end meanwhile.
    let status =
        tasks.filter_map(|task| std::fs::read_to_string(task.expect("a task").path().join("status")).ok());
    let values = status.map(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.expect("a line").split_whitespace().map(str::to_owned).collect()
    });
    values.collect()
}

fn assert_has_five_and_no_root(up: &Router) {
    let sets = |name: &str| {
        let threads = of_threads(up, name).into_iter();
        threads.map(|values| u64::from_str_radix(&values[0], 16).expect("a set")).collect::<Vec<_>>()
    };
    for name in ["CapPrm", "CapEff"] {
        // The thread that writes the log was there before, and has none.
        let sets = sets(name);
        assert!(sets.iter().all(|set| [0, FIVE].contains(set)), "{name}: {sets:x?}");
        assert!(sets.iter().filter(|set| **set == 0).count() <= 1, "{name}: {sets:x?}");
    }
    for name in ["CapInh", "CapAmb"] {
        assert!(sets(name).iter().all(|set| *set == 0), "{name}");
    }
    for ids in of_threads(up, "Uid").into_iter().chain(of_threads(up, "Gid")) {
        assert!(ids.len() == 4 && ids.iter().all(|id| id != "0"), "{ids:?}");
    }
    assert!(of_threads(up, "Groups").iter().all(Vec::is_empty));
}

#[test]
fn root_is_given_up() {
    let Some(net) = Net::new() else { return };
    let up = net.up();
    net.meet(&up, false);
    assert_has_five_and_no_root(&up);
    // What comes later needs no root either.
    net.ip("r", "link del ra");
    net.link("a", 1);
    net.meet(&up, false);
    net.meet(&up, true);
    assert_has_five_and_no_root(&up);
}

const FIVE_NAMES: &str = "+net_admin,+net_raw,+ipc_lock,+perfmon,+bpf";

#[test]
fn five_capabilities_suffice() {
    let Some(net) = Net::new() else { return };
    let by = format!("setpriv --bounding-set=-all,{FIVE_NAMES}");
    let mut up = net.start_by("r", &by, "up ra rb --attach xdp", Stdio::inherit());
    net.meet(&up, false);
    net.meet(&up, true);
    assert!(of_threads(&up, "CapEff").iter().all(|sets| u64::from_str_radix(&sets[0], 16) == Ok(FIVE)));
    assert_eq!(up.end(Signal::TERM), Some(0));
}

/// What makes a command that of a user who is not root and has five capabilities; none, with a message, where that does not
/// suffice.
fn by_anybody(net: &Net) -> Option<String> {
    let user = "--reuid 65533 --regid 65533 --clear-groups";
    let by = format!("setpriv {user} --inh-caps {FIVE_NAMES} --ambient-caps {FIVE_NAMES}");
    let mode = std::fs::metadata("/dev/net/tun").expect("a device").permissions().mode();
    if mode & 0o006 != 0o006 {
        eprintln!("skipped: needs a /dev/net/tun that anybody may open, as udev makes it");
        return None;
    }
    let dry = format!("netns exec {} {by} {CAUSEWAY} up ra rb --attach xdp --dry-run", net.name("r"));
    let dry = Command::new("ip").args(dry.split_whitespace()).output().expect("ip");
    if String::from_utf8_lossy(&dry.stderr).contains("[iptables-legacy]") {
        eprintln!(
            "skipped: needs a kernel that lists the packet filter's hooks (CONFIG_NETFILTER_NETLINK_HOOK)"
        );
        return None;
    }
    Some(by)
}

#[test]
fn anybody_can_upgrade_a_router_at_tcx() {
    let Some(net) = Net::new() else { return };
    let Some(by) = by_anybody(&net) else { return };
    let up = net.start_by("r", &by, "up ra rb --driver", Stdio::inherit());
    net.meet(&up, false);
    let name = net.name("r");
    let upgrade = format!("netns exec {name} {by} {CAUSEWAY} upgrade --name {name}");
    let output = Command::new("ip").args(upgrade.split_whitespace()).output().expect("ip");
    let (said, text) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    let pid = said.split_once(": process ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    net.meet(&up, false);
    kill_process(pid.and_then(Pid::from_raw).expect("a process"), Signal::TERM).expect("kill");
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.unwrap_or(0)));
    wait_for("the end", || !stat().is_ok_and(|stat| !stat.contains(") Z ")));
}

#[test]
fn five_capabilities_suffice_for_anybody() {
    let Some(net) = Net::new() else { return };
    let Some(by) = by_anybody(&net) else { return };
    let mut up = net.start_by("r", &by, "up ra rb --attach xdp", Stdio::inherit());
    net.meet(&up, false);
    assert_has_five_and_no_root(&up);
    assert_eq!(up.end(Signal::TERM), Some(0));
}

#[test]
fn a_hangup_ends_it_unless_it_was_told_to_ignore_it() {
    let Some(net) = Net::new() else { return };
    // The tests themselves may have been started so that they outlive a terminal.
    let mut up = net.start_by("r", "env --default-signal=HUP", "up ra rb --attach xdp", Stdio::inherit());
    assert_eq!(up.end(Signal::HUP), Some(0));
    drop(up);
    let mut up = net.start_by("r", "nohup", "up ra rb --attach xdp", Stdio::null());
    up.signal(Signal::HUP);
    net.meet(&up, false);
    assert!(up.child.try_wait().expect("wait").is_none());
    assert_eq!(up.end(Signal::TERM), Some(0));
}

/// What a router may change, apart from neighbours: offloads, interfaces, and files in the folder of its routers.
fn traces(net: &Net) -> (Vec<String>, String, Vec<String>) {
    let features = ["ra", "rb"].map(|device| net.inside("r", "ethtool", &format!("-k {device}")));
    let links = net.ip("r", "-o link show");
    let name = |line: &str| line.split(": ").nth(1).unwrap_or_default().to_owned();
    let files = ["/run/causeway", "/run/causeway/up"].into_iter().flat_map(|folder| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string())
    });
    let own = files.filter(|path| path.contains(&net.name("r"))).collect();
    (features.to_vec(), links.lines().map(name).collect::<Vec<_>>().join(" "), own)
}

fn neighbours(net: &Net) -> String {
    net.ip("r", "neigh show")
}

#[test]
fn what_a_killed_router_leaves_is_undone_by_the_next() {
    let Some(net) = Net::new() else { return };
    // A gateway, which is kept resolved; an administrator's entry, which is nobody else's.
    net.ip("r", "route add 10.78.0.0/24 via 10.77.2.2");
    let mac = net.mac("a", "a0");
    net.ip("r", &format!("neigh replace 10.77.1.2 lladdr {mac} dev ra nud permanent"));
    let own = |net: &Net| {
        let text = neighbours(net);
        let line = text.lines().find(|line| line.starts_with("10.77.1.2 ")).unwrap_or_default().to_owned();
        assert!(line.contains("PERMANENT") && !line.contains("extern_learn"), "{text}");
    };
    for (space, device) in [("r", "ra"), ("r", "rb")] {
        net.inside(space, "ethtool", &format!("-K {device} rxvlan on"));
    }
    let before = traces(&net);
    let mut up = net.up();
    net.meet(&up, false);
    wait_for("the gateway to be kept resolved", || neighbours(&net).contains("managed"));
    own(&net);
    assert_ne!(traces(&net), before);
    up.end(Signal::KILL);
    drop(up);
    assert!(neighbours(&net).contains("managed"), "this is what is left");
    own(&net);
    let (mut up, log) = Log::up(&net, "r", "ra rb --attach xdp");
    assert!(log.count("leftovers", "which was killed, left behind") > 0, "{}", log.text());
    net.meet(&up, false);
    assert_eq!(up.end(Signal::TERM), Some(0));
    assert_eq!(traces(&net), before);
    assert!(!neighbours(&net).contains("managed"), "{}", neighbours(&net));
    own(&net);
}

#[test]
fn what_was_turned_off_is_on_again_at_the_same_card_whatever_it_is_called() {
    let Some(net) = Net::new() else { return };
    let is_on =
        |device: &str| net.inside("r", "ethtool", &format!("-k {device}")).contains("rx-vlan-offload: on");
    net.inside("r", "ethtool", "-K ra rxvlan on");
    let mut router = net.start("r", "run -e FromDevice(ra)->Discard");
    assert!(!is_on("ra"));
    net.ip("r", "link set ra name wan0");
    net.ip("r", "link add ra type veth peer name heir");
    net.inside("r", "ethtool", "-K ra rxvlan off");
    router.end(Signal::KILL);
    drop(router);
    let _ = net.causeway("doctor").output().expect("causeway");
    assert!(is_on("wan0"), "it was called ra");
    assert!(!is_on("ra"), "this one is somebody else's");
}

#[test]
fn the_doctor_undoes_what_a_killed_router_leaves() {
    let Some(net) = Net::new() else { return };
    net.ip("r", "route add 10.78.0.0/24 via 10.77.2.2");
    let before = traces(&net);
    let mut up = net.up();
    net.meet(&up, false);
    wait_for("the gateway to be kept resolved", || neighbours(&net).contains("managed"));
    up.end(Signal::KILL);
    drop(up);
    let _ = net.causeway("doctor").output().expect("causeway");
    assert_eq!(traces(&net), before);
    assert!(!neighbours(&net).contains("managed"), "{}", neighbours(&net));
}

#[test]
fn a_host_to_which_nothing_is_sent_ages() {
    let Some(net) = Net::new() else { return };
    for setting in ["base_reachable_time_ms=2000", "gc_stale_time=2", "delay_first_probe_time=1"] {
        net.inside("r", "sysctl", &format!("-qw net.ipv4.neigh.rb.{setting}"));
    }
    let up = net.up();
    net.meet(&up, false);
    let state = || net.ip("r", "neigh show 10.77.2.2 dev rb");
    let flow = Flow::start(&net);
    let stale = |n: u32| {
        (0..n).any(|_| {
            flow.run(400);
            let before = up.number("forward.count");
            flow.run(100);
            up.number("forward.count") == before
        })
    };
    assert!(!stale(60), "a host in use is kept: {}", state());
    flow.end();
    wait_for("the host to age", || state().contains("STALE") || state().is_empty());
}

#[test]
fn punts_are_counted_by_reason_and_policed() {
    let Some(net) = Net::new() else { return };
    let up = net.up();
    net.meet(&up, false);
    let devices = net.ip("r", "addr show type tun");
    assert!(devices.contains("punt0") && !devices.contains("inet"), "no addresses: {devices}");
    let graph = net.causeway("up ra rb --print").output().expect("causeway").stdout;
    let graph = String::from_utf8(graph).expect("a text");
    let slow = graph.replace("ToKernel(ra, rb)", "ToKernel(ra, rb, RATE 20)");
    assert_ne!(slow, graph);
    up.write("hotconfig", &slow).expect("a graph");
    net.ip("r", "link set rb mtu 1280");
    wait_for("the new MTU", || net.ping("-c 1 -M do -s 1300 10.77.2.2").1.contains("mtu = 1280"));
    let too_long = || {
        let punts = up.read("forward.punts");
        let line = punts.lines().find_map(|line| line.strip_prefix("too-long "));
        line.map_or(0, |n| n.parse::<u64>().expect("a number"))
    };
    let before = (too_long(), up.number("kernel.count"), up.number("kernel.drops"));
    net.inside("a", "ip", "route flush cache");
    net.ping_from("a", "-q -c 1000 -i 0.001 -M dont -s 1300 10.77.2.2");
    let punted = too_long() - before.0;
    let (taken, dropped) = (up.number("kernel.count") - before.1, up.number("kernel.drops") - before.2);
    assert!(punted >= 900 && taken + dropped >= punted, "{punted}: {taken} and {dropped}");
    assert!(dropped > taken, "{taken} in at least a second, {dropped} dropped");
    assert!(net.ping("-c 5 -s 1000 10.77.2.2").0, "others pass");
}
