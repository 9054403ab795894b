//! Network namespaces, and what is run in them.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// What is done to a router, the same to both twins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `ip` with these words, in the router's namespace; IPv6 has to be said where no address shows it.
    Ip(String),
    /// The same of IPv6.
    Ip6(String),
    /// A setting below /proc/sys/net, and its value.
    Set(String, String),
    /// A shell's line, in the router's namespace.
    Shell(String),
    /// `ip` with these words, in the namespace of the hosts.
    Host(String),
    /// The port of this number is deleted, and made again.
    Recreate(usize),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Ip(words) => write!(f, "ip {words}"),
            Step::Ip6(words) => write!(f, "ip -6 {words}"),
            Step::Set(key, value) => write!(f, "echo {value} > /proc/sys/net/{key}"),
            Step::Shell(line) => f.write_str(line),
            Step::Host(words) => write!(f, "ip {words} (hosts)"),
            Step::Recreate(port) => write!(f, "delete and make port {port} again"),
        }
    }
}

/// A network namespace, removed with the value.
pub struct Space {
    pub name: String,
    file: File,
}

impl Space {
    /// None, with a message, where that cannot be had.
    pub fn new(name: String) -> Option<Space> {
        let made = Command::new("ip").args(["netns", "add", &name]).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: needs `ip netns` (iproute2) and the right to use it");
            return None;
        }
        let file = File::open(format!("/run/netns/{name}")).expect("the namespace");
        Some(Space { name, file })
    }

    /// Does `work` on a thread in the namespace.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("setns");
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `ip` once for all these lines, of a family or any. One that fails is passed over: whether the kernel takes a random
    /// command does not matter, as both twins are told the same.
    pub fn ip(&self, family: &[&str], lines: &[&str]) {
        if lines.is_empty() {
            return;
        }
        let mut command = Command::new("ip");
        command.args(["-n", &self.name, "-force"]).args(family).args(["-batch", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("ip");
        let text = lines.join("\n") + "\n";
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
        child.wait().expect("ip");
    }

    /// Runs a shell's line, and hands over what it prints.
    pub fn shell(&self, line: &str) -> String {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, "sh", "-c", line]);
        let output = command.output().expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        text.into_owned()
    }

    /// Changes settings, as far as they are there.
    pub fn set(&self, settings: &[(&str, &str)]) {
        self.inside(|| {
            for (key, value) in settings {
                let _ = std::fs::write(format!("/proc/sys/net/{key}"), value);
            }
        });
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}
