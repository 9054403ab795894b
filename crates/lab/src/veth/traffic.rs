//! The generator at g0 and the sink at s0.

use super::packets::{FCS, PROTOCOL_UDP, To, any_address, frame, send_to};
use super::testbed::{Testbed, Version};
use crate::namespace::Namespace;
use anyhow::{Result, anyhow};
use causeway_bpf::{Asm, Code, Cond, MappedArray, Program, ProgramKind, Reg, Size, XdpLink, XdpMode, action};
use causeway_netio::interface::Interface;
use causeway_netio::live::LiveTx;
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

/// Counts the generator's packets that arrive at s0 and drops them in the driver; the rest is the host's.
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
    let (pass, v6, mine) = (a.label(), a.label(), a.label());
    a.xdp_data(Reg::R1, Reg::R2, Reg::R3);
    a.xdp_require(Reg::R2, Reg::R3, 34, Reg::R4, pass);
    a.load(Size::H, Reg::R4, Reg::R2, 12);
    a.to_be(Reg::R4, 16);
    a.jump_if(Cond::Eq, Reg::R4, i32::from(Version::V6.ethertype()), v6);
    a.jump_if(Cond::Ne, Reg::R4, i32::from(Version::V4.ethertype()), pass);
    a.load(Size::B, Reg::R4, Reg::R2, 23);
    a.jump_if(Cond::Eq, Reg::R4, i32::from(PROTOCOL_UDP), mine);
    a.jump(pass);
    a.bind(v6);
    a.load(Size::B, Reg::R4, Reg::R2, 20);
    a.jump_if(Cond::Ne, Reg::R4, i32::from(PROTOCOL_UDP), pass);
    a.bind(mine);
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
    let version = stream.to.version();
    let frame = frame(version, gateway, g0.mac, stream.frame_len.saturating_sub(FCS));
    let mut live = LiveTx::new(g0.index)?;
    let mut rng = fastrand::Rng::with_seed(1);
    let mut send = |n: usize| -> u64 {
        let mut batch = Batch::new();
        batch.extend((0..n).filter_map(|_| Packet::from_bytes(&frame)));
        if let To::Any(_, networks) = stream.to {
            batch
                .iter_mut()
                .for_each(|p| send_to(version, p.data_mut(), any_address(version, networks, &mut rng)));
        }
        live.send(&mut batch).map_or(0, |(packets, _)| packets as u64)
    };
    match stream.rate_pps {
        Some(rate) => paced(rate, stop, &mut send),
        None => closed_loop(sink, stop, &mut send),
    }
    Ok(())
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
