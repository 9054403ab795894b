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
    // As in Click, -w is about configurations without elements.
    assert_eq!(run(&["-wqe", text]).1, expected);
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
    let (out, errors, _) =
        run(&["-qe", text, "-h", "q.config", "-h", "q.nothing", "-h", "q.reset", "-h", "x*.class"]);
    assert_eq!(out, "q.config:\n\n", "nothing is no line");
    assert_eq!(errors, "no 'q.nothing' handler\n'q.reset' is a write handler\nno element matching 'x*'\n");
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
fn printers_print_of_one_packet_after_the_other() {
    for class in ["Print", "IPPrint", "IP6Print", "ARPPrint"] {
        let text = format!(
            "InfiniteSource(DATA x, LIMIT 2, BURST 2, STOP true) -> MarkIPHeader -> {class}(a) -> {class}(b) -> Discard"
        );
        let errors = run(&["-e", &text]).1;
        let labels: Vec<_> = errors.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
        assert_eq!(labels, ["a", "b", "a", "b"], "{class}: {errors}");
    }
}

#[test]
fn what_older_configurations_say_is_warned_of() {
    let text = "Idle -> p :: Print(x, NBYTES 4) -> Discard";
    let expected = "config:1: While configuring 'p :: Print':\n  NBYTES: warning: argument deprecated\n";
    assert_eq!(run(&["-qe", text]).1, expected);
    let text =
        "f :: FromIPSummaryDump(DATA \"!data ip_src zz\\n1.0.0.1 5\", FIELDS yy, STOP true) -> Discard";
    let expected = "config:1: While configuring 'f :: FromIPSummaryDump':\n\
                    <data>:0:   warning: unknown content type 'yy'\n\
                    <data>:1: warning: unknown content type 'zz'\n";
    assert_eq!(run(&["-e", text]).1, expected);
}

#[test]
fn a_queue_tells_of_its_first_overflow() {
    let text = "InfiniteSource(LIMIT 50, BURST 50, STOP true) -> q :: SimpleQueue(10) -> Idle";
    assert_eq!(run(&["-e", text]).1, "q :: SimpleQueue: overflow\n");
}

#[test]
fn the_time_is_told_as_csh_tells_it() {
    let (out, ..) = run(&["-t", "--simtime", "-e", "InfiniteSource(LIMIT 1, STOP true) -> Discard"]);
    let fields: Vec<&str> = out.trim_end().split(' ').collect();
    let [user, system, elapsed] = fields[..] else { panic!("{out}") };
    assert!(user.ends_with('u') && system.ends_with('s') && elapsed.contains(':'), "{out}");
}

#[test]
fn options_for_control_are_elements() {
    let path = std::env::temp_dir().join(format!("causeway-click-{}.sock", std::process::id()));
    let place = path.display().to_string();
    let (out, errors, status) = run(&[
        "-qe",
        "i :: Idle",
        "-p",
        "41930+",
        "-u",
        &place,
        "-h",
        "list",
        "-h",
        "click_driver@@ControlSocket.config",
        "-h",
        "click_driver@@ControlSocket@1.filename",
        "-h",
        "ControlSocket.class",
    ]);
    assert_eq!(status, Some(0), "{errors}");
    let expected = format!(
        "list:\n3\ni\nclick_driver@@ControlSocket\nclick_driver@@ControlSocket@1\n\n\
         click_driver@@ControlSocket.config:\nTCP, 41930+, LOCALHOST true\n\n\
         click_driver@@ControlSocket@1.filename:\n{place}\n\n\
         click_driver@@ControlSocket.class:\nControlSocket\n\n\
         click_driver@@ControlSocket@1.class:\nControlSocket\n\n"
    );
    assert_eq!(out, expected);
    assert!(!path.exists());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (_, errors, status) = run(&["-qe", "i :: Idle", "-p", &port]);
    assert!(
        errors.contains("click_driver@@ControlSocket") && errors.contains("Address already in use"),
        "{errors}"
    );
    assert_eq!(status, Some(1));
}

#[test]
fn clients_of_a_control_socket_element_have_its_rights() {
    use std::io::{Read, Write};
    let place = std::env::temp_dir().join(format!("causeway-rights-{}.sock", std::process::id()));
    let config =
        format!("ControlSocket(unix, {}, READONLY true); q :: Queue; Idle -> q -> Discard", place.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    let mut child = command.arg0("click").args(["-e", &config]).spawn().unwrap();
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let mut socket = loop {
        match std::os::unix::net::UnixStream::connect(&place) {
            Ok(socket) => break socket,
            Err(e) => assert!(std::time::Instant::now() < patience, "{e}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let asked = b"READ q.capacity\nWRITE q.capacity 5\nCHECKWRITE q.length\nREAD timewarp\nQUIT\n";
    socket.write_all(asked).unwrap();
    let mut replies = String::new();
    socket.read_to_string(&mut replies).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = std::fs::remove_file(&place);
    assert_eq!(
        replies,
        "Click::ControlSocket/1.3\r\n200 Read handler 'q.capacity' OK\r\nDATA 4\r\n1000\
         530 Permission denied for 'q.capacity'\r\n511 Handler 'q.length' not writable\r\n\
         200 Read handler 'timewarp' OK\r\nDATA 1\r\n1200 Goodbye!\r\n"
    );
}

#[test]
fn time_goes_as_fast_as_it_is_told_to() {
    // The second packet comes a thousand seconds after the first.
    let config = "TimedSource(INTERVAL 1000, LIMIT 2, STOP true) -> Discard; Script(write timewarp 1000000)";
    assert_eq!(run(&["-e", config, "-h", "timewarp"]).0, "1000000\n");
    let (_, errors, _) = run(&["-e", "Script(write timewarp 0, stop)"]);
    assert!(errors.contains("'0': write a number above 0"), "{errors}");
    let (_, errors, _) = run(&["--simtime", "-e", "Script(write timewarp 2, stop)"]);
    assert!(errors.contains("time is simulated"), "{errors}");
}

#[test]
fn simulated_time_says_so() {
    assert_eq!(run(&["--simtime", "-qe", "Idle", "-h", "timewarp"]).0, "simulation\n");
}

/// Click's packets are of any length; here frames become long enough, up to 32 KiB.
#[test]
fn frames_are_as_long_as_sources_and_files_ask_for() {
    let file = std::env::temp_dir().join(format!("causeway-long-{}.pcap", std::process::id()));
    let path = file.display();
    let write = format!(
        "InfiniteSource(LENGTH 60, LIMIT 1) -> d :: ToDump({path}, SNAPLEN 0);
         InfiniteSource(LENGTH 5000, LIMIT 2, STOP true) -> d"
    );
    let (out, errors, status) = run(&["-e", &write, "-h", "d.count"]);
    assert_eq!((out.as_str(), errors.as_str(), status), ("3\n", "", Some(0)));
    let read = format!("FromDump({path}, STOP true) -> c :: Counter -> Discard");
    let (out, errors, status) = run(&["-e", &read, "-h", "c.byte_count"]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!((out.as_str(), errors.as_str(), status), ("10060\n", "", Some(0)));

    let (_, errors, status) = run(&["-e", "InfiniteSource(LENGTH 40000) -> Discard"]);
    assert!(errors.contains("LENGTH: 40000 bytes, but a frame has room for 32640"), "{errors}");
    assert_eq!(status, Some(1));
}
