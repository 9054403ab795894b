//! Test beds: a tester in one network namespace, a device in another, and veth pairs between them that stand for
//! cables. All of it goes when it is dropped.
//!
//! Port i of the tester is `t`i, that of the device `r`i. Behind the tester's port are hosts of 198.18.0.0/16, 16 384 of them
//! (4 096 where there are more than four ports), and those of 2001:2:0:i::/64: blocks for benchmarks (RFC 2544 appendix C.2.2,
//! RFC 5180 §8). Between the ends of the cable number i is the network 198.19.i.0/24 (2001:2:0:100+i::/64). The device's
//! neighbours and routes are permanent, so no address is resolved in a trial.
//!
//! In a chain several devices stand in a row between t0 and t1; each has the ports r0 and r1.
//!
//! A veth forwards within the sender's system call what the kernel or an XDP program forwards: what such a device can do
//! is then part of what the tester can offer, and its loss is less than it would be on cards. Results say so.

mod alone;
mod device;
mod graph;
mod settings;
#[cfg(test)]
mod tests;

pub use device::{Device, Kind};
pub use graph::Graph;

use crate::namespace::{Namespace, feed, ip, remove_stale};
use crate::network::Network;
use crate::tester::Attached;
use anyhow::{Context, Result, anyhow, ensure};
use causeway_netio::front::{Front, Take};
use causeway_netio::interface::Interface;
use causeway_netio::offload::{Offload, set_offload};
use causeway_netio::opener::{self, Request};
use causeway_packet::wire::MacAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports of a bed at most: so many networks of 20 bits are in 198.18.0.0/16.
pub const MOST_PORTS: usize = 16;
/// Beds that this process has made, so that each has names of its own.
static BEDS: AtomicU32 = AtomicU32::new(0);
/// Ports that may have 16 384 hosts behind them.
const LARGE: usize = 4;
/// How the names of all beds begin.
pub(crate) const PREFIX: &str = "cwl";
/// What results of a bed of veth pairs say.
pub const VETH_NOTE: &str = "veth pairs: what the kernel or an XDP program forwards, it forwards within the system call of \
                             the tester, so the offered rate is limited by the device too";

/// The namespaces and the links between them.
pub struct Bed {
    /// With t0, t1 and so on.
    pub tester: Namespace,
    /// With r0, r1 and so on; several are a chain.
    pub devices: Vec<Namespace>,
    ports: usize,
}

/// The hosts behind port `i` of `ports`, of both families.
fn hosts(i: usize, ports: usize) -> [String; 2] {
    let four = match ports <= LARGE {
        true => format!("198.18.{}.0/18", 64 * i),
        false => format!("198.18.{}.0/20", 16 * i),
    };
    [four, format!("2001:2:0:{i}::/64")]
}

/// An interface: the number of its device, `None` for the tester, and its name.
type End = (Option<usize>, String);

/// A port of a device.
struct Side {
    own: End,
    /// The other end of its cable.
    peer: End,
    /// The number of the cable.
    cable: usize,
    /// What is behind it.
    networks: [String; 2],
}

impl Bed {
    /// Makes a bed of so many ports around a device; `name` is part of the names of its namespaces.
    ///
    /// # Errors
    /// If that is not allowed here, or there are too many ports.
    pub fn new(name: &str, ports: usize) -> Result<Bed> {
        ensure!((1..=MOST_PORTS).contains(&ports), "a test bed has 1 to {MOST_PORTS} ports");
        Bed::build(name, ports, 1)
    }

    /// Makes a bed of two ports with so many devices in a row between them.
    ///
    /// # Errors
    /// As [`Bed::new`].
    pub fn chain(name: &str, devices: usize) -> Result<Bed> {
        ensure!((1..=MOST_PORTS).contains(&devices), "a chain has 1 to {MOST_PORTS} devices");
        Bed::build(name, 2, devices)
    }

    fn build(name: &str, ports: usize, devices: usize) -> Result<Bed> {
        ensure!(rustix::process::geteuid().is_root(), "a test bed of network namespaces needs root");
        remove_stale(PREFIX)?;
        let number = BEDS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{name}-{}-{number}", std::process::id());
        let tester = Namespace::new(&format!("{name}-t"))?;
        let named = |i| Namespace::new(&format!("{name}-r{i}"));
        let bed = Bed { tester, devices: (0..devices).map(named).collect::<Result<_>>()?, ports };
        for namespace in bed.devices.iter().chain([&bed.tester]) {
            namespace.ip("link set lo up")?;
        }
        bed.kernel_forwards(true)?;
        let sides = || (0..devices).flat_map(|device| bed.sides(device));
        // A cable between two devices is a port of both.
        sides().filter(|side| side.own > side.peer).try_for_each(|side| bed.plug(&side.own, &side.peer))?;
        sides().try_for_each(|side| bed.address(&side))?;
        Ok(bed)
    }

    /// Whether the kernel forwards what is not taken from it.
    fn kernel_forwards(&self, on: bool) -> Result<()> {
        let value = if on { "1" } else { "0" };
        for device in &self.devices {
            let set = |setting: &str| device.set(setting, value);
            ["ipv4/ip_forward", "ipv6/conf/all/forwarding"].into_iter().try_for_each(set)?;
        }
        Ok(())
    }

    /// The processors by which the kernel forwards: by receive packet steering; without any, by the one that a frame came to, which
    /// between veths is its sender's.
    fn steer(&self, processors: &[usize]) -> Result<()> {
        let mask = processor_mask(processors);
        for (device, namespace) in self.devices.iter().enumerate() {
            for side in self.sides(device) {
                // The files of another namespace's interfaces are seen by a program that was started there alone.
                let mut command = namespace.command("tee");
                command.arg(format!("/sys/class/net/{}/queues/rx-0/rps_cpus", side.own.1));
                feed(command, &mask).context("receive packet steering")?;
            }
        }
        Ok(())
    }

    /// Ports of each device.
    fn device_ports(&self) -> usize {
        if self.devices.len() > 1 { 2 } else { self.ports }
    }

    /// The ports of a device, in the order of their numbers.
    fn sides(&self, device: usize) -> Vec<Side> {
        let last = self.devices.len() - 1;
        let side = |i: usize| {
            let peer = match i {
                0 if device > 0 => (Some(device - 1), "r1".to_owned()),
                1 if device < last => (Some(device + 1), "r0".to_owned()),
                _ => (None, format!("t{i}")),
            };
            let cable = if last > 0 { device + i } else { i };
            Side { own: (Some(device), format!("r{i}")), peer, cable, networks: hosts(i, self.ports) }
        };
        (0..self.device_ports()).map(side).collect()
    }

    fn namespace(&self, number: Option<usize>) -> &Namespace {
        number.map_or(&self.tester, |number| &self.devices[number])
    }

    fn mac(&self, (number, name): &End) -> Result<MacAddr> {
        self.namespace(*number).run(|| Ok(MacAddr(Interface::open(name)?.mac)))
    }

    fn plug(&self, a: &End, b: &End) -> Result<()> {
        let (at, bt) = (self.namespace(a.0), self.namespace(b.0));
        ip(&format!("link add {} netns {} type veth peer name {} netns {}", a.1, at.name, b.1, bt.name))?;
        up(at, &a.1)?;
        up(bt, &b.1)
    }

    /// Addresses, neighbour and routes of a device's port.
    fn address(&self, side: &Side) -> Result<()> {
        let (device, name, cable) = (self.namespace(side.own.0), &side.own.1, side.cable);
        let mac = self.mac(&side.peer)?;
        // The peer has the other address, 1 of the port with the higher name.
        let (own, other) = if side.own > side.peer { (1, 2) } else { (2, 1) };
        let links = [(format!("198.19.{cable}."), "24"), (format!("2001:2:0:{}::", 100 + cable), "64 nodad")];
        for ((link, rest), network) in links.iter().zip(&side.networks) {
            let (length, nodad) = rest.split_once(' ').unwrap_or((rest, ""));
            device.ip(&format!("addr add {link}{own}/{length} dev {name} {nodad}"))?;
            device.ip(&format!("neigh replace {link}{other} lladdr {mac} nud permanent dev {name}"))?;
            device.ip(&format!("route add {network} via {link}{other} dev {name}"))?;
        }
        Ok(())
    }

    /// Opens the tester's ports by the opener of this name.
    ///
    /// # Errors
    /// If there is none, or it cannot open them.
    pub fn open(&self, method: &str) -> Result<Vec<Attached>> {
        let mut ends: Vec<(String, MacAddr)> = Vec::new();
        for side in (0..self.devices.len()).flat_map(|device| self.sides(device)) {
            if side.peer.0.is_none() {
                ends.push((side.peer.1, self.mac(&side.own)?));
            }
        }
        let port = |(i, (name, gateway)): (usize, &(String, MacAddr))| {
            attach(&self.tester, name, method, *gateway, networks(i, self.ports)?)
        };
        ends.iter().enumerate().map(port).collect()
    }

    /// Two ports of the tester that are joined by a cable, c0 and c1, without a device.
    ///
    /// # Errors
    /// As [`Bed::open`].
    pub fn cable(&self, method: &str) -> Result<Vec<Attached>> {
        self.tester.ip("link add c0 type veth peer name c1")?;
        ["c0", "c1"].into_iter().try_for_each(|name| up(&self.tester, name))?;
        let end = |i: usize, name: &str, peer: &str| {
            attach(&self.tester, name, method, self.mac(&(None, peer.to_owned()))?, networks(i, 2)?)
        };
        Ok(vec![end(0, "c0", "c1")?, end(1, "c1", "c0")?])
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

/// Processors as files of the kernel have them: a bit for each, words of 32 bits in hexadecimal, the highest first.
fn processor_mask(processors: &[usize]) -> String {
    let words = processors.iter().max().map_or(1, |highest| highest / 32 + 1);
    let word = |number: usize| {
        let own = processors.iter().filter(|&&processor| processor / 32 == number);
        own.fold(0u32, |bits, processor| bits | 1 << (processor % 32))
    };
    (0..words).rev().map(|number| format!("{:x}", word(number))).collect::<Vec<_>>().join(",")
}

/// As [`hosts`].
fn networks(i: usize, ports: usize) -> Result<[Option<Network>; 2]> {
    let [four, six] = hosts(i, ports);
    Ok([Some(four.parse()?), Some(six.parse()?)])
}

/// Sets an interface up that says nothing by itself and gets work to do for frames that are redirected to it.
pub(crate) fn up(namespace: &Namespace, name: &str) -> Result<()> {
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
    gateway: MacAddr,
    hosts: [Option<Network>; 2],
) -> Result<Attached> {
    // Drivers of veths leave room for them.
    namespace.run(|| open_with(|| Front::with_arrivals(Take::All), name, method, gateway, hosts))
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
    open_with(|| Front::new(Take::All), interface, method, gateway, hosts)
}

fn open_with(
    front: fn() -> causeway_netio::Result<Front>,
    interface: &str,
    method: &str,
    gateway: MacAddr,
    hosts: [Option<Network>; 2],
) -> Result<Attached> {
    let opener = opener::find(method)
        .ok_or_else(|| anyhow!("there are no ports of the kind '{method}'; there are {}", opener::list()))?;
    let front = || Ok(Arc::new(front()?));
    let port = opener.open(&Request { name: interface, promiscuous: false, queues: 1, front: &front })?;
    Attached::new(port, gateway, hosts)
}
