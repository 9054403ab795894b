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

pub(crate) fn output(args: &[&str]) -> Output {
    causeway(args).output().expect("the binary that cargo built starts")
}

pub(crate) fn error(args: &[&str]) -> String {
    let output = output(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn folder(name: &str) -> PathBuf {
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

pub(crate) fn is_root() -> bool {
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
    // So few frames leave by the ring, and it is cleaned of them.
    let cleaned = |one: &serde_json::Value| {
        let name = one["name"].as_str().unwrap_or_default();
        name.ends_with(", ring cleanings/inside causeway, 128 bytes: packets of a run")
            && one["measurements"].as_array().is_some_and(|all| all.len() == 10)
    };
    assert!(json["series"].as_array().expect("series").iter().any(cleaned), "in each trial of the curve");
    if json["run"]["settings"]["inside of the device"].is_null() {
        let idle = series("processor 0/inside causeway, 128 bytes: availability");
        assert_eq!(idle["measurements"].as_array().map(Vec::len), Some(10), "at each load of the curve");
        series("idle beyond what proc has/inside causeway, 128 bytes: processor time");
    } else {
        eprintln!("not seen inside: {}", json["run"]["settings"]["inside of the device"]);
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_experiments_are_listed_and_what_cannot_be_measured_says_why() {
    let listed = output(&["paper"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("OSR-4 "));
    assert!(error(&["paper", "OSR-99"]).contains("there is no experiment 'OSR-99'"));
    assert!(error(&["paper", "LUT-8"]).contains("not measured here: "));
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
