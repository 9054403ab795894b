//! Longest-prefix match: the forwarding table, adjacencies and the structures it is compared with.
//!
//! A router asks one question for every packet: which route matches this destination best? This crate answers it,
//! for IPv4 and IPv6 alike, in batches, from tables that a control thread changes while workers read them.
//!
//! # Parts, in the order to read them
//!
//! | where | what |
//! | --- | --- |
//! | [`Address`], [`Prefix`] | the two families behind one trait: `u32` and `u128`, which `Ipv4Addr` and `Ipv6Addr` turn into |
//! | [`Lookup`], [`Table`], [`Structure`] | what the packet path sees, what the control path sees, and what lies between |
//! | [`Rib`], [`Fib`] | the routes, and routes with a structure compiled from them: [`Fib4`], [`CompactFib4`], [`Fib6`] |
//! | `v4`, `v6` | the structures of these, with pictures of their words and an update step by step |
//! | `sync` | [`Domain`], epochs and announcements |
//! | [`LeftRight`] | makes any structure readable while it changes |
//! | [`Region`] and `memory` | where lookups find what they walk, by default address space of the table's own; which parts of it are in use |
//! | [`Adjacencies`] | what routes lead to: next hops and groups of them |
//! | [`policy`], [`route_cache`] | rules that choose among tables; the cache that Linux once had in front of them |
//! | [`baseline`] | trees, ranges and a list to compare with; `rivals`, with the feature of that name, for the bench |
//!
//! # Threads
//!
//! One thread owns a table and changes it, one route after the other or many at once ([`Table::apply`]); any thread may,
//! since tables are `Send`. Workers look up by a [`Reader`] each. A worker with several tables has them made in one
//! [`Domain`], announces itself once a round and looks at each under that ([`Reader::under`],
//! [`AdjacencyReader::under`]). To read the routes ([`Table::rib`]) stops nobody either: no lookup touches them.
//!
//! # Invariants
//!
//! - A lookup never allocates, locks, waits or fails, and sees each route before or after a change, never between.
//! - A refused change leaves the table as it was, and says whether to try again ([`FibError::Busy`]) may help.
//! - What an index leads to is settled for the length of an [`AdjacencyView`] that was there before the lookup, and not
//!   beyond it.
//! - Adjacency indices are dense (the adjacency table hands out the lowest free one), so structures store 15 bits.
//!
//! # Memory of others
//!
//! [`Rank24::in_region`] and [`Lines6::in_region`] put a table where the caller says, for example into the value of an array
//! map, and [`Rank24Layout`] and [`Lines6Layout`] say where its parts are. A reader that knows these and the base
//! finds the same answers with shifts, masks and popcounts, and needs no pointers (`tests/regions.rs` has one of each).
//! When such a reader is done with what was replaced is for the caller to say: [`Standing`] announcements of the domain
//! hold it back.
//!
//! # Limits
//!
//! 32 767 adjacency indices: what finds none is refused ([`FibError::Full`]), and the caller decides what its routes lead
//! to instead. A change that finds no room is refused. A withdrawal is not, though most structures are changed by making a
//! new part beside the old one: where there is no room for that, lookups miss until there is ([`Table::settle`]), so that no
//! route is followed that is gone. A router then does best to load the table anew, first with nothing.
//!
//! # Unsafe code
//!
//! Measured on the real tables of `docs/lookup.md`, batches of 256, the one thing changed in the same sitting:
//!
//! - AVX2 and `popcnt` where the processor has them (`memory::mapping`, `v6::leaf`, `rivals::btree6`): without, `lines6`
//!   takes 22 to 23 ns instead of 7 to 9 and `rank24` 5 to 6 instead of 2 to 4. Code that uses them takes a value that only
//!   a look at the processor gives.
//! - The four bytes of an address that a leaf of `v6` compares, read where they lie: shifting the address instead costs
//!   a twentieth to a tenth.
//! - Parts of a region (`memory::region`), by default of reserved address space (`memory::mapping`): they grow without
//!   moving, so readers need no lock and no second look; an empty table takes a few pages; a program in the driver can
//!   read the same bytes. Not for their huge pages, which gain nothing that can be measured.
//! - References to what the writer replaces (`sync::cells`, `left_right`): epochs decide when it is freed, and
//!   model checking stands for what the compiler cannot see. A reference count instead, one cache line that all
//!   workers write, was not measured.
//!
//! ```
//! use causeway_fib::{Fib4, Lookup, Prefix4, Table, MISS};
//!
//! let mut fib = Fib4::new()?;
//! fib.insert("10.0.0.0/8".parse()?, 1)?;
//! fib.insert("10.1.0.0/16".parse()?, 2)?;
//! let worker = fib.reader();
//! let mut results = [MISS; 3];
//! worker.lookup_batch(&[0x0a010203, 0x0a020304, 0x0b000001], &mut results);
//! assert_eq!(results, [2, 1, MISS]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::disallowed_macros, clippy::disallowed_methods, clippy::missing_errors_doc)
)]

mod address;
mod adjacency;
pub mod baseline;
mod error;
mod fib;
mod left_right;
mod lookup;
mod memory;
pub mod policy;
mod prefix;
mod reader;
mod rib;
#[cfg(any(feature = "rivals", test))]
pub mod rivals;
pub mod route_cache;
mod runs;
mod sync;
mod table;
mod v4;
mod v6;

pub use address::Address;
pub use adjacency::{ADJACENCIES_MAX, Adjacencies, AdjacencyReader, AdjacencyView, Target};
pub use error::{FibError, PrefixError};
pub use fib::Fib;
pub use left_right::{InTwo, LeftRight};
pub use lookup::{AdjacencyIndex, BATCH_MAX, Change, Lookup, MISS};
pub use memory::region::{Place, Region};
pub use prefix::{Prefix, Prefix4, Prefix6, WrittenPrefix};
pub use reader::{Handle, InPlace, Reader, Shared};
pub use rib::Rib;
pub use sync::epoch::{Domain, Moment, Participant, Pinned, Standing};
pub use table::{Memory, Structure, Table};
pub use v4::compact16::{Compact16, Compact16Core};
pub use v4::rank24::{Rank24, Rank24Core, Rank24Layout};
pub use v6::lines6::Lines6;
pub use v6::walk::{Lines6Core, Lines6Layout};

/// The default IPv4 table: for one big table.
pub type Fib4 = Fib<u32, Rank24>;
/// The compact IPv4 table: for many tables, or small ones.
pub type CompactFib4 = Fib<u32, Compact16>;
/// The default IPv6 table.
pub type Fib6 = Fib<u128, Lines6>;

/// A worker's handle of a [`Fib4`].
pub type Fib4Reader = Reader<InPlace<Rank24Core>>;
/// A worker's handle of a [`CompactFib4`].
pub type CompactFib4Reader = Reader<InPlace<Compact16Core>>;
/// A worker's handle of a [`Fib6`].
pub type Fib6Reader = Reader<InPlace<Lines6Core>>;
