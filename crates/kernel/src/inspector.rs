//! What the kernel does to forwarded packets, followed while the router runs.

mod watch;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};

use crate::findings::{Finding, Probe};
use crate::settings::Settings;
use watch::Watch;

/// How an [`Inspector`] is to work.
#[derive(Clone)]
pub struct InspectorConfig {
    /// The interfaces that the router holds, by name.
    pub ports: Vec<String>,
    /// Asks what this crate cannot.
    pub probe: Arc<dyn Probe>,
    /// Gets the time of the latest turn, at least four times a second: `CLOCK_MONOTONIC`, nanoseconds.
    pub pulse: Arc<AtomicU64>,
    /// The kernel's buffer for messages that have not been read, octets.
    pub receive_buffer_bytes: usize,
}

impl InspectorConfig {
    /// The usual settings, for a router that holds these interfaces.
    pub fn new(ports: impl IntoIterator<Item = String>, probe: Arc<dyn Probe>) -> Self {
        let ports = ports.into_iter().collect();
        InspectorConfig { ports, probe, pulse: Arc::default(), receive_buffer_bytes: 4 << 20 }
    }
}

/// What an [`Inspector`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// Something may have changed, and it will be looked at: until the next [`Known`](Inspection::Known), packets must be left
    /// to the kernel.
    Doubt(Doubt),
    /// How things are: the end of a doubt, or a change that was found without one.
    Known {
        /// What the kernel does that the router does not, those that refuse first.
        findings: Vec<Finding>,
        /// The settings that the router has to follow.
        settings: Settings,
        /// Destinations of which the kernel has learned what its routes do not say: for
        /// [`Watcher::set_exceptions`](crate::Watcher::set_exceptions).
        exceptions: BTreeSet<IpAddr>,
    },
}

/// Why it is not known what the kernel does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Nothing was looked at yet.
    Start,
    /// A message about nftables.
    Netfilter,
    /// A message about IPsec policies.
    Xfrm,
    /// A message about a port's queueing disciplines.
    TrafficControl,
    /// A message about policy rules.
    Rules,
    /// A message about a port's link.
    Links,
    /// Messages were lost.
    Lost,
    /// What is looked at changes meanwhile.
    Changing,
    /// The kernel could not be asked; it is tried again.
    Failed(String),
}

impl Doubt {
    /// The code of its kind, which does not change.
    pub fn code(&self) -> &'static str {
        match self {
            Doubt::Start => "doubt-start",
            Doubt::Netfilter => "doubt-netfilter",
            Doubt::Xfrm => "doubt-xfrm",
            Doubt::TrafficControl => "doubt-traffic-control",
            Doubt::Rules => "doubt-rules",
            Doubt::Links => "doubt-links",
            Doubt::Lost => "doubt-lost",
            Doubt::Changing => "doubt-changing",
            Doubt::Failed(_) => "doubt-failed",
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Start => f.write_str("nothing was looked at yet"),
            Doubt::Netfilter => f.write_str("the packet filter changes"),
            Doubt::Xfrm => f.write_str("the IPsec policies change"),
            Doubt::TrafficControl => f.write_str("the queueing disciplines of a port change"),
            Doubt::Rules => f.write_str("the policy rules change"),
            Doubt::Links => f.write_str("the link of a port changes"),
            Doubt::Lost => f.write_str("messages of the kernel were lost"),
            Doubt::Changing => f.write_str("the kernel's tables change while they are looked at"),
            Doubt::Failed(error) => write!(f, "the kernel cannot be asked: {error}"),
        }
    }
}

/// A thread that watches the network namespace it was opened in for what the kernel does to forwarded packets.
///
/// It says [`Doubt`] as soon as a message of the kernel's may matter, and looks then, so that a rule is obeyed from the message
/// on and not from when it was found. What the kernel sends no messages about is asked for about five times a second. Nothing
/// is known before the first [`Inspection::Known`]. Dropping it ends the thread.
pub struct Inspector {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// An inspector that has opened what it reads, and does not look yet.
pub struct Prepared {
    watch: Watch,
    stop: OwnedFd,
}

impl Prepared {
    /// Opens what only root may open: for a process that gives root up before it starts the inspector.
    ///
    /// # Errors
    /// The kernel's, when sockets cannot be opened.
    pub fn open(config: InspectorConfig) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Prepared { watch: Watch::open(config, stop.try_clone()?)?, stop })
    }

    /// Starts the thread, which calls `report`; its pulse stands still while that does not return.
    ///
    /// # Errors
    /// The kernel's, when there can be no more threads.
    pub fn start(mut self, report: impl Fn(Inspection) + Send + 'static) -> io::Result<Inspector> {
        let stop = self.stop;
        let thread = std::thread::Builder::new().name("inspector".into());
        let thread = thread.spawn(move || self.watch.run(report))?;
        Ok(Inspector { stop, thread: Some(thread) })
    }
}

impl Inspector {
    /// Starts the thread, which calls `report`; its pulse stands still while that does not return.
    ///
    /// # Errors
    /// The kernel's, when sockets cannot be opened.
    pub fn open(config: InspectorConfig, report: impl Fn(Inspection) + Send + 'static) -> io::Result<Self> {
        Prepared::open(config)?.start(report)
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        // Writing to an eventfd that is not full cannot fail; if it did, the thread would only outlive us.
        if rustix::io::write(&self.stop, &1u64.to_ne_bytes()).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}
