//! Small graphs of all classes: any calls of any handlers between the packets do no harm.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| causeway_fuzz::attack(data, true));
