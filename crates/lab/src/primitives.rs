//! What this machine takes for single things that a router does: a system call, a copy, a BPF program's run, the wake-up of a
//! thread.

use crate::tester::pin;
use crate::veth::wake_ups_us;
use anyhow::Result;
use causeway_bpf::{Alu, Asm, Cond, ErrorKind, Program, ProgramKind, Reg, Size, action, xdp_md};
use causeway_results::stats::median;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Repetitions, of which the median counts, and how often each does its thing.
const ROUNDS: usize = 11;
const TIMES: u32 = 20_000;
/// Runs of a BPF program in one call, beside which the call is nothing.
const RUNS: u32 = 100_000;
/// How long a thread sleeps that is woken by the clock, as the tester's receiver does; how long another one on its processor is
/// watched, and how much longer than a look at the clock it stands still if something took the processor.
const SLEEP: Duration = Duration::from_micros(20);
const WATCHED: Duration = Duration::from_millis(40);
const STOOD: Duration = Duration::from_micros(1);
/// Bytes of a copy: the longest frame, without its checksum.
const COPY: usize = 1_514;

/// Things and picoseconds, medians. The thread that is woken is on `processor`. Who may not load programs has no BPF among them.
///
/// # Errors
/// If a thread cannot be put on its processor, or the kernel refuses the program.
pub fn primitives(processor: usize) -> Result<Vec<(&'static str, f64)>> {
    let (from, mut to) = (vec![1u8; COPY], vec![0u8; COPY]);
    let call = median_ps(|| {
        black_box(rustix::process::getppid());
    });
    let copy = median_ps(|| black_box(&mut to).copy_from_slice(black_box(&from)));
    let mut all = vec![("system call", call), ("copy of 1514 bytes", copy)];
    all.extend(bpf_run_ps()?.map(|run| ("run of a small BPF program", run)));
    let [wake_up, call] = wake_ups_us(processor)?;
    all.extend([("wake-up", wake_up * 1e6), ("call of a wake-up", call * 1e6)]);
    let [interrupt, pause] = clock_wakes_ps(processor)?;
    all.extend([("interrupt of the clock", interrupt), ("pause of a thread", pause)]);
    Ok(all)
}

/// What it takes a processor that a thread sleeps there for a moment: the interrupt that ends it, which whoever runs then waits for,
/// and the thread's own time, in which it sets the clock and finds nothing to do.
fn clock_wakes_ps(processor: usize) -> Result<[f64; 2]> {
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let ended = AtomicBool::new(false);
        let (own_ps, whole_ps) = std::thread::scope(|scope| -> Result<(f64, f64)> {
            let sleeper = scope.spawn(|| {
                pin(&[processor]);
                let (began, mut times) = (own_time_ps(), 0.0);
                while !ended.load(Ordering::Relaxed) {
                    std::thread::sleep(SLEEP);
                    times += 1.0;
                }
                ((own_time_ps() - began) / f64::max(times, 1.0), times)
            });
            let watcher = scope.spawn(|| {
                pin(&[processor]);
                stood_still_ps(WATCHED)
            });
            let stood_ps = watcher.join();
            ended.store(true, Ordering::Relaxed);
            let (own_ps, times) = sleeper.join().map_err(|_| anyhow::anyhow!("a thread failed"))?;
            let stood_ps = stood_ps.map_err(|_| anyhow::anyhow!("a thread failed"))?;
            Ok((own_ps, stood_ps / f64::max(times, 1.0)))
        })?;
        rounds[0].push((whole_ps - own_ps).max(0.0));
        rounds[1].push(own_ps);
    }
    Ok(rounds.map(|times| median(&times).unwrap_or_default()))
}

/// Processor time of the calling thread.
fn own_time_ps() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e12 + time.tv_nsec as f64 * 1e3
}

/// How long the calling thread, which looks at the clock for so long, did not come to do so.
fn stood_still_ps(watched: Duration) -> f64 {
    let (began, mut last, mut stood) = (Instant::now(), Instant::now(), Duration::ZERO);
    while began.elapsed() < watched {
        let now = Instant::now();
        let gap = now - last;
        if gap > STOOD {
            stood += gap;
        }
        last = now;
    }
    stood.as_secs_f64() * 1e12
}

/// What the kernel takes to run a program at XDP that looks at a word of the frame and drops it; `None` if it may not be loaded.
fn bpf_run_ps() -> Result<Option<f64>> {
    let mut asm = Asm::new();
    let short = asm.label();
    asm.mov(Reg::R0, action::XDP_DROP);
    asm.load(Size::W, Reg::R2, Reg::R1, xdp_md::DATA);
    asm.load(Size::W, Reg::R3, Reg::R1, xdp_md::DATA_END);
    asm.mov(Reg::R4, Reg::R2);
    asm.alu(Alu::Add, Reg::R4, 8);
    asm.jump_if(Cond::Gt, Reg::R4, Reg::R3, short);
    asm.load(Size::D, Reg::R5, Reg::R2, 0);
    asm.bind(short);
    asm.exit();
    let program = match Program::load(ProgramKind::Xdp, "primitive", &asm.finish()?) {
        Err(error) if error.kind() == ErrorKind::Privilege => return Ok(None),
        loaded => loaded?,
    };
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        program.test_run(&[0; 64], None, RUNS)?;
        rounds.push(began.elapsed().as_secs_f64() * 1e12 / f64::from(RUNS));
    }
    Ok(median(&rounds))
}

fn median_ps(mut thing: impl FnMut()) -> f64 {
    let round = |_| {
        let began = Instant::now();
        (0..TIMES).for_each(|_| thing());
        began.elapsed().as_secs_f64() * 1e12 / f64::from(TIMES)
    };
    let rounds: Vec<f64> = (0..ROUNDS).map(round).collect();
    median(&rounds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_takes_some_time() {
        let all = primitives(0).expect("possible");
        let mut expected = vec!["system call", "copy of 1514 bytes", "run of a small BPF program", "wake-up"];
        expected.extend(["call of a wake-up", "interrupt of the clock", "pause of a thread"]);
        if bpf_run_ps().expect("possible").is_none() {
            eprintln!("skipped: needs root for the BPF program");
            expected.remove(2);
        }
        assert_eq!(all.iter().map(|one| one.0).collect::<Vec<_>>(), expected);
        assert!(all.iter().all(|(_, ps)| ps.is_finite() && *ps > 0.0), "{all:?}");
    }
}
