//! The guide's table of codes against the codes that are in use.

use causeway_kernel::{Cause, Check, InspectionDoubt};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What stands before a code in the sources of the binary.
const BEFORE: [&str; 9] = [
    "code = \"",
    "CODE: &str = \"",
    "STARTING: &str = \"",
    "ENDING: &str = \"",
    "START: &str = \"",
    "TAKEN: &str = \"",
    "SILENT: &str = \"",
    "FORWARDING: &str = \"",
    "object(\"",
];
/// The same where a line's code is an argument.
const CALLS: [&str; 5] =
    ["Check::good(\"", "Check::missing(\"", "Check::warning(\"", "obstacle(\"", "Obstacle::new(\""];

/// Adds the codes in the sources of a folder, without those of tests.
fn collect(folder: &Path, codes: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, codes);
            continue;
        }
        let text = fs::read_to_string(&path).expect("a text");
        let text = text.split("mod tests {").next().unwrap_or_default();
        for before in BEFORE.iter().chain(&CALLS) {
            let found = text.split(before).skip(1).filter_map(|rest| rest.split('"').next());
            codes.extend(found.map(str::to_owned));
        }
    }
}

#[test]
fn the_guide_has_a_line_for_every_code_and_for_no_other() {
    let mut used: BTreeSet<String> = Check::ALL.iter().map(|check| check.code().to_owned()).collect();
    let causes = [Cause::MessagesLost, Cause::MessageMalformed, Cause::DumpInterrupted, Cause::DumpFailed];
    used.extend(causes.map(|cause| cause.name().to_owned()));
    use InspectionDoubt::*;
    let failed = Failed(String::new());
    let doubts = [Start, Netfilter, Xfrm, TrafficControl, Rules, Links, Lost, Changing, failed];
    used.extend(doubts.map(|doubt| doubt.code().to_owned()));
    collect(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut used);

    let guide = include_str!("../../../docs/guide.md");
    let (_, tables) = guide.split_once("\n## Codes\n").expect("the section");
    let cells = tables.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let told: BTreeSet<String> =
        cells.flat_map(|cell| cell.split(", ")).map(|code| code.trim_matches('`').to_owned()).collect();
    assert_eq!(used.difference(&told).collect::<Vec<_>>(), [""; 0], "not in the guide");
    assert_eq!(told.difference(&used).collect::<Vec<_>>(), [""; 0], "not in use");
}
