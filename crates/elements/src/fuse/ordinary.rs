//! What ordinary packets are, and what the pass does to them, in the terms of walks through programs.

use crate::ip::check_ip_header::{Checker, Sources};
use crate::ip::dec_ip_ttl;
use causeway_engine::ir::expr::{Condition, Expr, KnownBytes};
use causeway_engine::ir::walk::{Guard, Kind, Walk};
use causeway_engine::ir::{self, Builder, Field, Program};
use causeway_packet::wire::ethernet::{self, ether_type};
use causeway_packet::wire::ipv4;
use causeway_packet::{Anno, PacketType};

/// Where the IPv4 header of an ordinary packet is.
const IP: i64 = ethernet::HEADER_LEN as i64;

/// What can be told of an ordinary packet at a glance: an Ethernet frame with an IPv4 header without options, that came to
/// one host and asks for no other source.
pub(super) fn kind() -> Kind {
    let [high, low] = ether_type::IPV4.to_be_bytes();
    let is = |e: Field, n: u64, holds| Guard {
        condition: Condition::Equal(Expr::Field(e), Expr::Const(n)),
        holds,
    };
    Kind {
        bytes: [(IP - 2, high), (IP - 1, low), (IP, 0x45)].into(),
        least: IP + ipv4::HEADER_LEN as i64,
        guards: vec![
            is(Field::PacketType, PacketType::Broadcast as u64, false),
            is(Field::PacketType, PacketType::Multicast as u64, false),
            is(Anno::FIX_IP_SRC.into(), 0, true),
        ],
    }
}

/// The header check that a walk made, behind the Ethernet header, if it made one.
pub(super) fn header_check(walk: &Walk) -> Checker {
    let mut checker = Checker { offset: IP as usize, checksum: false, sources: Sources::default() };
    for guard in &walk.guards {
        let Condition::Equal(value, _) = &guard.condition else { continue };
        match value {
            Expr::Sum { .. } => checker.checksum = true,
            Expr::Compute(_, parts) => {
                // Bad, and not excused by the destination: as the check writes it.
                if let [Expr::Member(_, bad), other] = &**parts {
                    checker.sources = Sources::of_sets(bad, excused(other));
                }
            }
            _ => {}
        }
    }
    checker
}

/// The set in "not a member of".
fn excused(e: &Expr) -> &[u64] {
    match e {
        Expr::Compute(_, parts) => match &parts[0] {
            Expr::Member(_, set) => set,
            _ => &[],
        },
        _ => &[],
    }
}

/// A check of headers, as the pass does it.
pub(super) fn checked(checker: &Checker) -> Option<Walk> {
    let mut check = Builder::new();
    checker.lower(&mut check)?;
    check.leave(0);
    Walk::of(kind()).through(&check.finish()?, Some(0))
}

/// The same and the loss of the Ethernet header, as the pass does it before the table.
pub(super) fn checked_and_stripped(checker: &Checker) -> Option<Walk> {
    let mut strip = Builder::new();
    strip.pull(IP as u32);
    strip.leave(0);
    checked(checker)?.through(&strip.finish()?, Some(0))
}

/// The program that decrements the time to live.
fn decrement() -> Option<Program> {
    let mut b = Builder::new();
    dec_ip_ttl::lower_decrement(&mut b);
    b.leave(0);
    b.finish()
}

/// What is done to packets behind the table, if it is what the pass can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    /// Packets of this paint are left to the chain, which copies them.
    pub copied_paint: Option<u8>,
    /// Whether the time to live is decremented.
    pub ttl: bool,
    /// Longer packets are left to the chain; no packet is longer than the greatest number.
    pub mtu: u16,
    pub link: Link,
}

/// The Ethernet header that packets get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// None.
    No,
    /// This one ([`header_cache::words`]).
    Fixed([u64; 3]),
    /// That of the destination annotation, which the walk's lookup of this number finds.
    Found(usize),
}

impl Effect {
    /// Nothing is done.
    pub const NONE: Effect = Effect { copied_paint: None, ttl: false, mtu: u16::MAX, link: Link::No };

    /// What came between `before` and `after`.
    pub fn between(before: &Walk, after: &Walk) -> Option<Effect> {
        let mut effect = Effect { link: link(before, after)?, ..Effect::NONE };
        for guard in after.guards.get(before.guards.len()..)? {
            effect.note(guard)?;
        }
        let mut expected = before.clone();
        if effect.ttl {
            expected = before.through(&decrement()?, Some(0))?;
        }
        if let Some(stores) = effect.link.stores() {
            expected.stores.extend(stores);
            expected.headers.insert(Field::Mac, Expr::Const(0));
        }
        let same = (&expected.stores, &expected.headers, &expected.end, &expected.annotations)
            == (&after.stores, &after.headers, &after.end, &after.annotations);
        let counts_nothing = after.counts.len() == before.counts.len();
        (same && counts_nothing).then_some(effect)
    }

    /// Makes sure that `guard` is seen to.
    fn note(&mut self, guard: &Guard) -> Option<()> {
        let paint = Expr::Field(Anno::PAINT.into());
        let at = |field: std::ops::Range<usize>| Expr::Bytes {
            at: IP + field.start as i64,
            len: field.len() as u8,
        };
        match (&guard.condition, guard.holds) {
            (Condition::Equal(e, Expr::Const(color)), false)
                if *e == paint && self.copied_paint.is_none() =>
            {
                self.copied_paint = Some(u8::try_from(*color).ok()?);
            }
            (Condition::Above(e, Expr::Const(mtu)), false) if *e == at(ipv4::field::TOTAL_LEN) => {
                self.mtu = self.mtu.min(u16::try_from(*mtu).unwrap_or(u16::MAX));
            }
            (Condition::Above(e, Expr::Const(1)), true) if *e == at(TTL..TTL + 1) => self.ttl = true,
            _ => return None,
        }
        Some(())
    }
}

/// Where the time to live is in the header (RFC 791 §3.1).
const TTL: usize = 8;

impl Link {
    /// What is written of it, by position.
    fn stores(self) -> Option<[(i64, (u8, Expr)); 3]> {
        let [front, back, ether_type] = match self {
            Link::No => return None,
            Link::Fixed(words) => words.map(Expr::Const),
            Link::Found(lookup) => {
                let [front, back] = [0, 1].map(|word| Expr::Found { lookup, word });
                let back = back.low_bytes(4, &KnownBytes::new());
                [front, back, Expr::Const(ether_type::IPV4.into())]
            }
        };
        Some([(0, (8, front)), (8, (4, back)), (12, (2, ether_type))])
    }
}

/// The Ethernet header that packets got; `None` if it is none that the pass knows.
fn link(before: &Walk, after: &Walk) -> Option<Link> {
    let lookups = after.lookups.get(before.lookups.len()..)?;
    let destination = after.annotations.get(&Field::from(Anno::DST_IP))?;
    match (after.data, lookups) {
        (IP, []) => Some(Link::No),
        (0, []) => {
            let known = |at: i64| after.stores.get(&at)?.1.known();
            Some(Link::Fixed([known(0)?, known(8)?, known(12)?]))
        }
        (0, [lookup]) if lookup.key == ir::key([destination.clone()]) => {
            Some(Link::Found(before.lookups.len()))
        }
        _ => None,
    }
}
