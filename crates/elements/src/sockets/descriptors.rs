//! The descriptors of an element's sockets, which the graphs before and after a hot swap share.

use causeway_engine::{Conf, Error};
use rustix::event::epoll;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Sockets, and what becomes readable when one of them does.
pub(super) struct Descriptors {
    /// The socket that is bound: it receives, or listens.
    pub socket: OwnedFd,
    /// Another one that sends.
    pub sender: Option<OwnedFd>,
    /// One that is there to have a port.
    pub taken: Option<OwnedFd>,
    /// An epoll instance over all that may be received from: connections come and go, and whoever waits knows this one.
    waits: OwnedFd,
    /// Its name in the file system, which goes with it.
    path: Option<PathBuf>,
}

impl Descriptors {
    pub fn new(socket: OwnedFd) -> Result<Descriptors, Errno> {
        let waits = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let new = Descriptors { socket, sender: None, taken: None, waits, path: None };
        new.wait_for(new.socket.as_fd())?;
        Ok(new)
    }

    /// The name is removed with the socket.
    pub fn with_path(self, path: Option<PathBuf>) -> Descriptors {
        let mut new = self;
        new.path = path;
        new
    }

    /// From now on the epoll instance tells of this one as well, until it is closed.
    pub fn wait_for(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        epoll::add(&self.waits, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
    }

    /// What becomes readable when a socket does.
    pub fn waits(&self) -> BorrowedFd<'_> {
        self.waits.as_fd()
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // There is nobody left to tell of an error.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Where an element finds the descriptors of its predecessor.
pub(super) struct Place(Arc<Mutex<Weak<Descriptors>>>);

impl Place {
    /// That of the element that is being configured, for sockets with these addresses.
    pub fn of(conf: &mut Conf<'_>, addresses: &str) -> Place {
        let key = format!("sockets of {}: {addresses}", conf.name());
        Place(conf.env.persistent(&key, Mutex::default).unwrap_or_default())
    }

    /// The descriptors there, or else new ones.
    #[expect(clippy::disallowed_methods, reason = "sockets are opened when a graph is built")]
    pub fn open(&self, make: impl FnOnce() -> Result<Descriptors, Error>) -> Result<Arc<Descriptors>, Error> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = place.upgrade() {
            return Ok(there);
        }
        let new = Arc::new(make()?);
        *place = Arc::downgrade(&new);
        Ok(new)
    }
}
