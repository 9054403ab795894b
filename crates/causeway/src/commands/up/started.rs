//! What is done once the workers run: the place is taken, and may be asked for from then on.

use super::classes::Classes;
use super::follow::Unsaid;
use super::graph;
use super::way::{self, Taking};
use super::{STARTING, names_at};
use crate::attendant::{Attendant, Present};
use crate::cli::Attach;
use crate::commands::run;
use crate::control::Listener;
use crate::handover::{Old, Running};
use crate::lease::Lease;
use crate::place::Place;
use crate::ports::Port;
use crate::session::Session;
use anyhow::Result;
use causeway_elements::devices::OpenPorts;
use causeway_netio::front::Front;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

/// What a router goes on with that has started.
pub struct Starting<'a> {
    pub lease: Lease,
    pub front: Arc<Front>,
    pub unsaid: Arc<Unsaid>,
    pub place: &'a Arc<Place>,
    /// The place, if it is another's until now.
    pub new: Option<Taking>,
    pub open_ports: Arc<OpenPorts>,
    /// The ports that it forwards between.
    pub ports: &'a [Port],
    pub classes: Classes,
    /// The ports that are to be attached, whenever they change.
    pub changes: Receiver<Vec<Present>>,
    /// Where the next one asks for the place. Its file goes with the router.
    pub upgrades: &'a OnceLock<Listener>,
}

impl Starting<'_> {
    /// Takes the place, and forwards from now on as long as it is right.
    ///
    /// # Errors
    /// The place cannot be taken, or no thread can be started.
    pub fn finish(self, session: &Session) -> Result<Option<Lease>> {
        let Starting { lease, front, unsaid, place, new, open_ports, ports, .. } = self;
        run::require_workers(session, &lease);
        let listener = match new {
            Some(new) => {
                let listener = new.take(place, &unsaid)?;
                // Those of ports that are elsewhere than before lead to nothing.
                front.forget_links();
                listener
            }
            None => way::listen(&place.claim),
        };
        lease.objector().withdraw(STARTING);
        // Of one that went and came back, by the same index, the attendant may see nothing.
        session.follow(&open_ports, OpenPorts::is_back_as_it_was);
        let present = ports.iter().map(|p| (p.name.clone(), p.index)).collect();
        let names: Vec<String> = ports.iter().map(|p| p.name.clone()).collect();
        let (at_tcx, classes) = (names_at(ports, Attach::Tcx), self.classes);
        let graph = move |there: &[String]| graph::text(&names, there, &at_tcx, &classes);
        let attendant = Attendant::start(session.desk(), present, graph, self.changes)?.0;
        if let Some(listener) = listener {
            let (objector, pulses) = (lease.objector(), session.router().pulses());
            let ports = ports.iter().map(|p| (p.name.clone(), p.attach == Attach::Xdp)).collect();
            let running = Running { front, objector, pulses, attendant, ports };
            Old::serve(self.upgrades.get_or_init(|| listener), place, running)?;
        }
        Ok(Some(lease))
    }
}
