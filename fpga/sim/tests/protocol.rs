//! The Promela model of the REQ/RES/BURST protocol, exhaustively with Spin; and the paper's literal rule, which Spin
//! must refute.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Verifies the model with the given definitions; gives Spin's report.
fn verify(name: &str, definitions: &[&str]) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("spin/protocol.pml");
    let run = |command: &mut Command| {
        let output = command.current_dir(&folder).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        assert!(output.status.success(), "{command:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(Command::new("spin").args(definitions).arg("-a").arg(model));
    run(Command::new("cc").args(["-O1", "-w", "-DSAFETY", "-DVECTORSZ=2048", "-o", "pan", "pan.c"]));
    let report = run(Command::new(folder.join("pan")).args(["-m10000", "-w24"]));
    assert!(!report.contains("max search depth too small"), "{report}");
    report
}

#[test]
fn two_inputs_two_outputs_two_classes_deliver_everything() {
    let report = verify("pairs", &["-DFIRST=2", "-DSECOND=1"]);
    assert!(report.contains("errors: 0"), "{report}");
}

#[test]
fn longer_streams_to_one_output_deliver_everything() {
    let report = verify("stream", &["-DFIRST=3", "-DSECOND=0"]);
    assert!(report.contains("errors: 0"), "{report}");
}

#[test]
fn the_literal_rule_loses_a_wake_up() {
    let report = verify("literal", &["-DLITERAL", "-DFIRST=2", "-DSECOND=0"]);
    assert!(report.contains("assertion violated (accepted[0]==delivered[0])"), "{report}");
}
