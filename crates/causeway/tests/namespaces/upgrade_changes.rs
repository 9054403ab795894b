//! A new process is to take the place of a router, and something is another than it was.

use crate::driver::TCX;
use crate::net::{Net, wait_for};
use crate::tcx::anothers;
use crate::upgrade::Place;
use rustix::process::Signal;

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
