//! Classification: the content of a packet decides where it goes.
//!
//! Patterns are read into expressions over the words of a packet ([`expr`]), by [`pattern`] for Classifier and by
//! [`ip_expr`] for IPClassifier and IPFilter; [`program`] makes one decision program of them, in which no way
//! tests the same thing twice ([`thread`], [`known`], [`combine`], [`split`]), and of many rules a decision diagram
//! ([`cuts`]); [`dispatch`] runs it over a batch.

use causeway_engine::Spec;

mod classifier;
mod combine;
mod cuts;
mod dispatch;
mod expr;
mod filter;
mod ip_classifier;
mod ip_expr;
mod ip_filter;
mod ip_subject;
mod ip_test;
mod ip_value;
mod known;
mod lower;
mod pattern;
mod patterns;
mod program;
mod sieve;
mod split;
mod thread;
mod words;

#[cfg(test)]
mod tests;

pub use filter::packet_filter;
pub(crate) use sieve::Sieve;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&classifier::SPEC, &ip_classifier::SPEC, &ip_filter::SPEC];
