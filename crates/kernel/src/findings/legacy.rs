//! Findings about the packet filter before nftables, iptables-legacy and ip6tables-legacy.
//!
//! It has no messages and no dumps. /proc names the tables that somebody used; what is in them is answered by `getsockopt(2)`
//! (`IPT_SO_GET_INFO`, `IPT_SO_GET_ENTRIES`), which the caller's [`Probe`] calls. Only tables that are there are asked for,
//! because to ask for another would make it. Who may not read that sees in the hooks whether there are any. A table is a sequence of entries. For each hook it says where the chain begins and
//! where its last entry is, the policy: if they are the same the chain has no rules.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::hooks::Hooks;
use super::{Check, Finding, Probe};
use crate::uapi::*;
use crate::wire::{text, u16_at, u32_at};

/// Octets of a table's name, and of `struct ipt_getinfo`.
const NAME_LEN: usize = 32;
const INFO_LEN: usize = 84;
/// Octets before the entries in `struct ipt_get_entries`.
const ENTRIES_HEADER_LEN: usize = 40;
/// Offsets in `struct ipt_getinfo`: hooks that the table has, where their chains begin, where their policies are, and the
/// octets of all entries.
const VALID_HOOKS: usize = 32;
const HOOK_ENTRY: usize = 36;
const UNDERFLOW: usize = 56;
const SIZE: usize = 80;
/// The verdict of a policy that accepts: `-NF_ACCEPT - 1`.
const ACCEPT: u32 = -2i32 as u32;
/// `struct xt_entry_target`, before the verdict.
const TARGET_LEN: usize = 32;
/// Tries at a table that changes between the two questions.
const TRIES: usize = 3;

/// Hooks that forwarded packets pass, and the chains that belong to them.
const PASSED: [(usize, &str); 3] = [(0, "PREROUTING"), (2, "FORWARD"), (4, "POSTROUTING")];

/// One family's filter.
struct Family {
    check: Check,
    family: AddressFamily,
    level: i32,
    /// Where the tables' names are.
    path: &'static str,
    /// Offset in an entry at which that of its target stands; that of the next entry follows.
    target_offset: usize,
    names: io::Result<File>,
    /// Whether addresses may be translated by what was seen last.
    translates: bool,
    socket: Option<OwnedFd>,
}

/// Both families' filters, as the calling thread's network namespace has them.
pub(super) struct Legacy([Family; 2]);

impl Legacy {
    /// For the calling thread's network namespace. The files are opened here, since a process that gives up root later may not.
    pub fn open() -> Self {
        let family = |check, family, level, path, target_offset| Family {
            check,
            family,
            level,
            path,
            target_offset,
            names: File::open(path),
            translates: false,
            socket: None,
        };
        const V4: &str = "/proc/thread-self/net/ip_tables_names";
        const V6: &str = "/proc/thread-self/net/ip6_tables_names";
        Legacy([
            family(Check::IptablesLegacy, AddressFamily::INET, SOL_IP, V4, 88),
            family(Check::Ip6tablesLegacy, AddressFamily::INET6, SOL_IPV6, V6, 140),
        ])
    }

    /// What is in the tables. To be called on a thread of the network namespace, and after `hooks` were listed.
    pub fn findings(&mut self, probe: &dyn Probe, hooks: &Hooks) -> Vec<Finding> {
        self.0.iter_mut().flat_map(|family| family.findings(probe, hooks)).collect()
    }

    /// Whether there was a table for the translation of addresses, if only an empty one.
    pub fn may_translate(&self) -> bool {
        self.0.iter().any(|family| family.translates)
    }
}

impl Family {
    fn findings(&mut self, probe: &dyn Probe, hooks: &Hooks) -> Vec<Finding> {
        let check = self.check;
        let command = check.code();
        let unknown = |place: String, error: io::Error| {
            let what = format!("what is there cannot be asked for: {error}");
            // The names of the tables are root's to read.
            let mend = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "run as root, or with the capability CAP_DAC_READ_SEARCH as well".to_owned()
                }
                _ => format!("{place} -S    # shows it"),
            };
            check.refuse(place, what, mend)
        };
        let tables = match self.tables() {
            Ok(tables) => tables,
            // The names are root's to read. But a table that is there has its functions in the hooks, which others may list.
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && hooks.has_legacy(self.family == AddressFamily::INET6) == Some(false) =>
            {
                Vec::new()
            }
            Err(error) => return vec![unknown(command.to_owned(), error)],
        };
        self.translates = tables.iter().any(|table| table == "nat");
        let mut findings = Vec::new();
        for table in tables {
            match self.chains(&table, probe) {
                Ok(chains) => {
                    let in_use = chains.iter().filter(|chain| chain.rules > 0 || !chain.accepts);
                    findings.extend(in_use.map(|chain| chain.finding(self.check, &table)));
                }
                Err(error) => findings.push(unknown(format!("{command} -t {table}"), error)),
            }
        }
        findings
    }

    /// The tables that are there; none in a kernel that has none, which may load them later.
    fn tables(&mut self) -> io::Result<Vec<String>> {
        if self.names.is_err() {
            self.names = File::open(self.path);
        }
        let mut names = [0; 1024];
        let read = match &self.names {
            Ok(file) => file.read_at(&mut names, 0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error.kind().into()),
        };
        match read {
            Ok(len) => Ok(text(&names[..len]).split_whitespace().map(str::to_owned).collect()),
            Err(error) => {
                // To be opened again: the kernel's module may have gone and come back.
                self.names = Err(error.kind().into());
                Err(error)
            }
        }
    }

    fn chains(&mut self, table: &str, probe: &dyn Probe) -> io::Result<Vec<Chain>> {
        /// `EAGAIN`: there are more or fewer entries than a moment ago.
        const CHANGED: i32 = 11;
        let mut tries = 0;
        loop {
            tries += 1;
            let info = self.ask(probe, IPT_SO_GET_INFO, table, INFO_LEN, &[])?;
            let size = u32_at(&info, SIZE).unwrap_or(0);
            let len = ENTRIES_HEADER_LEN + size as usize;
            match self.ask(probe, IPT_SO_GET_ENTRIES, table, len, &size.to_ne_bytes()) {
                Ok(entries) => {
                    let entries = entries.get(ENTRIES_HEADER_LEN..).unwrap_or_default();
                    let chains = chains(&info, entries, self.target_offset);
                    return chains.ok_or_else(|| io::Error::other("malformed table"));
                }
                Err(error) if error.raw_os_error() == Some(CHANGED) && tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn ask(
        &mut self,
        probe: &dyn Probe,
        option: i32,
        table: &str,
        len: usize,
        then: &[u8],
    ) -> io::Result<Vec<u8>> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => socket_with(self.family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?,
        };
        let socket = self.socket.insert(socket);
        let name = table.as_bytes();
        if name.len() >= NAME_LEN {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut value = vec![0; len];
        value[..name.len()].copy_from_slice(name);
        value[NAME_LEN..NAME_LEN + then.len()].copy_from_slice(then);
        let read = probe.socket_option(socket.as_fd(), self.level, option, &mut value)?;
        value.truncate(read);
        Ok(value)
    }
}

/// A chain that forwarded packets pass.
#[derive(Debug, PartialEq, Eq)]
struct Chain {
    name: &'static str,
    rules: usize,
    accepts: bool,
}

impl Chain {
    fn finding(&self, check: Check, table: &str) -> Finding {
        let (command, name) = (check.code(), self.name);
        let what = match (self.rules, self.accepts) {
            (0, _) => "this chain, which drops them all".to_owned(),
            (rules, true) => format!("this chain and its rules ({rules})"),
            (rules, false) => format!("this chain, its rules ({rules}) and its policy, drop"),
        };
        check.refuse(
            format!("{command} -t {table} {name}"),
            format!("forwarded packets would pass by {what}"),
            format!("{command} -t {table} -F {name}; {command} -t {table} -P {name} ACCEPT"),
        )
    }
}

/// The chains that forwarded packets pass; none if the entries are not laid out as they should be.
fn chains(info: &[u8], entries: &[u8], target_offset: usize) -> Option<Vec<Chain>> {
    let valid = u32_at(info, VALID_HOOKS)?;
    let mut chains = Vec::new();
    for (hook, name) in PASSED.into_iter().filter(|(hook, _)| valid & 1 << hook != 0) {
        let (mut at, policy) =
            (u32_at(info, HOOK_ENTRY + 4 * hook)? as usize, u32_at(info, UNDERFLOW + 4 * hook)? as usize);
        let mut rules = 0;
        while at < policy {
            let next = u16_at(entries, at + target_offset + 2)?;
            // Each entry is longer than the fields that were just read.
            at += usize::from(next).max(target_offset + 4);
            rules += 1;
        }
        let target = policy + usize::from(u16_at(entries, policy + target_offset)?);
        // A standard target has no name.
        let standard = entries.get(target + 2).is_some_and(|&octet| octet == 0);
        let accepts = standard && u32_at(entries, target + TARGET_LEN)? == ACCEPT;
        chains.push(Chain { name, rules, accepts });
    }
    Some(chains)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_cannot_be_asked_refuses() {
        let mut legacy = Legacy::open();
        let family = &mut legacy.0[0];
        let asked = family.chains("filter", &()).unwrap_err();
        assert_eq!(asked.kind(), io::ErrorKind::Unsupported);
        assert!(family.chains(&"long".repeat(9), &()).is_err());
        // A folder can be opened and not be read.
        (family.path, family.names) = ("/", File::open("/"));
        for _ in 0..2 {
            let findings = family.findings(&(), &Hooks::default());
            assert_eq!((findings.len(), findings[0].code()), (1, "iptables-legacy"));
        }
        family.path = "/nosuch";
        assert_eq!(family.findings(&(), &Hooks::default()), []);
    }

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(
            info in proptest::collection::vec(prop_oneof![Just(0u8), Just(1u8), any::<u8>()], 0..100),
            entries in proptest::collection::vec(any::<u8>(), 0..600),
        ) {
            for target_offset in [88, 140] {
                let _ = chains(&info, &entries, target_offset);
            }
        }
    }
}
