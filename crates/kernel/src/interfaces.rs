//! The interfaces of the machine, as a command line needs them.

use std::io;

use crate::mirror::{Mirror, Scope};
use crate::model::{Address, Link};
use crate::requests::dump_into;
use crate::socket::Socket;

/// An interface with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The link.
    pub link: Link,
    /// Its addresses, IPv4 first.
    pub addresses: Vec<Address>,
    /// The driver's name: of the hardware, or the kind of a virtual device.
    pub driver: Option<String>,
}

/// The interfaces of the calling thread's network namespace, by index.
///
/// # Errors
/// The kernel's, when it cannot be asked.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut mirror = Mirror::new([]);
    dump_into(&mut mirror, &mut Socket::open(None)?, Scope::LINKS | Scope::ADDRESSES)?;
    let interface = |link: &Link| Interface {
        link: link.clone(),
        addresses: mirror.addresses().filter(|address| address.ifindex == link.index).copied().collect(),
        driver: link.kind.clone().or_else(|| driver(link)),
    };
    Ok(mirror.links().map(interface).collect())
}

/// Found by the bus and not by the interface's name, because /sys/class/net shows one network namespace only.
fn driver(link: &Link) -> Option<String> {
    let (bus, device) = link.parent.as_ref()?;
    let target = std::fs::read_link(format!("/sys/bus/{bus}/devices/{device}/driver")).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}
