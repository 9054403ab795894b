//! `causeway run FILE --driver` at tcx: part of the graph runs in the kernel's stack, on packets as that has them.

use crate::log::Log;
use crate::net::{Net, Router, wait_for};
use crate::offloads::{offloads, refused};
use crate::run_driver::{Configuration, SWITCHED, in_driver, settle};
use crate::transfer::{datagrams, streams};
use std::collections::BTreeMap;

/// Octets of a stream, and of the payload of a packet that a wire could carry at most.
const LENGTH: usize = 8 << 20;
const SEGMENT: usize = 1_460;

/// Both ways between the hosts, for either version.
const BOTH: &str = "a :: FromDevice(ra, METHOD TCX) -> ca :: Classifier(12/0800, 12/86dd, 12/0806, -);
    b :: FromDevice(rb, METHOD TCX) -> cb :: Classifier(12/0800, 12/86dd, 12/0806, -);
    qa :: Queue(10000) -> outa :: ToDevice(ra); qb :: Queue(10000) -> outb :: ToDevice(rb);
    ca[0] -> c4 :: Counter -> Strip(14) -> CheckIPHeader -> fw :: IPFilter(deny udp and dst port 7, allow all)
    -> DecIPTTL -> EtherEncap(0x0800, NEARB, FARB) -> qb;
    cb[0] -> Strip(14) -> CheckIPHeader -> DecIPTTL -> EtherEncap(0x0800, NEARA, FARA) -> qa;
    ca[1] -> c6 :: Counter -> Strip(14) -> CheckIP6Header(ff01::1) -> DecIP6HLIM -> EtherEncap(0x86dd, NEARB, FARB) -> qb;
    cb[1] -> Strip(14) -> CheckIP6Header(ff01::1) -> DecIP6HLIM -> EtherEncap(0x86dd, NEARA, FARA) -> qa;
    ca[2] -> ARPResponder(10.77.1.1 NEARA) -> qa; cb[2] -> ARPResponder(10.77.2.1 NEARB) -> qb;
    ca[3] -> othera :: Discard; cb[3] -> otherb :: Discard;";

/// A graph between both hosts, which know each other's gateway without asking.
fn both(net: &Net, graph: &str) -> Configuration {
    for (host, n) in [("a", 1), ("b", 2)] {
        let mac = net.mac("r", &format!("r{host}"));
        net.ip(host, &format!("neigh replace 10.77.{n}.1 lladdr {mac} dev {host}0 nud permanent"));
        net.ip(host, &format!("neigh replace 2001:db8:{n}::1 lladdr {mac} dev {host}0 nud permanent"));
    }
    let mut graph = graph.to_owned();
    for (name, host, device) in
        [("NEARA", "r", "ra"), ("FARA", "a", "a0"), ("NEARB", "r", "rb"), ("FARB", "b", "b0")]
    {
        graph = graph.replace(name, &net.mac(host, device));
    }
    Configuration::new(net, &graph)
}

fn taken(router: &Router) -> u64 {
    router.counted("", |name| name == "port.tcx_taken")
}

#[test]
fn super_packets_go_through_whole() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    let configuration = both(&net, BOTH);
    let (router, log) = configuration.log(&net);
    log.wait(0, "driver", "rb: ");
    for (target, counter) in [("10.77.2.2", "c4"), ("2001:db8:2::2", "c6")] {
        for flows in [1, 16] {
            let before = (taken(&router), router.number(&format!("{counter}.count")), packets(&net));
            streams(&net, target, flows, LENGTH / flows);
            let above = taken(&router) - before.0;
            let counted = router.number(&format!("{counter}.count")) - before.1;
            let whole = packets(&net) - before.2;
            assert!(above < 50, "{above} came up");
            assert!(counted > (LENGTH / SEGMENT) as u64, "{counted} are counted as they would be on a wire");
            assert!(whole < (LENGTH / SEGMENT) as u64 / 2, "{whole} came to the other host");
        }
        datagrams(&net, target, 400);
    }
    assert_eq!(refused(&net), 0, "what sums hosts left unfinished, somebody finished");
}

/// Packets that host `b` has received.
fn packets(net: &Net) -> u64 {
    net.inside("b", "cat", "/sys/class/net/b0/statistics/rx_packets").trim().parse().expect("a number")
}
