//! Longest-prefix match: the forwarding table, adjacencies and the structures it is compared with.
//!
//! A router asks one question for every packet: which route matches this destination best? This crate answers it,
//! for IPv4 and IPv6 alike, in batches, from tables that a control thread changes while workers read them.
//!
//! # Parts
//!
//! - [`Prefix`] and [`Address`]: the two families behind one trait (`u32`, `u128`).
//! - [`Lookup`] is what the packet path sees: one address, or a batch of up to [`BATCH_MAX`]. The answer is an
//!   [`AdjacencyIndex`]; [`MISS`] (0) means that no route matches.
//! - [`Table`] is what the control path sees: load, insert, replace, withdraw, and [`Rib`] for everything that
//!   reads routes (iterate, exact and longest match, covered prefixes).
//! - [`Fib`] joins a [`Rib`] and a [`Structure`] compiled from it. [`Fib4`], [`CompactFib4`] and [`Fib6`] are the
//!   tables to use; their [`Fib::reader`] gives each worker a handle of its own.
//! - [`LeftRight`] makes any other structure (those of [`papers`] and [`rivals`]) readable while it is changed.
//! - [`Adjacencies`] holds what the indices lead to: next hops and groups of them.
//!
//! # Invariants
//!
//! - A lookup never allocates, locks, waits or fails, and sees each route before or after a change, never between.
//! - A refused change leaves the table as it was, and says whether to try again ([`FibError::Busy`]) may help.
//! - What an index leads to is settled for the length of an [`AdjacencyView`] that was there before the lookup, and not
//!   beyond it.
//! - Adjacency indices are dense (the adjacency table hands out the lowest free one), so structures store 15 bits.
//!
//! # Unsafe code
//!
//! Measured on the real tables of `docs/lookup.md`, batches of 256, the one thing changed in the same sitting:
//!
//! - AVX2 and `popcnt` where the processor has them (`mapping`, `leaf6`, `rivals::btree6`): without, `lines6` takes
//!   22 to 23 ns instead of 7 to 9 and `rank24` 5 to 6 instead of 2 to 4.
//! - The four bytes of an address that a `leaf6` compares, read where they lie: shifting the address instead costs a
//!   twentieth to a tenth.
//! - Arrays of reserved address space (`mapping`): they grow without moving, so readers need no lock and no second
//!   look; an empty table takes a page or two. Not for their huge pages, which gain nothing that can be measured.
//! - References to what the writer replaces (`rcu`, `adjacency`, `left_right`): epochs decide when it is freed, and
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

#![cfg_attr(not(test), warn(clippy::disallowed_macros))]

mod address;
mod adjacency;
mod blocks;
mod branch6;
mod chunks;
mod compact16;
mod compile6;
mod directory6;
mod epoch;
mod error;
mod fib;
mod group;
mod leaf6;
mod left_right;
mod lines6;
mod mapping;
mod memory6;
pub mod papers;
mod prefix;
mod rank24;
mod rcu;
mod reader;
mod rib;
pub mod rivals;
mod runs;
mod shape6;
mod stride8;
mod table;

pub use address::Address;
pub use adjacency::{ADJACENCIES_MAX, Adjacencies, AdjacencyReader, AdjacencyView, Target};
pub use compact16::{Compact16, Compact16Core};
pub use directory6::Lines6;
pub use epoch::{Domain, Participant, Pinned};
pub use error::{FibError, PrefixError};
pub use fib::{Fib, Shared};
pub use left_right::{InTwo, LeftRight};
pub use lines6::Lines6Core;
pub use prefix::{Prefix, Prefix4, Prefix6, WrittenPrefix};
pub use rank24::{Rank24, Rank24Core};
pub use reader::{Handle, InPlace, Reader};
pub use rib::Rib;
pub use table::{AdjacencyIndex, BATCH_MAX, Change, Lookup, MISS, Memory, Structure, Table};

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
