//! New processes that are otherwise than the one whose place they take, or that cannot take it in the end.

use crate::driver::TCX;
use crate::flow::Flow;
use crate::log::Log;
use crate::net::Net;
use crate::upgrade::{Place, XDP};
use rustix::process::Signal;

#[test]
fn virtual_ports_come_to_the_driver_and_back_by_upgrades() {
    let Some(net) = Net::new() else { return };
    let (up, log) = Log::up(&net, "r", "ra rb");
    let place = Place { net: &net, up, log };
    let flow = Flow::start(&net);
    for _ in 0..2 {
        place.must_upgrade("-- ra rb --driver");
        place.wait_until_it_forwards(&flow);
        place.must_upgrade("-- ra rb");
        flow.wait(200);
    }
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}\n{}", place.log.text());
    place.end(Signal::TERM);
}

/// It has all by then that is handed over: links, sockets, and their files.
#[test]
fn the_old_router_goes_on_when_the_new_one_cannot_take_its_name() {
    for arguments in [XDP, TCX] {
        let Some(net) = Net::new() else { return };
        let place = Place::start(&net, arguments);
        let (flow, pid, in_the_way) =
            (Flow::start(&net), place.pid(), place.file("json").with_extension("json.new"));
        std::fs::create_dir(&in_the_way).expect("made");
        let output = place.upgrade("");
        std::fs::remove_dir(in_the_way).expect("removed");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("cannot write"), "{text}");
        place.wait_until_it_forwards(&flow);
        assert_eq!(place.pid(), pid);
        place.must_upgrade("");
        place.wait_until_it_forwards(&flow);
        let account = flow.end();
        assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}\n{}", place.log.text());
        place.end(Signal::TERM);
    }
}
