//! Transfers from host `a` to host `b`, of which every octet is compared.

use crate::net::{Net, open_port};
use fastrand::Rng;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::channel;
use std::time::Duration;

const PORT: u16 = 5000;
/// How long nothing may move.
const PATIENCE: Duration = Duration::from_secs(20);

fn address(target: &str) -> SocketAddr {
    SocketAddr::new(target.parse::<IpAddr>().expect("an address"), PORT)
}

/// Sends `flows` streams of `length` octets each at once; all must arrive as they were sent.
pub fn streams(net: &Net, target: &str, flows: usize, length: usize) {
    let to = address(target);
    let (bound, listens) = channel();
    let receiver = net.spawn("b", move || {
        let listener = open_port(|| TcpListener::bind(to));
        bound.send(()).expect("the test waits");
        let take = || {
            std::thread::spawn({
                let (stream, _) = listener.accept().expect("a connection");
                move || take_stream(stream)
            })
        };
        let threads: Vec<_> = (0..flows).map(|_| take()).collect();
        let mut sums: Vec<_> = threads.into_iter().map(|t| t.join().expect("a stream")).collect();
        sums.sort_unstable();
        sums
    });
    listens.recv().expect("the receiver");
    let sender = net.spawn("a", move || {
        let give = |n: usize| {
            let stream = TcpStream::connect_timeout(&to, PATIENCE).expect("a connection");
            std::thread::spawn(move || give_stream(stream, n as u64 + 1, length))
        };
        let threads: Vec<_> = (0..flows).map(give).collect();
        let mut sums: Vec<_> = threads.into_iter().map(|t| t.join().expect("a stream")).collect();
        sums.sort_unstable();
        sums
    });
    let sent = sender.join().expect("the sender");
    assert_eq!(receiver.join().expect("the receiver"), sent, "{target}, {flows} streams");
}

/// The number of octets, and their sum.
fn take_stream(mut stream: TcpStream) -> (usize, u64) {
    stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
    let (mut length, mut sum, mut bytes) = (0, DefaultHasher::new(), vec![0; 1 << 16]);
    loop {
        match stream.read(&mut bytes).expect("octets") {
            0 => return (length, sum.finish()),
            n => {
                length += n;
                // In the same pieces at both ends, however they came.
                bytes[..n].iter().for_each(|byte| sum.write_u8(*byte));
            }
        }
    }
}

fn give_stream(mut stream: TcpStream, seed: u64, length: usize) -> (usize, u64) {
    stream.set_write_timeout(Some(PATIENCE)).expect("timeout");
    let (mut noise, mut sum, mut bytes) = (Rng::with_seed(seed), DefaultHasher::new(), vec![0; 1 << 16]);
    for begin in (0..length).step_by(bytes.len()) {
        let n = bytes.len().min(length - begin);
        noise.fill(&mut bytes[..n]);
        bytes[..n].iter().for_each(|byte| sum.write_u8(*byte));
        stream.write_all(&bytes[..n]).expect("octets");
    }
    (length, sum.finish())
}

/// Sends `n` datagrams of different lengths, a few a millisecond; all must arrive as they were sent.
pub fn datagrams(net: &Net, target: &str, n: usize) {
    let to = address(target);
    let (bound, listens) = channel();
    let payload = |i: usize| {
        let mut bytes = vec![0; 1 + i * 7 % 1_400];
        Rng::with_seed(i as u64).fill(&mut bytes);
        bytes
    };
    let receiver = net.spawn("b", move || {
        let socket = open_port(|| UdpSocket::bind(to));
        set_socket_recv_buffer_size_force(&socket, 8 << 20).expect("buffer");
        socket.set_read_timeout(Some(PATIENCE)).expect("timeout");
        bound.send(()).expect("the test waits");
        let mut bytes = [0; 2_000];
        for i in 0..n {
            let length = socket.recv(&mut bytes).expect("a datagram");
            assert!(bytes[..length] == payload(i), "datagram {i} is another one");
        }
    });
    listens.recv().expect("the receiver");
    let sender = net.spawn("a", move || {
        let any = if to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).expect("bind");
        for i in 0..n {
            socket.send_to(&payload(i), to).expect("sent");
            if i % 4 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    sender.join().expect("the sender");
    receiver.join().expect("the receiver");
}
