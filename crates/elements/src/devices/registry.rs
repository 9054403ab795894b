//! The ports that are open, shared by the elements that receive and those that transmit, and kept open while a hot
//! swap replaces these.
//!
//! A port opens when the first element asks for it and closes when the last one that uses it is gone. Each half of
//! each queue belongs to one element at a time; an element that goes puts its halves back. A port goes by the device that
//! its name stands for when it is asked for, and a port whose device is gone is opened anew, for the device that there is
//! then. If there is none, or it cannot be opened, the graph gets the port as it is, so that its other ports go on.

use super::open_port::OpenPort;
use causeway_engine::{Conf, Error, Invalid, Persistent};
use causeway_netio::front::{Front, Take};
use causeway_netio::interface::Interface;
use causeway_netio::opener::{self, Request};
use causeway_netio::{ErrorKind, Port};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Key of the [`Front`] of all AF_XDP ports among the values that outlive a hot swap. Whoever keeps its lease and its
/// rules puts it there; else the first port does, and the lease has no end.
pub const FRONT: &str = "front";
/// Key of the [`OpenPorts`] among the values that outlive a hot swap.
pub const PORTS: &str = "open ports";

/// How a port is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Method {
    /// First name of the opener.
    pub opener: &'static str,
    /// Whether frames to other addresses are received too.
    pub promiscuous: bool,
}

impl Method {
    /// The opener that most interfaces are opened with.
    pub const USUAL: Method = Method { opener: "afxdp", promiscuous: false };
}

/// What is done when the device of a port is there again.
type OnBack = Arc<dyn Fn(&Arc<OpenPorts>, &str) + Send + Sync>;

/// What is done when packets cannot leave any more by an interface of a port.
type OnDown = Arc<dyn Fn(u32) + Send + Sync>;

/// The ports that are open, with the names that they were asked for by.
#[derive(Default)]
pub struct OpenPorts {
    ports: Mutex<Vec<(String, Weak<OpenPort>)>>,
    on_back: Mutex<Option<OnBack>>,
    on_down: Mutex<Option<OnDown>>,
}

impl OpenPorts {
    /// From now on `f` is called, on a thread of its own, with the name of a port whose device was gone and is there
    /// again, or has changed since then. A hot swap to the same configuration opens it anew; before that it is of no use.
    #[expect(clippy::disallowed_methods, reason = "ports are opened and watched by the control side")]
    pub fn on_back(&self, f: impl Fn(&Arc<OpenPorts>, &str) + Send + Sync + 'static) {
        *self.on_back.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(f));
    }

    /// The device of the port `name` is back.
    #[expect(clippy::disallowed_methods, reason = "ports are opened and watched by the control side")]
    pub(super) fn back(self: &Arc<Self>, name: &str) {
        // Not called under the lock: it may take its time.
        let f = self.on_back.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(f) = f {
            f(self, name);
        }
    }

    /// From now on `f` is called, on a thread of its own, with the index of an interface that is down, has no carrier or is gone, as
    /// soon as its port is told.
    #[expect(clippy::disallowed_methods, reason = "ports are opened and watched by the control side")]
    pub fn on_down(&self, f: impl Fn(u32) + Send + Sync + 'static) {
        *self.on_down.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(f));
    }

    /// The interface with this index is down.
    #[expect(clippy::disallowed_methods, reason = "ports are opened and watched by the control side")]
    pub(super) fn down(&self, ifindex: u32) {
        let f = self.on_down.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(f) = f {
            f(ifindex);
        }
    }

    /// Interface index and Ethernet address of the port `name`, if it is open on an interface that the kernel sends by.
    pub fn interface(&self, name: &str) -> Option<(u32, [u8; 6])> {
        self.open_on_interface(name).map(|port| (port.ifindex, port.mac))
    }

    /// Interface index of the port `name` as [`OpenPorts::interface`], if the link is up.
    pub fn way_out(&self, name: &str) -> Option<u32> {
        self.open_on_interface(name).filter(|port| port.is_up()).map(|port| port.ifindex)
    }

    #[expect(clippy::disallowed_methods, reason = "ports are opened and watched by the control side")]
    fn open_on_interface(&self, name: &str) -> Option<Arc<OpenPort>> {
        let ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = ports.iter().filter(|(asked, _)| asked == name).filter_map(|(_, port)| port.upgrade());
        let is_one = |port: &Arc<OpenPort>| {
            matches!(port.method.opener, "afxdp" | "transit" | "generic" | "packet" | "tcx")
        };
        open.find(|port| is_one(port) && !port.is_gone())
    }

    /// Whether the device of the port `name` was gone and is there again, by the same index.
    #[expect(clippy::disallowed_methods, reason = "ports are opened and watched by the control side")]
    pub fn is_back_as_it_was(&self, name: &str) -> bool {
        let Ok(interface) = Interface::open(name) else { return false };
        let ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = ports.iter().filter_map(|(_, port)| port.upgrade());
        open.any(|port| port.name == name && port.is_gone() && port.ifindex == interface.index)
    }

    /// Whether the device of the port `name` is gone, and it has not been opened anew.
    #[expect(clippy::disallowed_methods, reason = "ports are opened and watched by the control side")]
    pub fn is_gone(&self, name: &str) -> bool {
        let ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let open = ports.iter().filter_map(|(_, port)| port.upgrade());
        let mut named = open.filter(|port| port.name == name).peekable();
        named.peek().is_some() && named.all(|port| port.is_gone())
    }
}

/// What an element needs to open its port.
#[derive(Clone)]
pub(crate) struct PortOpener {
    ports: Arc<OpenPorts>,
    values: Persistent,
    /// What the port goes by.
    name: String,
    /// The name that its opener gets.
    asked: String,
    /// Copies of the graph, each of which may want a queue.
    copies: usize,
}

impl PortOpener {
    /// For the port called `name`. In one graph only one element may receive from it, and only one transmit.
    pub fn new(conf: &mut Conf<'_>, name: &str, direction: &str) -> Result<PortOpener, Invalid> {
        let key = format!("{direction} {name} on worker {}", conf.worker());
        let (opener, owner) = Self::owned(conf, name, &key)?;
        if let Some(owner) = owner {
            conf.error(format!("'{owner}' {direction} {name} already; use one element and a Tee or a Queue"));
            return Err(Invalid);
        }
        Ok(opener)
    }

    /// As [`PortOpener::new`], for a port that its opener finds a name for, of this pattern. It goes by the element.
    pub fn unnamed(conf: &mut Conf<'_>, pattern: &str) -> Result<PortOpener, Invalid> {
        let name = format!("{pattern} of {}", conf.name());
        Ok(PortOpener { asked: pattern.to_owned(), ..Self::new(conf, &name, "receives from")? })
    }

    /// As [`PortOpener::new`], for an element that shares the port with others of its kind. Says whether it is the first.
    pub fn shared(conf: &mut Conf<'_>, name: &str, direction: &str) -> Result<(PortOpener, bool), Invalid> {
        let key = format!("{direction} {name}, shared");
        let (opener, owner) = Self::owned(conf, name, &key)?;
        Ok((opener, owner.is_none()))
    }

    /// With the name of the element that has the key, if it is another one.
    fn owned(conf: &mut Conf<'_>, name: &str, key: &str) -> Result<(PortOpener, Option<Arc<str>>), Invalid> {
        let mine = conf.name().clone();
        let owner = conf.env.shared(key, || mine.clone()).ok_or(Invalid)?;
        let ports = conf.env.persistent(PORTS, OpenPorts::default).ok_or(Invalid)?;
        let values = conf.env.persistent.clone();
        let (copies, other) = (conf.replica().1, (*owner != mine).then(|| (*owner).clone()));
        let (name, asked) = (name.to_owned(), name.to_owned());
        Ok((PortOpener { ports, values, name, asked, copies }, other))
    }

    /// The port, opened now if it is not open.
    #[expect(clippy::disallowed_methods, reason = "ports are opened and watched by the control side")]
    pub fn open(&self, method: Method) -> Result<Arc<OpenPort>, Error> {
        let mut ports = self.ports.ports.lock().unwrap_or_else(PoisonError::into_inner);
        ports.retain(|(_, port)| port.strong_count() > 0);
        let open: Vec<_> = ports.iter().filter_map(|(name, port)| Some((name, port.upgrade()?))).collect();
        let named = |&&(name, _): &&(&String, Arc<OpenPort>)| *name == self.name;
        let index = Interface::open(&self.name).map_or(0, |interface| interface.index);
        let mine = |open: &&(&String, Arc<OpenPort>)| match index == 0 || open.1.ifindex == 0 {
            true => named(open),
            false => open.1.ifindex == index,
        };
        let fits = |port: Arc<OpenPort>| match port.method == method || method == Method::USUAL {
            true => Ok(port),
            false => {
                let what = "is open in another way already; write the same METHOD everywhere";
                Err(Error::new(format!("{} {what}", self.name)))
            }
        };
        if let Some((_, port)) = open.iter().filter(|(_, port)| !port.is_gone()).find(mine) {
            return fits(port.clone());
        }
        let gone = open.iter().filter(|(_, port)| port.is_gone()).find(named).map(|(_, port)| port.clone());
        match (self.open_port(method), gone) {
            (Ok(port), _) => {
                let port = OpenPort::new(port, method, &self.ports);
                ports.push((self.name.clone(), Arc::downgrade(&port)));
                Ok(port)
            }
            (Err(e), Some(gone)) => {
                let Ok(port) = fits(gone) else { return Err(Error::caused_by(e)) };
                log::warn!("{} is gone and cannot be opened again yet: {e}", self.name);
                Ok(port)
            }
            (Err(e), None) => Err(Error::caused_by(e)),
        }
    }

    fn open_port(&self, method: Method) -> causeway_netio::Result<Port> {
        let Some(opener) = opener::find(method.opener) else {
            let what = format!("{}: nobody opens ports of the kind '{}'", self.name, method.opener);
            return Err(causeway_netio::Error::new(ErrorKind::Unsupported, what));
        };
        let (front, promiscuous) = (|| self.front(), method.promiscuous);
        opener.open(&Request { name: &self.asked, promiscuous, queues: self.copies, front: &front })
    }

    #[expect(clippy::disallowed_methods, reason = "ports are opened and watched by the control side")]
    fn front(&self) -> causeway_netio::Result<Arc<Front>> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(front) = values.get(FRONT).and_then(|v| v.clone().downcast().ok()) {
            return Ok(front);
        }
        let front = Arc::new(Front::new(Take::TRANSIT)?);
        front.lease().renew(u64::MAX);
        values.insert(FRONT.to_owned(), front.clone());
        Ok(front)
    }
}
