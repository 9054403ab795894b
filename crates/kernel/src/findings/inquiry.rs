//! The sockets and files through which the kernel is asked, kept open from one look to the next.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use rustix::net::{Protocol, netlink};

use super::exceptions::Exceptions;
use super::hooks::Hooks;
use super::legacy::Legacy;
use super::nftables::ChainName;
use super::{Finding, Probe, Severity, nftables, ports, rules, settings, traffic, translated, xfrm};
use crate::mirror::{Mirror, Scope};
use crate::model::Link;
use crate::requests::dump_into;
use crate::settings::{Settings, SettingsReader};
use crate::socket::{Dump, Socket};
use crate::uapi::*;
use crate::wire::{Frame, Malformed, Request};

/// Asks about the network namespace of the thread that opened it; to be used on that thread.
pub(crate) struct Inquiry {
    ports: Vec<String>,
    route: Socket,
    /// None in a kernel without the packet filter.
    netfilter: Option<Socket>,
    /// None in a kernel without IPsec.
    xfrm: Option<Socket>,
    hooks: Hooks,
    legacy: Legacy,
    settings: SettingsReader,
    exceptions: Exceptions,
}

/// What the kernel sends messages about, as it was found.
pub(crate) struct Look {
    /// Links, addresses, rules and queueing disciplines.
    mirror: Mirror,
    /// The chains of nftables that forwarded packets go through.
    pub chains: Vec<ChainName>,
    /// Whether one of nftables is for the translation of addresses.
    translates: bool,
    pub findings: Vec<Finding>,
}

impl Look {
    /// The port with that interface index.
    pub fn port(&self, ifindex: u32) -> Option<&Link> {
        self.ports().find(|link| link.index == ifindex)
    }

    /// The link with that interface index.
    pub fn link(&self, ifindex: u32) -> Option<&Link> {
        self.mirror.link_by_index(ifindex)
    }

    fn ports(&self) -> impl Iterator<Item = &Link> {
        self.mirror.links().filter(|link| self.mirror.ports().any(|port| port == link.index))
    }
}

impl Inquiry {
    /// For a router that would hold the interfaces of these names.
    ///
    /// # Errors
    /// The kernel's, when it has no such sockets to give.
    pub fn open(ports: Vec<String>) -> io::Result<Self> {
        Ok(Inquiry {
            route: Socket::open(None)?,
            netfilter: offered(netlink::NETFILTER)?,
            xfrm: offered(netlink::XFRM)?,
            hooks: Hooks::default(),
            legacy: Legacy::open(),
            settings: SettingsReader::new(&ports),
            exceptions: Exceptions::open()?,
            ports,
        })
    }

    /// Looks at all that the kernel sends messages about.
    ///
    /// # Errors
    /// The kernel's; [`Interrupted`](io::ErrorKind::Interrupted) if something changed meanwhile.
    pub fn look(&mut self) -> io::Result<Look> {
        let mut links = Mirror::new([]);
        self.resync(&mut links, Scope::LINKS)?;
        let missing = self.ports.iter().filter(|name| links.link(name).is_none());
        let mut findings: Vec<Finding> = missing.map(|name| ports::missing(name)).collect();
        let held = self.ports.iter().filter_map(|name| links.link(name)).map(|link| link.index);
        let mut mirror = Mirror::new(held.collect::<Vec<_>>());
        self.resync(&mut mirror, Scope::LINKS | Scope::ADDRESSES | Scope::RULES | Scope::QDISCS)?;
        let mut look = Look { mirror, chains: Vec::new(), translates: false, findings: Vec::new() };
        findings.extend(rules::findings(&look.mirror));
        for link in look.ports() {
            findings.extend(ports::findings(link));
            let takers = look.mirror.links().filter(|taker| taker.takes_from == Some(link.index));
            findings.extend(takers.map(|taker| ports::shared(link, taker)));
            let own = look.mirror.qdiscs().filter(|qdisc| qdisc.ifindex == link.index);
            findings.extend(own.filter_map(|qdisc| traffic::qdisc(qdisc, &link.name)));
        }
        if let Some(socket) = &mut self.netfilter {
            let found = nftables::find(socket, &self.ports)?;
            findings.extend(found.findings);
            (look.chains, look.translates) = (found.chains, found.translates);
        }
        if let Some(socket) = &mut self.xfrm {
            findings.extend(xfrm::findings(socket)?);
        }
        look.findings = findings;
        Ok(look)
    }

    /// Asks for all that the kernel sends no messages about.
    ///
    /// # Errors
    /// The kernel's, and the probe's.
    pub fn silent(&mut self, look: &Look, probe: &dyn Probe) -> io::Result<(Vec<Finding>, Settings)> {
        let ports: Vec<&Link> = look.ports().collect();
        let mut settings = self.settings.read();
        rules::note(&look.mirror, &mut settings);
        let mut findings = settings::findings(&settings, &look.mirror, &ports);
        if let Some(socket) = &mut self.netfilter {
            findings.extend(self.hooks.findings(socket, &ports)?);
        }
        findings.extend(self.legacy.findings(probe, &self.hooks));
        // Where rules are found that translate, nothing is forwarded anyway.
        let refused = |findings: &[Finding]| findings.iter().any(|one| one.severity == Severity::Refuse);
        if let Some(socket) = &mut self.netfilter
            && (look.translates || self.legacy.may_translate())
            && !refused(&findings)
            && !refused(&look.findings)
        {
            findings.extend(translated::finding(socket)?);
        }
        let programs = probe.programs(&look.mirror.ports().collect::<Vec<_>>())?;
        findings.extend(programs.iter().map(|program| traffic::program(program, &ports)));
        Ok((findings, settings))
    }

    /// Asks for the destinations that the kernel has learned something of.
    ///
    /// # Errors
    /// The kernel's.
    pub fn exceptions(&mut self, probe: &dyn Probe) -> io::Result<BTreeSet<IpAddr>> {
        self.exceptions.ask(probe)
    }

    fn resync(&mut self, mirror: &mut Mirror, scope: Scope) -> io::Result<()> {
        match dump_into(mirror, &mut self.route, scope)?.is_empty() {
            true => Ok(()),
            false => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}

/// A socket of a netlink protocol, if the kernel has it.
pub(crate) fn offered(protocol: Protocol) -> io::Result<Option<Socket>> {
    match Socket::open(Some(protocol)) {
        Err(error) if error.raw_os_error() == Some(EPROTONOSUPPORT) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Dumps something of the packet filter's. `complete` adds to the request, which begins with `struct nfgenmsg`.
///
/// # Errors
/// The kernel's; [`Interrupted`](io::ErrorKind::Interrupted) if something changed meanwhile.
pub(super) fn netfilter_dump<T>(
    socket: &mut Socket,
    kind: u16,
    family: u8,
    complete: impl FnOnce(Request) -> Request,
    parse: impl Fn(&Frame<'_>) -> Result<Option<T>, Malformed>,
) -> io::Result<Vec<T>> {
    let (mut found, mut malformed) = (Vec::new(), None);
    let request = complete(Request::new(kind, NLM_F_REQUEST | NLM_F_DUMP, &[family, 0, 0, 0]));
    let end = socket.dump(request, |frame| match parse(frame) {
        Ok(item) => found.extend(item),
        Err(error) => malformed = Some(error),
    })?;
    match (end, malformed) {
        (_, Some(error)) => Err(io::Error::other(error)),
        (Dump::Interrupted, None) => Err(io::ErrorKind::Interrupted.into()),
        (Dump::Complete, None) => Ok(found),
    }
}

/// The packet filter has its numbers in network byte order.
pub(super) fn big_endian(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_be_bytes)
}
