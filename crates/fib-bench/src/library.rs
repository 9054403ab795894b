//! Poptrie's own library (Asai and Ohara, SIGCOMM 2015) as a contender, when its shared object is given by path.
//!
//! Nothing of it is needed to build or run the bench: the functions are looked up in the file at run time. It has no
//! call for batches, so a batch is a loop of single lookups, which is how its callers use it.

use std::ffi::{CStr, CString, c_int, c_void};
use std::time::Duration;

use crate::Result;
use crate::contender::{Contender, Fill, Mode, cpu_time};
use crate::tables::{Family, Route, Update};

type Init = unsafe extern "C" fn(*mut c_void, c_int, c_int) -> *mut c_void;
type Set<A> = unsafe extern "C" fn(*mut c_void, A, c_int, *mut c_void) -> c_int;
type Delete<A> = unsafe extern "C" fn(*mut c_void, A, c_int) -> c_int;
type Find<A> = unsafe extern "C" fn(*mut c_void, A) -> *mut c_void;

/// Binary logarithms of the internal nodes and of the leaves there is room for: more than a full table with a random
/// next hop for every prefix needs.
const SIZES_LOG2: (c_int, c_int) = (19, 22);
/// What that room takes with the first level: 24 bytes a node, 2 a leaf, 4 for each of 2^18 entries.
const BYTES: usize = (24 << SIZES_LOG2.0) + (2 << SIZES_LOG2.1) + (4 << 18);

/// A table inside the library; it lives until the process ends.
struct Library<A> {
    table: *mut c_void,
    set: Set<A>,
    delete: Delete<A>,
    find: Find<A>,
    build: Duration,
}

/// The library's table of the family of `A`, filled with `routes`.
///
/// # Errors
/// A message if the file is not such a library or the library refuses a route.
pub fn poptrie<A: Family>(path: &str, routes: &[Route<A>]) -> Result<Box<dyn Contender<A>>> {
    let family = if A::BITS == 32 { "poptrie" } else { "poptrie6" };
    let handle = open(path)?;
    let symbol = |name: String| symbol(handle, path, &name);
    // SAFETY: the types of these functions are the library's interface, which is all that can be known of a symbol.
    let (init, set, delete, find) = unsafe {
        (
            std::mem::transmute::<*mut c_void, Init>(symbol("poptrie_init".to_owned())?),
            std::mem::transmute::<*mut c_void, Set<A>>(symbol(format!("{family}_route_update"))?),
            std::mem::transmute::<*mut c_void, Delete<A>>(symbol(format!("{family}_route_del"))?),
            std::mem::transmute::<*mut c_void, Find<A>>(symbol(format!("{family}_lookup"))?),
        )
    };
    let start = cpu_time();
    // SAFETY: a null pointer asks the library to allocate the table.
    let table = unsafe { init(std::ptr::null_mut(), SIZES_LOG2.0, SIZES_LOG2.1) };
    if table.is_null() {
        return Err(format!("{path}: no memory for a table").into());
    }
    let mut library = Library { table, set, delete, find, build: Duration::ZERO };
    if let Some((prefix, _)) =
        routes.iter().find(|&&(prefix, next_hop)| !library.change(&(prefix, Some(next_hop))))
    {
        return Err(format!("{path}: refuses {prefix}").into());
    }
    library.build = cpu_time() - start;
    Ok(Box::new(library))
}

fn open(path: &str) -> Result<*mut c_void> {
    let name = CString::new(path).map_err(|error| format!("{path}: {error}"))?;
    // SAFETY: a terminated string; what the file runs when it is loaded is its owner's choice.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(loader_error(path).into()) } else { Ok(handle) }
}

fn symbol(handle: *mut c_void, path: &str, name: &str) -> Result<*mut c_void> {
    let symbol = CString::new(name).map_err(|error| format!("{name}: {error}"))?;
    // SAFETY: an open library and a terminated string.
    let address = unsafe { libc::dlsym(handle, symbol.as_ptr()) };
    if address.is_null() { Err(loader_error(path).into()) } else { Ok(address) }
}

/// What the loader says about the call that failed; it names the file itself.
fn loader_error(path: &str) -> String {
    // SAFETY: `dlerror` gives a terminated string that lasts until the next call, or null.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { path.to_owned() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

impl<A: Family> Library<A> {
    /// Whether the library took the change.
    fn change(&mut self, &(prefix, next_hop): &Update<A>) -> bool {
        let (address, len) = (prefix.first(), c_int::from(prefix.len()));
        // SAFETY: a table of this family. Next hops are pointers the library hands back and never follows.
        let status = unsafe {
            match next_hop {
                Some(next_hop) => {
                    (self.set)(self.table, address, len, std::ptr::without_provenance_mut(next_hop as usize))
                }
                None => (self.delete)(self.table, address, len),
            }
        };
        status >= 0
    }

    fn lookup(&self, address: A) -> u32 {
        // SAFETY: a table of this family.
        unsafe { (self.find)(self.table, address) }.addr() as u32
    }
}

impl<A: Family> Contender<A> for Library<A> {
    fn name(&self) -> &str {
        "poptrie library"
    }

    fn fill(&self) -> Fill {
        Fill::ByRoute
    }

    fn bytes(&self) -> usize {
        BYTES
    }

    fn build(&self) -> Duration {
        self.build
    }

    fn run(&self, mode: Mode, addresses: &[A], results: &mut [u32]) -> Option<Duration> {
        let start = cpu_time();
        // Zero unless lookups are chained; the compiler cannot know either.
        let zero = std::hint::black_box(0);
        let mut before = 0;
        for (result, &address) in results.iter_mut().zip(addresses) {
            *result = self.lookup(address ^ A::from_u32(before & zero));
            if mode == Mode::Chain {
                before = *result;
            }
        }
        Some(cpu_time() - start)
    }

    fn update(&mut self, update: &Update<A>) -> bool {
        // Withdrawals of what is not there are refused, and rightly.
        self.change(update);
        true
    }
}
