//! The program under the name `click`: what it prints, and its exit status.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

fn click(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg0("click").env("LANG", "en_US.UTF-8").args(args).output().unwrap()
}

/// Standard output, standard error and exit status.
fn run(args: &[&str]) -> (String, String, Option<i32>) {
    let out = click(args);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(out.stdout), text(out.stderr), out.status.code())
}

#[test]
fn errors_stand_under_one_landmark_with_ascii_quotes() {
    let (_, errors, status) = run(&["-qe", "Idle -> p :: Paint(x, FOO 3) -> Discard"]);
    assert_eq!(
        (errors.as_str(), status),
        (
            "config:1: While configuring 'p :: Paint':\n  COLOR: invalid number\n  FOO: unknown argument\n\
             Router could not be initialized!\n",
            Some(1)
        )
    );
    let (_, errors, _) = run(&["-qe", "Idle -> d :: Discard -> e :: Discard"]);
    assert_eq!(errors, "config:1: 'd :: Discard' has no output 0\nRouter could not be initialized!\n");
    let (_, errors, _) = run(&["-qe", "Idle -> x -> Discard"]);
    assert_eq!(errors, "config:1: undeclared element 'x'\n");
    let (_, errors, _) = run(&["-qe", "FromDump(/nonexistent) -> d :: Discard"]);
    assert!(
        errors.ends_with("  /nonexistent: No such file or directory\nRouter could not be initialized!\n")
    );
}

#[test]
fn warnings_of_elements_look_like_errors() {
    let text = "Idle -> c :: Classifier(12/0800, 12/0800) -> Discard; c [1] -> Discard";
    let (_, errors, status) = run(&["-qe", text]);
    let expected = "config:1: While configuring 'c :: Classifier':\n  warning: output 1 matches no packets\n";
    assert_eq!((errors.as_str(), status), (expected, Some(0)));
    assert_eq!(run(&["-wqe", text]).1, "");
}

#[test]
fn patterns_print_names_above_values() {
    let text = "q :: Queue; Idle -> q -> d :: Discard";
    let print = |handlers: &[&str]| run(&[&["-qe", text][..], handlers].concat()).0;
    assert_eq!(print(&["-h", "q.class"]), "Queue\n");
    for pattern in ["q*.class", "Queue.class", "[p-r].class"] {
        assert_eq!(print(&["--hand", pattern]), "q.class:\nQueue\n\n", "{pattern}");
    }
    let (out, errors, status) = run(&["-qe", text, "-h", "foo.bar", "-h", "q.class"]);
    assert_eq!(
        (out.as_str(), errors.as_str(), status),
        ("q.class:\nQueue\n\n", "no element 'foo'\n", Some(1))
    );
}

#[test]
fn an_exit_handler_that_fails_is_status_255() {
    let text = "q :: Queue; Idle -> q -> Discard";
    let status = |handler: &str| run(&["-qe", text, "-x", handler]).2;
    assert_eq!(
        ["q.length", "q.capacity", "q.nothing", "q.name"].map(status),
        [0, 1000 & 255, 255, 255].map(Some)
    );
    let (_, errors, _) = run(&["-qe", text, "-x", "q.nothing"]);
    assert_eq!(errors, "no 'q.nothing' read handler\n");
}

#[test]
fn a_flat_configuration_is_written_only_if_the_router_can_run() {
    let (out, _, _) = run(&["-qo-", "-e", "i :: Idle -> d :: Discard"]);
    assert_eq!(out, "i :: Idle;\nd :: Discard;\n\ni -> d;\n");
    assert_eq!(run(&["-qo-", "-e", "FromDump(/nonexistent) -> Discard"]).0, "");
}

#[test]
fn a_queue_tells_of_its_first_overflow() {
    let text = "InfiniteSource(LIMIT 50, BURST 50, STOP true) -> q :: SimpleQueue(10) -> Idle";
    assert_eq!(run(&["-e", text]).1, "q :: SimpleQueue: overflow\n");
}

#[test]
fn the_time_is_told_as_csh_tells_it() {
    let (_, errors, _) = run(&["-t", "--simtime", "-e", "InfiniteSource(LIMIT 1, STOP true) -> Discard"]);
    let fields: Vec<&str> = errors.trim_end().split(' ').collect();
    let [user, system, elapsed] = fields[..] else { panic!("{errors}") };
    assert!(user.ends_with('u') && system.ends_with('s') && elapsed.contains(':'), "{errors}");
}
