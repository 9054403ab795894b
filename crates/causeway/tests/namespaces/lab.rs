//! `causeway lab`: what it writes, what it says, and what it leaves behind.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn causeway(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg("lab").args(args);
    command
}

fn output(args: &[&str]) -> Output {
    causeway(args).output().expect("the binary that cargo built starts")
}

fn error(args: &[&str]) -> String {
    let output = output(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("causeway-lab-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A description of a bed for little traffic, which a busy machine can carry.
fn description(folder: &Path, more: &str) -> String {
    let file = folder.join("bed.toml");
    std::fs::write(&file, format!("method = \"packet\"\nhighest_fps = 20000.0\n{more}")).expect("written");
    file.to_string_lossy().into_owned()
}

fn left_behind(process: u32) -> bool {
    let list = Command::new("ip").args(["netns", "list"]).output().expect("ip");
    String::from_utf8_lossy(&list.stdout).contains(&format!("cwl-{process}-"))
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: needs root to make network namespaces");
    }
    root
}

#[test]
fn an_interrupt_leaves_a_valid_part_and_a_clean_machine() {
    if !is_root() {
        return;
    }
    let folder = folder("interrupt");
    let (file, result) = (description(&folder, ""), folder.join("lab.json"));
    let result_text = result.to_string_lossy().into_owned();
    let args = [
        "run",
        "kernel",
        "--file",
        &file,
        "--sizes",
        "128",
        "--repetitions",
        "1000",
        "--output",
        &result_text,
    ];
    let mut run = causeway(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let process = run.id();
    let lines = BufReader::new(run.stdout.take().expect("its output")).lines().map_while(Result::ok);
    // The second measurement has begun, so the first is done.
    let mut told = lines.filter(|line| line.contains("repetition 2 of 1000; ") && line.ends_with(" left"));
    assert!(told.next().is_some(), "the second repetition begins");
    assert!(left_behind(process), "its namespaces are there");
    kill_process(Pid::from_child(&run), Signal::INT).expect("interrupted");
    let ended = run.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("ended early") && said.contains("interrupted"), "{said}");
    assert!(!left_behind(process));
    let text = std::fs::read_to_string(&result).expect("the part is there");
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid");
    assert!(json["run"]["settings"]["ended early"].as_str().is_some_and(|why| why.contains("interrupted")));
    assert!(folder.join("lab.html").exists() && folder.join("lab.csv").exists());
    // Compared with itself nothing is worse.
    let same = output(&["compare", &result_text, &result_text, "--fail-on", "-3%"]);
    assert_eq!(same.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&same.stdout).contains("kernel/NDR"));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_device_that_is_never_ready_or_dies_is_told_of_and_nothing_stays() {
    if !is_root() {
        return;
    }
    let folder = folder("dead");
    let devices = "[device.dead.command]\nstart = [\"sh\", \"-c\", \"echo no such port; exit 1\"]\nready = \"ready\"\n\
                   [device.dying.command]\nstart = [\"sh\", \"-c\", \"echo ready; sleep 1\"]\nready = \"ready\"\n";
    let file = description(&folder, devices);
    let result = folder.join("lab.json").to_string_lossy().into_owned();
    let run = |device: &str| error(&["run", device, "--file", &file, "--sizes", "128", "--output", &result]);
    let said = run("dead");
    assert!(said.contains("device 'dead'") && said.contains("no such port"), "{said}");
    let said = run("dying");
    assert!(said.contains("the device died") && said.contains("128 bytes"), "{said}");
    let list = Command::new("ip").args(["netns", "list"]).output().expect("ip");
    let mine = format!("cwl-{}", std::process::id());
    assert!(!String::from_utf8_lossy(&list.stdout).contains(&mine));
    std::fs::remove_dir_all(folder).expect("removed");
}

/// What happens to a router in a trial, and what is seen inside of the machine meanwhile.
#[test]
fn a_router_is_reset_and_changed_while_it_forwards() {
    if !is_root() {
        return;
    }
    let folder = folder("events");
    let result = folder.join("lab.json");
    let (file, text) = (description(&folder, ""), result.to_string_lossy().into_owned());
    let ended = output(&[
        "run",
        "causeway",
        "--file",
        &file,
        "--sizes",
        "128",
        "--repetitions",
        "1",
        "--output",
        &text,
    ]);
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    let text = std::fs::read_to_string(&result).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid");
    let series = |name: &str| {
        let all = json["series"].as_array().expect("series");
        all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    };
    for what in ["longest burst", "recovery time"] {
        series(&format!("causeway/{what}"));
    }
    for event in ["reset", "change of routes", "swap of graphs"] {
        let blocked = series(&format!("causeway/blocked by a {event}"));
        assert!(blocked["measurements"][0]["repetitions"][0].as_f64().is_some_and(|ms| ms >= 0.0), "{event}");
        series(&format!("causeway/128 bytes/{event}, as it went"));
    }
    if json["run"]["settings"]["inside of the device"].is_null() {
        let idle = series("processor 0/inside causeway, 128 bytes: availability");
        assert_eq!(idle["measurements"].as_array().map(Vec::len), Some(10), "at each load of the curve");
        series("idle beyond what proc has/inside causeway, 128 bytes: processor time");
    } else {
        eprintln!("not seen inside: {}", json["run"]["settings"]["inside of the device"]);
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

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

/// Counters that are nobody's of ours: of the interface, of nftables, and a capture by tcpdump.
#[test]
fn independent_counters_agree_with_the_tester_at_three_rates() {
    if !is_root() {
        return;
    }
    for program in ["nft", "tcpdump"] {
        if Command::new(program).arg("--version").output().is_err() {
            return eprintln!("skipped: there is no {program} to count beside the tester");
        }
    }
    let name = format!("cwlcount{}", std::process::id());
    let (folder, _space) = (folder("count"), Space::new(&name));
    let file = |what: &str| folder.join(what).to_string_lossy().into_owned();
    let inside = |args: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &name]).args(args);
        command
    };
    let said = |args: &[&str]| {
        let out = inside(args).output().expect("run");
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let rules = "table netdev tally {\n counter came {\n }\n chain entry {\n  \
                 type filter hook ingress device vb priority 0;\n  counter name came\n }\n}\n";
    std::fs::write(file("rules"), rules).expect("written");
    let loaded = inside(&["nft", "-f", &file("rules")]).output().expect("run");
    if !loaded.status.success() {
        let why = String::from_utf8_lossy(&loaded.stderr).into_owned();
        assert!(why.contains("not supported") || why.contains("No such file"), "{why}");
        return eprintln!("skipped: the kernel's nftables cannot count here: {why}");
    }
    let counted = || {
        let interface = said(&["cat", "/sys/class/net/vb/statistics/rx_packets"]);
        let rules = said(&["nft", "list", "counter", "netdev", "tally", "came"]);
        let packets = rules.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
        [interface.trim(), packets.expect("a counter")].map(|text| text.parse::<u64>().expect("a number"))
    };
    let tester = |args: &[&str]| inside(&[&[env!("CARGO_BIN_EXE_causeway"), "lab"], args].concat());
    for rate in ["1000", "20000", "80000"] {
        let (before, capture) = (counted(), file(rate));
        let mut dump = inside(&["tcpdump", "-n", "-i", "vb", "-B", "65536", "-w", &capture]);
        let mut dump = dump.stderr(Stdio::piped()).spawn().expect("started");
        let mut lines = BufReader::new(dump.stderr.take().expect("its errors")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("listening on vb")), "it listens");
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
        let after = counted();
        let [interface, rules] = [0, 1].map(|at| after[at] - before[at]);
        assert_eq!([interface, rules], [frames; 2], "interface and nftables at {rate}");
        kill_process(Pid::from_child(&dump), Signal::INT).expect("interrupted");
        assert!(dump.wait().expect("its end").success());
        let listed = inside(&["tcpdump", "-n", "-r", &capture]).output().expect("run");
        let listed = String::from_utf8_lossy(&listed.stdout).lines().count();
        assert_eq!(listed as u64, frames, "the capture at {rate}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

/// A network namespace with a cable from va to vb, which goes when this is dropped.
struct Space<'a>(&'a str);

impl Space<'_> {
    fn new(name: &str) -> Space<'_> {
        let ip = |line: &str| {
            let status = Command::new("ip").args(line.split_whitespace()).status().expect("ip");
            assert!(status.success(), "ip {line}");
        };
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
}

impl Drop for Space<'_> {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", self.0]).status();
    }
}

#[test]
fn the_experiments_are_listed_and_what_cannot_be_measured_says_why() {
    let listed = output(&["paper"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("OSR-4 "));
    assert!(error(&["paper", "OSR-99"]).contains("there is no experiment 'OSR-99'"));
    assert!(error(&["paper", "OSR-7"]).contains("not measured here: "));
}

#[test]
fn what_cannot_be_is_said_in_a_line() {
    let said = error(&["compare", "a.json", "kernel"]);
    assert!(said.contains("two files of results, or names of devices"), "{said}");
    assert!(
        error(&["compare", "/no/such/a.json", "/no/such/b.json"]).contains("cannot read /no/such/a.json")
    );
    assert!(error(&["run", "cisco"]).contains("no device 'cisco'"));
    assert!(error(&["run", "kernel", "--sizes", "63"]).contains("63 bytes has no room"));
    assert!(error(&["transmit", "no-such-interface", "--to", "2:0:0:0:0:1"]).contains("no-such-interface"));
    assert!(error(&["transmit", "lo", "--to", "here"]).contains("--to here"));
    assert!(error(&["replay", "lo", "/no/such/file"]).contains("/no/such/file"));
}

/// What a router receives alone, and what it transmits, by this program's own counts and by what is heard of it; and entries of
/// a route cache, of a router that forwards.
#[test]
fn reception_and_transmission_alone_and_entries_of_a_cache_are_measured() {
    if !is_root() {
        return;
    }
    let folder = folder("alone");
    let result = folder.join("lab.json");
    let run = |ports: &str, device: &str, traffic: &str| {
        let devices = format!("[device.one.graph]\nmethod = \"PACKET\"\n{device}\n[traffic]\n{traffic}\n");
        let text = format!(
            "{ports}{devices}[[traffic.stream]]\nname = \"all\"\nsource_host.counted = {{ first = 0, count = 64 }}\n"
        );
        let file = description(&folder, &text);
        let output_file = result.to_string_lossy().into_owned();
        let args =
            ["run", "one", "--file", &file, "--sizes", "64", "--repetitions", "1", "--output", &output_file];
        let ended = output(&args);
        assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
        let text = std::fs::read_to_string(&result).expect("results");
        serde_json::from_str::<serde_json::Value>(&text).expect("valid")
    };
    // The last of the points, which is that of the highest load.
    let value = |json: &serde_json::Value, name: &str| {
        let all = json["series"].as_array().expect("series");
        let series =
            all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {json}"));
        let points = series["measurements"].as_array().expect("points");
        points.last().and_then(|one| one["repetitions"][0].as_f64()).expect("a number")
    };
    let alone = |does: &str| run("ports = 3\n", &format!("alone = \"{does}\""), "matrix.many_to_one = 2");
    let received = alone("receive");
    assert!(value(&received, "one/saturation forwarding rate") > 100.0);
    assert!(value(&received, "one/64 bytes/loss") < 1.0);
    assert!(value(&received, "one/NDR") > 0.0, "a search finds what it receives without loss");
    let sent = alone("transmit");
    assert!(value(&sent, "one/saturation forwarding rate") > 0.0);
    let cached = run("", "lookup = \"CachedIPLookup KEY flow\"", "matrix = \"unidirectional\"");
    let entries = |which: &str| value(&cached, &format!("one/entries of the route cache, {which}"));
    assert!(entries("active") >= 64.0 && entries("total") >= entries("active"));
    std::fs::remove_dir_all(folder).expect("removed");
}
