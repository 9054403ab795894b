//! A router with four ports in a network namespace, and a host behind each in a namespace of its own.
#![allow(dead_code)] // Each test file uses its own part.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace, removed with all that is in it.
pub struct Namespace(String);

impl Namespace {
    fn new(tag: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root to make network namespaces");
            return None;
        }
        let name = format!("nicxdp-{tag}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let made = Command::new("ip").args(["netns", "add", &name]).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: needs `ip netns` (iproute2) and the right to use it");
            return None;
        }
        Some(Namespace(name))
    }

    /// Runs `ip ARGS` inside and returns what it printed.
    pub fn ip(&self, args: &str) -> String {
        let output = Command::new("ip").args(["-n", &self.0]).args(args.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "ip {args}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A command to be run inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]);
        command
    }

    /// Runs `f` on a thread that is inside.
    pub fn enter<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        let file = File::open(format!("/run/netns/{}", self.0)).unwrap();
        std::thread::scope(|scope| {
            let inside = scope.spawn(move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                f()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// Ports `p0` to `p3` with the addresses of the corpus's table, and behind each a host with the next hop's on `h`.
pub struct Testbed {
    pub router: Namespace,
    pub hosts: Vec<Namespace>,
}

/// The router's interfaces in the order of its cards.
pub const PORTS: [&str; 4] = ["p0", "p1", "p2", "p3"];

impl Testbed {
    /// None, with a message, where namespaces cannot be made.
    pub fn new() -> Option<Self> {
        let router = Namespace::new("router")?;
        let hosts: Vec<Namespace> = (0..4).map_while(|_| Namespace::new("host")).collect();
        for (n, host) in hosts.iter().enumerate() {
            host.ip(&format!(
                "link add name h address 02:00:00:00:01:0{n} type veth peer name p{n} address 02:00:00:00:00:0{n} netns {}",
                router.0
            ));
            // Nothing of the kernel's own among the frames.
            for what in ["addrgenmode none", "up"] {
                host.ip(&format!("link set dev h {what}"));
                router.ip(&format!("link set dev p{n} {what}"));
            }
        }
        Some(Testbed { router, hosts })
    }

    /// The ports' names as a router takes them.
    pub fn ports() -> Vec<String> {
        PORTS.map(str::to_owned).to_vec()
    }
}
