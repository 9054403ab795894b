//! A new process takes the place of a router, and something is another than it was.

use crate::driver::TCX;
use crate::flow::Flow;
use crate::net::{Net, wait_for};
use crate::tcx::anothers;
use crate::upgrade::{DRIVER, Place};
use rustix::process::Signal;

/// A program at XDP makes packets of a virtual interface small, whether it forwards them or not.
#[test]
fn a_router_that_moves_to_tcx_leaves_nothing_at_xdp() {
    let Some(net) = Net::new() else { return };
    for port in ["ra", "rb"] {
        net.inside("r", "ethtool", &format!("-K {port} rxvlan on"));
    }
    let offloads = || ["ra", "rb"].map(|port| net.inside("r", "ethtool", &format!("-k {port}")));
    let is_at_xdp = || net.ip("r", "link show").contains("xdp");
    let before = offloads();
    let place = Place::start(&net, TCX);
    let flow = Flow::start(&net);
    for (arguments, at_xdp) in [(DRIVER, true), (TCX, false), (DRIVER, true), (TCX, false)] {
        place.wait_until_it_forwards(&flow);
        place.must_upgrade(&format!("-- {arguments}"));
        assert_eq!((is_at_xdp(), offloads() != before), (at_xdp, true), "{arguments}: {}", offloads()[0]);
    }
    place.wait_until_it_forwards(&flow);
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
    place.end(Signal::TERM);
    assert_eq!(offloads(), before);
}

/// Of the programs that are there the old router's alone is to go.
#[test]
fn beside_anothers_program_nobody_takes_over() {
    let Some(net) = Net::new() else { return };
    let place = Place::start(&net, TCX);
    let (told, pid) = (place.log.count("forwarding", "forwarding again"), place.pid());
    let other = anothers(&net);
    wait_for("the kernel to forward", || {
        let before = place.up.number("forward.count");
        net.ping("-c 5 10.77.2.2").0 && place.up.number("forward.count") == before
    });
    let output = place.upgrade("");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("tc-program"), "{output:?}");
    assert_eq!(place.pid(), pid);
    drop(other);
    place.log.wait(told, "forwarding", "forwarding again");
    place.must_upgrade("");
    net.meet(&place.up, false);
    place.end(Signal::TERM);
}
