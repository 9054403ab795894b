//! The example configurations, as a user runs them: by the binary.
//!
//! What the examples without devices do is tested beside the elements; those with devices are checked here and run
//! between hosts in `namespaces/examples.rs`.

use std::path::PathBuf;
use std::process::{Command, Output};

fn conf() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conf")
}

fn causeway(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    // Quotation marks are those of the locale.
    command.args(args).env("XDG_RUNTIME_DIR", std::env::temp_dir()).env("LANG", "C.UTF-8");
    command.output().expect("the binary that cargo built starts")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_example_passes_the_check_without_a_warning() {
    let mut seen = 0;
    for entry in std::fs::read_dir(conf()).expect("the folder of examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "click") {
            let output = causeway(&["check", path.to_str().expect("a name in ASCII")]);
            assert!(output.status.success(), "{}: {}", path.display(), errors(&output));
            assert_eq!(errors(&output), "", "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 9, "only {seen} examples");
}

#[test]
fn every_example_is_described() {
    let list = std::fs::read_to_string(conf().join("README.md")).expect("conf/README.md");
    for entry in std::fs::read_dir(conf()).expect("the folder of examples") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name in ASCII");
        assert!(!name.ends_with(".click") || list.contains(&format!("({name})")), "{name} is not described");
    }
}

/// Runs an example that ends by itself, with a socket of its own.
fn run(file: &str, define: &str) -> Output {
    let socket = std::env::temp_dir().join(format!("causeway-conf-{}-{file}.sock", std::process::id()));
    let (path, name) = (conf().join(file), format!("conf-{}-{file}", std::process::id()));
    let (path, socket) = (path.to_str().expect("a path in ASCII"), socket.to_str().expect("a path in ASCII"));
    let output = causeway(&["run", path, "--name", &name, "--socket", socket, "-D", define]);
    assert!(output.status.success(), "{file}: {}", errors(&output));
    output
}

#[test]
fn hello_prints_five_packets() {
    let output = run("hello.click", "unused=1");
    assert_eq!(errors(&output).lines().filter(|l| l.starts_with("hello:   69 | ")).count(), 5);
}

#[test]
fn udpgen_ends_by_itself() {
    run("udpgen.click", "limit=20000");
}

#[test]
fn a_typo_is_answered_with_its_place() {
    let output = causeway(&["run", "-e", "InfiniteSource -> Cuonter -> Discard"]);
    assert_eq!(output.status.code(), Some(1));
    let text = errors(&output);
    assert!(text.contains(":1:19: error:") && text.contains("did you mean ‘Counter’?"), "{text}");
}
