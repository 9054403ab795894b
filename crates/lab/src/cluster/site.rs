//! The cluster as it stands: namespaces, cables, the router in front and the nodes. All of it goes when it is dropped.
//!
//! ```text
//! source ── in │ front │ node1 ── front │ node 1 │ lan ──┐
//!              │       │ node2 ── front │ node 2 │ lan ──┼ lan, a switch with the sink
//!              │       │ ...                             ┘
//! ```
//!
//! The sources are the hosts of 198.18.0.0/18, the sinks those of 198.18.64.0/18 behind 198.19.100.254 (RFC 2544 appendix
//! C.2.2). The front is the kernel's forwarding with a routing daemon; a node is `causeway up` with one.

use super::daemon::{ASIDE, Daemon, Kind, Role, Timers};
use super::node::Node;
use super::{FRONT_SETTINGS, Hashing, settings};
use crate::bed::{PREFIX, open, up};
use crate::namespace::{Namespace, ip, remove_stale};
use crate::process::Process;
use crate::tester::Attached;
use anyhow::{Context, Result, bail, ensure};
use causeway_netio::interface::Interface;
use causeway_packet::wire::MacAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The hosts that send.
const SOURCES: &str = "198.18.0.0/18";
/// The hosts that all nodes reach.
pub const SINKS: &str = "198.18.64.0/18";
/// How long the daemons may take until the front uses the nodes that it should.
const PATIENCE: Duration = Duration::from_secs(25);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How the folders begin that daemons have their files in.
const FOLDER: &str = "causeway-cluster-";
const RESILIENT_GROUP: &str = include_str!("../../../../conf/cluster/resilient-group");

/// A folder that goes when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            log::error!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// What a cluster is made of.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many nodes.
    pub nodes: usize,
    /// Which daemon runs on all of them, and in front.
    pub daemon: Kind,
    /// How fast silence is noticed.
    pub timers: Timers,
    /// How the front chooses a node.
    pub hashing: Hashing,
}

/// A cluster. What runs ends before what it runs in.
pub struct Site {
    /// The nodes.
    pub nodes: Vec<Node>,
    follower: Option<Process>,
    daemon: Option<Daemon>,
    plan: Plan,
    folder: Folder,
    front: Namespace,
    source: Namespace,
    sink: Namespace,
}

impl Site {
    /// Makes one, with the router in front running and the nodes not.
    ///
    /// # Errors
    /// If that is not allowed here, or something does not start.
    pub fn new(plan: Plan) -> Result<Site> {
        remove_stale(PREFIX)?;
        remove_stale_folders(Path::new("/run"));
        let process = std::process::id();
        let named = |name: &str| Namespace::new(&format!("{PREFIX}cluster-{process}-{name}"));
        let (front, source, sink) = (named("front")?, named("source")?, named("sink")?);
        let path = PathBuf::from(format!("/run/{FOLDER}{process}"));
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let folder = Folder(path);
        [&front, &source, &sink].iter().try_for_each(|namespace| namespace.ip("link set lo up"))?;
        settings(&front, FRONT_SETTINGS)?;
        ip(&format!("link add in netns {} type veth peer name source netns {}", front.name, source.name))?;
        front.ip("addr add 198.18.0.1/18 dev in")?;
        up(&front, "in")?;
        up(&source, "source")?;
        sink.ip("link add lan type bridge mcast_snooping 0")?;
        sink.ip("link set lan addrgenmode none")?;
        sink.ip("link set lan up")?;
        sink.ip("addr add 198.19.100.254/24 dev lan")?;
        let mut nodes = Vec::new();
        for number in 1..=plan.nodes {
            let namespace = named(&format!("node{number}"))?;
            namespace.ip("link set lo up")?;
            let how = (plan.daemon, plan.timers, folder.0.join(format!("node{number}")));
            nodes.push(Node::new(number, namespace, [&front, &sink], how)?);
        }
        let mut site = Site { nodes, follower: None, daemon: None, plan, folder, front, source, sink };
        site.start_front()?;
        Ok(site)
    }

    fn start_front(&mut self) -> Result<()> {
        let (aside, folder) = (self.plan.hashing == Hashing::Resilient, self.folder.0.join("front"));
        let Plan { daemon, timers, .. } = self.plan;
        self.daemon = Some(Daemon::start(daemon, Role::Front { aside }, timers, &self.front, &folder)?);
        if aside {
            let mut command = self.front.command("sh");
            command.args(["-c", RESILIENT_GROUP, "resilient-group", &ASIDE.to_string(), SINKS]);
            self.follower = Some(Process::start(command, None)?);
        }
        Ok(())
    }

    /// Ports of the tester: at the sources, and where the frames of all nodes come together.
    pub fn open(&self) -> Result<[Attached; 2]> {
        let gateway = self.front.run(|| Ok(MacAddr(Interface::open("in")?.mac)))?;
        let port = |namespace: &Namespace, name, gateway, hosts: &str| {
            let hosts = [Some(hosts.parse()?), None];
            namespace.run(|| open(name, "packet", gateway, hosts))
        };
        let source = port(&self.source, "source", gateway, SOURCES)?;
        Ok([source, port(&self.sink, "lan", MacAddr::ZERO, SINKS)?])
    }

    /// How many nodes the front's kernel spreads packets over.
    fn used(&self) -> Result<usize> {
        let mut command = Command::new("ip");
        command.args(["-n", &self.front.name, "-4", "route", "show", SINKS]);
        let output = command.output().context("cannot run ip (iproute2)")?;
        Ok(next_hops(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Waits until the front uses so many nodes.
    ///
    /// # Errors
    /// If it does not come to that, with what the daemon says; an interrupt; a router that ended by itself.
    pub fn wait_for(&mut self, nodes: usize, interrupted: &AtomicBool) -> Result<()> {
        let began = Instant::now();
        while self.used()? != nodes {
            self.pause(LOOK, interrupted)?;
            if began.elapsed() > PATIENCE {
                let neighbours = self.daemon.as_ref().map_or(String::new(), Daemon::neighbours);
                let used = self.used()?;
                bail!(
                    "the front uses {used} nodes and not {nodes}, after {} s:\n{neighbours}",
                    PATIENCE.as_secs()
                );
            }
        }
        Ok(())
    }

    /// Waits while all that should run runs.
    ///
    /// # Errors
    /// An interrupt, or a router that ended by itself.
    pub fn pause(&mut self, time: Duration, interrupted: &AtomicBool) -> Result<()> {
        let began = Instant::now();
        loop {
            ensure!(!interrupted.load(Ordering::Relaxed), "interrupted");
            self.nodes.iter_mut().try_for_each(Node::check)?;
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

/// Ways of a route, as iproute2 prints it.
fn next_hops(text: &str) -> usize {
    text.split_whitespace().filter(|word| *word == "via").count()
}

/// Removes the folders of processes that did not live to do it.
fn remove_stale_folders(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.parse::<u32>().ok());
        if maker.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
            && let Err(error) = std::fs::remove_dir_all(entry.path())
        {
            log::warn!("cannot remove {}: {error}", entry.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_of_a_route_are_counted() {
        assert_eq!(next_hops(""), 0);
        assert_eq!(next_hops("198.18.64.0/18 via 198.19.1.2 dev node1 proto bird metric 32 \n"), 1);
        let two = "198.18.64.0/18 nhid 1000 \n\tnexthop via 198.19.1.2 dev node1 weight 1 \n\
                   \tnexthop via 198.19.2.2 dev node2 weight 1 \n";
        assert_eq!(next_hops(two), 2);
    }

    #[test]
    fn folders_of_the_dead_go_and_those_of_the_living_stay() {
        let parent = std::env::temp_dir().join(format!("causeway-site-{}", std::process::id()));
        let mut gone = Command::new("true").spawn().expect("started");
        gone.wait().expect("ended");
        let folder = |name: String| {
            let folder = parent.join(name);
            std::fs::create_dir_all(folder.join("node1")).expect("made");
            folder
        };
        let (dead, mine) =
            (folder(format!("{FOLDER}{}", gone.id())), folder(format!("{FOLDER}{}", std::process::id())));
        let other = folder(format!("{FOLDER}x"));
        remove_stale_folders(&parent);
        assert_eq!((dead.exists(), mine.exists(), other.exists()), (false, true, true));
        std::fs::remove_dir_all(parent).expect("removed");
    }
}
