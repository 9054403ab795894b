//! The ports that are open, shared by the elements that receive and those that transmit, and kept open while a hot
//! swap replaces these.
//!
//! A port opens when the first element asks for it and closes when the last one that uses it is gone. Each half of
//! each queue belongs to one element at a time; an element that goes puts its halves back. A port whose device is gone is
//! not given out any more: the next graph that asks for it opens it anew, for the device that there is then.

use super::open_port::OpenPort;
use causeway_engine::{Conf, Invalid, Persistent};
use causeway_netio::front::{Front, Take};
use causeway_netio::opener::{self, Request};
use causeway_netio::{Error, ErrorKind, Port};
use std::collections::HashMap;
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
type OnBack = Arc<dyn Fn(&str) + Send + Sync>;

/// The ports that are open, by name.
#[derive(Default)]
pub struct OpenPorts {
    ports: Mutex<HashMap<String, Weak<OpenPort>>>,
    on_back: Mutex<Option<OnBack>>,
}

impl OpenPorts {
    /// From now on `f` is called, on a thread of its own, with the name of a port whose device was gone and is there
    /// again, or has changed since then. A hot swap to the same configuration opens it anew; before that it is of no use.
    pub fn on_back(&self, f: impl Fn(&str) + Send + Sync + 'static) {
        *self.on_back.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(f));
    }

    /// The device of the port `name` is back.
    pub(super) fn back(&self, name: &str) {
        // Not called under the lock: it may take its time.
        let f = self.on_back.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(f) = f {
            f(name);
        }
    }
}

/// What an element needs to open its port.
#[derive(Clone)]
pub(crate) struct PortOpener {
    ports: Arc<OpenPorts>,
    values: Persistent,
    name: String,
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
        Ok((PortOpener { ports, values, name: name.to_owned(), copies }, other))
    }

    /// The port, opened now if it is not open.
    pub fn open(&self, method: Method) -> Result<Arc<OpenPort>, String> {
        let mut ports = self.ports.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let open = ports.get(&self.name).and_then(Weak::upgrade).filter(|port| !port.is_gone());
        if let Some(port) = open {
            let compatible = port.method == method || method == Method::USUAL;
            return match compatible {
                true => Ok(port),
                false => Err(format!(
                    "{} is open in another way already; write the same METHOD everywhere",
                    self.name
                )),
            };
        }
        let port = OpenPort::new(self.open_port(method).map_err(|e| e.to_string())?, method, &self.ports);
        ports.retain(|_, port| port.strong_count() > 0);
        ports.insert(self.name.clone(), Arc::downgrade(&port));
        Ok(port)
    }

    fn open_port(&self, method: Method) -> causeway_netio::Result<Port> {
        let Some(opener) = opener::find(method.opener) else {
            let what = format!("{}: nobody opens ports of the kind '{}'", self.name, method.opener);
            return Err(Error::new(ErrorKind::Unsupported, what));
        };
        let (front, promiscuous) = (|| self.front(), method.promiscuous);
        opener.open(&Request { name: &self.name, promiscuous, queues: self.copies, front: &front })
    }

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
