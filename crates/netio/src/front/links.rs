//! The links that attach the gate to the ports, and those that are laid by.
//!
//! A link that goes takes the program off the interface, for which drivers stop their rings, and some take the carrier
//! away. So when ports are closed only to be opened again, by this process or by another that takes over, the links stay: they
//! are laid by, and the next port on the interface puts its own program into its link.

use super::Front;
use crate::Result;
use causeway_bpf::{Program, XdpLink, XdpMode};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// By interface index.
#[derive(Debug, Default)]
pub(super) struct Links {
    in_use: Mutex<BTreeMap<u32, Weak<XdpLink>>>,
    laid_by: Mutex<BTreeMap<u32, Arc<XdpLink>>>,
}

impl Links {
    fn laid_by(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<XdpLink>>> {
        self.laid_by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_use(&self) -> MutexGuard<'_, BTreeMap<u32, Weak<XdpLink>>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches `root` to an interface.
    pub fn attach(&self, root: &Program, ifname: &str, ifindex: u32, mode: XdpMode) -> Result<Arc<XdpLink>> {
        let laid_by = self.laid_by().remove(&ifindex);
        // The link of an interface that is gone leads nowhere, and its index may be another's.
        let link = match laid_by.filter(|link| link.replace(root).is_ok()) {
            Some(link) => link,
            None => Arc::new(XdpLink::attach(root, ifname, ifindex, mode)?),
        };
        self.in_use().insert(ifindex, Arc::downgrade(&link));
        Ok(link)
    }
}

impl Front {
    /// From now on the links of the ports stay when the ports are closed, for those that are opened after them. Returns
    /// them by interface index.
    pub fn lay_links_by(&self) -> Vec<(u32, Arc<XdpLink>)> {
        let in_use = self.links.in_use();
        let links: Vec<_> =
            in_use.iter().filter_map(|(&index, link)| Some((index, link.upgrade()?))).collect();
        self.links.laid_by().extend(links.iter().cloned());
        links
    }

    /// The next port on each of these interfaces attaches by this link, which another process had.
    pub fn take_links(&self, links: impl IntoIterator<Item = (u32, XdpLink)>) {
        self.links.laid_by().extend(links.into_iter().map(|(index, link)| (index, Arc::new(link))));
    }

    /// Lets go of links that were laid by and that no port has taken.
    pub fn forget_links(&self) {
        self.links.laid_by().clear();
    }
}
