//! Where trials are made: between network namespaces, or interfaces of this machine.

use super::Description;
use crate::bed::{self, Bed, Device, Kind, VETH_NOTE};
use crate::inside::Meter;
use crate::inside::reported::Reported;
use crate::network::Network;
use crate::tester::{Alone, Attached, Control, carries_default_route};
use anyhow::{Context, Result, anyhow, ensure};
use causeway_netio::interface::Interface;
use causeway_packet::wire::MacAddr;
use causeway_results::traffic::line_rate_fps;
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What results say of tests of interfaces.
const SELF_TEST_NOTE: &str = "interfaces of this machine; the self-test is over a cable of veth, which is no proof that \
                              the tester does as much over these interfaces";

/// An interface of this machine that is a port of the tester.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Its name.
    pub name: String,
    /// Ethernet address of the device's port on its other side.
    pub gateway: String,
    /// The IPv4 hosts behind it.
    #[serde(default)]
    pub hosts4: Option<Network>,
    /// The IPv6 hosts behind it.
    #[serde(default)]
    pub hosts6: Option<Network>,
}

impl Side {
    fn gateway(&self) -> Result<MacAddr> {
        self.gateway.parse().map_err(|e| anyhow!("gateway of {}: {e}", self.name))
    }
}

/// A bed, or interfaces and a bed for the self-test.
pub struct Ground<'a> {
    bed: Bed,
    interfaces: &'a [Side],
    method: &'a str,
}

/// A device that is ready, here or there.
pub struct Ready(Option<Device>);

impl Ready {
    /// For trials of it.
    pub fn control(&self, interrupted: Arc<AtomicBool>) -> Control {
        match &self.0 {
            Some(device) => device.control(interrupted),
            None => Control::new(interrupted),
        }
    }

    /// What it has counted itself, if it can be asked.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn reported(&self) -> Result<Option<Reported>> {
        self.0.as_ref().map_or(Ok(None), Device::reported)
    }

    /// What it does if it forwards nothing.
    pub fn alone(&self) -> Option<Alone> {
        self.0.as_ref().and_then(Device::alone)
    }

    /// Entries of its route cache, those in use and all, if it has one.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn cache_entries(&self) -> Result<Option<[u64; 2]>> {
        self.0.as_ref().map_or(Ok(None), Device::cache_entries)
    }

    /// What its processor time is, if that is known; `processors` are the device's.
    pub fn meter(&self, processors: &[usize]) -> Option<Meter> {
        self.0.as_ref().and_then(|device| device.meter(processors))
    }

    /// Its processes.
    pub fn ids(&self) -> Vec<u32> {
        self.0.as_ref().map(Device::ids).unwrap_or_default()
    }
}

impl<'a> Ground<'a> {
    /// What the description asks for. `yes`: also on the interface that carries the default route.
    ///
    /// # Errors
    /// If it is not possible here.
    pub fn new(description: &'a Description, yes: bool) -> Result<Ground<'a>> {
        let interfaces = &description.interfaces[..];
        for side in interfaces {
            // Before anything takes time.
            Interface::open(&side.name).with_context(|| format!("port {}", side.name))?;
            side.gateway()?;
            ensure!(
                yes || !carries_default_route(&side.name),
                "{0} carries the default route: test traffic there may reach others; if that is meant, say --yes",
                side.name
            );
        }
        let bed = match (description.chain, interfaces.len()) {
            (_, 1..) => Bed::new("", 1)?,
            (2.., 0) => {
                ensure!(description.ports == 2, "a chain of devices has two ports");
                Bed::chain("", description.chain)?
            }
            _ => Bed::new("", description.ports)?,
        };
        Ok(Ground { bed, interfaces, method: &description.method })
    }

    /// What results say of it.
    pub fn note(&self) -> &'static str {
        if self.interfaces.is_empty() { VETH_NOTE } else { SELF_TEST_NOTE }
    }

    /// The bed, which has the cable for the self-test.
    pub fn bed(&self) -> &Bed {
        &self.bed
    }

    /// Interfaces and their drivers, one for all of a kind: the tester's and the device's first.
    pub fn drivers(&self) -> String {
        let driver = |name: &str| {
            let found = Interface::open(name).map(|interface| interface.driver).unwrap_or_default();
            format!("{name}: {}", if found.is_empty() { "not known" } else { &found })
        };
        if self.interfaces.is_empty() {
            let ends = [(&self.bed.tester, "t0"), (&self.bed.devices[0], "r0")];
            let ends = ends.map(|(of, name)| of.run(|| Ok(driver(name))).unwrap_or_default());
            return ends.join(", ");
        }
        self.interfaces.iter().map(|side| driver(&side.name)).collect::<Vec<_>>().join(", ")
    }

    /// The kernel's settings that forwarding depends on, where the device is of a bed.
    pub fn kernel_settings(&self) -> Option<String> {
        self.interfaces.is_empty().then(|| self.bed.kernel_settings())
    }

    /// Starts a device.
    ///
    /// # Errors
    /// If it cannot be, or is not ready in time.
    pub fn start(&self, kind: &Kind, processors: &[usize]) -> Result<Ready> {
        if self.interfaces.is_empty() {
            return Device::start(kind, &self.bed, processors).map(|device| Ready(Some(device)));
        }
        ensure!(
            *kind == Kind::External {},
            "between interfaces of this machine stands what is there: a device of the kind external"
        );
        Ok(Ready(None))
    }

    /// Opens the tester's ports.
    ///
    /// # Errors
    /// If one is not there or cannot be opened.
    pub fn open(&self) -> Result<Vec<Attached>> {
        if self.interfaces.is_empty() {
            return self.bed.open(self.method);
        }
        let open = |side: &Side| {
            let port = bed::open(&side.name, self.method, side.gateway()?, [side.hosts4, side.hosts6]);
            port.with_context(|| format!("port {}", side.name))
        };
        self.interfaces.iter().map(open).collect()
    }

    /// Bits a second that each port carries, where the kernel says.
    pub fn bits_per_s(&self) -> Option<f64> {
        match self.interfaces.iter().map(|side| speed(&side.name)).reduce(|a, b| Some(a?.min(b?))) {
            Some(slowest) => slowest,
            None => self.bed.tester.run(|| Ok(speed("t0"))).ok().flatten(),
        }
    }
}

/// Bits a second of an interface of this network namespace, as its driver has it.
fn speed(interface: &str) -> Option<f64> {
    let index = Interface::open(interface).ok()?;
    let text = std::fs::read_to_string(format!("/sys/class/net/{}/speed", index.name)).ok()?;
    text.trim().parse::<f64>().ok().filter(|&megabits| megabits > 0.0).map(|megabits| megabits * 1e6)
}

/// Fails if `rate_fps` frames a second of `length` bytes are more than the interface carries.
///
/// # Errors
/// With what it carries.
pub fn check_rate(interface: &str, rate_fps: f64, length: f64) -> Result<()> {
    let Some(bits_per_s) = speed(interface) else { return Ok(()) };
    beyond(interface, bits_per_s, rate_fps, length)
}

fn beyond(interface: &str, bits_per_s: f64, rate_fps: f64, length: f64) -> Result<()> {
    let most = line_rate_fps(bits_per_s, length);
    ensure!(
        rate_fps <= most,
        "{rate_fps:.0} frames/s of {length:.0} bytes are beyond {interface}: at {:.0} Mbit/s it carries {most:.0}",
        bits_per_s / 1e6
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_beyond_the_interface_is_refused_with_what_it_carries() {
        assert!(beyond("eth1", 1e9, 1_488_095.0, 64.0).is_ok());
        let error = beyond("eth1", 1e9, 1_488_096.0, 64.0).expect_err("too much").to_string();
        assert_eq!(error, "1488096 frames/s of 64 bytes are beyond eth1: at 1000 Mbit/s it carries 1488095");
        assert!(
            check_rate("no-such-interface", 1e12, 64.0).is_ok(),
            "that it is not there is said elsewhere"
        );
    }

    #[test]
    fn interfaces_that_are_not_there_are_refused_before_anything_is_set_up() {
        let refused = |name: &str, gateway: &str| {
            let text = format!("[[interface]]\nname = \"{name}\"\ngateway = \"{gateway}\"\n");
            let description = Description::read(&text).expect("a description");
            format!("{:#}", Ground::new(&description, true).err().expect("refused"))
        };
        let error = refused("no-such-if", "2:0:0:0:0:1");
        assert!(error.starts_with("port no-such-if: "), "{error}");
        let error = refused("lo", "x");
        assert!(error.starts_with("gateway of lo: "), "{error}");
    }

    #[test]
    fn between_interfaces_stands_what_is_there() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root to make network namespaces");
        }
        let text = "[[interface]]\nname = \"lo\"\ngateway = \"2:0:0:0:0:1\"\n";
        let description = Description::read(text).expect("a description");
        let ground = Ground::new(&description, false).expect("a ground");
        let error = ground.start(&Kind::Kernel {}, &[]).err().expect("refused").to_string();
        assert!(error.contains("external"), "{error}");
    }
}
