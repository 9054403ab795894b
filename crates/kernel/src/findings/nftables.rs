//! Findings about nftables: the chains that forwarded packets go through, and the flow tables that take them out of the
//! routes' way.

use std::io;

use super::inquiry::{big_endian, netfilter_dump};
use super::{Check, Finding};
use crate::socket::Socket;
use crate::uapi::*;
use crate::wire::{Attributes, Frame, Malformed, text};

/// Octets of `struct nfgenmsg`, of which the first is the family.
const HEADER_LEN: usize = 4;

/// The name of a chain: family, table and chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChainName {
    family: u8,
    table: String,
    chain: String,
}

/// The devices of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Device {
    Name(String),
    /// All whose names begin so.
    Prefix(String),
}

impl Device {
    fn is(&self, port: &str) -> bool {
        match self {
            Device::Name(name) => name == port,
            Device::Prefix(prefix) => port.starts_with(prefix),
        }
    }
}

/// Where the kernel calls a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hook {
    number: u32,
    /// None for the hooks that are not of devices.
    devices: Option<Vec<Device>>,
}

/// A chain that the kernel calls for packets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chain {
    name: ChainName,
    hook: Hook,
    drops: bool,
    /// It is for the translation of addresses.
    translates: bool,
    /// Rules in it: it is not jumped to.
    rules: u32,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub findings: Vec<Finding>,
    /// The chains in which a rule would be another finding, and those that translate.
    pub chains: Vec<ChainName>,
    /// There is a chain for the translation of addresses, if only an empty one: so long the kernel translates those of connections
    /// that rules were for.
    pub translates: bool,
}

/// Asks for all chains and flow tables.
pub(super) fn find(socket: &mut Socket, ports: &[String]) -> io::Result<Found> {
    let Found { mut findings, chains: mut names, mut translates } = Found::default();
    for chain in dump(socket, NFT_MSG_GETCHAIN, chain)? {
        translates |= chain.translates;
        let check = concerns(&chain, ports);
        if let Some(check) = check
            && (chain.rules > 0 || chain.drops)
        {
            findings.push(finding(check, &chain));
        }
        if check.is_some() || chain.translates {
            names.push(chain.name);
        }
    }
    for (name, devices) in dump(socket, NFT_MSG_GETFLOWTABLE, flowtable)? {
        if ports.iter().any(|port| devices.iter().any(|device| device.is(port))) {
            let place = format!("{} {} {}", family(name.family), name.table, name.chain);
            findings.push(Check::NftFlowtable.refuse(
                format!("nft {place}"),
                "this nftables flow table forwards packets by flows of its own",
                format!("nft delete flowtable {place}"),
            ));
        }
    }
    Ok(Found { findings, chains: names, translates })
}

fn dump<T>(
    socket: &mut Socket,
    message: u16,
    parse: impl Fn(&Frame<'_>) -> Result<Option<T>, Malformed>,
) -> io::Result<Vec<T>> {
    let kind = NFNL_SUBSYS_NFTABLES << 8 | message;
    none_if_unknown(netfilter_dump(socket, kind, AF_UNSPEC, |request| request, parse))
}

/// A kernel with netfilter but without nf_tables has nothing to show.
fn none_if_unknown<T>(answer: io::Result<Vec<T>>) -> io::Result<Vec<T>> {
    match answer {
        Err(error) if matches!(error.raw_os_error(), Some(EINVAL | EOPNOTSUPP)) => Ok(Vec::new()),
        end => end,
    }
}

/// Whether a message may change what [`find`] found: sets and their elements do not, nor do rules in other chains, since
/// a chain counts by its own rules.
pub(crate) fn matters(frame: &Frame<'_>, chains: &[ChainName], ports: &[String]) -> bool {
    if frame.kind >> 8 != NFNL_SUBSYS_NFTABLES {
        return false;
    }
    let known = |name: Option<ChainName>| name.is_none_or(|name| chains.contains(&name));
    match frame.kind & 0xff {
        NFT_MSG_NEWTABLE | NFT_MSG_DELTABLE | NFT_MSG_NEWFLOWTABLE | NFT_MSG_DELFLOWTABLE => true,
        NFT_MSG_NEWCHAIN => chain(frame)
            .map_or(true, |new| new.is_some_and(|new| new.translates || concerns(&new, ports).is_some())),
        NFT_MSG_DELCHAIN => known(name(frame, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME).ok()),
        NFT_MSG_NEWRULE | NFT_MSG_DELRULE => known(name(frame, NFTA_RULE_TABLE, NFTA_RULE_CHAIN).ok()),
        _ => false,
    }
}

/// Where forwarded packets go through the chain, if they do.
fn concerns(chain: &Chain, ports: &[String]) -> Option<Check> {
    let check = match (chain.name.family, chain.hook.number) {
        (NFPROTO_INET | AF_INET | AF_INET6, NF_INET_PRE_ROUTING) => return Some(Check::NftPrerouting),
        (NFPROTO_INET | AF_INET | AF_INET6, NF_INET_FORWARD) => return Some(Check::NftForward),
        (NFPROTO_INET | AF_INET | AF_INET6, NF_INET_POST_ROUTING) => return Some(Check::NftPostrouting),
        (NFPROTO_INET, NF_INET_INGRESS) | (NFPROTO_NETDEV, NF_NETDEV_INGRESS) => Check::NftIngress,
        (NFPROTO_NETDEV, NF_NETDEV_EGRESS) => Check::NftEgress,
        _ => return None,
    };
    let held = |devices: &Vec<Device>| devices.iter().any(|device| ports.iter().any(|port| device.is(port)));
    chain.hook.devices.as_ref().is_none_or(held).then_some(check)
}

fn family(number: u8) -> &'static str {
    match number {
        NFPROTO_INET => "inet",
        AF_INET => "ip",
        AF_INET6 => "ip6",
        _ => "netdev",
    }
}

fn finding(check: Check, chain: &Chain) -> Finding {
    let place = format!("{} {} {}", family(chain.name.family), chain.name.table, chain.name.chain);
    let what = match (chain.rules, chain.drops) {
        (0, _) => "this nftables chain, which drops them all".to_owned(),
        (rules, false) => format!("this nftables chain and its rules ({rules})"),
        (rules, true) => format!("this nftables chain, its rules ({rules}) and its policy, drop"),
    };
    let mut mend = format!("nft flush chain {place}");
    if chain.translates {
        // While it is there, connections that began before are translated on.
        mend += &format!("; nft delete chain {place}");
    }
    if chain.drops {
        mend += &format!("; nft 'chain {place} {{ policy accept; }}'");
    }
    check.refuse(format!("nft {place}"), format!("forwarded packets would pass by {what}"), mend)
}

/// The chain; none without a hook, for then it is called by other chains only.
fn chain(frame: &Frame<'_>) -> Result<Option<Chain>, Malformed> {
    let (mut drops, mut translates, mut rules, mut place) = (false, false, 0, None);
    for attribute in Attributes::after(frame.payload, HEADER_LEN) {
        match attribute? {
            (NFTA_CHAIN_POLICY, value) => drops = big_endian(value) == Some(NF_DROP),
            (NFTA_CHAIN_TYPE, value) => translates = text(value) == "nat",
            (NFTA_CHAIN_USE, value) => rules = big_endian(value).ok_or(Malformed("chain"))?,
            (NFTA_CHAIN_HOOK, value) => place = hook(value)?,
            _ => {}
        }
    }
    let name = name(frame, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME)?;
    Ok(place.map(|hook| Chain { name, hook, drops, translates, rules }))
}

fn hook(value: &[u8]) -> Result<Option<Hook>, Malformed> {
    let (mut number, mut devices) = (None, None::<Vec<Device>>);
    for attribute in Attributes(value) {
        match attribute? {
            (NFTA_HOOK_HOOKNUM, value) => number = big_endian(value),
            (NFTA_HOOK_DEV, value) => devices.get_or_insert_default().push(device(value)),
            (NFTA_HOOK_DEVS, value) => devices.get_or_insert_default().extend(device_list(value)?),
            _ => {}
        }
    }
    Ok(number.map(|number| Hook { number, devices }))
}

fn device_list(value: &[u8]) -> Result<Vec<Device>, Malformed> {
    let mut devices = Vec::new();
    for attribute in Attributes(value) {
        match attribute? {
            (NFTA_DEVICE_NAME, value) => devices.push(device(value)),
            (NFTA_DEVICE_PREFIX, value) => devices.push(Device::Prefix(text(value))),
            _ => {}
        }
    }
    Ok(devices)
}

/// Some kernels write a prefix as a name without the zero octet at its end.
fn device(value: &[u8]) -> Device {
    if value.contains(&0) { Device::Name(text(value)) } else { Device::Prefix(text(value)) }
}

fn flowtable(frame: &Frame<'_>) -> Result<Option<(ChainName, Vec<Device>)>, Malformed> {
    let mut devices = Vec::new();
    for attribute in Attributes::after(frame.payload, HEADER_LEN) {
        if let (NFTA_FLOWTABLE_HOOK, value) = attribute? {
            for attribute in Attributes(value) {
                if let (NFTA_FLOWTABLE_HOOK_DEVS, value) = attribute? {
                    devices.extend(device_list(value)?);
                }
            }
        }
    }
    Ok(Some((name(frame, NFTA_FLOWTABLE_TABLE, NFTA_FLOWTABLE_NAME)?, devices)))
}

/// The name of a chain or flow table, or of that which a rule is in.
fn name(frame: &Frame<'_>, table_attribute: u16, chain_attribute: u16) -> Result<ChainName, Malformed> {
    const WHAT: Malformed = Malformed("packet filter message");
    let (mut table, mut chain) = (None, None);
    for attribute in Attributes::after(frame.payload, HEADER_LEN) {
        let (kind, value) = attribute?;
        if kind == table_attribute {
            table = Some(text(value));
        } else if kind == chain_attribute {
            chain = Some(text(value));
        }
    }
    let family = *frame.payload.first().ok_or(WHAT)?;
    Ok(ChainName { family, table: table.ok_or(WHAT)?, chain: chain.ok_or(WHAT)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Frames, Request};
    use proptest::prelude::*;

    fn with_frame<T>(request: Request, f: impl FnOnce(&Frame<'_>) -> T) -> T {
        let bytes = request.finish(1);
        let frame = Frames(&bytes).next().unwrap().unwrap();
        f(&frame)
    }

    fn message(kind: u16, family: u8) -> Request {
        Request::new(NFNL_SUBSYS_NFTABLES << 8 | kind, 0, &[family, 0, 0, 0])
            .attribute(NFTA_CHAIN_TABLE, b"t\0")
            .attribute(NFTA_CHAIN_NAME, b"c\0")
    }

    /// The bytes of attributes, end to end.
    fn list(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let empty = Request::new(0, 0, &[]);
        let written = attributes.iter().fold(empty, |list, (kind, value)| list.attribute(*kind, value));
        with_frame(written, |frame| frame.payload.to_vec())
    }

    fn hooked(hook: u32, devices: &[(u16, &[u8])]) -> Request {
        let (hook, devices) = (hook.to_be_bytes(), list(devices));
        let mut inside: Vec<(u16, &[u8])> = vec![(NFTA_HOOK_HOOKNUM, &hook)];
        if !devices.is_empty() {
            inside.push((NFTA_HOOK_DEVS, &devices));
        }
        message(NFT_MSG_NEWCHAIN, NFPROTO_NETDEV).attribute(NFTA_CHAIN_HOOK, &list(&inside))
    }

    fn found(request: Request, ports: &[&str]) -> Option<Check> {
        let ports: Vec<String> = ports.iter().map(|&port| port.to_owned()).collect();
        with_frame(request, |frame| concerns(&chain(frame).unwrap().unwrap(), &ports))
    }

    #[test]
    fn devices_may_be_several_and_may_be_prefixes() {
        let two = || hooked(0, &[(NFTA_DEVICE_NAME, b"a0\0"), (NFTA_DEVICE_NAME, b"b0\0")]);
        assert_eq!(found(two(), &["b0"]), Some(Check::NftIngress));
        assert_eq!(found(two(), &["b", "b00"]), None);
        assert_eq!(found(hooked(1, &[(NFTA_DEVICE_NAME, b"b")]), &["b00"]), Some(Check::NftEgress));
        assert_eq!(found(hooked(1, &[(NFTA_DEVICE_PREFIX, b"b")]), &["b00"]), Some(Check::NftEgress));
        assert_eq!(found(hooked(1, &[(NFTA_DEVICE_PREFIX, b"b")]), &["a0"]), None);
        assert_eq!(found(hooked(0, &[]), &["a0"]), Some(Check::NftIngress), "of any device, for all we know");
    }

    #[test]
    fn a_chain_is_told_by_where_packets_meet_it_and_what_would_stop_them() {
        let told = |family: u8, hook: u32, rules: u32, policy: u32| {
            let hook = list(&[(NFTA_HOOK_HOOKNUM, &hook.to_be_bytes()), (NFTA_HOOK_DEV, b"a0\0")]);
            let request = message(NFT_MSG_NEWCHAIN, family)
                .attribute(NFTA_CHAIN_HOOK, &hook)
                .attribute(NFTA_CHAIN_USE, &rules.to_be_bytes())
                .attribute(NFTA_CHAIN_POLICY, &policy.to_be_bytes());
            with_frame(request, |frame| {
                let chain = chain(frame).unwrap().unwrap();
                let check = concerns(&chain, &["a0".to_owned()])?;
                let of_a_device = matches!(check, Check::NftIngress | Check::NftEgress);
                assert_eq!(concerns(&chain, &["b0".to_owned()]).is_none(), of_a_device);
                Some(finding(check, &chain))
            })
        };
        const ACCEPT: u32 = 1;
        for (number, family) in
            [(NFPROTO_INET, "inet"), (AF_INET, "ip"), (AF_INET6, "ip6"), (NFPROTO_NETDEV, "netdev")]
        {
            let found = |hook| told(number, hook, 2, ACCEPT).map(|finding| (finding.check, finding.place));
            let place = format!("nft {family} t c");
            let mut hooks = match number {
                NFPROTO_NETDEV => {
                    vec![(NF_NETDEV_INGRESS, Check::NftIngress), (NF_NETDEV_EGRESS, Check::NftEgress)]
                }
                _ => vec![
                    (NF_INET_PRE_ROUTING, Check::NftPrerouting),
                    (NF_INET_FORWARD, Check::NftForward),
                    (NF_INET_POST_ROUTING, Check::NftPostrouting),
                ],
            };
            if number == NFPROTO_INET {
                hooks.push((NF_INET_INGRESS, Check::NftIngress));
            }
            for hook in 0..8 {
                let check = hooks.iter().find(|(number, _)| *number == hook).map(|(_, check)| *check);
                assert_eq!(found(hook), check.map(|check| (check, place.clone())), "{family} hook {hook}");
            }
        }
        let what = |rules, policy| {
            told(AF_INET, NF_INET_FORWARD, rules, policy).map(|found| (found.what, found.mend))
        };
        let by = |what: &str, mend: &str| {
            Some((format!("forwarded packets would pass by {what}"), mend.to_owned()))
        };
        assert_eq!(what(3, ACCEPT), by("this nftables chain and its rules (3)", "nft flush chain ip t c"));
        let opened = "nft flush chain ip t c; nft 'chain ip t c { policy accept; }'";
        let nat = message(NFT_MSG_NEWCHAIN, AF_INET)
            .attribute(NFTA_CHAIN_HOOK, &list(&[(NFTA_HOOK_HOOKNUM, &NF_INET_POST_ROUTING.to_be_bytes())]))
            .attribute(NFTA_CHAIN_TYPE, b"nat\0");
        let mend =
            with_frame(nat, |frame| finding(Check::NftPostrouting, &chain(frame).unwrap().unwrap()).mend);
        assert_eq!(mend, "nft flush chain ip t c; nft delete chain ip t c");
        assert_eq!(what(0, NF_DROP), by("this nftables chain, which drops them all", opened));
        assert_eq!(what(3, NF_DROP), by("this nftables chain, its rules (3) and its policy, drop", opened));
    }

    #[test]
    fn flow_tables_name_their_devices() {
        let devices = list(&[(NFTA_DEVICE_NAME, b"a0\0"), (NFTA_DEVICE_NAME, b"b0\0")]);
        let hook = list(&[(NFTA_HOOK_HOOKNUM, &[0; 4]), (NFTA_FLOWTABLE_HOOK_DEVS, &devices)]);
        let request = Request::new(0, 0, &[NFPROTO_INET, 0, 0, 0])
            .attribute(NFTA_FLOWTABLE_TABLE, b"t\0")
            .attribute(NFTA_FLOWTABLE_NAME, b"f\0")
            .attribute(NFTA_FLOWTABLE_HOOK, &hook);
        let (name, devices) = with_frame(request, |frame| flowtable(frame).unwrap().unwrap());
        assert_eq!((name.table.as_str(), name.chain.as_str()), ("t", "f"));
        assert!(devices.iter().any(|device| device.is("b0")) && devices.len() == 2);
    }

    #[test]
    fn sets_and_rules_of_other_chains_are_no_reason_to_look() {
        let known = ChainName { family: NFPROTO_INET, table: "t".into(), chain: "c".into() };
        let ports = ["a0".to_owned()];
        let matters =
            |request: Request, chains: &[ChainName]| with_frame(request, |f| matters(f, chains, &ports));
        let known = std::slice::from_ref(&known);
        for kind in [NFT_MSG_NEWTABLE, NFT_MSG_DELTABLE, NFT_MSG_NEWFLOWTABLE, NFT_MSG_DELFLOWTABLE] {
            assert!(matters(message(kind, NFPROTO_INET), &[]));
        }
        for kind in 9..22 {
            assert!(!matters(message(kind, NFPROTO_INET), known), "message {kind}");
        }
        // Connections that are tracked have the same numbers.
        let tracked = Request::new(1 << 8 | NFT_MSG_NEWTABLE, 0, &[NFPROTO_INET, 0, 0, 0]);
        assert!(!matters(tracked, known), "another subsystem");
        assert!(matters(hooked(0, &[(NFTA_DEVICE_NAME, b"a0\0")]), &[]), "a new chain with a hook");
        assert!(!matters(hooked(0, &[(NFTA_DEVICE_NAME, b"b0\0")]), &[]), "at another device");
        assert!(!matters(message(NFT_MSG_NEWCHAIN, NFPROTO_INET), &[]), "one without");
        let nat = |kind: &[u8]| {
            let hook = list(&[(NFTA_HOOK_HOOKNUM, &3u32.to_be_bytes())]);
            message(NFT_MSG_NEWCHAIN, AF_INET)
                .attribute(NFTA_CHAIN_HOOK, &hook)
                .attribute(NFTA_CHAIN_TYPE, kind)
        };
        assert!(
            matters(nat(b"nat\0"), &[]) && !matters(nat(b"filter\0"), &[]),
            "one of the machine's own packets"
        );
        assert!(!matters(message(NFT_MSG_DELCHAIN, AF_INET), known), "of another family");
        assert!(matters(message(NFT_MSG_DELCHAIN, NFPROTO_INET), known));
        // A rule has its chain's name in another attribute.
        let rule = |kind| {
            Request::new(NFNL_SUBSYS_NFTABLES << 8 | kind, 0, &[NFPROTO_INET, 0, 0, 0])
                .attribute(NFTA_RULE_TABLE, b"t\0")
                .attribute(NFTA_RULE_CHAIN, b"c\0")
        };
        assert!(matters(rule(NFT_MSG_NEWRULE), known) && matters(rule(NFT_MSG_DELRULE), known));
        assert!(!matters(rule(NFT_MSG_NEWRULE), &[]));
    }

    #[test]
    fn a_kernel_without_nftables_has_none_and_other_errors_are_told() {
        let answer = |error| none_if_unknown::<u8>(Err(io::Error::from_raw_os_error(error))).ok();
        const EPERM: i32 = 1;
        assert_eq!([EINVAL, EOPNOTSUPP, EPERM].map(answer), [Some(vec![]), Some(vec![]), None]);
        assert_eq!(none_if_unknown(Ok(vec![7])).unwrap(), [7]);
    }

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(kind in 0u16..30, bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let frame =
                Frame { kind: NFNL_SUBSYS_NFTABLES << 8 | kind, flags: 0, sequence: 0, payload: &bytes };
            let _ = (chain(&frame), flowtable(&frame), matters(&frame, &[], &[]));
        }
    }
}
