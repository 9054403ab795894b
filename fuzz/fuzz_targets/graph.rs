//! Small graphs of all classes with the configurations of their examples: any packets at any time do no harm, and none is lost.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| causeway_fuzz::attack(data, false));
