//! What happens to the interfaces of a graph at tcx while packets go through it.

use crate::flow::Flow;
use crate::log::Log;
use crate::net::{Net, Router, wait_for};
use crate::offloads::offloads;
use crate::run_driver::{Configuration, SWITCHED, at_tcx, in_driver, send, settle, switched_by, v4};
use crate::tcx::programs;

/// A graph of which nothing runs in the stack: all packets come up.
fn above(net: &Net) -> (Router, Log, Flow) {
    settle(net);
    let graph = at_tcx(SWITCHED).replace("-> kind", "-> AverageCounter -> kind");
    let (router, log) = Configuration::new(net, &graph).log(net);
    log.wait(0, "driver", "ra: nothing runs");
    let flow = Flow::start(net);
    (router, log, flow)
}

#[test]
fn a_way_out_that_is_renamed_stays_one() {
    let Some(net) = Net::new() else { return };
    let (router, flow) = switched_by(&net, &at_tcx(SWITCHED));
    net.ip("r", "link set rb name other");
    wait_for("the name to be told", || router.line("out.events", "renamed") == 1);
    in_driver(&router);
    // Looked at once more.
    router.write("sw.switch", "0").expect("written");
    in_driver(&router);
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0));
}

#[test]
fn the_way_up_is_set_up_again() {
    let Some(net) = Net::new() else { return };
    let (router, log, flow) = above(&net);
    net.ip("r", "link set above0 down");
    wait_for("it to be up again", || router.line("in.events", "way_up_restored") == 1);
    flow.wait(100);
    let told = "the interface that its packets come by was down, and is up again";
    assert!(log.text().contains(told), "{}", log.text());
    let full = router.counted("in", |name| name == "port.rx_drop_ring_full");
    let lost = flow.end().lost;
    assert_eq!(u64::from(lost), full, "what was lost is counted");
    assert!(router.number("in.kernel_drops") >= full);
}

#[test]
fn a_port_whose_way_up_was_deleted_is_opened_anew() {
    let Some(net) = Net::new() else { return };
    let (router, log, flow) = above(&net);
    net.ip("r", "link del above0");
    wait_for("the port to be opened anew", || {
        programs(&net, "ra") == 1 && router.line("in.events", "gone") == 0
    });
    let before = router.number("out.count");
    flow.wait(100);
    assert!(router.number("out.count") >= before + 100, "by the graph");
    assert!(log.text().contains("the interface that its packets come by is gone"), "{}", log.text());
    drop(flow.end());
}

/// The kernel puts nothing in front of so long a packet, which so cannot come up. It would have forwarded it.
#[test]
fn what_cannot_come_up_is_not_the_kernels() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let cut = |at: &str| at_tcx(SWITCHED).replace(at, &format!("{at} -> AverageCounter"));
    for (graph, reason) in [
        (cut("METHOD TCX)"), "port.tcx_drop_no_room"),
        (cut("kind[0]"), "drop.refused"),
        (cut("-> DecIPTTL"), "drop.refused"),
    ] {
        let (router, log) = Configuration::new(&net, &graph).log(&net);
        log.wait(0, "driver", "ra: ");
        for (host, device) in [("a", "a0"), ("r", "ra")] {
            net.ip(host, &format!("link set {device} mtu 30000"));
        }
        let (answered, text) = net.ping("-c 3 -M dont -s 20000 10.77.2.2");
        assert!(!answered && text.contains("100% packet loss"), "{text}");
        wait_for(reason, || router.counted("in", |name| name == reason) == 3);
        for (host, device) in [("a", "a0"), ("r", "ra")] {
            net.ip(host, &format!("link set {device} mtu 1500"));
        }
    }
}

/// Where a sum is still to be written behind the new end, the stack does not cut.
#[test]
fn packets_are_cut_before_an_unfinished_sum() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    settle(&net);
    let graph = at_tcx(SWITCHED).replace("-> q", "-> Truncate(38) -> q");
    let router = Configuration::new(&net, &graph).run(&net, true);
    let octets = || net.inside("b", "cat", "/sys/class/net/b0/statistics/rx_bytes").trim().parse::<u64>();
    let before = octets().expect("a number");
    send(&net, v4(40));
    // Two have come too far.
    wait_for("all packets to leave", || router.number("out.count") == 38);
    assert_eq!(router.line("in.drop_reasons", "refused"), 0);
    wait_for("them to come", || octets().expect("a number") >= before + 38 * 38);
    assert!(octets().expect("a number") < before + 38 * 58, "they are short");
}

/// Each has its queue of the way up.
#[test]
fn two_workers_share_a_port() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let graph = at_tcx(SWITCHED) + "back :: FromDevice(rb, METHOD TCX) -> Discard;";
    for graph in [graph.clone(), graph.replace("-> kind", "-> AverageCounter -> kind")] {
        let configuration = Configuration::new(&net, &graph);
        let (router, log) =
            Log::run(&net, "r", &(configuration.arguments()[4..].to_owned() + " --threads 2"));
        log.wait(0, "driver", "ra: ");
        let flow = Flow::start(&net);
        send(&net, v4(400));
        wait_for("all packets to leave", || router.number("out.count") >= 380);
        flow.wait(100);
        let account = flow.end();
        assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
    }
}
