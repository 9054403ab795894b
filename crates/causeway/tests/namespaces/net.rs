//! A router between two hosts, each a network namespace.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The program under test.
pub const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");

/// The folder of the examples.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf");

/// So many tests have hosts at a time: they wait for the kernel more than they load the machine, but more of them would be
/// late.
const PLACES: usize = 3;

/// Places that nobody has, and who waits for one.
static FREE: (Mutex<usize>, Condvar) = (Mutex::new(PLACES), Condvar::new());

/// One of the places, until it is dropped.
struct Place;

impl Place {
    fn take() -> Place {
        let (free, freed) = &FREE;
        let free = free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *FREE.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        FREE.1.notify_one();
    }
}

/// Hosts `a` (10.77.1.2, 2001:db8:1::2) and `b` (10.77.2.2, 2001:db8:2::2) with the router `r` between them, whose
/// interfaces are `ra` and `rb`. All goes with the value.
pub struct Net {
    prefix: String,
    _place: Place,
}

impl Net {
    /// None, with a message, where namespaces cannot be made or `ping` is missing.
    pub fn new() -> Option<Net> {
        let place = Place::take();
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root to make network namespaces");
            return None;
        }
        if !Command::new("ping").arg("-V").output().is_ok_and(|o| o.status.success()) {
            eprintln!("skipped: needs ping (apt install iputils-ping)");
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let net = Net { prefix: format!("up-{}-{number}", std::process::id()), _place: place };
        for name in ["a", "r", "b"] {
            run("ip", &format!("netns add {}", net.name(name)));
            net.ip(name, "link set lo up");
        }
        for setting in ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"] {
            net.inside("r", "sysctl", &format!("-qw {setting}"));
        }
        for (host, n) in [("a", 1), ("b", 2)] {
            net.link(host, n);
        }
        Some(net)
    }

    /// Connects a host with the router.
    pub fn link(&self, host: &str, n: u8) {
        let (there, here) = (format!("{host}0"), format!("r{host}"));
        let (far, near) = (self.name(host), self.name("r"));
        run("ip", &format!("link add {there} netns {far} type veth peer name {here} netns {near}"));
        for (space, device, end) in [(host, &there, 2), ("r", &here, 1)] {
            self.ip(space, &format!("addr add 10.77.{n}.{end}/24 dev {device}"));
            self.ip(space, &format!("addr add 2001:db8:{n}::{end}/64 dev {device} nodad"));
            self.ip(space, &format!("link set {device} up"));
        }
        // Native XDP on the router's end needs whole packets from the host and NAPI there for what comes back.
        self.inside(host, "ethtool", &format!("-K {there} tx off tso off gso off gro on"));
        self.ip(host, &format!("route add default via 10.77.{n}.1"));
        self.ip(host, &format!("-6 route add default via 2001:db8:{n}::1"));
    }

    /// Connects the router with host `b` by `n` more cables, on which nothing is sent; the names of the router's ends.
    pub fn cables(&self, n: usize) -> Vec<String> {
        let (far, near) = (self.name("b"), self.name("r"));
        let cable = |i: usize| {
            run("ip", &format!("link add x{i} netns {near} type veth peer name y{i} netns {far}"));
            self.ip("b", &format!("link set y{i} up"));
            self.ip("r", &format!("link set x{i} up"));
            format!("x{i}")
        };
        (0..n).map(cable).collect()
    }

    /// The name of a namespace.
    pub fn name(&self, space: &str) -> String {
        format!("{}{space}", self.prefix)
    }

    /// Runs `ip ARGS` in a namespace; it must succeed.
    pub fn ip(&self, space: &str, args: &str) -> String {
        run("ip", &format!("-n {} {args}", self.name(space)))
    }

    /// Runs a program in a namespace; it must succeed.
    pub fn inside(&self, space: &str, program: &str, args: &str) -> String {
        run("ip", &format!("netns exec {} {program} {args}", self.name(space)))
    }

    /// Pings from host `a`; whether all was answered, and what was printed.
    pub fn ping(&self, args: &str) -> (bool, String) {
        self.ping_from("a", args)
    }

    /// Pings from a host; whether all was answered, and what was printed.
    pub fn ping_from(&self, host: &str, args: &str) -> (bool, String) {
        // Once something was answered, it waits for the last answer as long as between two requests, whatever `-W` says.
        let args = format!("netns exec {} ping -i 0.1 -W 2 {args}", self.name(host));
        let output = Command::new("ip").args(args.split_whitespace()).output().expect("ip");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success() && text.contains(" 0% packet loss"), text.into_owned())
    }

    /// Waits until the router forwards between the hosts, for one version of IP: it knows them, and has the right to. Until
    /// then the kernel does.
    pub fn meet(&self, up: &Router, ipv6: bool) {
        let b = if ipv6 { "2001:db8:2::2" } else { "10.77.2.2" };
        wait_for("the router to forward", || {
            let before = up.number("forward.count");
            self.ping(&format!("-c 1 {b}")).0 && up.number("forward.count") == before + 2
        });
    }

    /// Starts a thread of this program in a namespace.
    pub fn spawn<T: Send + 'static>(
        &self,
        space: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::thread::JoinHandle<T> {
        let file = File::open(format!("/run/netns/{}", self.name(space))).expect("namespace");
        std::thread::spawn(move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("setns");
            work()
        })
    }

    /// The Ethernet address of a device.
    pub fn mac(&self, space: &str, device: &str) -> String {
        self.inside(space, "cat", &format!("/sys/class/net/{device}/address")).trim().to_owned()
    }

    /// Packets that a device has sent.
    pub fn sent(&self, space: &str, device: &str) -> u64 {
        let file = format!("/sys/class/net/{device}/statistics/tx_packets");
        self.inside(space, "cat", &file).trim().parse().expect("a number")
    }

    /// `causeway ARGS` in the router's namespace and the folder of the examples.
    pub fn causeway(&self, args: &str) -> Command {
        self.causeway_in("r", args)
    }

    /// `causeway ARGS` in a namespace, in the folder of the examples.
    pub fn causeway_in(&self, space: &str, args: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(space), CAUSEWAY]).args(args.split_whitespace());
        command.current_dir(EXAMPLES);
        command
    }

    /// Starts the router between `ra` and `rb`, in their drivers, and waits until it runs.
    pub fn up(&self) -> Router {
        self.start("r", "up ra rb --attach xdp")
    }

    /// Starts `causeway ARGS` in a namespace and waits until it runs.
    pub fn start(&self, space: &str, args: &str) -> Router {
        self.start_with(space, args, Stdio::inherit())
    }

    /// As [`Net::start`], with another standard error.
    pub fn start_with(&self, space: &str, args: &str, stderr: impl Into<Stdio>) -> Router {
        self.start_by(space, "", args, stderr)
    }

    /// As [`Net::start_with`], by way of another program that ends in running a command.
    pub fn start_by(&self, space: &str, by: &str, args: &str, stderr: impl Into<Stdio>) -> Router {
        let socket = std::env::temp_dir().join(format!("{}.sock", self.name(space)));
        self.start_at(space, &socket, by, args, stderr)
    }

    /// As [`Net::start_by`], with another control socket.
    pub fn start_at(
        &self,
        space: &str,
        socket: &Path,
        by: &str,
        args: &str,
        stderr: impl Into<Stdio>,
    ) -> Router {
        let (name, socket) = (self.name(space), socket.to_owned());
        let args = format!("{by} {CAUSEWAY} {args} --name {name} --socket {}", socket.display());
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &name]).args(args.split_whitespace()).current_dir(EXAMPLES);
        let child = command.stderr(stderr).spawn().expect("causeway");
        let router = Router { child, name, socket };
        wait_for("the router to answer", || router.try_read("version").is_some());
        router
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in ["a", "r", "b"] {
            // Those that were not made yet need no removal.
            let _ =
                Command::new("ip").args(["netns", "del", &self.name(name)]).stderr(Stdio::null()).status();
        }
    }
}

/// A running router.
pub struct Router {
    pub child: Child,
    name: String,
    pub socket: PathBuf,
}

impl Router {
    fn try_read(&self, handler: &str) -> Option<String> {
        let socket = self.socket.display().to_string();
        let words = handler.split_whitespace();
        let output = Command::new(CAUSEWAY).args(["read", "--socket", &socket]).args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// What a handler says.
    pub fn read(&self, handler: &str) -> String {
        self.try_read(handler).unwrap_or_else(|| panic!("{handler} cannot be read"))
    }

    /// A handler's number.
    pub fn number(&self, handler: &str) -> u64 {
        self.read(handler).parse().unwrap_or_else(|_| panic!("{handler} is no number"))
    }

    /// The number after `name` in what a handler of several lines says.
    pub fn line(&self, handler: &str, name: &str) -> u64 {
        let text = self.read(handler);
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
    }

    /// Writes a handler; what was printed if that failed.
    pub fn write(&self, handler: &str, value: &str) -> Result<(), String> {
        let mut command = Command::new(CAUSEWAY);
        command.arg("write").arg("--socket").arg(&self.socket).args([handler, "-"]);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("causeway");
        child.stdin.take().expect("a pipe").write_all(value.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("causeway");
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// All counters: worker, element and name, and the value.
    pub fn counters(&self) -> Vec<([String; 3], u64)> {
        let counter = |line: &str| {
            let mut words = line.split('\t').map(str::to_owned);
            let key = [words.next()?, words.next()?, words.next()?];
            Some((key, words.next()?.parse().ok()?))
        };
        self.read("counters").lines().map(|l| counter(l).unwrap_or_else(|| panic!("{l}"))).collect()
    }

    /// The sum of all counters whose `element` (any if empty) and name are these.
    pub fn counted(&self, element: &str, name: impl Fn(&str) -> bool) -> u64 {
        let wanted = |key: &[String; 3]| (element.is_empty() || key[1] == element) && name(&key[2]);
        self.counters().iter().filter(|(key, _)| wanted(key)).map(|(_, n)| n).sum()
    }

    /// The shared file of the counters, which can be read when the router is gone.
    pub fn shared_counters(&self) -> SharedCounters {
        SharedCounters(File::open(format!("/run/causeway/{}.counters", self.name)).expect("the counters"))
    }

    /// Stops the process, or lets it go on.
    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).expect("kill");
    }

    /// Sends a signal and waits for the end; the exit status, if it was not the signal that ended it.
    pub fn end(&mut self, signal: rustix::process::Signal) -> Option<i32> {
        self.signal(signal);
        self.child.wait().expect("wait").code()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// The shared file of a router's counters.
pub struct SharedCounters(File);

impl SharedCounters {
    /// The value of a counter of worker 0.
    pub fn get(&mut self, element: &str, name: &str) -> u64 {
        let mut bytes = Vec::new();
        self.0.seek(SeekFrom::Start(0)).expect("a file");
        self.0.read_to_end(&mut bytes).expect("readable");
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let directory = &bytes[64 + 8 * word(16) as usize..][..word(24) as usize];
        let directory = std::str::from_utf8(directory).expect("a text");
        assert_eq!(word(8), 2, "of this version");
        let key = format!("\t0\t{element}\t{name}\tpackets");
        let line = directory.lines().find_map(|l| l.strip_suffix(&key));
        let index: usize =
            line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{key} in {directory}"));
        word(64 + 8 * index)
    }
}

/// Waits until something is so; fails if it is not after a long time.
pub fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !so() {
        assert!(Instant::now() < patience, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What `bind` opens at a port of a host. A program that another test is about to start still has, for a moment, the socket that
/// an earlier flow had there.
pub fn open_port<T>(bind: impl Fn() -> std::io::Result<T>) -> T {
    let mut socket = None;
    wait_for("a port", || {
        socket = bind().ok();
        socket.is_some()
    });
    socket.expect("bound")
}

fn run(program: &str, args: &str) -> String {
    let output = Command::new(program).args(args.split_whitespace()).output();
    let output = output.unwrap_or_else(|e| panic!("{program} {args}: {e}"));
    assert!(output.status.success(), "{program} {args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
