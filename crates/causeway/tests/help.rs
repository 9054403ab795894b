//! What `--help` and the manual page say.

use std::process::Command;

fn causeway(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_causeway")).args(args).output();
    let output = output.expect("the binary that cargo built starts");
    assert!(output.status.success(), "{args:?}: {}", output.status);
    String::from_utf8(output.stdout).expect("a text")
}

#[test]
fn exit_statuses_are_told_with_every_command_and_in_the_manual() {
    for args in [&["--help"][..], &["up", "--help"], &["doctor", "--help"], &["read", "--help"]] {
        let text = causeway(args);
        let (_, statuses) = text.split_once("Exit status:\n").unwrap_or_else(|| panic!("{args:?}: {text}"));
        for (line, status) in statuses.lines().zip(["0", "1", "2", "3"]) {
            assert!(line.starts_with(&format!("  {status}  ")), "{args:?}: {line}");
        }
    }
    assert!(causeway(&["man"]).contains("\n.SH EXIT STATUS\n.TP\n0\n"));
}

#[test]
fn the_manual_has_every_command_with_its_options() {
    let page = causeway(&["man"]);
    let own = [
        "RUN", "UP", "DOCTOR", "CHECK", "GRAPH", "ELEMENTS", "HANDLERS", "READ", "WRITE", "BENCH", "LAB RUN",
    ];
    let tools =
        ["FLATTEN", "PRETTY", "UNDEAD", "XFORM", "COMBINE", "UNCOMBINE", "ALIGN", "NEW", "NEW ROUTER"];
    for command in own.iter().chain(&tools) {
        assert!(page.contains(&format!("\n.SH \"CAUSEWAY {command}\"\n")), "{command}");
    }
    assert!(page.contains("\\-\\-dry\\-run") && page.contains("\\-\\-json"));
    assert!(!page.contains("(1)"), "there are no other pages");
}
