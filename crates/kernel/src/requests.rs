//! The requests that the mirror sends.

use std::io;
use std::net::IpAddr;

use crate::decode::{Operation, Source, decode};
use crate::keeper::{Ask, Key};
use crate::mirror::{Mirror, Scope};
use crate::model::{Family, Rule};
use crate::socket::{Dump, Socket};
use crate::uapi::*;
use crate::wire::{Malformed, Request};
use crate::{Message, Object};

/// Tries at a dump that the kernel's own changes interrupt.
const TRIES: usize = 4;

/// What a resync came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resynced {
    /// Messages taken in.
    pub messages: u64,
    /// Dumps that were interrupted and begun again.
    pub interrupted: u64,
    /// Tables that were interrupted every time; nothing was removed from them.
    pub unfinished: Scope,
}

/// Dumps the tables of `scope` into the mirror.
///
/// # Errors
/// The socket's, and a message that cannot be parsed: what it said is not known, so the dump is of no use.
pub(crate) fn resync(socket: &mut Socket, mirror: &mut Mirror, scope: Scope) -> io::Result<Resynced> {
    let mut resynced = Resynced::default();
    for table in scope.tables() {
        let mut finished = false;
        for _ in 0..TRIES {
            mirror.begin_resync();
            if dump(socket, mirror, table, &mut resynced.messages)? == Dump::Complete {
                mirror.end_resync(table);
                finished = true;
                break;
            }
            resynced.interrupted += 1;
        }
        if !finished {
            resynced.unfinished |= table;
        }
    }
    Ok(resynced)
}

fn dump(socket: &mut Socket, mirror: &mut Mirror, table: Scope, messages: &mut u64) -> io::Result<Dump> {
    let mut malformed: Option<Malformed> = None;
    let end = socket.dump(dump_request(table), |frame| {
        *messages += 1;
        match decode(frame, Source::Dump) {
            Ok(Some(message)) => mirror.apply(message),
            Ok(None) => {}
            Err(error) => malformed = Some(error),
        }
    });
    if let Some(error) = malformed {
        return Err(io::Error::other(error));
    }
    match end {
        Err(error) if error.raw_os_error() == Some(UNSUPPORTED) && table == Scope::RULES => {
            // A kernel built without policy routing behaves as if it had the usual rules.
            own_rules().for_each(|rule| mirror.apply(rule));
            Ok(Dump::Complete)
        }
        // No next hop objects before Linux 5.3, no IPv6 where it is switched off.
        Err(error) if error.raw_os_error() == Some(UNSUPPORTED) => Ok(Dump::Complete),
        end => end,
    }
}

/// `EOPNOTSUPP`.
const UNSUPPORTED: i32 = 95;

fn own_rules() -> impl Iterator<Item = Message> {
    let rules = [
        (Family::V4, 0, RT_TABLE_LOCAL),
        (Family::V4, 32766, RT_TABLE_MAIN),
        (Family::V4, 32767, RT_TABLE_DEFAULT),
        (Family::V6, 0, RT_TABLE_LOCAL),
        (Family::V6, 32766, RT_TABLE_MAIN),
    ];
    rules.into_iter().map(|(family, priority, table)| {
        let rule = Rule { family, priority, table, plain: true, bytes: Vec::new() };
        Message { operation: Operation::Dumped, object: Object::Rule(rule) }
    })
}

fn dump_request(table: Scope) -> Request {
    let (kind, family, header_len) = match table {
        Scope::LINKS => (RTM_GETLINK, AF_UNSPEC, 16),
        Scope::ADDRESSES => (RTM_GETADDR, AF_UNSPEC, 8),
        Scope::NEIGHBOURS => (RTM_GETNEIGH, AF_UNSPEC, 12),
        Scope::NEXT_HOPS => (RTM_GETNEXTHOP, AF_UNSPEC, 8),
        Scope::ROUTES4 => (RTM_GETROUTE, AF_INET, 12),
        Scope::ROUTES6 => (RTM_GETROUTE, AF_INET6, 12),
        Scope::RULES => (RTM_GETRULE, AF_UNSPEC, 12),
        _ => (RTM_GETQDISC, AF_UNSPEC, 20),
    };
    let mut header = vec![0; header_len];
    header[0] = family;
    Request::new(kind, NLM_F_REQUEST | NLM_F_DUMP, &header)
}

/// Tells the kernel what the keeper wants it to know.
pub(crate) fn ask(socket: &mut Socket, ask: Ask) -> io::Result<()> {
    let create = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
    let request = match ask {
        Ask::Manage(key) => neighbour(RTM_NEWNEIGH, create, key, NTF_EXT_LEARNED)
            .attribute(NDA_FLAGS_EXT, &NTF_EXT_MANAGED.to_ne_bytes()),
        Ask::Use(key) => neighbour(RTM_NEWNEIGH, create, key, NTF_USE),
        Ask::Release(key) => neighbour(RTM_DELNEIGH, NLM_F_REQUEST | NLM_F_ACK, key, 0),
    };
    socket.request(request)
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
