//! DPDK's lookup libraries as contenders, through the shim in `shim/dpdk.c`.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use causeway_fib::Prefix;

use crate::contender::{Contender, Fill, Mode, ROUND, cpu_time};
use crate::tables::{Family, Route, Update};

#[allow(clippy::missing_safety_doc)]
unsafe extern "C" {
    fn shim_init(megabytes: u32, huge_pages: i32) -> i32;
    fn shim_version() -> *const c_char;
    fn shim_fib_new(name: *const c_char, routes: u32, tbl8: u32, entry_bytes: i32) -> *mut c_void;
    fn shim_fib_set(fib: *mut c_void, address: u32, length: u8, next_hop: u64) -> i32;
    fn shim_fib_lookup(fib: *mut c_void, addresses: *const u32, results: *mut u32, count: u32);
    fn shim_fib_chain(fib: *mut c_void, addresses: *const u32, results: *mut u32, count: u32);
    fn shim_fib_free(table: *mut c_void);
    fn shim_lpm_new(name: *const c_char, rules: u32, tbl8: u32) -> *mut c_void;
    fn shim_lpm_fill(lpm: *mut c_void, first: u32, count: u32, next_hop: u32);
    fn shim_lpm_add(lpm: *mut c_void, address: u32, length: u8, next_hop: u32) -> i32;
    fn shim_lpm_lookup(lpm: *mut c_void, addresses: *const u32, results: *mut u32, count: u32);
    fn shim_lpm_chain(lpm: *mut c_void, addresses: *const u32, results: *mut u32, count: u32);
    fn shim_lpm_free(table: *mut c_void);
    fn shim_fib6_new(name: *const c_char, routes: u32, tbl8: u32) -> *mut c_void;
    fn shim_fib6_set(fib: *mut c_void, address: *const u8, length: u8, next_hop: u64) -> i32;
    fn shim_fib6_lookup(fib: *mut c_void, addresses: *const [u8; 16], results: *mut u32, count: u32);
    fn shim_fib6_chain(fib: *mut c_void, addresses: *const [u8; 16], results: *mut u32, count: u32);
    fn shim_fib6_free(table: *mut c_void);
    fn shim_lpm6_new(name: *const c_char, rules: u32, tbl8: u32) -> *mut c_void;
    fn shim_lpm6_add(lpm: *mut c_void, address: *const u8, length: u8, next_hop: u32) -> i32;
    fn shim_lpm6_lookup(lpm: *mut c_void, addresses: *const [u8; 16], results: *mut u32, count: u32);
    fn shim_lpm6_chain(lpm: *mut c_void, addresses: *const [u8; 16], results: *mut u32, count: u32);
    fn shim_lpm6_free(table: *mut c_void);
}

/// What all tables of one run take.
const MEGABYTES: u32 = 4000;

/// Starts DPDK's memory, on huge pages if enough are reserved. Once in a process; true if it worked.
pub fn start() -> bool {
    let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    let pages: u32 = free.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let huge = pages >= MEGABYTES / 2;
    if !huge {
        let needed = MEGABYTES / 2;
        println!(
            "DPDK runs on 4 KB pages, which slows it: reserve {needed} huge pages of 2 MB to measure its best"
        );
    }
    // SAFETY: called once, before anything else of the shim.
    unsafe { shim_init(MEGABYTES, i32::from(huge)) == 0 }
}

/// What the library calls itself.
pub fn version() -> String {
    // SAFETY: a terminated string that lasts as long as the process.
    unsafe { CStr::from_ptr(shim_version()) }.to_string_lossy().into_owned()
}

/// Which of DPDK's tables.
#[derive(Clone, Copy)]
enum Kind {
    Fib,
    Lpm,
    Fib6,
    Lpm6,
}

/// A table inside DPDK.
pub struct Dpdk {
    name: String,
    kind: Kind,
    table: *mut c_void,
    bytes: usize,
    build: Duration,
}

impl Drop for Dpdk {
    fn drop(&mut self) {
        let free = match self.kind {
            Kind::Fib => shim_fib_free,
            Kind::Lpm => shim_lpm_free,
            Kind::Fib6 => shim_fib6_free,
            Kind::Lpm6 => shim_lpm6_free,
        };
        // SAFETY: a table of this kind, which nothing else refers to; all of these accept null.
        unsafe { free(self.table) };
    }
}

/// DPDK wants names of tables to be unique in the process.
fn c_name(name: &str) -> CString {
    static TABLES: AtomicU32 = AtomicU32::new(0);
    let number = TABLES.fetch_add(1, Ordering::Relaxed);
    CString::new(format!("{name} {number}")).unwrap_or_default()
}

fn finish<A>(
    name: &str,
    kind: Kind,
    bytes: usize,
    table: *mut c_void,
    fill: impl FnOnce(*mut c_void) -> bool,
) -> Option<Box<dyn Contender<A>>>
where
    Dpdk: Contender<A>,
{
    let start = cpu_time();
    let mut dpdk = Dpdk { name: name.to_owned(), kind, table, bytes, build: Duration::ZERO };
    if table.is_null() || !fill(table) {
        eprintln!("{name}: DPDK refused a table of {} MB", bytes / 1_000_000);
        return None;
    }
    dpdk.build = cpu_time() - start;
    Some(Box::new(dpdk))
}

/// `rte_fib` (DIR-24-8) with entries of 1, 2 or 4 bytes.
pub fn fib(routes: &[Route<u32>], entry_bytes: usize) -> Option<Box<dyn Contender<u32>>> {
    let name = format!("rte_fib {entry_bytes} B");
    let most = (1_u32 << (8 * entry_bytes - 1).min(30)) - 1;
    if routes.iter().any(|route| route.1 > most) {
        eprintln!("{name}: cannot hold these next hops; left out");
        return None;
    }
    let tbl8 = if entry_bytes == 1 { 127 } else { 32_000 };
    // SAFETY: the name outlives the call.
    let table = unsafe {
        shim_fib_new(c_name(&name).as_ptr(), routes.len() as u32 * 5 / 4, tbl8, entry_bytes as i32)
    };
    let bytes = (1 << 24) * entry_bytes + used_tbl8(routes) * 256 * entry_bytes;
    finish(&name, Kind::Fib, bytes, table, |table| {
        // SAFETY: a table of this kind.
        let add =
            |&(p, next_hop): &Route<u32>| unsafe { shim_fib_set(table, p.first(), p.len(), next_hop.into()) };
        routes.iter().all(|route| add(route) == 0)
    })
}

fn used_tbl8(routes: &[Route<u32>]) -> usize {
    let mut groups: Vec<_> = routes.iter().filter(|r| r.0.len() > 24).map(|r| r.0.first() >> 8).collect();
    groups.sort_unstable();
    groups.dedup();
    groups.len()
}

/// `rte_lpm`; routes up to /24 are written from the runs they make.
pub fn lpm(routes: &[Route<u32>]) -> Option<Box<dyn Contender<u32>>> {
    // SAFETY: the name outlives the call.
    let table = unsafe { shim_lpm_new(c_name("rte_lpm").as_ptr(), 1 << 16, 32_000) };
    let bytes = (1 << 26) + used_tbl8(routes) * 1024;
    finish("rte_lpm", Kind::Lpm, bytes, table, |table| {
        let mut sorted: Vec<_> = routes.iter().filter(|route| route.0.len() <= 24).collect();
        // Shorter first: longer ones overwrite their part.
        sorted.sort_by_key(|route| route.0.len());
        for (prefix, next_hop) in sorted {
            // SAFETY: a table of this kind; a prefix up to /24 covers whole entries of its first level.
            unsafe { shim_lpm_fill(table, prefix.first() >> 8, 1 << (24 - prefix.len()), *next_hop) };
        }
        let mut long: Vec<_> = routes.iter().filter(|route| route.0.len() > 24).collect();
        long.sort_by_key(|route| route.0.len());
        // SAFETY: a table of this kind.
        long.into_iter()
            .all(|(p, next_hop)| unsafe { shim_lpm_add(table, p.first(), p.len(), *next_hop) } == 0)
    })
}

/// `rte_fib6` (trie, 4-byte entries), with the smaller of two pools that is enough: how many groups a table takes
/// depends on its next hops.
pub fn fib6(routes: &[Route<u128>]) -> Option<Box<dyn Contender<u128>>> {
    let with_pool = |tbl8: u32| {
        // SAFETY: the name outlives the call.
        let table = unsafe { shim_fib6_new(c_name("rte_fib6").as_ptr(), routes.len() as u32 * 5 / 4, tbl8) };
        finish("rte_fib6 4 B", Kind::Fib6, (1 << 26) + tbl8 as usize * 1024, table, |table| {
            routes.iter().all(|route| set6(table, route.0, route.1) == 0)
        })
    };
    with_pool(300_000).or_else(|| with_pool(500_000))
}

fn set6(table: *mut c_void, prefix: Prefix<u128>, next_hop: u32) -> i32 {
    let address = prefix.first().to_be_bytes();
    // SAFETY: a table of this kind; the address is 16 bytes.
    unsafe { shim_fib6_set(table, address.as_ptr(), prefix.len(), next_hop.into()) }
}

/// `rte_lpm6`.
pub fn lpm6(routes: &[Route<u128>]) -> Option<Box<dyn Contender<u128>>> {
    let tbl8 = 100_000;
    // SAFETY: the name outlives the call.
    let table = unsafe { shim_lpm6_new(c_name("rte_lpm6").as_ptr(), 1_000_000, tbl8) };
    finish("rte_lpm6", Kind::Lpm6, (1 << 26) + tbl8 as usize * 1024, table, |table| {
        routes.iter().all(|&(prefix, next_hop)| {
            let address = prefix.first().to_be_bytes();
            // SAFETY: a table of this kind; the address is 16 bytes.
            unsafe { shim_lpm6_add(table, address.as_ptr(), prefix.len(), next_hop) == 0 }
        })
    })
}

impl Contender<u32> for Dpdk {
    fn name(&self) -> &str {
        &self.name
    }

    fn fill(&self) -> Fill {
        Fill::ByRoute
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn build(&self) -> Duration {
        self.build
    }

    fn run(&self, mode: Mode, addresses: &[u32], results: &mut [u32]) -> Option<Duration> {
        let functions: [Look<u32>; 2] = match self.kind {
            Kind::Lpm => [shim_lpm_lookup, shim_lpm_chain],
            _ => [shim_fib_lookup, shim_fib_chain],
        };
        run(self.table, functions, mode, addresses, results)
    }

    fn update(&mut self, &(prefix, next_hop): &Update<u32>) -> bool {
        if !matches!(self.kind, Kind::Fib) {
            return false;
        }
        // SAFETY: a table of this kind.
        unsafe { shim_fib_set(self.table, prefix.first(), prefix.len(), next_hop.unwrap_or(0).into()) };
        true
    }
}

impl Contender<u128> for Dpdk {
    fn name(&self) -> &str {
        &self.name
    }

    fn fill(&self) -> Fill {
        Fill::ByRoute
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn build(&self) -> Duration {
        self.build
    }

    fn run(&self, mode: Mode, addresses: &[u128], results: &mut [u32]) -> Option<Duration> {
        let functions: [Look<[u8; 16]>; 2] = match self.kind {
            Kind::Lpm6 => [shim_lpm6_lookup, shim_lpm6_chain],
            _ => [shim_fib6_lookup, shim_fib6_chain],
        };
        run(self.table, functions, mode, addresses, results)
    }

    fn update(&mut self, &(prefix, next_hop): &Update<u128>) -> bool {
        let takes = matches!(self.kind, Kind::Fib6);
        if takes {
            set6(self.table, prefix, next_hop.unwrap_or(0));
        }
        takes
    }
}

type Look<F> = unsafe extern "C" fn(*mut c_void, *const F, *mut u32, u32);

/// Times one pass by a table's function for batches, or by that for addresses that depend on the result before. These
/// loops are in C, so that nothing but the library's own calls is between two lookups.
fn run<A: Family>(
    table: *mut c_void,
    [batch, chain]: [Look<A::Wire>; 2],
    mode: Mode,
    addresses: &[A],
    results: &mut [u32],
) -> Option<Duration> {
    let look = match mode {
        Mode::Batch => batch,
        Mode::Chain => chain,
        // For addresses that do not depend on each other the libraries have their batches.
        Mode::Single => return None,
    };
    let wire: Vec<A::Wire> = addresses.iter().map(|&address| address.to_wire()).collect();
    let start = cpu_time();
    for (found, some) in results.chunks_mut(ROUND).zip(wire.chunks(ROUND)) {
        // SAFETY: both arrays hold `some.len()` elements.
        unsafe { look(table, some.as_ptr(), found.as_mut_ptr(), some.len() as u32) };
    }
    Some(cpu_time() - start)
}
