//! The tools that read configurations and write others: under Click's names what Click's print, and as commands.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Standard output, standard error and exit status of the program under a name.
fn run_as(name: &str, args: &[&str], input: &[u8]) -> (Vec<u8>, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg0(name).args(args).env("LANG", "C");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary");
    // One that does not read has ended already.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let out = child.wait_with_output().expect("an end");
    (out.stdout, String::from_utf8(out.stderr).expect("a text"), out.status.code())
}

fn run(name: &str, args: &[&str]) -> (String, String, Option<i32>) {
    let (out, errors, status) = run_as(name, args, b"");
    (String::from_utf8(out).expect("a text"), errors, status)
}

/// The output of a run that succeeds.
fn output(name: &str, args: &[&str]) -> String {
    let (out, errors, status) = run(name, args);
    assert_eq!(status, Some(0), "{name} {args:?}: {errors}");
    out
}

/// A file in a folder of the test's own.
fn file(name: &str, text: &str) -> String {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tools");
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join(name);
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a path in ASCII").to_owned()
}

const COMPOUND: &str = "define($a 5); elementclass X { $b | input -> Paint($b) -> q :: Queue($a) -> output }
    Idle -> x :: X($a) -> Discard;";

#[test]
fn flatten_keeps_definitions_unless_told_to_expand_them() {
    let expected = "define($a 5);\n\n# 2 \"config\"\nIdle@1 :: Idle;\n# 2 \"config\"\nDiscard@3 :: Discard;\n\
        # 1 \"config\"\nx/Paint@1 :: Paint($a);\n# 1 \"config\"\nx/q :: Queue($a);\n# 12 \"\"\n\
        Idle@1 -> x/Paint@1\n    -> x/q\n    -> Discard@3;\n";
    assert_eq!(output("click-flatten", &["-e", COMPOUND]), expected);
    assert_eq!(output("causeway", &["flatten", "-e", COMPOUND]), expected);
    let expanded = output("click-flatten", &["--expand-vars", "-e", COMPOUND]);
    assert!(expanded.contains("x/q :: Queue(5);") && !expanded.contains("define"), "{expanded}");
    let given = output("click-flatten", &["-e", COMPOUND, "a=7"]);
    assert!(given.starts_with("define($a 7);\n"), "{given}");
}

#[test]
fn flatten_lists_classes_names_and_declarations() {
    let list =
        |option: &str| output("click-flatten", &[option, "-e", "Idle -> Paint(1) -> Discard; b :: Discard"]);
    assert_eq!(list("-c"), "Discard\nIdle\nPaint\n");
    assert_eq!(list("--names"), "Discard@3\nIdle@1\nPaint@2\nb\n");
    assert_eq!(list("--elem"), list("-n"));
    assert_eq!(list("-d"), "Discard@3 :: Discard\nIdle@1 :: Idle\nPaint@2 :: Paint\nb :: Discard\n");
    // Of another router.
    assert!(output("click-flatten", &["-e", "Idle -> Foo(1) -> bar -> Discard"]).contains("bar@3 :: bar;"));
}

#[test]
fn wrong_arguments_are_told_in_clicks_words() {
    let wrong = |name: &str, args: &[&str]| {
        let (out, errors, status) = run(name, args);
        assert_eq!((out.as_str(), status), ("", Some(1)), "{name} {args:?}");
        errors
    };
    assert_eq!(wrong("click-flatten", &["-e", "Idle", "x.click"]), "router configuration specified twice\n");
    assert!(wrong("click-undead", &["/nonexistent"]).starts_with("/nonexistent: No such file"));
    assert!(
        wrong("click-xform", &["-e", "Idle", "-p", "/nonexistent"]).starts_with("/nonexistent: No such file")
    );
    assert!(
        wrong("click-pretty", &["--bogus"]).ends_with("Try 'click-pretty --help' for more information.\n")
    );
    assert_eq!(wrong("click-combine", &[]), "click-combine: no routers specified\n");
    assert_eq!(wrong("click-flatten", &["-e", "Idle ->"]).lines().count(), 1);
    assert!(
        wrong("click-align", &["-o", "/nonexistent/x", "-e", "Idle -> Discard"]).contains("/nonexistent/x")
    );
    for tool in ["flatten", "check", "undead", "xform", "combine", "uncombine", "align", "pretty"] {
        let name = format!("click-{tool}");
        assert!(output(&name, &["--help"]).contains("--output"), "{tool}");
        assert_eq!(output(&name, &["-v"]), format!("{name} (Causeway) {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn check_says_that_all_is_well_or_what_is_not() {
    let check = |args: &[&str]| run("click-check", args);
    let text = "Idle -> Discard";
    assert_eq!(check(&["-e", text]).1, "config: configuration OK in userlevel driver\n");
    assert_eq!(check(&["-qe", text]), (String::new(), String::new(), Some(0)));
    assert!(check(&["-pe", text]).0.ends_with("Idle@1 -> Discard@2;\n"));
    let (_, errors, status) = check(&["-e", "Idle -> Paint(x) -> Discard"]);
    assert!(errors.contains("COLOR: invalid number") && status == Some(1), "{errors}");
    let (_, errors, status) = check(&["-l", "-e", text]);
    assert_eq!(
        (errors.as_str(), status),
        ("config: configuration incompatible with linuxmodule driver\n", Some(1))
    );
}

#[test]
fn undead_removes_what_no_packet_passes() {
    let text = "InfiniteSource -> x :: StaticSwitch(1); x[0] -> Counter -> d :: Discard; x[1] -> Print -> d";
    let live = output("click-undead", &["-e", text]);
    assert_eq!(
        live,
        "# 1 \"config\"\nInfiniteSource@1 :: InfiniteSource;\n# 1 \"config\"\nd :: Discard;\n# 1 \"config\"\n\
         Print@5 :: Print;\n# 8 \"\"\nInfiniteSource@1 -> Print@5\n    -> d;\n"
    );
    let (_, errors, status) = run("click-undead", &["-e", "Idle -> Discard"]);
    assert_eq!((errors.as_str(), status), ("warning: no live elements in configuration\n", Some(1)));
    let said = run("click-undead", &["-V", "-e", text]).1;
    assert!(said.contains("removing x :: StaticSwitch: always the same way\n"), "{said}");
}

const PATTERNS: &str = "elementclass P { input -> Paint($a) -> Paint($a) -> output }
    elementclass P_Replacement { input -> Paint($a) -> x :: Print -> output }";

#[test]
fn xform_replaces_patterns_and_run_and_check_do_so_too() {
    let patterns = file("patterns.click", PATTERNS);
    let text = "i :: Idle -> Paint(1) -> Paint(1) -> Paint(2) -> d :: Discard";
    let out = output("click-xform", &["-p", &patterns, "-e", text]);
    assert!(out.ends_with("i -> Paint@2\n    -> P@1/x\n    -> Paint@4\n    -> d;\n"), "{out}");
    let router = file("painted.click", text);
    assert_eq!(
        output("click-xform", &[&router, &patterns]),
        output("causeway", &["xform", &router, &patterns])
    );
    let (_, errors, _) = run("click-xform", &["-e", text]);
    assert_eq!(errors, "warning: no patterns read\n");
    let back = "i :: Idle -> Paint(1) -> Print -> d :: Discard";
    assert!(output("click-xform", &["-r", "-p", &patterns, "-e", back]).contains("P@1/Paint@2 :: Paint(1);"));
    let flat = output("causeway", &["check", "--patterns", &patterns, "--flat", "-e", text]);
    assert!(flat.contains("P@1/x :: Print;") && !flat.contains("Paint@3"), "{flat}");
    let (_, errors, status) = run("causeway", &["check", "--patterns", "/nonexistent", "-e", text]);
    assert!(errors.contains("/nonexistent") && status == Some(1), "{errors}");
}

#[test]
fn routers_are_combined_and_taken_out_again() {
    let a = file("a.click", "FromDevice(eth0) -> Queue -> t :: ToDevice(eth1)");
    let b = file("b.click", "f :: FromDevice(eth0) -> Queue -> ToDevice(eth1)");
    let (a, b) = (format!("A={a}"), format!("B={b}"));
    let text = output("click-combine", &["-c", &a, &b, "A.eth1=B.eth0"]);
    assert!(text.contains("link1 :: RouterLink(A t ToDevice, eth1, B f FromDevice, eth0);"), "{text}");
    let (archive, _, _) = run_as("click-combine", &[&a, &b, "A.eth1=B.eth0"], b"");
    assert!(archive.starts_with(b"!<arch>\n"));
    let (out, errors, status) = run_as("click-uncombine", &["-", "A"], &archive);
    assert_eq!(status, Some(0), "{errors}");
    let out = String::from_utf8(out).expect("a text");
    assert!(out.contains("t :: ToDevice(eth1);") && !out.contains("RouterLink"), "{out}");
    let (_, errors, status) = run_as("click-uncombine", &["-", "C"], &archive);
    assert_eq!((errors.as_str(), status), ("<stdin>: no 'C' component\n", Some(1)));
    let (_, errors, _) = run_as("click-uncombine", &["-", "C"], b"Idle -> Discard");
    assert_eq!(errors, "<stdin>: not created by 'click-combine' (no 'componentmap')\n");
    let (_, errors, _) = run("click-combine", &[&a, &b, "A.eth9=B.eth0"]);
    assert_eq!(errors, "click-combine: router 'A' has no element or device named 'eth9'\n");
}

#[test]
fn align_changes_nothing_and_says_so() {
    let (out, errors, status) = run("click-align", &["-e", "Idle -> Strip(14) -> Discard"]);
    assert!(out.ends_with("Idle@1 -> Strip@2\n    -> Discard@3;\n") && status == Some(0), "{out}");
    assert!(errors.starts_with("config: warning: nothing to align"), "{errors}");
}

#[test]
fn the_page_is_whole_and_escapes_everything() {
    let text = "i :: Idle -> p :: Print(\"<script>alert('x')</script>&\") -> d :: Discard; Idle -> [0] i2 :: Foo -> d";
    let page = output("click-pretty", &["-e", text]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert"), "{page}");
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("<svg"));
    assert!(
        !page.contains("src=") && !page.contains("@import") && !page.contains("<link"),
        "it needs nothing else"
    );
    assert!(page.contains("href=\"#class-Print\"") && page.contains("id=\"class-Print\""));
    assert!(page.contains("output 0 (push) → [0] <a href=\"#e1\">p</a>"), "{page}");
    let linked = output("click-pretty", &["-u", "https://x/\"%s", "-e", text]);
    assert!(linked.contains("href=\"https://x/&quot;Print\"") && !linked.contains("<h2>Classes"));
    assert!(output("causeway", &["pretty", "--dot", "-e", text]).starts_with("digraph"));
}

#[test]
fn elements_are_found_and_stand_beside_clicks() {
    let found = output("causeway", &["elements", "--search", "NAT"]);
    // Destinations and alternation are something else.
    assert!(found.contains("  IPRewriter ") && !found.contains("  EtherMirror "), "{found}");
    assert!(
        output("causeway", &["elements", "Queue"]).contains("Beside Click: as Click's class of this name.")
    );
    assert!(output("causeway", &["elements", "KernelForward"]).contains("Beside Click: Click has no class"));
    let (_, errors, status) = run("causeway", &["elements", "--search", "zebra"]);
    assert!(errors.contains("no element class says anything of 'zebra'") && status == Some(1), "{errors}");
    let (_, errors, _) = run("causeway", &["check", "-e", "Idle -> ToHostSniffers -> Discard"]);
    assert!(errors.contains("in its kernel driver") && errors.contains("SNIFFER"), "{errors}");
    let (_, errors, _) = run("causeway", &["check", "-e", "Idle -> AiroInfo() -> Discard"]);
    assert!(errors.contains("Click has AiroInfo, Causeway does not yet"), "{errors}");
}
