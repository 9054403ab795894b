//! The Click language: any bytes compile, or fail with diagnostics that can be shown.
#![no_main]

use causeway_lang::{ClassInfo, ClassList, NoLibraries, Quotes, compile, render};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let classes = ClassList(vec![
        ClassInfo::new("Idle", "-/-", "a/a"),
        ClassInfo::new("Null", "1/1", "a/a"),
        ClassInfo::new("Queue", "1/1", "h/l"),
        ClassInfo::new("Tee", "1/1-", "h/h"),
    ]);
    if let Err(failed) = compile("fuzz", data, &NoLibraries, &classes, &[]) {
        assert!(failed.diagnostics.has_errors());
        assert!(!render::human(&failed.diagnostics, &failed.sources, Quotes::Utf8).is_empty());
        assert!(!render::plain(&failed.diagnostics, &failed.sources, Quotes::Ascii).is_empty());
    }
});
