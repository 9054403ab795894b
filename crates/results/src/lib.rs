//! Results: what was run, where, and every number that came out.
//!
//! Benches, testers and models leave one kind of file behind, a [`Document`]. What people read is made from it: medians
//! and their intervals, comparisons, CSV, charts. So a number in a table, a point in a chart and a line in the file
//! cannot differ.
//!
//! # Parts, in the order to read them
//!
//! | where | what |
//! | --- | --- |
//! | [`Document`], [`Series`], [`Measurement`] | the format: versioned JSON |
//! | [`Run`], [`Machine`] | what numbers mean nothing without: command, machine, kernel, versions, date |
//! | [`stats`] | medians, quantiles, bootstrap intervals, paired comparison |
//! | [`csv`] | a line for each measurement, for spreadsheets |
//! | [`traffic`] | what is offered: streams, traffic matrices, schedules of departures |
//! | [`markdown`] | a document as a page of tables |
//! | [`html`] | a document as one page that stands alone |
//! | [`chart`] | one description of a chart, drawn as SVG that is readable in light and dark |
//!
//! # Invariants
//!
//! - Every measurement says whether it was [measured or modelled](Source), and keeps its repetitions: what follows from
//!   them is computed when it is wanted, and not kept.
//! - A document that was written can be read. One of another version is refused, and so is one whose numbers are not
//!   finite or whose series compare with nothing.
//! - The same document gives the same statistics, to the last digit: random numbers have fixed seeds.
//! - The crate knows no other of ours, and reads no clock: the caller gives the date.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros))]

pub mod chart;
pub mod csv;
mod document;
mod error;
mod format;
pub mod html;
mod machine;
pub mod markdown;
pub mod stats;
pub mod traffic;

pub use document::{Axis, Document, Measurement, Run, Series, Source};
pub use error::Error;
pub use format::{FORMAT, VERSION};
pub use machine::Machine;
