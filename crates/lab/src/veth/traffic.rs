//! The generator at g0 and the sink at s0.

use super::testbed::{GENERATOR, SINK, Testbed};
use crate::namespace::Namespace;
use anyhow::{Result, anyhow};
use causeway_bpf::{Asm, Code, Cond, MappedArray, Program, ProgramKind, Reg, Size, XdpLink, XdpMode, action};
use causeway_netio::interface::Interface;
use causeway_netio::live::LiveTx;
use causeway_packet::checksum::checksum;
use causeway_packet::{BATCH, Batch, Packet};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Frames that the generator sends at once.
const BURST: usize = BATCH / 2;
/// Frames that may be on their way: fewer than the queues hold, so that forwarding is measured and not overflow.
const AHEAD: u64 = 2 * BATCH as u64;
/// Time after which frames on their way are taken for lost.
const LOST: Duration = Duration::from_millis(2);
/// Bytes of the checksum that a frame has on the wire and not in memory.
const FCS: usize = 4;
const ETHERTYPE_IPV4: i32 = 0x0800;
const PROTOCOL_UDP: i32 = 17;

/// Counts the UDP packets that arrive at s0 and drops them in the driver; the rest is the host's.
pub struct Sink {
    count: MappedArray,
    _link: XdpLink,
}

impl Sink {
    /// Attaches the sink.
    pub fn new(bed: &Testbed) -> Result<Sink> {
        let count = MappedArray::new("count", 8, 1)?;
        let program = Program::load(ProgramKind::Xdp, "sink", &sink(&count)?)?;
        let attach = || Ok(XdpLink::attach(&program, "s0", Interface::open("s0")?.index, XdpMode::Native)?);
        let link = bed.sink.run(attach)?;
        Ok(Sink { count, _link: link })
    }

    /// Packets so far.
    pub fn count(&self) -> u64 {
        self.count.word(0).load(Ordering::Relaxed)
    }
}

fn sink(count: &MappedArray) -> Result<Code> {
    let mut a = Asm::new();
    let pass = a.label();
    a.xdp_data(Reg::R1, Reg::R2, Reg::R3);
    a.xdp_require(Reg::R2, Reg::R3, 34, Reg::R4, pass);
    a.load(Size::H, Reg::R4, Reg::R2, 12);
    a.to_be(Reg::R4, 16);
    a.jump_if(Cond::Ne, Reg::R4, ETHERTYPE_IPV4, pass);
    a.load(Size::B, Reg::R4, Reg::R2, 23);
    a.jump_if(Cond::Ne, Reg::R4, PROTOCOL_UDP, pass);
    a.map_value(Reg::R1, count.map().as_fd(), 0);
    a.mov(Reg::R2, 1);
    a.atomic_add(Size::D, Reg::R1, 0, Reg::R2);
    a.mov(Reg::R0, action::XDP_DROP);
    a.exit();
    a.bind(pass);
    a.mov(Reg::R0, action::XDP_PASS);
    a.exit();
    Ok(a.finish()?)
}

/// A generator that sends until this is dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

/// What is to be sent.
#[derive(Clone, Copy)]
pub struct Stream {
    /// Bytes of a frame on the wire, with the checksum.
    pub frame_len: usize,
    /// Frames a second; as many as arrive without it.
    pub rate_pps: Option<f64>,
    /// The processor that the router runs on, which the generator avoids.
    pub avoid: usize,
    /// Where frames go.
    pub to: To,
}

/// Where frames go.
#[derive(Clone, Copy)]
pub enum To {
    /// To the sink, all of them.
    Sink,
    /// Each to an address by chance: the first that may be, and how many.
    Any(u32, u32),
}

impl Load {
    /// Starts to send from g0.
    pub fn start(bed: &Testbed, sink: &Arc<Sink>, stream: Stream) -> Result<Load> {
        let gateway = bed.router.run(|| Ok(Interface::open("r0")?.mac))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (from, stopped, sink) = (bed.generator.clone(), stop.clone(), sink.clone());
        let thread = std::thread::spawn(move || generate(&from, gateway, stream, &sink, &stopped));
        Ok(Load { stop, thread: Some(thread) })
    }

    /// Stops, and says what went wrong.
    pub fn finish(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().map(JoinHandle::join);
        thread.map_or(Ok(()), |end| end.unwrap_or_else(|_| Err(anyhow!("the generator failed"))))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn generate(
    from: &Namespace,
    gateway: [u8; 6],
    stream: Stream,
    sink: &Sink,
    stop: &AtomicBool,
) -> Result<()> {
    from.enter()?;
    keep_off(stream.avoid);
    let g0 = Interface::open("g0")?;
    let frame = udp_frame(gateway, g0.mac, stream.frame_len.saturating_sub(FCS));
    let mut live = LiveTx::new(g0.index)?;
    let mut chance = Chance(1);
    let mut send = |n: usize| -> u64 {
        let mut batch = Batch::new();
        batch.extend((0..n).filter_map(|_| Packet::from_bytes(&frame)));
        if let To::Any(first, addresses) = stream.to {
            batch.iter_mut().for_each(|p| send_to(p.data_mut(), first + chance.below(addresses)));
        }
        live.send(&mut batch).map_or(0, |(packets, _)| packets as u64)
    };
    match stream.rate_pps {
        Some(rate) => paced(rate, stop, &mut send),
        None => closed_loop(sink, stop, &mut send),
    }
    Ok(())
}

/// A frame of `len` bytes (at least 42) with a UDP packet from the generator to the sink.
fn udp_frame(to: [u8; 6], from: [u8; 6], len: usize) -> Vec<u8> {
    const HEADERS: usize = 42;
    let len = len.max(HEADERS);
    let ip_len = (len - 14) as u16;
    let mut f = Vec::with_capacity(len);
    f.extend(to);
    f.extend(from);
    f.extend((ETHERTYPE_IPV4 as u16).to_be_bytes());
    f.extend([0x45, 0]);
    f.extend(ip_len.to_be_bytes());
    f.extend([0, 0, 0, 0, 64, PROTOCOL_UDP as u8, 0, 0]);
    f.extend(GENERATOR);
    f.extend(SINK);
    let sum = checksum(&f[14..34]);
    f[24..26].copy_from_slice(&sum.to_be_bytes());
    // Ports of the discard service; the checksum is left out, as IPv4 allows.
    for field in [9, 9, ip_len - 20, 0] {
        f.extend(field.to_be_bytes());
    }
    f.resize(len, 0);
    f
}

/// Has a frame go to another address.
fn send_to(frame: &mut [u8], address: u32) {
    frame[30..34].copy_from_slice(&address.to_be_bytes());
    frame[24..26].fill(0);
    let sum = checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

/// Random numbers, the same in every run: Marsaglia's xorshift of 64 bits.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u32) -> u32 {
        for (left, by) in [(true, 13), (false, 7), (true, 17)] {
            self.0 ^= if left { self.0 << by } else { self.0 >> by };
        }
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// Sends as fast as frames arrive.
fn closed_loop(sink: &Sink, stop: &AtomicBool, send: &mut impl FnMut(usize) -> u64) {
    let mut sent = sink.count();
    while !stop.load(Ordering::Relaxed) {
        sent += send(BURST);
        let since = Instant::now();
        while sent.saturating_sub(sink.count()) > AHEAD {
            if since.elapsed() > LOST {
                sent = sink.count();
            }
            // Sleeping, not spinning: the kernel's interrupt thread of this processor may be what we wait for.
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

/// Sends `rate` frames a second, in bursts as small as the timer lets them be.
fn paced(rate: f64, stop: &AtomicBool, send: &mut impl FnMut(usize) -> u64) {
    let (mut start, mut sent) = (Instant::now(), 0.0);
    while !stop.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * rate - sent) as usize;
        if due > BURST {
            // Held up: what was missed is not made up for.
            (start, sent) = (Instant::now(), 0.0);
        }
        if due > 0 {
            sent += send(due.min(BURST)) as f64;
        }
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// Keeps the calling thread off the router's processor, where there is another.
pub fn keep_off(processor: usize) {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let mut set = CpuSet::new();
    (0..all.min(CpuSet::MAX_CPU)).filter(|&cpu| cpu != processor).for_each(|cpu| set.set(cpu));
    if set.count() > 0 {
        // Where it may not choose, it runs where it is put.
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_whole_udp_packets() {
        for len in [60, 508, 1514] {
            let f = udp_frame([1; 6], [2; 6], len);
            assert_eq!(f.len(), len);
            assert_eq!(checksum(&f[14..34]), 0, "the header's checksum");
            assert_eq!(usize::from(u16::from_be_bytes([f[16], f[17]])), len - 14);
            assert_eq!(usize::from(u16::from_be_bytes([f[38], f[39]])), len - 34);
        }
    }

    #[test]
    fn a_frame_for_another_address_is_whole() {
        let mut f = udp_frame([1; 6], [2; 6], 60);
        send_to(&mut f, 0x0102_0304);
        assert_eq!((&f[30..34], checksum(&f[14..34])), (&[1, 2, 3, 4][..], 0));
        let mut chance = Chance(1);
        let drawn: Vec<u32> = (0..10_000).map(|_| chance.below(10)).collect();
        assert!((0..10).all(|n| drawn.iter().filter(|&&d| d == n).count() > 800), "all are as likely");
    }
}
