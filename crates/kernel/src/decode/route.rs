//! Routes.

use super::{family, octet, word};
use crate::model::{Family, Path, ReversePath, Route, Target};
use crate::prefix::Prefix;
use crate::reason::PuntReason;
use crate::uapi::*;
use crate::wire::{self, Attributes, Frame, Malformed, u16_at, u32_at};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

/// Octets of `struct rtmsg`.
const HEADER_LEN: usize = 12;
/// Octets of `struct rtnexthop`.
const PATH_HEADER_LEN: usize = 8;
/// Where the lifetime stands in `struct rta_cacheinfo`.
const CACHEINFO_EXPIRES: usize = 8;
/// Features of a route that bear on this machine's own connections only: ECN, SACK, time stamps.
const HARMLESS_FEATURES: u32 =
    RTAX_FEATURE_ECN | RTAX_FEATURE_SACK | RTAX_FEATURE_TIMESTAMP | RTAX_FEATURE_TCP_USEC_TS;

const WHAT: &str = "route";

/// The attributes of a route that say where packets go.
struct Body {
    family: Family,
    ifindex: Option<u32>,
    gateway: Option<IpAddr>,
    paths: Option<Vec<Path>>,
    dead: Vec<u32>,
    object: Option<u32>,
    punt: Option<PuntReason>,
    identity: Identity,
}

/// A digest of what the kernel tells routes apart by, other than what is kept of them.
#[derive(Default)]
struct Identity {
    route: Option<DefaultHasher>,
    /// Of the paths, which are not the route's own if it has an object.
    paths: Option<DefaultHasher>,
}

impl Body {
    fn new(family: Family) -> Self {
        let (ifindex, gateway, paths, dead) = (None, None, None, Vec::new());
        Body {
            family,
            ifindex,
            gateway,
            paths,
            dead,
            object: None,
            punt: None,
            identity: Identity::default(),
        }
    }

    /// The digest, given the header's scope and type.
    fn identity(&self, scope: u8, kind: u8) -> u64 {
        let kind = if matches!(kind, RTN_UNICAST..=RTN_THROW) { 0 } else { kind };
        let mut identity = u64::from(u16::from_le_bytes([scope, kind]));
        let paths = self.identity.paths.as_ref().filter(|_| self.object.is_none());
        for part in self.identity.route.iter().chain(paths) {
            let mut whole = part.clone();
            identity.hash(&mut whole);
            identity = whole.finish();
        }
        identity
    }
}

pub(super) fn route(payload: &[u8]) -> Result<Option<Route>, Malformed> {
    let Some(family) = family(octet(payload, 0, WHAT)?) else { return Ok(None) };
    let flags = word(payload, 8, WHAT)?;
    // Clones are cached exceptions (path MTU, redirects) of a route that is announced by itself.
    if flags & RTM_F_CLONED != 0 {
        return Ok(None);
    }
    let len = octet(payload, 1, WHAT)?;
    let mut route = Route {
        prefix: Prefix::all(family),
        table: u32::from(octet(payload, 4, WHAT)?),
        tos: octet(payload, 3, WHAT)?,
        metric: 0,
        protocol: octet(payload, 5, WHAT)?,
        source_specific: octet(payload, 2, WHAT)? != 0,
        target: Target::Punt { reason: PuntReason::UnknownType, reverse_path: ReversePath::Unknown },
        mtu_bytes: None,
        source: None,
        dead: Vec::new(),
        identity: 0,
    };
    let mut body = Body::new(family);
    for attribute in Attributes::after(payload, HEADER_LEN) {
        let (kind, value) = attribute?;
        match kind {
            RTA_DST => route.prefix = prefix(value, family, len)?,
            RTA_TABLE => route.table = word(value, 0, WHAT)?,
            RTA_PRIORITY => route.metric = word(value, 0, WHAT)?,
            RTA_METRICS => route.mtu_bytes = body.metrics(value)?,
            RTA_SRC => route.source_specific = true,
            RTA_PREFSRC => route.source = source(value),
            _ => body.read(kind, value)?,
        }
    }
    if route.prefix.len() != len {
        return Err(Malformed(WHAT));
    }
    let ifindex = body.ifindex;
    body.flags(flags, ifindex);
    let (scope, kind) = (octet(payload, 6, WHAT)?, octet(payload, 7, WHAT)?);
    route.identity = body.identity(scope, kind);
    route.dead = std::mem::take(&mut body.dead);
    route.target = target(kind, body);
    Ok(Some(route))
}

/// The destination, if this is a cached exception of a route. What does not parse is none.
pub(crate) fn exception(frame: &Frame<'_>) -> Option<IpAddr> {
    let flags = u32_at(frame.payload, 8)?;
    let mut attributes = Attributes::after(frame.payload, HEADER_LEN).filter_map(Result::ok);
    let address = wire::address(attributes.find(|(kind, _)| *kind == RTA_DST)?.1)?;
    let whole = Prefix::host(address).len() == *frame.payload.get(1)?;
    (frame.kind == RTM_NEWROUTE && flags & RTM_F_CLONED != 0 && whole).then_some(address)
}

/// Bits beyond the length are of no account to the kernel.
pub(super) fn prefix(value: &[u8], family: Family, len: u8) -> Result<Prefix, Malformed> {
    let address =
        wire::address(value).filter(|&address| Family::of(address) == family).ok_or(Malformed(WHAT))?;
    Ok(Prefix::new(address, len))
}

/// IPv6 only forgets the address where it goes, so it is of no interest there.
fn source(value: &[u8]) -> Option<std::net::Ipv4Addr> {
    match wire::address(value) {
        Some(IpAddr::V4(address)) => Some(address),
        _ => None,
    }
}

impl Body {
    fn read(&mut self, kind: u16, value: &[u8]) -> Result<(), Malformed> {
        match kind {
            RTA_OIF => self.ifindex = Some(word(value, 0, WHAT)?),
            RTA_GATEWAY => self.gateway = Some(wire::address(value).ok_or(Malformed(WHAT))?),
            RTA_VIA => self.gateway = Some(via(value)?),
            RTA_NH_ID => self.object = Some(word(value, 0, WHAT)?),
            RTA_MULTIPATH => self.multipath(value)?,
            RTA_ENCAP | RTA_ENCAP_TYPE => {
                value.hash(self.identity.paths.get_or_insert_default());
                self.punt = Some(PuntReason::Encapsulation);
            }
            RTA_CACHEINFO if u32_at(value, CACHEINFO_EXPIRES).is_none_or(|expires| expires == 0) => {}
            RTA_CACHEINFO | RTA_EXPIRES => self.punt = Some(PuntReason::Lifetime),
            // For accounting.
            RTA_FLOW => value.hash(self.identity.paths.get_or_insert_default()),
            // For choosing among routes that are ambiguous here.
            RTA_PREF => {}
            _ => {
                (kind, value).hash(self.identity.route.get_or_insert_default());
                self.punt = Some(PuntReason::UnknownAttribute);
            }
        }
        Ok(())
    }

    /// Takes in the flags of a path by some device.
    fn flags(&mut self, flags: u32, ifindex: Option<u32>) {
        if flags & RTNH_F_DEAD != 0 {
            self.dead.extend(ifindex);
        }
        if flags & RTNH_F_ONLINK != 0 && self.family == Family::V4 {
            ifindex.hash(self.identity.paths.get_or_insert_default());
        }
    }

    /// The MTU among the metrics; the others that are known bear on this machine's own packets.
    fn metrics(&mut self, value: &[u8]) -> Result<Option<u32>, Malformed> {
        let mut mtu = None;
        // IPv6 does not tell routes apart by their metrics.
        if self.family == Family::V4 {
            value.hash(self.identity.route.get_or_insert_default());
        }
        for attribute in Attributes(value) {
            match attribute? {
                (RTAX_MTU, value) => mtu = u32_at(value, 0).filter(|&mtu| mtu != 0),
                (RTAX_FEATURES, value) if u32_at(value, 0).is_none_or(|f| f & !HARMLESS_FEATURES != 0) => {
                    self.punt = Some(PuntReason::UnknownAttribute);
                }
                (..=RTAX_FASTOPEN_NO_COOKIE, _) => {}
                _ => self.punt = Some(PuntReason::UnknownAttribute),
            }
        }
        Ok(mtu)
    }

    /// `RTA_MULTIPATH`: a run of `struct rtnexthop`, each with attributes of its own.
    fn multipath(&mut self, mut value: &[u8]) -> Result<(), Malformed> {
        let mut paths = Vec::new();
        while !value.is_empty() {
            let len = usize::from(u16_at(value, 0).ok_or(Malformed(WHAT))?);
            let flags = u32::from(octet(value, 2, WHAT)?);
            let hops = octet(value, 3, WHAT)?;
            let ifindex = word(value, 4, WHAT)?;
            let attributes = value.get(PATH_HEADER_LEN..len).ok_or(Malformed(WHAT))?;
            let mut leg = Body::new(self.family);
            for attribute in Attributes(attributes) {
                let (kind, value) = attribute?;
                leg.read(kind, value)?;
            }
            self.punt = self.punt.or(leg.punt);
            self.flags(flags, Some(ifindex));
            for part in leg.identity.route.iter().chain(&leg.identity.paths) {
                (ifindex, part.finish()).hash(self.identity.paths.get_or_insert_default());
            }
            // The kernel stores weights less one.
            paths.push(Path { ifindex, gateway: leg.gateway, weight: u16::from(hops) + 1 });
            value = value.get((len + 3) & !3..).unwrap_or_default();
        }
        self.paths = Some(paths);
        Ok(())
    }

    fn unicast(self) -> Target {
        let paths = match (self.paths, self.ifindex) {
            (Some(paths), _) => paths,
            (None, Some(ifindex)) => vec![Path { ifindex, gateway: self.gateway, weight: 1 }],
            (None, None) => Vec::new(),
        };
        match (self.punt, self.object) {
            // With an object, the paths in the message are only what the object said at that moment, and so is that some of
            // them are tunnels.
            (None | Some(PuntReason::Encapsulation), Some(id)) => Target::Object(id),
            // It may be over already.
            (Some(reason @ PuntReason::Lifetime), _) => {
                Target::Punt { reason, reverse_path: ReversePath::Unknown }
            }
            (Some(reason), _) => {
                let reverse_path = ReversePath::of(paths.iter().map(|path| path.ifindex));
                Target::Punt { reason, reverse_path }
            }
            (None, None) if paths.is_empty() => {
                Target::Punt { reason: PuntReason::UnknownType, reverse_path: ReversePath::Unknown }
            }
            (None, None) => Target::Paths(paths),
        }
    }
}

/// `RTA_VIA`: a gateway of the other family; its family, then its address.
fn via(value: &[u8]) -> Result<IpAddr, Malformed> {
    value.get(2..).and_then(wire::address).ok_or(Malformed(WHAT))
}

fn target(kind: u8, body: Body) -> Target {
    let reason = match kind {
        RTN_UNICAST => return body.unicast(),
        // So is a route with an object that is a blackhole at that moment.
        RTN_BLACKHOLE if body.object.is_some() => return body.unicast(),
        RTN_LOCAL => PuntReason::Local,
        RTN_BROADCAST => PuntReason::Broadcast,
        RTN_ANYCAST => PuntReason::Anycast,
        RTN_MULTICAST => PuntReason::Multicast,
        RTN_BLACKHOLE => PuntReason::Blackhole,
        RTN_UNREACHABLE => PuntReason::Unreachable,
        RTN_PROHIBIT => PuntReason::Prohibit,
        RTN_THROW => PuntReason::Throw,
        _ => {
            return Target::Punt { reason: PuntReason::UnknownType, reverse_path: ReversePath::Unknown };
        }
    };
    Target::Punt { reason, reverse_path: ReversePath::NotUnicast }
}
