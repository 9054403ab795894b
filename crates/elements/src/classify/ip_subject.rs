//! What a test of an IP expression is about: the words in front of its value.

use super::expr::{Base, Field};
use super::ip_expr::Parser;
use super::ip_value::{self, Data};
use causeway_engine::Error;
use causeway_packet::wire::protocol;

/// Which of the two ends of a packet a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Source,
    Destination,
    Either,
    Both,
}

/// The protocol that a test asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proto {
    Number(u8),
    TcpOrUdp,
    /// Whatever is behind the network header.
    Any,
}

pub(crate) const TCP: Proto = Proto::Number(protocol::TCP);
pub(crate) const UDP: Proto = Proto::Number(protocol::UDP);
pub(crate) const ICMP: Proto = Proto::Number(protocol::ICMP);

/// What a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    Net,
    Ether,
    Port,
    Protocol,
    TcpOption,
    Fragment,
    Unfragmented,
    /// ECN-capable transport.
    Ect,
    /// Congestion experienced.
    Ce,
    /// A number of a header; of the network header if there is no protocol.
    Field(Field, Option<Proto>),
}

impl Kind {
    pub(crate) const ICMP_TYPE: Kind = Kind::Field(Field::whole(Base::Transport, 0, 1), Some(ICMP));

    /// What errors call it.
    fn name(self) -> String {
        let header = match self.owner() {
            Some(TCP) => "tcp",
            Some(UDP) => "udp",
            Some(ICMP) => "icmp",
            Some(_) => "transp",
            None if self == Kind::TcpOption => "tcp",
            None => "ip",
        };
        match self {
            Kind::Host | Kind::Net => "ip host".to_owned(),
            Kind::Ether => "ether host".to_owned(),
            Kind::Protocol => "proto".to_owned(),
            Kind::Port => "port".to_owned(),
            _ => match KINDS.iter().find(|(_, kind)| *kind == self) {
                Some((name, _)) => format!("{header} {name}"),
                None => format!("{header}[...]"),
            },
        }
    }

    /// The protocol that a field belongs to.
    pub(crate) fn owner(self) -> Option<Proto> {
        if let Kind::Field(_, proto) = self { proto } else { None }
    }

    /// Whether the test looks at the transport header, which the first fragment has.
    pub(crate) fn of_transport(self) -> bool {
        matches!(self, Kind::Port | Kind::TcpOption | Kind::Field(_, Some(_)))
    }
}

const fn network(offset: u16, len: u8, mask: u32) -> Kind {
    Kind::Field(Field::part(Base::Network, offset, len, mask), None)
}

pub(crate) const KINDS: &[(&str, Kind)] = &[
    ("host", Kind::Host),
    ("net", Kind::Net),
    ("port", Kind::Port),
    ("proto", Kind::Protocol),
    ("opt", Kind::TcpOption),
    ("frag", Kind::Fragment),
    ("unfrag", Kind::Unfragmented),
    ("ect", Kind::Ect),
    ("ce", Kind::Ce),
    ("vers", network(0, 1, 0xf0)),
    ("hl", network(0, 1, 0x0f)),
    ("tos", network(1, 1, 0xff)),
    ("dscp", network(1, 1, 0xfc)),
    ("len", network(2, 2, 0xffff)),
    ("id", network(4, 2, 0xffff)),
    ("ttl", network(8, 1, 0xff)),
    ("type", Kind::ICMP_TYPE),
    ("win", Kind::Field(Field::whole(Base::Transport, 14, 2), Some(TCP))),
];

/// What was said of a test before its value, and what the next test may take over from it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Subject {
    pub(crate) kind: Option<Kind>,
    pub(crate) ends: Option<Ends>,
    pub(crate) proto: Option<Proto>,
    /// `ip` or `ether`.
    pub(crate) header: Option<Header>,
    pub(crate) negated: bool,
}

impl Subject {
    /// What errors call it.
    pub(crate) fn name(&self) -> String {
        let ends = match self.ends {
            Some(Ends::Source) => "src ",
            Some(Ends::Destination) => "dst ",
            Some(Ends::Either) => "src or dst ",
            Some(Ends::Both) => "src and dst ",
            None => "",
        };
        format!("{ends}{}", self.kind.map_or("<none>".to_owned(), Kind::name))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Ip,
    Ether,
}

/// Takes the words in front of a value.
pub(crate) fn qualifiers(p: &mut Parser<'_>) -> Result<Subject, Error> {
    let mut s = Subject::default();
    while let Some(word) = p.peek() {
        let kind = KINDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
        // A name of several things is a value.
        let proto = match ip_value::named(word, None, None, p.scope) {
            Ok(Some(Data::Protocol(proto))) => Some(proto),
            _ => None,
        };
        let header =
            [("ip", Header::Ip), ("ether", Header::Ether)].into_iter().find(|(name, _)| *name == word);
        match (kind, proto, header, word) {
            (Some(_), ..) if s.kind.is_some() => return Err(Error::new("type specified twice")),
            (Some(kind), ..) => {
                s.kind = Some(kind);
                s.set_proto(kind.owner())?;
            }
            (_, Some(proto), ..) => s.set_proto(Some(proto))?,
            (_, _, Some((_, header)), _) if s.header.is_none() => s.header = Some(header),
            (.., "not" | "!") => s.negated = !s.negated,
            (.., "src" | "dst" | "dest") if s.ends.is_some() => {
                return Err(Error::new("'src' or 'dst' specified twice"));
            }
            (.., "src" | "dst" | "dest") => {
                s.ends = Some(ends(p));
                continue;
            }
            _ => return Ok(s),
        }
        p.next();
        if s.kind.is_none() && p.peek() == Some("[") {
            return Ok(s);
        }
    }
    Ok(s)
}

impl Subject {
    fn set_proto(&mut self, proto: Option<Proto>) -> Result<(), Error> {
        match (self.proto, proto) {
            (Some(a), Some(b)) if a != b => Err(Error::new("transport protocol specified twice")),
            (_, new) => {
                self.proto = new.or(self.proto);
                Ok(())
            }
        }
    }
}

/// Takes `src`, `dst`, `src or dst`, `src and dst`.
fn ends(p: &mut Parser<'_>) -> Ends {
    let source = p.next().as_deref() == Some("src");
    let both = match p.peek() {
        Some("or" | "||") => Some(Ends::Either),
        Some("and" | "&&") => Some(Ends::Both),
        _ => None,
    };
    match both {
        Some(both) if source && matches!(p.peek_at(1), Some("dst" | "dest")) => {
            p.next();
            p.next();
            both
        }
        _ if source => Ends::Source,
        _ => Ends::Destination,
    }
}

/// `POS]`, `POS:LEN]` of the header of `proto`, behind the opening bracket.
pub(crate) fn bytes(p: &mut Parser<'_>, proto: Option<Proto>) -> Result<Kind, Error> {
    let position = ip_value::number(&p.next().unwrap_or_default())?;
    let len = if p.take(&[":"]) { ip_value::number(&p.next().unwrap_or_default())? } else { 1 };
    p.expect("]")?;
    if !(1..=4).contains(&len) {
        return Err(Error::new("LEN in '[POS:LEN]' out of range, should be between 1 and 4"));
    }
    if position > 2_044 || position / 4 != (position + len - 1) / 4 {
        return Err(Error::new(format!("field [{position}:{len}] does not fit in a single word")));
    }
    let base = if proto.is_some() { Base::Transport } else { Base::Network };
    Ok(Kind::Field(Field::whole(base, position as u16, len as u8), proto))
}
