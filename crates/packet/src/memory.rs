//! The memory of the pool: one memfd with all frames and what is known of them.
//!
//! A later process that is handed the descriptor maps the same frames and finds there who has each. Layout of the
//! file, all integers in host order; every part begins on a page, the frames on a huge page:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..8 | the magic text `CWFRAMES` |
//! | 8..12 | layout version, 1 |
//! | 12..16 | bytes a frame |
//! | 16..20 | number of frames, *n* |
//! | 20..24 | number of places in the table of rings, *r* |
//! | 24..28 | bytes of one frame's metadata, *m* |
//! | 32..40 | offset of the table of rings: *r* words of 64 bits ([`crate::ledger`]) |
//! | 40..48 | offset of the owners: *n* words of 16 bits ([`crate::ledger`]) |
//! | 48..56 | offset of the metadata: *n* times *m* bytes, whose addresses are those of the process that made it |
//! | 56..64 | offset of the frames |
//! | 64..72 | bytes of the file |

use crate::hints::HUGE_PAGE;
use crate::ledger::RINGS;
use crate::meta::Meta;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU16, AtomicU64};

const MAGIC: &[u8; 8] = b"CWFRAMES";
const VERSION: u32 = 1;
const PAGE: usize = 4_096;

/// The first page of the file.
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: u32,
    frame_size: u32,
    frames: u32,
    rings: u32,
    meta_size: u32,
    _pad: u32,
    rings_at: u64,
    owners_at: u64,
    metas_at: u64,
    frames_at: u64,
    bytes: u64,
}

impl Header {
    fn new(frames: u32, frame_size: u32) -> Header {
        let n = frames as usize;
        let rings_at = PAGE;
        let owners_at = (rings_at + RINGS * size_of::<AtomicU64>()).next_multiple_of(PAGE);
        let metas_at = (owners_at + n * size_of::<AtomicU16>()).next_multiple_of(PAGE);
        let frames_at = (metas_at + n * size_of::<Meta>()).next_multiple_of(HUGE_PAGE);
        Header {
            magic: *MAGIC,
            version: VERSION,
            frame_size,
            frames,
            rings: RINGS as u32,
            meta_size: size_of::<Meta>() as u32,
            _pad: 0,
            rings_at: rings_at as u64,
            owners_at: owners_at as u64,
            metas_at: metas_at as u64,
            frames_at: frames_at as u64,
            bytes: (frames_at + n * frame_size as usize) as u64,
        }
    }
}

/// The mapping. It is never unmapped: the pool lives as long as the process.
pub(crate) struct Memory {
    rings: &'static [AtomicU64],
    owners: &'static [AtomicU16],
    metas: *mut Meta,
    frames: *mut u8,
    frame_shift: u32,
    fd: OwnedFd,
}

// SAFETY: the pointers name a mapping that lives as long as the process; whose a frame and its metadata are is
// the ledger's business.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Bytes of the machine's memory.
fn of_machine() -> u64 {
    // SAFETY: asks for numbers.
    let [pages, bytes] =
        [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    // What it does not know limits nothing.
    u64::try_from(pages)
        .ok()
        .zip(u64::try_from(bytes).ok())
        .map_or(u64::MAX, |(n, bytes)| n.saturating_mul(bytes))
}

impl Memory {
    /// Memory for `frames` frames of `frame_size` bytes, a power of two. It is touched only as frames are used.
    ///
    /// # Errors
    /// It is more than the machine has, or what the system calls say.
    pub fn new(frames: u32, frame_size: u32) -> io::Result<Memory> {
        let header = Header::new(frames, frame_size);
        // The kernel would promise it, and end the process when it is used.
        if header.bytes > of_machine() {
            let (wanted, there) = (header.bytes >> 20, of_machine() >> 20);
            let what = format!("{wanted} MiB are more than the {there} of this machine");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, what));
        }
        let fd = sealed_file(header.bytes)?;
        let base = map(&fd, header.bytes as usize)?;
        let at = |offset: u64| base.wrapping_add(offset as usize);
        // SAFETY: the parts lie in the mapping one after the other, aligned to pages, and fit, by the header's
        // construction. The file is full of zeros, which both kinds of atomics may hold.
        unsafe {
            Ok(Memory {
                rings: std::slice::from_raw_parts(at(header.rings_at).cast(), RINGS),
                owners: std::slice::from_raw_parts(at(header.owners_at).cast(), frames as usize),
                metas: at(header.metas_at).cast(),
                frames: at(header.frames_at),
                frame_shift: frame_size.trailing_zeros(),
                fd: {
                    base.cast::<Header>().write(header);
                    fd
                },
            })
        }
    }

    /// The file.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// The table of rings.
    pub fn rings(&self) -> &'static [AtomicU64] {
        self.rings
    }

    /// The owner of each frame.
    pub fn owners(&self) -> &'static [AtomicU16] {
        self.owners
    }

    /// The owner of frame `id`, a number that came from this pool.
    #[inline]
    pub fn owner(&self, id: u32) -> &'static AtomicU16 {
        debug_assert!((id as usize) < self.owners.len());
        // SAFETY: the pool hands out no number that is not below `frames`, of which each has an owner.
        unsafe { self.owners.get_unchecked(id as usize) }
    }

    /// Address and length in bytes of all frames.
    pub fn region(&self) -> (*mut u8, usize) {
        (self.frames, self.owners.len() << self.frame_shift)
    }

    /// Offset of frame `id` among the frames.
    #[inline]
    pub fn address(&self, id: u32) -> u64 {
        u64::from(id) << self.frame_shift
    }

    /// The frame that holds the byte at `address`; it may be beyond the last.
    #[inline]
    pub fn id_at(&self, address: u64) -> u64 {
        address >> self.frame_shift
    }

    /// Metadata of frame `id`.
    #[inline]
    pub fn meta(&self, id: u32) -> *mut Meta {
        debug_assert!((id as usize) < self.owners.len());
        self.metas.wrapping_add(id as usize)
    }

    /// First byte of frame `id`.
    #[inline]
    pub fn frame(&self, id: u32) -> *mut u8 {
        debug_assert!((id as usize) < self.owners.len());
        self.frames.wrapping_add((id as usize) << self.frame_shift)
    }

    /// The frame whose metadata this is.
    #[inline]
    pub fn id_of(&self, meta: *const Meta) -> u32 {
        let id = (meta.addr() - self.metas.addr()) / size_of::<Meta>();
        debug_assert!(id < self.owners.len());
        id as u32
    }
}

/// A file in memory of `bytes` bytes that nobody can make shorter: an access past its end would kill us.
fn sealed_file(bytes: u64) -> io::Result<OwnedFd> {
    // SAFETY: makes a new descriptor, checked and owned below; the name is a C string.
    let fd = unsafe {
        libc::memfd_create(c"causeway-frames".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new and ours.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: neither call takes an address.
    let failed = unsafe {
        libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) != 0
            || libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(fd) }
}

/// Maps the whole file where huge pages of the file are huge pages of the mapping.
fn map(fd: &OwnedFd, bytes: usize) -> io::Result<*mut u8> {
    let checked = |p: *mut libc::c_void| match p {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        p => Ok(p.cast::<u8>()),
    };
    let nothing = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let room =
        checked(unsafe { libc::mmap(ptr::null_mut(), bytes + HUGE_PAGE, libc::PROT_NONE, nothing, -1, 0) })?;
    let at = room.wrapping_add(room.align_offset(HUGE_PAGE));
    let (prot, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    // SAFETY: the new mapping replaces a part of the one made above, which nothing refers to.
    let base = checked(unsafe { libc::mmap(at.cast(), bytes, prot, shared, fd.as_raw_fd(), 0) })?;
    // SAFETY: the range was mapped above. Huge pages are a wish; a refusal changes nothing.
    unsafe { libc::madvise(base.cast(), bytes, libc::MADV_HUGEPAGE) };
    Ok(base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    /// What another process reads, who knows the table above and nothing else.
    #[test]
    fn the_file_describes_itself() {
        let memory = Memory::new(1_000, 2_048).expect("memory");
        memory.owners()[999].store(7, std::sync::atomic::Ordering::Relaxed);
        // SAFETY: the last byte of the last frame.
        unsafe { memory.frame(999).add(2_047).write(0xa5) };
        let file = File::from(memory.fd().try_clone().expect("a copy"));
        let mut page = [0; 72];
        file.read_exact_at(&mut page, 0).expect("a header");
        let word = |at: usize| u32::from_ne_bytes(page[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_ne_bytes(page[at..at + 8].try_into().expect("8 bytes"));
        assert_eq!(&page[..8], b"CWFRAMES");
        assert_eq!([word(8), word(12), word(16), word(24)], [1, 2_048, 1_000, 128]);
        assert_eq!(file.metadata().expect("size").len(), long(64));
        let mut owner = [0; 2];
        file.read_exact_at(&mut owner, long(40) + 999 * 2).expect("an owner");
        assert_eq!(u16::from_ne_bytes(owner), 7);
        let mut last = [0];
        file.read_exact_at(&mut last, long(64) - 1).expect("a byte");
        assert_eq!(last, [0xa5]);
        assert!(long(32) + u64::from(word(20)) * 8 <= long(40) && long(48) + 1_000 * 128 <= long(56));
        assert_eq!(long(56) % HUGE_PAGE as u64, 0);
        assert!(file.set_len(4_096).is_err(), "a shorter file would kill those who map it");
    }

    #[test]
    fn places_are_found_both_ways() {
        let memory = Memory::new(1_000, 4_096).expect("memory");
        let (base, len) = memory.region();
        assert_eq!(len, 1_000 * 4_096);
        for id in [0, 1, 499, 999] {
            assert_eq!(memory.id_of(memory.meta(id)), id);
            assert_eq!(memory.id_at(memory.address(id) + 4_095), u64::from(id));
            assert_eq!(memory.frame(id).addr() - base.addr(), memory.address(id) as usize);
        }
    }
}
