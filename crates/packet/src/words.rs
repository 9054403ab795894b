//! Counters in a shared-memory file: plain words that one worker writes and any process may map and read.
//!
//! Reading costs the writer nothing: there is no lock, no message and no system call, only a cache line that the
//! reader shares. Layout of the file, all integers in host order:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..8 | the magic text `CAUSEWAY` |
//! | 8..16 | layout version, 2 |
//! | 16..24 | number of words, *n* |
//! | 24..32 | bytes of the directory that follows the words |
//! | 32..40 | generation: 1 for the first graph of a router, one more with each hot swap |
//! | 40..48 | whether the words are counted in: 0 not yet, 1 yes, 2 no more: open the path anew |
//! | 64..64+8*n* | the words |
//! | 64+8*n*.. | the directory: one line a word in use, `index<TAB>worker<TAB>element<TAB>counter<TAB>unit`; the unit is `-` where the name says what is counted |

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes before the first word.
pub const HEADER_BYTES: usize = 64;
const MAGIC: &[u8; 8] = b"CAUSEWAY";
const VERSION: u64 = 2;
/// Where the header says of which generation the words are, and whether they are counted in.
const GENERATION_AT: u64 = 32;
const STATE_AT: u64 = 40;

/// A mapping of shared words.
#[derive(Debug)]
pub struct Words {
    base: *mut u8,
    count: usize,
    file: Option<File>,
}

// SAFETY: the mapping lives as long as the value and is reached only through atomics.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// `count` words in memory that no other process sees.
    pub fn private(count: usize) -> io::Result<Words> {
        Self::map(count, None)
    }

    /// `count` words in a new file at `path`; an old file there is replaced.
    pub fn create(path: &Path, count: usize) -> io::Result<Words> {
        // A reader of the old file keeps its own mapping; truncating in place would kill it with SIGBUS.
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_ne_bytes())?;
        file.write_all(&(count as u64).to_ne_bytes())?;
        // With its blocks: in a file with holes a store would end the process when the disk is full.
        // SAFETY: the descriptor is open.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, (HEADER_BYTES + count * 8) as libc::off_t) }
        {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        Self::map(count, Some(file))
    }

    fn map(count: usize, file: Option<File>) -> io::Result<Words> {
        let bytes = HEADER_BYTES + count * 8;
        let (flags, fd) = match &file {
            Some(f) => (libc::MAP_SHARED, f.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: a new mapping of `bytes` bytes, checked below; the file, if any, is that long.
        let base =
            unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Words { base: base.cast(), count, file })
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the words start 64 bytes into a page-aligned mapping, are `count` in number, and are only ever
        // used as atomics.
        unsafe { std::slice::from_raw_parts(self.base.add(HEADER_BYTES).cast(), self.count) }
    }

    /// Writes the directory that tells readers what each word counts, and that the words of `generation` are counted in
    /// from now on.
    pub fn publish(&self, directory: &str, generation: u64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.write_all_at(directory.as_bytes(), (HEADER_BYTES + self.count * 8) as u64)?;
        file.write_all_at(&(directory.len() as u64).to_ne_bytes(), 24)?;
        file.write_all_at(&generation.to_ne_bytes(), GENERATION_AT)?;
        file.write_all_at(&1u64.to_ne_bytes(), STATE_AT)
    }

    /// Tells readers that nobody counts here any more.
    pub fn retire(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.write_all_at(&2u64.to_ne_bytes(), STATE_AT))
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length and ends with this value.
        unsafe { libc::munmap(self.base.cast(), HEADER_BYTES + self.count * 8) };
    }
}

/// Adds to a word that only the calling thread writes: a load and a store, no locked instruction.
#[inline(always)]
pub fn add(word: &AtomicU64, n: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}
