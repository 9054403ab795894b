//! The interfaces that are named, and where each is attached.

use crate::cli::Attach;
use anyhow::{Context, Result, bail};
use causeway_kernel::interfaces;
use causeway_netio::features::FeatureQuery;
use causeway_netio::interface::Interface;
use std::fmt;

/// An interface that the router may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// Where the router stands.
    pub attach: Attach,
    /// Whether that is because the interface is a virtual one, and not because it was asked for.
    pub is_virtual: bool,
    /// Its queues.
    pub queues: u32,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Port { name, .. } = self;
        match (self.attach, self.is_virtual) {
            (Attach::Xdp, _) => write!(f, "{name}: at XDP, {} queue(s)", self.queues),
            (Attach::Tcx, true) => write!(
                f,
                "{name}: a virtual interface, at tcx: its packets may be super-packets or have no checksum yet, and \
                 are left to the kernel; --attach xdp takes them"
            ),
            (Attach::Tcx, false) => write!(f, "{name}: at tcx, as asked: its packets are left to the kernel"),
        }
    }
}

/// The interfaces of these names, if each can be a port; `asked` says where to attach them, in place of what suits each.
///
/// # Errors
/// One line that names the interface and says what to do.
pub fn find(names: &[String], asked: Option<Attach>) -> Result<Vec<Port>> {
    if let Some(twice) = names.iter().enumerate().find_map(|(i, n)| names[..i].contains(n).then_some(n)) {
        bail!("{twice} is named twice; name each interface once");
    }
    let links = interfaces().context("cannot ask the kernel for the interfaces")?;
    let features = FeatureQuery::new().ok();
    let mut ports = Vec::new();
    for name in names {
        let interface = Interface::open(name)?;
        let is_virtual = asked.is_none() && interface.is_virtual();
        let attach = asked.unwrap_or(if is_virtual { Attach::Tcx } else { Attach::Xdp });
        let Interface { index, queues, .. } = interface;
        let link = links.iter().find(|i| i.link.index == index);
        if link.is_some_and(|i| i.link.loopback || (attach == Attach::Xdp && !i.link.ethernet)) {
            bail!("{name}: no Ethernet interface; leave it out: the kernel forwards to it");
        }
        if attach == Attach::Xdp {
            if let Some(program) = link.and_then(|i| i.link.xdp_program) {
                bail!(
                    "{name}: XDP program {program} is attached already, perhaps by another router; stop that, \
                     or `ip link set dev {name} xdp off`"
                );
            }
            if !features.as_ref().and_then(|q| q.get(index).ok()).is_none_or(|f| f.native()) {
                bail!(
                    "{name}: its driver has no XDP, so that frames could not be given back to the kernel; \
                     leave it out: the kernel forwards to it"
                );
            }
        }
        ports.push(Port { name: name.clone(), index, attach, is_virtual, queues });
    }
    Ok(ports)
}
