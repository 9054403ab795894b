//! Runs of the kernel's network code and packets of a run, by device (LUT §3.4), counted at its tracepoints.

use super::tally::add;
use anyhow::{Context, Result};
use causeway_bpf::{
    Alu, Asm, Code, Cond, Helper, Map, MapKind, Program, ProgramKind, RawTracepointLink, Reg, Size, Types,
};
use std::collections::BTreeMap;

/// Bytes of an interface's name.
const NAME: usize = 16;
/// Devices that are told apart.
const DEVICES: u32 = 1_024;

/// A place in the kernel where a run of packets is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A device was polled for received packets.
    Poll,
    /// A queue gave packets to a device.
    Queue,
    /// Redirected frames were given to a device.
    Bulk,
}

impl Place {
    const ALL: [Place; 3] = [Place::Poll, Place::Queue, Place::Bulk];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Place::Poll => "poll",
            Place::Queue => "queue run",
            Place::Bulk => "redirect run",
        }
    }

    /// The tracepoint; its arguments that say which device it is and how many packets there were; and the fields by which one gets
    /// from the former to `struct net_device`.
    fn tracepoint(self) -> (&'static str, i16, i16, &'static [(&'static str, &'static str)]) {
        match self {
            Place::Poll => ("napi_poll", 0, 8, &[("napi_struct", "dev")]),
            Place::Queue => ("qdisc_dequeue", 8, 16, &[("netdev_queue", "dev")]),
            Place::Bulk => ("xdp_devmap_xmit", 8, 16, &[]),
        }
    }
}

/// What was counted at a place of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Runs.
    pub runs: u64,
    /// Packets in them.
    pub packets: u64,
}

impl Runs {
    /// What was counted since `before`; of who counts from zero again, what it has counted.
    #[must_use]
    pub fn since(&self, before: &Runs) -> Runs {
        if before.runs > self.runs {
            return *self;
        }
        Runs { runs: self.runs - before.runs, packets: self.packets.saturating_sub(before.packets) }
    }
}

/// Counts while it lives.
pub struct Counters {
    places: Vec<(Place, Map, RawTracepointLink)>,
}

impl Counters {
    /// Listens at all places.
    ///
    /// # Errors
    /// If this kernel or this user cannot.
    pub fn open() -> Result<Counters> {
        let path = "/sys/kernel/btf/vmlinux";
        let bytes = std::fs::read(path).context(path)?;
        let types = Types::read(&bytes).with_context(|| format!("{path} is not understood"))?;
        let listen = |place: Place| -> Result<(Place, Map, RawTracepointLink)> {
            let (name, ..) = place.tracepoint();
            let map = Map::new(MapKind::Hash, "lab_runs", NAME, size_of::<[u64; 2]>(), DEVICES)?;
            let code = program(place, &types, &map).with_context(|| format!("the kernel's {name}"))?;
            let program = Program::load(ProgramKind::RawTracepoint, name, &code)?;
            Ok((place, map, RawTracepointLink::attach(&program, name)?))
        };
        Ok(Counters { places: Place::ALL.into_iter().map(listen).collect::<Result<_>>()? })
    }

    /// What was counted so far, by device and place.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn read(&self) -> Result<BTreeMap<(String, Place), Runs>> {
        let mut all = BTreeMap::new();
        for (place, map, _) in &self.places {
            for key in map.keys()? {
                let Some(value) = map.get(&key)? else { continue };
                let number = |at: usize| value.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes);
                let name = String::from_utf8_lossy(key.split(|&b| b == 0).next().unwrap_or_default());
                let runs = Runs { runs: number(0).unwrap_or(0), packets: number(8).unwrap_or(0) };
                all.insert((name.into_owned(), *place), runs);
            }
        }
        Ok(all)
    }
}

/// Counts a run, and its packets, under the name of the device.
fn program(place: Place, types: &Types<'_>, map: &Map) -> Result<Code> {
    let (_, device, packets, path) = place.tracepoint();
    let offset = |(structure, field): (&str, &str)| {
        let found = types.offset(structure, field);
        found.with_context(|| format!("there is no {structure}.{field}")).map(|offset| offset as i32)
    };
    let mut a = Asm::new();
    let (pointer, key, value) = (a.slot(8), a.slot(NAME as i16), a.slot(16));
    let end = a.label();
    a.load(Size::D, Reg::R6, Reg::R1, device);
    a.load(Size::D, Reg::R7, Reg::R1, packets);
    // The argument is 32 bits wide.
    a.mov32(Reg::R7, Reg::R7);
    for &step in path {
        a.slot_address(Reg::R1, pointer);
        a.mov(Reg::R2, 8);
        a.mov(Reg::R3, Reg::R6);
        a.alu(Alu::Add, Reg::R3, offset(step)?);
        a.call(Helper::ProbeReadKernel);
        a.jump_if(Cond::Ne, Reg::R0, 0, end);
        a.load_slot(Size::D, Reg::R6, pointer, 0);
    }
    a.slot_address(Reg::R1, key);
    a.mov(Reg::R2, NAME as i32);
    a.mov(Reg::R3, Reg::R6);
    a.alu(Alu::Add, Reg::R3, offset(("net_device", "name"))?);
    a.call(Helper::ProbeReadKernel);
    a.jump_if(Cond::Ne, Reg::R0, 0, end);
    add(&mut a, map, key, value, &[1.into(), Reg::R7.into()]);
    a.bind(end);
    a.mov(Reg::R0, 0);
    a.exit();
    Ok(a.finish()?)
}
