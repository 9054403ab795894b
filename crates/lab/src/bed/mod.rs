//! Test beds: a tester in one network namespace, a device in another, and veth pairs between them that stand for
//! cables. All of it goes when it is dropped.
//!
//! Port i of the tester is `t`i, that of the device `r`i, with the network 198.19.i.0/24 (2001:2:0:100+i::/64) between
//! them. Behind the tester's port are the hosts of 198.18.(64 i).0/18 (2001:2:0:i::/64): 16 384 in each
//! network, from the blocks for benchmarks (RFC 2544 appendix C.2.2, RFC 5180 §8). The device's neighbours and routes are
//! permanent, so no address is resolved in a trial.
//!
//! A veth forwards within the sender's system call what the kernel or an XDP program forwards: what such a device can do
//! is then part of what the tester can offer, and its loss is less than it would be on cards. Results say so.

mod device;
#[cfg(test)]
mod tests;

pub use device::{Device, Kind};

use crate::namespace::{Namespace, ip};
use crate::network::Network;
use crate::tester::Attached;
use anyhow::{Context, Result, anyhow, ensure};
use causeway_netio::front::{Front, Take};
use causeway_netio::interface::Interface;
use causeway_netio::offload::{Offload, set_offload};
use causeway_netio::opener::{self, Request};
use causeway_packet::wire::MacAddr;
use std::sync::Arc;

/// Ports of a bed at most: so many networks of 18 bits are in 198.18.0.0/15, half of which is for the links.
pub const MOST_PORTS: usize = 4;
/// What results of a bed of veth pairs say.
pub const VETH_NOTE: &str = "veth pairs: what the kernel or an XDP program forwards, it forwards within the system call of \
                             the tester, so the offered rate is limited by the device too";

/// The namespaces and the links between them.
pub struct Bed {
    /// With t0, t1 and so on.
    pub tester: Namespace,
    /// With r0, r1 and so on.
    pub device: Namespace,
    ports: usize,
}

/// The hosts behind port `i`.
fn hosts(i: usize) -> Result<[Option<Network>; 2]> {
    let four = format!("198.18.{}.0/18", 64 * i).parse()?;
    let six = format!("2001:2:0:{i}::/64").parse()?;
    Ok([Some(four), Some(six)])
}

impl Bed {
    /// Makes a bed of so many ports; `name` begins the names of its namespaces.
    ///
    /// # Errors
    /// If that is not allowed here, or there are too many ports.
    pub fn new(name: &str, ports: usize) -> Result<Bed> {
        ensure!((1..=MOST_PORTS).contains(&ports), "a test bed has 1 to {MOST_PORTS} ports");
        ensure!(rustix::process::geteuid().is_root(), "a test bed of network namespaces needs root");
        let name = format!("{name}-{}", std::process::id());
        let (tester, device) = (format!("{name}-t"), format!("{name}-r"));
        let bed = Bed { tester: Namespace::new(&tester)?, device: Namespace::new(&device)?, ports };
        for namespace in [&bed.tester, &bed.device] {
            namespace.ip("link set lo up")?;
        }
        bed.kernel_forwards(true)?;
        (0..ports).try_for_each(|i| bed.link(i))?;
        Ok(bed)
    }

    /// Whether the kernel forwards what is not taken from it.
    fn kernel_forwards(&self, on: bool) -> Result<()> {
        let value = if on { "1" } else { "0" };
        let set = |setting: &str| self.device.set(setting, value);
        ["ipv4/ip_forward", "ipv6/conf/all/forwarding"].into_iter().try_for_each(set)
    }

    fn link(&self, i: usize) -> Result<()> {
        let (tester, device) = (&self.tester, &self.device);
        ip(&format!("link add t{i} netns {} type veth peer name r{i} netns {}", tester.name, device.name))?;
        for (namespace, name) in [(tester, format!("t{i}")), (device, format!("r{i}"))] {
            up(namespace, &name)?;
        }
        let mac = tester.run(|| Ok(Interface::open(&format!("t{i}"))?.mac))?;
        let mac = MacAddr(mac);
        for (link, prefix, host) in [
            (format!("198.19.{i}."), 24, format!("198.18.{}.0/18", 64 * i)),
            (format!("2001:2:0:{}::", 100 + i), 64, format!("2001:2:0:{i}::/64")),
        ] {
            device.ip(&format!(
                "addr add {link}1/{prefix} dev r{i}{}",
                if prefix == 64 { " nodad" } else { "" }
            ))?;
            device.ip(&format!("neigh replace {link}2 lladdr {mac} nud permanent dev r{i}"))?;
            device.ip(&format!("route add {host} via {link}2 dev r{i}"))?;
        }
        Ok(())
    }

    /// Opens the tester's ports by the opener of this name.
    ///
    /// # Errors
    /// If there is none, or it cannot open them.
    pub fn open(&self, method: &str) -> Result<Vec<Attached>> {
        let port = |i: usize| {
            let mac = self.device.run(|| Ok(Interface::open(&format!("r{i}"))?.mac))?;
            attach(&self.tester, &format!("t{i}"), method, mac, hosts(i)?)
        };
        (0..self.ports).map(port).collect()
    }

    /// Two ports of the tester that are joined by a cable, c0 and c1, without a device.
    ///
    /// # Errors
    /// As [`Bed::open`].
    pub fn cable(&self, method: &str) -> Result<Vec<Attached>> {
        self.tester.ip("link add c0 type veth peer name c1")?;
        ["c0", "c1"].into_iter().try_for_each(|name| up(&self.tester, name))?;
        let mac = |name: &'static str| self.tester.run(|| Ok(Interface::open(name)?.mac));
        Ok(vec![
            attach(&self.tester, "c0", method, mac("c1")?, hosts(0)?)?,
            attach(&self.tester, "c1", method, mac("c0")?, hosts(1)?)?,
        ])
    }

    /// Frames that the ends of the cable have received, as the kernel counts them.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn cable_received(&self) -> Result<u64> {
        let path = "/proc/thread-self/net/dev";
        let text = self.tester.run(|| std::fs::read_to_string(path).context(path))?;
        let packets = |line: &str| {
            let (name, numbers) = line.split_once(':')?;
            let packets = numbers.split_whitespace().nth(1)?.parse::<u64>().ok()?;
            ["c0", "c1"].contains(&name.trim()).then_some(packets)
        };
        Ok(text.lines().filter_map(packets).sum())
    }

    /// Takes the cable away.
    ///
    /// # Errors
    /// If there is none.
    pub fn cut(&self) -> Result<()> {
        self.tester.ip("link del c0")
    }
}

/// Sets an interface up that says nothing by itself and gets work to do for frames that are redirected to it.
fn up(namespace: &Namespace, name: &str) -> Result<()> {
    namespace.ip(&format!("link set {name} addrgenmode none"))?;
    namespace.ip(&format!("link set {name} up"))?;
    namespace.run(|| {
        // As cards do, and not the veth of a host: whole checksums, no super-packets.
        set_offload(name, Offload::TxChecksum, false)?;
        Ok(set_offload(name, Offload::Gro, true)?)
    })
}

fn attach(
    namespace: &Namespace,
    name: &str,
    method: &str,
    gateway: [u8; 6],
    hosts: [Option<Network>; 2],
) -> Result<Attached> {
    namespace.run(|| open(name, method, MacAddr(gateway), hosts))
}

/// Opens an interface of this network namespace for the tester, by the opener of this name; `gateway` is the device's
/// Ethernet address, `hosts` are behind the port.
///
/// # Errors
/// If there is no such opener, or it cannot open the interface.
pub fn open(
    interface: &str,
    method: &str,
    gateway: MacAddr,
    hosts: [Option<Network>; 2],
) -> Result<Attached> {
    let opener = opener::find(method)
        .ok_or_else(|| anyhow!("there are no ports of the kind '{method}'; there are {}", opener::list()))?;
    let front = || Ok(Arc::new(Front::new(Take::All)?));
    let port = opener.open(&Request { name: interface, promiscuous: false, queues: 1, front: &front })?;
    Attached::new(port, gateway, hosts)
}
