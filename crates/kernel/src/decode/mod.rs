//! Bytes from the kernel to [`Message`]s.
//!
//! A message that is of no interest (another address family, a cached clone of a route) is `None`; one that does not parse
//! is an error, which the reader counts and answers with a new dump. What parses but is not understood is kept, with
//! [`PuntReason`](crate::PuntReason) as its target, because a route that is ignored would let a shorter one take its packets.

mod link;
mod nexthop;
mod route;
mod rule;
mod setting;

use crate::model::{Address, Family, Link, Neighbour, NextHop, Qdisc, Route, Rule, Setting};
use crate::uapi::*;
use crate::wire::{Frame, Malformed};
pub(crate) use route::exception;

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
    /// Settings of an interface, or of all.
    Setting(Setting),
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
        RTM_NEWRULE | RTM_DELRULE => rule::rule(p)?.map(Object::Rule),
        RTM_NEWNEXTHOP | RTM_DELNEXTHOP => nexthop::next_hop(p)?.map(Object::NextHop),
        RTM_NEWNETCONF => setting::setting(p)?.map(Object::Setting),
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

fn family(octet: u8) -> Option<Family> {
    match octet {
        AF_INET => Some(Family::V4),
        AF_INET6 => Some(Family::V6),
        _ => None,
    }
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
    use crate::Mirror;
    use crate::model::{NextHopKind, Path, ReversePath, SettingScope, Target};
    use crate::prefix::Prefix;
    use crate::reason::PuntReason;
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

    /// Why the route is a punt, and the devices that it would use.
    fn punt(request: Request) -> (PuntReason, Vec<u32>) {
        match route(request).target {
            Target::Punt { reason, reverse_path: ReversePath::Interfaces(interfaces) } => {
                (reason, interfaces)
            }
            Target::Punt { reason, .. } => (reason, vec![]),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_that_were_recorded_are_taken_in_and_counted() {
        let route = |net: u8| {
            let request = Request::new(RTM_NEWROUTE, 0, &RT_HEADER).attribute(RTA_DST, &[10, net, 0, 0]);
            request.attribute(RTA_OIF, &7u32.to_ne_bytes()).finish(1)
        };
        // Of a kind that the mirror has no use for.
        let other = Request::new(2, 0, &[0; 20]).finish(1);
        let recorded = [route(1), other, route(2)].concat();
        let mut mirror = Mirror::new([7]);
        assert_eq!((mirror.take_in(&recorded).ok(), mirror.route_count()), (Some(3), 2));
        assert_eq!(mirror.take_in(&[]).ok(), Some(0));
        let cut = [route(3), route(4)[..20].to_vec()].concat();
        assert!(mirror.take_in(&cut).is_err());
        assert_eq!(mirror.route_count(), 3, "what was whole is taken in");
    }

    #[test]
    fn what_is_not_known_keeps_its_prefix() {
        let unknown = base().attribute(RTA_OIF, &7u32.to_ne_bytes()).attribute(99, &[1, 2, 3]);
        assert_eq!(punt(unknown), (PuntReason::UnknownAttribute, vec![7]));
        let tunnel = base().attribute(RTA_OIF, &7u32.to_ne_bytes()).attribute(RTA_ENCAP, &[255; 5]);
        assert_eq!(punt(tunnel), (PuntReason::Encapsulation, vec![7]));
        let object = base().attribute(RTA_NH_ID, &5u32.to_ne_bytes()).attribute(RTA_OIF, &7u32.to_ne_bytes());
        assert_eq!(route(object).target, Target::Object(5));
        let mut header = RT_HEADER;
        header[7] = RTN_BLACKHOLE;
        let blackhole = || Request::new(RTM_NEWROUTE, 0, &header).attribute(RTA_DST, &[10, 9, 0, 0]);
        let not_unicast =
            Target::Punt { reason: PuntReason::Blackhole, reverse_path: ReversePath::NotUnicast };
        assert_eq!(route(blackhole()).target, not_unicast);
        let object = blackhole().attribute(RTA_NH_ID, &5u32.to_ne_bytes());
        assert_eq!(route(object).target, Target::Object(5), "the object may become something else");
    }

    #[test]
    fn only_metrics_that_bear_on_forwarding_make_a_punt() {
        let with = |kind, value: u32| {
            let metrics = Attribute::default().with(kind, &value.to_ne_bytes());
            base().attribute(RTA_OIF, &7u32.to_ne_bytes()).nested(RTA_METRICS, metrics)
        };
        for harmless in [with(1, 4), with(10, 9), with(15, 1), with(RTAX_FEATURES, RTAX_FEATURE_ECN)] {
            assert!(matches!(route(harmless).target, Target::Paths(_)));
        }
        // The fourth feature adds a header to every packet; beyond the last metric all is new.
        for odd in [with(RTAX_FEATURES, 8), with(RTAX_FEATURES, 1 << 7), with(18, 1)] {
            assert_eq!(punt(odd), (PuntReason::UnknownAttribute, vec![7]));
        }
        let accounted = base().attribute(RTA_OIF, &7u32.to_ne_bytes()).attribute(RTA_FLOW, &[3, 0, 0, 0]);
        assert!(matches!(route(accounted).target, Target::Paths(_)));
    }

    #[test]
    fn a_route_with_a_lifetime_is_the_kernels() {
        let mut info = [0u8; 32];
        let with =
            |info: &[u8]| base().attribute(RTA_OIF, &7u32.to_ne_bytes()).attribute(RTA_CACHEINFO, info);
        assert!(matches!(route(with(&info)).target, Target::Paths(_)));
        info[8] = 1;
        assert_eq!(punt(with(&info)), (PuntReason::Lifetime, vec![]), "it may be over");
    }

    #[test]
    fn routes_that_the_kernel_tells_apart_have_another_identity() {
        let single = || base().attribute(RTA_OIF, &7u32.to_ne_bytes());
        let metric = |value: u32| Attribute::default().with(10, &value.to_ne_bytes());
        let mut onlink = RT_HEADER;
        onlink[8] = RTNH_F_ONLINK as u8;
        let onlink = Request::new(RTM_NEWROUTE, 0, &onlink)
            .attribute(RTA_DST, &[10, 9, 0, 0])
            .attribute(RTA_OIF, &[7, 0, 0, 0]);
        let mut narrow = RT_HEADER;
        narrow[6] = 253;
        let narrow = Request::new(RTM_NEWROUTE, 0, &narrow).attribute(RTA_DST, &[10, 9, 0, 0]);
        let all = [
            single(),
            single().nested(RTA_METRICS, metric(1)),
            single().nested(RTA_METRICS, metric(2)),
            single().attribute(RTA_FLOW, &[1, 0, 0, 0]),
            single().attribute(RTA_ENCAP, &[1]),
            onlink,
            narrow,
        ];
        let identities: std::collections::BTreeSet<u64> =
            all.into_iter().map(|request| route(request).identity).collect();
        assert_eq!(identities.len(), 7);
        // What an object has is not the route's.
        let object = |request: Request| route(request.attribute(RTA_NH_ID, &[5, 0, 0, 0])).identity;
        assert_eq!(object(single()), object(single().attribute(RTA_ENCAP, &[1])));
    }

    #[test]
    fn settings_are_of_an_interface_or_of_all() {
        let message = |ifindex: i32, set: u32| {
            Request::new(RTM_NEWNETCONF, 0, &[AF_INET6])
                .attribute(NETCONFA_IFINDEX, &ifindex.to_ne_bytes())
                .attribute(NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN, &set.to_ne_bytes())
        };
        let setting = |request| match read(request).unwrap().unwrap().object {
            Object::Setting(setting) => setting,
            other => panic!("{other:?}"),
        };
        let one = setting(message(7, 1));
        assert_eq!((one.family, one.scope), (Family::V6, SettingScope::Interface(7)));
        assert_eq!(one.ignores_linkdown, Some(true));
        let all = setting(message(-1, 0));
        assert_eq!((all.scope, all.ignores_linkdown), (SettingScope::All, Some(false)));
        let other =
            Request::new(RTM_NEWNETCONF, 0, &[AF_INET]).attribute(NETCONFA_IFINDEX, &[254, 255, 255, 255]);
        assert_eq!(
            (setting(other).scope, setting(message(7, 1)).scope),
            (SettingScope::Default, SettingScope::Interface(7))
        );
        assert!(read(Request::new(RTM_NEWNETCONF, 0, &[AF_INET])).is_err());
    }

    #[test]
    fn a_multipath_leg_may_be_a_tunnel() {
        let mut legs = Vec::new();
        for ifindex in [4u8, 3] {
            legs.extend([8, 0, ifindex - 3, ifindex - 1, ifindex, 0, 0, 0]);
        }
        let path = |(ifindex, weight)| Path { ifindex, gateway: None, weight };
        let two = route(base().attribute(RTA_MULTIPATH, &legs));
        assert_eq!(two.target, Target::Paths(vec![path((4, 4)), path((3, 3))]), "in the kernel's order");
        assert_eq!(two.dead, [4]);
        legs.extend([14, 0, 0, 0, 5, 0, 0, 0, 6, 0, RTA_ENCAP as u8, 0, 1, 1]);
        assert_eq!(punt(base().attribute(RTA_MULTIPATH, &legs)), (PuntReason::Encapsulation, vec![3, 4, 5]));
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
    fn a_link_without_header_is_bare_unless_its_kind_may_ask_the_route() {
        let link = |hardware: u16, kind: Option<&str>| {
            let mut header = [0; 16];
            header[2..4].copy_from_slice(&hardware.to_ne_bytes());
            header[4] = 7;
            let request = Request::new(RTM_NEWLINK, 0, &header).attribute(IFLA_MTU, &1400u32.to_ne_bytes());
            let info = |kind: &str| Attribute::default().with(IFLA_INFO_KIND, kind.as_bytes());
            let request = match kind {
                Some(kind) => request.nested(IFLA_LINKINFO, info(kind)),
                None => request,
            };
            match read(request).unwrap().unwrap().object {
                Object::Link(link) => link.bare,
                other => panic!("{other:?}"),
            }
        };
        for kind in [None, Some("tun"), Some("wireguard")] {
            assert!(link(ARPHRD_NONE, kind), "{kind:?}");
        }
        assert!(link(ARPHRD_PPP, Some("ppp")) && link(ARPHRD_RAWIP, Some("rmnet")));
        for kind in ["ovpn", "gre", "xfrm", "bareudp", "of tomorrow"] {
            assert!(!link(ARPHRD_NONE, Some(kind)), "{kind}");
        }
        assert!(!link(ARPHRD_ETHER, Some("tun")), "a TAP");
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
        let plain = |members| NextHopKind::Group { members, resilient: false };
        assert_eq!(kind(group()), plain(vec![(1, 10), (2, 1)]));
        let wide = group().attribute(NHA_OP_FLAGS, &NHA_OP_FLAG_RESP_GRP_RESVD_0.to_ne_bytes());
        assert_eq!(kind(wide), plain(vec![(1, 266), (2, 1)]));
        let resilient = NextHopKind::Group { members: vec![(1, 10), (2, 1)], resilient: true };
        assert_eq!(kind(group().attribute(NHA_GROUP_TYPE, &1u16.to_ne_bytes())), resilient);
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
