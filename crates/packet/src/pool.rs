//! The frame pool: one mapping, one shared stack of free frames, one magazine a thread.
//!
//! This is the buffer recycling of the papers (OSR §4.2, CvL §3.1): a freed frame goes to the list of the thread
//! that freed it and is the next one to be handed out, still warm in the cache. A thread whose magazine runs
//! empty or full exchanges [`CHUNK`] frames with the shared stack in one compare-and-swap; there is no lock.
//!
//! The pool is one for the process, because the UMEM of all ports is one. [`init`] fixes its size before first
//! use; without it the defaults of [`Config`] are taken. In [`Mode::Allocator`] every packet comes from the
//! general allocator instead, which is the baseline of the buffer-recycling experiment; AF_XDP cannot be used
//! then.

use crate::meta::Meta;
use std::alloc::{Layout, alloc, dealloc};
use std::cell::UnsafeCell;
use std::fmt;
use std::io::Write;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Frames that a magazine exchanges with the shared stack at a time.
pub const CHUNK: usize = 256;
/// Frames that a thread holds at most.
const MAGAZINE: usize = 2 * CHUNK;
/// Index that ends a chain of frames.
const NIL: u32 = u32::MAX;

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
    /// Bytes a frame: 2 048, or 4 096 for jumbo ports (the UMEM chunk sizes of AF_XDP).
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
    /// The frame size is not 2 048 or 4 096.
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
            Error::FrameSize(n) => write!(f, "frame size {n}: must be 2048 or 4096"),
            Error::Map(e) => write!(f, "cannot map the frame pool: {e}; ask for fewer frames"),
        }
    }
}

impl std::error::Error for Error {}

struct Pool {
    config: Config,
    region: *mut u8,
    metas: *mut Meta,
    /// Next frame of a chain on the shared stack, by frame.
    next: Box<[AtomicU32]>,
    /// First frame of the next chain, by the first frame of a chain.
    below: Box<[AtomicU32]>,
    /// Tag in the upper half against reuse between read and swap, first frame of the top chain in the lower.
    top: AtomicU64,
    /// Frames never handed out yet are taken from here in order, so that untouched memory stays untouched.
    fresh: AtomicU32,
    shared: AtomicU64,
}

// SAFETY: the raw pointers name mappings that live as long as the process; frames are handed out to one owner
// at a time by the free lists, whose links are atomics.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

static POOL: OnceLock<Pool> = OnceLock::new();

/// Makes the pool. Call it before the first packet; later calls fail unless they ask for the same.
pub fn init(config: Config) -> Result<(), Error> {
    if !matches!(config.frame_size, 2_048 | 4_096) {
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

/// The pool's configuration.
pub fn config() -> Config {
    pool().config
}

/// Base address and length in bytes of the mapping that holds all frames: the UMEM of every AF_XDP port.
pub fn region() -> (*mut u8, usize) {
    let p = pool();
    (p.region, p.config.frames as usize * p.config.frame_size as usize)
}

/// Frames on the shared stack or never used; the threads' magazines are not counted.
pub fn shared_free() -> u64 {
    let p = pool();
    let fresh = p.config.frames.saturating_sub(p.fresh.load(Ordering::Relaxed)) as u64;
    p.shared.load(Ordering::Relaxed) + fresh
}

/// Gives the calling thread's free frames back to the shared stack.
pub fn flush_thread() {
    MAGAZINE_OF_THREAD.with(|m| {
        // SAFETY: the magazine belongs to this thread, and no reference to it is held across this call.
        unsafe { (*m.0.get()).flush_all() }
    });
}

fn pool() -> &'static Pool {
    POOL.get_or_init(|| match Pool::new(Config::default()) {
        Ok(p) => p,
        // Without memory for packets there is nothing that a router could go on with.
        Err(e) => {
            // No log may be there, and none would be written before the end.
            let _ = writeln!(std::io::stderr(), "{e}");
            std::process::abort()
        }
    })
}

fn map(bytes: usize) -> Result<*mut u8, Error> {
    // SAFETY: a fresh private anonymous mapping, checked below; nothing else refers to it.
    let p = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if p == libc::MAP_FAILED {
        return Err(Error::Map(std::io::Error::last_os_error()));
    }
    // SAFETY: the range was mapped above. Huge pages are a wish; a refusal changes nothing.
    unsafe { libc::madvise(p, bytes, libc::MADV_HUGEPAGE) };
    Ok(p.cast())
}

impl Pool {
    fn new(config: Config) -> Result<Pool, Error> {
        let frames = config.frames as usize;
        let links = || (0..frames).map(|_| AtomicU32::new(NIL)).collect::<Box<[_]>>();
        Ok(Pool {
            config,
            region: map(frames * config.frame_size as usize)?,
            metas: map(frames * size_of::<Meta>())?.cast(),
            next: links(),
            below: links(),
            top: AtomicU64::new(NIL as u64),
            fresh: AtomicU32::new(0),
            shared: AtomicU64::new(0),
        })
    }

    fn meta_of(&self, index: u32) -> *mut Meta {
        debug_assert!(index < self.config.frames);
        // SAFETY: `index` is below `frames`, so the result is inside the mapping of metadata.
        unsafe { self.metas.add(index as usize) }
    }

    fn index_of(&self, meta: *mut Meta) -> u32 {
        // SAFETY: every `Meta` of a recycled packet lies in the mapping of metadata.
        let index = unsafe { meta.offset_from(self.metas) } as u32;
        debug_assert!(index < self.config.frames);
        index
    }

    fn frame_of(&self, index: u32) -> *mut u8 {
        // SAFETY: `index` is below `frames`, so the result is inside the mapping of frames.
        unsafe { self.region.add(index as usize * self.config.frame_size as usize) }
    }

    /// Puts a chain of `count` frames on the shared stack.
    fn give(&self, frames: &[*mut Meta]) {
        let [first, rest @ ..] = frames else { return };
        let first = self.index_of(*first);
        let mut at = first;
        for &meta in rest {
            let index = self.index_of(meta);
            self.next[at as usize].store(index, Ordering::Relaxed);
            at = index;
        }
        self.next[at as usize].store(NIL, Ordering::Relaxed);
        self.shared.fetch_add(frames.len() as u64, Ordering::Relaxed);
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            self.below[first as usize].store(top as u32, Ordering::Relaxed);
            let new = ((top >> 32).wrapping_add(1) << 32) | first as u64;
            match self.top.compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Takes one chain from the shared stack, or never-used frames, into `out`; returns how many.
    fn take(&self, out: &mut [*mut Meta; MAGAZINE]) -> usize {
        let mut top = self.top.load(Ordering::Acquire);
        while top as u32 != NIL {
            let first = top as u32;
            let below = self.below[first as usize].load(Ordering::Relaxed);
            let new = ((top >> 32).wrapping_add(1) << 32) | below as u64;
            match self.top.compare_exchange_weak(top, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return self.unchain(first, out),
                Err(now) => top = now,
            }
        }
        self.take_fresh(out)
    }

    fn unchain(&self, first: u32, out: &mut [*mut Meta; MAGAZINE]) -> usize {
        let (mut n, mut at) = (0, first);
        while at != NIL && n < MAGAZINE {
            out[n] = self.meta_of(at);
            at = self.next[at as usize].load(Ordering::Relaxed);
            n += 1;
        }
        self.shared.fetch_sub(n as u64, Ordering::Relaxed);
        n
    }

    fn take_fresh(&self, out: &mut [*mut Meta; MAGAZINE]) -> usize {
        let frames = self.config.frames;
        let claim = |at: u32| (at < frames).then(|| at.saturating_add(CHUNK as u32).min(frames));
        let Ok(from) = self.fresh.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim) else { return 0 };
        let to = from.saturating_add(CHUNK as u32).min(frames);
        for (slot, index) in out.iter_mut().zip(from..to) {
            let meta = self.meta_of(index);
            // SAFETY: frames `from..to` were claimed by this thread above and belong to nobody else.
            unsafe { meta.write(Meta::fresh(self.frame_of(index), 0)) };
            *slot = meta;
        }
        (to - from) as usize
    }
}

struct Magazine {
    len: usize,
    frames: [*mut Meta; MAGAZINE],
}

impl Magazine {
    fn flush(&mut self, keep: usize) {
        // The oldest frames leave; the most recently freed, still cached, stay.
        let leave = self.len.saturating_sub(keep);
        for chunk in self.frames[..leave].chunks(CHUNK) {
            pool().give(chunk);
        }
        self.frames.copy_within(leave..self.len, 0);
        self.len -= leave;
    }

    fn flush_all(&mut self) {
        self.flush(0);
    }
}

struct MagazineCell(UnsafeCell<Magazine>);

impl Drop for MagazineCell {
    fn drop(&mut self) {
        self.0.get_mut().flush_all();
    }
}

thread_local! {
    static MAGAZINE_OF_THREAD: MagazineCell =
        const { MagazineCell(UnsafeCell::new(Magazine { len: 0, frames: [ptr::null_mut(); MAGAZINE] })) };
}

/// Layout of a packet from the general allocator: metadata first, the frame after it.
fn heap_layout(frame_size: u32) -> Layout {
    let bytes = size_of::<Meta>() + frame_size as usize;
    // Sizes are small constants and the alignment is a power of two, so the layout always exists.
    Layout::from_size_align(bytes, align_of::<Meta>()).unwrap_or(Layout::new::<Meta>())
}

/// Takes a free frame; `None` when all are in use. Its metadata names the frame and is otherwise stale.
#[inline]
pub(crate) fn take() -> Option<*mut Meta> {
    let pool = pool();
    if pool.config.mode == Mode::Allocator {
        return take_heap(pool);
    }
    MAGAZINE_OF_THREAD
        .try_with(|m| {
            // SAFETY: the magazine belongs to this thread, and no other reference to it exists during this call.
            let m = unsafe { &mut *m.0.get() };
            if m.len == 0 {
                m.len = pool.take(&mut m.frames);
                if m.len == 0 {
                    return None;
                }
            }
            m.len -= 1;
            Some(m.frames[m.len])
        })
        .ok()
        .flatten()
}

#[cold]
fn take_heap(pool: &Pool) -> Option<*mut Meta> {
    // SAFETY: the layout has a size above zero; the block is checked before it is written.
    unsafe {
        let meta = alloc(heap_layout(pool.config.frame_size)).cast::<Meta>();
        if meta.is_null() {
            return None;
        }
        meta.write(Meta::fresh(meta.add(1).cast(), 0));
        Some(meta)
    }
}

/// Takes back a frame that no packet owns any more.
///
/// # Safety
/// `meta` came from [`take`] (or is the metadata of a pool frame) and nobody uses it or its frame again.
#[inline]
pub(crate) unsafe fn give_back(meta: *mut Meta) {
    let pool = pool();
    if pool.config.mode == Mode::Allocator {
        // SAFETY: in this mode every packet was allocated by `take_heap` with the same layout.
        return unsafe { dealloc(meta.cast(), heap_layout(pool.config.frame_size)) };
    }
    let kept = MAGAZINE_OF_THREAD.try_with(|m| {
        // SAFETY: the magazine belongs to this thread, and no other reference to it exists during this call.
        let m = unsafe { &mut *m.0.get() };
        if m.len == MAGAZINE {
            m.flush(CHUNK);
        }
        m.frames[m.len] = meta;
        m.len += 1;
    });
    if kept.is_err() {
        // The thread is ending and its magazine is gone.
        pool.give(&[meta]);
    }
}

/// Metadata of the pool frame that holds the byte at `offset` of the region, if there is one.
pub(crate) fn meta_at(offset: u64) -> Option<*mut Meta> {
    let pool = pool();
    let index = offset / pool.config.frame_size as u64;
    (pool.config.mode == Mode::Recycle && index < pool.config.frames as u64)
        .then(|| pool.meta_of(index as u32))
}

/// Bytes a frame.
#[inline]
pub(crate) fn frame_size() -> usize {
    pool().config.frame_size as usize
}
