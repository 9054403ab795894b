//! What the classes of rewriters have of their own: what a flow is to them, and how it is shown.

use super::flow_id::FlowId;
use super::flows::Flow;
use causeway_packet::wire::protocol;

/// DCCP (RFC 4340), whose ports lie where those of UDP do.
const DCCP: u8 = 33;

/// A class of rewriters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// TCP and UDP, each in a table of its own.
    Ip,
    Tcp,
    /// What has ports.
    Udp,
    /// A source address.
    Addr,
    /// Source and destination address.
    AddrPair,
    /// Echo requests of one identifier between two addresses.
    Ping,
}

/// What Click adds to an identifier to tell echo replies from requests.
fn answered(identifier: u16) -> u16 {
    identifier.swap_bytes().wrapping_add(1).swap_bytes()
}

impl Kind {
    /// The kind of the class `name`.
    pub fn of_class(name: &str) -> Option<Kind> {
        Some(match name {
            "IPRewriter" => Kind::Ip,
            "TCPRewriter" => Kind::Tcp,
            "UDPRewriter" => Kind::Udp,
            "IPAddrRewriter" => Kind::Addr,
            "IPAddrPairRewriter" => Kind::AddrPair,
            "ICMPPingRewriter" => Kind::Ping,
            _ => return None,
        })
    }

    /// Whether packets of that protocol have flows here.
    pub fn knows(self, number: u8) -> bool {
        match self {
            Kind::Ip => matches!(number, protocol::TCP | protocol::UDP),
            Kind::Tcp => number == protocol::TCP,
            Kind::Udp => matches!(number, protocol::TCP | protocol::UDP | DCCP),
            Kind::Addr | Kind::AddrPair => true,
            Kind::Ping => number == protocol::ICMP,
        }
    }

    /// Whether the class lets one choose if the destination annotation is set.
    pub fn has_dst_anno_option(self) -> bool {
        !matches!(self, Kind::Addr | Kind::AddrPair)
    }

    /// Under what the flow of a packet may be known, the first being what a new one is called. `None` if packets of that
    /// protocol have no flows here. Of an echo, `flow` has the identifier as its source port.
    #[inline(always)]
    pub fn candidates(self, number: u8, flow: FlowId, is_reply: bool) -> Option<[Option<FlowId>; 2]> {
        let FlowId { source, destination, source_port: identifier, .. } = flow;
        Some(match self {
            Kind::Ip | Kind::Ping if !self.knows(number) => return None,
            Kind::Ip | Kind::Tcp | Kind::Udp => [Some(flow), None],
            Kind::Addr => [Some(FlowId::new(source, 0, 0, 0)), Some(FlowId::new(0, 0, destination, 0))],
            Kind::AddrPair => [Some(FlowId::new(source, 0, destination, 0)), None],
            Kind::Ping if is_reply => {
                [Some(FlowId::new(source, answered(identifier), destination, identifier)), None]
            }
            Kind::Ping => [Some(FlowId::new(source, identifier, destination, answered(identifier))), None],
        })
    }

    /// What a pattern made, with what follows from it.
    pub fn completed(self, to: FlowId) -> FlowId {
        match self {
            Kind::Ping => FlowId { destination_port: answered(to.source_port), ..to },
            _ => to,
        }
    }

    /// Whether a flow may be rewritten like that: who knows addresses alone changes no ports.
    pub fn allows(self, from: FlowId, to: FlowId) -> bool {
        match self {
            Kind::Addr => (to.source_port, to.destination_port, to.destination) == (0, 0, 0),
            Kind::AddrPair => (to.source_port, to.destination_port) == (0, 0),
            Kind::Ping => answered(from.source_port) == from.destination_port,
            _ => true,
        }
    }

    /// The protocol that a flow is remembered with.
    pub fn stored(self, number: u8) -> u8 {
        if matches!(self, Kind::Addr | Kind::AddrPair) { 0 } else { number }
    }

    /// The flow as the table shows it.
    pub fn line(self, flow: &Flow, direction: usize) -> String {
        let (comes, leaves) = (flow.comes(direction), flow.leaves(direction));
        let (source, destination) = (comes.source_ip(), comes.destination_ip());
        let (new_source, new_destination) = (leaves.source_ip(), leaves.destination_ip());
        match self {
            Kind::Ip | Kind::Tcp | Kind::Udp => format!("{comes} => {leaves}"),
            Kind::Addr => format!("{source} => {new_source}"),
            Kind::AddrPair => format!("({source}, {destination}) => ({new_source}, {new_destination})"),
            Kind::Ping => {
                let (old, new) = (comes.source_port, leaves.source_port);
                format!("({source}, {destination}, {old}) => ({new_source}, {new_destination}, {new})")
            }
        }
    }
}
