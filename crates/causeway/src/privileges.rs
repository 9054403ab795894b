//! What the process may do: as much as its work needs, and nothing as root.
//!
//! A router needs five capabilities of Linux and no user: [`NEEDED`]. One that was started by root becomes another user
//! before it touches a packet, and keeps those. What only root can do is done before: making what lies in folders and
//! devices that belong to root, a network namespace of its own, memory that is locked without limit.
//!
//! Capabilities belong to threads, and those that are started later have what their maker has. So this is done early,
//! by the thread that makes all others.

use anyhow::{Context, Result};
use nix::unistd::{Gid, Uid, User, setgroups, setresgid, setresuid};
use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// What a router needs: interfaces and routes, AF_XDP sockets, BPF programs and maps, verification without the guards
/// against speculation that cost time in every packet, packet memory that is locked.
pub const NEEDED: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::IPC_LOCK);

/// Their names.
pub const NAMES: [(CapabilitySet, &str); 5] = [
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
    (CapabilitySet::NET_RAW, "CAP_NET_RAW"),
    (CapabilitySet::BPF, "CAP_BPF"),
    (CapabilitySet::PERFMON, "CAP_PERFMON"),
    (CapabilitySet::IPC_LOCK, "CAP_IPC_LOCK"),
];

/// The user that a router started by root becomes, if there is one of that name.
const USER: &str = "causeway";
/// Otherwise a number that is nobody's, from the range in which systemd, too, finds numbers for services that have no
/// user of their own.
const NOBODYS: std::ops::RangeInclusive<u32> = 61_184..=65_519;
/// Where in the range the search begins, so that it is not the number that systemd would give first.
const FIRST: u32 = 61_907;

/// The user and group that a router started by root becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub uid: u32,
    pub gid: u32,
    /// The name, or the number where there is none.
    pub name: String,
}

impl Service {
    /// None for who is not root and stays who it is.
    pub fn find() -> Option<Service> {
        if !geteuid().is_root() {
            return None;
        }
        if let Ok(Some(user)) = User::from_name(USER) {
            return Some(Service { uid: user.uid.as_raw(), gid: user.gid.as_raw(), name: user.name });
        }
        let free = |uid: &u32| matches!(User::from_uid(Uid::from_raw(*uid)), Ok(None));
        let uid = (FIRST..=*NOBODYS.end()).chain(*NOBODYS.start()..FIRST).find(free)?;
        Some(Service { uid, gid: uid, name: uid.to_string() })
    }

    /// Becomes that user for good, with what a router needs and nothing else.
    ///
    /// # Errors
    /// The kernel's: in a container the number may have no place.
    pub fn become_it(&self) -> Result<()> {
        let failed = || format!("cannot become user {}", self.name);
        let gid = Gid::from_raw(self.gid);
        setgroups(&[]).with_context(failed)?;
        setresgid(gid, gid, gid).with_context(failed)?;
        rustix::thread::set_keep_capabilities(true).with_context(failed)?;
        let uid = Uid::from_raw(self.uid);
        setresuid(uid, uid, uid).with_context(failed)?;
        rustix::thread::set_keep_capabilities(false).with_context(failed)
    }
}

/// Lets go of all capabilities but the [`NEEDED`] ones, of those that the process has; none can be had again.
///
/// # Errors
/// The kernel's.
pub fn keep_needed() -> Result<()> {
    let failed = "cannot let go of capabilities";
    let had = capabilities(None).context(failed)?;
    let kept = had.permitted & NEEDED;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).context(failed)?;
    rustix::thread::set_no_new_privs(true).context(failed)
}

/// Lets the process lock as much memory as it wants, where it may.
pub fn unlimit_memory() {
    let unlimited = Rlimit { current: None, maximum: None };
    // Who may not is limited by what it has, and told when that does not suffice.
    let _ = setrlimit(Resource::Memlock, unlimited);
}

/// The names of needed capabilities that the process does not have.
pub fn missing() -> Vec<&'static str> {
    let has = capabilities(None).map_or(CapabilitySet::empty(), |c| c.effective);
    NAMES.into_iter().filter(|(one, _)| !has.contains(*one)).map(|(_, name)| name).collect()
}
