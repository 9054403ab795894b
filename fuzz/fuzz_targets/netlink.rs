//! The kernel's messages: any bytes leave a mirror that a new dump brings in order.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else { return };
    let (one, other) = data.split_at(data.len() / 2);
    causeway_kernel::fuzzing::mirror([(one, first & 1 != 0), (other, first & 2 != 0)]);
});
