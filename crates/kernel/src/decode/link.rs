//! Links, addresses, neighbours and qdiscs.

use super::{octet, word};
use crate::model::{Address, Link, Neighbour, Qdisc};
use crate::uapi::*;
use crate::wire::{self, Attributes, Malformed, text, u16_at, u32_at};

/// Octets of `struct ifinfomsg`.
const LINK_HEADER_LEN: usize = 16;
/// Octets of `struct ifaddrmsg`.
const ADDRESS_HEADER_LEN: usize = 8;
/// Octets of `struct ndmsg`.
const NEIGHBOUR_HEADER_LEN: usize = 12;
/// Octets of `struct tcmsg`.
const QDISC_HEADER_LEN: usize = 20;

pub(super) fn link(payload: &[u8]) -> Result<Option<Link>, Malformed> {
    const WHAT: &str = "link";
    // A bridge announces its ports in the bridge family: leaving one is a "deleted link" that still exists.
    if octet(payload, 0, WHAT)? != AF_UNSPEC {
        return Ok(None);
    }
    let flags = word(payload, 8, WHAT)?;
    let hardware = u16_at(payload, 2);
    let mut link = Link {
        index: word(payload, 4, WHAT)?,
        name: String::new(),
        other_names: Vec::new(),
        kind: None,
        parent: None,
        mac: None,
        ethernet: hardware == Some(ARPHRD_ETHER),
        bare: matches!(hardware, Some(ARPHRD_NONE | ARPHRD_PPP | ARPHRD_RAWIP)),
        no_arp: flags & IFF_NOARP != 0,
        loopback: flags & IFF_LOOPBACK != 0,
        up: flags & IFF_UP != 0,
        carrier: flags & IFF_LOWER_UP != 0,
        mtu_bytes: 0,
        mtu6_bytes: u32::MAX,
        master: None,
        master_kind: None,
        takes_from: None,
        rx_queues: 1,
        tx_queues: 1,
        xdp_program: None,
    };
    let (mut bus, mut device) = (None, None);
    let (mut below, mut elsewhere, mut takes) = (None, false, false);
    for attribute in Attributes::after(payload, LINK_HEADER_LEN) {
        let (kind, value) = attribute?;
        match kind {
            IFLA_IFNAME => link.name = text(value),
            IFLA_PROP_LIST => link.other_names = other_names(value)?,
            IFLA_ADDRESS => link.mac = value.try_into().ok(),
            IFLA_MTU => link.mtu_bytes = word(value, 0, WHAT)?,
            IFLA_LINK => below = Some(word(value, 0, WHAT)?),
            IFLA_LINK_NETNSID => elsewhere = true,
            IFLA_MASTER => link.master = Some(word(value, 0, WHAT)?).filter(|&master| master != 0),
            IFLA_NUM_RX_QUEUES => link.rx_queues = word(value, 0, WHAT)?,
            IFLA_NUM_TX_QUEUES => link.tx_queues = word(value, 0, WHAT)?,
            IFLA_LINKINFO => takes = link_info(value, &mut link)?,
            IFLA_XDP => link.xdp_program = nested_word(value, IFLA_XDP_PROG_ID)?,
            IFLA_AF_SPEC => link.mtu6_bytes = mtu6(value)?.unwrap_or(u32::MAX),
            IFLA_PARENT_DEV_NAME => device = Some(text(value)),
            IFLA_PARENT_DEV_BUS_NAME => bus = Some(text(value)),
            _ => {}
        }
    }
    // Wireless drivers announce events in messages that lack all the rest.
    if link.mtu_bytes == 0 {
        return Ok(None);
    }
    link.parent = bus.zip(device);
    // Others, such as tunnels and `ovpn`, may ask a packet's route for the other end, which a packet that was redirected to them
    // does not have.
    link.bare &= matches!(link.kind.as_deref(), None | Some("tun" | "wireguard" | "ppp" | "wwan" | "rmnet"));
    // An index of another namespace says nothing here.
    link.takes_from = below.filter(|_| takes && !elsewhere);
    link.mtu6_bytes = link.mtu6_bytes.min(link.mtu_bytes);
    Ok(Some(link))
}

/// Sets the kinds of the link and of its master; whether it takes frames that are addressed to the link below.
fn link_info(value: &[u8], link: &mut Link) -> Result<bool, Malformed> {
    let mut data = &[][..];
    for attribute in Attributes(value) {
        match attribute? {
            (IFLA_INFO_KIND, value) => link.kind = Some(text(value)),
            (IFLA_INFO_DATA, value) => data = value,
            (IFLA_INFO_SLAVE_KIND, value) => link.master_kind = Some(text(value)),
            _ => {}
        }
    }
    Ok(match link.kind.as_deref() {
        Some("macvlan" | "macvtap") => {
            matches!(nested_word(data, IFLA_MACVLAN_MODE)?, Some(MACVLAN_MODE_PASSTHRU | MACVLAN_MODE_SOURCE))
        }
        Some("ipvlan" | "ipvtap") => true,
        _ => false,
    })
}

fn other_names(list: &[u8]) -> Result<Vec<String>, Malformed> {
    let mut names = Vec::new();
    for attribute in Attributes(list) {
        let (kind, value) = attribute?;
        if kind == IFLA_ALT_IFNAME {
            names.push(text(value));
        }
    }
    Ok(names)
}

fn nested_word(value: &[u8], wanted: u16) -> Result<Option<u32>, Malformed> {
    for attribute in Attributes(value) {
        let (kind, value) = attribute?;
        if kind == wanted {
            return Ok(u32_at(value, 0));
        }
    }
    Ok(None)
}

/// The IPv6 MTU, which an administrator or a router's advertisement may set below the link's.
fn mtu6(value: &[u8]) -> Result<Option<u32>, Malformed> {
    for family in Attributes(value) {
        let (family, value) = family?;
        if family != u16::from(AF_INET6) {
            continue;
        }
        for attribute in Attributes(value) {
            let (kind, value) = attribute?;
            if kind == IFLA_INET6_CONF {
                return Ok(u32_at(value, 4 * DEVCONF_MTU6).filter(|&mtu| mtu != 0));
            }
        }
    }
    Ok(None)
}

pub(super) fn address(payload: &[u8]) -> Result<Option<Address>, Malformed> {
    const WHAT: &str = "address";
    let family = octet(payload, 0, WHAT)?;
    if family != AF_INET && family != AF_INET6 {
        return Ok(None);
    }
    let prefix_len = octet(payload, 1, WHAT)?;
    let ifindex = word(payload, 4, WHAT)?;
    let (mut own, mut peer) = (None, None);
    for attribute in Attributes::after(payload, ADDRESS_HEADER_LEN) {
        // On a point-to-point link IFA_ADDRESS is the other end's.
        match attribute? {
            (IFA_LOCAL, value) => own = wire::address(value),
            (IFA_ADDRESS, value) => peer = wire::address(value),
            _ => {}
        }
    }
    let address = own.or(peer).ok_or(Malformed(WHAT))?;
    Ok(Some(Address { address, prefix_len, ifindex }))
}

pub(super) fn neighbour(payload: &[u8]) -> Result<Option<Neighbour>, Malformed> {
    const WHAT: &str = "neighbour";
    let family = octet(payload, 0, WHAT)?;
    let flags = octet(payload, 10, WHAT)?;
    // Bridges announce their forwarding tables here too, and proxy entries are the machine's own answers.
    if (family != AF_INET && family != AF_INET6) || flags & NTF_PROXY != 0 {
        return Ok(None);
    }
    let ifindex = word(payload, 4, WHAT)?;
    let state = u16_at(payload, 8).ok_or(Malformed(WHAT))?;
    let learned = flags & NTF_EXT_LEARNED != 0;
    let (mut address, mut mac, mut managed) = (None, None, false);
    for attribute in Attributes::after(payload, NEIGHBOUR_HEADER_LEN) {
        match attribute? {
            (NDA_DST, value) => address = wire::address(value),
            (NDA_LLADDR, value) => mac = value.try_into().ok(),
            (NDA_FLAGS_EXT, value) => managed = word(value, 0, WHAT)? & NTF_EXT_MANAGED != 0,
            _ => {}
        }
    }
    let address = address.ok_or(Malformed(WHAT))?;
    Ok(Some(Neighbour { address, ifindex, mac, state, managed, learned }))
}

pub(super) fn qdisc(payload: &[u8]) -> Result<Option<Qdisc>, Malformed> {
    const WHAT: &str = "qdisc";
    let mut kind = String::new();
    for attribute in Attributes::after(payload, QDISC_HEADER_LEN) {
        if let (TCA_KIND, value) = attribute? {
            kind = text(value);
        }
    }
    let ifindex = word(payload, 4, WHAT)?;
    Ok(Some(Qdisc { ifindex, handle: word(payload, 8, WHAT)?, parent: word(payload, 12, WHAT)?, kind }))
}
