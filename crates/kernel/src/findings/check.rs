//! The kinds of findings and their codes.

use super::{Finding, Severity};

/// What a finding is about.
///
/// Each kind of finding has a code, which does not change. "Told" is what the kernel sends a message about when it changes;
/// "silent" is asked for again and again.
///
/// | code | told | what |
/// | --- | --- | --- |
/// | `port-missing` | yes | there is no interface of that name |
/// | `port-enslaved` | yes | it belongs to a bridge, a bond or a VRF |
/// | `port-shared` | yes | an interface upon it takes frames that are addressed to it |
/// | `port-kind` | yes | it is Ethernet and resolves no addresses, or neither Ethernet nor without link-layer header |
/// | `port-down` | yes | it is down (a warning) |
/// | `policy-rule` | yes | an `ip rule` selects by more than the destination, or discards, or one of the kernel's own is missing |
/// | `nft-ingress` | yes | an nftables chain with rules, or that drops, where packets come in by a port |
/// | `nft-prerouting` | yes | the same before the route is looked up |
/// | `nft-forward` | yes | the same for forwarded packets |
/// | `nft-postrouting` | yes | the same behind the route |
/// | `nft-egress` | yes | the same where packets leave by a port |
/// | `nft-flowtable` | yes | an nftables flow table on a port |
/// | `iptables-legacy` | silent | a chain of the old packet filter with rules, or that does not accept |
/// | `ip6tables-legacy` | silent | the same for IPv6 |
/// | `netfilter-hook` | silent | something in the packet filter's hooks that is not known to be harmless: IPVS, a security module |
/// | `netfilter-program` | silent | a BPF program in the packet filter's hooks |
/// | `xfrm-policy` | yes | IPsec policies |
/// | `xfrm-default` | yes | packets without an IPsec policy are dropped |
/// | `qdisc` | yes | a queueing discipline that shapes or drops (one that only orders is a warning) |
/// | `tc-filter` | yes | traffic control's place for filters, where packets come in by a port or leave by it |
/// | `tc-program` | silent | a BPF program (tcx) where packets come in by a port or leave by it |
/// | `xdp-program` | silent | a BPF program in a port's driver |
/// | `forwarding-off` | silent | the kernel does not forward what comes in by a port (a warning) |
/// | `accept-redirects` | silent | ICMP redirects change routes, of which no message tells |
/// | `forward-use-pmtu` | silent | packets are limited by path MTUs that the kernel learned, of which no message tells |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs)] // The table has a line for each.
pub enum Check {
    PortMissing,
    PortEnslaved,
    PortShared,
    PortKind,
    PortDown,
    PolicyRule,
    NftIngress,
    NftPrerouting,
    NftForward,
    NftPostrouting,
    NftEgress,
    NftFlowtable,
    IptablesLegacy,
    Ip6tablesLegacy,
    NetfilterHook,
    NetfilterProgram,
    XfrmPolicy,
    XfrmDefault,
    Qdisc,
    TcFilter,
    TcProgram,
    XdpProgram,
    ForwardingOff,
    AcceptRedirects,
    ForwardUsePmtu,
}

impl Check {
    /// All, in the order in which findings are told.
    pub const ALL: [Check; 25] = [
        Check::PortMissing,
        Check::PortEnslaved,
        Check::PortShared,
        Check::PortKind,
        Check::PortDown,
        Check::PolicyRule,
        Check::NftIngress,
        Check::NftPrerouting,
        Check::NftForward,
        Check::NftPostrouting,
        Check::NftEgress,
        Check::NftFlowtable,
        Check::IptablesLegacy,
        Check::Ip6tablesLegacy,
        Check::NetfilterHook,
        Check::NetfilterProgram,
        Check::XfrmPolicy,
        Check::XfrmDefault,
        Check::Qdisc,
        Check::TcFilter,
        Check::TcProgram,
        Check::XdpProgram,
        Check::ForwardingOff,
        Check::AcceptRedirects,
        Check::ForwardUsePmtu,
    ];

    /// Whether it is about a port alone: packets of the others may be forwarded all the same.
    pub fn is_of_port(self) -> bool {
        use Check::{ForwardingOff, PortDown, PortEnslaved, PortKind, PortMissing};
        matches!(self, PortMissing | PortEnslaved | PortKind | PortDown | ForwardingOff)
    }

    /// The code, which stays what it is.
    pub fn code(self) -> &'static str {
        match self {
            Check::PortMissing => "port-missing",
            Check::PortEnslaved => "port-enslaved",
            Check::PortShared => "port-shared",
            Check::PortKind => "port-kind",
            Check::PortDown => "port-down",
            Check::PolicyRule => "policy-rule",
            Check::NftIngress => "nft-ingress",
            Check::NftPrerouting => "nft-prerouting",
            Check::NftForward => "nft-forward",
            Check::NftPostrouting => "nft-postrouting",
            Check::NftEgress => "nft-egress",
            Check::NftFlowtable => "nft-flowtable",
            Check::IptablesLegacy => "iptables-legacy",
            Check::Ip6tablesLegacy => "ip6tables-legacy",
            Check::NetfilterHook => "netfilter-hook",
            Check::NetfilterProgram => "netfilter-program",
            Check::XfrmPolicy => "xfrm-policy",
            Check::XfrmDefault => "xfrm-default",
            Check::Qdisc => "qdisc",
            Check::TcFilter => "tc-filter",
            Check::TcProgram => "tc-program",
            Check::XdpProgram => "xdp-program",
            Check::ForwardingOff => "forwarding-off",
            Check::AcceptRedirects => "accept-redirects",
            Check::ForwardUsePmtu => "forward-use-pmtu",
        }
    }

    /// A finding that refuses.
    pub(super) fn refuse(
        self,
        place: impl Into<String>,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        let (place, what, mend) = (place.into(), what.into(), mend.into());
        Finding { check: self, severity: Severity::Refuse, place, what, mend }
    }

    /// A finding that warns.
    pub(super) fn warn(
        self,
        place: impl Into<String>,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        Finding { severity: Severity::Warn, ..self.refuse(place, what, mend) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_is_its_own_and_has_a_line_in_the_documentation() {
        let codes: HashSet<_> = Check::ALL.map(Check::code).into();
        assert_eq!(codes.len(), Check::ALL.len());
        for code in codes {
            assert_eq!(include_str!("check.rs").matches(&format!("/// | `{code}` | ")).count(), 1, "{code}");
        }
        assert!(Check::ALL.is_sorted(), "the order is that of the enumeration");
    }
}
