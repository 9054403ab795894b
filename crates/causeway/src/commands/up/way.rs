//! How a router comes to its place: its name, its record and its sockets.

use super::follow::Unsaid;
use crate::cli::UpArgs;
use crate::control::leftovers;
use crate::control::{Claim, Listener};
use crate::handover::{CODE, New};
use crate::place::{Place, listen_for_metrics};
use crate::ports::Port;
use anyhow::{Context, Result};
use causeway_netio::front::Front;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// The way to a place.
pub enum Way {
    /// Nobody has it.
    Free(Arc<Place>),
    /// A router that runs has it. The socket for metrics, where that is another than the running router's.
    TakingOver(Box<New>, Option<TcpListener>),
}

impl Way {
    /// Finds the place that the command line asks for, in the folder `dir`; a socket that listens already may be given.
    ///
    /// # Errors
    /// It cannot be had, or is not given.
    pub fn find(dir: &Path, listener: Option<Listener>, args: &UpArgs, ports: &[Port]) -> Result<Way> {
        match args.runtime.name.as_deref().filter(|_| args.take_over) {
            Some(name) => {
                let new = New::ask(dir, name, ports)?;
                let other = args.runtime.metrics.filter(|address| !new.inherits_metrics(*address));
                Ok(Way::TakingOver(Box::new(new), other.map(listen_for_metrics).transpose()?))
            }
            None => Ok(Way::Free(Arc::new(Place::take(dir, listener, &args.runtime)?))),
        }
    }

    /// The name.
    pub fn claim(&self) -> &Arc<Claim> {
        match self {
            Way::Free(place) => &place.claim,
            Way::TakingOver(new, _) => &new.claim,
        }
    }

    /// All is there but the ports: now they can be opened.
    ///
    /// # Errors
    /// The running router does not hand over.
    pub fn go(self, front: &Front, metrics: Option<SocketAddr>) -> Result<(Arc<Place>, Option<Taking>)> {
        let (mut new, listener) = match self {
            Way::Free(place) => return Ok((place, None)),
            Way::TakingOver(new, listener) => (new, listener),
        };
        let sockets = new.receive(front)?;
        let inherited = sockets.metrics.map(TcpListener::from);
        let listener = listener.or(inherited.filter(|_| metrics.is_some()));
        let control = Listener::handed(sockets.control, &new.claim.record().socket);
        let control = control.context("the control socket is gone")?;
        let place = Place::closed(new.claim.clone(), control, listener)?;
        Ok((Arc::new(place), Some(Taking { new, upgrade: sockets.upgrade })))
    }
}

/// A place that is about to be taken.
pub struct Taking {
    new: Box<New>,
    /// Where the next one asks.
    upgrade: OwnedFd,
}

impl Taking {
    /// Takes the place, with what is to be undone in the end. Returns where the next router asks for it.
    ///
    /// # Errors
    /// It cannot be taken; the running router goes on.
    pub fn take(self, place: &Place, unsaid: &Unsaid) -> Result<Option<Listener>> {
        let undo = self.new.take()?;
        unsaid.adopt(leftovers::managed(&undo));
        place.take_files();
        place.open();
        let listener = Listener::handed(self.upgrade, &place.claim.upgrade_socket());
        Ok(listener.inspect(Listener::take_file).map_err(unasked).ok())
    }
}

/// Where the next router asks for its place; `None`, which is logged, where nobody can.
pub fn listen(claim: &Claim) -> Option<Listener> {
    Listener::unix(&claim.upgrade_socket()).map_err(unasked).ok()
}

fn unasked(error: std::io::Error) {
    log::warn!(code = CODE; "another process cannot take this one's place: {error}");
}
