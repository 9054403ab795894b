//! Programs that run so often a second on each processor: samples of what it does.

use super::map::possible_cpus;
use super::program::Program;
use crate::error::{Error, ErrorKind, Result};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// PERF_TYPE_HARDWARE and PERF_COUNT_HW_CPU_CYCLES.
const CYCLES: (u32, u64) = (0, 0);
/// PERF_TYPE_SOFTWARE and PERF_COUNT_SW_CPU_CLOCK.
const CPU_CLOCK: (u32, u64) = (1, 0);
/// The period is a frequency.
const FREQ: u64 = 1 << 10;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;
const PERF_EVENT_IOC_SET_BPF: libc::c_ulong = 0x4004_2408;

/// Offset of the instruction pointer in the context of such a program: the registers of what was interrupted.
#[cfg(target_arch = "x86_64")]
pub const INSTRUCTION_POINTER: i16 = 16 * 8;
/// Offset of the instruction pointer in the context of such a program: the registers of what was interrupted.
#[cfg(target_arch = "aarch64")]
pub const INSTRUCTION_POINTER: i16 = 32 * 8;

/// `struct perf_event_attr` as of its first version.
#[repr(C)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    frequency_hz: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
}

/// What tells a processor that it is time for a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Its cycles, by a counter of its own. They stand still while it idles; what holds interrupts off is seen.
    Cycles,
    /// The kernel's clock, which every machine has. It does not see what holds interrupts off.
    Software,
}

/// A program on the clock of every processor. Dropping it, or the end of the process, takes it off.
#[derive(Debug)]
pub struct ClockLink {
    _fds: Vec<OwnedFd>,
    clock: Clock,
}

impl ClockLink {
    /// Runs `program`, of kind [`ProgramKind::PerfEvent`](super::ProgramKind::PerfEvent), `frequency_hz` times a second on
    /// every processor: by its cycles if it counts them, which virtual machines seldom do, and by the software clock otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::Privilege`], or what perf_event_open(2) says.
    pub fn attach(program: &Program, frequency_hz: u64) -> Result<ClockLink> {
        let (fds, clock) = match open_all(CYCLES, frequency_hz) {
            Ok(fds) => (fds, Clock::Cycles),
            Err(_) => (open_all(CPU_CLOCK, frequency_hz)?, Clock::Software),
        };
        for fd in &fds {
            // SAFETY: both descriptors are open; the argument is a number.
            let r =
                unsafe { libc::ioctl(fd.as_raw_fd(), PERF_EVENT_IOC_SET_BPF, program.as_fd().as_raw_fd()) };
            if r < 0 {
                return Err(Error::last_os("run a program on a processor's clock"));
            }
        }
        if fds.is_empty() {
            return Err(Error::new(ErrorKind::Unsupported, "there is no processor to sample"));
        }
        Ok(ClockLink { _fds: fds, clock })
    }

    /// What it runs by.
    pub fn clock(&self) -> Clock {
        self.clock
    }
}

/// The event of every processor that runs.
fn open_all(event: (u32, u64), frequency_hz: u64) -> Result<Vec<OwnedFd>> {
    let mut fds = Vec::new();
    for cpu in 0..possible_cpus()? {
        match open(event, cpu as i32, frequency_hz) {
            Ok(fd) => fds.push(fd),
            // It is not running.
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => {}
            Err(e) => return Err(Error::system(format!("sample processor {cpu}"), e)),
        }
    }
    Ok(fds)
}

fn open((kind, config): (u32, u64), cpu: i32, frequency_hz: u64) -> io::Result<OwnedFd> {
    let attr = Attr {
        kind,
        size: size_of::<Attr>() as u32,
        config,
        frequency_hz,
        sample_type: 0,
        read_format: 0,
        flags: FREQ,
        wakeup_events: 0,
        bp_type: 0,
        bp_addr: 0,
    };
    let (pid, group) = (-1, -1);
    // SAFETY: the attributes are live and say how long they are.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for us, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
