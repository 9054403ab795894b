//! What happens to the device of a port, as the kernel's link messages tell it (rtnetlink(7)).

use crate::interface::{Interface, name_by_index, set_option, set_up};
use crate::netlink;
use crate::port::{Event, Events};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

const RTMGRP_LINK: u32 = 1;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_PROP_LIST: u16 = 52;
const IFLA_ALT_IFNAME: u16 = 53;
/// Bytes of a `struct ifinfomsg`.
const INFO: usize = 16;
/// Bytes of a message with all that the kernel says of a link, at most.
const BUFFER: usize = 1 << 16;

/// What the last message said of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    ifindex: u32,
    up: bool,
    mtu: u32,
    /// Its name now, which may be another than that of the port; `None` until the kernel has told.
    name: Option<String>,
}

/// One message.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    /// There is such a link; whether the port's name is one of its names.
    There(State, bool),
    /// There is no link of this index any more.
    Deleted(u32),
    /// There is no such link as was asked for.
    Unknown,
}

impl Message {
    /// The link's index.
    fn ifindex(&self) -> Option<u32> {
        match *self {
            Message::There(State { ifindex, .. }, _) | Message::Deleted(ifindex) => Some(ifindex),
            Message::Unknown => None,
        }
    }
}

/// The events of an interface, which is known by its index as long as it is there, and then by its name. It may be a
/// second name of the interface.
#[derive(Debug)]
pub struct LinkEvents {
    socket: OwnedFd,
    name: String,
    /// `None` while there is no such device.
    state: Option<State>,
    /// Another device without which the port is of no use.
    needs: Option<u32>,
    events: VecDeque<Event>,
}

impl LinkEvents {
    /// Those of `interface`, from now on; `None` where the kernel does not tell.
    pub fn open(interface: &Interface) -> Option<Box<dyn Events>> {
        Self::open_with(interface, None)
    }

    /// The same of a port that `needs` another device: that is set up when somebody sets it down, and the port is gone without it.
    pub fn open_with(interface: &Interface, needs: Option<u32>) -> Option<Box<dyn Events>> {
        let socket = netlink::open(libc::NETLINK_ROUTE).ok()?;
        netlink::subscribe(&socket, RTMGRP_LINK).ok()?;
        let &Interface { index, up, mtu, ref name, .. } = interface;
        let state = Some(State { ifindex: index, up, mtu, name: None });
        let mut this = LinkEvents { socket, name: name.clone(), state, needs, events: VecDeque::new() };
        // What changed before the subscription, and whether there is a carrier, which nobody has asked yet.
        this.ask().ok()?;
        this.look_at_need();
        Some(Box::new(this))
    }

    /// Asks for the port's link; the answer comes among the events.
    fn ask(&self) -> io::Result<()> {
        let mut body = vec![0; INFO];
        match &self.state {
            Some(state) => body[4..8].copy_from_slice(&state.ifindex.to_ne_bytes()),
            None => {
                let name: Vec<u8> = self.name.bytes().chain([0]).collect();
                netlink::put(&mut body, IFLA_IFNAME, &name);
            }
        }
        netlink::send(&self.socket, RTM_GETLINK, 0, &body)
    }

    fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((kind, body, after)) = netlink::message(rest) {
            rest = after;
            let Some(message) = parse(kind, body, &self.name) else { continue };
            if self.needs.is_some() && message.ifindex() == self.needs {
                self.look_at_need();
            }
            let news = changes(&mut self.state, message);
            self.events.extend(&news);
            if news.contains(&Event::Gone) {
                // Another may have had the name already.
                let _ = self.ask();
            }
        }
    }

    /// Has the device be up that the port needs, or the port be gone.
    fn look_at_need(&mut self) {
        let Some(index) = self.needs else { return };
        let need = name_by_index(index).and_then(|name| Interface::open(&name).ok());
        match need {
            Some(need) if need.up => return,
            Some(need) if set_up(&need.name).is_ok() => {
                return self.events.push_back(Event::WayUpRestored);
            }
            _ => self.needs = None,
        }
        // If the device itself is gone that has been told.
        if self.state.take().is_some() {
            self.events.extend([Event::WayUpGone, Event::Gone]);
            let _ = self.ask();
        }
    }
}

impl Events for LinkEvents {
    fn next(&mut self, timeout: Duration) -> Option<Event> {
        if self.events.is_empty() {
            let limit = libc::timeval {
                tv_sec: timeout.as_secs() as libc::time_t,
                tv_usec: timeout.subsec_micros().max(1) as libc::suseconds_t,
            };
            set_option(&self.socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &limit).ok()?;
            let mut buffer = vec![0u8; BUFFER];
            let (fd, at) = (self.socket.as_raw_fd(), buffer.as_mut_ptr().cast());
            // SAFETY: the buffer is live and as long as given.
            let got = unsafe { libc::recv(fd, at, buffer.len(), 0) };
            match usize::try_from(got) {
                Ok(got) => self.read(&buffer[..got.min(BUFFER)]),
                // Messages were lost: only the present state can be had.
                Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS) => {
                    self.ask().ok()?;
                    self.look_at_need();
                }
                Err(_) => {}
            }
        }
        self.events.pop_front()
    }
}

/// What a message says to the port called `port`.
fn parse(kind: u16, body: &[u8], port: &str) -> Option<Message> {
    let word = |at: usize| body.get(at..at + 4)?.first_chunk().map(|w| u32::from_ne_bytes(*w));
    if kind == libc::NLMSG_ERROR as u16 {
        // Other errors say nothing of the link.
        return (word(0)? == -libc::ENODEV as u32).then_some(Message::Unknown);
    }
    // A bridge tells by the same kinds, in its own family, which ports it has.
    if !matches!(kind, RTM_NEWLINK | RTM_DELLINK) || *body.first()? != libc::AF_UNSPEC as u8 {
        return None;
    }
    let (ifindex, flags) = (word(4)?, word(8)?);
    if kind == RTM_DELLINK {
        return Some(Message::Deleted(ifindex));
    }
    let attributes = body.get(INFO..)?;
    let text = |value| std::str::from_utf8(value).ok().map(|text: &str| text.trim_end_matches('\0'));
    let name = text(netlink::attribute(attributes, IFLA_IFNAME)?)?;
    let others = netlink::attribute(attributes, IFLA_PROP_LIST).unwrap_or_default();
    let mut others = netlink::attributes(others).filter(|&(kind, _)| kind == IFLA_ALT_IFNAME);
    let called = name == port || others.any(|(_, value)| text(value) == Some(port));
    let mtu = netlink::attribute(attributes, IFLA_MTU).and_then(|v| v.first_chunk());
    let mtu = mtu.map_or(0, |v| u32::from_ne_bytes(*v));
    let running = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
    let state = State { ifindex, up: flags & running == running, mtu, name: Some(name.to_owned()) };
    Some(Message::There(state, called))
}

/// What `message` means for the port whose device was in `state`.
fn changes(state: &mut Option<State>, message: Message) -> Vec<Event> {
    match (&mut *state, message) {
        // Deleted, or moved to another namespace.
        (Some(was), Message::Deleted(ifindex)) if was.ifindex == ifindex => {
            *state = None;
            vec![Event::Gone]
        }
        (Some(_), Message::Unknown) => {
            *state = None;
            vec![Event::Gone]
        }
        (Some(was), Message::There(now, _)) if was.ifindex == now.ifindex => {
            let was = std::mem::replace(was, now.clone());
            let name = (was.name.is_some() && was.name != now.name).then_some(Event::Renamed);
            let link = (was.up != now.up).then_some(if now.up { Event::LinkUp } else { Event::LinkDown });
            let mtu = (was.mtu != now.mtu).then_some(Event::MtuChanged(now.mtu));
            name.into_iter().chain(link).chain(mtu).collect()
        }
        (None, Message::There(now, true)) => {
            *state = Some(now);
            vec![Event::Back]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testnet::{self, ip};
    use proptest::prelude::*;

    /// The next `n` events, or those that come within a while. The kernel may tell of a carrier a second late.
    fn events(of: &mut dyn Events, n: usize) -> Vec<Event> {
        let (mut events, mut idle) = (Vec::new(), 0);
        while events.len() < n && idle < 50 {
            let event = of.next(Duration::from_millis(100));
            idle = if event.is_some() { 0 } else { idle + 1 };
            events.extend(event);
        }
        events
    }

    #[test]
    fn what_happens_to_an_interface_is_told() {
        testnet::run(&[("g0", "r0")], || {
            let mut link = LinkEvents::open(&Interface::open("r0").expect("r0")).expect("events");
            ip("ip link set dev r0 mtu 1400");
            assert_eq!(events(&mut *link, 1), [Event::MtuChanged(1400)], "and nothing before it");
            // It takes the other's carrier.
            ip("ip link set dev g0 down");
            assert_eq!(events(&mut *link, 1), [Event::LinkDown]);
            ip("ip link set dev g0 up");
            assert_eq!(events(&mut *link, 1), [Event::LinkUp]);
            ip("ip link del g0");
            ip("ip link add o0 type veth peer name o1");
            ip("ip link add g0 type veth peer name r0");
            let gone = std::iter::from_fn(|| Some(events(&mut *link, 1))).find(|e| *e != [Event::LinkDown]);
            assert_eq!(gone, Some(vec![Event::Gone]));
            assert_eq!(events(&mut *link, 1), [Event::Back]);
            testnet::up("r0");
            testnet::up("g0");
            assert_eq!(events(&mut *link, 1), [Event::LinkUp]);
            ip("ip link set dev r0 down");
            assert_eq!(events(&mut *link, 1), [Event::LinkDown]);
            ip("ip link set dev r0 name r1");
            assert_eq!(events(&mut *link, 1), [Event::Renamed], "it is the same one");
            ip("ip link add r0 type veth peer name g1");
            ip("ip link set dev r1 mtu 1400");
            assert_eq!(events(&mut *link, 1), [Event::MtuChanged(1400)], "and not the one of its old name");
            ip("ip link del g0");
            let gone = std::iter::from_fn(|| Some(events(&mut *link, 1))).find(|e| *e != [Event::LinkDown]);
            assert_eq!(gone, Some(vec![Event::Gone]));
            assert_eq!(events(&mut *link, 1), [Event::Back], "the other one has the name already");
        });
    }

    #[test]
    fn a_bridge_and_a_second_name_leave_a_port_where_it_is() {
        testnet::run(&[("g0", "r0")], || {
            ip("ip link property add dev r0 altname second");
            let mut link = LinkEvents::open(&Interface::open("second").expect("r0")).expect("events");
            ip("ip link add b0 type bridge");
            ip("ip link set dev r0 master b0");
            ip("ip link set dev r0 nomaster");
            ip("ip link set dev r0 mtu 1400");
            assert_eq!(events(&mut *link, 1), [Event::MtuChanged(1400)]);
            ip("ip link del g0");
            let gone = std::iter::from_fn(|| Some(events(&mut *link, 1))).find(|e| *e != [Event::LinkDown]);
            assert_eq!(gone, Some(vec![Event::Gone]));
            ip("ip link add g0 type veth peer name r0");
            ip("ip link property add dev r0 altname second");
            testnet::up("r0");
            assert_eq!(events(&mut *link, 1), [Event::Back]);
        });
    }

    #[test]
    fn only_the_answer_that_there_is_no_such_device_says_so() {
        let of = |ifindex| State { ifindex, up: true, mtu: 1500, name: None };
        let error = |code: i32| parse(libc::NLMSG_ERROR as u16, &code.to_ne_bytes(), "r0");
        assert_eq!(error(-libc::EBUSY), None);
        assert_eq!(error(0), None);
        let mut state = Some(of(3));
        assert_eq!(changes(&mut state, Message::There(of(4), true)), [], "it has not gone yet");
        assert_eq!(changes(&mut state, Message::Deleted(4)), []);
        assert_eq!(changes(&mut state, error(-libc::ENODEV).expect("a message")), [Event::Gone]);
        assert_eq!(changes(&mut state, Message::Unknown), []);
        assert_eq!(changes(&mut state, Message::There(of(5), false)), []);
        assert_eq!(changes(&mut state, Message::There(of(4), true)), [Event::Back]);
    }

    proptest! {
        /// Messages that lie lead to nothing worse than no event.
        #[test]
        fn any_message(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut rest = &bytes[..];
            while let Some((kind, body, after)) = netlink::message(rest) {
                let _ = parse(kind, body, "r0");
                prop_assert!(after.len() < rest.len());
                rest = after;
            }
            let _ = parse(RTM_NEWLINK, &bytes, "r0");
        }
    }
}
