//! One test of an IP expression: qualifiers, a relation, a value.
//!
//! `src tcp port 80`, `dst net 10.0.0.0/8`, `ip ttl < 5`, `ip[6:2] & 0x2000 != 0`. Qualifiers come in any order; a
//! value alone is what it looks like (an address, a name) or what the test before it was about.

use super::expr::{Against, Base, Expr, Field, Relation};
use super::ip_expr::Parser;
use super::ip_subject::{Ends, Header, KINDS, Kind, Proto, Subject, TCP, UDP, bytes, qualifiers};
use super::ip_value::{self, Data};
use causeway_engine::Error;
use causeway_packet::wire::protocol;

const RELATIONS: &[(&str, Relation)] = &[
    ("=", Relation::Equal),
    ("==", Relation::Equal),
    ("!=", Relation::Different),
    ("<", Relation::Less),
    (">", Relation::Greater),
    ("<=", Relation::NotGreater),
    (">=", Relation::NotLess),
];

const PROTOCOL: Field = Field::whole(Base::Network, 9, 1);
const FRAGMENT_OFFSET: Field = Field::part(Base::Network, 6, 2, 0x1fff);
const FRAGMENT: Field = Field::part(Base::Network, 6, 2, 0x3fff);
const ECN: Field = Field::part(Base::Network, 1, 1, 3);

/// A mask before the relation.
type Mask = Option<Data>;

/// Reads one test.
pub(crate) fn parse(p: &mut Parser<'_>) -> Result<Expr, Error> {
    let before = std::mem::take(&mut p.last);
    let start = p.at();
    let here = p.here();
    let mut subject = qualifiers(p)?;
    let alone = p.at() == start;
    if alone && before.kind == Some(Kind::Ether) {
        subject.header = Some(Header::Ether);
    }
    if !alone && subject.kind.is_none() && p.take(&["["]) {
        subject.kind = Some(bytes(p, subject.proto)?);
    }
    let mask = mask(p, subject)?;
    let relation =
        p.peek().and_then(|word| RELATIONS.iter().find(|(name, _)| *name == word)).map(|(_, r)| *r);
    if relation.is_some() {
        p.next();
    }
    let data = data(p, subject)?;
    match (data, relation) {
        (None, Some(_)) => return Err(Error::new(format!("value expected{}", p.here()))),
        (None, None) if p.at() == start => return Err(Error::new(format!("syntax error{here}"))),
        _ => {}
    }
    let test = Test { subject, mask, relation: relation.unwrap_or(Relation::Equal), data };
    let ends = subject.ends;
    let test = test.settled(if alone { before } else { Subject::default() })?;
    p.last = test.subject;
    let expr = test.expr(&mut p.warnings)?;
    if ends.is_some() && !test.of_ends() {
        p.warnings.push(format!("'{}': 'src' or 'dst' ignored", test.subject.name()));
    }
    Ok(if test.subject.negated { expr.not() } else { expr })
}

/// `& MASK`, if it is there.
fn mask(p: &mut Parser<'_>, s: Subject) -> Result<Mask, Error> {
    if !p.take(&["&"]) {
        return Ok(None);
    }
    let word = p.next().unwrap_or_default();
    let number = || ip_value::number(&word).ok().map(Data::Number);
    let host = || ip_value::host(&word, p.scope).filter(|_| s.header != Some(Header::Ether)).map(Data::Host);
    let ether = || ip_value::ether(&word, p.scope).filter(|_| s.header != Some(Header::Ip)).map(Data::Ether);
    match number().or_else(host).or_else(ether) {
        None => Err(Error::new(format!("'{word}' is not a mask"))),
        Some(Data::Number(0) | Data::Host(0)) => {
            p.warnings.push("zero mask ignored".to_owned());
            Ok(None)
        }
        mask => Ok(mask),
    }
}

/// The value, if one comes next.
fn data(p: &mut Parser<'_>, s: Subject) -> Result<Option<Data>, Error> {
    let Some(word) = p.peek().map(str::to_owned) else { return Ok(None) };
    if KINDS.iter().any(|(name, _)| *name == word) {
        return Ok(None);
    }
    let (ip, ether) = (s.header != Some(Header::Ether), s.header != Some(Header::Ip));
    let host = ip_value::host(&word, p.scope).filter(|_| ip);
    let masked = ip && p.peek_at(1) == Some("mask");
    let found = match ip_value::named(&word, s.kind, s.proto, p.scope)? {
        Some(named) => Some(named),
        None => {
            let number = ip_value::number(&word).ok().map(Data::Number);
            let host = host.filter(|_| s.kind != Some(Kind::Net)).map(Data::Host);
            let net = || ip_value::net(&word, p.scope).filter(|_| ip).map(|(a, m)| Data::Net(a, m));
            let ether = || ip_value::ether(&word, p.scope).filter(|_| ether).map(Data::Ether);
            let mask = || {
                let mask = ip_value::host(p.peek_at(2)?, p.scope).filter(|_| masked)?;
                Some(Data::Net(ip_value::partial(&word).or_else(|| ip_value::host(&word, p.scope))?, mask))
            };
            mask().or(number).or(host).or_else(net).or_else(ether)
        }
    };
    if found.is_some() {
        let words = if masked && matches!(found, Some(Data::Net(..))) { 3 } else { 1 };
        (0..words).for_each(|_| drop(p.next()));
    }
    Ok(found)
}

/// A test as it was written.
struct Test {
    subject: Subject,
    mask: Mask,
    relation: Relation,
    data: Option<Data>,
}

impl Test {
    /// The test with what its value, or the one before, says of its subject.
    fn settled(mut self, before: Subject) -> Result<Test, Error> {
        let s = &mut self.subject;
        if s.kind.is_none() {
            let like_before = |s: &mut Subject| s.ends = s.ends.or(before.ends);
            let kind = match self.data {
                Some(Data::Host(_)) => Kind::Host,
                Some(Data::Net(..)) => Kind::Net,
                Some(Data::Ether(_)) => Kind::Ether,
                Some(Data::TcpOption(_)) => Kind::TcpOption,
                Some(Data::Protocol(_)) => Kind::Protocol,
                Some(Data::Port(_)) => Kind::Port,
                Some(Data::IcmpType(_)) => Kind::ICMP_TYPE,
                Some(Data::Number(_)) => match before.kind {
                    Some(kind @ (Kind::Protocol | Kind::Port | Kind::Field(..))) => kind,
                    _ => return Err(Error::new("specify header field or 'port'")),
                },
                None if s.proto.is_some() => Kind::Protocol,
                None => return Err(Error::new("partial directive")),
            };
            match kind {
                Kind::Host | Kind::Net | Kind::Ether | Kind::TcpOption => like_before(s),
                Kind::Port => {
                    like_before(s);
                    s.proto = s.proto.or(before.proto);
                }
                _ => s.proto = s.proto.or(kind.owner()),
            }
            s.kind = Some(kind);
        }
        let ether = s.header == Some(Header::Ether)
            || (s.header.is_none() && matches!(self.data, Some(Data::Ether(_))));
        s.kind = match s.kind {
            Some(Kind::Host | Kind::Ether) if ether => Some(Kind::Ether),
            Some(_) if ether => return Err(Error::new("'ether' goes with addresses only")),
            kind => kind,
        };
        Ok(self)
    }

    /// Whether it is about source or destination.
    fn of_ends(&self) -> bool {
        matches!(self.subject.kind, Some(Kind::Host | Kind::Net | Kind::Ether | Kind::Port))
    }

    /// An error about the test.
    fn error(&self, why: impl Into<String>) -> Error {
        Error::new(why).of(format_args!("'{}'", self.subject.name()))
    }

    fn expr(&self, warnings: &mut Vec<String>) -> Result<Expr, Error> {
        let s = self.subject;
        let kind = s.kind.unwrap_or(Kind::Protocol);
        let (proto, expr) = match kind {
            Kind::Host | Kind::Net => (s.proto, self.host()?),
            Kind::Ether => (s.proto, self.ether()?),
            Kind::Protocol => self.protocol(warnings)?,
            Kind::Port => {
                let proto = s.proto.unwrap_or(Proto::TcpOrUdp);
                let number = match self.data {
                    Some(Data::Port(n) | Data::Number(n)) => n,
                    _ => return Err(self.error("value missing")),
                };
                if ![TCP, UDP, Proto::TcpOrUdp, Proto::Number(33)].contains(&proto) {
                    return Err(self.error("the protocol has no ports"));
                }
                let at = |offset| Field::whole(Base::Transport, offset, 2);
                (Some(proto), self.compared(&[at(0), at(2)], number, warnings)?)
            }
            Kind::TcpOption => {
                let flags = match self.data {
                    Some(Data::TcpOption(n) | Data::Number(n)) if n <= 255 => n,
                    _ => return Err(self.error("value missing")),
                };
                if s.proto.is_some_and(|p| p != TCP) {
                    return Err(self.error("bad protocol"));
                }
                if self.relation != Relation::Equal || self.mask.is_some() {
                    return Err(self.error("operator or mask not supported"));
                }
                (Some(TCP), Field::whole(Base::Transport, 13, 1).equals(flags, flags))
            }
            Kind::Fragment | Kind::Unfragmented | Kind::Ce if self.data.is_some() || self.mask.is_some() => {
                return Err(self.error("value not supported"));
            }
            Kind::Fragment => (s.proto, FRAGMENT.compare(Relation::Different, 0)),
            Kind::Unfragmented => (s.proto, FRAGMENT.compare(Relation::Equal, 0)),
            Kind::Ce => (s.proto, ECN.compare(Relation::Equal, 3)),
            Kind::Ect if self.data.is_none() => (s.proto, ECN.compare(Relation::Different, 0)),
            Kind::Ect => (s.proto, self.compared(&[ECN], self.number()?, warnings)?),
            Kind::Field(field, owner) => {
                let number = match self.data {
                    Some(Data::IcmpType(n)) if kind == Kind::ICMP_TYPE => n,
                    _ => self.number()?,
                };
                (s.proto.or(owner), self.compared(&[field], number, warnings)?)
            }
        };
        Ok(guarded(kind, proto, expr))
    }

    fn number(&self) -> Result<u32, Error> {
        match self.data {
            Some(Data::Number(n)) => Ok(n),
            _ => Err(self.error("value missing")),
        }
    }

    /// `source`, `destination` or both, as the test says.
    fn ends(&self, source: Expr, destination: Expr) -> Expr {
        match self.subject.ends.unwrap_or(Ends::Either) {
            Ends::Source => source,
            Ends::Destination => destination,
            Ends::Either => Expr::Or(vec![source, destination]),
            Ends::Both => Expr::And(vec![source, destination]),
        }
    }

    /// `expr`, or the other one if the relation is "not equal"; others make no sense of addresses.
    fn related(&self, expr: Expr) -> Result<Expr, Error> {
        match self.relation {
            Relation::Equal => Ok(expr),
            Relation::Different => Ok(expr.other()),
            _ => Err(self.error("operator not supported")),
        }
    }

    fn host(&self) -> Result<Expr, Error> {
        let (value, own) = match self.data {
            Some(Data::Host(address)) if self.subject.kind != Some(Kind::Net) => (address, u32::MAX),
            Some(Data::Net(address, mask)) if self.subject.kind == Some(Kind::Net) => (address, mask),
            _ => return Err(self.error("address missing")),
        };
        let mask = match self.mask {
            None => own,
            Some(Data::Number(mask) | Data::Host(mask)) => mask,
            Some(_) => return Err(self.error("bad mask")),
        };
        let at = |offset| Field::whole(Base::Network, offset, 4).equals(mask, value & mask);
        self.related(self.ends(at(12), at(16)))
    }

    fn ether(&self) -> Result<Expr, Error> {
        let (Some(Data::Ether(address)), None | Some(Data::Ether(_))) = (self.data, self.mask) else {
            return Err(self.error("address missing"));
        };
        let mask = if let Some(Data::Ether(mask)) = self.mask { mask } else { [0xff; 6] };
        let at = |offset| Expr::bytes(Base::Link, offset, &address, &mask);
        self.related(self.ends(at(8), at(2)))
    }

    /// A protocol by itself guards the test that it is.
    fn protocol(&self, warnings: &mut Vec<String>) -> Result<(Option<Proto>, Expr), Error> {
        let said = match self.data {
            Some(Data::Protocol(proto)) => Some(proto),
            Some(Data::Number(n)) => {
                Some(Proto::Number(u8::try_from(n).map_err(|_| self.error("out of range, bound 255"))?))
            }
            None => None,
            Some(_) => return Err(self.error("value missing")),
        };
        match (said.or(self.subject.proto), self.subject.proto) {
            (Some(a), Some(b)) if a != b => Err(self.error("specified twice")),
            (None | Some(Proto::Any), _) => Err(self.error("value missing")),
            (Some(proto), _) if self.relation == Relation::Equal && self.mask.is_none() => {
                Ok((Some(proto), Expr::Const(true)))
            }
            (Some(Proto::Number(n)), _) => Ok((None, self.compared(&[PROTOCOL], n.into(), warnings)?)),
            (Some(Proto::TcpOrUdp), _) => Err(self.error("operator or mask not supported")),
        }
    }

    /// The comparison of a field with `value`, or that of the two fields of both ends.
    fn compared(&self, fields: &[Field], value: u32, warnings: &mut Vec<String>) -> Result<Expr, Error> {
        let Some(&first) = fields.first() else { return Ok(Expr::Const(true)) };
        let most = match self.mask {
            None => first.max(),
            Some(Data::Number(mask)) if mask & !first.max() == 0 => mask,
            Some(Data::Number(_)) => {
                return Err(self.error(format!("mask out of range, bound 0x{:X}", first.max())));
            }
            Some(_) => return Err(self.error("bad mask")),
        };
        let (above, value, negated) = match self.relation.against(value, most) {
            Against::Always(c) => {
                let c_text = if c { "true" } else { "false" };
                let sign = RELATIONS.iter().find(|(_, r)| *r == self.relation).map_or("=", |(name, _)| *name);
                warnings.push(format!("relation '{sign} {value}' is always {c_text} (range 0-{most})"));
                return Ok(Expr::Const(c));
            }
            Against::Value { above: false, value, .. } if value > first.max() => {
                return Err(self.error(format!("out of range, bound {}", first.max())));
            }
            Against::Value { above, value, negated } => (above, value, negated),
        };
        let is = |field: &Field| {
            let shift = field.shift();
            // Of a number below the field's bits all lower ones count as ones.
            let low = if above { (1u32 << shift) - 1 } else { 0 };
            Field { mask: most << shift, ..*field }.is(above, value << shift | low)
        };
        let expr = match fields {
            [source, destination] => self.ends(is(source), is(destination)),
            _ => is(&first),
        };
        Ok(if negated { expr.other() } else { expr })
    }
}

/// `expr` for packets of the protocol that the test asks for, and for first fragments if it is about the
/// transport header, which the others do not have.
fn guarded(kind: Kind, proto: Option<Proto>, expr: Expr) -> Expr {
    let is = |number: u8| PROTOCOL.compare(Relation::Equal, number as u32);
    let mut all: Vec<Expr> = match proto {
        Some(Proto::Number(n)) => vec![is(n)],
        Some(Proto::TcpOrUdp) => vec![Expr::Or(vec![is(protocol::TCP), is(protocol::UDP)])],
        Some(Proto::Any) | None => Vec::new(),
    };
    if kind.of_transport() {
        all.push(FRAGMENT_OFFSET.compare(Relation::Equal, 0));
    }
    all.push(expr);
    if all.len() == 1 { all.remove(0) } else { Expr::And(all) }
}
