//! A router between two hosts, each a network namespace.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The program under test.
const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");

/// Tests run one after another: each loads the machine.
static ONE: Mutex<()> = Mutex::new(());

/// Hosts `a` (10.77.1.2, 2001:db8:1::2) and `b` (10.77.2.2, 2001:db8:2::2) with the router `r` between them, whose
/// interfaces are `ra` and `rb`. All goes with the value.
pub struct Net {
    prefix: String,
    _one: MutexGuard<'static, ()>,
}

impl Net {
    /// None, with a message, where namespaces cannot be made or `ping` is missing.
    pub fn new() -> Option<Net> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root to make network namespaces");
            return None;
        }
        if !Command::new("ping").arg("-V").output().is_ok_and(|o| o.status.success()) {
            eprintln!("skipped: needs ping (apt install iputils-ping)");
            return None;
        }
        let prefix = format!("up-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let net = Net { prefix, _one: one };
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
    fn link(&self, host: &str, n: u8) {
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
        let args = format!("netns exec {} ping -W 2 -i 0.05 {args}", self.name("a"));
        let output = Command::new("ip").args(args.split_whitespace()).output().expect("ip");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success() && text.contains(" 0% packet loss"), text.into_owned())
    }

    /// Makes the hosts known to the router, for one version of IP; until then the kernel forwards between them.
    pub fn meet(&self, up: &Up, ipv6: bool) {
        let (a, b, route) = match ipv6 {
            false => ("10.77.1.2", "10.77.2.2", "route4_0"),
            true => ("2001:db8:1::2", "2001:db8:2::2", "route6_0"),
        };
        wait_for("the hosts to be known", || {
            let known =
                |host: &str, device: &str| up.read(&format!("{route}.lookup {host}")).starts_with(device);
            self.ping(&format!("-c 1 {b}"));
            known(a, "ra ") && known(b, "rb ")
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

    /// `causeway ARGS` in the router's namespace.
    pub fn causeway(&self, args: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name("r"), CAUSEWAY]).args(args.split_whitespace());
        command
    }

    /// Starts the router between `ra` and `rb` and waits until it runs.
    pub fn up(&self) -> Up {
        let socket = std::env::temp_dir().join(format!("{}.sock", self.prefix));
        let args = format!("up ra rb --name {} --socket {}", self.prefix, socket.display());
        let child = self.causeway(&args).stderr(Stdio::inherit()).spawn().expect("causeway");
        let up = Up { child, socket };
        wait_for("the router to answer", || up.try_read("version").is_some());
        up
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
pub struct Up {
    pub child: Child,
    socket: PathBuf,
}

impl Up {
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

    /// Sends a signal and waits for the end; the exit status, if it was not the signal that ended it.
    pub fn end(&mut self, signal: rustix::process::Signal) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("kill");
        self.child.wait().expect("wait").code()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
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

fn run(program: &str, args: &str) -> String {
    let output = Command::new(program).args(args.split_whitespace()).output();
    let output = output.unwrap_or_else(|e| panic!("{program} {args}: {e}"));
    assert!(output.status.success(), "{program} {args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
