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
        "MODEL",
    ];
    let tools =
        ["FLATTEN", "PRETTY", "UNDEAD", "XFORM", "COMBINE", "UNCOMBINE", "ALIGN", "NEW", "NEW ROUTER"];
    for command in own.iter().chain(&tools) {
        assert!(page.contains(&format!("\n.SH \"CAUSEWAY {command}\"\n")), "{command}");
    }
    assert!(page.contains("\\-\\-dry\\-run") && page.contains("\\-\\-json"));
    assert!(!page.contains("(1)"), "there are no other pages");
}

#[test]
fn what_the_model_does_not_know_is_said_with_what_it_knows() {
    let says = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_causeway")).args(args).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, text) = says(&["model", "OSR-12"]);
    assert!(
        status == Some(1) && text.contains("there is no figure 'OSR-12'; there are OSR-rx, OSR-tx, OSR-4"),
        "{text}"
    );
    let file = std::env::temp_dir().join(format!("causeway-machine-{}.toml", std::process::id()));
    std::fs::write(&file, "name = \"mine\"\ncolour = \"red\"\n").expect("a file");
    let (status, text) = says(&["model", "OSR-tx", "--machine", file.to_str().expect("a path")]);
    std::fs::remove_file(&file).expect("it was there");
    let line = format!("{}, line 2: colour: unknown field `colour`, expected one of", file.display());
    assert!(status == Some(1) && text.contains(&line), "{text}");
    assert!(causeway(&["model", "list"]).contains("\nOSR-10   6, 10 and 14 ports"));
}
