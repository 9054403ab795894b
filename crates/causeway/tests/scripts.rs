//! Configurations under the name `click`, and what Click printed for each and left in files: scripts are in
//! `scripts/cases.txt`, packets through elements and what their handlers say in `scripts/elements.txt`, and configurations
//! with errors in `scripts/errors.txt`.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A configuration with what Click made of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Case<'t> {
    name: &'t str,
    args: Vec<&'t str>,
    config: &'t str,
    /// What there is to read on standard input.
    input: String,
    /// Standard output (`out`), standard error (`err`), files, and the exit status if it is not 0.
    made: BTreeMap<String, String>,
}

/// The cases of the file. A part that ends without a line's end has `\` in its last line.
fn cases(text: &str) -> Vec<Case<'_>> {
    let case = |text| {
        let text: &str = text;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let (head, body) = text.split_once('\n').unwrap();
        let mut words = head.split(' ');
        let mut parts = body.split("\n-- ");
        let (name, config) = (words.next().unwrap(), parts.next().unwrap().trim_end());
        let (mut made, mut input) = (BTreeMap::new(), String::new());
        for part in parts {
            let (what, text) = part.split_once('\n').unwrap_or((part, ""));
            let (what, text) = match what.strip_prefix("status ") {
                Some(status) => ("status", status.trim()),
                None => (what, text),
            };
            let text = match text.strip_suffix("\n\\") {
                Some(text) => text.to_owned(),
                None if what == "status" => text.to_owned(),
                None => format!("{text}\n"),
            };
            match what {
                "in" => input = text,
                what => drop(made.insert(what.to_owned(), text)),
            }
        }
        Case { name, args: words.collect(), config, input, made }
    };
    text.split("== ").skip(1).map(case).collect()
}

/// What our program makes of a case, in an empty folder.
fn run(case: &Case<'_>, dir: &Path) -> BTreeMap<String, String> {
    std::fs::create_dir_all(dir).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg0("click").args(&case.args).args(["-e", case.config]).current_dir(dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may have ended without having read.
    let _ = child.stdin.take().unwrap().write_all(case.input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let mut made = BTreeMap::new();
    for (what, bytes) in [("out", output.stdout), ("err", output.stderr)] {
        if !bytes.is_empty() {
            made.insert(what.to_owned(), text(bytes));
        }
    }
    for file in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        let name = file.file_name().into_string().unwrap();
        made.insert(format!("file {name}"), std::fs::read_to_string(file.path()).unwrap());
    }
    if !output.status.success() {
        let status = output.status.code().map_or("a signal".to_owned(), |status| status.to_string());
        made.insert("status".to_owned(), status);
    }
    std::fs::remove_dir_all(dir).unwrap();
    made
}

/// Runs the cases in `text`, of which there are at least so many.
fn compare(text: &str, least: usize, name: &str) {
    let dir = std::env::temp_dir().join(format!("causeway-{name}-{}", std::process::id()));
    let all = cases(text);
    assert!(all.len() >= least, "{}", all.len());
    for case in all {
        let made = run(&case, &dir);
        assert_eq!(made, case.made, "{}: {:?} {}", case.name, case.args, case.config);
    }
}

#[test]
fn scripts_do_what_they_do_in_click() {
    compare(include_str!("scripts/cases.txt"), 30, "scripts");
}

#[test]
fn elements_do_to_packets_what_they_do_in_click_and_their_handlers_say_the_same() {
    compare(include_str!("scripts/elements.txt"), 60, "elements");
}

#[test]
fn errors_are_told_of_in_the_words_of_click() {
    compare(include_str!("scripts/errors.txt"), 60, "errors");
}

#[test]
fn a_manager_has_its_say_when_the_process_is_told_to_end() {
    let config =
        "DriverManager(wait_stop, print \"bye\"); Script(print $(kill TERM $$)); InfiniteSource -> Discard;";
    let dir = std::env::temp_dir().join(format!("causeway-signals-{}", std::process::id()));
    let made = run(&Case { config, ..Case::default() }, &dir);
    assert_eq!(made, BTreeMap::from([("out".to_owned(), "\nbye\n".to_owned())]));
    let config =
        "s :: Script(TYPE SIGNAL USR1 INT, print \"got\", write stop); Script(print $(kill INT $$));";
    let made = run(&Case { config, ..Case::default() }, &dir);
    assert_eq!(made, BTreeMap::from([("out".to_owned(), "\ngot\n".to_owned())]));
}

#[test]
fn scripts_call_elements_on_other_workers() {
    let config = "StaticThreadSched(u 1); InfiniteSource(LIMIT 50, STOP true) -> Queue -> u :: Unqueue -> c :: Counter -> Discard; \
                  DriverManager(wait_stop, label again, wait 1ms, goto again $(lt $(c.count) 50), print c.count, \
                  print u.home_thread, write c.reset, print $?$(c.count), print c.nothing, stop)";
    let dir = std::env::temp_dir().join(format!("causeway-workers-{}", std::process::id()));
    let made = run(&Case { args: vec!["-j", "2"], config, ..Case::default() }, &dir);
    let expected = [
        ("out", "50\n1\n00\n"),
        ("err", "While executing 'DriverManager@7 :: DriverManager':\n  no 'c.nothing' read handler\n"),
    ];
    assert_eq!(made, expected.map(|(what, text)| (what.to_owned(), text.to_owned())).into_iter().collect());
}
