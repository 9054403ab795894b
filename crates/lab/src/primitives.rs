//! What this machine takes for single things that a router does: a system call, a copy, a BPF program's run, the wake-up of a
//! thread.

use crate::veth::wake_up_us;
use anyhow::Result;
use causeway_bpf::{Alu, Asm, Cond, ErrorKind, Program, ProgramKind, Reg, Size, action, xdp_md};
use causeway_results::stats::median;
use std::hint::black_box;
use std::time::Instant;

/// Repetitions, of which the median counts, and how often each does its thing.
const ROUNDS: usize = 11;
const TIMES: u32 = 20_000;
/// Runs of a BPF program in one call, beside which the call is nothing.
const RUNS: u32 = 100_000;
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
    all.push(("wake-up", wake_up_us(processor)? * 1e6));
    Ok(all)
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
        if bpf_run_ps().expect("possible").is_none() {
            eprintln!("skipped: needs root for the BPF program");
            expected.remove(2);
        }
        assert_eq!(all.iter().map(|one| one.0).collect::<Vec<_>>(), expected);
        assert!(all.iter().all(|(_, ps)| ps.is_finite() && *ps > 0.0), "{all:?}");
    }
}
