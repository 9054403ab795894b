//! The internet checksum of any bytes.
#![no_main]

#[path = "../../crates/packet/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    exercise::checksum_of(data);
});
