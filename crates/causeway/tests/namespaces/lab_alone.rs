//! `causeway lab transmit`, `replay` and `receive`: one side of the tester by itself, held against counters of others.

use crate::lab::{folder, is_root};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A graph that sends, and a capture of it that is sent again: the receiving command counts both.
#[test]
fn a_graph_and_a_replay_send_what_the_receiver_counts() {
    if !is_root() {
        return;
    }
    let name = format!("cwlplain{}", std::process::id());
    let _space = Space::new(&name);
    let folder = folder("plain");
    let capture = folder.join("sent.pcap").to_string_lossy().into_owned();
    let inside = |args: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &name, env!("CARGO_BIN_EXE_causeway")]).args(args);
        command
    };
    let source = format!(
        "FastUDPSource(2000, 200, 60, 2:0:0:0:0:1, 198.18.0.1, 7, 2:0:0:0:0:2, 198.18.64.1, 9) -> SetTestPayload \
         -> t :: PullTee; t[0] -> ToDevice(va, METHOD PACKET); \
         t[1] -> ToDump({capture}, SNAPLEN 0); \
         DriverManager(wait 1, stop);"
    );
    let sent_while_receiving = |send: &mut dyn FnMut()| {
        let receive = ["lab", "receive", "vb", "--seconds", "3"];
        let receiver = inside(&receive).stdout(Stdio::piped()).spawn().expect("started");
        // It opens its port at once; what is sent before is missing at the start, and the count says so.
        std::thread::sleep(std::time::Duration::from_millis(700));
        send();
        let out = receiver.wait_with_output().expect("its end");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let run = |args: &[&str]| {
        let out = inside(args).output().expect("run");
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let text = sent_while_receiving(&mut || drop(run(&["run", "-e", &source])));
    assert!(text.starts_with("received 200 frames"), "{text}");
    let mut said = String::new();
    let text = sent_while_receiving(&mut || {
        said = run(&["lab", "replay", "va", &capture, "--speed", "10", "--times", "1"]);
    });
    assert!(said.starts_with("sent 200 of 200 frames"), "{said}");
    assert!(text.starts_with("received 200 frames"), "{text}");
    let text = sent_while_receiving(&mut || {
        said = run(&["lab", "transmit", "va", "--to", "2:0:0:0:0:2", "--rate", "0", "--count", "150"]);
    });
    assert!(said.starts_with("sent 150 frames"), "{said}");
    assert!(text.starts_with("received 150 frames"), "{text}");
    for what in ["delay, median ", "delay, 99.9 % ", "its variation, IPDV 99.9 % "] {
        let line = text.lines().find(|line| line.starts_with(what));
        assert!(line.is_some_and(|line| line.ends_with(" us")), "{what}: {text}");
    }
    // Both have the same clock. The receiver began more than half a second before the sender.
    let least = text.lines().find_map(|line| line.strip_prefix("delay, least")).expect("a delay");
    let least: f64 = least.trim().trim_end_matches(" us").parse().expect("a number");
    assert!(least < 500_000.0 && !text.contains("before they were sent"), "{text}");
    // One frame again and again has one number.
    let text = sent_while_receiving(&mut || {
        said = run(&["lab", "transmit", "va", "--to", "2:0:0:0:0:2", "--bare", "--count", "120"]);
    });
    let duplicated = text.lines().find_map(|line| line.strip_prefix("duplicated")).map(str::trim);
    assert!(said.starts_with("sent 120 frames") && duplicated == Some("119"), "{said}{text}");
    // Streams of both families.
    let streams = folder.join("streams.toml");
    let text = "[[stream]]\nname = \"a\"\n[[stream]]\nname = \"b\"\nfamily = \"ipv6\"\nsize.fixed = 84\n";
    std::fs::write(&streams, text).expect("written");
    let streams = streams.to_string_lossy().into_owned();
    let both = ["lab", "transmit", "va", "--to", "2:0:0:0:0:2", "--count", "100", "--traffic", &streams];
    let text = sent_while_receiving(&mut || said = run(&both));
    assert!(said.starts_with("sent 100 of ") && text.starts_with("received 100 frames"), "{said}{text}");
    let four = [&both[..], &["--source", "198.18.0.0/18"]].concat();
    let refused = inside(&four).output().expect("run");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("stream 'b' needs a network of its family"), "{said}");
    std::fs::remove_dir_all(folder).expect("removed");
}

/// Counters that are nobody's of ours: of the interface, of nftables, and a capture by tcpdump. What is missing here is
/// said, and the others are compared all the same.
#[test]
fn independent_counters_agree_with_the_tester_at_three_rates() {
    if !is_root() {
        return;
    }
    let name = format!("cwlcount{}", std::process::id());
    let (folder, space) = (folder("count"), Space::new(&name));
    let rules = space.count_by_rules(&folder.join("rules").to_string_lossy());
    if let Err(why) = &rules {
        eprintln!("skipped: the comparison with a counter of nftables: {why}");
    }
    let captures = Command::new("tcpdump").arg("--version").output().is_ok();
    if !captures {
        eprintln!("skipped: the comparison with a capture: there is no tcpdump");
    }
    let counted = || {
        let interface = space.said(&["cat", "/sys/class/net/vb/statistics/rx_packets"]);
        let interface = interface.trim().parse::<u64>().expect("a number");
        [Some(interface), rules.is_ok().then(|| space.counted_by_rules())]
    };
    let tester = |args: &[&str]| space.inside(&[&[env!("CARGO_BIN_EXE_causeway"), "lab"], args].concat());
    for rate in ["1000", "20000", "80000"] {
        let file = folder.join(rate).to_string_lossy().into_owned();
        let (before, dump) = (counted(), captures.then(|| space.capture(&file)));
        let mut receive = tester(&["receive", "vb", "--seconds", "3"]);
        let receiver = receive.stdout(Stdio::piped()).spawn().expect("started");
        std::thread::sleep(std::time::Duration::from_millis(700));
        // So few that whoever has to wait for a processor has room for all of them.
        let sent =
            tester(&["transmit", "va", "--to", "2:0:0:0:0:2", "--rate", rate, "--count", "1000"]).output();
        let sent = String::from_utf8_lossy(&sent.expect("run").stdout).into_owned();
        let frames = sent.strip_prefix("sent ").and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        let frames = frames.filter(|&frames| frames > 0).unwrap_or_else(|| panic!("at {rate}: {sent}"));
        let out = receiver.wait_with_output().expect("its end");
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(text.starts_with(&format!("received {frames} frames")), "at {rate}: {sent}{text}");
        for (what, (before, after)) in ["interface", "nftables"].iter().zip(before.iter().zip(counted())) {
            if let Some((before, after)) = before.zip(after) {
                assert_eq!(after - before, frames, "{what} at {rate}");
            }
        }
        if let Some(dump) = dump {
            assert_eq!(space.end_capture(dump, &file), frames, "the capture at {rate}");
        }
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

/// Runs `ip` with these words.
pub(crate) fn ip(line: &str) {
    let status = Command::new("ip").args(line.split_whitespace()).status().expect("ip");
    assert!(status.success(), "ip {line}");
}

/// A network namespace with a cable from va to vb, which goes when this is dropped.
pub(crate) struct Space<'a>(pub(crate) &'a str);

impl Space<'_> {
    pub(crate) fn new(name: &str) -> Space<'_> {
        ip(&format!("netns add {name}"));
        let space = Space(name);
        for line in [
            "link add va type veth peer name vb",
            "link set va addrgenmode none up",
            "link set vb addrgenmode none up",
        ] {
            ip(&format!("-n {name} {line}"));
        }
        space
    }

    /// A command that runs in it.
    pub(crate) fn inside(&self, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.0]).args(args);
        command
    }

    /// What a command says that goes well.
    pub(crate) fn said(&self, args: &[&str]) -> String {
        let out = self.inside(args).output().expect("run");
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// Has nftables count what comes to vb, by rules in `file`; or says why it cannot here.
    fn count_by_rules(&self, file: &str) -> Result<(), String> {
        let rules = "table netdev tally {\n counter came {\n }\n chain entry {\n  \
                     type filter hook ingress device vb priority 0;\n  counter name came\n }\n}\n";
        std::fs::write(file, rules).expect("written");
        if Command::new("nft").arg("--version").output().is_err() {
            return Err("there is no nft".to_owned());
        }
        let loaded = self.inside(&["nft", "-f", file]).output().expect("run");
        if loaded.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&loaded.stderr).into_owned();
        assert!(why.contains("not supported") || why.contains("No such file"), "{why}");
        Err(format!("the kernel cannot: {why}"))
    }

    fn counted_by_rules(&self) -> u64 {
        let rules = self.said(&["nft", "list", "counter", "netdev", "tally", "came"]);
        let packets = rules.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
        packets.expect("a counter").parse().expect("a number")
    }

    /// A capture of what comes to vb that has begun.
    fn capture(&self, file: &str) -> Child {
        let mut dump = self.inside(&["tcpdump", "-n", "-i", "vb", "-B", "65536", "-w", file]);
        let mut dump = dump.stderr(Stdio::piped()).spawn().expect("started");
        let mut lines = BufReader::new(dump.stderr.take().expect("its errors")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("listening on vb")), "it listens");
        dump
    }

    /// The frames of a capture, which ends.
    fn end_capture(&self, mut dump: Child, file: &str) -> u64 {
        kill_process(Pid::from_child(&dump), Signal::INT).expect("interrupted");
        assert!(dump.wait().expect("its end").success());
        let listed = self.inside(&["tcpdump", "-n", "-r", file]).output().expect("run");
        String::from_utf8_lossy(&listed.stdout).lines().count() as u64
    }
}

impl Drop for Space<'_> {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", self.0]).status();
    }
}
