//! Routing daemons as their authors made them, one in each namespace, with the configurations of `conf/cluster`.
//!
//! The configurations are those of the router in front and of the first node. The others differ in their numbers only.

mod bird;
mod frr;

use crate::namespace::Namespace;
use crate::process::Process;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where daemons are that are not in the path of everyone.
const MORE_FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/lib/frr"];

/// Whose daemon it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// BIRD, version 2.
    Bird,
    /// FRR: zebra, staticd, bfdd and bgpd.
    Frr,
}

/// Where a daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// In front of the nodes.
    Front {
        /// Whether its route is for a resilient group, and not for the main table.
        aside: bool,
    },
    /// On the node of this number, from 1.
    Node(usize),
}

/// How fast silence is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timers {
    /// BFD three times 300 ms, as the configurations have it.
    Stated,
    /// What the daemon does when it is told nothing of timers.
    Default,
}

/// The table that a route for a resilient group is written into.
pub const ASIDE: u32 = 100;

impl Kind {
    /// The kind of a name.
    ///
    /// # Errors
    /// If there is none.
    pub fn by_name(name: &str) -> Result<Kind> {
        match name {
            "bird" => Ok(Kind::Bird),
            "frr" => Ok(Kind::Frr),
            _ => bail!("there is no daemon '{name}'; there are bird and frr"),
        }
    }

    /// Fails if its programs are not there; says how to install them.
    pub fn check(self) -> Result<()> {
        let (programs, package): (&[&str], _) = match self {
            Kind::Bird => (&["bird", "birdc"], "bird2"),
            Kind::Frr => (&["zebra", "staticd", "bfdd", "bgpd", "vtysh"], "frr"),
        };
        let missing: Vec<&str> = programs.iter().copied().filter(|name| program(name).is_none()).collect();
        ensure!(
            missing.is_empty(),
            "missing: {}; apt-get install --no-install-recommends {package} (Debian then also starts it for the \
             machine itself; systemctl disable --now {} ends that)",
            missing.join(", "),
            self.name()
        );
        Ok(())
    }

    /// As people write it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bird => "bird",
            Kind::Frr => "frr",
        }
    }

    /// What the daemon says that it is.
    pub fn version(self) -> String {
        let (name, argument) = match self {
            Kind::Bird => ("bird", "--version"),
            Kind::Frr => ("zebra", "--version"),
        };
        let output = program(name).and_then(|path| Command::new(path).arg(argument).output().ok());
        // One of them says it as output, the other as an error.
        let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
    }

    /// What the timers are, for people.
    pub fn timers(self, timers: Timers) -> &'static str {
        match (timers, self) {
            (Timers::Stated, _) | (Timers::Default, Kind::Frr) => "BFD 3 x 300 ms",
            (Timers::Default, Kind::Bird) => "BFD 5 x 100 ms, the default of BIRD",
        }
    }
}

/// A program's file.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(MORE_FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The configuration of the node of this number, from that of the first.
fn numbered(text: &str, node: usize) -> String {
    text.replace("198.19.1.", &format!("198.19.{node}.")).replace("65001", &format!("6500{node}"))
}

/// A routing daemon that runs.
pub struct Daemon {
    kind: Kind,
    role: Role,
    folder: PathBuf,
    processes: Vec<Process>,
}

impl Daemon {
    /// Starts one. Its files are in `folder`, which is its own.
    ///
    /// # Errors
    /// If it does not start, with what it says.
    pub fn start(
        kind: Kind,
        role: Role,
        timers: Timers,
        namespace: &Namespace,
        folder: &Path,
    ) -> Result<Daemon> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let processes = match kind {
            Kind::Bird => bird::start(role, timers, namespace, folder),
            Kind::Frr => frr::start(role, timers, namespace, folder),
        };
        let processes = processes.with_context(|| format!("{} in {}", kind.name(), namespace.name))?;
        Ok(Daemon { kind, role, folder: folder.to_owned(), processes })
    }

    /// Says, or says no more, that this node is about to go (RFC 8326).
    ///
    /// # Errors
    /// If the daemon does not take it.
    pub fn drain(&self) -> Result<()> {
        match (self.kind, self.role) {
            (_, Role::Front { .. }) => bail!("the router in front is not drained"),
            (Kind::Bird, Role::Node(_)) => bird::drain(&self.folder),
            (Kind::Frr, Role::Node(node)) => frr::drain(&self.folder, node),
        }
    }

    /// Has its processes hang: they answer nothing, and their sockets stay as they are.
    pub fn hang(&self) {
        self.signal(Signal::STOP);
    }

    /// What it says of its neighbours, for errors.
    pub fn neighbours(&self) -> String {
        match self.kind {
            Kind::Bird => bird::ask(&self.folder, &["show", "protocols"]),
            Kind::Frr => frr::ask(&self.folder, &["show bgp summary"]),
        }
        .unwrap_or_else(|error| format!("{error:#}"))
    }

    fn signal(&self, signal: Signal) {
        for process in &self.processes {
            if let Some(pid) = i32::try_from(process.id()).ok().and_then(Pid::from_raw) {
                // One that has ended is told of when it is looked at.
                let _ = kill_process(pid, signal);
            }
        }
    }

    /// Ends it without a word to anybody: no session is closed by it in an orderly way.
    pub fn kill(self) {
        self.signal(Signal::KILL);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // What hangs does not end when it is asked to.
        self.signal(Signal::CONT);
    }
}

/// The output of a command that must succeed.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{}{}", text.trim(), String::from_utf8_lossy(&output.stderr).trim());
    Ok(text)
}
