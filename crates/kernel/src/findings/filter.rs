//! Findings about the packet filter and IPsec policies, which are asked for when they are wanted.

use std::collections::HashMap;
use std::io;

use rustix::net::netlink;

use super::{Check, Finding, Severity};
use crate::mirror::Mirror;
use crate::socket::Socket;
use crate::uapi::*;
use crate::wire::{Attributes, Frame, Malformed, Request, text};

/// Octets of `struct nfgenmsg`.
const HEADER_LEN: usize = 4;
/// Families of nf_tables: inet, IPv4, IPv6, and the one of devices.
const INET: u8 = 1;
const NETDEV: u8 = 5;
/// Drop, as a chain's policy.
const NF_DROP: u32 = 0;
/// `struct xfrm_userpolicy_info`: where the direction stands, and the one of packets that come from this machine's processes.
const POLICY_DIRECTION: usize = 160;
const XFRM_POLICY_IN: u8 = 0;
const XFRM_POLICY_OUT: u8 = 1;
const XFRM_POLICY_FWD: u8 = 2;
const XFRM_MSG_GETPOLICY: u16 = 0x15;

/// A chain that the kernel calls for packets.
struct Chain {
    family: u8,
    table: String,
    name: String,
    hook: u32,
    device: Option<String>,
    drops: bool,
}

/// Chains of nf_tables that forwarded packets would go through, and tables of the old packet filter.
pub(super) fn netfilter(mirror: &Mirror) -> io::Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = ["ip", "ip6"].iter().flat_map(|family| legacy(family)).collect();
    // A kernel without the packet filter has no such socket.
    let Ok(mut socket) = Socket::open(Some(netlink::NETFILTER)) else { return Ok(findings) };
    let chains = dump(&mut socket, NFT_MSG_GETCHAIN, chain)?;
    let rules = dump(&mut socket, NFT_MSG_GETRULE, rule)?;
    let mut counts: HashMap<(u8, String, String), usize> = HashMap::new();
    for rule in rules {
        *counts.entry(rule).or_default() += 1;
    }
    let held =
        |device: &str| mirror.ports().any(|port| mirror.link(device).is_some_and(|link| link.index == port));
    for chain in chains {
        let count =
            counts.get(&(chain.family, chain.table.clone(), chain.name.clone())).copied().unwrap_or(0);
        if (count > 0 || chain.drops) && concerns(&chain, held) {
            findings.push(finding(&chain, count));
        }
    }
    Ok(findings)
}

/// Whether packets that are forwarded go through the chain.
fn concerns(chain: &Chain, held: impl Fn(&str) -> bool) -> bool {
    match (chain.family, chain.hook) {
        // Prerouting, forward, postrouting.
        (INET | AF_INET | AF_INET6, 0 | 2 | 4) => true,
        // Ingress, which names its device, if it names one.
        (INET, 5) | (NETDEV, _) => chain.device.as_deref().is_none_or(held),
        _ => false,
    }
}

fn finding(chain: &Chain, count: usize) -> Finding {
    let family = match chain.family {
        INET => "inet",
        AF_INET => "ip",
        AF_INET6 => "ip6",
        _ => "netdev",
    };
    let place = format!("{family} {} {}", chain.table, chain.name);
    let what = match (count, chain.drops) {
        (0, _) => "forwarded packets would pass by this nftables chain, which drops them all".to_owned(),
        (_, false) => format!("forwarded packets would pass by this nftables chain and its rules ({count})"),
        (_, true) => {
            format!(
                "forwarded packets would pass by this nftables chain, its rules ({count}) and its policy, drop"
            )
        }
    };
    let mut mend = format!("nft flush chain {place}");
    if chain.drops {
        mend += &format!("; nft 'chain {place} {{ policy accept; }}'");
    }
    Finding { check: Check::Netfilter, severity: Severity::Refuse, place: format!("nft {place}"), what, mend }
}

/// The old packet filter does not show its rules by netlink; its tables exist once somebody has used them.
fn legacy(family: &str) -> Vec<Finding> {
    let names =
        std::fs::read_to_string(format!("/proc/thread-self/net/{family}_tables_names")).unwrap_or_default();
    let command = if family == "ip" { "iptables-legacy" } else { "ip6tables-legacy" };
    let found = |table: &str| Finding {
        check: Check::Netfilter,
        severity: Severity::Warn,
        place: format!("{command} -t {table}"),
        what: "the table is in use; forwarded packets would pass by the rules it may have".into(),
        mend: format!("{command} -t {table} -S    # shows them; -F removes them"),
    };
    names.lines().map(found).collect()
}

fn dump<T>(
    socket: &mut Socket,
    message: u16,
    parse: impl Fn(&Frame<'_>) -> Result<Option<T>, Malformed>,
) -> io::Result<Vec<T>> {
    let kind = NFNL_SUBSYS_NFTABLES << 8 | message;
    let (mut found, mut malformed) = (Vec::new(), None);
    let request = Request::new(kind, NLM_F_REQUEST | NLM_F_DUMP, &[AF_UNSPEC, 0, 0, 0]);
    let end = socket.dump(request, |frame| match parse(frame) {
        Ok(item) => found.extend(item),
        Err(error) => malformed = Some(error),
    });
    match (end, malformed) {
        (_, Some(error)) => Err(io::Error::other(error)),
        // EINVAL and EOPNOTSUPP: a kernel with netfilter but without nf_tables.
        (Err(error), _) if matches!(error.raw_os_error(), Some(22 | 95)) => Ok(found),
        (end, None) => end.map(|_| found),
    }
}

fn chain(frame: &Frame<'_>) -> Result<Option<Chain>, Malformed> {
    let family = *frame.payload.first().ok_or(Malformed("chain"))?;
    let (mut table, mut name, mut policy, mut hook, mut device) = (None, None, None, None, None);
    for attribute in Attributes::after(frame.payload, HEADER_LEN) {
        match attribute? {
            (NFTA_CHAIN_TABLE, value) => table = Some(text(value)),
            (NFTA_CHAIN_NAME, value) => name = Some(text(value)),
            (NFTA_CHAIN_POLICY, value) => policy = big_endian(value),
            (NFTA_CHAIN_HOOK, value) => {
                for attribute in Attributes(value) {
                    match attribute? {
                        (NFTA_HOOK_HOOKNUM, value) => hook = big_endian(value),
                        (NFTA_HOOK_DEV, value) => device = Some(text(value)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let (Some(table), Some(name)) = (table, name) else { return Err(Malformed("chain")) };
    // Without a hook it is called by other chains only.
    Ok(hook.map(|hook| Chain { family, table, name, hook, device, drops: policy == Some(NF_DROP) }))
}

fn rule(frame: &Frame<'_>) -> Result<Option<(u8, String, String)>, Malformed> {
    let family = *frame.payload.first().ok_or(Malformed("filter rule"))?;
    let (mut table, mut chain) = (None, None);
    for attribute in Attributes::after(frame.payload, HEADER_LEN) {
        match attribute? {
            (NFTA_RULE_TABLE, value) => table = Some(text(value)),
            (NFTA_RULE_CHAIN, value) => chain = Some(text(value)),
            _ => {}
        }
    }
    Ok(table.zip(chain).map(|(table, chain)| (family, table, chain)))
}

/// nf_tables has its numbers in network byte order.
fn big_endian(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_be_bytes)
}

/// IPsec policies: packets that should be encrypted, or should have been.
pub(super) fn xfrm() -> io::Result<Vec<Finding>> {
    let Ok(mut socket) = Socket::open(Some(netlink::XFRM)) else { return Ok(Vec::new()) };
    let mut count = 0;
    // A policy's header, of which only the place of the direction matters, is longer than the request's need be.
    let request = Request::new(XFRM_MSG_GETPOLICY, NLM_F_REQUEST | NLM_F_DUMP, &[0; 64]);
    let end = socket.dump(request, |frame| {
        let direction = frame.payload.get(POLICY_DIRECTION);
        count +=
            usize::from(matches!(direction, Some(&(XFRM_POLICY_IN | XFRM_POLICY_OUT | XFRM_POLICY_FWD))));
    });
    if end.is_err() || count == 0 {
        return Ok(Vec::new());
    }
    Ok(vec![Finding {
        check: Check::Xfrm,
        severity: Severity::Refuse,
        place: "ip xfrm policy".into(),
        what: format!("forwarded packets would pass by the IPsec policies ({count}) and leave in clear"),
        mend: "ip xfrm policy flush".into(),
    }])
}
