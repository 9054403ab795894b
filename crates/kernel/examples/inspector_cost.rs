//! What an inspector costs: `cargo run --release -p causeway-kernel --example inspector_cost -- eth0 eth1`.
//!
//! It follows the interfaces named for ten seconds, in the network namespace that it is run in, and prints what it was told
//! and how much of a processor that took. Change something meanwhile to see what that costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use causeway_kernel::{Inspection, Inspector, InspectorConfig, Probe};
use rustix::time::{ClockId, clock_gettime};

const TIME: Duration = Duration::from_secs(10);

struct Ask;

impl Probe for Ask {
    fn socket_option(
        &self,
        socket: std::os::fd::BorrowedFd<'_>,
        level: i32,
        name: i32,
        value: &mut [u8],
    ) -> std::io::Result<usize> {
        causeway_netio::socket_option(socket, level, name, value)
    }
}

/// Processor time of this process, milliseconds.
fn spent_ms() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 * 1e3 + spent.tv_nsec as f64 / 1e6
}

fn main() -> std::io::Result<()> {
    let ports = std::env::args().skip(1);
    let told = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let counts = told.clone();
    let report = move |inspection| {
        let known = matches!(inspection, Inspection::Known { .. });
        counts[usize::from(known)].fetch_add(1, Ordering::Relaxed);
    };
    let inspector = Inspector::open(InspectorConfig::new(ports, Arc::new(Ask)), report)?;
    let (begin, before) = (Instant::now(), spent_ms());
    std::thread::sleep(TIME);
    let (seconds, spent) = (begin.elapsed().as_secs_f64(), spent_ms() - before);
    drop(inspector);
    println!("doubts {}, known {}", told[0].load(Ordering::Relaxed), told[1].load(Ordering::Relaxed));
    println!("{:.2} % of a processor ({spent:.1} ms in {seconds:.1} s)", spent / seconds / 10.0);
    Ok(())
}
