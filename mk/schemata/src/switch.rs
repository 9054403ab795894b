//! Which mutant is on. This file becomes a module of the crate whose mutants they are; `MUTANT` is the number of one, or
//! the path of a file that gets the numbers of those that the process comes by.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

const NONE: u32 = u32::MAX - 2;
const RECORDS: u32 = u32::MAX - 1;
const NOT_ASKED: u32 = u32::MAX;

static WHICH: AtomicU32 = AtomicU32::new(NOT_ASKED);
static PASSED: [AtomicBool; 4096] = [const { AtomicBool::new(false) }; 4096];

/// Whether a mutant is the one that is on.
#[inline]
pub fn on(mutant: u32) -> bool {
    let which = WHICH.load(Relaxed);
    which == mutant || which >= RECORDS && asked(mutant, which)
}

#[cold]
fn asked(mutant: u32, which: u32) -> bool {
    let told = || std::env::var("MUTANT").ok();
    if which == NOT_ASKED {
        let number = |told: String| told.parse().unwrap_or(RECORDS);
        WHICH.store(told().map_or(NONE, number), Relaxed);
        return on(mutant);
    }
    if !PASSED[mutant as usize].swap(true, Relaxed) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(told().unwrap_or_default());
        file.and_then(|mut file| file.write_all(format!("{mutant}\n").as_bytes())).expect("the file of those passed");
    }
    false
}
