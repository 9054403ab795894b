//! Routes and policy rules.

use super::{octet, word};
use crate::model::{Family, Path, PuntReason, Route, Rule, Target};
use crate::prefix::Prefix;
use crate::uapi::*;
use crate::wire::{self, Attributes, Malformed, u16_at, u32_at};
use std::net::IpAddr;

/// Octets of `struct rtmsg` and of `struct fib_rule_hdr`.
const HEADER_LEN: usize = 12;
/// Octets of `struct rtnexthop`.
const PATH_HEADER_LEN: usize = 8;

const WHAT: &str = "route";

/// The attributes of a route that say where packets go.
#[derive(Default)]
struct Body {
    ifindex: Option<u32>,
    gateway: Option<IpAddr>,
    paths: Option<Vec<Path>>,
    object: Option<u32>,
    punt: Option<PuntReason>,
}

fn family(octet: u8) -> Option<Family> {
    match octet {
        AF_INET => Some(Family::V4),
        AF_INET6 => Some(Family::V6),
        _ => None,
    }
}

pub(super) fn route(payload: &[u8]) -> Result<Option<Route>, Malformed> {
    let Some(family) = family(octet(payload, 0, WHAT)?) else { return Ok(None) };
    // Clones are cached exceptions (path MTU, redirects) of a route that is announced by itself.
    if word(payload, 8, WHAT)? & RTM_F_CLONED != 0 {
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
        target: Target::Punt(PuntReason::UnknownType),
        mtu_bytes: None,
    };
    let mut body = Body::default();
    for attribute in Attributes::after(payload, HEADER_LEN) {
        let (kind, value) = attribute?;
        match kind {
            RTA_DST => route.prefix = prefix(value, family, len)?,
            RTA_TABLE => route.table = word(value, 0, WHAT)?,
            RTA_PRIORITY => route.metric = word(value, 0, WHAT)?,
            RTA_METRICS => route.mtu_bytes = mtu(value)?,
            RTA_SRC => route.source_specific = true,
            // These bear on packets that this machine sends, not on those that it forwards.
            RTA_PREFSRC | RTA_CACHEINFO | RTA_PREF | RTA_EXPIRES => {}
            _ => body.read(kind, value)?,
        }
    }
    if route.prefix.len() != len {
        return Err(Malformed(WHAT));
    }
    route.target = target(octet(payload, 7, WHAT)?, body);
    Ok(Some(route))
}

fn prefix(value: &[u8], family: Family, len: u8) -> Result<Prefix, Malformed> {
    let address =
        wire::address(value).filter(|&address| Family::of(address) == family).ok_or(Malformed(WHAT))?;
    Ok(Prefix::new(address, len))
}

impl Body {
    fn read(&mut self, kind: u16, value: &[u8]) -> Result<(), Malformed> {
        match kind {
            RTA_OIF => self.ifindex = Some(word(value, 0, WHAT)?),
            RTA_GATEWAY => self.gateway = Some(wire::address(value).ok_or(Malformed(WHAT))?),
            RTA_VIA => self.gateway = Some(via(value)?),
            RTA_NH_ID => self.object = Some(word(value, 0, WHAT)?),
            RTA_MULTIPATH => self.multipath(value)?,
            RTA_ENCAP | RTA_ENCAP_TYPE => self.punt = Some(PuntReason::Encapsulation),
            _ => self.punt = Some(PuntReason::UnknownAttribute),
        }
        Ok(())
    }

    /// `RTA_MULTIPATH`: a run of `struct rtnexthop`, each with attributes of its own.
    fn multipath(&mut self, mut value: &[u8]) -> Result<(), Malformed> {
        let mut paths = Vec::new();
        while !value.is_empty() {
            let len = usize::from(u16_at(value, 0).ok_or(Malformed(WHAT))?);
            let hops = octet(value, 3, WHAT)?;
            let ifindex = word(value, 4, WHAT)?;
            let attributes = value.get(PATH_HEADER_LEN..len).ok_or(Malformed(WHAT))?;
            let mut leg = Body::default();
            for attribute in Attributes(attributes) {
                let (kind, value) = attribute?;
                leg.read(kind, value)?;
            }
            self.punt = self.punt.or(leg.punt);
            // The kernel stores weights less one.
            paths.push(Path { ifindex, gateway: leg.gateway, weight: u16::from(hops) + 1 });
            value = value.get((len + 3) & !3..).unwrap_or_default();
        }
        self.paths = Some(paths);
        Ok(())
    }
}

/// `RTA_VIA`: a gateway of the other family; its family, then its address.
fn via(value: &[u8]) -> Result<IpAddr, Malformed> {
    value.get(2..).and_then(wire::address).ok_or(Malformed(WHAT))
}

fn target(kind: u8, body: Body) -> Target {
    let reason = match kind {
        RTN_UNICAST => {
            return match body {
                Body { punt: Some(reason), .. } => Target::Punt(reason),
                // With an object, the paths in the message are only what the object said at that moment.
                Body { object: Some(id), .. } => Target::Object(id),
                Body { paths: Some(paths), .. } if !paths.is_empty() => Target::Paths(paths),
                Body { ifindex: Some(ifindex), gateway, .. } => {
                    Target::Paths(vec![Path { ifindex, gateway, weight: 1 }])
                }
                _ => Target::Punt(PuntReason::UnknownType),
            };
        }
        RTN_LOCAL => PuntReason::Local,
        RTN_BROADCAST => PuntReason::Broadcast,
        RTN_ANYCAST => PuntReason::Anycast,
        RTN_MULTICAST => PuntReason::Multicast,
        RTN_BLACKHOLE => PuntReason::Blackhole,
        RTN_UNREACHABLE => PuntReason::Unreachable,
        RTN_PROHIBIT => PuntReason::Prohibit,
        RTN_THROW => PuntReason::Throw,
        _ => PuntReason::UnknownType,
    };
    Target::Punt(reason)
}

/// The MTU among the metrics; the others bear on this machine's own connections.
fn mtu(value: &[u8]) -> Result<Option<u32>, Malformed> {
    for attribute in Attributes(value) {
        let (kind, value) = attribute?;
        if kind == RTAX_MTU {
            return Ok(u32_at(value, 0).filter(|&mtu| mtu != 0));
        }
    }
    Ok(None)
}

pub(super) fn rule(payload: &[u8]) -> Result<Option<Rule>, Malformed> {
    const WHAT: &str = "rule";
    let Some(family) = family(octet(payload, 0, WHAT)?) else { return Ok(None) };
    let selective =
        octet(payload, 1, WHAT)? != 0 || octet(payload, 2, WHAT)? != 0 || octet(payload, 3, WHAT)? != 0;
    // Flag bits: 1 marks the kernel's own rules, 2 inverts the match.
    let flags = word(payload, 8, WHAT)?;
    let mut plain = !selective && octet(payload, 7, WHAT)? == FR_ACT_TO_TBL && flags & !1 == 0;
    let mut priority = 0;
    let mut table = u32::from(octet(payload, 4, WHAT)?);
    for attribute in Attributes::after(payload, HEADER_LEN) {
        let (kind, value) = attribute?;
        match kind {
            FRA_PRIORITY => priority = word(value, 0, WHAT)?,
            FRA_TABLE => table = word(value, 0, WHAT)?,
            FRA_PROTOCOL => {}
            FRA_SUPPRESS_PREFIXLEN if u32_at(value, 0) == Some(u32::MAX) => {}
            _ => plain = false,
        }
    }
    Ok(Some(Rule { family, priority, table, plain, bytes: payload.to_vec() }))
}
