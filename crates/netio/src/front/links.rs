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
    #[expect(clippy::disallowed_methods, reason = "when a port is opened or closed")]
    fn laid_by(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<XdpLink>>> {
        self.laid_by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::disallowed_methods, reason = "when a port is opened or closed")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::{Claim, Rules, Take};
    use crate::interface::Interface;
    use crate::testnet::{self, ip};
    use std::os::fd::AsFd;

    /// A port at `r0`, as long as both live.
    fn port(front: &Arc<Front>) -> (Claim, Arc<XdpLink>) {
        let Interface { index, mac, .. } = Interface::open("r0").expect("r0");
        let rules = Rules { mac: Some(mac), take: Take::All, partial_checksums: false };
        let claim = front.claim(index, 1, 1_792, rules).expect("claimed");
        let link = claim.attach("r0", XdpMode::Native).expect("attached");
        (claim, link)
    }

    /// What is at `r0`, with its number.
    fn program() -> Option<String> {
        let shown = ip("ip link show dev r0");
        shown.lines().find_map(|line| line.split_once("prog/xdp")).map(|(_, number)| number.to_owned())
    }

    #[test]
    fn links_that_were_laid_by_stay_until_a_port_has_taken_them() {
        testnet::run(&[("g0", "r0")], || {
            let front = testnet::front();
            let (claim, link) = port(&front);
            let laid_by = front.lay_links_by();
            assert!(laid_by.len() == 1 && Arc::ptr_eq(&laid_by[0].1, &link));
            let before = program();
            drop((claim, link, laid_by));
            assert!(before.is_some() && program() == before, "no port is there, and it stays");
            drop(port(&front));
            assert_eq!(program(), None, "it was the port's and went with it");
            // Without a port that takes them they are let go of.
            let both = port(&front);
            front.lay_links_by();
            drop(both);
            assert!(program().is_some());
            front.forget_links();
            assert_eq!(program(), None);
        });
    }

    #[test]
    fn a_port_puts_its_own_program_into_the_link_that_another_process_had() {
        testnet::run(&[("g0", "r0")], || {
            let (old, new) = (testnet::front(), testnet::front());
            let (claim, link) = port(&old);
            let index = Interface::open("r0").expect("r0").index;
            let handed = link.as_fd().try_clone_to_owned().expect("a descriptor");
            new.take_links([(index, XdpLink::handed(handed, link.mode()))]);
            let before = program();
            drop((claim, link, old));
            assert_eq!(program(), before);
            let _port = port(&new);
            assert!(program().is_some() && program() != before, "{before:?}");
        });
    }

    #[test]
    fn the_link_of_an_interface_that_is_gone_is_not_the_next_ones() {
        testnet::run(&[("g0", "r0")], || {
            let front = testnet::front();
            let both = port(&front);
            front.lay_links_by();
            drop(both);
            let index = Interface::open("r0").expect("r0").index;
            ip("ip link del r0");
            ip(&format!("ip link add r0 index {index} type veth peer name g0"));
            testnet::up("r0");
            let _port = port(&front);
            assert!(program().is_some());
        });
    }
}
