//! What a user gets wrong, or a full disk, is said in a line that names the place, with a status that is not zero.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

fn causeway(args: &[&str], stdout: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    let child = command.args(args).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn();
    child.and_then(|child| child.wait_with_output()).expect("the binary that cargo built starts")
}

#[track_caller]
fn assert_said(args: &[&str], stdout: Stdio, status: i32, what: &str) {
    let output = causeway(args, stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(what), "{args:?}: {said}");
    assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
}

#[test]
fn a_full_standard_output_is_named() {
    for args in [&["elements"][..], &["man"], &["completions", "bash"]] {
        let full = File::options().write(true).open("/dev/full").expect("/dev/full");
        assert_said(args, full.into(), 1, "cannot write to standard output: No space left");
    }
}

#[test]
fn a_forgotten_dash_takes_no_graph_away() {
    for args in [&["write", "hotconfig"][..], &["write", "hotconfig", "-"], &["write", "hotconfig", " "]] {
        assert_said(args, Stdio::null(), 1, "`causeway write hotconfig - < FILE`");
    }
}

#[test]
fn settings_that_do_not_exist_are_mistakes_of_the_command_line() {
    let run = ["run", "-e", "Idle -> Discard"];
    for bytes in ["100", "1024", "6000", "65536"] {
        let args = [&run[..], &["--frame-size", bytes]].concat();
        assert_said(&args, Stdio::null(), 2, "a power of two from 2048 to 32768");
    }
    assert_said(
        &[&run[..], &["--reception", "nappi"]].concat(),
        Stdio::null(),
        2,
        "interrupt, moderated, napi",
    );
    assert_said(&[&run[..], &["--metrics", "9464"]].concat(), Stdio::null(), 2, "such as 127.0.0.1:9464");
}

#[test]
fn a_variable_that_nothing_defines_is_named() {
    let hint = "nothing defines `$n`: `-D n=VALUE`";
    assert_said(&["check", "-e", "Idle -> Paint($n) -> Discard"], Stdio::null(), 1, hint);
    assert_said(&["run", "-e", "FromDump($n) -> Discard"], Stdio::null(), 1, hint);
}

#[test]
fn frames_without_memory_for_them_are_a_mistake() {
    let args = ["run", "-e", "Idle -> Discard", "--frames", "4294967295", "--frame-size", "32768"];
    assert_said(&args, Stdio::null(), 1, "ask for fewer frames");
}

/// Whoever has long frames says so on the command line; as `click` frames are as long as sources ask for.
#[test]
fn a_source_makes_long_packets_where_frames_are_long_and_else_says_how_long_they_may_be() {
    for class in
        ["InfiniteSource(LENGTH 9000, LIMIT 3, STOP true)", "RatedSource(LENGTH 9000, LIMIT 3, STOP true)"]
    {
        let text =
            format!("{class} -> c :: Counter -> Discard; DriverManager(wait_stop, print c.byte_count)");
        let args = ["run", "-e", &text, "--frame-size"];
        let output = causeway(&[&args[..], &["16384"]].concat(), Stdio::piped());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "27000\n", "{output:?}");
        let args = [&args[..], &["8192"]].concat();
        assert_said(&args, Stdio::null(), 1, "LENGTH: 9000 bytes, but a frame has room for 8064");
    }
    let text = "FastUDPSource(0, 3, 9000, 1:1:1:1:1:1, 1.0.0.1, 5, 2:2:2:2:2:2, 1.0.0.2, 7) -> Discard";
    assert_said(&["run", "-e", text], Stdio::null(), 1, "LENGTH: 9000 bytes, but a frame has room for 1920");
    let mut click = Command::new(env!("CARGO_BIN_EXE_causeway"));
    let said = click.arg0("click").args(["-e", SHORT, "--frame-size", "4096"]).output().expect("it starts");
    let said = (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned());
    assert!(said.0 == Some(1) && said.1.contains("unrecognized option '--frame-size'"), "{said:?}");
}

/// A graph that ends by itself.
const SHORT: &str = "InfiniteSource(LIMIT 1, STOP true) -> Discard";

#[test]
fn a_processor_that_is_not_there_is_answered_with_those_that_are() {
    let args = ["run", "-e", SHORT, "--processors", "0,1023"];
    assert_said(&args, Stdio::null(), 1, "pinned to 1023; the processors are 0");
}

#[test]
fn no_folder_is_made_for_a_socket() {
    let folder = std::env::temp_dir().join(format!("causeway-no-folder-{}", std::process::id()));
    let socket = folder.join("a").to_string_lossy().into_owned();
    let args = ["run", "-e", SHORT, "--socket", &socket];
    assert_said(&args, Stdio::null(), 1, "(--socket names another place): No such file or directory");
    assert!(!folder.exists());
}

#[test]
fn a_graph_of_interfaces_that_are_not_there_is_printed_with_a_word() {
    let args = ["up", "--print", "lo", "nowhere0"];
    assert_said(&args, Stdio::null(), 0, "nowhere0: there is no such interface here");
    assert!(!String::from_utf8_lossy(&causeway(&args, Stdio::null()).stderr).contains("lo:"));
}

#[test]
fn a_definition_that_nothing_uses_is_warned_of() {
    let check = |define: &str| {
        let args = ["check", "-e", "define($dev eth1); Idle -> Print(${dev}) -> Discard", "-D", define];
        let output = causeway(&args, Stdio::null());
        assert!(output.status.success(), "{define}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(check("dve=eth2").contains("-D dve is not used: there is no $dve"));
    assert_eq!(check("dev=eth2"), "");
}

#[test]
fn a_folder_that_is_not_there_is_said_before_the_work() {
    assert_said(&["model", "OSR-4", "--out", "/nowhere"], Stdio::null(), 1, "`mkdir -p /nowhere`");
}

#[test]
fn packets_that_do_not_reach_a_full_disk_are_told_of() {
    let socket = std::env::temp_dir().join(format!("causeway-mistakes-{}.sock", std::process::id()));
    for dump in [
        "ToDump(/dev/full)",
        "MarkIPHeader -> ToIPSummaryDump(/dev/full)",
        "MarkIPHeader -> IPPrint(OUTFILE /dev/full) -> Discard",
    ] {
        let graph = format!("InfiniteSource(LIMIT 3, STOP true) -> {dump}");
        let args = ["run", "-e", &graph, "--socket", socket.to_str().expect("a text")];
        assert_said(&args, Stdio::null(), 1, "are lost: No space left");
    }
}
