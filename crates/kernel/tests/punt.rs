//! Handing packets back to the kernel at the ingress of the interface they came in by.

mod common;

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use causeway_kernel::{attach_clsact_redirect, interfaces};
use causeway_netio::bpf::{Asm, Helper, Program, ProgramKind, Reg};
use common::{Namespace, Testbed};

const BPF_F_INGRESS: i32 = 1;

fn redirect_to_ingress_of(ifindex: u32) -> Program {
    let mut asm = Asm::new();
    asm.mov(Reg::R1, ifindex as i32);
    asm.mov(Reg::R2, BPF_F_INGRESS);
    asm.call(Helper::Redirect);
    asm.exit();
    Program::load(ProgramKind::SchedCls, "punt", &asm.finish().unwrap()).unwrap()
}

/// A pair of devices stands for the TAP and the router that writes to it: what is sent into `feed` comes in by `punt`.
#[test]
fn a_frame_that_comes_back_late_seems_to_have_come_in_by_the_port() {
    let (Some(bed), Some(feeder)) = (Testbed::new("punt"), Namespace::new("feed")) else { return };
    let index = |name: &str| {
        let all = bed.router.enter(|| interfaces().unwrap());
        all.into_iter().find(|interface| interface.link.name == name).unwrap().link
    };
    let (router_name, feeder_name) = (bed.router.name(), feeder.name());
    bed.router.ip(&format!("link add punt netns {router_name} type veth peer name feed netns {feeder_name}"));
    bed.router.ip("link set punt up");
    feeder.ip("link set feed up");
    feeder.ip("addr add 10.0.0.9/24 dev feed");
    let port = index("r0");
    let mac = port.mac.unwrap().map(|octet| format!("{octet:02x}")).join(":");
    feeder.ip(&format!("neigh add 10.0.0.1 lladdr {mac} dev feed"));
    let receiver = bed.router.enter(|| UdpSocket::bind("10.0.0.1:4000").unwrap());
    receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let sender = feeder.enter(|| UdpSocket::bind("10.0.0.9:4001").unwrap());
    let mut buffer = [0; 64];

    // The frame is not for the device that it comes in by.
    sender.send_to(b"early", "10.0.0.1:4000").unwrap();
    assert!(receiver.recv_from(&mut buffer).is_err());

    let tap = index("punt").index;
    // Twice: the second program takes the place of the first.
    for _ in 0..2 {
        let program = redirect_to_ingress_of(port.index);
        bed.router.enter(|| attach_clsact_redirect(tap, program.as_fd()).unwrap());
    }
    let before = received(&bed, "r0");
    sender.send_to(b"late", "10.0.0.1:4000").unwrap();
    let (len, from) = receiver.recv_from(&mut buffer).expect("the kernel takes it in");
    assert_eq!((&buffer[..len], from.to_string().as_str()), (&b"late"[..], "10.0.0.9:4001"));
    assert_eq!(received(&bed, "r0"), before, "it did not come in by the wire of the port");

    let none = bed.router.enter(|| attach_clsact_redirect(9999, redirect_to_ingress_of(1).as_fd()));
    assert!(none.is_err(), "no such device");
}

/// Frames that came in by the wire of a device.
fn received(bed: &Testbed, name: &str) -> String {
    let text = bed.router.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    let line =
        text.lines().find(|line| line.trim_start().starts_with(&format!("{name}:"))).unwrap().to_owned();
    line.split_whitespace().nth(2).unwrap().to_owned()
}
