//! What the kernel does to forwarded packets that this router would not: found at the start and on change.
//!
//! A router that takes packets before the kernel's stack passes by its packet filter, its policy rules, its traffic control
//! and its IPsec policies. Each of them that is in use is a [`Finding`], with the command that shows or mends it; nothing is
//! changed here.

mod filter;
mod system;

use std::fmt;
use std::io;

use crate::mirror::{Mirror, Scope};
use crate::requests::dump_into;
use crate::socket::Socket;
use crate::watcher::Watcher;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The router works, but something beside it would not.
    Warn,
    /// Packets would be treated otherwise than the administrator asked for: do not start.
    Refuse,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Check {
    /// Interfaces that cannot be held.
    Port,
    /// `ip rule`s.
    Rules,
    /// Packet filter and address translation.
    Netfilter,
    /// Queueing disciplines and traffic control.
    Qdisc,
    /// IPsec policies.
    Xfrm,
    /// The kernel's own forwarding, which takes over when the router stops.
    Forwarding,
    /// Checks of source addresses.
    ReversePath,
}

/// Something that this router would pass by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub check: Check,
    /// How bad it is.
    pub severity: Severity,
    /// Where: an interface, a table and chain, a family.
    pub place: String,
    /// One line that says what was found and what it means.
    pub what: String,
    /// The command that mends it, to be run as root.
    pub mend: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warn => "warning",
            Severity::Refuse => "error",
        };
        write!(f, "{severity}: {}: {}\n  to mend it: {}", self.place, self.what, self.mend)
    }
}

/// Looks at the network namespace of the calling thread, for a router that would hold the named interfaces.
///
/// # Errors
/// The kernel's, when it cannot be asked.
pub fn inspect(ports: &[&str]) -> io::Result<Vec<Finding>> {
    let mut socket = Socket::open(None)?;
    let mut links = Mirror::new([]);
    dump_into(&mut links, &mut socket, Scope::LINKS)?;
    let missing = ports.iter().filter(|name| links.link(name).is_none());
    let mut findings: Vec<Finding> = missing.map(|name| system::missing(name)).collect();
    let mut mirror = Mirror::new(ports.iter().filter_map(|name| links.link(name)).map(|link| link.index));
    dump_into(&mut mirror, &mut socket, Scope::LINKS | Scope::ADDRESSES | Scope::RULES | Scope::QDISCS)?;
    findings.extend(look(&mirror)?);
    Ok(findings)
}

impl Watcher {
    /// Looks again, from what the mirror holds and from what has to be asked for. To be called on a thread of the network
    /// namespace that the watcher was opened in.
    ///
    /// # Errors
    /// The kernel's, when it cannot be asked.
    pub fn findings(&self) -> io::Result<Vec<Finding>> {
        look(self.mirror())
    }
}

fn look(mirror: &Mirror) -> io::Result<Vec<Finding>> {
    let mut findings = system::findings(mirror, system::read_setting);
    findings.extend(filter::netfilter(mirror)?);
    findings.extend(filter::xfrm()?);
    findings.sort_by(|a, b| b.severity.cmp(&a.severity).then(a.check.cmp(&b.check)));
    Ok(findings)
}
