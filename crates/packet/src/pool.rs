//! The frame pool: one mapping, one shared stack of free frames, one magazine a thread.
//!
//! This is the buffer recycling of the papers (OSR §4.2, CvL §3.1): a freed frame goes to the list of the thread
//! that freed it and is the next one to be handed out, still warm in the cache. A thread whose magazine runs
//! empty or full exchanges 256 frames with the shared stack in one compare-and-swap; there is no lock.
//! Magazines and stack hold frame numbers; a frame's metadata is written when it becomes a packet, not before.
//!
//! The pool is one for the process, because the UMEM of all ports is one. [`init`] fixes its size before first
//! use; without it the defaults of [`Config`] are taken, with frames as long as [`ask_for_frames_of`] was told. In [`Mode::Allocator`] every packet comes from the
//! general allocator instead, which is the baseline of the buffer-recycling experiment; AF_XDP cannot be used
//! then.

use crate::ledger::{FREE, PACKET};
use crate::memory::Memory;
use crate::meta::Meta;
use crate::stack::SharedStack;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::UnsafeCell;
use std::fmt;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) use crate::stack::CHUNK;
use crate::{BATCH, Packet};

/// Frames that a thread's magazine holds at most.
pub const MAGAZINE: usize = 2 * CHUNK;

/// Least bytes of a frame.
pub const LEAST_FRAME: u32 = 2_048;
/// Most bytes of a frame: offsets in it are of 16 bits, of which one says that there is none.
pub const MOST_FRAME: u32 = 32_768;

/// Whether frames can have so many bytes.
pub fn is_frame_size(bytes: u32) -> bool {
    bytes.is_power_of_two() && (LEAST_FRAME..=MOST_FRAME).contains(&bytes)
}

/// Where frames come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Frames are recycled through free lists.
    #[default]
    Recycle,
    /// Each packet is one allocation of the general allocator.
    Allocator,
}

/// Size and kind of the pool.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Number of frames; memory is touched only as frames are used.
    pub frames: u32,
    /// Bytes a frame: a power of two from [`LEAST_FRAME`] to [`MOST_FRAME`].
    pub frame_size: u32,
    /// Recycling or the general allocator.
    pub mode: Mode,
}

impl Default for Config {
    fn default() -> Self {
        Config { frames: 32_768, frame_size: 2_048, mode: Mode::Recycle }
    }
}

/// Why the pool could not be made.
#[derive(Debug)]
pub enum Error {
    /// The pool exists already with another configuration.
    AlreadyMade(Config),
    /// The frame size is no power of two from [`LEAST_FRAME`] to [`MOST_FRAME`].
    FrameSize(u32),
    /// The mapping failed.
    Map(std::io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::AlreadyMade(c) => {
                write!(f, "the frame pool exists already ({} frames of {} bytes)", c.frames, c.frame_size)
            }
            Error::FrameSize(n) => {
                write!(f, "frame size {n}: must be a power of two from {LEAST_FRAME} to {MOST_FRAME}")
            }
            Error::Map(e) => write!(f, "cannot map the frame pool: {e}; ask for fewer frames"),
        }
    }
}

impl std::error::Error for Error {}

struct Pool {
    config: Config,
    memory: Memory,
    stack: SharedStack,
}

static POOL: OnceLock<Pool> = OnceLock::new();

/// Bytes of a frame that a pool will have which nobody makes by [`init`].
static ASKED_FOR: AtomicU32 = AtomicU32::new(LEAST_FRAME);

/// Makes the pool. Call it before the first packet; later calls fail unless they ask for the same.
pub fn init(config: Config) -> Result<(), Error> {
    if !is_frame_size(config.frame_size) {
        return Err(Error::FrameSize(config.frame_size));
    }
    let mut made = false;
    let pool = match POOL.get() {
        Some(p) => p,
        None => {
            let fresh = Pool::new(config)?;
            POOL.get_or_init(|| {
                made = true;
                fresh
            })
        }
    };
    let same = pool.config.frames >= config.frames
        && pool.config.frame_size == config.frame_size
        && pool.config.mode == config.mode;
    if made || same { Ok(()) } else { Err(Error::AlreadyMade(pool.config)) }
}

/// Asks for frames of at least so many bytes. Who makes the pool by [`init`] decides how long they are; otherwise they become as
/// long as the longest that was asked for until the first is used.
///
/// # Errors
/// The most bytes that a frame can have.
pub fn ask_for_frames_of(bytes: usize) -> Result<(), usize> {
    let most = POOL.get().map_or(MOST_FRAME, |pool| pool.config.frame_size) as usize;
    if bytes > most {
        return Err(most);
    }
    ASKED_FOR.fetch_max(bytes.next_power_of_two() as u32, Ordering::Relaxed);
    Ok(())
}

/// The pool's configuration.
pub fn config() -> Config {
    pool().config
}

/// Base address and length in bytes of the memory of all frames: the UMEM of every AF_XDP port.
pub fn region() -> (*mut u8, usize) {
    memory().region()
}

/// The file behind the pool's memory. A process that is handed it finds in it what is where, and which ring has
/// which frames: its first page says so, as the table of `memory.rs` does.
pub fn descriptor() -> BorrowedFd<'static> {
    memory().fd().as_fd()
}

/// Frames on the shared stack or never used; the threads' magazines are not counted.
pub fn shared_free() -> u64 {
    pool().stack.len()
}

/// Gives the calling thread's free frames back to the shared stack.
pub fn flush_thread() {
    MAGAZINE_OF_THREAD.with(|m| {
        // SAFETY: the magazine belongs to this thread, and no reference to it is held across this call.
        unsafe { (*m.0.get()).flush(0) }
    });
}

fn pool() -> &'static Pool {
    let config = || Config { frame_size: ASKED_FOR.load(Ordering::Relaxed), ..Config::default() };
    POOL.get_or_init(|| match Pool::new(config()) {
        Ok(p) => p,
        // Without memory for packets there is nothing that a router could go on with.
        Err(e) => {
            // No log may be there, and none would be written before the end.
            let _ = writeln!(std::io::stderr(), "{e}");
            std::process::abort()
        }
    })
}

pub(crate) fn memory() -> &'static Memory {
    &pool().memory
}

impl Pool {
    fn new(config: Config) -> Result<Pool, Error> {
        let memory = Memory::new(config.frames, config.frame_size).map_err(Error::Map)?;
        Ok(Pool { config, memory, stack: SharedStack::new(config.frames) })
    }
}

/// A thread's free frames, the one freed last at the end.
struct Magazine {
    len: usize,
    ids: [u32; MAGAZINE],
}

impl Magazine {
    /// Makes sure of a free frame, if there is one.
    #[inline]
    fn load(&mut self, pool: &Pool) -> bool {
        if self.len == 0
            && let Some(first) = self.ids.first_chunk_mut()
        {
            self.len = pool.stack.take(first);
        }
        self.len > 0
    }

    #[inline]
    fn put(&mut self, id: u32) {
        if self.len == MAGAZINE {
            self.flush(CHUNK);
        }
        self.ids[self.len] = id;
        self.len += 1;
    }

    fn flush(&mut self, keep: usize) {
        // The oldest frames leave; the most recently freed, still cached, stay.
        let leave = self.len.saturating_sub(keep);
        pool().stack.give(&self.ids[..leave]);
        self.ids.copy_within(leave..self.len, 0);
        self.len -= leave;
    }
}

struct MagazineCell(UnsafeCell<Magazine>);

impl Drop for MagazineCell {
    fn drop(&mut self) {
        self.0.get_mut().flush(0);
    }
}

thread_local! {
    static MAGAZINE_OF_THREAD: MagazineCell =
        const { MagazineCell(UnsafeCell::new(Magazine { len: 0, ids: [0; MAGAZINE] })) };
}

/// Runs `f`, which must not use the magazine otherwise, on the calling thread's. `None` when the thread is ending and
/// its magazine is gone.
#[inline]
fn with_magazine<R>(f: impl FnOnce(&mut Magazine) -> R) -> Option<R> {
    // SAFETY: the magazine belongs to this thread, and the callers, all below, neither nest nor run foreign code.
    MAGAZINE_OF_THREAD.try_with(|m| f(unsafe { &mut *m.0.get() })).ok()
}

/// Takes free frames into `out`; returns how many there were. Their owner in the ledger is for the caller to set.
pub(crate) fn take_free(out: &mut [u32]) -> usize {
    let pool = pool();
    let taken = with_magazine(|m| {
        let mut n = 0;
        while n < out.len() && m.load(pool) {
            let take = m.len.min(out.len() - n);
            let from = m.len - take;
            out[n..n + take].copy_from_slice(&m.ids[from..m.len]);
            m.len = from;
            n += take;
        }
        n
    });
    taken.unwrap_or(0)
}

/// Takes back free frames, noted so in the ledger, that nobody else has.
pub(crate) fn put_free(ids: &[u32]) {
    if with_magazine(|m| ids.iter().for_each(|&id| m.put(id))).is_none() {
        share_free(ids);
    }
}

/// As [`put_free`], for whichever thread wants them first.
pub(crate) fn share_free(ids: &[u32]) {
    pool().stack.give(ids);
}

/// Takes a frame for a packet; `None` when all are in use. Metadata and frame are stale and the caller's.
#[inline]
pub(crate) fn take() -> Option<(NonNull<Meta>, *mut u8)> {
    let pool = pool();
    if pool.config.mode == Mode::Allocator {
        return take_heap(pool);
    }
    let id = with_magazine(|m| {
        m.load(pool).then(|| {
            m.len -= 1;
            m.ids[m.len]
        })
    })??;
    pool.memory.owner(id).store(PACKET, Ordering::Relaxed);
    Some((NonNull::new(pool.memory.meta(id))?, pool.memory.frame(id)))
}

/// Frames for at most `n` packets, with one look for the thread's magazine; `n` is at most [`BATCH`]. Those of which no
/// packet was made go back.
#[inline]
pub(crate) fn take_frames(n: usize) -> Frames {
    let pool = pool();
    let mut frames = Frames { pool, ids: [0; BATCH], at: 0, end: 0, heap: 0 };
    match pool.config.mode {
        Mode::Recycle => frames.end = take_free(&mut frames.ids[..n]),
        Mode::Allocator => frames.heap = n,
    }
    frames
}

/// Free frames on their way to be packets.
pub(crate) struct Frames {
    pool: &'static Pool,
    ids: [u32; BATCH],
    at: usize,
    end: usize,
    /// Packets that the general allocator may still be asked for.
    heap: usize,
}

impl Frames {
    /// A frame's number, for a packet that is made of it now.
    #[inline]
    fn next_id(&mut self) -> Option<u32> {
        let id = *self.ids[..self.end].get(self.at)?;
        self.at += 1;
        self.pool.memory.owner(id).store(PACKET, Ordering::Relaxed);
        Some(id)
    }

    /// A packet that holds a copy of `bytes`, which a frame can hold; `None` when there are no frames left.
    #[inline]
    pub(crate) fn copy_of(&mut self, bytes: &[u8]) -> Option<Packet> {
        let Some(id) = self.next_id() else {
            self.heap = self.heap.checked_sub(1)?;
            return Packet::from_bytes(bytes);
        };
        let most = (self.pool.config.frame_size as usize).checked_sub(bytes.len())?;
        let headroom = (Packet::HEADROOM + colour(id)).min(most);
        let meta = NonNull::new(self.pool.memory.meta(id))?;
        // SAFETY: the frame was free and is nobody else's; headroom and bytes fit it.
        let mut packet =
            unsafe { Packet::at(meta, self.pool.memory.frame(id), headroom as u16, bytes.len() as u16) };
        copy(packet.data_mut(), bytes);
        Some(packet)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        put_free(&self.ids[self.at..self.end]);
    }
}

/// Bytes by which the data of short packets in neighbouring frames are set off from each other: frames lie at multiples of
/// their size, so without it the first bytes of all packets would share two sets of a first-level cache.
#[inline]
fn colour(id: u32) -> usize {
    (id as usize & 15) * 64
}

/// Copies `from` to `to`, which are of one length; short ones without a call.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8]) {
    /// The first and the last `N` bytes, which may overlap.
    fn ends<const N: usize>(to: &mut [u8], from: &[u8]) -> Option<()> {
        let (first, last) = (*from.first_chunk::<N>()?, *from.last_chunk::<N>()?);
        *to.first_chunk_mut()? = first;
        *to.last_chunk_mut()? = last;
        Some(())
    }
    let done = match from.len() {
        32..=64 => ends::<32>(to, from),
        65..=128 => ends::<64>(to, from),
        _ => None,
    };
    if done.is_none() {
        to.copy_from_slice(from);
    }
}

/// Layout of a packet from the general allocator: metadata first, the frame after it.
fn heap_layout(frame_size: u32) -> Layout {
    let bytes = size_of::<Meta>() + frame_size as usize;
    // Sizes are small constants and the alignment is a power of two, so the layout always exists.
    Layout::from_size_align(bytes, align_of::<Meta>()).unwrap_or(Layout::new::<Meta>())
}

#[cold]
fn take_heap(pool: &Pool) -> Option<(NonNull<Meta>, *mut u8)> {
    // Zeros, since a packet hands out bytes of its frame that nobody wrote yet.
    // SAFETY: the layout has a size above zero; the frame follows the metadata in the same block.
    unsafe {
        let meta = NonNull::new(alloc_zeroed(heap_layout(pool.config.frame_size)).cast::<Meta>())?;
        Some((meta, meta.as_ptr().add(1).cast()))
    }
}

/// Takes back a frame that no packet owns any more.
///
/// # Safety
/// `meta` came from [`take`] (or is the metadata of a pool frame) and nobody uses it or its frame again.
#[inline]
pub(crate) unsafe fn give_back(meta: NonNull<Meta>) {
    // SAFETY: the caller's promise.
    unsafe { give_back_all(std::iter::once(meta)) }
}

/// Takes back frames that no packets own any more, with one look for the thread's magazine.
///
/// # Safety
/// As [`give_back`], for each. The iterator does not use packets.
#[inline]
pub(crate) unsafe fn give_back_all(metas: impl Iterator<Item = NonNull<Meta>>) {
    let pool = pool();
    if pool.config.mode == Mode::Allocator {
        let layout = heap_layout(pool.config.frame_size);
        // SAFETY: in this mode every packet was allocated by `take_heap` with the same layout.
        return metas.for_each(|meta| unsafe { dealloc(meta.as_ptr().cast(), layout) });
    }
    let mut ids = metas.map(|meta| {
        let id = pool.memory.id_of(meta.as_ptr());
        let owner = pool.memory.owner(id);
        debug_assert_eq!(owner.load(Ordering::Relaxed), PACKET);
        owner.store(FREE, Ordering::Relaxed);
        id
    });
    if with_magazine(|m| ids.by_ref().for_each(|id| m.put(id))).is_none() {
        ids.for_each(|id| pool.stack.give(&[id]));
    }
}

/// Bytes a frame.
#[inline]
pub(crate) fn frame_size() -> usize {
    pool().config.frame_size as usize
}
