//! Network namespaces for tests: each test gets one of its own, which goes with the test's thread.

use crate::front::{Front, Take};
use causeway_bpf::{Asm, Program, ProgramKind, Reg, XdpLink, XdpMode, action};
use causeway_packet::ledger::{Census, census};
use causeway_packet::{Packet, pool};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Type of a frame that this machine sent itself.
const PACKET_OUTGOING: u8 = 4;
/// What is sent to a packet socket begins with a header that says what is left to be done with it.
const PACKET_VNET_HDR: i32 = 15;

/// Tests with interfaces run one after another: they compare the pool's free frames before and after.
static ONE: Mutex<()> = Mutex::new(());

/// Held by tests that use the pool, so that the others can count its frames.
pub struct PoolLock(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

/// Waits for the other tests that use the pool.
pub fn pool_lock() -> PoolLock {
    PoolLock(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Drop for PoolLock {
    /// The next test's counts would miss what this thread keeps.
    fn drop(&mut self) {
        pool::flush_thread();
    }
}

/// Waits until closed sockets have given their frames back, and checks that all frames are free then and can be had.
pub fn assert_all_free() {
    for _ in 0..1_000 {
        if census().rings.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let frames = pool::config().frames;
    assert_eq!(census(), Census { free: frames, ..Census::default() });
    assert_eq!(free_frames(), u64::from(frames), "what is free can be had");
}

/// All free frames but `n`, as packets: what is left is a tiny pool.
pub fn hoard_all_but(n: usize) -> Vec<Packet> {
    let mut all: Vec<Packet> = std::iter::from_fn(Packet::new).collect();
    all.truncate(all.len() - n);
    all
}

/// Runs `test` on a thread in a new network namespace with the given veth pairs, all up. Skips with a message when
/// that is not allowed.
pub fn run(pairs: &'static [(&'static str, &'static str)], test: impl FnOnce() + Send + 'static) {
    let _one = pool_lock();
    elsewhere(pairs, || {
        test();
        assert_all_free();
    });
}

/// The same within a test: in one more namespace.
pub fn elsewhere(pairs: &'static [(&'static str, &'static str)], test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        // SAFETY: changes only this thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return eprintln!("skipped: needs root to make a network namespace");
        }
        ip("ip link set dev lo up");
        for (a, b) in pairs {
            ip(&format!("ip link add {a} type veth peer name {b}"));
            up(a);
            up(b);
        }
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Sets an interface up, without neighbour discovery of the kernel's own among the test's frames.
pub fn up(name: &str) {
    ip(&format!("ip link set dev {name} addrgenmode none"));
    ip(&format!("ip link set dev {name} up"));
}

/// Runs a command line in the test's namespace and returns what it printed.
pub fn ip(line: &str) -> String {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a command");
    let out = Command::new(program).args(words).output().unwrap_or_else(|e| panic!("{line}: {e}"));
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A native XDP program on `name` that passes everything: gives a veth the NAPI that redirects to its peer need.
pub fn pass_program(name: &str) -> XdpLink {
    let mut a = Asm::new();
    a.mov(Reg::R0, action::XDP_PASS);
    a.exit();
    let program = Program::load(ProgramKind::Xdp, "pass", &a.finish().expect("assembled")).expect("loaded");
    let index = crate::interface::Interface::open(name).expect("interface").index;
    XdpLink::attach(&program, name, index, XdpMode::Native).expect("attached")
}

/// Programs for ports, with a lease that stands.
pub fn front() -> Arc<Front> {
    let front = Front::new(Take::TRANSIT).expect("a front");
    front.lease().renew(u64::MAX);
    Arc::new(front)
}

/// Frames that are in no packet and no ring; what this thread's magazine holds is given back first.
pub fn free_frames() -> u64 {
    pool::flush_thread();
    pool::shared_free()
}

/// A frame of `len` bytes to `mac`: UDP from 192.0.2.9 to 198.51.100.`host`.
pub fn udp_frame(mac: [u8; 6], host: u8, len: usize) -> Vec<u8> {
    let mut f = vec![0xa5; len];
    f[..6].copy_from_slice(&mac);
    f[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 8, 0]);
    f[14..34].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 9, 198, 51, 100, host]);
    f[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
    f
}

/// A plain packet socket, as a host would have.
pub struct Raw(OwnedFd);

impl Raw {
    /// A socket that sends and receives on the interface `name`.
    pub fn open(name: &str) -> Raw {
        let index = crate::interface::Interface::open(name).expect("interface").index;
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: makes a new descriptor, checked and owned below.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(protocol)) };
        assert!(fd >= 0, "packet socket");
        // SAFETY: new and ours.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain data, for which zeros are valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = index as i32;
        let len = size_of_val(&address) as u32;
        // SAFETY: the address is live and its size is given.
        let bound = unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), len) };
        assert_eq!(bound, 0, "bind");
        Raw(fd)
    }

    /// Sends one frame whose checksum, so far behind its start, is left to others, over all from `start` on.
    pub fn send_unfinished(&self, frame: &[u8], start: u16, checksum: u16) {
        self.send_with(&[0; 5], start, checksum, frame);
    }

    /// Sends a super-packet of TCP over IPv4 without options, whose segments have so many octets.
    pub fn send_super(&self, frame: &[u8], segment: u16) {
        let [[headers, _], [low, high]] = [54u16, segment].map(u16::to_ne_bytes);
        self.send_with(&[1, headers, 0, low, high], 34, 16, frame);
    }

    /// With a header that says that a checksum is needed, and this: type, bytes of headers and of segments.
    fn send_with(&self, segments: &[u8; 5], start: u16, checksum: u16, frame: &[u8]) {
        let (on, len) = (1i32, size_of::<i32>() as u32);
        let fd = self.0.as_raw_fd();
        // SAFETY: the value is live and as long as given.
        let set = unsafe {
            libc::setsockopt(fd, libc::SOL_PACKET, PACKET_VNET_HDR, std::ptr::from_ref(&on).cast(), len)
        };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        // `struct virtio_net_hdr`: flags, type, lengths, where the sum starts and goes.
        let header = [&[1][..], segments, &start.to_ne_bytes(), &checksum.to_ne_bytes()].concat();
        self.send(&[&header[..], frame].concat());
    }

    /// Sends one frame.
    pub fn send(&self, frame: &[u8]) {
        // SAFETY: the buffer is live and as long as given.
        let n = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(n, frame.len() as isize, "{}", std::io::Error::last_os_error());
    }

    /// The next `n` incoming frames, or those that came within half a second.
    pub fn receive(&self, n: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut idle_ms = 0;
        while frames.len() < n && idle_ms < 500 {
            let mut frame = vec![0; 4096];
            // SAFETY: plain data, for which zeros are valid.
            let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            let mut from_len = size_of_val(&from) as u32;
            let at = frame.as_mut_ptr().cast();
            let fd = self.0.as_raw_fd();
            let address = std::ptr::from_mut(&mut from).cast();
            // SAFETY: buffer and address are live and as long as given.
            let len =
                unsafe { libc::recvfrom(fd, at, frame.len(), libc::MSG_DONTWAIT, address, &mut from_len) };
            if len < 0 {
                std::thread::sleep(std::time::Duration::from_millis(2));
                idle_ms += 2;
            } else if from.sll_pkttype != PACKET_OUTGOING {
                frame.truncate(len as usize);
                frames.push(frame);
            }
        }
        frames
    }
}
