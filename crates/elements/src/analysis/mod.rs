//! Analysis of traces: aggregates, times, anonymity.
//!
//! An aggregate is a number that packets with something in common have in an annotation. [`listeners`] is how elements that
//! number aggregates tell others when one has ended; [`ip_field`] reads the fields that packets are told apart by.

use causeway_engine::Spec;

mod adjust_timestamp;
mod aggregate_counter;
mod aggregate_file;
mod aggregate_filter;
mod aggregate_first;
mod aggregate_ip;
mod aggregate_ip_addr_pair;
mod aggregate_ip_flows;
mod aggregate_last;
mod aggregate_length;
mod aggregate_packet_counter;
mod aggregate_paint;
mod anonymize_ip_addr;
mod erase_ip_payload;
mod fragments;
mod ip_field;
pub(crate) mod listeners;
mod set_timestamp;
mod set_timestamp_delta;
mod store_timestamp;
mod time_filter;
mod time_range;
mod time_sorted_sched;
mod timestamp_accum;
mod timestamps;
mod trace_info;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &adjust_timestamp::SPEC,
    &aggregate_counter::SPEC,
    &aggregate_filter::SPEC,
    &aggregate_first::SPEC,
    &aggregate_ip::SPEC,
    &aggregate_ip_addr_pair::SPEC,
    &aggregate_ip_flows::SPEC,
    &aggregate_last::SPEC,
    &aggregate_length::SPEC,
    &aggregate_packet_counter::SPEC,
    &aggregate_paint::SPEC,
    &anonymize_ip_addr::SPEC,
    &erase_ip_payload::SPEC,
    &set_timestamp::SPEC,
    &set_timestamp_delta::SPEC,
    &store_timestamp::SPEC,
    &time_filter::SPEC,
    &time_range::SPEC,
    &time_sorted_sched::SPEC,
    &timestamp_accum::SPEC,
];
