//! When may memory be used again that programs could still be looking at?

use crate::error::Result;
use crate::map::{Map, MapKind};
use std::os::fd::{AsFd, AsRawFd};

/// Waits for programs that run, as long as it takes them to end.
///
/// Programs run inside read-side critical sections of the kernel's RCU. An update of a map of maps by bpf(2) returns when
/// every such section has ended that had begun before: the kernel promises so for this kind of map, because a program
/// that found the map which is replaced may be using it until it ends. So what was taken out of sight before
/// [`GracePeriod::wait`] was called, no program looks at when it has returned; and since the wait is a full memory barrier
/// on every processor, those that begin later see what was written before it.
#[derive(Debug)]
pub struct GracePeriod {
    maps: Map,
    inner: Map,
}

impl GracePeriod {
    /// What is waited with.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new() -> Result<GracePeriod> {
        let inner = Map::new(MapKind::Array, "grace", 4, 4, 1)?;
        Ok(GracePeriod { maps: Map::of_maps("grace_periods", &inner, 1)?, inner })
    }

    /// Returns when every program has ended that was running: some milliseconds, to tens of them on a busy machine.
    ///
    /// # Errors
    /// What bpf(2) says; then nobody knows what programs look at.
    pub fn wait(&self) -> Result<()> {
        self.maps.insert_u32(0, self.inner.as_fd().as_raw_fd() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Alu, Asm, Cond, ErrorKind, MappedArray, Program, ProgramKind, Reg, Size, TestRun, action};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Bytes of the shared memory: which of two cells is in sight, the cells, and how often a cell was seen that was not.
    const ENTRY: usize = 0;
    const CELLS: usize = 8;
    const WRONG: usize = 24;
    /// What a cell holds that nobody may see.
    const POISON: u64 = 99;
    /// Turns of the loop between a program's look at the entry and its look at the cell: a good while.
    const TURNS: i32 = 100_000;

    /// Looks which cell is in sight, takes its time, and counts if that holds poison.
    fn reader(memory: &MappedArray) -> Program {
        let mut a = Asm::new();
        let (again, fine) = (a.label(), a.label());
        a.map_value(Reg::R6, memory.map().as_fd(), 0);
        a.load(Size::D, Reg::R7, Reg::R6, ENTRY as i16);
        a.mov(Reg::R8, TURNS);
        a.bind(again);
        a.alu(Alu::Sub, Reg::R8, 1);
        a.jump_if(Cond::Ne, Reg::R8, 0, again);
        a.alu(Alu::And, Reg::R7, 1);
        a.alu(Alu::Lsh, Reg::R7, 3);
        a.mov(Reg::R1, Reg::R6);
        a.alu(Alu::Add, Reg::R1, Reg::R7);
        a.load(Size::D, Reg::R2, Reg::R1, CELLS as i16);
        a.jump_if(Cond::Ne, Reg::R2, POISON as i32, fine);
        a.load(Size::D, Reg::R2, Reg::R6, WRONG as i16);
        a.alu(Alu::Add, Reg::R2, 1);
        a.store(Size::D, Reg::R6, WRONG as i16, Reg::R2);
        a.bind(fine);
        a.mov(Reg::R0, action::XDP_PASS);
        a.exit();
        Program::load(ProgramKind::Xdp, "grace_reader", &a.finish().expect("assembled")).expect("loaded")
    }

    /// Moves the entry from cell to cell and poisons the one that it left after `wait`; says how often a program saw it.
    fn poisoned(changes: usize, wait: impl Fn()) -> u64 {
        let memory = MappedArray::new("grace_test", 64, 1).expect("memory");
        let word = |at: usize| memory.word(at);
        let (program, done) = (reader(&memory), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let TestRun { verdict, .. } = program.test_run(&[0; 64], None, 1).expect("run");
                    assert_eq!(verdict, action::XDP_PASS);
                }
            });
            for change in 0..changes {
                let (left, entry) = (change % 2, (change + 1) % 2);
                word(CELLS + 8 * entry).store(0, Ordering::Release);
                word(ENTRY).store(entry as u64, Ordering::Release);
                wait();
                word(CELLS + 8 * left).store(POISON, Ordering::Release);
                // Time for a program that has looked to look again.
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            done.store(true, Ordering::Relaxed);
        });
        word(WRONG).load(Ordering::Relaxed)
    }

    #[test]
    fn what_is_used_again_after_it_no_program_sees() {
        let grace = match GracePeriod::new() {
            Ok(grace) => grace,
            Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
            Err(e) => panic!("{e}"),
        };
        assert_eq!(poisoned(100, || grace.wait().expect("waited")), 0);
        // Without it they do, or this test could not fail.
        assert!(poisoned(2_000, || ()) > 0, "no program was caught in the middle");
    }
}
