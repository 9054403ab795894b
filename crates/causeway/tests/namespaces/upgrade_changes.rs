//! A new process is to take the place of a router, and something is another than it was.

use crate::driver::TCX;
use crate::net::{Net, wait_for};
use crate::tcx::anothers;
use crate::upgrade::Place;
use causeway_bpf::{Asm, Program, ProgramKind, Reg, XdpLink, XdpMode, action};
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

/// A program of somebody else's at XDP of `ra`, which passes everything, as long as the value lives.
fn anothers_at_xdp(net: &Net) -> XdpLink {
    let index: u32 = net.inside("r", "cat", "/sys/class/net/ra/ifindex").trim().parse().expect("a number");
    let link = net.spawn("r", move || {
        let mut a = Asm::new();
        a.mov(Reg::R0, action::XDP_PASS);
        a.exit();
        let code = a.finish().expect("assembled");
        let program = Program::load(ProgramKind::Xdp, "other", &code).expect("loaded");
        XdpLink::attach(&program, "ra", index, XdpMode::Generic).expect("attached")
    });
    link.join().expect("attached")
}

/// A start would be refused, and so is an upgrade, and doctor says why.
#[test]
fn beside_anothers_program_at_xdp_nobody_takes_over_either() {
    let Some(net) = Net::new() else { return };
    let place = Place::start(&net, TCX);
    let pid = place.pid();
    let other = anothers_at_xdp(&net);
    for arguments in ["", "-- ra rb --attach xdp"] {
        let output = place.upgrade(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("ra: XDP program "), "{arguments}: {output:?}");
    }
    assert_eq!(place.pid(), pid);
    let output = net.causeway("doctor ra --driver").output().expect("causeway");
    assert!(String::from_utf8_lossy(&output.stdout).contains("[xdp-program]"), "{output:?}");
    assert!(net.ip("r", "link show dev ra").contains("xdpgeneric"), "it is where it was");
    drop(other);
    place.must_upgrade("");
    net.meet(&place.up, false);
    place.end(Signal::TERM);
}
