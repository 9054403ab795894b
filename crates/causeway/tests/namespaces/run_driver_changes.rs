//! What changes while part of a graph runs in the driver: handlers, tables, interfaces, and what does not fit there.

use crate::flow::Flow;
use crate::net::{Net, Router, wait_for};
use crate::run_driver::{Configuration, SWITCHED, filled, in_driver, send, settle, switched, v4};
use crate::upgrade::has_strace;
use std::process::Stdio;

/// Packets that passed an edge, the first of those that begin so.
fn passed(router: &Router, edge: &str) -> u64 {
    let edges = router.read("edges");
    let line = edges.lines().find(|line| line.starts_with(edge));
    let line = line.unwrap_or_else(|| panic!("{edge} in {edges}"));
    line.split('\t').nth(2).and_then(|n| n.parse().ok()).expect("a count")
}

/// Every packet comes up half done, with what the elements below have made of it.
const HALF: &str = "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
    kind[0] -> sw :: Switch(0); sw[0] -> one :: Paint(1) -> strip :: Strip(14); sw[1] -> two :: Paint(2) -> strip;
    strip -> check :: CheckIPHeader -> ttl :: DecIPTTL -> encap :: EtherEncap(0x0800, NEAR, FAR) -> held :: AverageCounter
    -> q :: Queue -> out :: ToDevice(rb);";

#[test]
fn packets_that_are_half_done_are_neither_lost_nor_miscounted_whatever_is_written() {
    half_done_packets_survive(1);
}

#[test]
fn nor_are_packets_that_are_half_done_where_two_workers_share_the_graph() {
    half_done_packets_survive(2);
}

fn half_done_packets_survive(workers: usize) {
    let Some(net) = Net::new() else { return };
    settle(&net);
    if workers > 1 {
        for (space, device) in [("a", "a0"), ("b", "b0"), ("r", "ra"), ("r", "rb")] {
            net.inside(space, "ethtool", &format!("-L {device} rx {workers} tx {workers}"));
        }
    }
    let configuration = Configuration::new(&net, HALF);
    let router = net.start("r", &format!("{} --threads {workers}", configuration.arguments()));
    let flow = Flow::start(&net);
    for round in 0..12 {
        // Each is another program, and packets of the one before are still on their way up.
        for n in 0..3 {
            router.write("sw.switch", &format!("{}", n % 2)).expect("written");
        }
        flow.wait(20);
        if round % 4 == 3 {
            router.write("hotconfig", &filled(&net, HALF)).expect("a good configuration");
            flow.wait(20);
        }
    }
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
    assert_eq!(router.line("in.drop_reasons", "given-up"), 0);
    // What is in the driver counts as what is above.
    let counts = || ["one [0]", "two [0]", "strip [0]", "encap [0]", "held [0]"].map(|e| passed(&router, e));
    wait_for("the counts", || {
        let [one, two, strip, encap, held] = counts();
        held > 0 && one + two == strip && strip == encap && encap == held
    });
}

#[test]
fn packets_go_on_where_the_program_that_gave_them_up_had_them_go() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    // Those of either way are wrong for the other: with two Ethernet headers, or with that of the router.
    let graph = "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
        kind[0] -> sw :: Switch(0); sw[0] -> Strip(14) -> EtherEncap(0x0800, NEAR, FAR) -> late :: AverageCounter
        -> q :: Queue -> out :: ToDevice(rb); sw[1] -> early :: AverageCounter -> Strip(14) -> EtherEncap(0x0800, NEAR, FAR) -> q;";
    let router = Configuration::new(&net, graph).run(&net, true);
    let flow = Flow::start(&net);
    for n in 0..60 {
        router.write("sw.switch", &format!("{}", (n + 1) % 2)).expect("written");
    }
    flow.wait(20);
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
    assert!(router.number("early.count") > 0 && router.number("late.count") > 0);
    assert_eq!(router.line("in.drop_reasons", "given-up"), 0);
}

#[test]
fn routes_that_are_written_count_in_the_driver_when_it_is_answered() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let graph = "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
        kind[0] -> Strip(14) -> check :: CheckIPHeader -> rt :: RadixIPLookup(10.77.2.0/24 0) -> DecIPTTL
        -> EtherEncap(0x0800, NEAR, FAR) -> q :: Queue -> out :: ToDevice(rb); rt[1] -> away :: Discard;";
    let router = Configuration::new(&net, graph).run(&net, true);
    let flow = Flow::start(&net);
    in_driver(&router);
    for _ in 0..3 {
        router.write("rt.add", "10.77.2.2/32 1").expect("written");
        let before = (router.number("out.count"), router.number("away.count"));
        flow.run(200);
        assert_eq!(router.number("out.count"), before.0);
        wait_for("the others", || router.number("away.count") >= before.1 + 150);
        router.write("rt.remove", "10.77.2.2/32").expect("written");
        flow.wait(100);
        in_driver(&router);
    }
    let account = flow.end();
    assert_eq!(account.duplicates, 0);
}

/// A redirect to a veth whose other end is not ready for it loses frames without a word.
#[test]
fn what_cannot_be_redirected_goes_up() {
    let Some(net) = Net::new() else { return };
    let (router, flow) = switched(&net);
    for _ in 0..2 {
        net.inside("b", "ethtool", "-K b0 gro off");
        let taken = || router.counted("", |name| name == "port.xdp_taken");
        let before = taken();
        wait_for("the graph", || taken() > before);
        flow.wait(100);
        net.inside("b", "ethtool", "-K b0 gro on");
        in_driver(&router);
    }
    assert_eq!(flow.end().duplicates, 0);
}

#[test]
fn a_table_that_does_not_fit_is_told_once_and_its_graph_runs_above() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let routes: Vec<String> = (0..5_000)
        .map(|i| format!("10.80.{}.{}/32 10.81.{}.{} 0", i >> 8, i & 255, i >> 8, i & 255))
        .collect();
    let graph = format!(
        "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
         kind[0] -> sw :: Switch(0) -> Strip(14) -> check :: CheckIPHeader -> rt :: RadixIPLookup(10.77.2.0/24 0, {})
         -> DecIPTTL -> EtherEncap(0x0800, NEAR, FAR) -> q :: Queue -> out :: ToDevice(rb);",
        routes.join(", ")
    );
    let (router, log) = Configuration::new(&net, &graph).log(&net);
    let told = "ra: nothing runs in the driver: a routing table cannot be copied: its routes lead to too many gateways";
    log.wait(0, "driver", told);
    let flow = Flow::start(&net);
    flow.wait(200);
    assert_eq!(log.count("driver", told), 1);
    router.write("rt.remove", "10.80.0.0/32 10.81.0.0 0").expect("written");
    flow.wait(100);
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
    assert!(router.number("out.count") >= 300);
}

#[test]
fn what_is_no_frame_any_more_is_dropped_and_counted() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let graph = "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
        kind[0] -> short :: Strip(50) -> q :: Queue -> out :: ToDevice(rb);";
    let router = Configuration::new(&net, graph).run(&net, true);
    send(&net, v4(40));
    wait_for("the count", || router.line("in.drop_reasons", "refused") >= 40);
    assert_eq!((router.line("in.drop_reasons", "refused"), router.number("out.count")), (40, 0));
    assert_eq!(passed(&router, "short [0]"), 40);
}

/// What elements have written in the place of the addresses says nothing of how a packet came.
#[test]
fn packets_that_are_half_done_are_known_by_how_they_were_addressed() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    net.ip("a", "neigh replace 10.77.1.1 lladdr ff:ff:ff:ff:ff:ff dev a0 nud permanent");
    let graph = "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
        kind[0] -> Strip(14) -> CheckIPHeader -> EtherEncap(0x0800, NEAR, FAR) -> held :: AverageCounter
        -> once :: DropBroadcasts -> q :: Queue -> out :: ToDevice(rb);";
    let router = Configuration::new(&net, graph).run(&net, true);
    send(&net, v4(40));
    wait_for("all to come", || router.number("held.count") >= 40);
    assert_eq!((router.number("once.drops"), router.number("out.count")), (40, 0));
}

#[test]
fn an_interface_that_is_deleted_and_made_anew_has_its_part_in_the_driver_again() {
    let Some(net) = Net::new() else { return };
    let (router, flow) = switched(&net);
    let far = net.mac("b", "b0");
    for (host, n) in [("b", 2), ("a", 1), ("b", 2)] {
        net.ip("r", &format!("link del r{host}"));
        net.link(host, n);
        // The graph names this one.
        net.ip("b", &format!("link set b0 address {far}"));
        settle(&net);
        in_driver(&router);
    }
    assert_eq!(flow.end().duplicates, 0);
}

/// What it has in hand when another takes its place would not be counted otherwise.
#[test]
fn a_program_that_is_exchanged_has_ended_when_its_counters_are_read_last() {
    let Some(net) = Net::new() else { return };
    if !has_strace() {
        return;
    }
    settle(&net);
    let configuration = Configuration::new(&net, SWITCHED);
    let file = std::env::temp_dir().join(net.name("calls"));
    let by = format!("strace -D -f -qq -o {} -e trace=bpf", file.display());
    let router = net.start_by("r", &by, &configuration.arguments(), Stdio::inherit());
    let calls = || std::fs::read_to_string(&file).expect("calls");
    let text = calls();
    // Maps to wait with: an update of one returns when all programs have ended that were running.
    let made = text.lines().filter(|line| line.contains("\"grace_periods\""));
    let updates = made.filter_map(|line| line.rsplit(' ').next());
    let updates: Vec<_> = updates.map(|map| format!("BPF_MAP_UPDATE_ELEM, {{map_fd={map},")).collect();
    let waits = || updates.iter().map(|update| calls().matches(update).count()).sum::<usize>();
    for way in ["1", "0", "-1", "0"] {
        let before = waits();
        router.write("sw.switch", way).expect("written");
        assert!(waits() > before, "nobody waits: {}", calls());
    }
    drop(router);
    std::fs::remove_file(file).expect("removed");
}
