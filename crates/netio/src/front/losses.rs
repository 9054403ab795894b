//! What is lost behind a graph's program: frames that it redirected and that did not get out.
//!
//! A redirect is decided by the program and carried out after it, in bulk; what fails is told at the kernel's tracepoints
//! only. Listeners there count it at the port that the frame came in by, with the port's other numbers. They cost some 20 ns
//! a bulk of up to 16 frames, on the whole machine. A frame that came in by a port whose program runs in the stack is sent at once;
//! there the kernel tells by which interface it was to go out, and nothing else, so it is counted at that one's port.

use super::Reason;
use super::code::Maps;
use super::port::field;
use crate::{Error, ErrorKind, Result};
use causeway_bpf::{
    Alu, Asm, Code, Cond, Helper, Label, Program, ProgramKind, RawTracepointLink, Reg, Size, Slot, Types,
};

/// The kernel's description of its types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// `BPF_MAP_TYPE_DEVMAP`: frames that are redirected to sockets are not of a graph's program.
const DEVMAP: i32 = 14;
/// `XDP_TX`, which is also what the kernel calls a redirect of a program in the stack.
const TX: i32 = 3;

/// Counts while it lives.
#[derive(Debug)]
pub(super) struct Losses {
    _links: [RawTracepointLink; 3],
}

impl Losses {
    /// Listens for what the ports of these maps lose.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the kernel does not describe its types; [`ErrorKind::Privilege`] (listening needs
    /// CAP_PERFMON too), or what bpf(2) says.
    pub fn listen(maps: &Maps<'_>) -> Result<Losses> {
        let unsupported = |what: &str| Error::new(ErrorKind::Unsupported, format!("{TYPES}: {what}"));
        let bytes = std::fs::read(TYPES).map_err(|error| unsupported(&error.to_string()))?;
        let types = Types::read(&bytes).ok_or_else(|| unsupported("it is not understood"))?;
        let device = Device::of(&types).ok_or_else(|| unsupported("it knows no network devices"))?;
        let listen = |tracepoint: &str, code: &Code| {
            let program = Program::load(ProgramKind::RawTracepoint, tracepoint, code)?;
            RawTracepointLink::attach(&program, tracepoint)
        };
        let links = [
            listen("xdp_redirect_err", &refused(maps, &device)?)?,
            listen("xdp_devmap_xmit", &offered(maps, &device)?)?,
            listen("xdp_exception", &stuck(maps, &device)?)?,
        ];
        Ok(Losses { _links: links })
    }
}

/// Where `struct net_device` says what one it is, and this network namespace: indices are each namespace's own.
struct Device {
    index: i32,
    namespace: i32,
    /// The namespace's number in `struct net`.
    number: i32,
    here: u64,
}

impl Device {
    fn of(types: &Types<'_>) -> Option<Device> {
        let offset = |structure, field| types.offset(structure, field).map(|offset| offset as i32);
        Some(Device {
            index: offset("net_device", "ifindex")?,
            namespace: offset("net_device", "nd_net")?,
            number: offset("net", "ns")? + offset("ns_common", "inum")?,
            here: crate::live::namespace()?.1,
        })
    }
}

/// At `xdp_redirect_err(device, program, target, err, map_type, ...)`: a frame did not get as far as a device.
fn refused(maps: &Maps<'_>, device: &Device) -> Result<Code> {
    one(maps, device, (32, DEVMAP), Reason::Redirect)
}

/// At `xdp_devmap_xmit(from, to, sent, drops, err)`: a bulk was offered to a device.
fn offered(maps: &Maps<'_>, device: &Device) -> Result<Code> {
    let mut a = Asm::new();
    let end = a.label();
    a.load(Size::D, Reg::R6, Reg::R1, 0);
    a.load(Size::D, Reg::R7, Reg::R1, 24);
    // The argument is 32 bits wide.
    a.mov32(Reg::R7, Reg::R7);
    a.jump_if(Cond::Eq, Reg::R7, 0, end);
    charge(&mut a, maps, device, Reason::Transmit, end);
    a.finish()
}

/// At `xdp_exception(device, program, action)`: a device whose queue has stopped did not take a frame from the stack.
fn stuck(maps: &Maps<'_>, device: &Device) -> Result<Code> {
    one(maps, device, (16, TX), Reason::Transmit)
}

/// Counts a frame at the device that is the first argument, if the argument at an offset has this value.
fn one(maps: &Maps<'_>, device: &Device, (offset, value): (i16, i32), reason: Reason) -> Result<Code> {
    let mut a = Asm::new();
    let end = a.label();
    a.load(Size::D, Reg::R6, Reg::R1, 0);
    a.load(Size::D, Reg::R2, Reg::R1, offset);
    a.jump_if32(Cond::Ne, Reg::R2, value, end);
    a.mov(Reg::R7, 1);
    charge(&mut a, maps, device, reason, end);
    a.finish()
}

/// Counts R7 frames at the device in R6, if that is a port, and ends.
fn charge(a: &mut Asm, maps: &Maps<'_>, device: &Device, reason: Reason, end: Label) {
    let (word, key) = (a.slot(8), a.slot(4));
    read(a, word, 8, device.namespace, end);
    a.mov(Reg::R8, Reg::R6);
    a.load_slot(Size::D, Reg::R6, word, 0);
    read(a, word, 4, device.number, end);
    a.load_slot(Size::W, Reg::R1, word, 0);
    a.mov64(Reg::R2, device.here);
    a.jump_if(Cond::Ne, Reg::R1, Reg::R2, end);
    a.mov(Reg::R6, Reg::R8);
    read(a, key, 4, device.index, end);
    a.map(Reg::R1, maps.ports);
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, Reg::R0, 0, end);
    a.load(Size::W, Reg::R1, Reg::R0, field::FIRST_COUNTER);
    a.alu(Alu::Add, Reg::R1, reason as i32);
    a.store_slot(Size::W, key, 0, Reg::R1);
    a.map(Reg::R1, maps.counters);
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, Reg::R0, 0, end);
    // The processor's own, where one bulk is sent after the other.
    a.load(Size::D, Reg::R1, Reg::R0, 0);
    a.alu(Alu::Add, Reg::R1, Reg::R7);
    a.store(Size::D, Reg::R0, 0, Reg::R1);
    a.bind(end);
    a.mov(Reg::R0, 0);
    a.exit();
}

/// Reads `bytes` bytes at an offset from R6, in the kernel's memory.
fn read(a: &mut Asm, to: Slot, bytes: i32, offset: i32, end: Label) {
    a.slot_address(Reg::R1, to);
    a.mov(Reg::R2, bytes);
    a.mov(Reg::R3, Reg::R6);
    a.alu(Alu::Add, Reg::R3, offset);
    a.call(Helper::ProbeReadKernel);
    a.jump_if(Cond::Ne, Reg::R0, 0, end);
}
