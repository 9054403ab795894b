//! `causeway up --driver` on virtual interfaces, where it forwards in the stack: all that it does in drivers it does there, and
//! super-packets go through whole.

use crate::driver::{self, TCX, by_kernel, programs_counted, start};
use crate::log::Log;
use crate::net::{Net, Router, wait_for};
use crate::offloads::{offloads, refused};
use crate::transfer::{datagrams, streams};
use causeway_bpf::{Asm, Program, ProgramKind, Reg, TcxLink, TcxSide, action, tcx_programs};

/// Octets of a stream, and of the payload of a packet that a wire could carry at most.
const LENGTH: usize = 8 << 20;
const SEGMENT: usize = 1_460;

#[test]
fn what_is_forwarded_is_counted_as_if_the_graph_had() {
    driver::is_counted(TCX);
}

#[test]
fn ipv6_is_forwarded_and_counted() {
    driver::forwards_ipv6(TCX);
}

#[test]
fn the_kernel_answers_for_the_ipv6_that_is_given_up() {
    driver::gives_ipv6_up(TCX);
}

#[test]
fn flows_are_spread_as_the_kernel_spreads_them() {
    driver::spreads_flows("", &driver::IPV4);
}

#[test]
fn ipv6_flows_are_spread_as_the_kernel_spreads_them() {
    driver::spreads_flows("", &driver::IPV6);
}

#[test]
fn the_kernel_answers_for_what_is_given_up() {
    let Some((up, net)) = driver::gives_up(TCX) else { return };
    assert!(programs_counted(&up, "pass_given_up") >= 1, "what is longer than the way out takes");
    assert!(programs_counted(&up, "pass_ttl") >= 1);
    let before = programs_counted(&up, "pass_ip_options");
    assert!(net.ping("-c 2 -T tsonly 10.77.2.2").0, "with options");
    assert!(programs_counted(&up, "pass_ip_options") >= before + 2);
}

#[test]
fn routes_and_neighbours_are_followed() {
    driver::follows(TCX);
}

#[test]
fn it_checks_itself() {
    driver::checks_itself(TCX);
}

#[test]
fn the_kernel_forwards_when_the_router_is_stopped() {
    driver::stopped(TCX);
}

/// Programs where packets come in by an interface of the router.
pub fn programs(net: &Net, device: &str) -> usize {
    let index = net.inside("r", "cat", &format!("/sys/class/net/{device}/ifindex"));
    let index = index.trim().parse().expect("a number");
    net.spawn("r", move || tcx_programs(index, TcxSide::Ingress).expect("asked").len()).join().expect("asked")
}

#[test]
fn the_kernel_forwards_when_the_router_is_killed() {
    let Some(net) = driver::killed(TCX) else { return };
    wait_for("the programs to go", || programs(&net, "ra") + programs(&net, "rb") == 0);
}

/// Packets that elements count as forwarded.
fn forwarded(up: &Router) -> u64 {
    up.number("forward.count")
}

#[test]
fn super_packets_go_through_whole() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    let (up, _log) = start(&net, TCX);
    net.meet(&up, true);
    for target in ["10.77.2.2", "2001:db8:2::2"] {
        for flows in [1, 16] {
            let before = (forwarded(&up), by_kernel(&net));
            streams(&net, target, flows, LENGTH / flows);
            let (here, elsewhere) = (forwarded(&up) - before.0, by_kernel(&net) - before.1);
            assert!(
                here > 20 && here < (LENGTH / SEGMENT) as u64 / 2,
                "{here} packets of {target}, {flows} flows"
            );
            // Hosts are asked for now and then.
            assert!(elsewhere < 20, "{elsewhere} by the kernel");
        }
        datagrams(&net, target, 400);
    }
    assert_eq!(refused(&net), 0, "what sums hosts left unfinished, somebody finished");
}

/// With its Ethernet header the longest packet has more octets than 16 bits can say.
#[test]
fn the_longest_packets_go_through_whole() {
    let Some(net) = Net::new() else { return };
    for (host, device) in [("a", "a0"), ("r", "ra"), ("r", "rb"), ("b", "b0")] {
        net.ip(host, &format!("link set {device} mtu 65535"));
    }
    let (up, _log) = start(&net, TCX);
    net.meet(&up, true);
    for (target, headers) in [("10.77.2.2", 28), ("2001:db8:2::2", 48)] {
        for octets in [65_520, 65_521, 65_522, 65_535] {
            let before = forwarded(&up);
            let (good, text) = net.ping(&format!("-c 3 -M do -s {} {target}", octets - headers));
            assert!(good, "{octets} octets to {target}: {text}");
            assert!(forwarded(&up) >= before + 6, "{octets} octets to {target} were the kernel's");
        }
    }
}

/// What a super-packet is cut into must fit the way out, and nobody but the kernel can say that it does not.
#[test]
fn the_kernel_says_that_what_super_packets_are_cut_into_is_too_long() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    // The hosts think of more than the router's way out takes.
    net.ip("r", "link set rb mtu 1280");
    let (up, _log) = start(&net, TCX);
    streams(&net, "10.77.2.2", 1, LENGTH);
    assert!(programs_counted(&up, "pass_given_up") >= 1);
    let route = net.ip("a", "route get 10.77.2.2");
    assert!(route.contains("mtu 1280"), "too long ones came, and the host was told: {route}");
    let before = by_kernel(&net);
    streams(&net, "10.77.2.2", 1, LENGTH);
    assert!(by_kernel(&net) - before < 20, "super-packets of shorter ones go through");
}

#[test]
fn an_interface_that_is_deleted_and_made_anew_is_a_port_again() {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net, TCX);
    for round in 1..=2 {
        net.ip("r", "link del ra");
        log.wait(round - 1, "port-gone", "ra: there is no interface of that name any more");
        net.link("a", 1);
        log.wait(round - 1, "port-attached", "ra: attached again");
        net.meet(&up, false);
        assert_eq!(programs(&net, "ra"), 1);
    }
}

#[test]
fn with_a_filter_the_kernel_forwards() {
    let Some(net) = Net::new() else { return };
    if std::process::Command::new("nft").arg("--version").output().is_err() {
        return eprintln!("skipped: needs nft (apt install nftables)");
    }
    let (up, log) = start(&net, TCX);
    for set in [
        "add table inet own",
        "add chain inet own pass { type filter hook forward priority 0 ; }",
        "add rule inet own pass counter",
    ] {
        net.inside("r", "nft", set);
    }
    wait_for("the kernel to forward", || {
        let before = forwarded(&up);
        net.ping("-c 5 10.77.2.2").0 && forwarded(&up) == before
    });
    let told = log.count("forwarding", "forwarding again");
    net.inside("r", "nft", "delete table inet own");
    log.wait(told, "forwarding", "forwarding again");
    net.meet(&up, false);
}

#[test]
fn a_port_has_one_router_and_doctor_says_whose_it_is() {
    let Some(net) = Net::new() else { return };
    let (_up, _log) = start(&net, TCX);
    for args in ["up ra --driver --dry-run", "up ra --attach xdp --dry-run", "doctor ra --driver"] {
        let output = net.causeway(args).output().expect("causeway");
        assert!(!output.status.success(), "{args}");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("a router of Causeway is attached already"), "{args}: {text}");
    }
    assert_eq!(programs(&net, "ra"), 1);
}

/// Another's program where packets come in by `ra`, as long as the value lives.
pub fn anothers(net: &Net) -> TcxLink {
    let index: u32 = net.inside("r", "cat", "/sys/class/net/ra/ifindex").trim().parse().expect("a number");
    let link = net.spawn("r", move || {
        let mut a = Asm::new();
        a.mov(Reg::R0, action::TCX_NEXT);
        a.exit();
        let code = a.finish().expect("assembled");
        let program = Program::load(ProgramKind::SchedCls, "other", &code).expect("loaded");
        TcxLink::attach_ingress(&program, "ra", index).expect("attached")
    });
    link.join().expect("attached")
}

/// Another's program could do anything to the packets that the kernel forwards, and ours would be before or behind it.
#[test]
fn beside_anothers_program_the_kernel_forwards() {
    let Some(net) = Net::new() else { return };
    let (up, log) = start(&net, TCX);
    let told = log.count("forwarding", "forwarding again");
    let link = anothers(&net);
    wait_for("the kernel to forward", || {
        let before = forwarded(&up);
        net.ping("-c 5 10.77.2.2").0 && forwarded(&up) == before
    });
    let output = net.causeway("doctor ra --driver").output().expect("causeway");
    assert!(String::from_utf8_lossy(&output.stdout).contains("[tc-program]"), "{output:?}");
    drop(link);
    log.wait(told, "forwarding", "forwarding again");
    net.meet(&up, false);
}

/// Without the option nothing changes: the kernel forwards between virtual interfaces.
#[test]
fn without_the_driver_path_virtual_interfaces_are_the_kernels() {
    let Some(net) = Net::new() else { return };
    let (_up, _log) = Log::up(&net, "r", "ra rb");
    assert!(net.ping("-c 3 10.77.2.2").0);
    let before = by_kernel(&net);
    assert!(net.ping("-c 3 10.77.2.2").0);
    assert_eq!(by_kernel(&net) - before, 6);
}
