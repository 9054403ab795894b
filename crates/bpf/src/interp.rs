//! Runs XDP programs in the `rbpf` interpreter, so that tests need no privileges.
//!
//! The interpreter knows no maps; the helpers here keep them in a thread-local table keyed by the number that a
//! program loads where a real one loads a descriptor.

use super::asm::Code;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// A map of the interpreter: key and value sizes in bytes, and the entries.
pub struct FakeMap {
    /// Bytes of a key.
    pub key_size: usize,
    /// The values by key.
    pub entries: HashMap<Vec<u8>, Box<[u8]>>,
}

thread_local! {
    static MAPS: RefCell<HashMap<i32, FakeMap>> = RefCell::new(HashMap::new());
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
    static FRAME_LEN: Cell<u64> = const { Cell::new(0) };
}

/// The interface that frames come in by.
pub const IFINDEX: u32 = 7;

/// Sets the time that programs see.
pub fn set_now_ns(now_ns: u64) {
    NOW_NS.set(now_ns);
}

/// Empties the table and puts `maps` there.
pub fn set_maps(maps: impl IntoIterator<Item = (i32, FakeMap)>) {
    MAPS.set(maps.into_iter().collect());
}

/// The value of `key` in map `fd`.
pub fn map_value(fd: i32, key: &[u8]) -> Option<Vec<u8>> {
    MAPS.with_borrow(|m| m.get(&fd)?.entries.get(key).map(|v| v.to_vec()))
}

fn lookup(map: u64, key: u64, _: u64, _: u64, _: u64) -> u64 {
    MAPS.with_borrow_mut(|maps| {
        let Some(map) = maps.get_mut(&(map as i32)) else { return 0 };
        // SAFETY: the program passes the address of a stack slot of the key's size; tests only run our programs.
        let key = unsafe { std::slice::from_raw_parts(key as *const u8, map.key_size) };
        map.entries.get_mut(key).map_or(0, |v| v.as_mut_ptr() as u64)
    })
}

fn redirect_map(map: u64, key: u64, flags: u64, _: u64, _: u64) -> u64 {
    let key = (key as u32).to_ne_bytes();
    let there = MAPS.with_borrow(|m| m.get(&(map as i32)).is_some_and(|m| m.entries.contains_key(&key[..])));
    if there { super::action::XDP_REDIRECT as u64 } else { flags & 3 }
}

fn coarse_ns(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    NOW_NS.get()
}

fn buff_len(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    FRAME_LEN.get()
}

/// Puts addresses of values in the place of references to them (`PSEUDO_MAP_VALUE`), as the kernel does at loading.
fn resolve_values(bytes: &mut [u8]) {
    const LD_IMM64: u8 = 0x18;
    const PSEUDO_MAP_VALUE: u8 = 2;
    let mut at = 0;
    while at < bytes.len() {
        let wide = bytes[at] == LD_IMM64;
        if wide && bytes[at + 1] >> 4 == PSEUDO_MAP_VALUE {
            let word = |i: usize| i32::from_ne_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
            let (fd, offset) = (word(at + 4), word(at + 12));
            let first = MAPS.with_borrow(|m| m[&fd].entries[&[0; 4][..]].as_ptr() as u64);
            let address = first + offset as u64;
            bytes[at + 1] &= 0xf;
            bytes[at + 4..at + 8].copy_from_slice(&(address as u32).to_ne_bytes());
            bytes[at + 12..at + 16].copy_from_slice(&((address >> 32) as u32).to_ne_bytes());
        }
        at += if wide { 16 } else { 8 };
    }
}

/// A page of memory below 4 GiB, because the XDP context holds 32-bit addresses.
struct LowMemory(*mut u8);

impl LowMemory {
    const SIZE: usize = 1 << 16;

    fn new() -> LowMemory {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), Self::SIZE, prot, flags, -1, 0) };
        assert_ne!(p, libc::MAP_FAILED);
        LowMemory(p.cast())
    }
}

impl Drop for LowMemory {
    fn drop(&mut self) {
        // SAFETY: our own mapping, no longer used.
        unsafe { libc::munmap(self.0.cast(), Self::SIZE) };
    }
}

/// Runs `code` as an XDP program on `frame` from queue `queue`: the verdict and the frame afterwards.
pub fn run_xdp(code: &Code, frame: &[u8], queue: u32) -> Result<(i32, Vec<u8>), String> {
    let mut bytes = code.to_bytes();
    resolve_values(&mut bytes);
    FRAME_LEN.set(frame.len() as u64);
    let mut vm = rbpf::EbpfVmRaw::new(None).map_err(|e| e.to_string())?;
    vm.set_verifier(|_| Ok(())).map_err(|e| e.to_string())?;
    vm.set_program(&bytes).map_err(|e| e.to_string())?;
    vm.register_helper(1, lookup).map_err(|e| e.to_string())?;
    vm.register_helper(51, redirect_map).map_err(|e| e.to_string())?;
    vm.register_helper(160, coarse_ns).map_err(|e| e.to_string())?;
    vm.register_helper(188, buff_len).map_err(|e| e.to_string())?;
    let low = LowMemory::new();
    assert!(frame.len() <= LowMemory::SIZE);
    // SAFETY: the mapping is that long and nobody else uses it.
    let data = unsafe { std::slice::from_raw_parts_mut(low.0, frame.len()) };
    data.copy_from_slice(frame);
    let start = low.0 as usize as u64;
    vm.register_allowed_memory(start..start + frame.len() as u64);
    MAPS.with_borrow(|maps| {
        for value in maps.values().flat_map(|m| m.entries.values()) {
            let at = value.as_ptr() as u64;
            vm.register_allowed_memory(at..at + value.len() as u64);
        }
    });
    let mut context = [0u8; 24];
    context[0..4].copy_from_slice(&(start as u32).to_ne_bytes());
    context[4..8].copy_from_slice(&(start as u32 + frame.len() as u32).to_ne_bytes());
    context[12..16].copy_from_slice(&IFINDEX.to_ne_bytes());
    context[16..20].copy_from_slice(&queue.to_ne_bytes());
    let verdict = vm.execute_program(&mut context).map_err(|e| e.to_string())?;
    Ok((verdict as i32, data.to_vec()))
}
