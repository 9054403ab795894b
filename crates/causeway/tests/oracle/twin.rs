//! A router in a namespace of its own, and the hosts around it in another.

use crate::cable::Cable;
use crate::control::Control;
use crate::plan::{self, PORTS};
use crate::space::{Space, Step};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The program under test.
const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");

/// Where `ip` is told no family: the addresses show it.
const ANY: &[&str] = &[];

/// A router and its hosts.
pub struct Twin {
    pub router: Space,
    hosts: Space,
    pub cables: Vec<Cable>,
}

impl Twin {
    /// A router that is the kernel alone, in its first state. None, with a message, where namespaces cannot be had.
    pub fn new(name: &str) -> Option<Twin> {
        let (router, hosts) = (Space::new(format!("{name}r"))?, Space::new(format!("{name}h"))?);
        hosts.set(&[("ipv6/conf/all/disable_ipv6", "1"), ("ipv6/conf/default/disable_ipv6", "1")]);
        let mut twin = Twin { router, hosts, cables: Vec::new() };
        twin.set(&plan::settings());
        twin.router.ip(
            ANY,
            &["link set lo up", "addr add 10.255.0.1/32 dev lo", "addr add 2001:db8:ff::1/128 dev lo"],
        );
        for number in 0..PORTS {
            twin.make_port(number);
            let cable = Cable::open(&twin.hosts, number);
            twin.cables.push(cable);
        }
        twin.set(&plan::settings());
        twin.apply(&plan::baseline());
        Some(twin)
    }

    fn make_port(&mut self, i: usize) {
        let (mac, router, hosts) = (plan::mac_text(plan::mac(i)), &self.router.name, &self.hosts.name);
        let made = Command::new("ip")
            .args(["link", "add", &format!("p{i}"), "address", &mac, "netns", router])
            .args(["type", "veth", "peer", "name", &format!("h{i}"), "netns", hosts])
            .status();
        assert!(made.is_ok_and(|status| status.success()), "a cable");
        self.hosts.ip(ANY, &[&format!("link set h{i} address 02:ee:00:00:00:0{i} mtu 1850 up")]);
        self.router.ip(ANY, &[&format!("link set p{i} up")]);
        self.hosts.shell(&format!("ethtool -K h{i} tx off tso off gso off gro on"));
        self.router.shell(&format!("ethtool -K p{i} tx off tso off gso off"));
    }

    fn set(&self, settings: &[(String, String)]) {
        let settings: Vec<_> = settings.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        self.router.set(&settings);
    }

    /// Takes steps one after the other.
    pub fn apply(&mut self, steps: &[Step]) {
        // Run together as long as they are of one family.
        let (mut family, mut lines) = (ANY, Vec::new());
        for step in steps {
            let next = match step {
                Step::Ip(line) => Some((ANY, line)),
                Step::Ip6(line) => Some((&["-6"][..], line)),
                _ => None,
            };
            if next.is_none_or(|(next, _)| next != family) {
                self.router.ip(family, &std::mem::take(&mut lines));
            }
            if let Some((next, line)) = next {
                family = next;
                lines.push(line.as_str());
            }
            match step {
                Step::Ip(_) | Step::Ip6(_) => {}
                Step::Set(key, value) => self.router.set(&[(key, value)]),
                Step::Shell(line) => drop(self.router.shell(line)),
                Step::Host(line) => self.hosts.ip(ANY, &[line]),
                Step::Recreate(number) => self.recreate(*number),
            }
        }
        self.router.ip(family, &lines);
    }

    fn recreate(&mut self, number: usize) {
        self.router.ip(ANY, &[&format!("link del p{number}")]);
        self.make_port(number);
        self.cables[number] = Cable::open(&self.hosts, number);
        let port = format!("/p{number}/");
        let own: Vec<_> = plan::settings().into_iter().filter(|(key, _)| key.contains(&port)).collect();
        self.set(&own);
    }
}

/// The program in a namespace.
pub struct Router {
    pub control: Control,
    process: Process,
}

/// A process that ends with the value, and its socket.
struct Process {
    child: Child,
    socket: PathBuf,
}

impl Router {
    /// Starts it with more options and waits until it answers.
    pub fn start(twin: &Twin, options: &[&str]) -> Router {
        Router::of(&twin.router, &[&["up", "p0", "p1", "p2", "p3"][..], options].concat())
    }

    /// Starts the program in a namespace and waits until it answers.
    pub fn of(space: &Space, args: &[&str]) -> Router {
        let mut process = Process::start(&space.name, args);
        let begin = Instant::now();
        loop {
            if let Some(control) = Control::connect(&process.socket) {
                return Router { control, process };
            }
            let ended = process.child.try_wait().is_ok_and(|status| status.is_some());
            assert!(!ended, "the router has ended: with ORACLE_LOG it says why");
            assert!(begin.elapsed() < Duration::from_secs(60), "the router does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.process.child.try_wait(), Ok(None))
    }
}

impl Process {
    fn start(name: &str, args: &[&str]) -> Process {
        let socket = std::env::temp_dir().join(format!("{name}.sock"));
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name, CAUSEWAY]);
        command.args(args).args(["--name", name, "--socket"]).arg(&socket);
        // What it says of each state is of use only to who looks for a fault.
        if std::env::var_os("ORACLE_LOG").is_none() {
            command.stderr(Stdio::null());
        }
        Process { child: command.spawn().expect("causeway"), socket }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        // It has ended already if it failed.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}
