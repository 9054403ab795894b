//! What a veth port can do: AF_XDP reception and transmission and live frames, against a bare XDP redirect.
//!
//! `cargo run --release -p causeway-netio --example veth_rates [SECONDS]`, as root. Everything happens in a network
//! namespace that goes with the process: g0--r0 [router] r1--s0, 60-byte frames (64 with the checksum). The generator
//! runs on one thread together with r0's interrupt work; the router on another.

#![allow(unsafe_code)]

use causeway_bpf::{
    Asm, Code, Helper, MappedArray, Program, ProgramKind, Reg, Size, XdpLink, XdpMode, action,
};
use causeway_netio::front::{Front, Take};
use causeway_netio::interface::Interface;
use causeway_netio::live::LiveTx;
use causeway_netio::{Port, Result, afxdp};
use causeway_packet::{BATCH, Batch, Packet};
use std::error::Error;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const FRAME_LEN: usize = 60;
/// Windows of a measurement, of which the cheapest counts: in a virtual machine the first touch of a page is the
/// host's work, some 10 µs, and live frames take pages as the kernel hands them out.
const WINDOWS: u32 = 5;

fn ip(line: &str) -> std::result::Result<(), Box<dyn Error>> {
    let status = Command::new("ip").args(line.split_whitespace()).status()?;
    if status.success() { Ok(()) } else { Err(format!("ip {line}: {status}").into()) }
}

/// Counts in word 0 of `count`, then drops, or redirects to an interface.
fn counting(count: &MappedArray, redirect_to: Option<u32>) -> Result<Code> {
    let mut a = Asm::new();
    a.map_value(Reg::R1, count.map().as_fd(), 0);
    a.mov(Reg::R2, 1);
    a.atomic_add(Size::D, Reg::R1, 0, Reg::R2);
    match redirect_to {
        Some(ifindex) => {
            a.mov(Reg::R1, ifindex as i32);
            a.mov(Reg::R2, 0);
            a.call(Helper::Redirect);
        }
        None => a.mov(Reg::R0, action::XDP_DROP),
    }
    a.exit();
    a.finish()
}

/// A program on an interface that counts what arrives.
struct Counted {
    count: MappedArray,
    _link: XdpLink,
}

impl Counted {
    fn new(name: &str, redirect_to: Option<u32>) -> Result<Counted> {
        let count = MappedArray::new("count", 8, 1)?;
        let program = Program::load(ProgramKind::Xdp, "count", &counting(&count, redirect_to)?)?;
        let link = XdpLink::attach(&program, name, Interface::open(name)?.index, XdpMode::Native)?;
        Ok(Counted { count, _link: link })
    }

    fn read(&self) -> u64 {
        self.count.word(0).load(Ordering::Relaxed)
    }
}

/// CPU time of this process so far: unlike the clock, it does not count what other processes take.
fn cpu_s() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to the live `t`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

/// A batch of `n` equal frames to `mac`.
fn frames(mac: [u8; 6], n: usize) -> Batch {
    let mut bytes = [0u8; FRAME_LEN];
    bytes[..6].copy_from_slice(&mac);
    bytes[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 8, 0]);
    bytes[14..34].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 9, 198, 51, 100, 1]);
    let mut batch = Batch::new();
    batch.extend((0..n).filter_map(|_| Packet::from_bytes(&bytes)));
    batch
}

/// Sends from g0 until `stop`, no further ahead of what `count` says has arrived than the queues hold: what is
/// measured is forwarding, not overflow.
fn generate(stop: &AtomicBool, count: &(impl Fn() -> u64 + Sync)) -> Result<()> {
    const AHEAD: u64 = 2 * BATCH as u64;
    const LOST: Duration = Duration::from_millis(2);
    let (g0, r0) = (Interface::open("g0")?, Interface::open("r0")?);
    let mut live = LiveTx::new(g0.index)?;
    let mut sent = count();
    while !stop.load(Ordering::Relaxed) {
        sent += live.send(&mut frames(r0.mac, BATCH / 2)).map_or(0, |s| s.0) as u64;
        let since = Instant::now();
        while sent.saturating_sub(count()) > AHEAD {
            if since.elapsed() > LOST {
                sent = count();
            }
            // Sleeping, not spinning: the kernel's interrupt thread of this CPU may be what we wait for.
            std::thread::sleep(Duration::from_micros(20));
        }
    }
    Ok(())
}

/// Packets a second and CPU time a packet of one scenario, the generator's and the sink's included.
#[derive(Clone, Copy)]
struct Cost {
    mpps: f64,
    cpu_ns: f64,
}

/// The cost of what `count` counts while the generator runs and `step` is called over and over.
fn measure(seconds: f64, count: impl Fn() -> u64 + Sync, mut step: impl FnMut() -> bool) -> Result<Cost> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let generator = s.spawn(|| generate(&stop, &count));
        let warm = Instant::now();
        let mut run = |until: Duration, from: Instant| {
            while from.elapsed() < until {
                if !step() {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        };
        run(Duration::from_millis(200), warm);
        let mut cost = Cost { mpps: 0.0, cpu_ns: f64::INFINITY };
        for _ in 0..WINDOWS {
            let (start, cpu, before) = (Instant::now(), cpu_s(), count());
            run(Duration::from_secs_f64(seconds / f64::from(WINDOWS)), start);
            let n = (count() - before) as f64;
            let window =
                Cost { mpps: n / start.elapsed().as_secs_f64() / 1e6, cpu_ns: (cpu_s() - cpu) * 1e9 / n };
            if window.cpu_ns < cost.cpu_ns {
                cost = window;
            }
        }
        stop.store(true, Ordering::Relaxed);
        generator.join().unwrap_or(Ok(())).map(|()| cost)
    })
}

fn forward(from: &mut Port, to: &mut Port, batch: &mut Batch) -> bool {
    let (rx, tx) = (&mut from.queues[0].rx, &mut to.queues[0].tx);
    rx.poll(batch, BATCH);
    let got = batch.len();
    while !batch.is_empty() {
        tx.offer(batch);
        tx.flush();
    }
    got > 0
}

/// Microseconds of CPU time a packet when `send` gets batches of `size`; making them is measured too, and small.
fn transmit_cost_us(size: usize, seconds: f64, mut send: impl FnMut(&mut Batch) -> usize) -> f64 {
    let (start, cpu, mut sent) = (Instant::now(), cpu_s(), 0);
    while start.elapsed().as_secs_f64() < seconds {
        sent += send(&mut frames([2; 6], size));
    }
    (cpu_s() - cpu) * 1e6 / sent as f64
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(1.0), |s| s.parse::<f64>())?;
    // SAFETY: changes the namespace of this thread and of those it starts later, nothing in memory.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err("needs root to make a network namespace".into());
    }
    for (a, b) in [("g0", "r0"), ("r1", "s0")] {
        ip(&format!("link add {a} type veth peer name {b}"))?;
        ip(&format!("link set dev {a} up"))?;
        ip(&format!("link set dev {b} up"))?;
    }
    // The sink stays: it also lets redirects to r1 through.
    let sink = Counted::new("s0", None)?;
    let idle = || false;

    let r0 = Counted::new("r0", None)?;
    let generator = measure(seconds, || r0.read(), idle)?;
    drop(r0);
    let r0 = Counted::new("r0", Some(Interface::open("r1")?.index))?;
    let redirect = measure(seconds, || sink.read(), idle)?;
    drop(r0);

    let mut rows = vec![("generator alone, dropped at r0", generator), ("bare XDP redirect", redirect)];
    let front = Arc::new(Front::new(Take::TRANSIT)?);
    let ring = afxdp::Options { live: false, ..Default::default() };
    let mut batch = Batch::new();
    {
        let mut from = afxdp::open("r0", &ring, &front)?;
        let received = AtomicU64::new(0);
        let rate = measure(
            seconds,
            || received.load(Ordering::Relaxed),
            || {
                from.queues[0].rx.poll(&mut batch, BATCH);
                let n = batch.len();
                batch.clear();
                received.fetch_add(n as u64, Ordering::Relaxed);
                n > 0
            },
        )?;
        rows.push(("AF_XDP receive, dropped", rate));
    }
    for (name, options) in [("AF_XDP forward, socket", &ring), ("AF_XDP forward, live", &Default::default())]
    {
        let (mut from, mut to) = (afxdp::open("r0", &ring, &front)?, afxdp::open("r1", options, &front)?);
        println!("{name}: {}", to.mode);
        rows.push((name, measure(seconds, || sink.read(), || forward(&mut from, &mut to, &mut batch))?));
    }
    println!("\n{:<34} {:>6} {:>14} {:>12}", "60-byte frames", "Mpps", "CPU ns/packet", "to redirect");
    for (name, cost) in rows {
        let ratio = redirect.cpu_ns / cost.cpu_ns;
        println!("{name:<34} {:>6.2} {:>14.0} {ratio:>12.2}", cost.mpps, cost.cpu_ns);
    }
    println!("\ntransmission alone, CPU µs a packet\n{:>6} {:>8} {:>8}", "batch", "socket", "live");
    let mut port = afxdp::open("r1", &ring, &front)?;
    let mut live = LiveTx::new(port.ifindex)?;
    for size in [1, 4, 8, 12, 14, 16, 24, 32, 64, 256] {
        let socket = transmit_cost_us(size, seconds / 4.0, |batch| {
            let tx = &mut port.queues[0].tx;
            let sent = tx.offer(batch);
            tx.flush();
            sent
        });
        let live = transmit_cost_us(size, seconds / 4.0, |batch| live.send(batch).map_or(0, |s| s.0));
        println!("{size:>6} {socket:>8.2} {live:>8.2}");
    }
    Ok(())
}
