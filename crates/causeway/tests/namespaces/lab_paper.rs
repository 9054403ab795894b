//! An experiment of the papers as it is measured: two routers of OSR-4, once, in trials of a tenth of a second.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const NAPI: &str = "napi";
const TWO_THREADS: &str = "interrupt, two threads";
/// SCHED_FIFO of sched(7).
const FIFO: u32 = 1;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("causeway-paper-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn paper(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.args(["lab", "paper"]).args(args);
    command
}

/// Policy and real-time priority of each worker of the router that `lab` runs, while it has two.
fn priorities(lab: &Child) -> Option<Vec<(u32, u32)>> {
    // Of a /proc/.../stat the numbers behind the name, which may have blanks (proc(5)).
    let stat = |folder: &Path| -> Option<(String, Vec<String>)> {
        let text = std::fs::read_to_string(folder.join("stat")).ok()?;
        let (before, after) = text.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        Some((name, after.split_whitespace().map(str::to_owned).collect()))
    };
    let children = std::fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let mut children =
        children.filter(|path| stat(path).is_some_and(|(_, it)| it[1] == lab.id().to_string()));
    children.find_map(|child| {
        let mut workers: Vec<(String, (u32, u32))> = Vec::new();
        for thread in std::fs::read_dir(child.join("task")).ok()?.flatten() {
            let Some((name, it)) = stat(&thread.path()) else { continue };
            // Fields 41 and 40, counted from 1 with the process's number and name.
            let number = |field: usize| it.get(field - 3).and_then(|word| word.parse().ok());
            if name.starts_with("worker-") {
                workers.push((name, (number(41)?, number(40)?)));
            }
        }
        workers.sort();
        (workers.len() == 2).then(|| workers.into_iter().map(|(_, it)| it).collect())
    })
}

/// All that is seen of a process until it ends, each once, and how it ended.
fn watched<T: PartialEq>(run: &mut Child, see: impl Fn(&Child) -> Option<T>) -> (Vec<T>, ExitStatus) {
    let mut seen = Vec::new();
    loop {
        if let Some(status) = run.try_wait().expect("its status") {
            return (seen, status);
        }
        seen.extend(see(run).filter(|it| !seen.contains(it)));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether anything was forwarded at any load.
fn forwarded(document: &serde_json::Value, name: &str) -> bool {
    let all = document["series"].as_array().expect("series");
    let found = all.iter().find(|one| one["name"] == name).expect("the series");
    let rates = found["measurements"].as_array().expect("measurements").iter();
    rates
        .flat_map(|one| one["repetitions"].as_array().expect("repetitions"))
        .any(|rate| rate.as_f64().expect("a number") > 0.0)
}

#[test]
fn receive_livelock_is_measured_with_the_priorities_that_make_it() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make network namespaces");
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return eprintln!("skipped: the experiment takes two processors");
    }
    let folder = folder("osr-4");
    let file = folder.join("OSR-4.json").to_string_lossy().into_owned();
    let args = ["OSR-4", "--repetitions", "1", "--only", NAPI, "--only", TWO_THREADS, "--output", &file];
    let (out, err) = (folder.join("out"), folder.join("err"));
    let to = |path: &Path| Stdio::from(std::fs::File::create(path).expect("a file"));
    let mut run = paper(&args).stdout(to(&out)).stderr(to(&err)).spawn().expect("started");
    let wanted = [(FIFO, 20), (FIFO, 10)];
    let (seen, status) = watched(&mut run, priorities);
    let said = [&out, &err].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    assert!(status.success(), "{}", said[1]);
    // It is seen without them for a moment, before they are set.
    assert!(seen.contains(&wanted.to_vec()), "{seen:?}");
    assert!(said[0].contains("receive livelock: "), "{}", said[0]);
    let text = std::fs::read_to_string(&file).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid");
    let loads = |name: &str| {
        let all = json["series"].as_array().expect("series");
        let found = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        found["measurements"].as_array().map(Vec::len)
    };
    for router in [NAPI, TWO_THREADS] {
        assert_eq!(loads(&format!("{router}/64 bytes/forwarding rate")), Some(10));
        assert_eq!(loads(&format!("in0/inside {router}, 64 bytes: polls of a packet")), Some(10));
        if json["run"]["settings"]["inside of the device"].is_null() {
            assert_eq!(loads(&format!("IP/inside {router}, 64 bytes: processor time")), Some(10));
        }
    }
    assert!(json["run"]["settings"]["ended early"].is_null() && !text.contains("disable-enable/"));
    let picture = std::fs::read_to_string(folder.join("OSR-4.svg")).expect("a picture");
    let is_drawn = |name: &str| picture.lines().any(|line| line == name);
    assert!(is_drawn("napi (the paper)"));
    // A router that on a busy machine forwarded nothing at any load has no curve.
    for router in [NAPI, TWO_THREADS] {
        let rates = format!("{router}/64 bytes/forwarding rate");
        assert_eq!(is_drawn(router), forwarded(&json, &rates), "{router}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_router_that_an_experiment_does_not_have_is_said() {
    let out = paper(&["OSR-4", "--only", "cisco"]).output().expect("run");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1));
    if std::thread::available_parallelism().map_or(1, usize::from) >= 2 {
        assert!(said.contains("it has no router 'cisco'; there are interrupt; moderated; napi; "), "{said}");
    }
}

/// The router of the modes of affinity, with its three threads on one processor, which every machine has.
#[test]
fn ports_with_threads_of_their_own_forward_to_each_other() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make network namespaces");
    }
    let folder = folder("modes");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let bed = "ports = 3\nmethod = \"packet\"\nhighest_fps = 2000.0\ntester_processors = [0]\ndevice_processors = [0]\n\
               [device.mode.graph]\nown_threads = [0, 2, 1]\nreception = [\"RECEPTION disable-enable\"]\n\
               detour_routes = 3\n[traffic]\nmatrix.custom = [[0, 0, 1], [0, 0, 1], [1, 1, 0]]\n\
               [[traffic.stream]]\nname = \"all\"\n";
    std::fs::write(file("bed.toml"), bed).expect("written");
    let mut run = Command::new(env!("CARGO_BIN_EXE_causeway"));
    let args = ["mode", "--file", &file("bed.toml"), "--sizes", "128", "--repetitions", "1"];
    let out =
        run.args(["lab", "run"]).args(args).args(["--output", &file("lab.json")]).output().expect("run");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = std::fs::read_to_string(file("lab.json")).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid");
    let all = json["series"].as_array().expect("series");
    for flow in ["t0 to t2", "t1 to t2", "t2 to t0", "t2 to t1"] {
        let name = format!("{flow}/mode, 128 bytes: flows");
        let found = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        let forwarded =
            |one: &serde_json::Value| one["repetitions"][0].as_f64().is_some_and(|rate| rate > 0.0);
        assert!(
            found["measurements"].as_array().is_some_and(|points| points.iter().any(forwarded)),
            "{found}"
        );
    }
    std::fs::remove_dir_all(folder).expect("removed");
}
