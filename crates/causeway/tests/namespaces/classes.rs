//! Two service classes where more comes than a way out takes.

use crate::driver::{pings, taken};
use crate::hold::Hold;
use crate::log::Log;
use crate::net::{Net, Router, open_port, wait_for};
use rustix::net::sockopt::{set_ip_tos, set_socket_recv_buffer_size_force};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The high class is expedited forwarding (RFC 3246), whatever the two bits of ECN are.
const ARGS: &str = "ra rb --attach xdp --high tos,0xb8/0xfc --link-speed rb=2Mbps";
/// Where either class goes.
const TARGETS: [&str; 2] = ["10.77.2.2:4001", "10.77.2.2:4002"];
/// Packets of either class every five milliseconds, and octets in each: 0.2 and 16 Mbit/s.
const EACH: [usize; 2] = [1, 10];
const OCTETS: [usize; 2] = [100, 1_000];
const TICKS: u32 = 400;

/// What arrives until it is told to end: the numbers, by class.
struct Sink {
    stop: Arc<AtomicBool>,
    threads: [JoinHandle<Vec<u32>>; 2],
}

impl Sink {
    fn start(net: &Net) -> Sink {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = TARGETS.map(|target| {
            let stop = stop.clone();
            let socket = net.spawn("b", move || open_port(|| UdpSocket::bind(target)));
            let socket = socket.join().expect("a socket");
            set_socket_recv_buffer_size_force(&socket, 16 << 20).expect("a buffer");
            socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
            std::thread::spawn(move || {
                let (mut numbers, mut bytes) = (Vec::new(), [0; 2_000]);
                while !stop.load(Ordering::Relaxed) {
                    if socket.recv(&mut bytes).is_ok() {
                        numbers.push(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
                    }
                }
                numbers
            })
        });
        Sink { stop, threads }
    }

    fn end(self) -> [Vec<u32>; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.map(|thread| thread.join().expect("a sink"))
    }
}

/// Sends eight times what the way out takes, nearly all of it of the low class; how many packets of either there were.
fn overload(net: &Net) -> JoinHandle<[u32; 2]> {
    net.spawn("a", || {
        let sockets = [0xb9, 0].map(|tos| {
            let socket = UdpSocket::bind("10.77.1.2:0").expect("a socket");
            set_ip_tos(&socket, tos).expect("a type of service");
            socket
        });
        let mut sent = [0; 2];
        for _ in 0..TICKS {
            for class in [1, 0] {
                for _ in 0..EACH[class] {
                    let mut bytes = vec![0; OCTETS[class]];
                    bytes[..4].copy_from_slice(&u32::to_be_bytes(sent[class]));
                    // All have one checksum: one in 65 536 is taken for a partial one, and is the kernel's.
                    bytes[4..8].copy_from_slice(&u32::to_be_bytes(!sent[class]));
                    sockets[class].send_to(&bytes, TARGETS[class]).expect("sent");
                    sent[class] += 1;
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        sent
    })
}

/// Waits until nothing waits to be sent to host `b`.
fn drain(up: &Router) {
    wait_for("the queues to be empty", || {
        ["high_queue1.length", "low_queue1.length"].iter().all(|queue| up.number(queue) == 0)
    });
    // What is in the ring.
    std::thread::sleep(Duration::from_millis(200));
}

/// Overloads the way to host `b`, with `meanwhile` in the middle: all of the high class arrives in order, and what is lost
/// of the low one was counted.
fn the_high_class_loses_nothing(net: &Net, up: &Router, meanwhile: impl FnOnce()) {
    // Without priority even the few packets of the high class would find theirs full.
    ["high_queue1", "low_queue1"]
        .iter()
        .for_each(|queue| up.write(&format!("{queue}.capacity"), "100").expect("written"));
    let counts =
        || ["high1.count", "low1.count", "high_queue1.drops", "low_queue1.drops"].map(|h| up.number(h));
    let sink = Sink::start(net);
    let before = counts();
    let sender = overload(net);
    wait_for("a full queue", || up.number("low_queue1.drops") > before[3]);
    meanwhile();
    let sent = sender.join().expect("a sender");
    drain(up);
    let [high, low] = sink.end();
    let now = counts();
    let [high_came, low_came, high_lost, low_lost]: [u64; 4] = std::array::from_fn(|i| now[i] - before[i]);
    assert_eq!(high, (0..sent[0]).collect::<Vec<u32>>(), "all that was sent, in order");
    assert_eq!(high_lost, 0);
    assert!(
        low_lost > 0 && low_lost + low.len() as u64 == u64::from(sent[1]),
        "{low_lost}, {} of {}",
        low.len(),
        sent[1]
    );
    assert!(low.is_sorted(), "in order");
    // The first may have gone through the driver.
    assert!(high_came > 0 && high_came <= u64::from(sent[0]) && low_came <= u64::from(sent[1]));
}

#[test]
fn the_high_class_goes_before_the_low_one_in_the_graph() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = Log::up(&net, "r", ARGS);
    net.meet(&up, false);
    the_high_class_loses_nothing(&net, &up, || ());
    // Packets of IPv6 are of the low class, whatever they say.
    net.meet(&up, true);
    let counts = || ["high1.count", "low1.count"].map(|h| up.number(h));
    let before = counts();
    assert!(net.ping("-c 10 -Q 0xb8 2001:db8:2::2").0);
    let now = counts();
    // Hosts ask for each other now and then.
    assert!(now[0] == before[0] && now[1] >= before[1] + 10, "{before:?} {now:?}");
    let before = counts();
    assert!(net.ping("-c 10 -Q 0xb8 10.77.2.2").0);
    assert_eq!(counts(), [before[0] + 10, before[1]]);
}

#[test]
fn a_hot_swap_loses_nothing_of_the_high_class() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = Log::up(&net, "r", ARGS);
    net.meet(&up, false);
    let graph = up.read("config");
    the_high_class_loses_nothing(&net, &up, || up.write("hotconfig", &graph).expect("the graph"));
}

#[test]
fn what_waits_for_a_port_that_goes_leaves_by_no_other() {
    let Some(net) = Net::new() else { return };
    let cable = net.cables(1).remove(0);
    let slow = "--attach xdp --high tos,0xb8/0xfc --link-speed rb=80kbps";
    let (up, log) = Log::up(&net, "r", &format!("ra rb {cable} {slow}"));
    net.meet(&up, false);
    let sender = overload(&net);
    wait_for("packets that wait", || up.number("low_queue1.length") >= 500);
    let before = net.sent("r", &cable);
    net.ip("r", "link del rb");
    log.wait(0, "port-detached", "rb: not attached any more");
    sender.join().expect("a sender");
    assert!(up.counted("", |name| name == "drop.swap") >= 500, "they are counted");
    // The kernel says a little by itself.
    let sent = net.sent("r", &cable) - before;
    assert!(sent < 50, "{sent} left by {cable}");
}

/// A router whose driver forwards both classes.
fn in_the_driver(net: &Net) -> (Router, Log) {
    let (up, log) = Log::up(net, "r", &format!("{ARGS} --driver"));
    net.meet(&up, false);
    wait_for("the driver", || pings(net, &up) == (true, 0));
    (up, log)
}

#[test]
fn the_driver_forwards_only_where_no_queue_builds() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = in_the_driver(&net);
    let (before, driver) = (taken(&up), up.line("forward.driver", "ra>rb"));
    the_high_class_loses_nothing(&net, &up, || {
        let driver = up.line("forward.driver", "ra>rb");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(up.line("forward.driver", "ra>rb"), driver, "all goes through the graph");
    });
    let sent = u64::from(TICKS) * (EACH[0] + EACH[1]) as u64;
    let by_driver = up.line("forward.driver", "ra>rb") - driver;
    // Ten milliseconds are 22 packets; this machine may be busy.
    assert!(by_driver < sent / 4 && taken(&up) - before + by_driver >= sent, "{by_driver}");
    wait_for("the driver again", || pings(&net, &up) == (true, 0));
}

/// Sends datagrams of the low class from host `a`, with a pause after each.
fn send_low(net: &Net, n: u32, octets: usize, pause: Duration) {
    let sender = net.spawn("a", move || {
        let socket = UdpSocket::bind("10.77.1.2:0").expect("a socket");
        for number in 0..n {
            let mut bytes = vec![0; octets];
            bytes[..4].copy_from_slice(&u32::to_be_bytes(number));
            socket.send_to(&bytes, TARGETS[1]).expect("sent");
            std::thread::sleep(pause);
        }
    });
    sender.join().expect("a sender");
}

/// As long as they wait in the graph, however little leaves meanwhile.
#[test]
fn packets_that_wait_are_not_overtaken_in_the_driver() {
    let Some(net) = Net::new() else { return };
    let (up, _log) = in_the_driver(&net);
    // A kilobyte a second.
    up.write("speed1.rate", "8kbps").expect("written");
    wait_for("packets that wait", || {
        send_low(&net, 50, 1_000, Duration::from_millis(1));
        up.number("low_queue1.length") > 10
    });
    // The meter sees it with its next look, which on a busy machine is late.
    let by_driver = || up.line("forward.driver", "ra>rb");
    wait_for("the meter", || {
        let before = by_driver();
        send_low(&net, 1, 20, Duration::from_millis(20));
        by_driver() == before
    });
    let before = by_driver();
    send_low(&net, 25, 20, Duration::from_millis(20));
    assert_eq!(by_driver(), before, "they go to the end of the queue");
    assert!(up.number("low_queue1.length") > 10);
    up.write("speed1.rate", "2Mbps").expect("written");
    wait_for("the driver again", || pings(&net, &up) == (true, 0));
}

/// The device's own ring is a queue as well, which loses what it has no room for.
#[test]
fn what_the_driver_loses_is_sent_by_the_graph() {
    const N: u32 = 20;
    let Some(net) = Net::new() else { return };
    let (up, _log) = Log::up(&net, "r", &format!("{ARGS} --driver"));
    net.meet(&up, false);
    // What is longer than the other end takes is lost behind a redirect.
    net.ip("b", "link set b0 mtu 1000");
    wait_for("the driver", || pings(&net, &up) == (true, 0));
    let (above, driver) = (taken(&up), up.line("forward.driver", "ra>rb"));
    send_low(&net, N, 1_200, Duration::from_millis(20));
    let by_driver = up.line("forward.driver", "ra>rb") - driver;
    let lost = up.counted("", |name| name == "port.xdp_drop_transmit");
    assert!(by_driver > 0 && by_driver == lost, "{by_driver}, {lost} of them lost");
    // After each that is lost the graph sends for a tenth of a second; this machine may be busy.
    assert!(taken(&up) - above >= u64::from(N / 4), "{by_driver} of {N} in the driver");
}

/// Also if no queue builds: it may soon.
#[test]
fn what_the_graph_sends_counts_for_whether_the_driver_may() {
    const N: u32 = 25;
    let Some(net) = Net::new() else { return };
    let (up, _log) = Log::up(&net, "r", &format!("{ARGS} --driver --driver-share 1"));
    net.meet(&up, false);
    let driver = || up.line("forward.driver", "ra>rb");
    wait_for("the driver", || {
        let before = driver();
        send_low(&net, 1, 20, Duration::from_millis(300));
        driver() > before
    });
    let before = driver();
    // Each is more than a hundredth of what the link takes in ten milliseconds, and keeps the driver away for a hundred. If it
    // did not, every other one would be the driver's; on a busy machine a few are.
    send_low(&net, N, 200, Duration::from_millis(60));
    let by_driver = driver() - before;
    assert!(by_driver < u64::from(N / 3), "{by_driver} of {N} in the driver");
}

/// Queues build that it does not see.
#[test]
fn the_kernel_forwards_while_the_meter_hangs() {
    let Some(net) = Net::new() else { return };
    let (up, log) = Log::up(&net, "r", &format!("{ARGS} --driver"));
    net.meet(&up, false);
    let (silent, again) = (log.count("silent", "the meter"), log.count("forwarding", "forwarding again"));
    let hold = Hold::thread(&up, "meter");
    log.wait(silent, "silent", "the meter of the service classes: the kernel forwards everything");
    drop(hold);
    log.wait(again, "forwarding", "forwarding again");
}

#[test]
fn a_mask_that_cannot_be_read_is_told_with_its_place() {
    let Some(net) = Net::new() else { return };
    let told = |args: &str| {
        let output = net.causeway(&format!("up ra rb --print {args}")).output().expect("causeway");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = told("--high tos,0xb8/0xfg");
    assert!(error.contains("'0xfg' at character 10: a number from 0 to 255"), "{error}");
    let error = told("--high proto,17 --link-speed rc=1Mbps");
    assert!(error.contains("--link-speed: rc is none of the interfaces"), "{error}");
    let many = told(&"--high proto,17 ".repeat(65));
    assert!(many.contains("65 masks are more than the 64"), "{many}");
}
