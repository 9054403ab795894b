//! The IPv6 structure: two directories, of which the second is compressed, and a cache line searched by comparison.
//!
//! Reading order: [`walk`] is what a lookup does, [`leaf`] and [`branch`] are the cache lines, [`plan`] says how large
//! directories are, [`compile`] writes parts that nobody sees yet, [`touched`] finds which
//! parts those are for a change, [`lines6`] makes them visible, [`memory`] keeps account of them.
//!
//! # The way of an address
//!
//! ```text
//!  0              16           16 + b1                  16 + b1 + b2              128
//! ┌────────────────┬─────────────┬─────────────────┬──────┬──────────────┬─────────┐
//! │ root           │ entry       │ word            │ slot │ leaf, 16..32 │         │
//! │                │ b1: 1 to 14 │ b2 - 5: 0 to 15 │ 5    │ from a byte  │         │
//! └────────────────┴─────────────┴─────────────────┴──────┴──────────────┴─────────┘
//!  31             6 5     0            63              32 31               0
//! ┌────────────────┬───────┐          ┌──────────────────┬─────────────────┐
//! │ first entry or │ 64-b1 │ root,    │ block of leaves  │ slots where the │ word
//! │ word           │ 64-b2 │ entry    │ less one         │ next leaf starts│
//! └────────────────┴───────┘          └──────────────────┴─────────────────┘
//! ```
//!
//! b1 is chosen for each /16, b2 for each entry. 32 slots share a word, and neighbouring slots, words and entries share a
//! leaf as long as their runs fit it, so that directories may be large where the routes are dense. What no leaf can
//! tell apart is behind a leaf of leaves, a branch of four ways over whole addresses, or a further directory.
//!
//! # An update, step by step
//!
//! 2001:db8:12::/48 is to lead to 7, in a table that knows the /48s around it.
//!
//! 1. The route goes into the [`Rib`](crate::Rib). Root and entry of 2001:db8:12:: lead to a word, and the change touches
//!    one slot of it: its leaf serves the slots 8 to 11, say, and is the third of the word's five leaves.
//! 2. The runs of these four slots are collected and fit a leaf. A block of five leaves is taken; four are copied, the
//!    third is written. (If they did not fit, the word would be cut into leaves anew.)
//! 3. The word is stored: the new block, the same slots. This is when lookups see the change.
//! 4. The old block waits, with the epoch's stamp, until no reader is left that may have seen the old word.
//! 5. The entry and the /16 count the change. When an entry has seen half as many as it has runs, the next change compiles
//!    all of its words, with as many bits as suit the runs there are by then, and packs the leaves full; a /16 whose
//!    runs are a quarter more or a fifth fewer than it was made for gets another first directory.

mod branch;
mod compile;
mod leaf;
pub(crate) mod lines6;
mod memory;
mod plan;
mod touched;
pub(crate) mod walk;
