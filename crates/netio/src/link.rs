//! What happens to the device of a port, as the kernel's link messages tell it (rtnetlink(7)).

use crate::interface::{Interface, set_option};
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
/// Bytes of a `struct ifinfomsg`.
const INFO: usize = 16;
/// Bytes of a message with all that the kernel says of a link, at most.
const BUFFER: usize = 1 << 16;

/// What the last message said of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    ifindex: u32,
    up: bool,
    mtu: u32,
}

/// One message: the link's index, and the rest unless it is gone.
#[derive(Debug, PartialEq, Eq)]
struct Message<'a> {
    name: &'a str,
    state: Option<State>,
    ifindex: u32,
}

/// The events of the interface of one name.
#[derive(Debug)]
pub struct LinkEvents {
    socket: OwnedFd,
    name: String,
    /// `None` while there is no such device.
    state: Option<State>,
    events: VecDeque<Event>,
}

impl LinkEvents {
    /// Those of `interface`, from now on; `None` where the kernel does not tell.
    pub fn open(interface: &Interface) -> Option<Box<dyn Events>> {
        let socket = netlink::open(libc::NETLINK_ROUTE).ok()?;
        netlink::subscribe(&socket, RTMGRP_LINK).ok()?;
        let &Interface { index, up, mtu, .. } = interface;
        let state = Some(State { ifindex: index, up, mtu });
        let this = LinkEvents { socket, name: interface.name.clone(), state, events: VecDeque::new() };
        // What changed before the subscription, and whether there is a carrier, which nobody has asked yet.
        this.ask().ok()?;
        Some(Box::new(this))
    }

    /// Asks for the link of the port's name; the answer comes among the events.
    fn ask(&self) -> io::Result<()> {
        let mut body = vec![0; INFO];
        let name: Vec<u8> = self.name.bytes().chain([0]).collect();
        netlink::put(&mut body, IFLA_IFNAME, &name);
        netlink::send(&self.socket, RTM_GETLINK, 0, &body)
    }

    fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((kind, body, after)) = netlink::message(rest) {
            rest = after;
            match kind {
                RTM_NEWLINK | RTM_DELLINK => {
                    if let Some(message) = parse(kind, body) {
                        self.events.extend(changes(&mut self.state, &self.name, &message));
                    }
                }
                // There is no such link: the answer to a question.
                kind if kind == libc::NLMSG_ERROR as u16 && self.state.take().is_some() => {
                    self.events.push_back(Event::Gone);
                }
                _ => {}
            }
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
                }
                Err(_) => {}
            }
        }
        self.events.pop_front()
    }
}

fn parse(kind: u16, body: &[u8]) -> Option<Message<'_>> {
    let word = |at: usize| body.get(at..at + 4)?.first_chunk().map(|w| u32::from_ne_bytes(*w));
    let (ifindex, flags) = (word(4)?, word(8)?);
    let attributes = body.get(INFO..)?;
    let name = netlink::attribute(attributes, IFLA_IFNAME)?;
    let name = std::str::from_utf8(name).ok()?.trim_end_matches('\0');
    let mtu = netlink::attribute(attributes, IFLA_MTU).and_then(|v| v.first_chunk());
    let mtu = mtu.map_or(0, |v| u32::from_ne_bytes(*v));
    let running = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
    let state = State { ifindex, up: flags & running == running, mtu };
    Some(Message { name, state: (kind == RTM_NEWLINK).then_some(state), ifindex })
}

/// What `message` means for the port called `name`, whose device was in `state`.
fn changes(state: &mut Option<State>, name: &str, message: &Message<'_>) -> Vec<Event> {
    let mine = state.is_some_and(|s| s.ifindex == message.ifindex);
    let before = match (*state, message.state) {
        // Deleted, moved to another namespace, or called otherwise.
        (Some(_), None) if mine => {
            *state = None;
            return vec![Event::Gone];
        }
        (Some(_), Some(_)) if mine && message.name != name => {
            *state = None;
            return vec![Event::Gone];
        }
        (_, None) => return Vec::new(),
        (_, Some(_)) if message.name != name => return Vec::new(),
        (before, Some(_)) => before,
    };
    *state = message.state;
    let Some(now) = message.state else { return Vec::new() };
    match before {
        Some(was) if was.ifindex != now.ifindex => vec![Event::Gone, Event::Back],
        None => vec![Event::Back],
        Some(was) => {
            let link = (was.up != now.up).then_some(if now.up { Event::LinkUp } else { Event::LinkDown });
            let mtu = (was.mtu != now.mtu).then_some(Event::MtuChanged(now.mtu));
            link.into_iter().chain(mtu).collect()
        }
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
            assert_eq!(
                events(&mut *link, 1),
                [Event::Gone],
                "it is not the one that the port was opened for"
            );
        });
    }

    #[test]
    fn another_device_of_the_name_is_another_device() {
        let of = |ifindex, up| State { ifindex, up, mtu: 1500 };
        let mut state = Some(of(3, true));
        let message = |state: State| Message { name: "r0", state: Some(state), ifindex: state.ifindex };
        let changed = changes(&mut state, "r0", &message(of(4, true)));
        assert_eq!((changed, state), (vec![Event::Gone, Event::Back], Some(of(4, true))));
        assert_eq!(changes(&mut state, "r0", &Message { name: "r0", state: None, ifindex: 3 }), []);
        assert_eq!(changes(&mut state, "r1", &message(of(5, true))), []);
    }

    proptest! {
        /// Messages that lie lead to nothing worse than no event.
        #[test]
        fn any_message(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut rest = &bytes[..];
            while let Some((kind, body, after)) = netlink::message(rest) {
                let _ = parse(kind, body);
                prop_assert!(after.len() < rest.len());
                rest = after;
            }
            let _ = parse(RTM_NEWLINK, &bytes);
        }
    }
}
