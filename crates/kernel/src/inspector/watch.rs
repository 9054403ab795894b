//! The inspector's thread.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, netlink, recv};
use rustix::time::{ClockId, clock_gettime};

use super::{Doubt, Inspection, InspectorConfig};
use crate::decode::{Object, Operation, Source, decode};
use crate::findings::{Inquiry, Look, nftables, sort};
use crate::model::Link;
use crate::socket::{DATAGRAM_LEN, Socket};
use crate::uapi::*;
use crate::wire::{Frame, Frames, u32_at};

/// How often the thread takes a turn at least, and asks for what the kernel sends no messages about: a little more often than
/// the four times a second that it is to be relied on.
const TURN: Duration = Duration::from_millis(200);
/// How often it looks at everything, whatever messages say.
const AUDIT: Duration = Duration::from_secs(30);
/// How long whoever changes something is given to finish before it is looked at.
const SETTLE: Duration = Duration::from_millis(20);
/// The same where the tables follow too: they may be three seconds behind the kernel, and until they are not they are neither by
/// the rules of before nor by those of now.
const FOLLOW: Duration = Duration::from_secs(4);
/// How long to wait after an error.
const RETRY: Duration = Duration::from_secs(1);
/// Between two looks there is at least this many times what the last one took, so that a storm of messages costs no more than
/// a tenth of a processor; the same holds for questions.
const SPARING: u32 = 9;
/// Datagrams that are read from a socket in one turn.
const DATAGRAMS: usize = 1024;

/// The groups of the routing socket.
const GROUPS: [u32; 6] = [
    RTNLGRP_LINK,
    RTNLGRP_TC,
    RTNLGRP_IPV4_RULE,
    RTNLGRP_IPV6_RULE,
    RTNLGRP_IPV4_NETCONF,
    RTNLGRP_IPV6_NETCONF,
];

/// What a socket's messages are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Route,
    Netfilter,
    Xfrm,
}

/// What is to be done about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reaction {
    Nothing,
    /// Read what there are no messages about.
    Ask,
    /// Look at everything.
    Look(Doubt),
}

/// The state of the thread.
pub(super) struct Watch {
    config: InspectorConfig,
    report: Box<dyn Fn(Inspection) + Send>,
    stop: OwnedFd,
    sockets: Vec<(Subject, Socket)>,
    buffer: Vec<u8>,
    inquiry: Inquiry,
    look: Option<Look>,
    /// When to look, if there is a doubt.
    doubt: Option<Instant>,
    /// Before this it is too early for another look, to spare the processor.
    look_not_before: Instant,
    audit_at: Instant,
    ask_at: Instant,
    /// Before this it is too early to ask, to spare the processor.
    ask_not_before: Instant,
    told: Option<Inspection>,
}

impl Watch {
    pub fn open(config: InspectorConfig, stop: OwnedFd) -> io::Result<Self> {
        let len = config.receive_buffer_bytes;
        let mut sockets = vec![(Subject::Route, Socket::subscribe(None, &GROUPS, len)?)];
        for (subject, protocol, group) in [
            (Subject::Netfilter, netlink::NETFILTER, NFNLGRP_NFTABLES),
            (Subject::Xfrm, netlink::XFRM, XFRMNLGRP_POLICY),
        ] {
            match Socket::subscribe(Some(protocol), &[group], len) {
                Ok(socket) => sockets.push((subject, socket)),
                // A kernel without it.
                Err(error) if error.raw_os_error() == Some(EPROTONOSUPPORT) => {}
                Err(error) => return Err(error),
            }
        }
        let now = Instant::now();
        Ok(Watch {
            inquiry: Inquiry::open(config.ports.clone())?,
            config,
            report: Box::new(|_| ()),
            stop,
            sockets,
            buffer: vec![0; DATAGRAM_LEN],
            look: None,
            doubt: None,
            look_not_before: now,
            audit_at: now + AUDIT,
            ask_at: now,
            ask_not_before: now,
            told: None,
        })
    }

    pub fn run(&mut self, report: impl Fn(Inspection) + Send + 'static) {
        self.report = Box::new(report);
        self.doubt(Doubt::Start, Duration::ZERO);
        loop {
            self.turn();
            let now = clock_gettime(ClockId::Monotonic);
            let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
            self.config.pulse.store(now_ns, Ordering::Relaxed);
            if self.wait() {
                return;
            }
        }
    }

    /// Waits for messages, or until something is due; whether the thread is to end.
    fn wait(&self) -> bool {
        let now = Instant::now();
        let due =
            self.doubt.unwrap_or(self.audit_at).min(self.ask_at).saturating_duration_since(now).min(TURN);
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(due.subsec_nanos()) };
        let mut fds = vec![PollFd::new(&self.stop, PollFlags::IN)];
        // In doubt messages say nothing new; what has come is thrown away when it is looked.
        if self.doubt.is_none() {
            fds.extend(self.sockets.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::IN)));
        }
        let _ = poll(&mut fds, Some(&timeout));
        !fds[0].revents().is_empty()
    }

    fn turn(&mut self) {
        if self.doubt.is_none() {
            self.read();
        }
        let now = Instant::now();
        if self.doubt.is_some_and(|at| at <= now) {
            if self.discard() {
                return self.doubt(Doubt::Rules, FOLLOW);
            }
            self.look();
        } else if self.doubt.is_none() && self.audit_at <= now {
            self.look();
        }
        if self.ask_at <= Instant::now() {
            self.ask();
        }
    }

    /// Tells of a doubt, unless one was told already, and looks after `settle`.
    fn doubt(&mut self, doubt: Doubt, settle: Duration) {
        let at = (Instant::now() + settle).max(self.look_not_before);
        self.doubt = Some(self.doubt.map_or(at, |before| before.max(at)));
        let known = !matches!(self.told, Some(Inspection::Doubt(_)));
        if known || matches!(doubt, Doubt::Failed(_)) {
            self.tell(Inspection::Doubt(doubt));
        }
    }

    fn tell(&mut self, inspection: Inspection) {
        if self.told.as_ref() != Some(&inspection) {
            self.told = Some(inspection.clone());
            (self.report)(inspection);
        }
    }

    /// Looks at what there are messages about.
    fn look(&mut self) {
        let begin = Instant::now();
        let looked = self.inquiry.look();
        let end = Instant::now();
        self.look_not_before = end + (end - begin) * SPARING;
        self.audit_at = end + AUDIT;
        match looked {
            Ok(look) => {
                self.look = Some(look);
                self.doubt = None;
                self.ask_at = end;
            }
            Err(error) => self.failed(error),
        }
    }

    /// Asks for what there are no messages about, and tells what is known then, if no message says that it is no more.
    fn ask(&mut self) {
        let begin = Instant::now();
        let Some(look) = &self.look else {
            self.ask_at = begin + TURN;
            return;
        };
        let probe = &*self.config.probe;
        let asked = self.inquiry.silent(look, probe);
        let asked = asked.and_then(|asked| Ok((asked, self.inquiry.exceptions(probe)?)));
        let end = Instant::now();
        self.ask_not_before = end + (end - begin) * SPARING;
        self.ask_at = (begin + TURN).max(self.ask_not_before);
        match asked {
            Ok(((mut findings, settings), exceptions)) => {
                findings.extend(look.findings.iter().cloned());
                sort(&mut findings);
                if self.doubt.is_none() {
                    self.read();
                }
                if self.doubt.is_none() {
                    self.tell(Inspection::Known { findings, settings, exceptions });
                }
            }
            Err(error) => self.failed(error),
        }
    }

    fn failed(&mut self, error: io::Error) {
        if error.kind() == io::ErrorKind::Interrupted {
            self.doubt(Doubt::Changing, SETTLE);
        } else {
            self.doubt(Doubt::Failed(error.to_string()), RETRY);
        }
    }

    /// Reads messages, until one is a reason to look.
    fn read(&mut self) {
        for index in 0..self.sockets.len() {
            for _ in 0..DATAGRAMS {
                let (subject, socket) = &self.sockets[index];
                let reaction = match receive(socket, &mut self.buffer) {
                    Ok(None) => break,
                    Ok(Some(len)) => self.reaction(*subject, &self.buffer[..len]),
                    Err(_) => Reaction::Look(Doubt::Lost),
                };
                let is_followed = *subject == Subject::Route;
                match reaction {
                    Reaction::Nothing => {}
                    Reaction::Ask => self.ask_at = Instant::now().max(self.ask_not_before),
                    Reaction::Look(doubt @ Doubt::Rules) => return self.doubt(doubt, FOLLOW),
                    Reaction::Look(doubt @ Doubt::Lost) if is_followed => return self.doubt(doubt, FOLLOW),
                    Reaction::Look(doubt) => return self.doubt(doubt, SETTLE),
                }
            }
        }
    }

    /// Throws away what has come so far; whether the tables may have to follow some of it.
    fn discard(&mut self) -> bool {
        let mut rules = false;
        for (subject, socket) in &self.sockets {
            for _ in 0..DATAGRAMS {
                match receive(socket, &mut self.buffer) {
                    Ok(None) => break,
                    Ok(Some(len)) => {
                        let is_rule =
                            |frame| matches!(frame, Ok(Frame { kind: RTM_NEWRULE | RTM_DELRULE, .. }));
                        rules |= *subject == Subject::Route && Frames(&self.buffer[..len]).any(is_rule);
                    }
                    Err(_) => rules |= *subject == Subject::Route,
                }
            }
        }
        rules
    }

    fn reaction(&self, subject: Subject, datagram: &[u8]) -> Reaction {
        let mut reaction = Reaction::Nothing;
        for frame in Frames(datagram) {
            let Ok(frame) = frame else { return Reaction::Look(Doubt::Lost) };
            match self.to(subject, &frame) {
                Reaction::Nothing => {}
                Reaction::Ask => reaction = Reaction::Ask,
                look => return look,
            }
        }
        reaction
    }

    fn to(&self, subject: Subject, frame: &Frame<'_>) -> Reaction {
        let Some(look) = &self.look else { return Reaction::Look(Doubt::Start) };
        let (matters, doubt) = match (subject, frame.kind) {
            (Subject::Netfilter, _) => {
                (nftables::matters(frame, &look.chains, &self.config.ports), Doubt::Netfilter)
            }
            (Subject::Xfrm, _) => (true, Doubt::Xfrm),
            (Subject::Route, RTM_NEWNETCONF | RTM_DELNETCONF) => return Reaction::Ask,
            (Subject::Route, RTM_NEWLINK | RTM_DELLINK) => (self.link_matters(look, frame), Doubt::Links),
            (Subject::Route, RTM_NEWRULE | RTM_DELRULE) => (true, Doubt::Rules),
            (Subject::Route, RTM_NEWQDISC | RTM_DELQDISC) => {
                let ifindex = u32_at(frame.payload, 4);
                (ifindex.is_none_or(|index| look.port(index).is_some()), Doubt::TrafficControl)
            }
            // Filters: their place is a finding already.
            (Subject::Route, _) => (false, Doubt::TrafficControl),
        };
        if matters { Reaction::Look(doubt) } else { Reaction::Nothing }
    }

    /// Whether a message is about a port, or what takes frames from one, and says of that link what is not known. The kernel
    /// sends many that do not.
    fn link_matters(&self, look: &Look, frame: &Frame<'_>) -> bool {
        match decode(frame, Source::Event) {
            Ok(Some(message)) => {
                let Object::Link(link) = message.object else { return false };
                let known = look.link(link.index);
                let takes = |link: &Link| link.takes_from.is_some_and(|below| look.port(below).is_some());
                let concerned = look.port(link.index).is_some()
                    || self.config.ports.contains(&link.name)
                    || takes(&link)
                    || known.is_some_and(takes);
                concerned && (message.operation == Operation::Removed || known != Some(&link))
            }
            Ok(None) => false,
            Err(_) => true,
        }
    }
}

/// Reads one datagram, if one is there.
fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match recv(socket, &mut buffer[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
        Ok((_, len)) if len > buffer.len() => Err(io::Error::other("message too long")),
        Ok((_, len)) => Ok(Some(len)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
