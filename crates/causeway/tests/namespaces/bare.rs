//! `causeway up --driver` with interfaces whose packets have no Ethernet header, beside the kernel. TUN stands for all of them.

use crate::driver::by_kernel;
use crate::log::Log;
use crate::net::{Net, Router, wait_for};
use causeway_netio::tap;
use causeway_packet::Batch;
use std::sync::mpsc::{Receiver, Sender, channel};
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
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Behind {
    /// TUN number `n` is called `rt{n}`; behind it are 10.99.`n`.0/24 and 2001:db8:99`n`::/64, of which the router's host is 1.
    fn new(net: &Net, tuns: usize) -> Behind {
        let ((stop, stopped), (tell, came), (ready, is_ready)) = (channel(), channel(), channel());
        let thread = net.spawn("r", move || {
            let open = |n| tap::open(&format!("rt{n}"), tap::Kind::Tun, 1).expect("a TUN");
            let mut ports: Vec<_> = (0..tuns).map(open).collect();
            ready.send(()).expect("the test waits");
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                for (n, port) in ports.iter_mut().enumerate() {
                    let mut batch = Batch::new();
                    port.queues[0].rx.poll(&mut batch, 8);
                    for packet in batch.iter_mut() {
                        // The test may have seen enough.
                        let _ = tell.send((n, packet.data().to_vec()));
                        answer(packet.data_mut());
                    }
                    port.queues[0].tx.offer(&mut batch);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        is_ready.recv().expect("TUNs");
        for n in 0..tuns {
            net.ip("r", &format!("addr add 10.99.{n}.1/24 dev rt{n}"));
            net.ip("r", &format!("addr add 2001:db8:99{n}::1/64 dev rt{n} nodad"));
        }
        Behind { came, stop: Some(stop), thread: Some(thread) }
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
        drop(self.stop.take());
        // A panic has told what there is to tell.
        self.thread.take().map(JoinHandle::join);
    }
}

/// A ping becomes its answer: the addresses change places, and the type, which moves the checksum by as much (RFC 1624).
fn answer(packet: &mut [u8]) {
    let (source, octets, icmp, request, reply) = match packet[0] >> 4 {
        4 if packet[9] == 1 => (12, 4, 20, 8, 0),
        6 if packet[6] == 58 => (8, 16, 40, 128, 129),
        _ => return,
    };
    if packet[icmp] != request {
        return;
    }
    let (sources, destinations) = packet[source..source + 2 * octets].split_at_mut(octets);
    sources.swap_with_slice(destinations);
    packet[icmp] = reply;
    let sum = u16::from_be_bytes([packet[icmp + 2], packet[icmp + 3]]);
    let more = u32::from(!sum) + u32::from(u16::from(reply) << 8) + u32::from(!(u16::from(request) << 8));
    let folded = (more & 0xffff) + (more >> 16);
    let sum = !((folded & 0xffff) + (folded >> 16)) as u16;
    packet[icmp + 2..icmp + 4].copy_from_slice(&sum.to_be_bytes());
}

/// Starts the router, and waits until it forwards between the Ethernet ports.
fn start(net: &Net, args: &str) -> (Router, Log) {
    let (up, log) = Log::up(net, "r", args);
    net.meet(&up, false);
    (up, log)
}

/// Sends five pings to a host behind a TUN, none of which the router's kernel is to forward on the way there but `most`.
fn five_by_the_driver(net: &Net, up: &Router, target: &str, kernels: u64) {
    wait_for(&format!("the driver to forward to {target}"), || {
        let before = (forwarded(up), by_kernel(net));
        let (good, text) = net.ping(&format!("-c 5 {target}"));
        assert!(good, "{target}: {text}");
        let more = (forwarded(up) - before.0, by_kernel(net) - before.1);
        more == (10 - kernels, kernels)
    });
}

#[test]
fn what_leaves_without_an_ethernet_header_is_forwarded_as_the_kernel_would() {
    let Some(net) = Net::new() else { return };
    let behind = Behind::new(&net, 1);
    for target in ["10.99.0.2", "2001:db8:990::2"] {
        // The same packet by the kernel and by the driver.
        assert!(net.ping(&format!("-c 1 {target}")).0, "by the kernel");
        let by_kernel = behind.pings(0);
        let (up, _log) = start(&net, "ra rb rt0 --driver");
        five_by_the_driver(&net, &up, target, 5);
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
