//! Offloads: what a device does to packets that the stack would do otherwise, as ethtool's ioctl shows and sets it.

use crate::ethtool::{is_active, set};
use crate::interface::{Interface, control, ethtool, name_of};
use crate::{ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GTXCSUM: u32 = 0x16;
const ETHTOOL_STXCSUM: u32 = 0x17;
/// Merge packets on receipt, in the device.
const FLAG_LRO: u32 = 1 << 15;
/// Take VLAN tags out of received frames.
const FLAG_RX_VLAN: u32 = 1 << 8;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    cmd: u32,
    data: u32,
}

fn value(fd: &OwnedFd, name: &str, cmd: u32, data: u32) -> Result<u32> {
    let mut value = Value { cmd, data };
    // SAFETY: the structure of all commands that are asked with one value.
    unsafe { ethtool(fd, name, std::ptr::from_mut(&mut value).cast()) }?;
    Ok(value.data)
}

/// An offload that a port may have to turn off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Packets merged by the device: what comes out is not what came in.
    Lro,
    /// Packets merged by the device in such a way that the stack can take them apart again; XDP sees them merged.
    GroHw,
    /// VLAN tags taken out of frames by the device: XDP and AF_XDP never see them.
    RxVlan,
    /// Packets merged by the stack before a packet socket sees them.
    Gro,
    /// Checksums left to the device on transmission: what the stack sends through a veth is then unfinished.
    TxChecksum,
}

/// The name of the feature that has no request of its own.
const GRO_HW: &str = "rx-gro-hw";

impl Offload {
    /// Those that break forwarding, or that drivers want off before they take an XDP program.
    pub const HARMFUL: [Offload; 3] = [Offload::Lro, Offload::GroHw, Offload::RxVlan];

    /// Its name, as `ethtool -K` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Offload::Lro => "lro",
            Offload::GroHw => GRO_HW,
            Offload::RxVlan => "rxvlan",
            Offload::Gro => "gro",
            Offload::TxChecksum => "tx",
        }
    }

    /// The one with that name, of those that ports turn off.
    pub fn by_name(name: &str) -> Option<Offload> {
        Offload::HARMFUL.into_iter().chain([Offload::Gro]).find(|o| o.name() == name)
    }

    fn get(self, fd: &OwnedFd, name: &str) -> Result<bool> {
        Ok(match self {
            Offload::Lro => value(fd, name, ETHTOOL_GFLAGS, 0)? & FLAG_LRO != 0,
            Offload::GroHw => is_active(fd, name, GRO_HW)?,
            Offload::RxVlan => value(fd, name, ETHTOOL_GFLAGS, 0)? & FLAG_RX_VLAN != 0,
            Offload::Gro => value(fd, name, ETHTOOL_GGRO, 0)? != 0,
            Offload::TxChecksum => value(fd, name, ETHTOOL_GTXCSUM, 0)? != 0,
        })
    }

    fn set(self, fd: &OwnedFd, name: &str, on: bool) -> Result<()> {
        let flag = |flag: u32| {
            let flags = value(fd, name, ETHTOOL_GFLAGS, 0)?;
            value(fd, name, ETHTOOL_SFLAGS, if on { flags | flag } else { flags & !flag })
        };
        match self {
            Offload::Lro => flag(FLAG_LRO)?,
            Offload::GroHw => {
                set(fd, name, GRO_HW, on)?;
                return Ok(());
            }
            Offload::RxVlan => flag(FLAG_RX_VLAN)?,
            Offload::Gro => value(fd, name, ETHTOOL_SGRO, on.into())?,
            Offload::TxChecksum => value(fd, name, ETHTOOL_STXCSUM, on.into())?,
        };
        Ok(())
    }
}

/// Whether an offload is on.
///
/// # Errors
/// What ethtool's ioctl says; drivers without the offload say that it is not supported.
pub fn is_on(name: &str, offload: Offload) -> Result<bool> {
    offload.get(&control()?, name)
}

/// What is told of offloads that are changed: the interface's index and its name then, the offload, and whether it is off on our
/// account. The name may have changed since it was turned off; the index has not.
pub type Journal = dyn Fn(u32, &str, Offload, bool) + Send + Sync;

static JOURNAL: OnceLock<Box<Journal>> = OnceLock::new();

/// Has `journal` told of every offload before a port turns it off, and after it was restored, so that somebody can
/// restore it if the process is killed. Only the first journal counts.
pub fn keep_journal(journal: Box<Journal>) {
    let _ = JOURNAL.set(journal);
}

fn note(ifindex: u32, name: &str, offload: Offload, off: bool) {
    if let Some(journal) = JOURNAL.get() {
        journal(ifindex, name, offload, off);
    }
}

/// An offload of a device that is off on account of a guard.
#[derive(Debug)]
struct Held {
    ifindex: u32,
    /// The name that the device had then.
    name: String,
    offload: Offload,
    /// The number of the guard; none while it is any guard's of that device.
    owner: Option<u64>,
}

impl Held {
    /// Turns it on again, and has the journal forget it, unless one of `others` is the same.
    fn restore(self, fd: &OwnedFd, others: &[Held]) {
        // By what it is called now: its old name may be another's. If it is gone, there is nothing to restore.
        if let Ok(now) = name_of(fd, self.ifindex) {
            let _ = self.offload.set(fd, &now, true);
        }
        forget(others, (self.ifindex, &self.name), self.offload);
    }
}

/// All of the process. The port that a device gets anew is opened before the old one of that name is dropped, so two
/// guards may know the same device. It is the later one's.
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

#[expect(clippy::disallowed_methods, reason = "when a port is opened or closed")]
fn held() -> MutexGuard<'static, Vec<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes an entry out of the journal, unless it is held still.
fn forget(held: &[Held], (ifindex, name): (u32, &str), offload: Offload) {
    if !held.iter().any(|h| (h.ifindex, h.offload) == (ifindex, offload)) {
        note(ifindex, name, offload, false);
    }
}

/// Offloads turned off for as long as this value lives.
#[derive(Debug)]
pub struct OffloadGuard {
    fd: OwnedFd,
    ifindex: u32,
    /// Its own.
    number: u64,
    /// Offloads that are on and that the driver does not let go.
    pub stuck: Vec<Offload>,
}

impl OffloadGuard {
    /// Turns `offloads` off on the interface; those that the driver lacks or refuses are left.
    ///
    /// # Errors
    /// [`ErrorKind::Privilege`], or no socket.
    pub fn turn_off(interface: &Interface, offloads: &[Offload]) -> Result<OffloadGuard> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (name, ifindex) = (&interface.name[..], interface.index);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut guard = OffloadGuard { fd: control()?, ifindex, number, stuck: Vec::new() };
        for &offload in offloads {
            let mut held = held();
            if !offload.get(&guard.fd, name).unwrap_or(false) {
                // An earlier guard may have turned it off; this one lives longer.
                let same = |h: &&mut Held| (h.ifindex, h.offload) == (ifindex, offload);
                held.iter_mut().filter(same).for_each(|h| h.owner = Some(number));
                continue;
            }
            note(ifindex, name, offload, true);
            match offload.set(&guard.fd, name, false) {
                Ok(()) if !offload.get(&guard.fd, name).unwrap_or(true) => {
                    held.retain(|h| (h.ifindex, h.offload) != (ifindex, offload));
                    held.push(Held { ifindex, name: name.to_owned(), offload, owner: Some(number) });
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::Privilege => return Err(e),
                _ => guard.stuck.push(offload),
            }
            forget(&held, (ifindex, name), offload);
        }
        Ok(guard)
    }
}

impl Drop for OffloadGuard {
    fn drop(&mut self) {
        let mut held = held();
        let is_mine = |h: &mut Held| match h.owner {
            Some(owner) => owner == self.number,
            None => h.ifindex == self.ifindex,
        };
        let mine: Vec<Held> = held.extract_if(.., is_mine).collect();
        mine.into_iter().rev().for_each(|one| one.restore(&self.fd, &held));
    }
}

/// An offload that is off on a router's account: the interface's index and name, and the offload.
pub type TurnedOff = (u32, String, Offload);

/// Lets go of all offloads that are off on account of this process: no guard turns them on again, and the journal is told
/// nothing. Returns them, for whoever [inherits](inherit) them.
pub fn let_go() -> Vec<TurnedOff> {
    held().drain(..).map(|h| (h.ifindex, h.name, h.offload)).collect()
}

/// These are off on account of this process from now on: whoever opens a port on the interface next, or has it open now, turns
/// them on again in the end.
pub fn inherit(list: impl IntoIterator<Item = TurnedOff>) {
    held().extend(list.into_iter().map(|(ifindex, name, offload)| Held {
        ifindex,
        name,
        offload,
        owner: None,
    }));
}

/// Turns on again what is off on account of this process, for a process that opens no port any more.
pub fn restore() {
    // Without a socket whoever reads the journal does it.
    let Ok(fd) = control() else { return };
    let mut held = held();
    let all = std::mem::take(&mut *held);
    all.into_iter().rev().for_each(|one| one.restore(&fd, &held));
}

/// Turns an offload on or off for good, for interfaces that the caller made.
///
/// # Errors
/// What ethtool's ioctl says.
pub fn set_offload(name: &str, offload: Offload, on: bool) -> Result<()> {
    offload.set(&control()?, name, on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testnet;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn turn_off(name: &str) -> OffloadGuard {
        let interface = Interface::open(name).expect(name);
        OffloadGuard::turn_off(&interface, &[Offload::Gro, Offload::Lro]).expect("off")
    }

    fn gro(name: &str) -> bool {
        is_on(name, Offload::Gro).expect("asked")
    }

    #[test]
    fn what_a_port_turns_off_is_known_by_its_name() {
        for offload in Offload::HARMFUL.into_iter().chain(crate::afpacket::OFF) {
            assert_eq!(Offload::by_name(offload.name()), Some(offload));
        }
    }

    #[test]
    fn offloads_come_back() {
        testnet::run(&[("g0", "r0")], || {
            set_offload("r0", Offload::Gro, true).expect("on");
            let guard = turn_off("r0");
            assert_eq!(guard.stuck, []);
            assert!(!gro("r0"));
            drop(guard);
            assert!(gro("r0"));
        });
    }

    #[test]
    fn what_is_let_go_stays_off_until_it_is_inherited() {
        testnet::run(&[("g0", "r0")], || {
            set_offload("r0", Offload::Gro, true).expect("on");
            let index = Interface::open("r0").expect("r0").index;
            let guard = turn_off("r0");
            let own = let_go();
            assert_eq!(own, [(index, "r0".to_owned(), Offload::Gro)]);
            drop(guard);
            assert!(!gro("r0"), "nobody turns it on");
            // The port may be open already.
            let guard = turn_off("r0");
            inherit(own.clone());
            drop(guard);
            assert!(gro("r0"));
            set_offload("r0", Offload::Gro, false).expect("off");
            inherit(own);
            drop((turn_off("r0"), turn_off("r0")));
            assert!(gro("r0"), "or be opened, and opened again");
            set_offload("r0", Offload::Gro, false).expect("off");
            inherit([(index, "r0".to_owned(), Offload::Gro)]);
            restore();
            assert!(gro("r0"), "or never");
        });
    }

    #[test]
    fn another_device_of_the_name_is_left_alone() {
        testnet::run(&[("g0", "r0")], || {
            let entries: Arc<Mutex<BTreeSet<u32>>> = Arc::default();
            let journal = entries.clone();
            keep_journal(Box::new(move |ifindex, name, _, off| {
                let mut entries = journal.lock().unwrap();
                // Other tests of the process have devices of their own.
                if name == "again" {
                    if off {
                        entries.insert(ifindex)
                    } else {
                        entries.remove(&ifindex)
                    };
                }
            }));
            testnet::ip("ip link set dev r0 down");
            testnet::ip("ip link set dev r0 name again");
            set_offload("again", Offload::Gro, true).expect("on");
            let old = turn_off("again");
            testnet::ip("ip link set dev again name other");
            testnet::ip("ip link add again type veth peer name g1");
            set_offload("again", Offload::Gro, true).expect("on");
            let new = turn_off("again");
            assert_eq!(entries.lock().unwrap().len(), 2, "each has an entry");
            drop(old);
            assert!(gro("other"), "the device gets back what it had, whatever it is called");
            assert!(!gro("again"), "it is another one");
            let index = Interface::open("again").expect("again").index;
            assert_eq!(*entries.lock().unwrap(), BTreeSet::from([index]), "and keeps its entry");
            // The same device: it was away, and its port is opened anew.
            let newer = turn_off("again");
            drop(new);
            assert!(!gro("again"));
            drop(newer);
            assert!(gro("again"));
            assert_eq!(entries.lock().unwrap().len(), 0);
        });
    }
}
