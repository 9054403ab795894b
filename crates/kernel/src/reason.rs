//! Why packets are left to the kernel.

use std::fmt;

/// Why packets of a destination are left to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PuntReason {
    /// The destination is an address of this machine.
    Local,
    /// A broadcast address.
    Broadcast,
    /// An anycast address of this machine.
    Anycast,
    /// A multicast route.
    Multicast,
    /// The destination is on the link and its MAC address is not known yet: the kernel asks for it.
    OnLink,
    /// A route that discards silently.
    Blackhole,
    /// A route that answers "host unreachable".
    Unreachable,
    /// A route that answers "administratively prohibited".
    Prohibit,
    /// A route that says "look in the next table".
    Throw,
    /// A route or next hop of a type that the mirror does not know.
    UnknownType,
    /// A route or next hop with an attribute that the mirror does not know.
    UnknownAttribute,
    /// A lightweight tunnel: MPLS, segment routing, IP in IP.
    Encapsulation,
    /// Routes that differ by source address.
    SourceSpecific,
    /// Routes that differ by type of service.
    TypeOfService,
    /// Several equal routes, of which only the kernel knows which it takes.
    Ambiguous,
    /// Several paths, some with a gateway and some on the link.
    MixedPaths,
    /// A resilient next hop group, whose flows must not move.
    ResilientGroup,
    /// The next hop object is not there.
    NextHopMissing,
    /// The way out is a device that this router does not hold.
    OutsidePorts,
    /// The device is not known.
    LinkMissing,
    /// The device is down or has no carrier.
    LinkDown,
    /// The device has link-layer headers other than Ethernet's, or does no address resolution where it would need to.
    NotEthernet,
    /// The device belongs to a bridge, a bond or a VRF.
    Enslaved,
    /// Policy rules decide, which the mirror does not follow.
    PolicyRules,
    /// A way out in IPv4's table local, or a route there that discards: which of it and a longer prefix of the table main the
    /// kernel takes depends on whether there ever was a policy rule.
    LocalTable,
    /// A route with a lifetime: the kernel stops using it without a message.
    Lifetime,
    /// The kernel has learned something of this one destination (a path MTU, a better way) that its routes do not say.
    Exception,
    /// The tables have no room for the next hop.
    TableFull,
    /// The kernel's messages do not tell which route it has now; the next dump does.
    Unclear,
    /// The kernel was asked about a packet, and would have forwarded it otherwise.
    SelfCheck,
}

impl PuntReason {
    /// The names under which such packets are counted, in the order of the reasons.
    pub const NAMES: &'static [&'static str] = &[
        "local",
        "broadcast",
        "anycast",
        "multicast",
        "on-link",
        "blackhole",
        "unreachable",
        "prohibit",
        "throw",
        "unknown-type",
        "unknown-attribute",
        "encapsulation",
        "source-specific",
        "type-of-service",
        "ambiguous",
        "mixed-paths",
        "resilient-group",
        "next-hop-missing",
        "outside-ports",
        "link-missing",
        "link-down",
        "not-ethernet",
        "enslaved",
        "policy-rules",
        "local-table",
        "lifetime",
        "exception",
        "table-full",
        "unclear",
        "self-check",
    ];

    /// The name under which such packets are counted.
    pub fn name(self) -> &'static str {
        PuntReason::NAMES[self as usize]
    }
}

impl fmt::Display for PuntReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_name() {
        let last = PuntReason::SelfCheck;
        assert_eq!(PuntReason::NAMES.len(), last as usize + 1);
        assert_eq!((PuntReason::Local.name(), last.name()), ("local", "self-check"));
    }
}
