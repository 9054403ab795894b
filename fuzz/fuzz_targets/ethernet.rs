//! The Ethernet view, and Ethernet addresses as text.
#![no_main]

#[path = "../../crates/packet/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    exercise::ethernet(data);
    if let Ok(text) = std::str::from_utf8(data) {
        exercise::mac_addr(text);
    }
});
