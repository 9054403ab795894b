//! What became of the frames that live-frame runs redirected.
//!
//! A program that redirects a frame learns nothing more of it: the kernel hands frames to the device in bulk after
//! the program has ended, and tells only its tracepoints how many the device did not take (`xdp_devmap_xmit`, once
//! for up to 16 frames) or why one never got there (`xdp_redirect_err`: the device is down, too small an MTU, takes
//! no frames). Two small programs listen there and charge what was lost to the account of the run.
//!
//! Whose run it is follows from the processor: those frames of a run that the kernel makes at a time stay on one, with
//! interrupts' bottom halves held off, until the device was offered all of them. So a redirect that happens while some are
//! outstanding there is one of them. The listeners cost other redirects of the machine some 20 ns a bulk.

use crate::{Error, ErrorKind, Result};
use causeway_bpf::{
    Alu, Asm, Code, Cond, Helper, Label, Map, MapKind, MappedArray, Program, ProgramKind, RawTracepointLink,
    Reg, Size,
};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Accounts: transmitters that can be open at once.
const ACCOUNTS: u32 = 4_096;
/// Bytes of an account, a cache line.
const ACCOUNT: usize = 64;

/// Offsets in the state of a processor.
mod run {
    /// Account of the run under way.
    pub const ACCOUNT: i16 = 0;
    /// Frames of the run that are not yet accounted for.
    pub const OUTSTANDING: i16 = 8;
    pub const BYTES: usize = 16;
}

/// Why a redirected frame was lost, and where its count is in an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum Loss {
    /// The device's ring was full.
    Full = 0,
    /// The device takes no redirected frames: it cannot, or its other end (veth) is not ready for them.
    Refused = 8,
    /// The device is down.
    Down = 16,
    /// The frame was longer than the device's MTU allows.
    TooLong = 24,
}

impl Loss {
    /// Every way to be lost.
    pub const ALL: [Loss; 4] = [Loss::Full, Loss::Refused, Loss::Down, Loss::TooLong];

    /// The name of its counter.
    pub fn name(self) -> &'static str {
        match self {
            Loss::Full => "tx_drop_live_full",
            Loss::Refused => "tx_drop_live_refused",
            Loss::Down => "tx_drop_live_down",
            Loss::TooLong => "tx_drop_live_too_long",
        }
    }
}

/// The listeners, one pair for the process.
#[derive(Debug)]
struct Listeners {
    runs: Map,
    accounts: MappedArray,
    free: Mutex<Vec<u32>>,
    _links: [RawTracepointLink; 2],
}

static LISTENERS: Mutex<Weak<Listeners>> = Mutex::new(Weak::new());

/// The account of one transmitter.
#[derive(Debug)]
pub struct Account {
    listeners: Arc<Listeners>,
    index: u32,
}

impl Listeners {
    fn new() -> Result<Listeners> {
        let runs = Map::new(MapKind::PerCpuArray, "live_runs", 4, run::BYTES, 1)?;
        let accounts = MappedArray::new("live_accounts", ACCOUNT, ACCOUNTS)?;
        let listen = |tracepoint: &str, code: &Code| {
            let program = Program::load(ProgramKind::RawTracepoint, tracepoint, code)?;
            RawTracepointLink::attach(&program, tracepoint)
        };
        let links = [
            listen("xdp_devmap_xmit", &bulk_sent(&runs, &accounts)?)?,
            listen("xdp_redirect_err", &redirect_failed(&runs, &accounts)?)?,
        ];
        let free = Mutex::new((0..ACCOUNTS).rev().collect());
        Ok(Listeners { runs, accounts, free, _links: links })
    }
}

impl Account {
    /// A new account; the first one starts the listeners.
    ///
    /// # Errors
    /// [`ErrorKind::Privilege`] (listening needs CAP_PERFMON too), or what bpf(2) says.
    #[expect(clippy::disallowed_methods, reason = "when a port is opened")]
    pub fn open() -> Result<Account> {
        let mut current = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        let listeners = match current.upgrade() {
            Some(listeners) => listeners,
            None => Arc::new(Listeners::new()?),
        };
        *current = Arc::downgrade(&listeners);
        drop(current);
        let index = listeners.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let index = index.ok_or_else(|| Error::new(ErrorKind::Busy, "too many live-frame transmitters"))?;
        Ok(Account { listeners, index })
    }

    /// Frames lost by this account's runs, whoever had the account before included.
    pub fn lost(&self, loss: Loss) -> u64 {
        let at = self.index as usize * ACCOUNT + loss as usize;
        self.listeners.accounts.word(at).load(Ordering::Relaxed)
    }

    /// Emits: so many `frames` of a run, which the kernel makes at a time, begin on this processor. Uses `R0` to `R5`; goes to
    /// `absent` if the kernel does not find its own map's entry.
    pub fn emit_begin(&self, a: &mut Asm, frames: Reg, absent: Label) {
        emit_state(a, &self.listeners.runs, absent);
        a.store(Size::D, Reg::R0, run::ACCOUNT, self.index as i32);
        // What a run that failed half-way left is not this one's.
        a.store(Size::D, Reg::R0, run::OUTSTANDING, frames);
    }

    /// Emits: the frame at hand is not redirected after all. Uses `R0` to `R5`; goes to `end` where there is nothing to
    /// do.
    pub fn emit_forget(&self, a: &mut Asm, end: Label) {
        emit_state(a, &self.listeners.runs, end);
        a.load(Size::D, Reg::R1, Reg::R0, run::OUTSTANDING);
        a.jump_if(Cond::Eq, Reg::R1, 0, end);
        a.alu(Alu::Sub, Reg::R1, 1);
        a.store(Size::D, Reg::R0, run::OUTSTANDING, Reg::R1);
    }
}

impl Drop for Account {
    #[expect(clippy::disallowed_methods, reason = "when a port is closed")]
    fn drop(&mut self) {
        self.listeners.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.index);
    }
}

/// Emits: `R0` = this processor's state.
fn emit_state(a: &mut Asm, runs: &Map, absent: Label) {
    let key = a.slot(4);
    a.store_slot(Size::W, key, 0, 0);
    a.map(Reg::R1, runs.as_fd());
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, Reg::R0, 0, absent);
}

/// Emits: adds `R8` to the count at offset `R9` of the account of the processor's state in `R7`, and ends.
fn emit_charge(a: &mut Asm, accounts: &MappedArray, end: Label) {
    let key = a.slot(4);
    a.load(Size::D, Reg::R1, Reg::R7, run::ACCOUNT);
    a.store_slot(Size::W, key, 0, Reg::R1);
    a.map(Reg::R1, accounts.map().as_fd());
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, Reg::R0, 0, end);
    // For the verifier: an offset inside the account.
    a.alu(Alu::And, Reg::R9, 24);
    a.alu(Alu::Add, Reg::R0, Reg::R9);
    a.load(Size::D, Reg::R1, Reg::R0, 0);
    a.alu(Alu::Add, Reg::R1, Reg::R8);
    a.store(Size::D, Reg::R0, 0, Reg::R1);
    a.bind(end);
    a.mov(Reg::R0, 0);
    a.exit();
}

/// At `xdp_devmap_xmit(from, to, sent, drops, err)`: a bulk was offered to a device.
fn bulk_sent(runs: &Map, accounts: &MappedArray) -> Result<Code> {
    let mut a = Asm::new();
    let (end, all, charge) = (a.label(), a.label(), a.label());
    a.mov(Reg::R6, Reg::R1);
    emit_state(&mut a, runs, end);
    a.mov(Reg::R7, Reg::R0);
    a.load(Size::D, Reg::R2, Reg::R7, run::OUTSTANDING);
    a.jump_if(Cond::Eq, Reg::R2, 0, end);
    a.load(Size::D, Reg::R1, Reg::R6, 16);
    a.load(Size::D, Reg::R8, Reg::R6, 24);
    // The arguments are 32 bits wide.
    a.mov32(Reg::R1, Reg::R1);
    a.mov32(Reg::R8, Reg::R8);
    a.alu(Alu::Add, Reg::R1, Reg::R8);
    a.jump_if(Cond::Le, Reg::R1, Reg::R2, all);
    a.mov(Reg::R1, Reg::R2);
    a.bind(all);
    a.alu(Alu::Sub, Reg::R2, Reg::R1);
    a.store(Size::D, Reg::R7, run::OUTSTANDING, Reg::R2);
    a.jump_if(Cond::Eq, Reg::R8, 0, end);
    a.load(Size::D, Reg::R1, Reg::R6, 32);
    a.mov(Reg::R9, Loss::Full as i32);
    a.jump_if32(Cond::Eq, Reg::R1, 0, charge);
    a.mov(Reg::R9, Loss::Refused as i32);
    a.bind(charge);
    emit_charge(&mut a, accounts, end);
    a.finish()
}

/// At `xdp_redirect_err(device, program, target, err, ...)`: a frame did not get as far as a device.
fn redirect_failed(runs: &Map, accounts: &MappedArray) -> Result<Code> {
    let mut a = Asm::new();
    let (end, charge) = (a.label(), a.label());
    a.mov(Reg::R6, Reg::R1);
    emit_state(&mut a, runs, end);
    a.mov(Reg::R7, Reg::R0);
    a.load(Size::D, Reg::R2, Reg::R7, run::OUTSTANDING);
    a.jump_if(Cond::Eq, Reg::R2, 0, end);
    a.alu(Alu::Sub, Reg::R2, 1);
    a.store(Size::D, Reg::R7, run::OUTSTANDING, Reg::R2);
    a.mov(Reg::R8, 1);
    a.load(Size::D, Reg::R1, Reg::R6, 24);
    for (errno, loss) in [(libc::ENETDOWN, Loss::Down), (libc::EMSGSIZE, Loss::TooLong)] {
        a.mov(Reg::R9, loss as i32);
        a.jump_if32(Cond::Eq, Reg::R1, -errno, charge);
    }
    a.mov(Reg::R9, Loss::Refused as i32);
    a.bind(charge);
    emit_charge(&mut a, accounts, end);
    a.finish()
}
