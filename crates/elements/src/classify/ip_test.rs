//! One test of an IP expression: qualifiers, a relation, a value.
//!
//! `src tcp port 80`, `dst net 10.0.0.0/8`, `ip ttl < 5`, `ip[6:2] & 0x2000 != 0`. Qualifiers come in any order; a
//! value alone is what it looks like (an address, a prefix) or what the test before it was about.

use super::expr::{Base, Expr, Field, Relation};
use super::ip_expr::Parser;
use super::ip_value;
use causeway_packet::wire::protocol;

/// Which of the two ends of a packet a test is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ends {
    Source,
    Destination,
    #[default]
    Either,
    Both,
}

/// The protocol that a test asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proto {
    Ip,
    Tcp,
    Udp,
    Icmp,
    Transport,
}

/// What a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    Net,
    Port,
    Protocol,
    IcmpType,
    TcpOption,
    Version,
    HeaderLength,
    Id,
    Tos,
    Dscp,
    Ttl,
    Fragment,
    Unfragmented,
    /// ECN-capable transport.
    Ect,
    /// Congestion experienced.
    Ce,
}

/// What was said of a test before its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Qualifiers {
    pub(crate) ends: Option<Ends>,
    pub(crate) proto: Option<Proto>,
    pub(crate) kind: Option<Kind>,
}

const KINDS: &[(&str, Kind)] = &[
    ("host", Kind::Host),
    ("net", Kind::Net),
    ("port", Kind::Port),
    ("proto", Kind::Protocol),
    ("type", Kind::IcmpType),
    ("opt", Kind::TcpOption),
    ("vers", Kind::Version),
    ("hl", Kind::HeaderLength),
    ("id", Kind::Id),
    ("tos", Kind::Tos),
    ("dscp", Kind::Dscp),
    ("ttl", Kind::Ttl),
    ("frag", Kind::Fragment),
    ("unfrag", Kind::Unfragmented),
    ("ect", Kind::Ect),
    ("ce", Kind::Ce),
];

const PROTOS: &[(&str, Proto)] = &[
    ("ip", Proto::Ip),
    ("tcp", Proto::Tcp),
    ("udp", Proto::Udp),
    ("icmp", Proto::Icmp),
    ("transp", Proto::Transport),
];

const RELATIONS: &[(&str, Relation)] = &[
    ("=", Relation::Equal),
    ("==", Relation::Equal),
    ("!=", Relation::Different),
    ("<", Relation::Less),
    (">", Relation::Greater),
    ("<=", Relation::NotGreater),
    (">=", Relation::NotLess),
];

fn named<T: Copy>(list: &[(&str, T)], word: Option<&str>) -> Option<T> {
    list.iter().find(|(name, _)| Some(*name) == word).map(|(_, t)| *t)
}

const PROTOCOL: Field = Field::whole(Base::Network, 9, 1);
const FRAGMENT_OFFSET: Field = Field::part(Base::Network, 6, 2, 0x1fff);
const FRAGMENT: Field = Field::part(Base::Network, 6, 2, 0x3fff);
const ECN: Field = Field::part(Base::Network, 1, 1, 3);

impl Kind {
    /// Where the value lies, for the kinds that are one number of the network or transport header.
    fn field(self) -> Option<Field> {
        Some(match self {
            Kind::Protocol => PROTOCOL,
            Kind::IcmpType => Field::whole(Base::Transport, 0, 1),
            Kind::TcpOption => Field::whole(Base::Transport, 13, 1),
            Kind::Version => Field::part(Base::Network, 0, 1, 0xf0),
            Kind::HeaderLength => Field::part(Base::Network, 0, 1, 0x0f),
            Kind::Id => Field::whole(Base::Network, 4, 2),
            Kind::Tos => Field::whole(Base::Network, 1, 1),
            Kind::Dscp => Field::part(Base::Network, 1, 1, 0xfc),
            Kind::Ttl => Field::whole(Base::Network, 8, 1),
            _ => return None,
        })
    }

    /// Whether such a test has no value.
    fn stands_alone(self) -> bool {
        matches!(self, Kind::Fragment | Kind::Unfragmented | Kind::Ect | Kind::Ce)
    }

    /// What the packet must be for such a test to have a meaning.
    fn implied(self) -> Option<Proto> {
        match self {
            Kind::IcmpType => Some(Proto::Icmp),
            Kind::TcpOption => Some(Proto::Tcp),
            _ => None,
        }
    }
}

/// Reads one test.
pub(crate) fn parse(p: &mut Parser<'_>) -> Result<Expr, String> {
    let start = p.here();
    let mut q = qualifiers(p);
    if p.peek() == Some("[") {
        return match q {
            Qualifiers { proto: Some(proto), ends: None, kind: None } => bytes(p, proto),
            _ => Err(format!("'[' must follow ip, tcp, udp, icmp or transp{start}")),
        };
    }
    let said = q != Qualifiers::default();
    let expr = match q.kind {
        Some(Kind::Fragment) => FRAGMENT.compare(Relation::Equal, 0).not(),
        Some(Kind::Unfragmented) => FRAGMENT.compare(Relation::Equal, 0),
        Some(Kind::Ect) => ECN.compare(Relation::Equal, 0).not(),
        Some(Kind::Ce) => ECN.compare(Relation::Equal, 3),
        None if q.ends.is_none()
            && q.proto.is_some_and(|p| p != Proto::Transport)
            && !value_follows(p, q) =>
        {
            Expr::Const(true)
        }
        _ => {
            if !said {
                q = p.last;
            }
            value(p, &mut q, !said)?
        }
    };
    p.last = q;
    Ok(guarded(q, expr))
}

/// Takes the words in front of a value. A second word of a sort begins another test: `tcp ip ttl 5`.
fn qualifiers(p: &mut Parser<'_>) -> Qualifiers {
    let mut q = Qualifiers::default();
    loop {
        if let (Some(proto), None, None) = (named(PROTOS, p.peek()), q.proto, q.kind) {
            q.proto = Some(proto);
        } else if let (Some(kind), None) = (named(KINDS, p.peek()), q.kind) {
            q.kind = Some(kind);
        } else if let (Some(ends), None) = (ends(p), q.ends) {
            q.ends = Some(ends);
            continue;
        } else {
            return q;
        }
        p.next();
        if p.peek() == Some("[") || q.kind.is_some_and(Kind::stands_alone) {
            return q;
        }
    }
}

/// `src`, `dst`, `src or dst`, `src and dst` (and the other way round), taken if they are there.
fn ends(p: &mut Parser<'_>) -> Option<Ends> {
    let one = match p.peek()? {
        "src" => Ends::Source,
        "dst" => Ends::Destination,
        _ => return None,
    };
    let other = if one == Ends::Source { "dst" } else { "src" };
    let both = match p.peek_at(1) {
        Some("or" | "||") => Ends::Either,
        Some("and" | "&&") => Ends::Both,
        _ => one,
    };
    let pair = both != one && p.peek_at(2) == Some(other);
    for _ in 0..if pair { 3 } else { 1 } {
        p.next();
    }
    Some(if pair { both } else { one })
}

/// Whether the next word is a value for `q`, whose kind is not known yet.
fn value_follows(p: &Parser<'_>, q: Qualifiers) -> bool {
    p.peek().is_some_and(|word| {
        named(RELATIONS, Some(word)).is_some() || ip_value::kind_of(word, q.proto, p.scope).is_some()
    })
}

/// Reads relation and value for `q`, and the kind of a value that stands alone.
fn value(p: &mut Parser<'_>, q: &mut Qualifiers, alone: bool) -> Result<Expr, String> {
    let mask = if p.take(&["&"]) { Some(ip_value::number(&p.next().unwrap_or_default())?) } else { None };
    let relation = named(RELATIONS, p.peek());
    if relation.is_some() {
        p.next();
    }
    let here = p.here();
    let word = p.next().ok_or_else(|| format!("value expected{here}"))?;
    if alone || q.kind.is_none() {
        let looks = ip_value::kind_of(&word, q.proto, p.scope);
        // After `host 1.2.3.4` another address may be a network, and the other way round.
        let takes_over = q.kind.is_none() || matches!(looks, Some(Kind::Host | Kind::Net));
        q.kind = looks.filter(|_| takes_over).or(q.kind);
    }
    let kind = q.kind.ok_or_else(|| format!("syntax error near '{word}'"))?;
    let relation = relation.unwrap_or(Relation::Equal);
    if let (Kind::Host | Kind::Net, Relation::Equal | Relation::Different, None) = (kind, relation, mask) {
        return address(p, *q, kind, &word, relation);
    }
    match (kind, kind.field()) {
        (Kind::Port, _) => {
            let number = ip_value::of_kind(kind, q.proto, &word)?;
            // A packet whose ports are not "= x" has different ones: the ends are within the negation.
            let (positive, negate) = match relation {
                Relation::Different => (Relation::Equal, true),
                r => (r, false),
            };
            let at = |offset| {
                let field = Field::part(Base::Transport, offset, 2, mask.unwrap_or(0xffff) & 0xffff);
                field.compare(positive, number)
            };
            let expr = both_ends(q.ends, at(0), at(2));
            Ok(if negate { expr.not() } else { expr })
        }
        (Kind::TcpOption, Some(field)) if mask.is_none() && ip_value::tcp_flag(&word).is_some() => {
            let flag = ip_value::tcp_flag(&word).unwrap_or_default();
            let expr = field.equals(flag, flag);
            match relation {
                Relation::Equal => Ok(expr),
                Relation::Different => Ok(expr.not()),
                _ => Err("TCP options can only be equal or different".to_owned()),
            }
        }
        (_, Some(field)) => {
            let number = ip_value::of_kind(kind, q.proto, &word)?;
            if number > field.max() {
                return Err(format!("value {number} out of range, bound {}", field.max()));
            }
            let shift = field.shift();
            let mask = mask.map_or(field.mask, |m| m.checked_shl(shift).unwrap_or(0) & field.mask);
            Ok(Field { mask, ..field }.compare(relation, number << shift))
        }
        _ => Err(format!("addresses can only be equal or different, near '{word}'")),
    }
}

/// A test of source or destination address.
fn address(
    p: &mut Parser<'_>,
    q: Qualifiers,
    kind: Kind,
    word: &str,
    relation: Relation,
) -> Result<Expr, String> {
    let (value, mask) = match kind {
        Kind::Host => (ip_value::host(word, p.scope)?, u32::MAX),
        _ if p.take(&["mask"]) => {
            let mask = ip_value::host(&p.next().unwrap_or_default(), p.scope)?;
            (ip_value::partial(word).ok_or_else(|| format!("'{word}' is not an IP network"))?, mask)
        }
        _ => ip_value::net(word, p.scope)?,
    };
    let at = |offset| Field::whole(Base::Network, offset, 4).equals(mask, value & mask);
    let expr = both_ends(q.ends, at(12), at(16));
    Ok(if relation == Relation::Different { expr.not() } else { expr })
}

fn both_ends(ends: Option<Ends>, source: Expr, destination: Expr) -> Expr {
    match ends.unwrap_or_default() {
        Ends::Source => source,
        Ends::Destination => destination,
        Ends::Either => Expr::Or(vec![source, destination]),
        Ends::Both => Expr::And(vec![source, destination]),
    }
}

/// `[POS]` or `[POS:LEN]`, `& MASK`, relation and value, of the header of `proto`.
fn bytes(p: &mut Parser<'_>, proto: Proto) -> Result<Expr, String> {
    p.expect("[")?;
    let position = ip_value::number(&p.next().unwrap_or_default())?;
    let len = if p.take(&[":"]) { ip_value::number(&p.next().unwrap_or_default())? } else { 1 };
    p.expect("]")?;
    if !(1..=4).contains(&len) || position + len > 2_048 {
        return Err(format!("bytes {position}:{len} out of range, 1 to 4 bytes before 2048"));
    }
    let mask = if p.take(&["&"]) { Some(ip_value::number(&p.next().unwrap_or_default())?) } else { None };
    let here = p.here();
    let relation =
        named(RELATIONS, p.peek()).ok_or_else(|| format!("'=' or other relation expected{here}"))?;
    p.next();
    let value = ip_value::number(&p.next().unwrap_or_default())?;
    let base = if proto == Proto::Ip { Base::Network } else { Base::Transport };
    let whole = Field::whole(base, position as u16, len as u8);
    if value > whole.mask {
        return Err(format!("value {value} out of range, bound {}", whole.mask));
    }
    let field = Field { mask: whole.mask & mask.unwrap_or(u32::MAX), ..whole };
    p.last = Qualifiers::default();
    let q = Qualifiers { proto: Some(proto), ..Qualifiers::default() };
    let expr = field.compare(relation, value);
    Ok(match base {
        Base::Network => expr,
        _ => Expr::And(vec![guarded(q, first_fragment()), expr]),
    })
}

fn first_fragment() -> Expr {
    FRAGMENT_OFFSET.compare(Relation::Equal, 0)
}

/// `expr` for packets of the protocol that the test asks for, and for first fragments if it is about the
/// transport header, which the others do not have.
fn guarded(q: Qualifiers, expr: Expr) -> Expr {
    let is = |number: u8| PROTOCOL.compare(Relation::Equal, number as u32);
    let proto = q.kind.and_then(Kind::implied).or(q.proto);
    let proto = match proto {
        Some(Proto::Tcp) => Some(is(protocol::TCP)),
        Some(Proto::Udp) => Some(is(protocol::UDP)),
        Some(Proto::Icmp) => Some(is(protocol::ICMP)),
        _ if q.kind == Some(Kind::Port) => Some(Expr::Or(vec![is(protocol::TCP), is(protocol::UDP)])),
        _ => None,
    };
    let transport = matches!(q.kind, Some(Kind::Port | Kind::IcmpType | Kind::TcpOption));
    let mut all: Vec<Expr> = proto.into_iter().collect();
    if transport {
        all.push(first_fragment());
    }
    all.push(expr);
    if all.len() == 1 { all.remove(0) } else { Expr::And(all) }
}
