//! The part of any graph that runs in the driver (`causeway run FILE --driver`).
//!
//! Behind each FromDevice on AF_XDP or at tcx the elements that say what they do are compiled to a program, as far as [`part`]
//! has it; the program runs where frames arrive, or packets of the stack ([`port`]). What is cut off goes up with luggage, which the FromDevice unpacks
//! ([`known`]): it has further outputs for that, an entry for each input that packets may go up to. Entries are put into
//! the plan before it runs ([`Driver::enter`]); no handler shows their edges.
//!
//! Elements count what the program has counted ([`tallies`]), whenever somebody asks and ten times a second. What is
//! written to handlers counts before the writer is answered: a program of what the elements say now takes the old one's
//! place. For a hot swap all packets come up as they came, the rings run empty, and the new graph gets its programs when it is
//! in place: so no packet enters a graph by the luggage of another.

mod again;
mod few;
mod known;
mod metadata;
pub mod part;
mod port;
mod routes;
mod slots;
mod tallies;

use crate::drain::drain;
use anyhow::{Context, Result};
use causeway_bpf::GracePeriod;
use causeway_elements::devices::{FRONT, GIVEN_UP, GivenUp, OpenPorts, interface};
use causeway_engine::{Library, NoAnswer, Persistent, Plan, PlanElement, Router};
use causeway_fastpath::Outlet;
use causeway_netio::features::FeatureQuery;
use causeway_netio::front::{self, Front, Take, monotonic_ns};
use causeway_netio::interface::{Interface, name_by_index};
use part::Part;
use port::Port;
use routes::{Copies, Texts};
use slots::Slots;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use tallies::Owed;

/// More than the exits that a program may have.
const NUMBERS: u32 = 1 << 16;
/// Octets of an Ethernet header, which an MTU does not count.
const ETHERNET: u32 = 14;
/// After how long without a round a worker counts as stuck: it is not asked any more, so that others are answered meanwhile.
const STUCK_NS: u64 = 2_000_000_000;

/// What programs are made with.
struct Means {
    library: Library,
    ports: Arc<OpenPorts>,
    front: Arc<Front>,
    given_up: Arc<GivenUp>,
    features: FeatureQuery,
    grace: GracePeriod,
    /// Where packets are redirected to, by programs at XDP and at tcx.
    slots: [Arc<Slots>; 2],
    /// Copies of routing tables.
    copies: Copies,
    /// What elements have still to count.
    owed: Owed,
    /// Bytes that may lie in front of a frame.
    metadata: usize,
    /// The number of the next program's first exit in luggage. 0 says that a packet is as it came.
    next_number: u32,
}

impl Means {
    /// The interfaces that programs at a place redirect to.
    fn slots(&self, place: front::Place) -> &Slots {
        &self.slots[usize::from(place == front::Place::Tcx)]
    }

    /// The place of a ToDevice's interface, if programs there can redirect packets to it now.
    fn slot(&mut self, of: front::Place, device: &PlanElement) -> Option<u32> {
        let name = interface(&device.config)?;
        let Some(to) = self.ports.way_out(&name).and_then(|ifindex| self.outlet(of, ifindex)) else {
            self.slots(of).close(&name);
            return None;
        };
        // It may go down meanwhile, and whoever closes its place may have come before.
        self.slots(of).open_while(&name, to, || self.ports.way_out(&name) == Some(to.ifindex))
    }

    /// What programs at a place redirect to, if they can: an interface, whatever it is called by now.
    fn outlet(&self, of: front::Place, ifindex: u32) -> Option<Outlet> {
        match of {
            front::Place::Xdp => {
                let takes = self.features.get(ifindex).is_ok_and(|features| features.redirect_target());
                // The kernel looks itself.
                takes.then_some(Outlet { ifindex, longest: u32::MAX })
            }
            front::Place::Tcx => {
                let interface = Interface::open(&name_by_index(ifindex)?).ok()?;
                let longest = interface.mtu.saturating_add(ETHERNET);
                (interface.ethernet && interface.index == ifindex).then_some(Outlet { ifindex, longest })
            }
        }
    }

    /// Whether frames of this interface come without luggage.
    fn is_bare(&self, interface: &str) -> bool {
        self.ports.interface(interface).is_some_and(|(ifindex, _)| self.front.is_bare(ifindex))
    }

    /// The number of the first exit of a program that is about to be made.
    fn first_number(&self) -> u32 {
        // After the last number the first ones are free again: nobody knows their programs any more.
        if self.next_number > u32::MAX - NUMBERS { 1 } else { self.next_number }
    }
}

/// The programs of a graph.
pub struct Driver {
    means: Means,
    ports: Vec<Port>,
    /// When the programs were last looked at: how many handlers had been written, and where packets could be redirected to.
    written: u64,
    slots: Vec<Option<u32>>,
    /// What the elements say is to be looked at again: when it was to be, a worker was stuck.
    due: bool,
    /// All packets come up, until the next graph is in place.
    held: bool,
}

impl Driver {
    /// What has no program of any graph yet. From here on all ports that elements open bring luggage.
    pub fn new(library: Library, ports: Arc<OpenPorts>, values: &Persistent) -> Result<Driver> {
        let features = FeatureQuery::new().context("it needs Linux 6.3 or later")?;
        let front = Arc::new(Front::with_luggage(Take::TRANSIT)?);
        front.lease().renew(u64::MAX);
        if let Some(error) = front.why_losses_are_unknown() {
            log::warn!(code = "driver"; "what is lost behind the driver's programs is not counted: {error}");
        }
        let given_up = Arc::new(GivenUp::default());
        let slots = [Arc::new(Slots::new(front::Place::Xdp)?), Arc::new(Slots::new(front::Place::Tcx)?)];
        let grace = GracePeriod::new()?;
        let metadata = metadata::allowed()?;
        // From here on nothing fails: without a driver the graph runs as if none had been asked for.
        let ways = slots.clone();
        // At once: what the kernel redirects to an interface that is down is lost.
        ports.on_down(move |ifindex| ways.iter().for_each(|ways| ways.close_interface(ifindex)));
        let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
        values.insert(FRONT.to_owned(), front.clone());
        values.insert(GIVEN_UP.to_owned(), given_up.clone());
        let means = Means {
            library,
            ports,
            front,
            given_up,
            features,
            grace,
            slots,
            copies: Copies::default(),
            owed: Owed::default(),
            metadata,
            next_number: 1,
        };
        Ok(Driver { means, ports: Vec::new(), written: 0, slots: Vec::new(), due: false, held: false })
    }

    /// Gives the FromDevices of `prepared` entries for packets that go up. It is what is to run of the configuration `plan`,
    /// and has the same elements, besides others.
    pub fn enter(&self, plan: &Plan, mut prepared: Plan) -> Plan {
        let part = Part::of(&self.means.library, plan);
        for (start, _) in part.starts().filter(|&(_, able)| able) {
            let Some(from) = prepared.find(&plan.elements[start].name) else { continue };
            for (element, input) in part.entries(start) {
                let Some(to) = prepared.find(&plan.elements[element].name) else { continue };
                let outputs = &mut prepared.elements[from].pulled_outputs;
                prepared.edges.push(((from, outputs.len()), (to, input)));
                outputs.push(false);
                prepared.entries += 1;
            }
        }
        prepared
    }

    /// Puts programs before the graph that runs, of the configuration `plan`.
    pub fn attach(&mut self, router: &Router, plan: &Plan) {
        let sources = Part::with(&self.means.library, plan, Vec::new());
        self.ports.clear();
        if sources.starts().next().is_none() {
            log::info!(code = "driver"; "nothing runs in the driver: the configuration has no FromDevice");
        }
        self.means.slots.iter().for_each(|slots| slots.clear());
        for (start, _) in sources.starts() {
            let element = &plan.elements[start];
            match interface(&element.config) {
                Some(name) if has_entries(router.plan(), &element.name) => {
                    self.ports.push(Port::new(start, name));
                }
                _ => log::info!(
                    code = "driver";
                    "nothing runs in the driver behind {}: it chooses or cuts packets, or leaves them to the kernel",
                    element.name
                ),
            }
        }
        // Whoever watches the graph that goes on, since another could not take its place, is to miss nothing.
        self.held = answers(router).is_ok() && router.is_watched().unwrap_or(false);
        self.due = true;
        self.refresh(router, plan);
    }

    /// Has the programs be what the elements say now.
    pub fn refresh(&mut self, router: &Router, plan: &Plan) {
        if self.held {
            return;
        }
        self.due = answers(router).is_err();
        if self.due {
            return;
        }
        let Driver { means, ports, .. } = self;
        let mut texts = Texts::default();
        let mut refreshed = ports.iter_mut().map(|port| {
            port.refresh(means, router, plan, &mut texts)?;
            port.copy(router, plan)
        });
        // The first worker that does not answer ends it: to ask takes seconds.
        if let Err(error) = refreshed.try_for_each(|done| done) {
            log::warn!(code = "driver"; "the driver's programs are as before: {error}");
            self.due = true;
            return;
        }
        // As in settling.
        let _ = self.means.owed.settle(router);
    }

    /// To be called again and again: counts, and follows what nobody has told of. While somebody watches packets all come up.
    pub fn look(&mut self, router: &Router, plan: &Plan) {
        // Who is found to be stuck is not asked more.
        if self.try_settle(router).is_err() {
            return;
        }
        self.look_for_room(router, plan);
        let (Ok(watched), Ok(written)) = (router.is_watched(), router.written()) else { return };
        match (watched, self.held) {
            (true, false) => {
                // It is asked again soon.
                let _ = self.withdraw(router);
                return;
            }
            (false, true) => return self.attach(router, plan),
            (true, true) => return,
            (false, false) => {}
        }
        let devices = plan.elements.iter().filter(|element| element.class == "ToDevice");
        let places: BTreeSet<_> = self.ports.iter().map(|port| port.place(&self.means)).collect();
        let mut ways = devices.flat_map(|device| places.iter().map(move |&place| (place, device)));
        let slots = ways.by_ref().map(|(place, device)| self.means.slot(place, device)).collect::<Vec<_>>();
        let due = self.due || self.ports.iter().any(Port::is_due);
        if due || (written, &slots) != (self.written, &self.slots) {
            (self.written, self.slots) = (written, slots);
            return self.refresh(router, plan);
        }
        for port in &mut self.ports {
            // As in settling.
            let _ = port.copy(router, plan);
        }
    }

    /// Has ports go without a program and without luggage whose frames have no room for it. The kernel has those frames until then,
    /// and not the graph, which may be a firewall.
    fn look_for_room(&mut self, router: &Router, plan: &Plan) {
        let sources = Part::with(&self.means.library, plan, Vec::new());
        let starts = sources.starts().filter_map(|(start, _)| interface(&plan.elements[start].config));
        for name in starts.collect::<Vec<_>>() {
            let Some((ifindex, _)) = self.means.ports.interface(&name) else { continue };
            if !self.means.front.lacks_room(ifindex) {
                continue;
            }
            log::warn!(
                code = "driver-no-room";
                "{name}: nothing runs in the driver from now on: it leaves no room for metadata in front of frames, which were \
                 the kernel's (port.xdp_pass_no_room)"
            );
            let Driver { means, ports, .. } = self;
            ports.iter_mut().filter(|port| port.is_at(&name)).for_each(|port| port.remove(means));
            drain(&router.pulses());
            // Whoever receives them looks for luggage no more before frames come without.
            means.given_up.set(&name, None);
            if let Err(error) = means.front.set_bare(ifindex) {
                log::warn!(code = "driver-no-room"; "{name}: its frames are the kernel's still: {error}");
            }
        }
    }

    /// Has the elements count what the programs have counted.
    pub fn settle(&mut self, router: &Router) {
        // A worker that does not answer is told of by whoever asks it.
        let _ = self.try_settle(router);
    }

    fn try_settle(&mut self, router: &Router) -> Result<(), NoAnswer> {
        answers(router)?;
        let more = self.ports.iter_mut().flat_map(Port::take).collect();
        self.means.owed.owe(more);
        self.means.owed.settle(router)
    }

    /// Elements have still to count this.
    #[cfg(test)]
    pub fn owe(&mut self, counts: Vec<(causeway_engine::Counter, u64)>) {
        self.means.owed.owe(counts);
    }

    /// Has all packets come up as they come from now on, and waits until those have that were given up before.
    ///
    /// # Errors
    /// A worker that does not answer. Its elements are owed counts, which they would never have if another graph took their place.
    pub fn withdraw(&mut self, router: &Router) -> Result<(), NoAnswer> {
        self.held = true;
        self.ports.iter_mut().for_each(|port| port.remove(&mut self.means));
        drain(&router.pulses());
        self.ports.iter_mut().for_each(|port| port.forget(&self.means));
        self.try_settle(router)
    }
}

/// Whether no worker is stuck; the error is the first that is. Each question to one takes seconds, and there are many.
fn answers(router: &Router) -> Result<(), NoAnswer> {
    let now_ns = monotonic_ns();
    // Under simulated time none has a pulse.
    let is_stuck = |latest_ns: u64| latest_ns > 0 && now_ns.saturating_sub(latest_ns) >= STUCK_NS;
    let stuck = router.pulses().iter().position(|pulse| is_stuck(pulse.latest_ns()));
    stuck.map_or(Ok(()), |worker| Err(NoAnswer(worker)))
}

/// Whether an element has outputs for packets that go up ([`Driver::enter`]).
fn has_entries(running: &Plan, element: &str) -> bool {
    let entries = &running.edges[running.edges.len().saturating_sub(running.entries)..];
    entries.iter().any(|((from, _), _)| running.elements[*from].name == element)
}
