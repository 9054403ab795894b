//! `causeway lab cluster`: nodes that fail behind a router with BIRD, and what is left of it all.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn causeway(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.args(["lab", "cluster"]).args(args);
    command
}

fn is_possible() -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root to make network namespaces");
        return false;
    }
    let there = ["/usr/sbin/bird", "/sbin/bird", "/usr/bin/bird"].iter().any(|path| Path::new(path).exists());
    if !there {
        eprintln!("skipped: needs BIRD (bird2)");
    }
    there
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("causeway-cluster-{}-{name}", std::process::id())).join("cluster.json")
}

/// Namespaces and files of a cluster that a process made.
fn left_behind(process: u32) -> Vec<PathBuf> {
    let names = [format!("cwlcluster-{process}-"), format!("causeway-cluster-{process}")];
    let entries =
        ["/run/netns", "/run"].map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let found = entries.into_iter().flatten().map(|entry| entry.path());
    found
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            names.iter().any(|prefix| name.starts_with(prefix))
        })
        .collect()
}

/// The values of a series.
fn values(document: &serde_json::Value, name: &str) -> Vec<f64> {
    let series = document["series"].as_array().expect("series");
    let one = series.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("there is no {name}"));
    assert_eq!(one["measurements"][0]["source"], "measured");
    let values = one["measurements"][0]["repetitions"].as_array().expect("repetitions");
    values.iter().map(|value| value.as_f64().expect("a number")).collect()
}

#[test]
fn a_node_that_falls_silent_is_left_and_used_again() {
    if !is_possible() {
        return;
    }
    let file = file("silent");
    // With two nodes there are no others whose flows could move.
    let mut command = causeway(&["silent", "--nodes", "3", "--hashing", "resilient", "--output"]);
    let run = command.arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let process = run.id();
    let Output { status, stdout, stderr } = run.wait_with_output().expect("its end");
    let said = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(status.success(), "{said:?}");
    let document = serde_json::from_str(&std::fs::read_to_string(&file).expect("written")).expect("JSON");
    let of = |what: &str| values(&document, &format!("resilient/node hangs: {what}"));
    // Each hung once. All flows that went through it were moved, about a third of 512, so those before it were used again;
    // BFD took its time, in which they were lost. No other flow moved.
    let (moved, others) = (of("flows moved that were the node's"), of("flows moved of other nodes"));
    assert_eq!((moved.len(), others), (3, vec![0.0; 3]), "{said:?}");
    let (lost, others) = (of("frames lost of the node's flows"), of("frames lost of other flows"));
    for ((moved, lost), others) in moved.iter().zip(&lost).zip(&others) {
        assert!((100.0..240.0).contains(moved) && *lost > 100.0 && others < lost, "{said:?}");
    }
    let back = values(&document, "resilient/comes back: flows moved of other nodes");
    assert!(back.iter().all(|moved| *moved < 50.0), "flows in progress stay: {said:?}");
    assert!(["csv", "html"].iter().all(|kind| file.with_extension(kind).exists()));
    assert_eq!(left_behind(process), Vec::<PathBuf>::new());
    std::fs::remove_dir_all(file.parent().expect("a folder")).expect("removed");
}

#[test]
fn an_interrupt_ends_it_and_leaves_nothing() {
    if !is_possible() {
        return;
    }
    let file = file("interrupt");
    let mut command = causeway(&["silent", "--nodes", "2", "--hashing", "resilient", "--output"]);
    let mut run = command.arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let process = run.id();
    let lines = BufReader::new(run.stdout.take().expect("its output")).lines().map_while(Result::ok);
    // A node hung and the next line will be of the same node: it hangs.
    assert!(lines.into_iter().any(|line| line.starts_with("node hangs")), "a node hangs");
    assert!(left_behind(process).len() >= 6, "three namespaces, two nodes, a folder");
    kill_process(Pid::from_child(&run), Signal::INT).expect("interrupted");
    let ended = run.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("ended early") && said.contains("interrupted"), "{said}");
    assert_eq!(left_behind(process), Vec::<PathBuf>::new());
    let text = std::fs::read_to_string(&file).expect("what was found");
    assert!(text.contains("\"ended early\""));
    std::fs::remove_dir_all(file.parent().expect("a folder")).expect("removed");
}

#[test]
fn a_namespace_of_another_with_its_name_is_left_alone() {
    if !is_possible() {
        return;
    }
    let script =
        "ip netns add cwlcluster-$$-sink; exec \"$0\" lab cluster steady --output /nonexistent/cluster.json";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_causeway")]).stdout(Stdio::null()).stderr(Stdio::piped());
    let run = command.spawn().expect("started");
    let process = run.id();
    let ended = run.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.code() == Some(1) && said.contains("File exists"), "{said}");
    let name = format!("cwlcluster-{process}-sink");
    assert_eq!(left_behind(process), [Path::new("/run/netns").join(&name)]);
    assert!(Command::new("ip").args(["netns", "del", &name]).status().expect("ip").success());
}

#[test]
fn what_is_not_known_is_told_before_anything_is_made() {
    for (args, why) in [
        (&["sleep"][..], "there is no run 'sleep'; they are steady"),
        (&["--nodes", "9"], "2 to 4 nodes, not 9"),
        (&["--daemon", "quagga"], "there is no daemon 'quagga'"),
        (&["--hashing", "modulo"], "there is no hashing 'modulo'"),
    ] {
        let output = causeway(args).output().expect("the binary that cargo built starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(why), "{args:?}: {said}");
    }
}
