//! The binary as a process: its log, its control socket, the signals that end it, and what it leaves behind.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");
/// A graph that never stops by itself.
const IDLE: &str = "i :: Idle -> c :: Counter -> Discard;";

fn causeway(args: &[&str]) -> Command {
    let mut command = Command::new(CAUSEWAY);
    command.args(args).env("XDG_RUNTIME_DIR", std::env::temp_dir()).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !so() {
        assert!(Instant::now() < patience, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A running router with a name of its own.
struct Router {
    child: Child,
    name: String,
}

impl Router {
    /// Starts `run -e CONFIG` and waits until it answers.
    fn start(config: &str, stderr: impl Into<Stdio>) -> Router {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("control-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self::start_as(&name, config, stderr)
    }

    fn start_as(name: &str, config: &str, stderr: impl Into<Stdio>) -> Router {
        Self::start_with(&[], name, config, stderr)
    }

    /// The same with more arguments.
    fn start_with(more: &[&str], name: &str, config: &str, stderr: impl Into<Stdio>) -> Router {
        // The tests themselves may have been started so that they outlive a terminal.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", CAUSEWAY, "run", "--name", name, "-e", config]).args(more);
        command.env("XDG_RUNTIME_DIR", std::env::temp_dir()).stdin(Stdio::null());
        let child = command.stderr(stderr).spawn().expect("causeway");
        let router = Router { child, name: name.to_owned() };
        wait_for("the router to answer", || router.read("version").status.success());
        router
    }

    /// The files that are there while the router runs.
    fn files(&self) -> [PathBuf; 3] {
        let dir = match rustix::process::geteuid().is_root() {
            true => PathBuf::from("/run/causeway"),
            false => std::env::temp_dir().join("causeway"),
        };
        ["sock", "json", "counters"].map(|end| dir.join(format!("{}.{end}", self.name)))
    }

    fn read(&self, handler: &str) -> Output {
        let [socket, ..] = self.files();
        let socket = socket.display().to_string();
        causeway(&["read", "--socket", &socket, handler]).output().expect("causeway")
    }

    /// Where its first worker may run, as the kernel lists it.
    fn processors(&self) -> String {
        let list = |thread: PathBuf| {
            let name = std::fs::read_to_string(thread.join("comm")).ok()?;
            let status = std::fs::read_to_string(thread.join("status")).ok()?;
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            (name.trim() == "worker-0").then(|| list.trim().to_owned())
        };
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("its threads");
        threads.flatten().find_map(|thread| list(thread.path())).expect("a worker")
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.files()[0]).expect("the control socket")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("kill");
    }

    /// Waits for the end; the exit status.
    fn wait(&mut self) -> Option<i32> {
        let mut code = None;
        wait_for("the router to end", || {
            code = self.child.try_wait().expect("wait");
            code.is_some()
        });
        code.and_then(|status| status.code())
    }

    fn there(&self) -> [bool; 3] {
        self.files().map(|f| f.exists())
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.files().iter().for_each(|f| drop(std::fs::remove_file(f)));
    }
}

#[test]
fn each_line_of_the_log_has_its_time_and_answers_have_none() {
    let mut router = Router::start(IDLE, Stdio::piped());
    router.signal(Signal::TERM);
    assert_eq!(router.wait(), Some(0));
    let mut log = String::new();
    router.child.stderr.take().expect("a pipe").read_to_string(&mut log).expect("text");
    assert!(log.contains("control socket /"), "{log}");
    for line in log.lines() {
        let (time, said) = line.split_once(" causeway: ").unwrap_or_else(|| panic!("{line}"));
        let form: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert!(form == "0000-00-00T00:00:00.000Z" && !said.is_empty(), "{line}");
    }
    let wrong = causeway(&["run", "-e", "Nosuch -> Discard"]).output().expect("causeway");
    assert!(text(&wrong.stderr).starts_with("config:1:1: error"), "{}", text(&wrong.stderr));
    let wrong = causeway(&["read", "--socket", "/no/such/socket", "version"]).output().expect("causeway");
    assert!(text(&wrong.stderr).starts_with("causeway: no router answers"), "{}", text(&wrong.stderr));
}

#[test]
fn workers_are_pinned_unless_it_is_said_otherwise() {
    let start = |more: &[&str], name: &str| {
        let name = format!("{name}-{}", std::process::id());
        Router::start_with(more, &name, IDLE, Stdio::null())
    };
    let free = start(&["--processors", "any"], "free").processors();
    if free.parse::<usize>().is_ok() {
        return eprintln!("skipped: there is one processor, {free}, and no choice");
    }
    let pinned = start(&[], "pinned").processors();
    assert!(pinned.parse::<usize>().is_ok(), "on {pinned} of {free}");
    assert_eq!(start(&["--processors", "0"], "asked").processors(), "0");
}

#[test]
fn nobody_needs_to_read_what_it_says() {
    // It says more than a pipe holds.
    let talks = "InfiniteSource(LIMIT 20000) -> Print -> c :: Counter -> Discard;";
    let mut gone = Router::start(talks, Stdio::piped());
    let mut reader = BufReader::new(gone.child.stderr.take().expect("a pipe"));
    reader.read_line(&mut String::new()).expect("a line");
    drop(reader);
    wait_for("all packets", || text(&gone.read("c.count").stdout).trim() == "20000");
    gone.signal(Signal::TERM);
    assert_eq!(gone.wait(), Some(0));

    let shell =
        format!("exec {CAUSEWAY} run -e '{}' 2>&-", talks.replace("LIMIT 20000", "LIMIT 9, STOP true"));
    let closed =
        Command::new("sh").args(["-c", &shell]).env("XDG_RUNTIME_DIR", std::env::temp_dir()).status();
    assert!(closed.expect("a shell").success());
}

#[test]
fn each_of_three_signals_ends_it_and_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut router = Router::start(IDLE, Stdio::null());
        assert_eq!(router.there(), [true; 3]);
        router.signal(signal);
        assert_eq!(router.wait(), Some(0), "{signal:?}");
        assert_eq!(router.there(), [false; 3], "{signal:?}");
    }
}

/// A router whose worker is stuck: nobody reads what it prints.
fn stuck() -> Router {
    let router = Router::start("InfiniteSource -> c :: Counter -> Print -> Discard;", Stdio::piped());
    wait_for("the worker to be stuck", || !router.read("c.count").status.success());
    router
}

#[test]
fn a_signal_ends_it_although_a_worker_is_stuck() {
    let mut router = stuck();
    assert_eq!(text(&router.read("c.count").stderr), "causeway: worker 0 does not answer\n");
    assert!(router.read("list").status.success(), "what needs no worker is answered");
    router.signal(Signal::TERM);
    assert_eq!(router.wait(), Some(1));
    assert_eq!(router.there(), [false; 3]);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut router = stuck();
    router.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(500));
    router.signal(Signal::INT);
    // Not 1, as after waiting for the worker.
    assert_eq!(router.wait(), Some(128 + 2));
}

#[test]
fn signals_that_come_together_are_one() {
    let mut router = Router::start(IDLE, Stdio::null());
    for signal in [Signal::TERM, Signal::HUP, Signal::TERM] {
        router.signal(signal);
    }
    assert_eq!(router.wait(), Some(0));
    assert_eq!(router.there(), [false; 3]);
}

#[test]
fn half_a_configuration_is_not_put_in_place() {
    let router = Router::start(IDLE, Stdio::null());
    let config = "i :: Idle -> Discard; Idle -> q :: Queue -> Discard;";
    let whole = format!("WRITEDATA hotconfig {}\r\n{config}", config.len());
    let half = whole.len() - config.len() + "i :: Idle -> Discard;".len();
    let mut reply = String::new();
    let mut client = router.connect();
    client.write_all(&whole.as_bytes()[..half]).expect("sent");
    client.shutdown(Shutdown::Write).expect("shut down");
    client.read_to_string(&mut reply).expect("the router closes the connection");
    assert_eq!(reply, "Click::ControlSocket/1.3\r\n");
    assert!(text(&router.read("list").stdout).contains("\nc\n"), "the old graph runs");

    let mut client = router.connect();
    client.write_all(format!("{whole}QUIT\r\n").as_bytes()).expect("sent");
    client.read_to_string(&mut reply).expect("an answer");
    assert!(reply.contains("200 Write handler 'hotconfig' OK"), "{reply}");
    assert!(text(&router.read("list").stdout).contains("\nq\n"), "the new graph runs");
}

#[test]
fn a_name_belongs_to_one_router_while_it_lives() {
    let mut first = Router::start(IDLE, Stdio::null());
    let second = causeway(&["run", "--name", &first.name, "-e", IDLE]).output().expect("causeway");
    let refused = text(&second.stderr);
    let expected = format!("a router called '{}' runs already, as process {}", first.name, first.child.id());
    assert!(!second.status.success() && refused.contains(&expected), "{refused}");
    assert_eq!(first.there(), [true; 3], "it has lost nothing");

    first.signal(Signal::KILL);
    assert_eq!(first.wait(), None);
    let mut third = Router::start_as(&first.name, IDLE, Stdio::null());
    third.signal(Signal::TERM);
    assert_eq!((third.wait(), third.there()), (Some(0), [false; 3]));
}

#[test]
fn routers_that_start_at_once_get_a_name_each() {
    let start = || causeway(&["run", "-e", IDLE]).stderr(Stdio::piped()).spawn().expect("causeway");
    let mut routers: Vec<Child> = (0..6).map(|_| start()).collect();
    let mut sockets = HashSet::new();
    for router in &mut routers {
        let mut log = BufReader::new(router.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let line = log.find_map(|line| line.split_once("control socket ").map(|(_, rest)| rest.to_owned()));
        assert!(sockets.insert(line.expect("it starts")), "{sockets:?}");
    }
    for mut router in routers {
        kill_process(Pid::from_child(&router), Signal::TERM).expect("kill");
        assert!(router.wait().expect("wait").success());
    }
}

#[test]
fn what_a_killed_router_left_is_removed_by_the_next() {
    let mut killed = Router::start(IDLE, Stdio::null());
    killed.signal(Signal::KILL);
    killed.wait();
    let _next = Router::start(IDLE, Stdio::null());
    assert_eq!(killed.there(), [false; 3]);
}

#[test]
fn a_socket_takes_nobodys_place() {
    let file = std::env::temp_dir().join(format!("causeway-precious-{}", std::process::id()));
    std::fs::write(&file, "precious").expect("a file");
    let path = file.display().to_string();
    let name = format!("control-{}-precious", std::process::id());
    let output =
        causeway(&["run", "--name", &name, "--socket", &path, "-e", IDLE]).output().expect("causeway");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains(&format!("cannot listen at {path}")) && said.contains("stays"), "{said}");
    assert_eq!(std::fs::read(&file).expect("still there"), b"precious");
    std::fs::remove_file(&file).expect("removed");
}

#[test]
fn a_configuration_without_elements_is_not_run() {
    let output = causeway(&["run", "-e", ""]).output().expect("causeway");
    let warning = "warning: config: configuration has no elements, exiting\n";
    assert!(output.status.success() && text(&output.stderr) == warning, "{output:?}");

    let click = std::env::temp_dir().join(format!("causeway-click-{}", std::process::id()));
    std::fs::create_dir_all(&click).expect("a folder");
    let click = click.join("click");
    std::os::unix::fs::symlink(CAUSEWAY, &click).expect("a link");
    for (args, expected) in [(&["-e", ""][..], warning), (&["-w", "-e", ""], ""), (&["-q", "-e", ""], "")] {
        let output = Command::new(&click).args(args).output().expect("click");
        assert!(output.status.success() && text(&output.stderr) == expected, "{output:?}");
    }
    std::fs::remove_dir_all(click.parent().expect("a folder")).expect("removed");
}

#[test]
fn who_asks_for_what_is_not_there_is_told_where_to_look() {
    let router = Router::start(IDLE, Stdio::null());
    for (handler, what) in [("nosuch", "No handler named 'nosuch'"), ("x.count", "No element named 'x'")] {
        let said = text(&router.read(handler).stderr);
        assert!(said.contains(what) && said.contains("`causeway handlers` lists"), "{said}");
    }
    let said = text(&causeway(&["read", "--socket", "/no/such/router", "list"]).output().unwrap().stderr);
    assert!(said.contains("/no/such/router") && said.contains("say where theirs is"), "{said}");
}

#[test]
fn metrics_are_served_and_printed() {
    let wrong = causeway(&["run", "-e", IDLE, "--metrics", "9464"]).output().expect("causeway");
    assert!(text(&wrong.stderr).contains("'9464' for '--metrics <ADDRESS:PORT>'"), "{}", text(&wrong.stderr));
    let foreign = causeway(&["run", "-e", IDLE, "--metrics", "192.0.2.1:1"]).output().expect("causeway");
    assert!(
        text(&foreign.stderr).contains("cannot serve metrics at 192.0.2.1:1"),
        "{}",
        text(&foreign.stderr)
    );

    let config = "s :: InfiniteSource(LIMIT 7, STOP false) -> c :: Counter -> Discard;";
    let mut command = causeway(&["run", "--name", "metrics-of-a-test", "-e", config]);
    let child = command.args(["--metrics", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().expect("causeway");
    let mut router = Router { child, name: "metrics-of-a-test".to_owned() };
    let mut log = BufReader::new(router.child.stderr.take().expect("a pipe")).lines();
    let address = log
        .find_map(|l| Some(l.ok()?.split_once("metrics at http://")?.1.to_owned()))
        .expect("it says where");
    let address = address.trim_end_matches("/metrics");
    let get = || {
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        reply
    };
    let counted = "causeway_count_packets_total{element=\"c\",class=\"Counter\"} 7\n";
    wait_for("seven packets", || get().contains(counted));
    assert!(
        get().starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n")
    );

    let [socket, ..] = router.files();
    let socket = socket.display().to_string();
    let printed = |more: &[&str]| {
        let output = causeway(&["metrics", "--socket", &socket]).args(more).output().expect("causeway");
        text(&output.stdout)
    };
    assert!(printed(&[]).contains(counted));
    assert!(printed(&["--openmetrics"]).ends_with("# EOF\n"));
    router.signal(Signal::TERM);
    assert_eq!(router.wait(), Some(0));
}

#[test]
fn packets_are_captured_and_followed() {
    let config = r"s :: RatedSource(DATA \<4500 001c 0000 0000 4011 65cf 0a00 0001 0a00 0102 0009 0035 0008 0000>, RATE 200)
        -> m :: MarkIPHeader(0) -> c :: CheckIPHeader -> d :: Discard;";
    let router = Router::start(config, Stdio::null());
    let [socket, ..] = router.files();
    let socket = socket.display().to_string();
    let run = |args: &[&str]| causeway(args).args(["--socket", &socket]).output().expect("causeway");
    let edges = text(&run(&["read", "edges"]).stdout);
    assert!(edges.starts_with("s [0] -> [0] m\tpush\t"), "{edges}");

    let columns = || text(&run(&["read", "edges"]).stdout).lines().map(|l| l.split('\t').count()).max();
    assert_eq!(columns(), Some(3));
    assert!(run(&["write", "meter", "true"]).status.success());
    assert_eq!(columns(), Some(4), "with bytes");
    assert!(run(&["write", "meter", "false"]).status.success());
    let wrong = run(&["write", "meter", "on"]);
    assert!(text(&wrong.stderr).contains("'on': write true or false"), "{}", text(&wrong.stderr));

    let file = std::env::temp_dir().join(format!("control-{}.pcapng", std::process::id()));
    let done = run(&["capture", "m -> c", "-w", &file.display().to_string(), "-c", "5", "-l", "20"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stderr).ends_with("5 packets captured\n"), "{}", text(&done.stderr));
    let mut reader =
        causeway_netio::pcap::Reader::new(std::fs::File::open(&file).expect("a file")).expect("a capture");
    let mut packets = 0;
    while let Some(record) = reader.next_record().expect("a record") {
        assert_eq!((record.data.len(), record.wire_len, record.data[0]), (20, 28, 0x45));
        packets += 1;
    }
    assert_eq!((packets, reader.linktype()), (5, Some(causeway_netio::pcap::LINKTYPE_RAW)));
    std::fs::remove_file(&file).expect("removed");
    let piped = run(&["capture", "s", "-w", "-", "-c", "1"]);
    assert_eq!(piped.stdout[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let wrong = run(&["capture", "nobody", "-w", "/nosuch/file"]);
    assert!(
        text(&wrong.stderr).contains("no edge is called 'nobody'; `causeway read edges`"),
        "{}",
        text(&wrong.stderr)
    );
    let wrong = run(&["capture", "s", "-w", "/nosuch/file"]);
    assert!(text(&wrong.stderr).contains("cannot write /nosuch/file"), "{}", text(&wrong.stderr));

    let way = text(&run(&["trace", "--filter", "udp port 53"]).stdout);
    let lines: Vec<&str> = way.lines().map(|l| l.splitn(3, ' ').nth(2).unwrap_or_default()).collect();
    assert_eq!(
        lines[1..],
        [
            "m [0] -> [0] c  10.0.0.1 > 10.0.1.2 UDP 9 > 53, TTL 64, 28 bytes",
            "c [0] -> [0] d",
            "dropped by d :: Discard: discarded"
        ]
    );
    let none = run(&["trace", "--filter", "tcp", "--seconds", "0.1"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("no such packet came"), "{}", text(&none.stderr));
    let wrong = run(&["trace", "--filter", "udp prt 53"]);
    assert!(!wrong.status.success() && !text(&wrong.stderr).is_empty());
}

#[test]
fn a_running_graph_is_drawn_with_what_passes() {
    let config = "RatedSource(RATE 5000) -> seen :: Counter -> Discard; Idle -> Counter -> Discard;";
    let router = Router::start(config, Stdio::null());
    let draw = |format: &str| {
        let args = ["graph", "--live", "0.5", "--format", format, "--socket"];
        let output = causeway(&args).arg(&router.files()[0]).output().expect("causeway");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let svg = draw("svg");
    assert_eq!(svg.matches("class=\"edge r4\"").count(), 2, "{svg}");
    assert_eq!(svg.matches("class=\"edge r0\"").count(), 2, "{svg}");
    assert_eq!(svg.matches("/s</text>").count(), 2, "{svg}");
    assert_eq!(draw("dot").matches("/s\"];").count(), 2);
    let without = causeway(&["graph"]).output().expect("causeway");
    assert_eq!(without.status.code(), Some(2), "a file, a text or a running router is needed");
}
