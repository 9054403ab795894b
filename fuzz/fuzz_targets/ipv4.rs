//! The IPv4 view and its options, read and written.
#![no_main]

#[path = "../../crates/packet/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    exercise::ipv4(data);
});
