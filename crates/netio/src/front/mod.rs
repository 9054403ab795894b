//! The programs in front of the ports: what goes to user space, and what the kernel keeps.
//!
//! One [`Front`] serves all AF_XDP ports of a process. On every port sits the same small program, which goes through a
//! gate into the one that decides; when the process dies the gate closes and everything passes to the kernel
//! (`gate`). Behind it, by the record of the port ([`Rules`], changed while frames come), a frame
//!
//! - is taken, for graphs that own their interface as Click's do ([`Take::All`]), or
//! - is taken if it is surely in transit ("sure or pass"): what a plain router would forward by its destination alone,
//!   without a look at options, neighbours or itself, and only while the [`Lease`] stands ([`Take::Transit`]), or
//! - is passed to the kernel.
//!
//! At tcx, on interfaces where packets of the stack come in ([`Place`]), the same is judged, and what would be taken in transit
//! is forwarded by the graph's program or left to the kernel. Where ports bring luggage all of them are taken there instead: they
//! leave by an interface whose wire is in user space (`parcel.rs`).
//!
//! What would be taken in transit goes on in the program of the port's graph first, where there is one
//! ([`Front::set_graph`]): it does in the driver what the graph in user space would do, or gives the frame up as it came. Behind
//! ports that bring luggage ([`Front::with_luggage`]) that is so for frames of ports that take everything as well, and a frame
//! may come up half done.
//! What is taken goes to the socket of the receiving queue, with "pass" as the fallback where there is none. Every
//! frame is counted by [`Reason`]. [`Bystander`] stands at ports whose packets are all left to the kernel.

mod aside;
mod bare;
mod bystander;
mod checksums;
mod claim;
mod code;
mod ends;
mod gate;
mod graphs;
mod lease;
mod links;
mod local;
mod losses;
mod parcels;
mod place;
mod port;
mod ports;
mod reason;
mod side;
mod skb;
#[cfg(test)]
mod tests;

pub use aside::Aside;
pub use bystander::{Bystander, is_a_bystander};
pub use claim::Claim;
pub use code::{Maps, code};
pub use lease::{Lease, monotonic_ns};
pub use local::LocalAddresses;
pub use place::Place;
pub use port::{Rules, Take};
pub use reason::Reason;

use crate::{Error, ErrorKind, Result};
use causeway_bpf::{Map, MapKind, program_name};
use graphs::Graphs;
use links::Links;
use losses::Losses;
use port::{PortRecord, flag};
use ports::Ports;
use side::Side;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name of the program that is attached to the ports.
const ATTACHED: &str = "causeway_gate";
/// Ports that a process can have.
const PORTS: u32 = 256;
/// Queues of all ports together.
const SOCKETS: u32 = 4_096;

/// The programs and maps that all ports of the process share which go by the kernel's interfaces.
#[derive(Debug)]
pub struct Front {
    at_xdp: Side,
    /// Only where there are graphs: without one nothing is done there.
    at_tcx: Option<Side>,
    lease: Lease,
    local: LocalAddresses,
    ports: Ports,
    sockets: Map,
    counters: Map,
    /// The records of the ports, by interface index.
    claims: Mutex<BTreeMap<u32, PortRecord>>,
    /// What ports for transit are to take, by interface index, also of those that are none yet. Locked before the claims.
    transit: Mutex<BTreeMap<u32, Transit>>,
    /// What the others take.
    first: Take,
    /// Whether what is taken has its time of arrival in front.
    arrivals: bool,
    /// Who counts what is lost behind programs of graphs at XDP, if there may be any.
    losses: Option<Result<Losses>>,
    /// What attaches the gate to ports at XDP.
    links: Links,
}

impl Front {
    /// Loads the programs. The lease has run out, and the set of this machine's addresses is empty.
    ///
    /// A port for transit takes `first` until its rules are changed: [`Take::NOTHING`] where somebody decides for each
    /// port what the kernel would forward, [`Take::TRANSIT`] where nobody does.
    ///
    /// # Errors
    /// As [`Map::new`] and [`Program::load`].
    pub fn new(first: Take) -> Result<Front> {
        Front::load(first, Behind::Sockets)
    }

    /// The same, with room for programs of graphs ([`Front::set_graph`]).
    ///
    /// # Errors
    /// As [`Front::new`].
    pub fn with_graphs(first: Take) -> Result<Front> {
        Front::load(first, Behind::Graphs)
    }

    /// The same for ports whose receivers look for luggage ([`Front::set_graph`]): there also ports that take everything have
    /// programs of graphs, and what no such program has seen is taken with luggage of 16 zeros right in front of the frame.
    ///
    /// # Errors
    /// As [`Front::new`].
    pub fn with_luggage(first: Take) -> Result<Front> {
        Front::load(first, Behind::GraphsWithLuggage)
    }

    /// The same as [`Front::new`], where what is taken has its time of arrival right in front: eight bytes, nanoseconds of
    /// `CLOCK_TAI`. Frames of drivers that leave no room there are all the kernel's.
    ///
    /// # Errors
    /// As [`Front::new`].
    pub fn with_arrivals(first: Take) -> Result<Front> {
        Front::load(first, Behind::SocketsWithArrivals)
    }

    /// Whether what is taken has its time of arrival in front.
    pub fn tells_arrivals(&self) -> bool {
        self.arrivals
    }

    fn load(first: Take, behind: Behind) -> Result<Front> {
        let (lease, local) = (Lease::new()?, LocalAddresses::new()?);
        let reasons = Reason::ALL.len() as u32;
        let ports = Ports::new()?;
        let sockets = Map::new(MapKind::XskMap, "sockets", 4, 4, SOCKETS)?;
        let counters = Map::new(MapKind::PerCpuArray, "xdp_counters", 4, 8, reasons * PORTS)?;
        let [local4, local6, local_filter] = local.maps();
        let [all, near] = ports.maps();
        let maps = Maps {
            ports: all,
            near,
            sockets: sockets.as_fd(),
            counters: counters.as_fd(),
            lease: lease.map().as_fd(),
            local4,
            local6,
            local_filter,
            graphs: None,
            luggage: behind == Behind::GraphsWithLuggage,
            arrivals: behind == Behind::SocketsWithArrivals,
        };
        let with_graphs = matches!(behind, Behind::Graphs | Behind::GraphsWithLuggage);
        let arrivals = maps.arrivals;
        let at_xdp = Side::load(&maps, Place::Xdp, with_graphs)?;
        let at_tcx = with_graphs.then(|| Side::load(&maps, Place::Tcx, true)).transpose()?;
        let losses = with_graphs.then(|| Losses::listen(&maps));
        let (claims, transit) = (Mutex::default(), Mutex::default());
        let links = Links::default();
        Ok(Front {
            at_xdp,
            at_tcx,
            lease,
            local,
            ports,
            sockets,
            counters,
            claims,
            transit,
            first,
            arrivals,
            losses,
            links,
        })
    }

    fn side(&self, place: Place) -> Option<&Side> {
        match place {
            Place::Xdp => Some(&self.at_xdp),
            Place::Tcx => self.at_tcx.as_ref(),
        }
    }

    /// The number of the program that is attached at XDP; none if the kernel does not say.
    pub fn number_at_xdp(&self) -> Option<u32> {
        self.at_xdp.gate.root.id().ok()
    }

    /// The number of the program that is attached at tcx, as [`causeway_bpf::tcx_programs`] shows it; none if there is none.
    pub fn number_at_tcx(&self) -> Option<u32> {
        self.at_tcx.as_ref()?.gate.root.id().ok()
    }

    /// The right to forward.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// The addresses that the kernel keeps for itself.
    pub fn local(&self) -> &LocalAddresses {
        &self.local
    }

    /// Makes room for a port with `queues` queues and frames of at most `longest` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if the interface is a port already; [`ErrorKind::Unsupported`] beyond 256 ports or 4 096
    /// queues in all.
    pub fn claim(self: &Arc<Self>, ifindex: u32, queues: u32, longest: u32, rules: Rules) -> Result<Claim> {
        self.claim_at(Place::Xdp, ifindex, Room { queues, longest, above: 0 }, rules)
    }

    /// Makes room for a port at tcx with this Ethernet address, if its packets have Ethernet headers, which takes nothing but what its graph's program forwards.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if the interface is a port already; [`ErrorKind::Unsupported`] beyond 256 ports, or if there is no
    /// room for graphs.
    pub fn claim_at_tcx(self: &Arc<Self>, ifindex: u32, mac: Option<[u8; 6]>) -> Result<Claim> {
        let rules = Rules { mac, take: self.first, partial_checksums: false };
        self.claim_at(Place::Tcx, ifindex, Room { queues: 0, longest: u32::MAX, above: 0 }, rules)
    }

    /// Makes room for a port at tcx whose packets are all taken, each as a parcel (`parcel.rs`) that leaves by the interface
    /// `above`.
    ///
    /// # Errors
    /// As [`Front::claim_at_tcx`].
    pub fn claim_all_at_tcx(self: &Arc<Self>, ifindex: u32, above: u32) -> Result<Claim> {
        let rules = Rules { mac: None, take: Take::All, partial_checksums: false };
        self.claim_at(Place::Tcx, ifindex, Room { queues: 0, longest: u32::MAX, above }, rules)
    }

    /// Whether what is taken brings luggage, also at tcx.
    pub fn brings_luggage(&self) -> bool {
        self.at_xdp.graphs.as_ref().is_some_and(Graphs::has_luggage)
    }

    /// Whether there can be ports at tcx.
    pub fn has_room_at_tcx(&self) -> bool {
        self.at_tcx.is_some()
    }

    /// Where the program of a port is; none of what is no port.
    pub fn place_of(&self, ifindex: u32) -> Option<Place> {
        self.claims().get(&ifindex).map(|port| port.place)
    }

    #[expect(clippy::disallowed_methods, reason = "when a port is opened")]
    fn claim_at(
        self: &Arc<Self>,
        place: Place,
        ifindex: u32,
        Room { queues, longest, above }: Room,
        mut rules: Rules,
    ) -> Result<Claim> {
        let graphs = self.side(place).map(|side| side.graphs.as_ref());
        let no_side = || {
            Error::new(
                ErrorKind::Unsupported,
                "ports at tcx are those of `causeway up --driver` and `causeway run --driver`: leave METHOD TCX out",
            )
        };
        let graphs = graphs.ok_or_else(no_side)?;
        // To the end, or rules that change meanwhile would be missed.
        let transit = self.transit.lock().unwrap_or_else(PoisonError::into_inner);
        if rules.take != Take::All {
            rules.take = self.first;
            if let Some(Transit { mac, ipv4, ipv6 }) = transit.get(&ifindex).copied() {
                rules = Rules { mac, take: Take::Transit { ipv4, ipv6 }, ..rules };
            }
        }
        let mut claims = self.claims();
        if claims.contains_key(&ifindex) {
            return Err(Error::new(ErrorKind::Busy, format!("interface {ifindex} is a port already")));
        }
        let full = || Error::new(ErrorKind::Unsupported, format!("no room for {queues} more queues"));
        let mut counters = (0..PORTS).map(|number| number * Reason::ALL.len() as u32);
        let free = |first: &u32| claims.values().all(|c| c.first_counter != *first);
        let first_counter = counters.find(free).ok_or_else(full)?;
        let first_socket = gap(claims.values(), queues).ok_or_else(full)?;
        let graph = first_counter / Reason::ALL.len() as u32;
        let bare = graphs.is_some_and(|graphs| graphs.known().bare.contains(&ifindex));
        let record =
            PortRecord { first_socket, queues, first_counter, longest, rules, graph, place, bare, above };
        if let Some(graphs) = graphs {
            graphs.begin(ifindex, graph)?;
        }
        self.ports.insert(ifindex, &record)?;
        claims.insert(ifindex, record);
        drop(claims);
        Claim::new(self.clone(), ifindex, place)
    }

    /// Changes a port's Ethernet address, or that its packets have none, and which versions are taken, now or once the interface
    /// is a port; nothing if it is one that takes everything. At XDP all frames have one.
    ///
    /// # Errors
    /// What bpf(2) says.
    #[expect(clippy::disallowed_methods, reason = "the control side")]
    pub fn set_transit(&self, ifindex: u32, mac: Option<[u8; 6]>, ipv4: bool, ipv6: bool) -> Result<()> {
        let mut transit = self.transit.lock().unwrap_or_else(PoisonError::into_inner);
        match (ipv4, ipv6) {
            (false, false) => transit.remove(&ifindex),
            _ => transit.insert(ifindex, Transit { mac, ipv4, ipv6 }),
        };
        match self.claims().get_mut(&ifindex) {
            Some(record) if record.rules.take != Take::All => {
                let rules = Rules { mac, take: Take::Transit { ipv4, ipv6 }, ..record.rules };
                let changed = PortRecord { rules, ..*record };
                if changed != *record {
                    self.ports.insert(ifindex, &changed)?;
                    *record = changed;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Frames of all ports counted for `reason`; those of a port that cannot be read are none.
    pub fn count_all(&self, reason: Reason) -> u64 {
        let counter = |port: &PortRecord| self.counters.per_cpu_sum(port.first_counter + reason as u32);
        self.claims().values().filter_map(|port| counter(port).ok()).sum()
    }

    /// Whether there are ports at this place.
    pub fn has_ports_at(&self, place: Place) -> bool {
        self.claims().values().any(|port| port.place == place)
    }

    #[expect(clippy::disallowed_methods, reason = "the control side")]
    fn claims(&self) -> MutexGuard<'_, BTreeMap<u32, PortRecord>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is behind the program of the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    Sockets,
    SocketsWithArrivals,
    Graphs,
    GraphsWithLuggage,
}

/// What a port needs room for.
#[derive(Clone, Copy, Debug)]
struct Room {
    queues: u32,
    longest: u32,
    above: u32,
}

/// What a port for transit is to take.
#[derive(Clone, Copy, Debug)]
struct Transit {
    mac: Option<[u8; 6]>,
    ipv4: bool,
    ipv6: bool,
}

/// The first run of `queues` places among the sockets that no port has.
fn gap<'a>(taken: impl Iterator<Item = &'a PortRecord>, queues: u32) -> Option<u32> {
    let mut runs: Vec<(u32, u32)> = taken.map(|r| (r.first_socket, r.first_socket + r.queues)).collect();
    runs.sort_unstable();
    let mut free = 0;
    for (begin, end) in runs {
        if begin - free >= queues {
            break;
        }
        free = end;
    }
    (free + queues <= SOCKETS).then_some(free)
}

/// Whether the program with this number is what a front attaches to its ports, of whatever process that is alive: none
/// outlives its own. False as well if the kernel may not be asked, which takes CAP_SYS_ADMIN.
pub fn is_of_a_front(program: u32) -> bool {
    program_name(program).is_ok_and(|name| name == ATTACHED)
}
