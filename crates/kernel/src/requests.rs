//! Dumps of the kernel's tables into the mirror.

use std::io;
use std::time::Instant;

use crate::decode::{Message, Object, Operation, Source, decode};
use crate::mirror::{Mirror, Scope};
use crate::model::{Family, Rule};
use crate::socket::{Dump, Socket};
use crate::uapi::*;
use crate::wire::{Malformed, Request};

/// Tries at a dump that the kernel's own changes interrupt.
const TRIES: usize = 4;
/// `EOPNOTSUPP`.
const UNSUPPORTED: i32 = 95;

/// Dumps of several tables, one after the other.
///
/// They run in steps of one datagram each, so that who runs them can do other things in between.
#[derive(Debug)]
pub(crate) struct Dumping {
    left: Scope,
    /// The table that is being dumped, since when, and which try it is.
    table: Option<(Scope, Instant, usize)>,
    malformed: Option<Malformed>,
    /// When it was begun.
    pub began: Instant,
    /// Messages taken in.
    pub messages: u64,
    /// Dumps that were interrupted and begun again.
    pub interrupted: u64,
    /// Tables that were dumped, with the time at which the dump was begun.
    pub complete: Vec<(Scope, Instant)>,
    /// Tables that were interrupted every time; nothing was removed from them.
    pub unfinished: Scope,
}

impl Dumping {
    /// Dumps of all tables of `scope`, to be run by [`Dumping::step`].
    pub fn new(scope: Scope) -> Self {
        Dumping {
            left: scope,
            table: None,
            malformed: None,
            began: Instant::now(),
            messages: 0,
            interrupted: 0,
            complete: Vec::new(),
            unfinished: Scope::default(),
        }
    }

    /// Takes in the next datagram, and says whether that was all. `undisturbed` is asked of each table that was dumped since
    /// some time: whether nothing happened to it meanwhile that the kernel's dump does not take care of.
    ///
    /// # Errors
    /// The socket's, and a message that cannot be parsed: what it said is not known, so the dump is of no use.
    pub fn step(
        &mut self,
        socket: &mut Socket,
        mirror: &mut Mirror,
        undisturbed: impl Fn(Scope, Instant) -> bool,
    ) -> io::Result<bool> {
        let Some((table, since, tries)) = self.table else { return self.next_table(socket, mirror) };
        let end = match self.go_on(socket, mirror, table)? {
            None => return Ok(false),
            Some(Dump::Complete) if undisturbed(table, since) => Dump::Complete,
            Some(_) => Dump::Interrupted,
        };
        match end {
            Dump::Complete => {
                mirror.end_resync(table);
                self.complete.push((table, since));
            }
            Dump::Interrupted => {
                self.interrupted += 1;
                if tries < TRIES {
                    return self.begin(socket, mirror, table, tries + 1).map(|()| false);
                }
                self.unfinished |= table;
            }
        }
        self.next_table(socket, mirror)
    }

    fn next_table(&mut self, socket: &mut Socket, mirror: &mut Mirror) -> io::Result<bool> {
        self.table = None;
        let Some(table) = self.left.tables().next() else { return Ok(true) };
        self.left = self.left.without(table);
        self.begin(socket, mirror, table, 1).map(|()| false)
    }

    fn begin(
        &mut self,
        socket: &mut Socket,
        mirror: &mut Mirror,
        table: Scope,
        tries: usize,
    ) -> io::Result<()> {
        mirror.begin_resync();
        self.table = Some((table, Instant::now(), tries));
        socket.begin_dump(dump_request(table))
    }

    fn go_on(&mut self, socket: &mut Socket, mirror: &mut Mirror, table: Scope) -> io::Result<Option<Dump>> {
        let end = socket.go_on(|frame| {
            self.messages += 1;
            match decode(frame, Source::Dump) {
                Ok(Some(message)) => mirror.apply(message),
                Ok(None) => {}
                Err(error) => self.malformed = Some(error),
            }
        });
        match end {
            // Said at the end, because the kernel has only one dump at a time for a socket.
            Ok(Some(_)) if self.malformed.is_some() => {
                Err(io::Error::other(self.malformed.take().unwrap_or(Malformed("dump"))))
            }
            Err(error) if error.raw_os_error() == Some(UNSUPPORTED) => {
                if table == Scope::RULES {
                    // A kernel built without policy routing behaves as if it had the usual rules.
                    own_rules().for_each(|rule| mirror.apply(rule));
                }
                // No next hop objects before Linux 5.3, no IPv6 where it is switched off.
                Ok(Some(Dump::Complete))
            }
            end => end,
        }
    }
}

/// Dumps the tables of `scope` into a mirror that follows no messages. Returns those that were interrupted every time.
///
/// # Errors
/// As [`Dumping::step`].
pub(crate) fn dump_into(mirror: &mut Mirror, socket: &mut Socket, scope: Scope) -> io::Result<Scope> {
    let mut dumping = Dumping::new(scope);
    while !dumping.step(socket, mirror, |_, _| true)? {}
    Ok(dumping.unfinished)
}

fn own_rules() -> impl Iterator<Item = Message> {
    let rules = [
        (Family::V4, 0, RT_TABLE_LOCAL),
        (Family::V4, 32766, RT_TABLE_MAIN),
        (Family::V4, 32767, RT_TABLE_DEFAULT),
        (Family::V6, 0, RT_TABLE_LOCAL),
        (Family::V6, 32766, RT_TABLE_MAIN),
    ];
    rules.into_iter().map(|(family, priority, table)| {
        let object = Object::Rule(Rule::plain(family, priority, table));
        Message { operation: Operation::Dumped, object }
    })
}

fn dump_request(table: Scope) -> Request {
    let (kind, family, header_len) = match table {
        Scope::SETTINGS4 => (RTM_GETNETCONF, AF_INET, 1),
        Scope::SETTINGS6 => (RTM_GETNETCONF, AF_INET6, 1),
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
