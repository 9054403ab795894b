//! The interfaces that are named, and where a router attaches to each: decided here, for `up` and for `doctor`.

use crate::cli::Attach;
use crate::control::{self, Record};
use anyhow::{Context, Result, bail};
use causeway_bpf::{TcxSide, tcx_programs};
use causeway_elements::kernel::lower::Begins;
use causeway_kernel::{Interface as Known, Link, interfaces};
use causeway_netio::afxdp::XDP_HEADROOM;
use causeway_netio::features::FeatureQuery;
use causeway_netio::front;
use causeway_netio::interface::Interface;
use std::fmt;

/// Octets of an Ethernet header, which an MTU does not count.
const ETHERNET: u32 = 14;

/// What packets of a link begin with; none for kinds of which only the kernel can tell.
pub fn begins(link: &Link) -> Option<Begins> {
    match link {
        _ if link.ethernet => Some(Begins::Ethernet),
        _ if link.bare => Some(Begins::Ip),
        _ => None,
    }
}

/// An interface that the router may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// Where the router attaches.
    pub attach: Attach,
    /// Whether that was asked for, and not chosen by what the interface is.
    pub asked: bool,
    /// Whether packets are forwarded there, and not all left to the kernel.
    pub forwards: bool,
    /// What its packets begin with; none of what the router knows.
    pub begins: Option<Begins>,
    /// Its receive queues.
    pub queues: u32,
    /// Its driver; empty where it does not say.
    driver: String,
    mtu_bytes: u32,
    /// The longest frame that the router takes.
    longest_bytes: u32,
}

impl Port {
    /// Where the router attaches, and why.
    pub fn how(&self) -> String {
        let Port { queues, mtu_bytes, longest_bytes, .. } = self;
        let driver = if self.driver.is_empty() { "driver unknown" } else { &self.driver };
        let place = if self.attach == Attach::Xdp { "XDP" } else { "tcx" };
        let asked = if self.asked { ", as asked" } else { "" };
        let more = match self.attach {
            Attach::Xdp if mtu_bytes + ETHERNET > *longest_bytes => {
                format!("; frames of more than {longest_bytes} bytes are left to the kernel")
            }
            Attach::Xdp => String::new(),
            Attach::Tcx if self.forwards => {
                "; what the driver path cannot do is left to the kernel".to_owned()
            }
            Attach::Tcx if self.begins == Some(Begins::Ip) => {
                "; its packets have no Ethernet header, and are left to the kernel; --driver forwards them"
                    .to_owned()
            }
            Attach::Tcx if self.begins.is_none() => {
                "; its packets are left to the kernel, as those of all interfaces of this kind are".to_owned()
            }
            Attach::Tcx if self.asked => "; its packets are left to the kernel".to_owned(),
            Attach::Tcx => {
                "; a virtual interface, whose packets may be super-packets or have no checksum yet: they \
                            are left to the kernel; --driver forwards them there, --attach xdp takes them"
                    .to_owned()
            }
        };
        format!("at {place}{asked} ({driver}, {queues} queue(s), MTU {mtu_bytes}){more}")
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.how())
    }
}

/// Why an interface can be no port, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// A stable name of its kind.
    pub code: &'static str,
    /// The interface.
    pub name: String,
    /// What stands in the way.
    pub what: String,
    /// What to do.
    pub mend: String,
}

/// The code of a port that a router has.
pub const TAKEN: &str = "port-taken";
const LEAVE_OUT: &str = "leave it out: the kernel forwards to it";

impl Obstacle {
    fn new(code: &'static str, name: &str, what: impl Into<String>, mend: impl Into<String>) -> Obstacle {
        Obstacle { code, name: name.to_owned(), what: what.into(), mend: mend.into() }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.name, self.what, self.mend)
    }
}

/// The programs of a router whose place is taken, which are no obstacle. All others are somebody's.
#[derive(Debug)]
pub struct Replaced {
    at_xdp: AtXdp,
    at_tcx: Option<u32>,
}

/// Its program at XDP.
#[derive(Debug, PartialEq, Eq)]
enum AtXdp {
    None,
    /// One of an earlier version, which does not say which it is.
    Some,
    Numbered(u32),
}

impl Replaced {
    /// None: no place is taken.
    pub const NONE: Replaced = Replaced { at_xdp: AtXdp::None, at_tcx: None };

    /// Those of the router called `name` that runs here.
    pub fn of(name: Option<&str>) -> Replaced {
        let router = control::routers_here().into_iter().find(|router| Some(router.name.as_str()) == name);
        router.map_or(Replaced::NONE, |router| Replaced::by_record(&router))
    }

    fn by_record(router: &Record) -> Replaced {
        Replaced { at_xdp: router.xdp.map_or(AtXdp::Some, AtXdp::Numbered), at_tcx: router.tcx }
    }

    fn has_at_xdp(&self, program: u32) -> bool {
        self.at_xdp == AtXdp::Some || self.at_xdp == AtXdp::Numbered(program)
    }
}

/// What is known of the machine's interfaces.
pub struct Survey {
    known: Vec<Known>,
    /// None on kernels before 6.3, which do not say.
    features: Option<FeatureQuery>,
    router: Router,
}

/// What router the interfaces are for.
#[derive(Clone, Copy, Debug)]
pub struct Router {
    /// Where it is to attach, instead of what suits each.
    pub attach: Option<Attach>,
    /// Whether it forwards in the driver.
    pub in_driver: bool,
    /// Bytes of its packet frames.
    pub frame_bytes: u32,
}

impl Survey {
    /// Asks the kernel.
    pub fn new(router: Router) -> Result<Survey> {
        let known = interfaces().context("cannot ask the kernel for the interfaces")?;
        Ok(Survey { known, features: FeatureQuery::new().ok(), router })
    }

    /// Names of the interfaces that could be ports.
    pub fn candidates(&self) -> Vec<String> {
        let could =
            |i: &&Known| i.link.ethernet && !i.link.loopback && !i.link.no_arp && i.link.master.is_none();
        self.known.iter().filter(could).map(|i| i.link.name.clone()).collect()
    }

    /// The interface of this name as a port.
    pub fn port(&self, name: &str) -> Result<Port, Obstacle> {
        let Router { attach: asked, in_driver, frame_bytes } = self.router;
        let obstacle = |code, what, mend| Obstacle::new(code, name, what, mend);
        let missing = |_| obstacle("port-missing", "no such interface", "`ip link` lists the interfaces");
        let interface = Interface::open(name).map_err(missing)?;
        let attach = asked.unwrap_or_else(|| suited(&interface));
        let Interface { index, queues, driver, mtu, .. } = interface;
        let link = self.link(index);
        // Routes and findings know interfaces by their first names.
        if let Some(other) = link.map(|i| &i.link.name).filter(|first| *first != name) {
            let what = format!("this is another name of {other}");
            return Err(Obstacle::new("port-missing", name, what, format!("call it {other} here, too")));
        }
        if link.is_some_and(|i| i.link.loopback || (attach == Attach::Xdp && !i.link.ethernet)) {
            return Err(obstacle("port-kind", "no Ethernet interface", LEAVE_OUT));
        }
        let (name, asked) = (name.to_owned(), asked.is_some());
        let begins = link.and_then(|i| begins(&i.link));
        let forwards = attach == Attach::Xdp || (in_driver && begins.is_some());
        let longest_bytes = frame_bytes.saturating_sub(XDP_HEADROOM);
        let mtu_bytes = mtu;
        Ok(Port { name, index, attach, asked, forwards, begins, queues, driver, mtu_bytes, longest_bytes })
    }

    /// What keeps the router from attaching to a port, besides the programs that it replaces.
    pub fn obstacle(&self, port: &Port, replaced: &Replaced) -> Option<Obstacle> {
        let name = &port.name;
        let at_xdp = self.link(port.index).and_then(|i| i.link.xdp_program);
        if let Some(program) = at_xdp.filter(|program| !replaced.has_at_xdp(*program)) {
            if front::is_of_a_front(program) {
                return Some(taken(name, &control::routers_here()));
            }
            let what = format!("XDP program {program} is attached already, perhaps by another router");
            let mend = format!(
                "stop who attached it (`bpftool net` shows it, `causeway read list` a router); \
                 if nobody holds it, `ip link set dev {name} xdp off`"
            );
            return Some(Obstacle::new("xdp-program", name, what, mend));
        }
        // Who may not ask is told when the router attaches.
        let at_tcx = tcx_programs(port.index, TcxSide::Ingress).unwrap_or_default();
        let mut others = at_tcx.into_iter().filter(|program| replaced.at_tcx != Some(*program));
        if others.any(front::is_of_a_front) {
            return Some(taken(name, &control::routers_here()));
        }
        if port.attach == Attach::Tcx {
            return None;
        }
        let features = self.features.as_ref().and_then(|q| q.get(port.index).ok());
        let what = "its driver has no XDP, so that frames could not be given back to the kernel";
        let without = features.is_some_and(|f| !f.native());
        without.then(|| Obstacle::new("port-no-xdp", name, what, LEAVE_OUT))
    }

    fn link(&self, index: u32) -> Option<&Known> {
        self.known.iter().find(|i| i.link.index == index)
    }
}

/// A port that a running router has: one of these, as far as is known.
fn taken(port: &str, routers: &[Record]) -> Obstacle {
    let router = |r: &Record| format!("'{}' (process {})", r.name, r.pid);
    let names = routers.iter().map(router).collect::<Vec<_>>().join(" or ");
    let what = if names.is_empty() { String::new() } else { format!(": {names}") };
    let mend = "a port has one router; stop that one to start another";
    Obstacle::new(TAKEN, port, format!("a router of Causeway is attached already{what}"), mend)
}

/// Where a router attaches to an interface that is not told where.
fn suited(interface: &Interface) -> Attach {
    if interface.is_virtual() { Attach::Tcx } else { Attach::Xdp }
}

/// Where a router attaches to the interface of this name, there or not; `asked` says where, instead of what suits it.
pub fn place(name: &str, asked: Option<Attach>) -> Attach {
    let suited = || Interface::open(name).map_or(Attach::Xdp, |interface| suited(&interface));
    asked.unwrap_or_else(suited)
}

/// What is to be said of ports of which none is forwarded between: all are left to the kernel.
pub fn idle(ports: &[Port]) -> Option<&'static str> {
    let idle = !ports.is_empty() && !ports.iter().any(|port| port.forwards);
    idle.then_some("all packets are left to the kernel, and none is forwarded by Causeway")
}

/// The interfaces of these names, if a router can attach to all of them that takes the place of the programs `replaced`.
///
/// # Errors
/// One line that names the interface and says what to do.
pub fn find(names: &[String], router: Router, replaced: &Replaced) -> Result<Vec<Port>> {
    if let Some(twice) = names.iter().enumerate().find_map(|(i, n)| names[..i].contains(n).then_some(n)) {
        bail!("{twice} is named twice; name each interface once");
    }
    let survey = Survey::new(router)?;
    let mut ports = Vec::new();
    for name in names {
        let port = survey.port(name).map_err(|obstacle| anyhow::anyhow!("{obstacle}"))?;
        if let Some(obstacle) = survey.obstacle(&port, replaced) {
            bail!("{obstacle}");
        }
        ports.push(port);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(attach: Attach, asked: bool, mtu_bytes: u32) -> Port {
        let (name, driver) = ("eth1".to_owned(), "ixgbe".to_owned());
        let (index, queues, longest_bytes, forwards) = (3, 4, 1792, attach == Attach::Xdp);
        Port {
            name,
            index,
            attach,
            asked,
            forwards,
            begins: Some(Begins::Ethernet),
            queues,
            driver,
            mtu_bytes,
            longest_bytes,
        }
    }

    fn port(attach: Attach, asked: bool, mtu_bytes: u32) -> String {
        any(attach, asked, mtu_bytes).to_string()
    }

    #[test]
    fn a_port_says_where_it_is_and_why() {
        assert_eq!(port(Attach::Xdp, false, 1500), "eth1: at XDP (ixgbe, 4 queue(s), MTU 1500)");
        assert!(port(Attach::Xdp, true, 1500).starts_with("eth1: at XDP, as asked ("));
        let jumbo = port(Attach::Xdp, false, 9000);
        assert!(jumbo.ends_with("; frames of more than 1792 bytes are left to the kernel"), "{jumbo}");
        assert!(port(Attach::Tcx, false, 9000).ends_with("--attach xdp takes them"));
        let asked = port(Attach::Tcx, true, 1500);
        assert_eq!(
            asked,
            "eth1: at tcx, as asked (ixgbe, 4 queue(s), MTU 1500); its packets are left to the kernel"
        );
        let of = |begins| Port { begins, ..any(Attach::Tcx, false, 1500) }.to_string();
        let (tun, tunnel) = (of(Some(Begins::Ip)), of(None));
        assert!(tun.contains("; its packets have no Ethernet header, and are left to the kernel;"), "{tun}");
        assert!(tunnel.ends_with("of this kind are"), "{tunnel}");
    }

    #[test]
    fn a_router_that_forwards_nothing_says_so() {
        let port = |attach| any(attach, true, 1500);
        assert!(idle(&[port(Attach::Tcx), port(Attach::Tcx)]).is_some());
        assert!(idle(&[port(Attach::Tcx), port(Attach::Xdp)]).is_none());
        assert!(idle(&[Port { forwards: true, ..port(Attach::Tcx) }]).is_none());
        assert!(idle(&[]).is_none());
    }

    fn record(name: &str, xdp: Option<u32>) -> Record {
        Record {
            name: name.to_owned(),
            pid: 7,
            started: 0,
            netns: String::new(),
            cookie: None,
            pidns: None,
            socket: "s".into(),
            counters: "c".into(),
            xdp,
            tcx: None,
            undo: Default::default(),
        }
    }

    #[test]
    fn of_the_router_whose_place_is_taken_the_programs_are_no_obstacle() {
        let record = |xdp| record("a", xdp);
        let has = |replaced: &Replaced| [5, 6].map(|program| replaced.has_at_xdp(program));
        assert_eq!(has(&Replaced::by_record(&record(Some(5)))), [true, false]);
        assert_eq!(has(&Replaced::by_record(&record(None))), [true, true], "of an earlier version");
        assert_eq!(has(&Replaced::NONE), [false, false]);
    }

    #[test]
    fn a_port_that_is_taken_names_whose_it_may_be() {
        let router = |name| record(name, None);
        let what = |routers: &[Record]| taken("eth1", routers).what;
        assert_eq!(what(&[]), "a router of Causeway is attached already");
        assert_eq!(what(&[router("a")]), "a router of Causeway is attached already: 'a' (process 7)");
        assert!(what(&[router("a"), router("b")]).ends_with("'a' (process 7) or 'b' (process 7)"));
    }

    #[test]
    fn an_interface_is_called_by_its_first_name() {
        let router = Router { attach: None, in_driver: false, frame_bytes: 2048 };
        let mut survey = Survey::new(router).expect("netlink needs no privilege");
        survey.known.iter_mut().for_each(|known| known.link.name = "first".to_owned());
        let said = survey.port("lo").map_err(|o| (o.code, o.what)).map(|_| ());
        assert_eq!(said, Err(("port-missing", "this is another name of first".to_owned())));
    }

    #[test]
    fn loopback_is_no_port_wherever_it_would_be() {
        for attach in [None, Some(Attach::Xdp), Some(Attach::Tcx)] {
            let router = Router { attach, in_driver: true, frame_bytes: 2048 };
            let survey = Survey::new(router).expect("netlink needs no privilege");
            assert_eq!(survey.port("lo").map_err(|o| o.code), Err("port-kind"));
            assert!(!survey.candidates().contains(&"lo".to_owned()));
            assert_eq!(survey.port("no such").map_err(|o| o.code), Err("port-missing"));
        }
    }
}
