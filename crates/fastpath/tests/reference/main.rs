//! The interpreter and the kernel, on one corpus: for each frame the same way out, bytes, marks, annotations, counters and
//! reasons.
//!
//! `FASTPATH_FRAMES` says how many frames there are for each of the tests; by default some thousands.

mod elements;
mod forwarding;
mod frames;
mod fused;
mod plain;
mod random;
mod refusal;
mod twin;
mod walk;
mod whole;

/// Frames for each test.
fn frames_wanted(default: usize) -> usize {
    std::env::var("FASTPATH_FRAMES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Whether programs can be loaded; says so if not.
fn is_root() -> bool {
    match causeway_fastpath::Counters::new() {
        Ok(_) => true,
        Err(e) if e.kind() == causeway_bpf::ErrorKind::Privilege => {
            eprintln!("skipped: needs root to load BPF programs");
            false
        }
        Err(e) => panic!("{e}"),
    }
}
