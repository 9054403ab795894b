//! Printing: a line of text for each packet, for people who look for a mistake.

use causeway_engine::Spec;

mod arp_print;
pub(crate) mod contents;
mod ip_print;
mod ip_text;
mod lines;
mod print;

pub(crate) use contents::{to_stderr, to_stdout};
pub(crate) use lines::Lines;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&arp_print::SPEC, &ip_print::SPEC, &print::SPEC];
