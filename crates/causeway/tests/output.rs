//! Output that its reader cuts short: `causeway elements | head -1`.

use std::process::{Command, Stdio};

#[test]
fn a_reader_who_has_enough_is_no_error() {
    let conf = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/hello.click");
    let listings: [&[&str]; 6] = [
        &["elements"],
        &["man"],
        &["completions", "bash"],
        &["graph", conf],
        &["check", "--flat", conf],
        &["doctor"],
    ];
    for args in listings {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
        let child = command.args(args).stdout(writer).stderr(Stdio::piped()).spawn();
        let output = child.and_then(|c| c.wait_with_output()).expect("the binary that cargo built starts");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert!(output.status.success(), "{args:?}: {}", output.status);
    }
}
