//! Live-frame transmission: many packets into the kernel's redirect path with one system call.
//!
//! In copy mode an AF_XDP socket costs the kernel a socket buffer and two copies a packet. The kernel can also run an
//! XDP program on frames that it makes itself and carry out the verdicts (`BPF_F_TEST_XDP_LIVE_FRAMES`). Here the
//! program overwrites each such frame with the next packet of a memory-mapped array and redirects it to the outgoing
//! interface: some 0.3 µs a packet against 1.8 µs, after a fixed cost of some 20 µs a call.
//!
//! A program that is attached nowhere enters and leaves the kernel's XDP dispatcher on every call, which waits for a
//! grace period (some 30 ms). So it is attached to the loopback interface of a network namespace made for it, in
//! which nothing else ever happens and which goes with the descriptors that name it.
//!
//! The target must be able to take redirected frames. On a veth that depends on the peer and may change, at any time
//! and without a word. What is lost is told by the kernel's tracepoints (`redirects`) and counted by its reason;
//! after frames were refused the others go another way for a while, until the kernel says that the target takes
//! redirected frames again.
//!
//! On threads of other network namespaces than the one that it was made in a transmitter sends nothing (`home`).

mod home;
mod redirects;
mod spare;
#[cfg(test)]
mod tests;

use crate::features::FeatureQuery;
use crate::statistics::{Statistics, Tally};
use crate::{Error, ErrorKind, Result};
use causeway_bpf::{
    Alu, Asm, Code, Cond, Helper, MappedArray, Program, ProgramKind, Reg, Size, XdpContext, action,
};
use causeway_packet::{BATCH, Batch, Packet};
use home::Home;
pub(crate) use home::namespace;
use redirects::{Account, Loss};
use spare::Spare;
pub use spare::prepare;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Packets that the array holds.
const SLOTS: u32 = BATCH as u32;
/// Bytes of a slot before the packet: its length and the interface, 32 bits each.
const SLOT_HEADER: i32 = 8;
/// Longest packet: the frame must fit a page with the kernel's headroom and tailroom.
const MAX_LEN: i32 = 3_200;
/// Length of a frame before the program gives it its own.
const INITIAL_LEN: i32 = 64;
/// Packets after which a target that refused frames is tried again, if it seems to take them: at first, and at most
/// after refusals in a row.
const FIRST_RETRY_PACKETS: u32 = 1 << 14;
const LAST_RETRY_PACKETS: u32 = 1 << 24;
/// Frames that the kernel makes at a time, a power of two. Between them the other end may take some out of its ring: that of a
/// veth has room for 256, and a run of a whole batch at once finds it full if anything is there already.
const RUN_BATCH: u32 = 64;
/// Bytes of an Ethernet header: shorter packets cannot be redirected.
const MIN_LEN: i32 = 14;

/// Sends batches to one interface.
#[derive(Debug)]
pub struct LiveTx {
    program: Program,
    slots: MappedArray,
    /// Word 0: next slot; word 1: packets that the program could not lay out; word 2: packets of the run.
    words: MappedArray,
    ifindex: u32,
    home: Home,
    query: FeatureQuery,
    account: Account,
    /// What the account said after the last run, by reason.
    lost: [u64; Loss::ALL.len()],
    /// Packets that go another way before the target is tried again; 0 while it takes frames.
    until_retry: u32,
    /// As many at the next refusal.
    retry_after: u32,
    counts: Arc<Tally<7>>,
    _spare: Spare,
}

/// The numbers of a transmitter: three, then what was lost, by reason.
const PACKETS: usize = 0;
const ERRORS: usize = 1;
const REJECTED: usize = 2;
const LOST: usize = 3;
const _: () = assert!(LOST + Loss::ALL.len() == 7);

impl LiveTx {
    /// A transmitter to the interface `ifindex` of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the interface takes no redirected frames or the kernel (before 5.18, or before
    /// 6.3, which cannot be asked) has no live frames; [`ErrorKind::Privilege`].
    pub fn new(ifindex: u32) -> Result<LiveTx> {
        let query = FeatureQuery::new()?;
        if !query.get(ifindex)?.redirect_target() {
            return Err(Error::new(ErrorKind::Unsupported, "the interface takes no redirected frames")
                .help("for a veth: `ethtool -K PEER gro on`"));
        }
        let slots = MappedArray::new("live_slots", (SLOT_HEADER + MAX_LEN) as usize, SLOTS)?;
        let words = MappedArray::new("live_words", 24, 1)?;
        let account = Account::open()?;
        let program = Program::load(ProgramKind::Xdp, "live_tx", &pump(&slots, &words, &account)?)?;
        let spare = Spare::attach(&program)?;
        // One frame from an empty array is dropped by the program: it shows whether the kernel can do this at all.
        program.run_live(&[0; INITIAL_LEN as usize], XdpContext::default(), 1, 1)?;
        words.word(8).store(0, Ordering::Relaxed);
        let lost = Loss::ALL.map(|loss| account.lost(loss));
        let [full, refused, down, too_long] = Loss::ALL.map(Loss::name);
        let names =
            ["tx_live_packets", "tx_live_error", "tx_drop_live_rejected", full, refused, down, too_long];
        Ok(LiveTx {
            program,
            slots,
            words,
            ifindex,
            home: Home::here(),
            query,
            account,
            lost,
            until_retry: 0,
            retry_after: FIRST_RETRY_PACKETS,
            counts: Tally::new(names),
            _spare: spare,
        })
    }

    /// Takes all packets of `batch` and returns how many packets and bytes of them were sent; the others are counted
    /// by the reason. `None`, and nothing taken, when the packets must go another way: the target takes no redirected
    /// frames now, the thread is of another network namespace, or a packet is too long. A run that is cut short leaves in `batch` what it did not get to.
    pub fn send(&mut self, batch: &mut Batch) -> Option<(usize, usize)> {
        if !self.home.is_here() || !self.is_usable(batch.len() as u32) || batch.iter().any(|p| !fits(p.len()))
        {
            return None;
        }
        self.lay_out(batch);
        let n = batch.len();
        self.words.word(0).store(0, Ordering::Relaxed);
        self.words.word(16).store(n as u64, Ordering::Relaxed);
        let first = [0; INITIAL_LEN as usize];
        let run = self.program.run_live(&first, XdpContext::default(), n as u32, RUN_BATCH.min(n as u32));
        let done = self.words.word(0).load(Ordering::Relaxed) as usize;
        if run.is_err() {
            self.counts.add(ERRORS, 1);
            if done == 0 {
                return None;
            }
        }
        let mut taken = Batch::new();
        taken.append_up_to(batch, done.min(n));
        let bytes: usize = taken.iter().map(Packet::len).sum();
        let sent = taken.len().saturating_sub(self.account_for_losses());
        self.counts.add(PACKETS, sent as u64);
        // Which ones were lost is not known: each stands for its share.
        Some((sent, bytes * sent / taken.len().max(1)))
    }

    /// Packets of the last run that were not sent.
    fn account_for_losses(&mut self) -> usize {
        let mut total = self.words.word(8).swap(0, Ordering::Relaxed);
        self.counts.add(REJECTED, total);
        for (i, loss) in Loss::ALL.into_iter().enumerate() {
            let now = self.account.lost(loss);
            let new = now.wrapping_sub(std::mem::replace(&mut self.lost[i], now));
            self.counts.add(LOST + i, new);
            total += new;
            if loss == Loss::Refused && new > 0 {
                self.until_retry = self.retry_after;
                self.retry_after = (self.retry_after * 2).min(LAST_RETRY_PACKETS);
            }
        }
        if total == 0 {
            self.retry_after = FIRST_RETRY_PACKETS;
        }
        total as usize
    }

    /// What was sent this way, and what failed.
    pub fn statistics(&self) -> Arc<dyn Statistics> {
        self.counts.clone()
    }

    /// Whether the next `n` packets may be tried.
    fn is_usable(&mut self, n: u32) -> bool {
        if self.until_retry == 0 {
            return true;
        }
        self.until_retry = self.until_retry.saturating_sub(n);
        if self.until_retry == 0 && !self.query.get(self.ifindex).is_ok_and(|f| f.redirect_target()) {
            self.until_retry = self.retry_after;
        }
        self.until_retry == 0
    }

    /// Copies the packets into the slots.
    fn lay_out(&mut self, batch: &Batch) {
        let stride = self.slots.stride();
        let ifindex = self.ifindex.to_ne_bytes();
        for (slot, (i, packet)) in
            self.slots.bytes_mut().chunks_exact_mut(stride).zip(batch.iter().enumerate())
        {
            batch.prefetch_data(i + 4);
            let data = packet.data();
            let (head, body) = slot.split_at_mut(SLOT_HEADER as usize);
            head[..4].copy_from_slice(&(data.len() as u32).to_ne_bytes());
            head[4..].copy_from_slice(&ifindex);
            body[..data.len()].copy_from_slice(data);
        }
    }
}

fn fits(len: usize) -> bool {
    (MIN_LEN as usize..=MAX_LEN as usize).contains(&len)
}

/// The program: takes the next slot, makes the frame as long as the packet, copies it, redirects.
fn pump(slots: &MappedArray, words: &MappedArray, account: &Account) -> Result<Code> {
    let mut a = Asm::new();
    let key = a.slot(4);
    let (last, running, reject, drop) = (a.label(), a.label(), a.label(), a.label());
    a.mov(Reg::R6, Reg::R1);
    // Runs come one after another on one CPU, so the index needs no atomic.
    a.map_value(Reg::R1, words.map().as_fd(), 0);
    a.load(Size::D, Reg::R2, Reg::R1, 0);
    a.mov(Reg::R3, Reg::R2);
    a.alu(Alu::Add, Reg::R3, 1);
    a.store(Size::D, Reg::R1, 0, Reg::R3);
    a.store_slot(Size::W, key, 0, Reg::R2);
    // The device has been offered all frames before those that the kernel makes now.
    a.mov(Reg::R3, Reg::R2);
    a.alu(Alu::And, Reg::R3, RUN_BATCH as i32 - 1);
    a.jump_if(Cond::Ne, Reg::R3, 0, running);
    a.load(Size::D, Reg::R8, Reg::R1, 16);
    a.alu(Alu::Sub, Reg::R8, Reg::R2);
    a.jump_if(Cond::Le, Reg::R8, RUN_BATCH as i32, last);
    a.mov(Reg::R8, RUN_BATCH as i32);
    a.bind(last);
    account.emit_begin(&mut a, Reg::R8, reject);
    a.bind(running);
    a.map(Reg::R1, slots.map().as_fd());
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, Reg::R0, 0, reject);
    a.mov(Reg::R7, Reg::R0);
    a.load(Size::W, Reg::R8, Reg::R7, 0);
    a.jump_if(Cond::Lt, Reg::R8, MIN_LEN, reject);
    a.jump_if(Cond::Gt, Reg::R8, MAX_LEN, reject);
    a.mov(Reg::R1, Reg::R6);
    a.mov(Reg::R2, Reg::R8);
    a.alu(Alu::Sub, Reg::R2, INITIAL_LEN);
    a.call(Helper::XdpAdjustTail);
    a.jump_if(Cond::Ne, Reg::R0, 0, reject);
    a.mov(Reg::R1, Reg::R6);
    a.mov(Reg::R2, 0);
    a.mov(Reg::R3, Reg::R7);
    a.alu(Alu::Add, Reg::R3, SLOT_HEADER);
    a.mov(Reg::R4, Reg::R8);
    a.call(Helper::XdpStoreBytes);
    a.jump_if(Cond::Ne, Reg::R0, 0, reject);
    a.load(Size::W, Reg::R1, Reg::R7, 4);
    a.mov(Reg::R2, 0);
    a.call(Helper::Redirect);
    a.exit();
    a.bind(reject);
    a.map_value(Reg::R1, words.map().as_fd(), 8);
    a.load(Size::D, Reg::R2, Reg::R1, 0);
    a.alu(Alu::Add, Reg::R2, 1);
    a.store(Size::D, Reg::R1, 0, Reg::R2);
    account.emit_forget(&mut a, drop);
    a.bind(drop);
    a.mov(Reg::R0, action::XDP_DROP);
    a.exit();
    a.finish()
}
