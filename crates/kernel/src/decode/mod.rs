//! Bytes from the kernel to [`Message`]s.
//!
//! A message that is of no interest (another address family, a cached clone of a route) is `None`; one that does not parse
//! is an error, which the reader counts and answers with a new dump. What parses but is not understood is kept, with
//! [`PuntReason`](crate::PuntReason) as its target, because a route that is ignored would let a shorter one take its packets.

mod link;
mod nexthop;
mod route;

use crate::model::{Address, Link, Neighbour, NextHop, Qdisc, Route, Rule};
use crate::uapi::*;
use crate::wire::{Frame, Malformed};

/// What a message says of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is there (answer to a dump).
    Dumped,
    /// It was added.
    Added {
        /// In the place of the first of its kind (`NLM_F_REPLACE`).
        replace: bool,
        /// Behind those of its kind (`NLM_F_APPEND`).
        append: bool,
    },
    /// It was removed.
    Removed,
}

/// An object of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// A link.
    Link(Link),
    /// An address of an interface.
    Address(Address),
    /// A neighbour entry.
    Neighbour(Neighbour),
    /// A next hop object.
    NextHop(NextHop),
    /// A route.
    Route(Route),
    /// A policy rule.
    Rule(Rule),
    /// A queueing discipline.
    Qdisc(Qdisc),
    /// Settings such as `forwarding` or `rp_filter` of some interface; what they are is read when it is asked for.
    Setting,
}

/// A message from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What happened.
    pub operation: Operation,
    /// To what.
    pub object: Object,
}

/// Where a frame was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Dump,
    Event,
}

/// Decodes one frame.
pub(crate) fn decode(frame: &Frame<'_>, source: Source) -> Result<Option<Message>, Malformed> {
    let p = frame.payload;
    let object = match frame.kind {
        RTM_NEWLINK | RTM_DELLINK => link::link(p)?.map(Object::Link),
        RTM_NEWADDR | RTM_DELADDR => link::address(p)?.map(Object::Address),
        RTM_NEWNEIGH | RTM_DELNEIGH => link::neighbour(p)?.map(Object::Neighbour),
        RTM_NEWQDISC | RTM_DELQDISC => link::qdisc(p)?.map(Object::Qdisc),
        RTM_NEWROUTE | RTM_DELROUTE => route::route(p)?.map(Object::Route),
        RTM_NEWRULE | RTM_DELRULE => route::rule(p)?.map(Object::Rule),
        RTM_NEWNEXTHOP | RTM_DELNEXTHOP => nexthop::next_hop(p)?.map(Object::NextHop),
        RTM_NEWNETCONF => Some(Object::Setting),
        _ => None,
    };
    let removed = matches!(
        frame.kind,
        RTM_DELLINK | RTM_DELADDR | RTM_DELNEIGH | RTM_DELQDISC | RTM_DELROUTE | RTM_DELRULE | RTM_DELNEXTHOP
    );
    let operation = match (removed, source) {
        (true, _) => Operation::Removed,
        (false, Source::Dump) => Operation::Dumped,
        (false, Source::Event) => Operation::Added {
            replace: frame.flags & NLM_F_REPLACE != 0,
            append: frame.flags & NLM_F_APPEND != 0,
        },
    };
    Ok(object.map(|object| Message { operation, object }))
}

/// The octet at `offset` of a fixed header.
fn octet(payload: &[u8], offset: usize, what: &'static str) -> Result<u8, Malformed> {
    payload.get(offset).copied().ok_or(Malformed(what))
}

/// The word at `offset` of a fixed header or of an attribute.
fn word(bytes: &[u8], offset: usize, what: &'static str) -> Result<u32, Malformed> {
    crate::wire::u32_at(bytes, offset).ok_or(Malformed(what))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::model::{NextHopKind, Path, PuntReason, Target};
    use crate::prefix::Prefix;
    use crate::wire::{Attribute, Frames, Request};
    use proptest::prelude::*;

    const RT_HEADER: [u8; 12] = [AF_INET, 16, 0, 0, 254, 3, 0, RTN_UNICAST, 0, 0, 0, 0];

    fn read(request: Request) -> Result<Option<Message>, Malformed> {
        let bytes = request.finish(1);
        let frame = Frames(&bytes).next().unwrap().unwrap();
        decode(&frame, Source::Event)
    }

    fn route(request: Request) -> Route {
        match read(request).unwrap().unwrap().object {
            Object::Route(route) => route,
            other => panic!("{other:?}"),
        }
    }

    fn base() -> Request {
        Request::new(RTM_NEWROUTE, 0, &RT_HEADER).attribute(RTA_DST, &[10, 9, 0, 0])
    }

    #[test]
    fn a_route_has_all_its_parts() {
        let mtu = Attribute::default().with(RTAX_MTU, &1400u32.to_ne_bytes());
        let message = base()
            .attribute(RTA_TABLE, &1000u32.to_ne_bytes())
            .attribute(RTA_PRIORITY, &20u32.to_ne_bytes())
            .attribute(RTA_GATEWAY, &[10, 0, 0, 2])
            .attribute(RTA_OIF, &7u32.to_ne_bytes())
            .nested(RTA_METRICS, mtu);
        let route = route(message);
        assert_eq!(route.prefix, Prefix::new("10.9.0.0".parse().unwrap(), 16));
        assert_eq!((route.table, route.metric, route.mtu_bytes), (1000, 20, Some(1400)));
        let gateway: Option<IpAddr> = "10.0.0.2".parse().ok();
        assert_eq!(route.target, Target::Paths(vec![Path { ifindex: 7, gateway, weight: 1 }]));
    }

    #[test]
    fn what_is_not_known_keeps_its_prefix() {
        let unknown = base().attribute(RTA_OIF, &7u32.to_ne_bytes()).attribute(99, &[1, 2, 3]);
        assert_eq!(route(unknown).target, Target::Punt(PuntReason::UnknownAttribute));
        let tunnel = base().attribute(RTA_OIF, &7u32.to_ne_bytes()).attribute(RTA_ENCAP, &[255; 5]);
        assert_eq!(route(tunnel).target, Target::Punt(PuntReason::Encapsulation));
        let object = base().attribute(RTA_NH_ID, &5u32.to_ne_bytes()).attribute(RTA_OIF, &7u32.to_ne_bytes());
        assert_eq!(route(object).target, Target::Object(5));
    }

    #[test]
    fn a_multipath_leg_may_be_a_tunnel() {
        let mut legs = Vec::new();
        for ifindex in [3u8, 4] {
            legs.extend([8, 0, 0, ifindex - 1, ifindex, 0, 0, 0]);
        }
        let paths = |first, second| {
            let path = |(ifindex, weight)| Path { ifindex, gateway: None, weight };
            Target::Paths(vec![path(first), path(second)])
        };
        assert_eq!(route(base().attribute(RTA_MULTIPATH, &legs)).target, paths((3, 3), (4, 4)));
        legs.extend([14, 0, 0, 0, 5, 0, 0, 0, 6, 0, RTA_ENCAP as u8, 0, 1, 1]);
        assert_eq!(
            route(base().attribute(RTA_MULTIPATH, &legs)).target,
            Target::Punt(PuntReason::Encapsulation)
        );
        legs.extend([0, 0, 1]);
        assert!(read(base().attribute(RTA_MULTIPATH, &legs)).is_err());
    }

    #[test]
    fn lengths_and_families_must_agree() {
        assert!(read(Request::new(RTM_NEWROUTE, 0, &RT_HEADER)).is_err(), "a /16 without a destination");
        assert!(read(Request::new(RTM_NEWROUTE, 0, &RT_HEADER).attribute(RTA_DST, &[0; 16])).is_err());
        let mut other_family = RT_HEADER;
        other_family[0] = 28;
        assert_eq!(read(Request::new(RTM_NEWROUTE, 0, &other_family)), Ok(None));
        let bridge = [7, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            read(Request::new(RTM_DELLINK, 0, &bridge)),
            Ok(None),
            "leaving a bridge is no end of a link"
        );
    }

    #[test]
    fn wide_weights_count_only_where_the_kernel_says_so() {
        let members = [1, 0, 0, 0, 9, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        let group = || {
            let id = 10u32.to_ne_bytes();
            Request::new(RTM_NEWNEXTHOP, 0, &[0; 8]).attribute(NHA_ID, &id).attribute(NHA_GROUP, &members)
        };
        let kind = |request| match read(request).unwrap().unwrap().object {
            Object::NextHop(next_hop) => next_hop.kind,
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(group()), NextHopKind::Group(vec![(1, 10), (2, 1)]));
        let wide = group().attribute(NHA_OP_FLAGS, &NHA_OP_FLAG_RESP_GRP_RESVD_0.to_ne_bytes());
        assert_eq!(kind(wide), NextHopKind::Group(vec![(1, 266), (2, 1)]));
    }

    /// Messages of every type with attributes of the right kinds and any contents.
    fn messages() -> impl Strategy<Value = Vec<(u16, u16, Vec<u8>, bool)>> {
        let kind =
            proptest::sample::select(vec![16u16, 17, 20, 21, 24, 25, 28, 29, 32, 33, 36, 37, 80, 104, 105]);
        let len = prop_oneof![
            Just(0usize),
            Just(1),
            Just(2),
            Just(4),
            Just(4),
            Just(6),
            Just(8),
            Just(16),
            0usize..40
        ];
        let value = len
            .prop_flat_map(|len| proptest::collection::vec(prop_oneof![Just(0u8), 0u8..8, any::<u8>()], len));
        let attributes = proptest::collection::vec((0u16..60, value), 0..8);
        let header =
            proptest::collection::vec(prop_oneof![Just(0u8), Just(2u8), Just(10u8), any::<u8>()], 0..24);
        let message = (kind, any::<u16>(), header, attributes, any::<bool>()).prop_map(
            |(kind, flags, header, attributes, dumped)| {
                let request = Request::new(kind, flags, &header);
                let request =
                    attributes.iter().fold(request, |request, (kind, value)| request.attribute(*kind, value));
                (kind, flags, request.finish(0), dumped)
            },
        );
        proptest::collection::vec(message, 0..20)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn hostile_messages_do_no_harm(messages in messages(), cut in 0usize..64) {
            let shorter = if cut < 8 { cut } else { 0 };
            crate::fuzzing::mirror(messages.iter().map(|(_, _, bytes, dumped)| {
                (&bytes[..bytes.len().saturating_sub(shorter)], *dumped)
            }));
        }
    }
}
