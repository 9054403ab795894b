//! When the kernel has let go of the queues of ports that were closed.

use causeway_engine::usable_processors;
use causeway_packet::ledger::census;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

/// How long it is waited for, and how often it is looked.
const PATIENCE: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_millis(10);

/// Waits until all queues are free; whether they are. One is as long as there is a buffer that was sent from it. `until` says by
/// when it is to be given up, of the usual time.
///
/// A buffer that a program on another processor has read is left to the processor that has made it, which frees it when it
/// receives something next. While the kernel forwards all packets on one processor, the other may receive nothing for long. So
/// each is given something to receive.
pub fn wait(until: impl Fn(Instant) -> Instant) -> bool {
    let usual = Instant::now() + PATIENCE;
    while !census().rings.is_empty() {
        if until(usual) < Instant::now() {
            return false;
        }
        wake_processors();
        std::thread::sleep(PERIOD);
    }
    true
}

fn wake_processors() {
    // The thread is not to stay where it was last.
    let thread = std::thread::Builder::new().spawn(|| {
        // Where there is no loopback, or a processor cannot be had, time helps.
        let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) else { return };
        let Ok(address) = socket.local_addr() else { return };
        for processor in usable_processors() {
            let mut set = CpuSet::new();
            set.set(processor);
            if sched_setaffinity(None, &set).is_ok() {
                let _ = socket.send_to(&[0], address);
            }
        }
    });
    let _ = thread.map(std::thread::JoinHandle::join);
}
