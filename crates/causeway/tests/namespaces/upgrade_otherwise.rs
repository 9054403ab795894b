//! New processes that are otherwise than the one whose place they take, or that cannot take it in the end.

use crate::flow::Flow;
use crate::log::Log;
use crate::net::Net;
use crate::upgrade::Place;
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
