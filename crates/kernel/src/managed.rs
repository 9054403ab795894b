//! What the keeper wants to be told to the kernel, and who knows what was made.
//!
//! Telling the kernel that a neighbour is in use, or to manage it, takes the mark off an entry that somebody made permanent. So
//! each entry is looked at right before: what is somebody else's is not touched. Entries that are made are given back by taking
//! the marks off, so that they stay resolved and no packet is lost.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::changes::AdjacencyId;
use crate::decode::{Object, Source, decode};
use crate::keeper::{Ask, Keeper, Key, is_foreign, is_kept};
use crate::mirror::{Mirror, Scope};
use crate::model::Neighbour;
use crate::pulse::Pulse;
use crate::requests::dump_into;
use crate::socket::Socket;
use crate::uapi::*;
use crate::wire::Request;

/// How often the keeper looks after its neighbours.
const PERIOD: Duration = Duration::from_secs(1);

/// A neighbour that the kernel was told to keep resolved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManagedNeighbour {
    /// Interface index.
    pub ifindex: u32,
    /// The name that the interface had.
    pub ifname: String,
    /// The neighbour's address.
    pub address: IpAddr,
}

/// Says whether packets went to a neighbour since it was last asked.
pub type WasUsed = Box<dyn FnMut(AdjacencyId) -> bool + Send>;
/// Is told which neighbours are managed.
pub type OnManaged = Box<dyn FnMut(&[ManagedNeighbour]) + Send>;

/// Gives back neighbours that a watcher made and did not live to give back, in the network namespace of the calling thread.
/// Returns how many that were: what somebody else made since, or whose interface has not that index and name, is left alone.
///
/// # Errors
/// The kernel's, when it cannot be asked which interfaces there are, or refuses to give one back.
pub fn release_managed(list: &[ManagedNeighbour]) -> io::Result<usize> {
    let mut socket = Socket::open(None)?;
    let mut mirror = Mirror::new([]);
    dump_into(&mut mirror, &mut socket, Scope::LINKS)?;
    let mut released = 0;
    for neighbour in list {
        if mirror.link_by_index(neighbour.ifindex).is_some_and(|link| link.name == neighbour.ifname) {
            released += usize::from(release(&mut socket, (neighbour.ifindex, neighbour.address))?);
        }
    }
    Ok(released)
}

/// The keeper with its line to the kernel.
pub(crate) struct Caretaker {
    keeper: Keeper,
    socket: Socket,
    due: Instant,
    was_used: WasUsed,
    on_managed: OnManaged,
    told: Vec<ManagedNeighbour>,
}

impl Caretaker {
    /// Without `manage` neighbours are only said to be in use, until some were [left](Caretaker::adopt) to us.
    pub fn open(was_used: WasUsed, on_managed: OnManaged, manage: bool) -> io::Result<Self> {
        let keeper = Keeper::new(manage && kernel_manages_neighbours());
        let (socket, due) = (Socket::open(None)?, Instant::now());
        Ok(Caretaker { keeper, socket, due, was_used, on_managed, told: Vec::new() })
    }

    /// Asks the kernel about a host when there is a chance.
    pub fn solicit(&mut self, host: Key) {
        self.keeper.solicit(host);
        self.hurry();
    }

    /// These were managed by somebody who has left them to us, and so the others in use may be.
    pub fn adopt(&mut self, list: impl IntoIterator<Item = Key>) {
        self.keeper.set_manages(kernel_manages_neighbours());
        list.into_iter().for_each(|key| self.keeper.adopt(key));
        self.hurry();
    }

    /// Who is to be kept resolved may have changed.
    pub fn hurry(&mut self) {
        self.due = Instant::now();
    }

    /// When to look after the neighbours again.
    pub fn due_at(&self) -> Instant {
        self.due
    }

    /// The neighbours that are managed now.
    pub fn managed(&self) -> Vec<ManagedNeighbour> {
        self.told.clone()
    }

    /// Looks after the neighbours. Returns how many questions were asked.
    pub fn look(&mut self, mirror: &Mirror, now: Instant, pulse: &Pulse) -> u64 {
        self.due = now + PERIOD;
        let mut asks = self.keeper.keep(&mirror.gateways());
        for host in mirror.stale_hosts() {
            if mirror.adjacency_id(host.0, host.1).is_some_and(&mut self.was_used) {
                self.keeper.solicit(host);
            }
        }
        asks.extend(self.keeper.due(now, |(ifindex, address)| mirror.neighbour_entry(ifindex, address)));
        // Said before it is done, so that it is known whenever we should die; those that are let go, after.
        self.tell(mirror, &asks);
        for &question in &asks {
            pulse.touch();
            self.ask(question);
        }
        self.tell(mirror, &[]);
        asks.len() as u64
    }

    fn ask(&mut self, question: Ask) {
        // A refusal is not an error of ours: the device may be gone, and then a message says so.
        match question {
            Ask::Use(key) => drop(say_used(&mut self.socket, key)),
            Ask::Release(key) => drop(release(&mut self.socket, key)),
            Ask::Manage(key) => match manage(&mut self.socket, key) {
                Ok(Managing::Begun) => self.keeper.managed_one(key, true),
                Ok(Managing::Foreign) => self.keeper.managed_one(key, false),
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.keeper.set_manages(false),
                Ok(Managing::Known) | Err(_) => {}
            },
        }
    }

    /// Tells what is managed, with what is about to be.
    fn tell(&mut self, mirror: &Mirror, asks: &[Ask]) {
        let soon = asks.iter().filter_map(|ask| match ask {
            Ask::Manage(key) | Ask::Release(key) => Some(*key),
            Ask::Use(_) => None,
        });
        let named = |(ifindex, address): Key| {
            let ifname = mirror.link_by_index(ifindex)?.name.clone();
            Some(ManagedNeighbour { ifindex, ifname, address })
        };
        let mut managed: Vec<_> = self.keeper.managed().chain(soon).filter_map(named).collect();
        managed.sort();
        managed.dedup();
        if managed != self.told {
            self.told = managed;
            (self.on_managed)(&self.told);
        }
    }
}

impl Drop for Caretaker {
    fn drop(&mut self) {
        let managed: Vec<Key> = self.keeper.managed().collect();
        for key in managed {
            // An entry that is gone already needs nothing.
            let _ = release(&mut self.socket, key);
        }
        if !self.told.is_empty() {
            (self.on_managed)(&[]);
        }
    }
}

/// The kernel's entry at this moment.
fn entry(socket: &mut Socket, key: Key) -> io::Result<Option<Neighbour>> {
    let answer = socket.ask(neighbour(RTM_GETNEIGH, NLM_F_REQUEST, key, 0), |frame| {
        match decode(frame, Source::Dump) {
            Ok(Some(message)) => match message.object {
                Object::Neighbour(neighbour) => Some(neighbour),
                _ => None,
            },
            _ => None,
        }
    });
    match answer {
        Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(None),
        answer => answer,
    }
}

/// What became of the wish to manage a neighbour.
enum Managing {
    Begun,
    /// It is managed already: by us, if we asked before, or by somebody else.
    Known,
    /// It is somebody else's.
    Foreign,
}

/// Has the kernel keep a neighbour resolved.
fn manage(socket: &mut Socket, key: Key) -> io::Result<Managing> {
    let create = match entry(socket, key)? {
        None => NLM_F_CREATE | NLM_F_EXCL,
        Some(entry) if is_foreign(&entry) => return Ok(Managing::Foreign),
        Some(entry) if entry.managed => return Ok(Managing::Known),
        Some(_) => 0,
    };
    let request = neighbour(RTM_NEWNEIGH, NLM_F_REQUEST | NLM_F_ACK | create, key, NTF_EXT_LEARNED)
        .attribute(NDA_FLAGS_EXT, &NTF_EXT_MANAGED.to_ne_bytes());
    socket.request(request).map(|()| Managing::Begun)
}

/// Says that a neighbour is in use, which makes the kernel find out whether it is there. One that is managed it keeps by itself,
/// and would not after this.
fn say_used(socket: &mut Socket, key: Key) -> io::Result<()> {
    if entry(socket, key)?.is_some_and(|entry| entry.managed || is_foreign(&entry)) {
        return Ok(());
    }
    socket.request(neighbour(RTM_NEWNEIGH, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, key, NTF_USE))
}

/// Takes the marks off an entry that is as we make them; whether it was.
fn release(socket: &mut Socket, key: Key) -> io::Result<bool> {
    if !entry(socket, key)?.as_ref().is_some_and(is_kept) {
        return Ok(false);
    }
    // An entry that is said to be in use keeps its state, and loses the marks that are not said again.
    socket.request(neighbour(RTM_NEWNEIGH, NLM_F_REQUEST | NLM_F_ACK, key, NTF_USE)).map(|()| true)
}

/// A request about a neighbour; its state (`NUD_NONE`) leaves an entry's own as it is.
fn neighbour(kind: u16, flags: u16, (ifindex, address): Key, neighbour_flags: u8) -> Request {
    let family = match address {
        IpAddr::V4(_) => AF_INET,
        IpAddr::V6(_) => AF_INET6,
    };
    let mut header = [0; 12];
    header[0] = family;
    header[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    header[10] = neighbour_flags;
    Request::new(kind, flags, &header).address(NDA_DST, address)
}

/// Managed entries came with Linux 5.16. Older kernels do not refuse the flag but take the request for one to forget what they
/// know of the neighbour, so trying is no way to find out.
fn kernel_manages_neighbours() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(|part| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        part[..digits].parse::<u32>().unwrap_or(0)
    });
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 16)
}
