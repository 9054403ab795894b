//! A numbered flow of UDP datagrams through the router, each of which is accounted for.

use crate::net::{Net, open_port, wait_for};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Datagrams that are sent together, and how long the sender sleeps then: so many a millisecond are sent at most.
pub const PER_MS: u32 = 4;
const REST: Duration = Duration::from_millis(1);
/// How long the sender of a dense flow sleeps after each datagram: what passes in between cannot be seen.
const SHORT_REST: Duration = Duration::from_micros(20);
/// How long the receiver waits for one more.
const SILENCE: Duration = Duration::from_millis(300);
/// Where the flow goes, by version.
const TARGETS: [&str; 2] = ["10.77.2.2:4000", "[2001:db8:2::2]:4000"];

/// A flow from one host to another, until it is ended.
pub struct Flow {
    stop: Stop,
    sent: Arc<AtomicU32>,
    received: Arc<AtomicU32>,
    sender: JoinHandle<Vec<Instant>>,
    receiver: JoinHandle<Vec<(u32, Instant)>>,
}

/// Ends the threads when it is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What became of a flow.
#[derive(Debug)]
pub struct Account {
    /// Datagrams that never came.
    pub lost: u32,
    /// Datagrams that came more than once.
    pub duplicates: u32,
    /// Runs of datagrams that never came.
    pub gaps: Vec<Gap>,
    /// The longest time in which none came.
    pub silence: Duration,
}

/// A run of datagrams that never came.
#[derive(Debug)]
pub struct Gap {
    pub lost: u32,
    /// From when the last one before it was sent until the first one after it was.
    pub length: Duration,
}

impl Account {
    /// The longest gap.
    pub fn longest(&self) -> Duration {
        self.gaps.iter().map(|gap| gap.length).max().unwrap_or_default()
    }
}

impl Flow {
    /// Begins to send IPv4.
    pub fn start(net: &Net) -> Flow {
        Flow::of_version(net, false)
    }

    /// Begins to send, and waits until the first datagrams have come.
    pub fn of_version(net: &Net, ipv6: bool) -> Flow {
        let target = TARGETS[usize::from(ipv6)].parse().expect("an address");
        Flow::between(net, ["a", "b"], target, (PER_MS, REST))
    }

    /// As [`Flow::start`], between other hosts, and one datagram at a time with hardly any time in between.
    pub fn dense(net: &Net, hosts: [&str; 2], target: &str) -> Flow {
        Flow::between(net, hosts, target.parse().expect("an address"), (1, SHORT_REST))
    }

    fn between(net: &Net, [from, to]: [&str; 2], target: SocketAddr, pace: (u32, Duration)) -> Flow {
        let stop = Arc::new(AtomicBool::new(false));
        let (sent, received) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
        let (ended, seen) = (stop.clone(), received.clone());
        // What comes before somebody listens would count as lost.
        let socket = net.spawn(to, move || listen(target)).join().expect("a socket");
        let receiver = std::thread::spawn(move || receive(&socket, &ended, &seen));
        let (ended, number) = (stop.clone(), sent.clone());
        let sender = net.spawn(from, move || send(target, pace, &ended, &number));
        let flow = Flow { stop: Stop(stop), sent, received, sender, receiver };
        flow.wait(10);
        flow
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Datagrams received so far.
    pub fn received(&self) -> u32 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits until `n` more datagrams were received.
    pub fn wait(&self, n: u32) {
        let until = self.received() + n;
        wait_for("datagrams to come", || self.received() >= until);
    }

    /// Lets the flow run for as long as it takes to send `n` more datagrams, received or not.
    pub fn run(&self, n: u32) {
        let until = self.sent() + n;
        wait_for("datagrams to be sent", || self.sent() >= until);
    }

    /// Ends the flow and accounts for it.
    pub fn end(self) -> Account {
        drop(self.stop);
        let times = self.sender.join().expect("the sender");
        let arrivals = self.receiver.join().expect("the receiver");
        let mut came = vec![0u32; times.len()];
        arrivals.iter().for_each(|&(n, _)| came[n as usize] += 1);
        let silence = arrivals.windows(2).map(|pair| pair[1].1 - pair[0].1).max().unwrap_or_default();
        let duplicates = came.iter().map(|n| n.saturating_sub(1)).sum();
        let end = times.len();
        let (mut gaps, mut first) = (Vec::new(), None);
        // As if one more had been sent and had come.
        for n in 0..=end {
            if came.get(n) == Some(&0) {
                first.get_or_insert(n);
            } else if let Some(first) = first.take() {
                let length = times[n.min(end - 1)] - times[first.max(1) - 1];
                gaps.push(Gap { lost: (n - first) as u32, length });
            }
        }
        let lost = gaps.iter().map(|gap| gap.lost).sum();
        Account { lost, duplicates, gaps, silence }
    }
}

/// When each was sent.
fn send(
    target: SocketAddr,
    (together, rest): (u32, Duration),
    stop: &AtomicBool,
    number: &AtomicU32,
) -> Vec<Instant> {
    let any = if target.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).expect("bind");
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..together {
            let n = times.len() as u32;
            // With the error of an earlier one this one was not sent: the next has its number.
            if socket.send_to(&n.to_be_bytes(), target).is_ok() {
                times.push(Instant::now());
                number.store(n + 1, Ordering::Relaxed);
            }
        }
        std::thread::sleep(rest);
    }
    times
}

fn listen(target: SocketAddr) -> UdpSocket {
    let socket = open_port(|| UdpSocket::bind(target));
    set_socket_recv_buffer_size_force(&socket, 64 << 20).expect("buffer");
    socket.set_read_timeout(Some(SILENCE)).expect("timeout");
    socket
}

/// The numbers received, and when, until the sender has stopped and nothing comes any more.
fn receive(socket: &UdpSocket, stop: &AtomicBool, seen: &AtomicU32) -> Vec<(u32, Instant)> {
    let (mut numbers, mut bytes) = (Vec::new(), [0; 64]);
    loop {
        match socket.recv(&mut bytes) {
            Ok(4) => {
                let number = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                numbers.push((number, Instant::now()));
                seen.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) => {}
            Err(_) if stop.load(Ordering::Relaxed) => return numbers,
            Err(_) => {}
        }
    }
}

/// How many of `n` datagrams from an address of host `a` come to host `b`.
pub fn receive_from(net: &Net, source: &str, n: u32) -> u32 {
    let source = format!("{source}:0");
    let (bound, listens) = std::sync::mpsc::channel();
    let receiver = net.spawn("b", move || {
        let socket = UdpSocket::bind("10.77.2.2:0").expect("bind");
        socket.set_read_timeout(Some(SILENCE)).expect("timeout");
        bound.send(socket.local_addr().expect("an address")).expect("the test waits");
        let mut bytes = [0; 64];
        (0..n).take_while(|_| socket.recv(&mut bytes).is_ok()).count() as u32
    });
    let target = listens.recv().expect("the receiver");
    let sender = net.spawn("a", move || {
        let socket = UdpSocket::bind(source).expect("bind");
        (0..n).for_each(|_| assert_eq!(socket.send_to(b"hello", target).ok(), Some(5)));
    });
    sender.join().expect("the sender");
    receiver.join().expect("the receiver")
}
