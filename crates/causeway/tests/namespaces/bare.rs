//! `causeway up --driver` with interfaces whose packets have no Ethernet header, beside the kernel. TUN stands for all of them.

use crate::driver::{by_kernel, programs_counted};
use crate::log::Log;
use crate::net::{Net, Router, wait_for};
use causeway_netio::tap;
use causeway_packet::{Batch, Packet, checksum};
use std::net::Ipv6Addr;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Packets that elements count as forwarded.
fn forwarded(up: &Router) -> u64 {
    up.number("forward.count")
}

/// The other side of TUNs of the router's host, which goes with the value: what comes there is answered, if it is a ping, and
/// told to the test.
struct Behind {
    came: Receiver<(usize, Vec<u8>)>,
    /// What goes to the router by a TUN; the thread ends when nothing will any more.
    go: Option<Sender<(usize, Vec<u8>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Behind {
    /// TUN number `n` is called `rt{n}`; behind it are 10.99.`n`.0/24 and 2001:db8:99`n`::/64, of which the router's host is 1.
    fn new(net: &Net, tuns: usize) -> Behind {
        let (go, going) = channel::<(usize, Vec<u8>)>();
        let ((tell, came), (ready, is_ready)) = (channel(), channel());
        let thread = net.spawn("r", move || {
            let open = |n| tap::open(&format!("rt{n}"), tap::Kind::Tun, 1).expect("a TUN");
            let mut ports: Vec<_> = (0..tuns).map(open).collect();
            ready.send(()).expect("the test waits");
            loop {
                match going.try_recv() {
                    Ok((n, packet)) => {
                        let mut batch = Batch::new();
                        batch.extend(Packet::from_bytes(&packet));
                        ports[n].queues[0].tx.offer(&mut batch);
                        continue;
                    }
                    Err(TryRecvError::Empty) => {}
                    Err(TryRecvError::Disconnected) => return,
                }
                for (n, port) in ports.iter_mut().enumerate() {
                    let mut batch = Batch::new();
                    port.queues[0].rx.poll(&mut batch, 8);
                    let mut answers = Batch::new();
                    for packet in batch.iter_mut() {
                        let came = packet.data().to_vec();
                        answers.extend(answer(&came).as_deref().and_then(Packet::from_bytes));
                        // The test may have seen enough.
                        let _ = tell.send((n, came));
                    }
                    port.queues[0].tx.offer(&mut answers);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        is_ready.recv().expect("TUNs");
        for n in 0..tuns {
            net.ip("r", &format!("addr add 10.99.{n}.1/24 dev rt{n}"));
            net.ip("r", &format!("addr add 2001:db8:99{n}::1/64 dev rt{n} nodad"));
        }
        Behind { came, go: Some(go), thread: Some(thread) }
    }

    /// A packet comes to the router by TUN number `n`.
    fn send(&self, n: usize, packet: &[u8]) {
        let go = self.go.as_ref().expect("until it is dropped");
        go.send((n, packet.to_vec())).expect("the thread runs");
    }

    /// The pings that have come to TUN number `n` since the last call, as they came.
    fn pings(&self, n: usize) -> Vec<Vec<u8>> {
        let is_ping = |p: &[u8]| match p[0] >> 4 {
            4 => p[9] == 1 && p[20] == 8,
            _ => p[6] == 58 && p[40] == 128,
        };
        self.came.try_iter().filter(|(at, p)| *at == n && is_ping(p)).map(|(_, p)| p).collect()
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        drop(self.go.take());
        // A panic has told what there is to tell.
        self.thread.take().map(JoinHandle::join);
    }
}

/// What is answered to a packet, if it is a ping: the addresses change places, and the type is another, which moves the checksum
/// by as much (RFC 1624).
fn answer(packet: &[u8]) -> Option<Vec<u8>> {
    let (source, octets, icmp, request, reply) = match packet[0] >> 4 {
        4 if packet[9] == 1 => (12, 4, 20, 8, 0),
        6 if packet[6] == 58 => (8, 16, 40, 128, 129),
        _ => return None,
    };
    let mut packet = packet.to_vec();
    if packet[icmp] != request {
        return None;
    }
    let (sources, destinations) = packet[source..source + 2 * octets].split_at_mut(octets);
    sources.swap_with_slice(destinations);
    packet[icmp] = reply;
    let sum = u16::from_be_bytes([packet[icmp + 2], packet[icmp + 3]]);
    let more = u32::from(!sum) + u32::from(u16::from(reply) << 8) + u32::from(!(u16::from(request) << 8));
    let folded = (more & 0xffff) + (more >> 16);
    let sum = !((folded & 0xffff) + (folded >> 16)) as u16;
    packet[icmp + 2..icmp + 4].copy_from_slice(&sum.to_be_bytes());
    Some(packet)
}

/// Starts the router, and waits until it forwards between the Ethernet ports.
fn start(net: &Net, args: &str) -> (Router, Log) {
    let (up, log) = Log::up(net, "r", args);
    net.meet(&up, false);
    (up, log)
}

/// Sends five pings to a host behind a TUN, which the driver is to forward there and back.
fn five_by_the_driver(net: &Net, up: &Router, target: &str) {
    wait_for(&format!("the driver to forward to {target}"), || {
        let before = (forwarded(up), by_kernel(net));
        let (good, text) = net.ping(&format!("-c 5 {target}"));
        assert!(good, "{target}: {text}");
        (forwarded(up) - before.0, by_kernel(net) - before.1) == (10, 0)
    });
}

#[test]
fn packets_come_and_leave_without_an_ethernet_header_as_by_the_kernel() {
    let Some(net) = Net::new() else { return };
    let behind = Behind::new(&net, 1);
    for target in ["10.99.0.2", "2001:db8:990::2"] {
        // The same packet by the kernel and by the driver.
        assert!(net.ping(&format!("-c 1 {target}")).0, "by the kernel");
        let by_kernel = behind.pings(0);
        let (up, _log) = start(&net, "ra rb rt0 --driver");
        five_by_the_driver(&net, &up, target);
        let by_driver = behind.pings(0);
        assert!(by_kernel.len() == 1 && by_driver.len() >= 5, "{target}");
        assert!(
            by_driver.iter().all(|packet| alike(packet, &by_kernel[0])),
            "{by_driver:02x?} {by_kernel:02x?}"
        );
        assert_eq!(up.number("forward.differences"), 0);
    }
}

/// Whether two pings are the same but for what a host counts or draws, and the first one's header is sound.
fn alike(packet: &[u8], other: &[u8]) -> bool {
    let shown = |p: &[u8]| match p[0] >> 4 {
        4 => (p.len(), p[..4].to_vec(), p[6..10].to_vec(), p[12..20].to_vec()),
        _ => (p.len(), p[..1].to_vec(), p[4..8].to_vec(), p[8..40].to_vec()),
    };
    let words = packet[..20].as_chunks::<2>().0.iter();
    let sum = words.map(|&word| u32::from(u16::from_be_bytes(word))).sum::<u32>();
    let sound = packet[0] >> 4 != 4 || (sum & 0xffff) + (sum >> 16) == 0xffff;
    shown(packet) == shown(other) && sound
}

/// A ping from a host behind TUN 0 to host 2 of a network, of which these are the octets, in IPv4 behind the first.
fn ping(six: bool, network: &[u8], limit: u8) -> Vec<u8> {
    let mut icmp = [&[if six { 128 } else { 8 }, 0, 0, 0, 0, 7, 0, 1][..], &[0xab; 24]].concat();
    if six {
        let source = "2001:db8:990::2".parse::<Ipv6Addr>().expect("an address").octets();
        let destination = [network, &[0; 16][network.len() + 1..], &[2]].concat();
        let pseudo = [&source[..], &destination, &[0, 0, 0, icmp.len() as u8, 0, 0, 0, 58]].concat();
        let sum = checksum::checksum(&[&pseudo[..], &icmp].concat());
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        let header = [0x60, 0, 0, 0, 0, icmp.len() as u8, 58, limit];
        return [&header[..], &source, &destination, &icmp].concat();
    }
    let sum = checksum::checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let len = 20 + icmp.len() as u8;
    let mut header = [0x45, 0, 0, len, 0, 0, 0x40, 0, limit, 1, 0, 0, 10, 99, 0, 2, 10, 0, 0, 2];
    header[17..17 + network.len()].copy_from_slice(network);
    let sum = checksum::checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&header[..], &icmp].concat()
}

/// From one such interface to another nothing but the time to live changes, by whomever.
#[test]
fn from_one_interface_without_ethernet_header_to_another_packets_go_as_by_the_kernel() {
    let Some(net) = Net::new() else { return };
    let behind = Behind::new(&net, 2);
    let pings = [ping(false, &[99, 1], 9), ping(true, &[0x20, 0x01, 0x0d, 0xb8, 0x09, 0x91], 9)];
    let through = |packet: &[u8]| {
        behind.send(0, packet);
        let mut came = Vec::new();
        wait_for("the packet", || {
            came = behind.pings(1);
            !came.is_empty()
        });
        came.remove(0)
    };
    let by_the_kernel = pings.each_ref().map(|packet| through(packet));
    let (up, _log) = start(&net, "ra rb rt0 rt1 --driver --check-every 1");
    for (packet, expected) in pings.iter().zip(by_the_kernel) {
        wait_for("the driver to forward it", || {
            let before = (forwarded(&up), by_kernel(&net));
            assert_eq!(through(packet), expected);
            // The answer goes back the same way.
            wait_for("the answer", || forwarded(&up) + by_kernel(&net) >= before.0 + before.1 + 2);
            by_kernel(&net) == before.1
        });
    }
    assert_eq!(up.number("forward.differences"), 0, "the kernel says the same of each packet");
    assert_eq!(programs_counted(&up, "pass_self_check"), 0);
}

/// What the program does not forward that came without an Ethernet header is the kernel's, as it came.
#[test]
fn the_kernel_answers_for_what_is_given_up_that_came_without_an_ethernet_header() {
    let Some(net) = Net::new() else { return };
    let behind = Behind::new(&net, 1);
    let (up, _log) = start(&net, "ra rb rt0 --driver");
    let dies = |packet: &[u8]| match packet[0] >> 4 {
        4 => packet[9] == 1 && packet[20] == 11,
        _ => packet[6] == 58 && packet[40] == 3,
    };
    for packet in [ping(false, &[77, 2], 1), ping(true, &[0x20, 0x01, 0x0d, 0xb8, 0, 2], 1)] {
        let before = programs_counted(&up, "pass_ttl");
        behind.send(0, &packet);
        let mut died = None;
        wait_for("the answer", || {
            died = died.take().or_else(|| behind.came.try_iter().map(|(_, p)| p).find(|p| dies(p)));
            died.is_some()
        });
        let told = died.expect("an answer");
        assert!(told.ends_with(&packet[packet.len() - 8..]), "the packet as it came: {told:02x?}");
        assert_eq!(programs_counted(&up, "pass_ttl"), before + 1);
    }
    let given_up = programs_counted(&up, "pass_given_up");
    let mut fragment = ping(false, &[77, 2], 9);
    (fragment[6], fragment[7]) = (0x20, 0);
    (fragment[10], fragment[11]) = (0, 0);
    let sum = checksum::checksum(&fragment[..20]);
    fragment[10..12].copy_from_slice(&sum.to_be_bytes());
    behind.send(0, &fragment);
    wait_for("a fragment", || programs_counted(&up, "pass_given_up") > given_up);
}

/// A program at XDP has nobody to hand it to: it is the graph's, which leaves it to the kernel.
#[test]
fn from_xdp_what_leaves_without_an_ethernet_header_is_the_kernels() {
    let Some(net) = Net::new() else { return };
    let _behind = Behind::new(&net, 1);
    let (up, _log) = start(&net, "ra rb --driver --attach xdp");
    let before = (forwarded(&up), by_kernel(&net));
    for target in ["10.99.0.2", "2001:db8:990::2"] {
        assert!(net.ping(&format!("-c 3 {target}")).0);
    }
    assert_eq!((forwarded(&up) - before.0, by_kernel(&net) - before.1), (0, 12), "there and back");
}

/// Such an interface needs the driver path, in the stack.
#[test]
fn without_the_driver_path_such_interfaces_are_the_kernels() {
    let Some(net) = Net::new() else { return };
    let _behind = Behind::new(&net, 1);
    let (up, log) = Log::up(&net, "r", "ra rt0");
    assert!(
        log.text().contains("rt0: at tcx") && log.text().contains("no Ethernet header"),
        "{}",
        log.text()
    );
    let before = by_kernel(&net);
    assert!(net.ping("-c 3 10.99.0.2").0);
    assert_eq!(by_kernel(&net) - before, 6);
    drop(up);
    let output = net.causeway("up ra rt0 --driver --attach xdp --dry-run").output().expect("causeway");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("rt0: no Ethernet interface"), "{text}");
}
