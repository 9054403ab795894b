//! The binary: rules from a file, signals, errors that say what to do.

mod common;

use common::{PORTS, Testbed};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_causeway-nic-xdp");

const RULES: &str = "
    nic 0 mac 02:00:00:00:00:00
    nic 1 mac 02:00:00:00:00:01
    nic 2 mac 02:00:00:00:00:02
    nic 3 mac 02:00:00:00:00:03
    route 10.0.1.0/24 nic 1 mac 02:00:00:00:01:01";

/// A file with rules, removed when dropped.
struct RuleFile(PathBuf);

impl RuleFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nic-xdp-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        RuleFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for RuleFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn fails(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_cannot_be_done_is_said() {
    let run = |rules: &str, interface: &str| {
        let mut command = Command::new(PROGRAM);
        command.args([rules, interface]);
        fails(command)
    };
    assert!(run("/no/such/file", "lo").contains("/no/such/file: No such file"));
    let bad = RuleFile::new("bad", "nic 0 mac 02:00:00:00:00:00\nroute 10.0.0.0/33 nic 0 mac 2:0:0:0:0:1\n");
    assert!(run(bad.path(), "lo").contains("line 2: not a prefix: 10.0.0.0/33"));
    let good = RuleFile::new("good", "nic 0 mac 02:00:00:00:00:00\n");
    assert!(run(good.path(), "nosuch0").contains("nosuch0: no such interface; `ip link`"));
}

#[test]
fn it_runs_until_told_to_end_and_rereads_its_rules() {
    let Some(bed) = Testbed::new() else { return };
    let rules = RuleFile::new("rules", RULES);
    let mut child = bed
        .router
        .command(PROGRAM)
        .arg(rules.path())
        .args(PORTS)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    for port in PORTS {
        let line = lines.next().unwrap();
        assert!(line.contains(port) && line.contains("goes to the kernel"), "{line}");
    }
    // `ip netns exec` has become the program: the same process.
    let signal = |signal| kill_process(Pid::from_child(&child), signal).unwrap();
    assert_eq!(bed.router.ip("link show").matches("prog/xdp").count(), 4);
    signal(Signal::HUP);
    assert_eq!(lines.next().as_deref(), Some("rules read"));
    std::fs::write(&rules.0, "nic 0 mac 02:00:00:00:00:00").unwrap();
    signal(Signal::HUP);
    assert!(errors.next().unwrap().ends_with("4 interfaces; the rules stay as they were"));
    for report in [Signal::USR1, Signal::TERM] {
        signal(report);
        let counters: Vec<String> = lines.by_ref().take(4).collect();
        assert_eq!(counters, ["p0:", "p1:", "p2:", "p3:"]);
    }
    assert_eq!(lines.next(), None);
    assert!(child.wait().unwrap().success());
    assert!(!bed.router.ip("link show").contains("prog/xdp"));
}
