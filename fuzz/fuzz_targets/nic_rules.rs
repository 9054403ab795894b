//! The NIC's rule table: any text is an error or a checked table, and a checked table compiles to registers for
//! every card and decides about any frame. The text ends at the first zero byte, where the frame begins.
#![no_main]

use causeway_nic_driver::golden::process;
use causeway_nic_driver::{RuleTable, Verdict, registers};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (text, frame) = data.split_at(data.iter().position(|&b| b == 0).unwrap_or(data.len()));
    let Ok(table) = RuleTable::parse(&String::from_utf8_lossy(text)) else { return };
    table.check().expect("a table that was read is a checked one");
    for nic in 0..table.nics.len() as u8 {
        assert!(!registers::compile(&table, nic).is_empty());
        let mut after = frame.to_vec();
        let verdict = process(&table, nic, &mut after);
        assert!(matches!(verdict, Verdict::Fast { .. }) || after == frame);
    }
});
