//! The element library: one file an element, one folder a subject.
//!
//! # What this crate is for
//!
//! Every class that a configuration may use is here, each in a file of its own that holds all there is to know of
//! it: a [`Spec`](causeway_engine::Spec) with its ports, documentation, handlers, drop reasons and an example;
//! how it reads its configuration; what it does; and its tests. The element reference is generated from the specs.
//!
//! # The parts
//!
//! A folder is a subject, and its `mod.rs` lists the classes in it. [`library`] is all of them. A new one begins as
//! `causeway new-element` writes it, and `docs/elements-how-to.md` goes through its parts.
//!
//! # Invariants
//!
//! * No element panics on any packet or configuration, allocates per packet, or reads a clock by itself.
//! * A packet that an element takes is emitted, left in the batch, dropped with a reason, or held and reported.

#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

use causeway_engine::Library;

mod analysis;
mod annotations;
#[cfg(test)]
mod any_bytes;
mod aqm;
mod basic;
mod classify;
pub mod click;
pub mod control;
mod counters;
pub mod devices;
mod ethernet;
mod fixed;
mod flow_table;
mod fuse;
mod handlers;
mod icmp;
mod information;
mod ip;
mod ip6;
mod iproute;
pub mod kernel;
mod nat;
mod out_file;
mod printing;
mod queues;
mod rate;
mod real;
mod scheduling;
pub mod sequence;
mod shaping;
#[cfg(test)]
mod skeleton;
mod sockets;
mod sources;
pub mod standard_router;
mod switching;
mod tcp;
mod token_bucket;
mod traces;
mod udp;

pub use classify::packet_filter;

pub use fuse::{Optimised, optimise};
pub use out_file::{LOSSES, Losses};

/// The file that a new element begins as, for `causeway new-element`. It is an element that works: it is compiled and tested
/// with the others, under the name of Skeleton, and no configuration has it.
pub const SKELETON: &str = include_str!("skeleton.rs");

/// All element classes.
pub fn library() -> Library {
    let subjects = [
        analysis::SPECS,
        annotations::SPECS,
        aqm::SPECS,
        basic::SPECS,
        classify::SPECS,
        control::SPECS,
        counters::SPECS,
        devices::SPECS,
        ethernet::SPECS,
        fuse::SPECS,
        icmp::SPECS,
        information::SPECS,
        ip::SPECS,
        ip6::SPECS,
        iproute::SPECS,
        kernel::SPECS,
        nat::SPECS,
        printing::SPECS,
        queues::SPECS,
        scheduling::SPECS,
        shaping::SPECS,
        sockets::SPECS,
        sources::SPECS,
        switching::SPECS,
        tcp::SPECS,
        traces::SPECS,
        udp::SPECS,
    ];
    Library::new(subjects.into_iter().flatten().copied())
        .with_interfaces(information::interface)
        .with_missing(click::missing)
}

#[cfg(test)]
mod tests {
    use super::library;
    use causeway_engine::spec::ArgForm;
    use std::collections::HashSet;

    #[test]
    fn every_class_is_documented_and_named_once() {
        let mut names = HashSet::new();
        for spec in library().iter() {
            for name in [spec.name].iter().chain(spec.aliases) {
                assert!(names.insert(*name), "{name} is named twice");
            }
            assert!(!spec.summary.is_empty() && !spec.summary.ends_with('.'), "{}: summary", spec.name);
            assert!(!spec.category.is_empty() && !spec.doc.is_empty(), "{}: documentation", spec.name);
            assert!(spec.example.contains(spec.name), "{}: the example must use it", spec.name);
            assert!(spec.handlers.iter().all(|h| !h.doc.is_empty()), "{}: handlers", spec.name);
            let positional = spec.args.iter().skip_while(|a| a.form != ArgForm::Keyword);
            assert!(
                positional.clone().all(|a| matches!(a.form, ArgForm::Keyword | ArgForm::Rest)),
                "{}",
                spec.name
            );
        }
    }
}
