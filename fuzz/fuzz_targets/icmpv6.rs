//! The ICMPv6 view.
#![no_main]

#[path = "../../crates/packet/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    exercise::icmpv6(data);
});
