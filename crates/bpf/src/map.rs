//! Maps: memory shared between programs and user space.

use super::sys;
use crate::error::{Error, ErrorKind, Result};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// The kind of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MapKind {
    /// Hash table.
    Hash = 1,
    /// Array, keyed by a `u32`.
    Array = 2,
    /// Programs to go on in by a tail call. The kernel empties it when its last descriptor is closed.
    ProgArray = 3,
    /// Array with one value per CPU.
    PerCpuArray = 6,
    /// Longest-prefix match; a key is a `u32` prefix length in host order and the address in network order.
    LpmTrie = 11,
    /// Maps by index; values are descriptors of maps. An update waits for the programs that run.
    ArrayOfMaps = 12,
    /// Interfaces by index of the map; values are `u32` interface indexes.
    DevMap = 14,
    /// AF_XDP sockets by queue; values are socket descriptors.
    XskMap = 17,
    /// Interfaces by any `u32`.
    DevMapHash = 25,
}

/// The map's memory is not allocated ahead; required by [`MapKind::LpmTrie`].
const BPF_F_NO_PREALLOC: u32 = 1 << 0;
/// The map's values can be mapped into the process.
const BPF_F_MMAPABLE: u32 = 1 << 10;

/// What few maps are made with.
struct Extra {
    flags: u32,
    /// The descriptor of a map that those inside are like.
    inner: u32,
}

/// A map, owned: it lives as long as this value or a program that uses it.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    kind: MapKind,
    key_size: usize,
    value_size: usize,
}

impl Map {
    /// Makes a map of `max_entries` with keys and values of the given sizes in bytes. `name` shows in `bpftool`.
    ///
    /// # Errors
    /// [`ErrorKind::Privilege`] or what bpf(2) says.
    pub fn new(
        kind: MapKind,
        name: &str,
        key_size: usize,
        value_size: usize,
        max_entries: u32,
    ) -> Result<Map> {
        let flags = if kind == MapKind::LpmTrie { BPF_F_NO_PREALLOC } else { 0 };
        Map::make(kind, name, key_size, value_size, max_entries, Extra { flags, inner: 0 })
    }

    /// Makes an array of maps that are like `inner`.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub(crate) fn of_maps(name: &str, inner: &Map, max_entries: u32) -> Result<Map> {
        let inner = inner.fd.as_raw_fd() as u32;
        Map::make(MapKind::ArrayOfMaps, name, 4, 4, max_entries, Extra { flags: 0, inner })
    }

    fn make(
        kind: MapKind,
        name: &str,
        key_size: usize,
        value_size: usize,
        max_entries: u32,
        extra: Extra,
    ) -> Result<Map> {
        let mut attr = sys::MapCreate {
            map_type: kind as u32,
            key_size: key_size as u32,
            value_size: value_size as u32,
            max_entries,
            map_flags: extra.flags,
            inner_map_fd: extra.inner,
            map_name: sys::object_name(name),
            ..Default::default()
        };
        // SAFETY: the attributes hold no addresses.
        let fd = unsafe { sys::bpf_fd(sys::MAP_CREATE, &mut attr) }
            .map_err(|e| Error::system(format!("make BPF map {name}"), e))?;
        Ok(Map { fd, kind, key_size, value_size })
    }

    /// The same map under a high descriptor number. The kernel closes the descriptors of a process that ends from the
    /// highest number down, so this one is closed before all that have been opened as usual. Where the limit on
    /// descriptors does not allow it, the number stays.
    #[must_use]
    pub fn with_high_descriptor(self) -> Map {
        // SAFETY: asks for a new descriptor, checked and owned below.
        let fd = unsafe { libc::fcntl(self.fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, high_descriptor()) };
        if fd < 0 {
            return self;
        }
        // SAFETY: new and ours.
        Map { fd: unsafe { OwnedFd::from_raw_fd(fd) }, ..self }
    }

    /// Sets `key` to `value`; not for [`MapKind::PerCpuArray`], of which the kernel takes a value for each CPU.
    ///
    /// # Errors
    /// What bpf(2) says: `E2BIG` when the map is full.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check(key, Some(value.len()))?;
        if self.kind == MapKind::PerCpuArray {
            let what = "an entry of a BPF map with values by CPU cannot be set to one value";
            return Err(Error::new(ErrorKind::System, what));
        }
        let mut attr = self.elem(key, value.as_ptr() as u64);
        // SAFETY: key and value are as long as the map's, checked above; the kernel only reads them.
        unsafe { sys::bpf(sys::MAP_UPDATE_ELEM, &mut attr) }
            .map_err(|e| Error::system("set an entry of a BPF map", e))?;
        Ok(())
    }

    /// Sets index `key` to a `u32`: for arrays, device maps and socket maps.
    ///
    /// # Errors
    /// As [`Map::insert`].
    pub fn insert_u32(&self, key: u32, value: u32) -> Result<()> {
        self.insert(&key.to_ne_bytes(), &value.to_ne_bytes())
    }

    /// Removes `key`; tells whether it was there.
    ///
    /// # Errors
    /// What bpf(2) says; `EINVAL` for arrays, which have no holes.
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        self.check(key, None)?;
        let mut attr = self.elem(key, 0);
        // SAFETY: the key is as long as the map's; the kernel only reads it.
        found(unsafe { sys::bpf(sys::MAP_DELETE_ELEM, &mut attr) }, "remove an entry of a BPF map")
    }

    /// The value of `key`. For [`MapKind::PerCpuArray`] the values of all possible CPUs, each rounded up to 8 bytes.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check(key, None)?;
        let size = match self.kind {
            MapKind::PerCpuArray => self.value_size.next_multiple_of(8) * possible_cpus()?,
            _ => self.value_size,
        };
        let mut value = vec![0; size];
        let mut attr = self.elem(key, value.as_mut_ptr() as u64);
        // SAFETY: `value` is as long as the kernel writes for this kind of map.
        let there = found(unsafe { sys::bpf(sys::MAP_LOOKUP_ELEM, &mut attr) }, "read a BPF map")?;
        Ok(there.then_some(value))
    }

    /// Sum over all CPUs of the 64-bit counter at `index` of a per-CPU array.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn per_cpu_sum(&self, index: u32) -> Result<u64> {
        let values = self.get(&index.to_ne_bytes())?.unwrap_or_default();
        let words = values.chunks_exact(8).map(|c| c.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b)));
        let words = words.map(|w| if cfg!(target_endian = "big") { w.swap_bytes() } else { w });
        Ok(words.fold(0, u64::wrapping_add))
    }

    /// Sets the 64-bit counter at `index` of a per-CPU array to zero on all CPUs.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn clear_per_cpu(&self, index: u32) -> Result<()> {
        let zeros = vec![0u8; 8 * possible_cpus()?];
        let key = index.to_ne_bytes();
        self.check(&key, Some(8))?;
        let mut attr = self.elem(&key, zeros.as_ptr() as u64);
        // SAFETY: the key is as long as the map's, and the value as long as the kernel reads for this kind of map.
        unsafe { sys::bpf(sys::MAP_UPDATE_ELEM, &mut attr) }
            .map_err(|e| Error::system("clear a counter of a BPF map", e))?;
        Ok(())
    }

    /// All keys at some moment; entries that change meanwhile may be missed.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn keys(&self) -> Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut next = vec![0; self.key_size];
            let mut attr = sys::MapElem {
                map_fd: self.fd.as_raw_fd() as u32,
                key: keys.last().map_or(0, |k| k.as_ptr() as u64),
                value: next.as_mut_ptr() as u64,
                ..Default::default()
            };
            // SAFETY: both keys are as long as the map's keys.
            if !found(unsafe { sys::bpf(sys::MAP_GET_NEXT_KEY, &mut attr) }, "list a BPF map")? {
                return Ok(keys);
            }
            keys.push(next);
        }
    }

    fn elem(&self, key: &[u8], value: u64) -> sys::MapElem {
        sys::MapElem {
            map_fd: self.fd.as_raw_fd() as u32,
            key: key.as_ptr() as u64,
            value,
            ..Default::default()
        }
    }

    fn check(&self, key: &[u8], value_size: Option<usize>) -> Result<()> {
        if key.len() == self.key_size && value_size.is_none_or(|v| v == self.value_size) {
            return Ok(());
        }
        let text = format!(
            "a key of {} bytes{} does not fit a BPF map of keys of {} and values of {} bytes",
            key.len(),
            value_size.map_or(String::new(), |v| format!(" and a value of {v}")),
            self.key_size,
            self.value_size
        );
        Err(Error::new(ErrorKind::System, text))
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A descriptor number that a router does not come near, below the soft limit; small enough not to make the kernel's
/// table of descriptors large.
fn high_descriptor() -> i32 {
    const HIGH: u64 = 4096;
    const ROOM: u64 = 16;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(HIGH);
    limit.min(HIGH).saturating_sub(ROOM) as i32
}

fn found(result: io::Result<i32>, what: &str) -> Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(e) => Err(Error::system(what, e)),
    }
}

/// Number of CPUs the kernel has per-CPU memory for; the length of per-CPU values.
///
/// # Errors
/// [`ErrorKind::System`] if the kernel does not say.
pub fn possible_cpus() -> Result<usize> {
    let path = "/sys/devices/system/cpu/possible";
    let text = std::fs::read_to_string(path).map_err(|e| Error::system(format!("read {path}"), e))?;
    let last = text.trim().rsplit(['-', ',']).next().and_then(|n| n.parse::<usize>().ok());
    last.map(|n| n + 1).ok_or_else(|| Error::new(ErrorKind::System, format!("{path} says {text:?}")))
}

/// An array map whose values are mapped into the process: both sides see each other's stores without a system call.
#[derive(Debug)]
pub struct MappedArray {
    map: Map,
    base: NonNull<u8>,
    /// Bytes mapped.
    size: usize,
    /// Distance between values.
    stride: usize,
}

// SAFETY: the mapping belongs to this value alone on our side; its address is valid on every thread.
unsafe impl Send for MappedArray {}
// SAFETY: a shared reference only gives out atomics.
unsafe impl Sync for MappedArray {}

impl MappedArray {
    /// An array of `entries` values of `value_size` bytes, in one piece: entry `i` starts at `i * stride`, where
    /// the stride is `value_size` rounded up to 8.
    ///
    /// # Errors
    /// As [`Map::new`], and what mmap(2) says.
    pub fn new(name: &str, value_size: usize, entries: u32) -> Result<MappedArray> {
        let map = Map::make(
            MapKind::Array,
            name,
            4,
            value_size,
            entries,
            Extra { flags: BPF_F_MMAPABLE, inner: 0 },
        )?;
        let stride = value_size.next_multiple_of(8);
        let size = (stride * entries as usize).next_multiple_of(4096);
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), size, prot, libc::MAP_SHARED, map.fd.as_raw_fd(), 0) };
        match NonNull::new(base.cast()) {
            Some(base) if base.as_ptr() as isize != -1 => Ok(MappedArray { map, base, size, stride }),
            _ => Err(Error::last_os(format!("map the BPF array {name}"))),
        }
    }

    /// The map, for programs.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Bytes from one value to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// All values, to be written.
    ///
    /// For arrays that programs only read. They may do so at any time, on other processors too: whoever writes here decides when
    /// programs run, as the live-frame transmitter does, or accepts that they see a part of the change. What programs write, too, is
    /// read and written by [`MappedArray::words`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `size` bytes long, lives as long as `self`, and `&mut self` makes us its only user
        // in this process. Programs of the kernel, which are no part of it, do not write here, as the caller was told.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.size) }
    }

    /// All values as 64-bit words, which programs may read and change at any time.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is `size` bytes long, a multiple of a page, zero or written as words, and lives as long as
        // `self`; atomics may be shared with other writers.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), self.size / 8) }
    }

    /// The 64-bit word at byte `offset`, for words that programs change while we read.
    ///
    /// # Panics
    /// If the word is not inside the array or not aligned.
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.size, "no word at byte {offset}");
        // SAFETY: inside the mapping, aligned, and atomics may be shared with other writers.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl Drop for MappedArray {
    fn drop(&mut self) {
        // SAFETY: we made the mapping, and all borrows of it ended with `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}
