//! Cables without Ethernet headers between hosts and the router, that carry super-packets: two TUNs, whose packets a thread hands
//! over with what is left to be done with them.

#![allow(unsafe_code)] // Nothing else makes a TUN that takes super-packets.

use crate::driver::by_kernel;
use crate::log::Log;
use crate::net::{Net, Router, wait_for};
use crate::offloads::{offloads, refused};
use crate::transfer::{datagrams, streams};
use rustix::ioctl::{IntegerSetter, Setter, ioctl};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const TUNSETIFF: u32 = 0x4004_54ca;
const TUNSETOFFLOAD: u32 = 0x4004_54d0;
/// A TUN, without a header of its own but with the one of virtio in front of each packet.
const FLAGS: u16 = 0x0001 | 0x1000 | 0x4000;
/// Unfinished checksums, and super-packets of TCP in IPv4 and IPv6.
const OFFLOADS: usize = 1 | 2 | 4;

/// Octets of a stream, and of the payload of a packet that a wire could carry at most.
const LENGTH: usize = 4 << 20;
const SEGMENT: usize = 1_460;

/// A cable, which goes with the value.
struct Cable {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Cable {
    /// Connects a host by its device `tun` with the router's `rHOST0`: 10.88.`n`.0/24 and 2001:db8:88`n`::/64, the router's end
    /// being 1 and the host's 2.
    fn new(net: &Net, host: &'static str, n: u8) -> Cable {
        let near = format!("t{host}");
        let ends = [("r", near.clone()), (host, "tun".to_owned())];
        let files = ends.each_ref().map(|(space, device)| {
            let device = device.clone();
            let file = net.spawn(space, move || open(&device)).join().expect("a TUN");
            Arc::new(file)
        });
        for ((space, device), end) in ends.iter().zip([1, 2]) {
            net.ip(space, &format!("addr add 10.88.{n}.{end}/24 dev {device}"));
            net.ip(space, &format!("addr add 2001:db8:88{n}::{end}/64 dev {device} nodad"));
            net.ip(space, &format!("link set {device} up"));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let pump = |from: &Arc<File>, to: &Arc<File>| {
            let (from, to, stop) = (from.clone(), to.clone(), stop.clone());
            std::thread::spawn(move || hand_over(&from, &to, &stop))
        };
        let threads = vec![pump(&files[0], &files[1]), pump(&files[1], &files[0])];
        Cable { stop, threads }
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic has told what there is to tell.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// The other side of a new TUN of this name, in the namespace of the thread.
fn open(device: &str) -> File {
    const NONBLOCK: i32 = 0o4000;
    let file = OpenOptions::new().read(true).write(true).custom_flags(NONBLOCK).open("/dev/net/tun");
    let file = file.expect("/dev/net/tun");
    let mut request = [0u8; 40];
    request[..device.len()].copy_from_slice(device.as_bytes());
    request[16..18].copy_from_slice(&FLAGS.to_ne_bytes());
    // SAFETY: the first command reads and writes a structure of 40 bytes, the second one takes a number.
    unsafe {
        ioctl(&file, Setter::<TUNSETIFF, [u8; 40]>::new(request)).expect("a TUN");
        ioctl(&file, IntegerSetter::<TUNSETOFFLOAD>::new_usize(OFFLOADS)).expect("offloads");
    }
    file
}

fn hand_over(mut from: &File, mut to: &File, stop: &AtomicBool) {
    let mut packet = vec![0; 70_000];
    while !stop.load(Ordering::Relaxed) {
        match from.read(&mut packet) {
            // What a host does not take, as while its interface comes up, is lost, as on any cable.
            Ok(n) => drop(to.write(&packet[..n])),
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_micros(50)),
            Err(_) => return,
        }
    }
}

/// Packets that elements count as forwarded.
fn forwarded(up: &Router) -> u64 {
    up.number("forward.count")
}

/// Streams and datagrams from `a` to two addresses of `b`: super-packets go through whole, by the driver, and what is not
/// finished is finished.
fn all_arrives(net: &Net, up: &Router, targets: [&str; 2]) {
    for target in targets {
        wait_for(&format!("the driver to forward to {target}"), || {
            let before = (forwarded(up), by_kernel(net));
            net.ping(&format!("-c 3 {target}")).0
                && (forwarded(up) - before.0, by_kernel(net) - before.1) == (6, 0)
        });
        for flows in [1, 8] {
            let before = (forwarded(up), by_kernel(net));
            streams(net, target, flows, LENGTH / flows);
            let (here, elsewhere) = (forwarded(up) - before.0, by_kernel(net) - before.1);
            assert!(
                here > 20 && here < (LENGTH / SEGMENT) as u64 / 2,
                "{here} packets of {target}, {flows} flows"
            );
            assert!(elsewhere < 20, "{elsewhere} by the kernel");
        }
        datagrams(net, target, 200);
    }
    assert_eq!(refused(net), 0, "what hosts left unfinished, somebody finished");
    assert_eq!(up.number("forward.differences"), 0);
}

#[test]
fn super_packets_leave_whole_without_an_ethernet_header() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    let _cable = Cable::new(&net, "b", 2);
    net.ip("b", "route add 10.77.1.0/24 via 10.88.2.1");
    net.ip("b", "-6 route add 2001:db8:1::/64 via 2001:db8:882::1");
    let (up, _log) = Log::up(&net, "r", "ra tb --driver --check-every 20");
    all_arrives(&net, &up, ["10.88.2.2", "2001:db8:882::2"]);
}

#[test]
fn super_packets_that_come_without_an_ethernet_header_leave_whole_with_one() {
    let Some(net) = Net::new() else { return };
    offloads(&net, true);
    let _cable = Cable::new(&net, "a", 1);
    net.ip("a", "route add 10.77.2.0/24 via 10.88.1.1");
    net.ip("a", "-6 route add 2001:db8:2::/64 via 2001:db8:881::1");
    let (up, _log) = Log::up(&net, "r", "ta rb --driver --check-every 20");
    all_arrives(&net, &up, ["10.77.2.2", "2001:db8:2::2"]);
}

#[test]
fn super_packets_go_whole_from_one_interface_without_ethernet_header_to_another() {
    let Some(net) = Net::new() else { return };
    let _cables = [Cable::new(&net, "a", 1), Cable::new(&net, "b", 2)];
    for (host, here, there) in [("a", 1, 2), ("b", 2, 1)] {
        net.ip(host, &format!("route add 10.88.{there}.0/24 via 10.88.{here}.1"));
        net.ip(host, &format!("-6 route add 2001:db8:88{there}::/64 via 2001:db8:88{here}::1"));
    }
    let (up, _log) = Log::up(&net, "r", "ta tb --driver --check-every 20");
    all_arrives(&net, &up, ["10.88.2.2", "2001:db8:882::2"]);
}
