//! A node: a router behind the one in front, and what may happen to it.

use super::daemon::{Daemon, Kind, Role, Timers};
use crate::bed::up;
use crate::namespace::{Namespace, ip};
use crate::process::Process;
use anyhow::{Context, Result, ensure};
use causeway_netio::interface::Interface;
use causeway_packet::wire::MacAddr;
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;

/// What a router says once its ports are open.
const READY: &str = "control socket";
/// The setting that has a kernel forward.
const FORWARDING: &str = "ipv4/ip_forward";

/// A node of the cluster.
pub struct Node {
    /// From 1.
    pub number: usize,
    router: Option<Process>,
    daemon: Option<Daemon>,
    kind: Kind,
    timers: Timers,
    /// Where the daemon's files are.
    folder: PathBuf,
    /// Its interfaces go with it.
    namespace: Namespace,
}

/// What becomes of a node that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It forwards nothing and says nothing, and its cables stay as they are: a machine that hangs.
    Silent,
    /// Its cable to the router in front is pulled: neither end has a carrier any more.
    Cable,
}

impl Node {
    /// Makes one between the router in front and the side of the sinks; nothing runs on it yet.
    pub fn new(
        number: usize,
        namespace: Namespace,
        [front, sink]: [&Namespace; 2],
        (kind, timers, folder): (Kind, Timers, PathBuf),
    ) -> Result<Node> {
        let (own, port) = (&namespace.name, format!("node{number}"));
        for (peer, name) in [(front, "front"), (sink, "lan")] {
            ip(&format!("link add {port} netns {} type veth peer name {name} netns {own}", peer.name))?;
        }
        sink.ip(&format!("link set {port} master lan"))?;
        front.ip(&format!("addr add 198.19.{number}.1/24 dev {port}"))?;
        namespace.ip(&format!("addr add 198.19.{number}.2/24 dev front"))?;
        namespace.ip(&format!("addr add 198.19.100.{number}/24 dev lan"))?;
        [front, sink].iter().try_for_each(|peer| up(peer, &port))?;
        ["front", "lan"].iter().try_for_each(|name| up(&namespace, name))?;
        super::settings(&namespace, super::NODE_SETTINGS)?;
        Ok(Node { number, router: None, daemon: None, kind, timers, folder, namespace })
    }

    /// The address that its frames to the sinks come from.
    pub fn mac(&self) -> Result<MacAddr> {
        self.namespace.run(|| Ok(MacAddr(Interface::open("lan")?.mac)))
    }

    /// Starts its router and its routing daemon, both or what of them does not run.
    pub fn start(&mut self) -> Result<()> {
        if self.router.is_none() {
            let mut command = self.namespace.command(&own_program()?);
            command.args(["up", "front", "lan", "--attach", "xdp", "--name"]);
            command.arg(format!("cluster-{}-{}", std::process::id(), self.number));
            let started = Process::start(command, Some(READY));
            self.router = Some(started.with_context(|| format!("the router of node {}", self.number))?);
        }
        if self.daemon.is_none() {
            let role = Role::Node(self.number);
            self.daemon = Some(Daemon::start(self.kind, role, self.timers, &self.namespace, &self.folder)?);
        }
        Ok(())
    }

    /// Kills the router alone. The kernel beside it goes on.
    pub fn kill_router(&mut self) -> Result<()> {
        let router = self.router.take().context("no router runs on this node")?;
        kill(&router)
    }

    /// Has the whole node fail.
    pub fn fail(&mut self, how: Failure) -> Result<()> {
        match how {
            Failure::Silent => {
                self.namespace.set(FORWARDING, "0")?;
                self.daemon.iter().for_each(Daemon::hang);
                self.kill_router()
            }
            Failure::Cable => self.namespace.ip("link set front down"),
        }
    }

    /// It comes back from a failure: what hung starts again, and what runs does not notice.
    pub fn come_back(&mut self, from: Failure) -> Result<()> {
        match from {
            Failure::Silent => {
                self.daemon.take().into_iter().for_each(Daemon::kill);
                self.namespace.set(FORWARDING, "1")?;
            }
            Failure::Cable => self.namespace.ip("link set front up")?,
        }
        self.start()
    }

    /// Says to the router in front that it is about to go.
    pub fn drain(&self) -> Result<()> {
        self.daemon.as_ref().context("no daemon runs on this node")?.drain()
    }

    /// Stops what runs on it in an orderly way, and pulls its cable.
    pub fn stop(&mut self) -> Result<()> {
        self.daemon = None;
        self.router = None;
        self.namespace.ip("link set front down")
    }

    /// Fails if its router has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        let number = self.number;
        self.router.iter_mut().try_for_each(Process::check).with_context(|| format!("node {number}"))
    }

    /// Packets that its router, and not the kernel beside it, has sent to the sinks.
    pub fn forwarded(&self) -> Result<u64> {
        let mut command = self.namespace.command(&own_program()?);
        let output = command.args(["read", "out1.count"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.trim()
            .parse()
            .with_context(|| format!("the router of node {} does not say: {text}", self.number))
    }
}

fn own_program() -> Result<String> {
    let binary = std::env::current_exe().context("cannot find this program")?;
    Ok(binary.to_string_lossy().into_owned())
}

fn kill(process: &Process) -> Result<()> {
    let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw).context("it has no number")?;
    ensure!(kill_process(pid, Signal::KILL).is_ok(), "it has ended already");
    Ok(())
}
