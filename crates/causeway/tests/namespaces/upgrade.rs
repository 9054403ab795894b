//! A new process takes the place of a router under a flow: nothing is lost, whatever becomes of the new one.

use crate::driver::TCX;
use crate::flow::Flow;
use crate::log::Log;
use crate::net::{CAUSEWAY, Net, Router, open_port, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// How long nothing may come over a connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// How routers are started.
pub const XDP: &str = "ra rb --attach xdp";
const DRIVER: &str = "ra rb --attach xdp --driver";

/// A router that processes hand on; the last one goes with the value.
pub struct Place<'a> {
    pub net: &'a Net,
    pub up: Router,
    pub log: Log,
}

impl<'a> Place<'a> {
    /// Starts the first process and waits until it forwards.
    pub fn start(net: &'a Net, arguments: &str) -> Place<'a> {
        let (up, log) = Log::up(net, "r", arguments);
        net.meet(&up, false);
        Place { net, up, log }
    }

    pub fn file(&self, end: &str) -> PathBuf {
        let file = |dir: &str| PathBuf::from(dir).join(format!("{}.{end}", self.net.name("r")));
        let (own, service) = (file("/run/causeway"), file("/run/causeway/up"));
        if service.exists() { service } else { own }
    }

    /// The process that has the place.
    pub fn pid(&self) -> i32 {
        let text = std::fs::read_to_string(self.file("json")).expect("a record");
        let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        i32::try_from(record["pid"].as_i64().expect("a number")).expect("a process")
    }

    pub fn upgrade(&self, more: &str) -> Output {
        self.net
            .causeway(&format!("upgrade --name {} {more}", self.net.name("r")))
            .output()
            .expect("causeway")
    }

    /// Has a new process take over.
    pub fn must_upgrade(&self, more: &str) {
        let before = self.pid();
        let output = self.upgrade(more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_ne!(self.pid(), before);
    }

    /// Waits until the process that has the place forwards what comes.
    pub fn wait_until_it_forwards(&self, flow: &Flow) {
        wait_for("the router to forward", || {
            let before = self.up.number("forward.count");
            flow.wait(50);
            self.up.number("forward.count") > before + 40
        });
    }

    /// Ends the process that has the place, and waits for that.
    pub fn end(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid()).expect("a process");
        kill_process(pid, signal).expect("kill");
        let process = format!("/proc/{}/stat", pid.as_raw_nonzero());
        let is_there = || std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z "));
        wait_for("the end", || !is_there());
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // It has ended already unless the test failed, or ended before.
        if self.file("json").exists() {
            let _ = Pid::from_raw(self.pid()).map(|pid| kill_process(pid, Signal::KILL));
        }
    }
}

/// Writes down what becomes of the router's links.
struct Links(Child);

impl Links {
    fn watch(net: &Net) -> Links {
        let mut command = Command::new("ip");
        command.args(["-n", &net.name("r"), "-o", "monitor", "link"]).stdout(Stdio::piped());
        Links(command.spawn().expect("ip"))
    }

    /// No port was down or without carrier.
    fn assert_all_up(mut self) {
        self.0.kill().expect("kill");
        let mut text = String::new();
        self.0.stdout.take().expect("a pipe").read_to_string(&mut text).expect("a text");
        let _ = self.0.wait();
        let ports = text.lines().filter(|line| [": ra@", ": rb@"].iter().any(|port| line.contains(port)));
        let is_down = |line: &&str| !line.contains("LOWER_UP") || line.contains("Deleted");
        assert_eq!(ports.filter(is_down).collect::<Vec<_>>(), [""; 0], "{text}");
    }
}

/// A TCP connection between the hosts, on which octets are echoed.
struct Connection(TcpStream);

impl Connection {
    fn open(net: &Net) -> Connection {
        let (bound, listens) = std::sync::mpsc::channel();
        net.spawn("b", move || {
            let listener = open_port(|| TcpListener::bind("10.77.2.2:5001"));
            bound.send(()).expect("the test waits");
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut byte = [0];
            while stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_ok() {}
        });
        listens.recv().expect("the echo");
        let stream = net.spawn("a", || TcpStream::connect("10.77.2.2:5001").expect("a connection"));
        let stream = stream.join().expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
        Connection(stream)
    }

    fn assert_alive(&mut self, byte: u8) {
        let mut echo = [0];
        self.0.write_all(&[byte]).and_then(|()| self.0.read_exact(&mut echo)).expect("it lives");
        assert_eq!(echo, [byte]);
    }
}

/// Has `n` processes take over from one another under a flow.
fn upgrade_under_load(n: usize, arguments: &str) {
    let Some(net) = Net::new() else { return };
    let place = Place::start(&net, arguments);
    let (links, mut connection) = (Links::watch(&net), Connection::open(&net));
    let flow = Flow::start(&net);
    for round in 0..n {
        place.wait_until_it_forwards(&flow);
        connection.assert_alive(round as u8);
        place.must_upgrade("");
    }
    place.wait_until_it_forwards(&flow);
    connection.assert_alive(0);
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{n} upgrades: {account:?}\n{}", place.log.text());
    links.assert_all_up();
    eprintln!("{n} upgrades of {arguments}: nothing lost, at most {:?} without a packet", account.silence);
    place.end(Signal::TERM);
}

#[test]
fn upgrades_lose_nothing() {
    upgrade_under_load(3, XDP);
}

#[test]
fn upgrades_in_the_driver_lose_nothing() {
    upgrade_under_load(3, DRIVER);
}

#[test]
fn upgrades_at_tcx_lose_nothing() {
    upgrade_under_load(3, TCX);
}

#[test]
fn upgrades_with_two_service_classes_lose_nothing() {
    upgrade_under_load(2, &format!("{DRIVER} --high tos,0xb8/0xfc --link-speed rb=1Gbps"));
}

#[test]
#[ignore = "takes minutes: make upgrades"]
fn a_hundred_upgrades_lose_nothing() {
    upgrade_under_load(100, XDP);
}

#[test]
#[ignore = "takes minutes: make upgrades"]
fn a_hundred_upgrades_in_the_driver_lose_nothing() {
    upgrade_under_load(100, DRIVER);
}

#[test]
#[ignore = "takes minutes: make upgrades"]
fn a_hundred_upgrades_at_tcx_lose_nothing() {
    upgrade_under_load(100, TCX);
}

/// The new process under strace(1), which sends it a signal when its first thread makes a system call for the nth time.
pub fn start_until(net: &Net, arguments: &str, step: (&str, u32), signal: &str) -> Router {
    let (call, nth) = step;
    let by =
        format!("strace -f -qq -o /dev/null -e trace={call} -e inject={call}:signal={signal}:when={nth}");
    net.start_by("r", &by, &format!("up {arguments} --take-over"), Stdio::null())
}

/// Kills the process under strace.
pub fn kill_traced(new: &Router) {
    let strace = new.child.id();
    let children =
        std::fs::read_to_string(format!("/proc/{strace}/task/{strace}/children")).expect("its children");
    for pid in children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
        kill_process(pid, Signal::KILL).expect("kill");
    }
}

/// What the new process does when it is at each step, and whether it has asked for the place by then.
const STEPS: [(&str, u32); 7] = [
    // It says hello, waits for the answer, says that it is ready, waits for the links.
    ("sendmsg", 1),
    ("recvmsg", 1),
    ("sendmsg", 2),
    ("recvmsg", 2),
    // It has opened the ports, writes the record, says that it has taken over.
    ("rename", 1),
    ("rename", 2),
    ("sendmsg", 3),
];

pub fn has_strace() -> bool {
    let has = Command::new("strace").arg("-V").output().is_ok();
    if !has {
        eprintln!("skipped: needs strace, which tampers with system calls");
    }
    has
}

/// The old process goes on when the new one comes to its end at each of these steps.
fn old_goes_on(signal: &str, steps: &[(&str, u32)], arguments: &str) {
    let Some(net) = Net::new() else { return };
    if !has_strace() {
        return;
    }
    let place = Place::start(&net, arguments);
    let (links, flow, pid) = (Links::watch(&net), Flow::start(&net), place.pid());
    for &step in steps {
        place.wait_until_it_forwards(&flow);
        let told = place.log.count("upgrade", "does not take over");
        let mut new = start_until(&net, arguments, step, signal);
        if signal == "STOP" && matches!(step, ("sendmsg" | "recvmsg", 1)) {
            // It is given a minute to prepare, in which the old one forwards.
            place.log.wait(told, "upgrade", "is to take over");
            place.wait_until_it_forwards(&flow);
            kill_traced(&new);
        }
        if step != ("sendmsg", 1) {
            place.log.wait(told, "upgrade", "does not take over");
        }
        let _ = new.child.wait();
        place.wait_until_it_forwards(&flow);
        assert_eq!(place.pid(), pid, "{step:?}");
        // The value would remove the socket, which is the other's.
        std::mem::forget(new);
    }
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}\n{}", place.log.text());
    links.assert_all_up();
    // Another may still take over.
    place.must_upgrade("");
    place.end(Signal::TERM);
}

#[test]
fn the_old_router_goes_on_when_the_new_one_is_killed() {
    old_goes_on("KILL", &STEPS, XDP);
}

#[test]
fn the_old_router_goes_on_when_the_new_one_is_stopped() {
    old_goes_on("STOP", &STEPS[4..5], DRIVER);
    old_goes_on("STOP", &STEPS[4..5], TCX);
}

#[test]
#[ignore = "takes minutes: make upgrades"]
fn the_old_router_goes_on_whenever_the_new_one_is_stopped() {
    old_goes_on("STOP", &STEPS[..6], XDP);
    old_goes_on("KILL", &STEPS, DRIVER);
}

#[test]
fn a_process_that_does_not_fit_is_refused() {
    let Some(net) = Net::new() else { return };
    net.cables(1);
    let place = Place::start(&net, XDP);
    let (flow, pid) = (Flow::start(&net), place.pid());
    for (arguments, status, why) in [
        ("-- ra rb --attach xdp --bogus", 1, "--bogus"),
        ("-- ra x0 --attach xdp", 1, "its ports are ra, x0, and not ra, rb"),
        ("-- ra rb no0 --attach xdp", 1, "no0"),
        ("-- ra rb --attach xdp --frames 10", 1, "--frames 10 is too few"),
        ("-- ra rb --attach xdp --name other", 1, "another router's"),
        ("-- ra rb --attach xdp --processors 999", 1, "no worker can be pinned to 999"),
    ] {
        let output = place.upgrade(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(status) && text.contains(why), "{arguments}: {output:?}");
    }
    // The router is root no more, as this test is.
    for (version, why) in [(99, "version 99"), (1, "another user")] {
        let mut socket = UnixStream::connect(place.file("upgrade")).expect("a socket");
        let hello = serde_json::json!({ "hello": { "version": version, "ports": [["ra", 1], ["rb", 2]] } });
        socket.write_all(format!("{hello}\n").as_bytes()).expect("sent");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains("refused") && answer.contains(why), "{answer}");
    }
    assert_eq!(place.log.count("upgrade", "is to take over"), 0, "none comes so far");
    place.wait_until_it_forwards(&flow);
    assert_eq!(place.pid(), pid);
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
    place.end(Signal::TERM);
}

#[test]
fn what_the_old_router_changed_is_undone_by_the_new_one() {
    let Some(net) = Net::new() else { return };
    net.ip("r", "route add 10.78.0.0/24 via 10.77.2.2");
    let offloads = || ["ra", "rb"].map(|port| net.inside("r", "ethtool", &format!("-k {port}")));
    for port in ["ra", "rb"] {
        net.inside("r", "ethtool", &format!("-K {port} rxvlan on"));
    }
    let before = offloads();
    let is_kept = || net.ip("r", "neigh show").contains("managed");
    for signal in [Signal::TERM, Signal::KILL] {
        let place = Place::start(&net, XDP);
        wait_for("the gateway to be kept resolved", is_kept);
        assert_ne!(offloads(), before);
        place.must_upgrade("");
        assert!(is_kept() && offloads() != before, "it goes on as it was");
        // The new one looks four times a second what is its own by now.
        std::thread::sleep(Duration::from_millis(500));
        let record = std::fs::read_to_string(place.file("json")).expect("a record");
        assert!(record.contains("10.77.2.2") && record.contains("rxvlan"), "{record}");
        let files = ["json", "counters", "upgrade"].map(|end| place.file(end));
        place.end(signal);
        if signal == Signal::KILL {
            let _ = net.causeway("doctor").output().expect("causeway");
        }
        assert_eq!(offloads(), before, "{signal:?}");
        assert!(!is_kept(), "{}", net.ip("r", "neigh show"));
        let left: Vec<_> = files.iter().filter(|file| file.exists()).collect();
        assert!(left.is_empty(), "{signal:?}: {left:?}");
        let links = net.ip("r", "link show");
        assert!(!links.contains("xdp") && !links.contains("punt"), "{links}");
    }
}

#[test]
fn ports_may_be_elsewhere_and_the_socket_where_the_router_may_not_look() {
    let Some(net) = Net::new() else { return };
    let folder = std::env::temp_dir().join(net.name("roots"));
    std::fs::DirBuilder::new().mode(0o700).create(&folder).expect("a folder");
    let socket = folder.join("r.sock");
    let (up, log) = Log::up_at(&net, "r", &socket, XDP);
    let place = Place { net: &net, up, log };
    let has_xdp = || net.ip("r", "link show").contains("xdp");
    assert!(has_xdp());
    place.must_upgrade(&format!("-- {TCX}"));
    // Else senders would go on cutting their packets.
    wait_for("the programs at XDP to go", || !has_xdp());
    place.must_upgrade(&format!("-- {XDP}"));
    assert!(has_xdp() && place.up.read("forward.class") == "KernelForward");
    place.end(Signal::TERM);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn clients_find_the_router_whoever_has_the_place() {
    let Some(net) = Net::new() else { return };
    let place = Place::start(&net, "ra rb --attach xdp --metrics 127.0.0.1:9464");
    let done = std::sync::atomic::AtomicBool::new(false);
    let get = || {
        let mut stream = net.spawn("r", || TcpStream::connect("127.0.0.1:9464")).join().expect("a thread")?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text)
    };
    let socket = place.up.socket.display().to_string();
    std::thread::scope(|scope| {
        // Between two processes they wait.
        let reader = scope.spawn(|| {
            let mut answers = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let read = Command::new(CAUSEWAY).args(["read", "--socket", &socket, "version"]).output();
                let read = read.expect("causeway");
                let text = String::from_utf8_lossy(&read.stderr);
                // Those that were connected already are not kept.
                assert!(read.status.success() || text.contains("closed the connection"), "{text}");
                answers += u32::from(read.status.success());
            }
            answers
        });
        for _ in 0..3 {
            place.must_upgrade("");
            assert!(get().expect("metrics").contains("causeway_"));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(reader.join().expect("the reader") > 3);
    });
    place.end(Signal::TERM);
}
