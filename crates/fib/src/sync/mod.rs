//! How one writer changes what many readers look at: epochs, values replaced whole.
//!
//! ```text
//! worker   ── pin ──► announces epoch 7 ── looks up, resolves ── unpin: announces nothing
//! writer   stores the new word ── retires the old leaves with stamp 8 ── epoch is 9
//!          ... asks for the oldest epoch announced: 7, so stamp 8 waits; then none, so the leaves are free
//! ```
//!
//! Readers write to a cache line of their own and wait for nobody; the writer does not wait either.

pub(crate) mod cells;
pub(crate) mod epoch;
