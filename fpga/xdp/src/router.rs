//! Cards on interfaces: one program each, a device map between them.

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::program::{Maps, assemble};
use causeway_bpf::{Map, MapKind, Program, ProgramKind, XdpLink, XdpMode};
use causeway_netio::features::FeatureQuery;
use causeway_netio::interface::Interface;
use causeway_netio::offload::{Offload, OffloadGuard};
use causeway_nic_driver::rules::MAX_NICS;
use causeway_nic_driver::{Mac, RuleTable};
use std::os::fd::AsFd;

/// The device map: the interface of each card, none at first.
///
/// # Errors
/// As [`Map::new`].
pub fn ports() -> Result<Map> {
    Ok(Map::new(MapKind::DevMap, "nic_ports", 4, 4, MAX_NICS as u32)?)
}

/// One card: its program, loaded, and what it counts.
#[derive(Debug)]
pub struct Card {
    nic: u8,
    program: Program,
    counters: Counters,
}

impl Card {
    /// Compiles and loads the program of card `nic`, which redirects by `ports`.
    ///
    /// # Errors
    /// A table that fails its checks or lacks the card; missing privileges.
    pub fn load(table: &RuleTable, nic: u8, ports: &Map) -> Result<Self> {
        let counters = Counters::new(nic, table.nics.len() as u8)?;
        let program = load(table, nic, ports, &counters)?;
        Ok(Self { nic, program, counters })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn load(table: &RuleTable, nic: u8, ports: &Map, counters: &Counters) -> Result<Program> {
    let maps = Maps { ports: ports.as_fd(), counters: counters.map().as_fd() };
    Ok(Program::load(ProgramKind::Xdp, &format!("nic{nic}"), &assemble(table, nic, maps)?)?)
}

/// A card on its interface.
#[derive(Debug)]
struct Port {
    card: Card,
    link: XdpLink,
    interface: Interface,
    reachable: bool,
    /// Merged packets and tags taken out of frames are not what came from the wire.
    _offloads: OffloadGuard,
}

/// A router: the cards of a table on as many interfaces, until it is dropped.
#[derive(Debug)]
pub struct Router {
    ports: Map,
    cards: Vec<Port>,
}

impl Router {
    /// Puts the programs of `table` on `interfaces`, card 0 on the first.
    ///
    /// An interface that takes no redirected frames (a veth whose peer has neither XDP nor GRO, a driver without
    /// redirects) is left out of the device map, so that what is routed to it takes the slow path; see
    /// [`Router::reachable`].
    ///
    /// # Errors
    /// A table that fails its checks; interfaces that are not there, are down, or differ from the table in number
    /// or address or from each other in MTU; an interface that has a program already, or whose driver has no XDP;
    /// missing privileges.
    pub fn attach(table: &RuleTable, interfaces: &[String], mode: XdpMode) -> Result<Self> {
        let interfaces = open(interfaces)?;
        check(table, &interfaces)?;
        let ports = ports()?;
        let mut cards = Vec::new();
        for (nic, interface) in (0..).zip(interfaces) {
            let card = Card::load(table, nic, &ports)?;
            let offloads = OffloadGuard::turn_off(&interface, &[Offload::Lro, Offload::RxVlan])?;
            if let Some(stuck) = offloads.stuck.first() {
                let name = &interface.name;
                return Err(Error::Interfaces(format!(
                    "{name}: {stuck:?} cannot be turned off, and the program would see other frames than the wire"
                )));
            }
            let link = XdpLink::attach(card.program(), &interface.name, interface.index, mode)?;
            cards.push(Port { card, link, interface, reachable: false, _offloads: offloads });
        }
        // Only now: some drivers take redirected frames only while they have a program themselves.
        for port in &mut cards {
            port.reachable = mode == XdpMode::Generic || takes_redirects(port.interface.index);
            if port.reachable {
                ports.insert_u32(port.card.nic.into(), port.interface.index)?;
            }
        }
        Ok(Self { ports, cards })
    }

    /// Puts another table in the place of the present one, with as many cards. Each card changes between two
    /// frames; the cards change one after another. On an error those that have not changed go on as before.
    ///
    /// # Errors
    /// As [`Router::attach`].
    pub fn replace(&mut self, table: &RuleTable) -> Result<()> {
        let interfaces: Vec<Interface> = self.cards.iter().map(|port| port.interface.clone()).collect();
        check(table, &interfaces)?;
        let mut programs = Vec::new();
        for Port { card, .. } in &self.cards {
            programs.push(load(table, card.nic, &self.ports, &card.counters)?);
        }
        for (port, program) in self.cards.iter_mut().zip(programs) {
            port.link.replace(&program)?;
            port.card.program = program;
        }
        Ok(())
    }

    /// The interfaces' names, and whether each could be put into the device map, by card.
    pub fn reachable(&self) -> impl Iterator<Item = (&str, bool)> {
        self.cards.iter().map(|port| (port.interface.name.as_str(), port.reachable))
    }

    /// The counters of each card.
    pub fn counters(&self) -> impl Iterator<Item = &Counters> {
        self.cards.iter().map(|port| port.card.counters())
    }
}

fn open(names: &[String]) -> Result<Vec<Interface>> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for name in names {
        let interface = Interface::open(name)?;
        if interfaces.iter().any(|other| other.index == interface.index) {
            return Err(Error::Interfaces(format!("{name}: named twice")));
        }
        interfaces.push(interface);
    }
    Ok(interfaces)
}

/// Whether `interfaces` can be the cards of `table`.
fn check(table: &RuleTable, interfaces: &[Interface]) -> Result<()> {
    table.check()?;
    let refuse = |text: String| Err(Error::Interfaces(text));
    if interfaces.len() != table.nics.len() {
        let (cards, given) = (table.nics.len(), interfaces.len());
        return refuse(format!("the rules have {cards} cards, but there are {given} interfaces"));
    }
    for (nic, (interface, &mac)) in interfaces.iter().zip(&table.nics).enumerate() {
        let (name, own) = (&interface.name, Mac(interface.mac));
        if own != mac {
            return refuse(format!(
                "{name} has the address {own:?}, but card {nic} of the rules has {mac:?}: correct the rules, or \
                 `ip link set dev {name} address {mac:?}`"
            ));
        }
        if interface.mtu != interfaces[0].mtu {
            let (other, mtu) = (&interfaces[0].name, interface.mtu);
            return refuse(format!(
                "{name} has an MTU of {mtu} and {other} one of {}: what fits the larger would be lost on the way \
                 to the smaller",
                interfaces[0].mtu
            ));
        }
        if !interface.up {
            return refuse(format!("{name} is down: `ip link set dev {name} up`"));
        }
    }
    Ok(())
}

/// Kernels before 6.3 cannot be asked; there it is up to who chose the interface.
fn takes_redirects(ifindex: u32) -> bool {
    FeatureQuery::new().and_then(|query| query.get(ifindex)).is_ok_and(|features| features.redirect_target())
}
