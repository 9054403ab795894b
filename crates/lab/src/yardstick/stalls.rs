//! Times at which a processor did nothing at all: the machine below gave it to another.
//!
//! A program that the processor's own timer runs finds how long ago it ran last. Code of the kernel and threads of a higher
//! priority do not hold it up, as they would a thread; what holds interrupts off for so long is no part of forwarding.

use anyhow::Result;
use causeway_bpf::{Alu, Asm, ClockLink, Code, Cond, Helper, Map, MapKind, Program, ProgramKind, Reg, Size};
use std::os::fd::AsFd;
use std::time::Duration;

/// Looks a second; no divisor of what happens a thousand times a second.
const FREQUENCY_HZ: u64 = 997;
/// It stood still if so much more lies between two looks: as long as the queues of a device last.
pub const LIMIT: Duration = Duration::from_millis(2);

/// Words of a processor's value: when it was looked at last, and how often it had stood still by then.
const LAST: i16 = 0;
const COUNT: i16 = 8;
const VALUE: usize = 16;

/// Watches all processors while it lives.
pub struct Stalls {
    map: Map,
    _link: ClockLink,
}

impl Stalls {
    /// Begins.
    ///
    /// # Errors
    /// If this kernel or this user cannot.
    pub fn watch() -> Result<Stalls> {
        let map = Map::new(MapKind::PerCpuArray, "lab_stalls", size_of::<u32>(), VALUE, 1)?;
        let program = Program::load(ProgramKind::PerfEvent, "lab_stalls", &program(&map)?)?;
        Ok(Stalls { _link: ClockLink::attach(&program, FREQUENCY_HZ)?, map })
    }

    /// How often these processors have stood still so far; 0 where the kernel does not say.
    pub fn count(&self, processors: &[usize]) -> u64 {
        count(&self.map, processors)
    }
}

fn count(map: &Map, processors: &[usize]) -> u64 {
    let values = map.get(&0_u32.to_ne_bytes()).ok().flatten().unwrap_or_default();
    let values: Vec<_> = values.chunks_exact(VALUE).collect();
    let counted = |&processor: &usize| values.get(processor)?.get(COUNT as usize..)?.first_chunk().copied();
    processors.iter().filter_map(counted).map(u64::from_ne_bytes).sum()
}

fn program(map: &Map) -> Result<Code> {
    let mut a = Asm::new();
    let key = a.slot(4);
    let end = a.label();
    let most = Duration::from_secs(1) / FREQUENCY_HZ as u32 + LIMIT;
    a.call(Helper::KtimeGetNs);
    a.mov(Reg::R6, Reg::R0);
    a.store_slot(Size::W, key, 0, 0);
    a.map(Reg::R1, map.as_fd());
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, Reg::R0, 0, end);
    a.load(Size::D, Reg::R7, Reg::R0, LAST);
    a.store(Size::D, Reg::R0, LAST, Reg::R6);
    // The first look has nothing before it.
    a.jump_if(Cond::Eq, Reg::R7, 0, end);
    a.alu(Alu::Sub, Reg::R6, Reg::R7);
    a.jump_if(Cond::Le, Reg::R6, most.as_nanos() as i32, end);
    a.mov(Reg::R1, 1);
    a.atomic_add(Size::D, Reg::R0, COUNT, Reg::R1);
    a.bind(end);
    a.mov(Reg::R0, 0);
    a.exit();
    Ok(a.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tester::pin;
    use causeway_engine::usable_processors;
    use std::time::Instant;

    #[test]
    fn a_processor_whose_timer_is_late_stood_still() {
        let processor = usable_processors()[0];
        pin(&[processor]);
        let Ok(map) = Map::new(MapKind::PerCpuArray, "stalls_test", 4, VALUE, 1) else {
            return eprintln!("skipped: needs root to load programs");
        };
        // It looks at nothing of what it is run for: so it runs when the test says.
        let code = program(&map).expect("a program");
        let program = Program::load(ProgramKind::Xdp, "stalls_test", &code).expect("taken by the kernel");
        let look = || program.test_run(&[0; 64], None, 1).expect("run");
        look();
        assert_eq!(count(&map, &[processor]), 0, "nothing lies before the first look");
        std::thread::sleep(LIMIT * 2);
        look();
        assert_eq!(count(&map, &[processor]), 1);
        assert_eq!(count(&map, &[processor + 1, usize::MAX]), 0, "others did not");
        let quick = (0..1_000).find_map(|_| {
            let (before, began) = (count(&map, &[processor]), Instant::now());
            look();
            look();
            (began.elapsed() < LIMIT).then(|| count(&map, &[processor]) - before)
        });
        assert!(
            quick.is_some_and(|more| more <= 1),
            "the second of two looks at once is not late: {quick:?}"
        );
    }

    #[test]
    fn the_timers_of_all_processors_are_watched() {
        let Ok(stalls) = Stalls::watch() else {
            return eprintln!("skipped: needs root, and a kernel with software clocks");
        };
        std::thread::sleep(Duration::from_millis(50));
        let values = stalls.map.get(&0_u32.to_ne_bytes()).expect("read").expect("there");
        let looked = |&processor: &usize| values[processor * VALUE..][..8] != [0; 8];
        assert!(usable_processors().iter().all(looked));
    }
}
