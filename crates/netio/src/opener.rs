//! Which kinds of port there are: an opener each, found by name.
//!
//! Those of this crate are always there. A backend of another crate (DPDK, a model of a device) implements [`Opener`]
//! and [registers](register) it before a graph is built; graphs then ask for it by its name.

use crate::afxdp::{self, Options};
use crate::front::{Front, Take};
use crate::interface::Interface;
use crate::port::Port;
use crate::{Error, ErrorKind, Result};
use crate::{afpacket, memory, tap, tcx};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Which port is to be opened, and how.
pub struct Request<'a> {
    /// The interface or what else the opener goes by.
    pub name: &'a str,
    /// Whether frames to other Ethernet addresses are received too.
    pub promiscuous: bool,
    /// Queues that are wanted, where the port is made with as many as one likes.
    pub queues: usize,
    /// What decides, before the packets of AF_XDP ports, which of them the router takes.
    pub front: &'a dyn Fn() -> Result<Arc<Front>>,
}

/// Opens ports of one kind.
pub trait Opener: Send + Sync {
    /// What it is called, then what else it answers to, all in small letters.
    fn names(&self) -> &'static [&'static str];

    /// What a port of this kind needs, in a few words for people.
    fn needs(&self) -> &'static str;

    /// Queues that the port `name` would have. One that cannot be opened is told of when it is.
    fn queues(&self, name: &str) -> usize {
        let _ = name;
        1
    }

    /// Opens a port.
    ///
    /// # Errors
    /// One line, with what to do.
    fn open(&self, request: &Request<'_>) -> Result<Port>;
}

/// An opener of this crate.
struct Own {
    names: &'static [&'static str],
    needs: &'static str,
    queues: fn(&str) -> usize,
    open: fn(&Request<'_>) -> Result<Port>,
}

const INTERFACE: &str = "an interface and the right to use it";

static OWN: &[Own] = &[
    Own {
        names: &["afxdp", "af_xdp", "xdp"],
        needs: INTERFACE,
        queues: of_interface,
        open: |request| over_xdp(request, Options { promiscuous: request.promiscuous, ..Options::default() }),
    },
    Own {
        names: &["transit"],
        needs: INTERFACE,
        queues: of_interface,
        open: |request| over_xdp(request, Options { take: Take::TRANSIT, ..Options::default() }),
    },
    Own {
        names: &["generic"],
        needs: INTERFACE,
        queues: of_interface,
        open: |request| {
            let promiscuous = request.promiscuous;
            over_xdp(request, Options { promiscuous, generic: true, ..Options::default() })
        },
    },
    Own {
        names: &["tcx"],
        needs: INTERFACE,
        queues: |_| usize::MAX,
        open: |request| tcx::open(request.name, request.queues, request.promiscuous, &(request.front)()?),
    },
    Own {
        // Packet libraries of other names do the same here.
        names: &["packet", "af_packet", "linux", "pcap"],
        needs: INTERFACE,
        queues: |_| 1,
        open: |request| afpacket::open(request.name, request.promiscuous),
    },
    Own {
        names: &["tap"],
        needs: "/dev/net/tun",
        queues: |_| usize::MAX,
        open: |request| tap::open(request.name, tap::Kind::Tap, request.queues),
    },
    Own {
        names: &["tun"],
        needs: "/dev/net/tun",
        queues: |_| usize::MAX,
        open: |request| tap::open(request.name, tap::Kind::Tun, request.queues),
    },
    Own {
        names: &["memory"],
        needs: "a name that ends in .0 or .1",
        queues: |_| 1,
        open: |request| memory::open(request.name),
    },
];

fn of_interface(name: &str) -> usize {
    Interface::open(name).map_or(1, |interface| interface.queues.max(1) as usize)
}

fn over_xdp(request: &Request<'_>, options: Options) -> Result<Port> {
    afxdp::open(request.name, &options, &(request.front)()?)
}

impl Opener for Own {
    fn names(&self) -> &'static [&'static str] {
        self.names
    }

    fn needs(&self) -> &'static str {
        self.needs
    }

    fn queues(&self, name: &str) -> usize {
        (self.queues)(name)
    }

    fn open(&self, request: &Request<'_>) -> Result<Port> {
        (self.open)(request)
    }
}

/// Those of other crates.
static OTHERS: RwLock<Vec<&'static dyn Opener>> = RwLock::new(Vec::new());

#[expect(clippy::disallowed_methods, reason = "ports are opened by the control side")]
fn all() -> Vec<&'static dyn Opener> {
    let own = OWN.iter().map(|opener| opener as &dyn Opener);
    own.chain(OTHERS.read().unwrap_or_else(PoisonError::into_inner).iter().copied()).collect()
}

/// Adds an opener, for as long as the process lives.
///
/// # Errors
/// [`ErrorKind::Busy`] if there is one of one of its names.
#[expect(clippy::disallowed_methods, reason = "ports are opened by the control side")]
pub fn register(opener: impl Opener + 'static) -> Result<()> {
    let taken = opener.names().iter().find(|name| find(name).is_some());
    if let Some(name) = taken {
        return Err(Error::new(ErrorKind::Busy, format!("there are ports of the kind '{name}' already")));
    }
    OTHERS.write().unwrap_or_else(PoisonError::into_inner).push(Box::leak(Box::new(opener)));
    Ok(())
}

/// The opener that answers to `name`, in small or capital letters.
pub fn find(name: &str) -> Option<&'static dyn Opener> {
    all().into_iter().find(|opener| opener.names().iter().any(|n| n.eq_ignore_ascii_case(name)))
}

/// All openers by their first names, with what they need: for an error or a help text.
pub fn list() -> String {
    let texts = all().into_iter().filter_map(|o| Some(format!("{} ({})", o.names().first()?, o.needs())));
    texts.collect::<Vec<_>>().join(", ")
}

impl fmt::Debug for dyn Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opener({:?})", self.names())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static [&'static str]);

    impl Opener for Named {
        fn names(&self) -> &'static [&'static str] {
            self.0
        }

        fn needs(&self) -> &'static str {
            "nothing"
        }

        fn open(&self, request: &Request<'_>) -> Result<Port> {
            Ok(memory::pair(request.name, 1)?.0)
        }
    }

    #[test]
    fn an_opener_is_found_by_each_of_its_names_and_no_name_is_given_twice() {
        assert!(find("cardboard").is_none());
        register(Named(&["cardboard", "paper"])).expect("registered");
        let request =
            Request { name: "x", promiscuous: false, queues: 1, front: &|| unreachable!("not asked for") };
        assert_eq!(find("Paper").expect("found").open(&request).expect("opened").name, "x.0");
        assert!(list().ends_with("cardboard (nothing)"), "{}", list());
        for names in [&["straw", "paper"][..], &["afxdp"], &["linux"]] {
            assert_eq!(register(Named(names)).expect_err("taken").kind(), ErrorKind::Busy);
        }
        assert!(find("straw").is_none());
    }
}
