//! New processes that are otherwise than the one whose place they take, or that cannot take it in the end.

use crate::driver::TCX;
use crate::flow::Flow;
use crate::log::Log;
use crate::net::{Net, Router, wait_for};
use crate::upgrade::{Place, XDP, has_strace, kill_traced, start_until};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

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
        let counted = || ["in0.count", "forward.count", "out1.count"].map(|counter| place.up.number(counter));
        place.wait_until_it_forwards(&flow);
        let before = counted();
        let output = place.upgrade("");
        std::fs::remove_dir(in_the_way).expect("removed");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("cannot write"), "{text}");
        let after = counted();
        assert!(after.iter().zip(&before).all(|(now, then)| now >= then), "{after:?} behind {before:?}");
        place.wait_until_it_forwards(&flow);
        assert_eq!(place.pid(), pid);
        place.must_upgrade("");
        place.wait_until_it_forwards(&flow);
        let account = flow.end();
        assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}\n{}", place.log.text());
        place.end(Signal::TERM);
    }
}

/// It let go of it for the other, and opens its ports again.
#[test]
fn what_the_old_router_has_turned_off_is_on_again_when_it_went_on_and_ends() {
    let Some(net) = Net::new() else { return };
    let offloads = || ["ra", "rb"].map(|port| net.inside("r", "ethtool", &format!("-k {port}")));
    for port in ["ra", "rb"] {
        net.inside("r", "ethtool", &format!("-K {port} rxvlan on"));
    }
    let before = offloads();
    let place = Place::start(&net, XDP);
    let in_the_way = place.file("json").with_extension("json.new");
    std::fs::create_dir(&in_the_way).expect("made");
    assert!(!place.upgrade("").status.success());
    std::fs::remove_dir(in_the_way).expect("removed");
    net.meet(&place.up, false);
    assert_ne!(offloads(), before);
    place.end(Signal::TERM);
    assert_eq!(offloads(), before);
}

/// It is stopped when it has handed all over.
#[test]
fn an_upgrade_is_done_although_the_old_router_does_not_end() {
    let Some(net) = Net::new() else { return };
    if !has_strace() {
        return;
    }
    let stop = "strace -f -qq -o /dev/null -e trace=sendmsg -e inject=sendmsg:signal=STOP:when=2";
    let (up, log) = Log::start_by(&net, "r", stop, &format!("up {XDP}"));
    net.meet(&up, false);
    let place = Place { net: &net, up, log };
    let (flow, old) = (Flow::start(&net), place.pid());
    let output = place.upgrade("");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("does not end"), "{text}");
    assert_ne!(place.pid(), old);
    kill_process(Pid::from_raw(old).expect("a process"), Signal::KILL).expect("kill");
    place.wait_until_it_forwards(&flow);
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
    place.end(Signal::TERM);
}

/// Whether the process under strace(1) is stopped.
fn is_stopped(new: &Router) -> bool {
    let strace = new.child.id();
    let children = std::fs::read_to_string(format!("/proc/{strace}/task/{strace}/children"));
    let stat = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    children.is_ok_and(|pids| {
        pids.split_whitespace().any(|pid| stat(pid).contains(") T ") || stat(pid).contains(") t "))
    })
}

/// It has closed its ports and waits for the other, which never says anything.
#[test]
fn a_router_that_is_told_to_end_while_it_hands_over_leaves_nothing_behind() {
    let Some(net) = Net::new() else { return };
    if !has_strace() {
        return;
    }
    for port in ["ra", "rb"] {
        net.inside("r", "ethtool", &format!("-K {port} rxvlan on"));
    }
    let offloads = || ["ra", "rb"].map(|port| net.inside("r", "ethtool", &format!("-k {port}")));
    let before = offloads();
    let mut place = Place::start(&net, XDP);
    let files = ["json", "counters", "upgrade"].map(|end| place.file(end));
    let mut new = start_until(&net, XDP, ("recvmsg", 2), "STOP");
    place.log.wait(0, "upgrade", "is to take over");
    wait_for("the other to stop", || is_stopped(&new));
    // By then it has said that it is ready.
    std::thread::sleep(Duration::from_millis(500));
    place.end(Signal::TERM);
    // The router has ended it before.
    kill_traced(&new);
    let _ = (place.up.child.wait(), new.child.wait());
    let left: Vec<_> = files.iter().filter(|file| file.exists()).collect();
    assert!(left.is_empty(), "{left:?}\n{}", place.log.text());
    assert_eq!(offloads(), before, "{}", place.log.text());
    let links = net.ip("r", "link show");
    assert!(!links.contains("xdp"), "{links}");
}
