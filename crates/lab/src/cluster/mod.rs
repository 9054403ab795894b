//! A cluster for real, between network namespaces: a router in front that spreads packets over several nodes, each of
//! which is `causeway up` beside a routing daemon, and what happens when one of them goes.
//!
//! The front is the kernel's own forwarding with equal-cost routes; its daemon and those of the nodes are BIRD or FRR as
//! their authors made them, which speak BGP and find out by BFD who is dead. The configurations are those of
//! `conf/cluster`, for people to take. All nodes reach the same networks.
//!
//! * A [`Site`](site) has the namespaces, cables and routers; a [node](node::Node) may be killed, hang, lose its cable,
//!   be drained and come back;
//! * [`Daemon`](daemon::Daemon) starts the routing daemons;
//! * [`Paths`](paths::Paths) tells which flow goes through which node, and which moved;
//! * a [`Run`] is a story with traffic under it; what came of each trial is a [`Record`](records::Record);
//! * a [`Task`] goes through the runs and writes the results.
//!
//! How the front chooses a node decides which flows move when one goes or comes: with hash-threshold (RFC 2992), the
//! kernel's default, each node has a region of the hash's values, and all borders move; in a resilient group the values
//! are in buckets, and only buckets without a node get another.

mod daemon;
mod node;
mod paths;
mod records;
mod runs;
mod site;
mod task;
#[cfg(test)]
mod tests;
mod trial;

pub use task::{MOST_NODES, Task};

use crate::namespace::Namespace;
use anyhow::{Context, Result, bail};

const FRONT_SETTINGS: &str = include_str!("../../../../conf/cluster/front.sysctl");
const NODE_SETTINGS: &str = include_str!("../../../../conf/cluster/node.sysctl");

/// How the front chooses a node for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashing {
    /// A region of the hash's values for each node (RFC 2992).
    Threshold,
    /// Buckets, of which only those move that have to.
    Resilient,
}

impl Hashing {
    const ALL: [Hashing; 2] = [Hashing::Threshold, Hashing::Resilient];

    /// The one of a name.
    fn by_name(name: &str) -> Result<Hashing> {
        match Hashing::ALL.iter().find(|hashing| hashing.name() == name) {
            Some(hashing) => Ok(*hashing),
            None => bail!(
                "there is no hashing '{name}'; there are {}",
                Hashing::ALL.map(Hashing::name).join(", ")
            ),
        }
    }

    /// For people, and in names of series.
    fn name(self) -> &'static str {
        match self {
            Hashing::Threshold => "hash-threshold",
            Hashing::Resilient => "resilient",
        }
    }
}

/// What can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Nodes are added, one after the other.
    Steady,
    /// The router of a node is killed and started again; the node stays.
    Router,
    /// Nodes hang, one after the other, and come back.
    Silent,
    /// The cable of a node has no carrier any more, and has it again.
    Cable,
    /// A node is drained and stopped.
    Drain,
}

impl Run {
    /// All of them, in the order in which they run.
    pub const ALL: [Run; 5] = [Run::Steady, Run::Router, Run::Silent, Run::Cable, Run::Drain];

    /// As people write it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Run::Steady => "steady",
            Run::Router => "router",
            Run::Silent => "silent",
            Run::Cable => "cable",
            Run::Drain => "drain",
        }
    }

    /// The run of a name.
    ///
    /// # Errors
    /// If there is none, with those that there are.
    pub fn by_name(name: &str) -> Result<Run> {
        match Run::ALL.iter().find(|run| run.name() == name) {
            Some(run) => Ok(*run),
            None => bail!("there is no run '{name}'; they are {}", Run::ALL.map(Run::name).join(", ")),
        }
    }
}

/// Makes the settings of a file as sysctl(8) reads it. What this kernel does not know is left as it is.
fn settings(namespace: &Namespace, text: &str) -> Result<()> {
    for (name, value) in pairs(text) {
        let path =
            name.strip_prefix("net.").with_context(|| format!("{name} is no setting of the network"))?;
        let path = path.replace('.', "/");
        if let Err(error) = namespace.set(&path, value) {
            let unknown = error.root_cause().downcast_ref::<std::io::Error>();
            match unknown.is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
                true => log::warn!("this kernel has no {name}"),
                false => return Err(error),
            }
        }
    }
    Ok(())
}

/// Names and values of settings.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.trim(), value.trim()))
}
