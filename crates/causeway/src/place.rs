//! Where a router is found: its name, its record, its control socket and that of its metrics.

use crate::cli::RuntimeArgs;
use crate::control::{Ask, Claim, Entrance, Listener, run_dirs, serve};
use crate::metrics::http;
use crate::signals;
use anyhow::{Context, Result};
use causeway_netio::offload::{Offload, keep_journal};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often it is looked whether somebody has the place of a router that has ended.
const PERIOD: Duration = Duration::from_millis(10);

/// A router's name, its record, its control socket and that of its metrics.
pub struct Place {
    /// The name with its record.
    pub claim: Arc<Claim>,
    control: (Listener, Arc<Entrance>),
    metrics: Option<(TcpListener, Arc<Entrance>)>,
    /// When the router was told to end that has ended, whoever has the place yet.
    ended: OnceLock<Instant>,
}

impl Place {
    /// Takes the name and the socket that the command line asks for, in the folder `dir`; a socket that listens already
    /// may be given. From here on what ports change on interfaces is recorded.
    pub fn take(dir: &Path, listener: Option<Listener>, args: &RuntimeArgs) -> Result<Place> {
        let beside = run_dirs().unwrap_or_default();
        let claim = Arc::new(Claim::new(dir, &beside, args.name.as_deref(), args.socket.as_deref())?);
        let socket = claim.record().socket;
        let listener = match listener {
            Some(listener) => listener,
            None => listen(&socket)?,
        };
        let metrics = args.metrics.map(listen_for_metrics).transpose()?;
        Place::of(claim, listener, metrics, Entrance::new)
    }

    /// That of a router with this name and these sockets, by which nobody comes in before the place is [opened](Place::open).
    pub fn closed(claim: Arc<Claim>, listener: Listener, metrics: Option<TcpListener>) -> Result<Place> {
        Place::of(claim, listener, metrics, Entrance::closed)
    }

    fn of(
        claim: Arc<Claim>,
        listener: Listener,
        metrics: Option<TcpListener>,
        entrance: fn() -> io::Result<Arc<Entrance>>,
    ) -> Result<Place> {
        // It outlives the router.
        let journal = Arc::downgrade(&claim);
        keep_journal(Box::new(move |index: u32, interface: &str, offload: Offload, off: bool| {
            let Some(journal) = journal.upgrade() else { return };
            let noted = journal.change(|undo| undo.note_offload((interface, index), offload.name(), off));
            if let Err(e) = noted {
                log::warn!("what is turned off on {interface} cannot be recorded: {e}");
            }
        }));
        let entrance = || entrance().context("cannot make an event descriptor");
        let metrics = metrics.map(|listener| Ok::<_, anyhow::Error>((listener, entrance()?))).transpose()?;
        Ok(Place { claim, control: (listener, entrance()?), metrics, ended: OnceLock::new() })
    }

    /// The router has ended. Waits until nobody else has the place: who hands it over is not to be left in the middle.
    pub fn end(mut place: Arc<Place>) {
        // Without a signal nobody ends it by force.
        place.ended.get_or_init(|| signals::asked_at().unwrap_or_else(Instant::now));
        while let Err(others) = Arc::try_unwrap(place) {
            place = others;
            std::thread::sleep(PERIOD);
        }
    }

    /// Whether the router has ended, so that it does not go on.
    pub fn has_ended(&self) -> bool {
        self.ended_at().is_some()
    }

    /// When the router was told to end, if it has ended.
    pub fn ended_at(&self) -> Option<Instant> {
        self.ended.get().copied()
    }

    fn entrances(&self) -> impl Iterator<Item = &Arc<Entrance>> {
        std::iter::once(&self.control.1).chain(self.metrics.iter().map(|(_, entrance)| entrance))
    }

    /// Has clients answered by `desk`.
    pub fn serve(&self, desk: &Arc<dyn Ask + Send + Sync>) -> Result<()> {
        let (listener, entrance) = &self.control;
        serve(listener, entrance.clone(), desk.clone())?;
        if let Some((listener, entrance)) = &self.metrics {
            log::info!("metrics at http://{}/metrics", listener.local_addr()?);
            http::serve(listener.try_clone()?, entrance.clone(), desk.clone());
        }
        Ok(())
    }

    /// From now on clients that connect wait until it is opened.
    pub fn close(&self) {
        self.entrances().for_each(|entrance| entrance.close());
    }

    /// Lets clients in.
    pub fn open(&self) {
        self.entrances().for_each(|entrance| entrance.open());
    }

    /// The files of sockets that were handed over are this process's.
    pub fn take_files(&self) {
        self.control.0.take_file();
    }

    /// The control socket.
    pub fn control(&self) -> Option<BorrowedFd<'_>> {
        self.control.0.socket()
    }

    /// The socket of the metrics.
    pub fn metrics(&self) -> Option<BorrowedFd<'_>> {
        self.metrics.as_ref().map(|(listener, _)| listener.as_fd())
    }

    /// The address of the metrics.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }
}

/// Listens where metrics are to be served.
pub fn listen_for_metrics(address: SocketAddr) -> Result<TcpListener> {
    let what = || format!("cannot serve metrics at {address} (--metrics names another place)");
    http::listen(address).with_context(what)
}

/// Listens at a path.
pub fn listen(socket: &Path) -> Result<Listener> {
    Listener::unix(socket)
        .with_context(|| format!("cannot listen at {} (--socket names another place)", socket.display()))
}
