//! Where processor time goes: samples of all processors, by their cycles or a software clock, sorted into classes.

use super::programs::{Mapping, Programs};
use super::symbols::{Class, Symbols};
use super::tally::add;
use anyhow::Result;
use causeway_bpf::{
    Alu, Asm, Clock, ClockLink, Code, Helper, INSTRUCTION_POINTER, Map, MapKind, Program, ProgramKind, Reg,
    Size,
};
use std::collections::BTreeMap;

/// Samples a second of each processor; no divisor of what happens a thousand times a second.
const FREQUENCY_HZ: u64 = 997;
/// Places in code that are told apart.
const PLACES: u32 = 1 << 16;
const KEY: usize = 16;

/// Samples while it lives.
pub struct Profile {
    map: Map,
    link: ClockLink,
}

/// A sample: where, in which process, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    address: u64,
    process: u32,
    count: u64,
}

impl Profile {
    /// Begins.
    ///
    /// # Errors
    /// If this kernel or this user cannot.
    pub fn begin() -> Result<Profile> {
        let map = Map::new(MapKind::Hash, "lab_profile", KEY, size_of::<u64>(), PLACES)?;
        let program = Program::load(ProgramKind::PerfEvent, "lab_profile", &program(&map)?)?;
        Ok(Profile { link: ClockLink::attach(&program, FREQUENCY_HZ)?, map })
    }

    /// By what it samples.
    pub fn clock(&self) -> Clock {
        self.link.clock()
    }

    /// What was seen so far.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn samples(&self) -> Result<Vec<Sample>> {
        let mut all = Vec::new();
        for key in self.map.keys()? {
            let number =
                |bytes: &[u8], at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes);
            let count = self.map.get(&key)?.and_then(|value| number(&value, 0)).unwrap_or(0);
            let (address, process) = (number(&key, 0).unwrap_or(0), number(&key, 8).unwrap_or(0) as u32);
            all.push(Sample { address, process, count });
        }
        Ok(all)
    }
}

fn program(map: &Map) -> Result<Code> {
    let mut a = Asm::new();
    let (key, value) = (a.slot(KEY as i16), a.slot(8));
    a.load(Size::D, Reg::R2, Reg::R1, INSTRUCTION_POINTER);
    a.store_slot(Size::D, key, 0, Reg::R2);
    a.call(Helper::GetCurrentPidTgid);
    a.alu(Alu::Rsh, Reg::R0, 32);
    a.store_slot(Size::D, key, 8, Reg::R0);
    add(&mut a, map, key, value, &[1.into()]);
    a.mov(Reg::R0, 0);
    a.exit();
    Ok(a.finish()?)
}

/// The parts of the time of all processors, 0 to 1, of each class; `device`: its processes and where their code is, `tester`:
/// this one.
pub fn shares(
    samples: &[Sample],
    (symbols, programs): (&Symbols, &mut Programs),
    device: &BTreeMap<u32, Vec<Mapping>>,
    tester: u32,
) -> BTreeMap<Class, f64> {
    let all: u64 = samples.iter().map(|sample| sample.count).sum();
    // A class without samples has no time, and is as well known as the others.
    let mut shares = BTreeMap::from(Class::ALL.map(|class| (class, 0.0)));
    for sample in samples {
        let class = symbols.find(sample.address).unwrap_or_else(|| match device.get(&sample.process) {
            Some(code) => programs.find(code, sample.address).unwrap_or(Class::Device),
            None if sample.process == tester => Class::Tester,
            None => Class::Others,
        });
        *shares.entry(class).or_insert(0.0) += sample.count as f64 / all.max(1) as f64;
    }
    shares
}

/// The shares of samples by `clock`, with idle time by /proc, 0 to 1, where that does not see it: cycles stand still then, and
/// what they share out is the rest.
pub fn with_idle(mut shares: BTreeMap<Class, f64>, clock: Clock, idle: f64) -> BTreeMap<Class, f64> {
    let seen = shares.get(&Class::Idle).copied().unwrap_or(0.0);
    if clock == Clock::Cycles && seen < 1.0 {
        shares.values_mut().for_each(|share| *share *= (1.0 - idle) / (1.0 - seen));
        shares.insert(Class::Idle, idle);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_shared_out_by_function_and_process() {
        let symbols = Symbols::parse("ffffffff81000000 t do_idle\nffffffff81000100 T ip_rcv\n");
        let sample = |address, process, count| Sample { address, process, count };
        let (idle, ip) = (0xffff_ffff_8100_0004, 0xffff_ffff_8100_0104);
        let samples = [
            sample(idle, 0, 5),
            sample(idle + 4, 0, 1),
            sample(ip, 7, 2),
            sample(0x1000, 7, 1),
            sample(0x1000, 8, 0),
            sample(0x1000, 9, 1),
        ];
        let (mut programs, device) = (Programs::default(), BTreeMap::from([(7, Vec::new())]));
        let found = shares(&samples, (&symbols, &mut programs), &device, 8);
        let told = [(Class::Idle, 0.6), (Class::Ip, 0.2), (Class::Device, 0.1), (Class::Tester, 0.0)];
        assert!(told.iter().all(|(class, share)| (found[class] - share).abs() < 1e-9), "{found:?}");
        assert!((found.values().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(found.len() == Class::ALL.len() && found[&Class::Detour] == 0.0);
        let nothing = shares(&[], (&symbols, &mut programs), &BTreeMap::new(), 1);
        assert!(nothing.values().all(|share| *share == 0.0));
    }

    #[test]
    fn cycles_share_out_what_is_not_idle() {
        let seen = || BTreeMap::from([(Class::Idle, 0.2), (Class::Ip, 0.2), (Class::Memory, 0.6)]);
        assert_eq!(with_idle(seen(), Clock::Software, 0.6), seen());
        let shares = with_idle(seen(), Clock::Cycles, 0.6);
        let told = [(Class::Idle, 0.6), (Class::Ip, 0.1), (Class::Memory, 0.3)];
        assert!(told.iter().all(|(class, share)| (shares[class] - share).abs() < 1e-9), "{shares:?}");
        let idle = BTreeMap::from([(Class::Idle, 1.0), (Class::Ip, 0.0)]);
        assert_eq!(with_idle(idle.clone(), Clock::Cycles, 0.9), idle);
    }
}
