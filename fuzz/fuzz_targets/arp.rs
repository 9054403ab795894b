//! The ARP view, and the reply to what it accepts.
#![no_main]

#[path = "../../crates/packet/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    exercise::arp(data);
});
