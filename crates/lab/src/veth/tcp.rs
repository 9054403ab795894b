//! TCP between the hosts, with the offloads that a veth has by default: packets of up to 64 kB whose checksums are open.
//!
//! The stream is our own: one thread writes zeros as fast as it can, another reads them. What counts is what arrived. Hosts and
//! router share the processors, so that the processor time is all that the machine was not idle, by /proc/stat: it has the
//! hosts' share in it, the same for all ways.

use super::possible;
use super::testbed::{Hosts, Testbed, Version};
use super::way::{Forwarder, Way};
use crate::Settings;
use crate::inside::Meter;
use crate::report::{Report, Row};
use anyhow::{Context, Result, anyhow, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Versions and streams at a time.
const LOADS: [(Version, usize); 4] = [(Version::V4, 1), (Version::V4, 8), (Version::V6, 1), (Version::V6, 8)];
/// The least that a round lasts: /proc/stat counts in hundredths of a second.
const LEAST: Duration = Duration::from_secs(1);
/// How long it flows before it is measured, while it finds its window and a router gets the right to forward.
const WARM_UP: Duration = Duration::from_millis(1_500);
/// The port of the discard service.
const PORT: u16 = 9;
/// Bytes that are written and read at once.
const CHUNK: usize = 128 << 10;
/// How long a stream may stand still before something is wrong.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one measurement gives.
#[derive(Clone, Copy)]
struct Cost {
    gbit_s: f64,
    cpu_ns: f64,
    /// Packets that the kernel forwarded, for each megabyte.
    by_kernel: f64,
}

/// Rates of TCP, and what a byte of it takes.
pub fn tcp(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Between namespaces: TCP with a veth's default offloads, streams of our own");
    if !possible("ip") {
        return Ok(());
    }
    let bed = Testbed::new(Hosts::Offloading)?;
    // By load, then by way, then by round.
    let mut costs = vec![vec![Vec::new(); Way::TCP.len()]; LOADS.len()];
    for _ in 0..settings.rounds {
        for (w, way) in Way::TCP.into_iter().enumerate() {
            let forwarder = Forwarder::start(&bed, way, settings.processor)?;
            for (load, costs) in LOADS.into_iter().zip(&mut costs) {
                bed.check()?;
                let cost = measure(&bed, load, settings.round.max(LEAST));
                costs[w].push(cost.with_context(|| format!("TCP by way of {}", way.name()))?);
            }
            drop(forwarder);
        }
    }
    for ((version, streams), costs) in LOADS.into_iter().zip(&costs) {
        let plural = if streams == 1 { "" } else { "s" };
        let of = format!("TCP/{}, {streams} stream{plural}", version.name());
        compare(report, &of, costs, ("Gbit/s", "rate"), |cost| cost.gbit_s);
        compare(report, &of, costs, ("ns/byte", "processor time"), |cost| cost.cpu_ns);
    }
    Ok(())
}

fn compare(
    report: &mut Report,
    of: &str,
    ways: &[Vec<Cost>],
    (unit, what): (&str, &str),
    value: impl Fn(&Cost) -> f64,
) {
    let mut kernel: Option<Row> = None;
    for (way, costs) in Way::TCP.into_iter().zip(ways) {
        let rounds: Vec<f64> = costs.iter().map(&value).collect();
        let name = format!("{of}/{}/{what}", way.name());
        let Some(row) = Row::of(name, what, unit, &rounds) else { continue };
        match &kernel {
            Some(kernel) => {
                let by_kernel = costs.iter().map(|cost| cost.by_kernel).fold(0.0, f64::max);
                let note = format!("the kernel forwarded {by_kernel:.1} packets a megabyte at most");
                report.add(row.against(kernel).note(note));
            }
            None => report.add(kernel.insert(row).clone()),
        }
    }
}

fn measure(bed: &Testbed, (version, streams): (Version, usize), round: Duration) -> Result<Cost> {
    let processors = (0..std::thread::available_parallelism().map_or(1, usize::from)).collect();
    let meter = Meter::Processors(processors);
    let transfer = Transfer::start(bed, version, streams)?;
    std::thread::sleep(WARM_UP);
    let (start, bytes, by_kernel) = (Instant::now(), transfer.bytes(), bed.kernel_forwarded()?);
    let cpu_ns = meter.read_ns()?;
    std::thread::sleep(round);
    let cpu_ns = meter.read_ns()? - cpu_ns;
    let (seconds, bytes) = (start.elapsed().as_secs_f64(), transfer.bytes() - bytes);
    let by_kernel = bed.kernel_forwarded()? - by_kernel;
    transfer.finish()?;
    if bytes == 0 {
        bail!("nothing of {streams} streams arrived");
    }
    let bytes = bytes as f64;
    Ok(Cost {
        gbit_s: bytes * 8.0 / seconds / 1e9,
        cpu_ns: cpu_ns as f64 / bytes,
        by_kernel: by_kernel as f64 / bytes * 1e6,
    })
}

/// Streams from the generator's host to the sink's, until this is dropped.
struct Transfer {
    bytes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Transfer {
    fn start(bed: &Testbed, version: Version, streams: usize) -> Result<Transfer> {
        let any: IpAddr = match version {
            Version::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Version::V6 => Ipv6Addr::UNSPECIFIED.into(),
        };
        let listener = bed.sink.run(|| Ok(TcpListener::bind((any, PORT))?))?;
        let to = SocketAddr::from((version.sink(), PORT));
        let mut transfer = Transfer { bytes: Arc::default(), stop: Arc::default(), threads: Vec::new() };
        for _ in 0..streams {
            let from = bed.generator.run(|| Ok(TcpStream::connect_timeout(&to, PATIENCE)?))?;
            // The other end is there as soon as this one is connected.
            let (into, _) = listener.accept()?;
            let (stop, bytes) = (transfer.stop.clone(), transfer.bytes.clone());
            let stopped = stop.clone();
            transfer.threads.push(std::thread::spawn(move || write(from, &stop)));
            transfer.threads.push(std::thread::spawn(move || read(into, &bytes, &stopped)));
        }
        Ok(transfer)
    }

    /// Those that arrived.
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Stops, and says what went wrong.
    fn finish(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let mut ends = self.threads.drain(..).map(JoinHandle::join);
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err(anyhow!("a thread failed"))))
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn write(mut stream: TcpStream, stop: &AtomicBool) -> Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let zeros = vec![0; CHUNK];
    while !stop.load(Ordering::Relaxed) {
        match stream.write(&zeros) {
            Ok(_) => {}
            // The reader has gone already.
            Err(_) if stop.load(Ordering::Relaxed) => break,
            Err(error) => return Err(error).context("a stream cannot be written"),
        }
    }
    Ok(())
}

fn read(mut stream: TcpStream, bytes: &AtomicU64, stop: &AtomicBool) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut chunk = vec![0; CHUNK];
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => drop(bytes.fetch_add(n as u64, Ordering::Relaxed)),
            Err(_) if stop.load(Ordering::Relaxed) => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("a stream cannot be read"),
        }
    }
    // A writer that waits for room must not wait any longer.
    let _ = stream.shutdown(Shutdown::Both);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_arrives_by_way_of_the_kernel() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root to make network namespaces");
        }
        let bed = Testbed::new(Hosts::Offloading).expect("a test bed");
        for version in [Version::V4, Version::V6] {
            let cost = measure(&bed, (version, 2), Duration::from_millis(200)).expect("measured");
            assert!(cost.gbit_s > 0.0 && cost.by_kernel > 0.0, "{version:?}");
        }
    }
}
