//! Hashes of flows, as the kernel makes them to choose among the paths of a route.
//!
//! What belongs to one flow is an administrator's choice (`net.ipv4.fib_multipath_hash_policy`, its IPv6 sibling, and
//! `fib_multipath_hash_fields`), and so is, since Linux 6.11, the key of the hash (`net.ipv4.fib_multipath_hash_seed`). With a
//! key set, [`FlowHash`] gives the kernel's own hash, bit for bit; without one, where the kernel's key is random, a cheaper
//! hash over the same fields. The kernel compares the upper 31 bits with thresholds (RFC 2992 §2.1, hash-threshold): of paths
//! with the weights `w` that add up to `W`, path `i` takes the hashes with `hash >> 1` up to
//! `round((w₀ + … + wᵢ) · 2³¹ / W) − 1`.
//!
//! Both directions of a flow have one hash, and a packet's fragments have that of a packet without ports.
//!
//! Everything here is inlined by force, so that a [`Flow`] stays in registers: 13 ns a packet become 7 (`benches/flow_hash.rs`).

mod dissect;
mod keys;

use dissect::{Addresses, Flow, Version, dissect};
use keys::Keys;

/// What belongs to one flow (Linux, Documentation/networking/ip-sysctl, `fib_multipath_hash_policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowPolicy {
    /// 0: addresses, for IPv6 also protocol and flow label; of an ICMP error those of the packet it is about.
    L3,
    /// 1: addresses, protocol and ports.
    L4,
    /// 2: the addresses of the innermost header that is found, for IPv6 also protocol and flow label.
    Inner,
    /// 3: the fields chosen.
    Custom(FlowFields),
}

impl FlowPolicy {
    /// From the kernel's settings; none for a policy that is not known.
    pub fn new(policy: u8, fields: u32) -> Option<FlowPolicy> {
        match policy {
            0 => Some(FlowPolicy::L3),
            1 => Some(FlowPolicy::L4),
            2 => Some(FlowPolicy::Inner),
            3 => Some(FlowPolicy::Custom(FlowFields(fields))),
            _ => None,
        }
    }
}

/// Fields of [`FlowPolicy::Custom`]: the bits of `fib_multipath_hash_fields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowFields(pub u32);

/// The bits that choose the fields of one header, in the order of their places.
#[derive(Clone, Copy)]
enum Field {
    Source,
    Destination,
    Protocol,
    Label,
    SourcePort,
    DestinationPort,
}

/// Fields that one header has.
const FIELDS: u32 = 6;

impl FlowFields {
    /// The bits of the outermost header.
    fn outer(self) -> FlowFields {
        FlowFields(self.0 & ((1 << FIELDS) - 1))
    }

    /// Those of the innermost, in the places of the outermost's.
    fn inner(self) -> FlowFields {
        FlowFields(self.0 >> FIELDS).outer()
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn has(self, field: Field) -> bool {
        self.0 & 1 << field as u32 != 0
    }
}

/// How packets are spread over the paths of a route.
///
/// # What differs from the kernel
///
/// - Under the policy [`L4`](FlowPolicy::L4) the kernel takes a hash that came with the packet, if one did, for its own: that of
///   a card which hashes ports (receive-side scaling), or of a socket of the same machine behind a virtual link. No function
///   of the packet's bytes can know it.
/// - A BPF flow dissector of the network namespace takes the place of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHash {
    policy: FlowPolicy,
    seed: u32,
}

impl FlowHash {
    /// By that policy; a seed of 0 stands for a key that the kernel does not tell, as in the setting.
    pub const fn new(policy: FlowPolicy, seed: u32) -> FlowHash {
        FlowHash { policy, seed }
    }

    /// The hash of a packet that begins with its IPv4 header. None: only the kernel can tell.
    #[inline(always)]
    pub fn v4(&self, packet: &[u8]) -> Option<u32> {
        let len = u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]);
        self.hash(packet.get(..usize::from(len))?, Version::V4)
    }

    /// The hash of a packet that begins with its IPv6 header. None: only the kernel can tell.
    #[inline(always)]
    pub fn v6(&self, packet: &[u8]) -> Option<u32> {
        let len = u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]);
        self.hash(packet.get(..dissect::IPV6_HEADER_LEN + usize::from(len))?, Version::V6)
    }

    /// The hash of a whole IPv4 packet from an address to another, of this protocol and with these ports, or with zeros if it
    /// has none, that is no ICMP error and has no authentication header. None: the policy wants more to be known.
    pub fn known_v4(&self, addresses: [u32; 2], protocol: u8, ports: [u16; 2]) -> Option<u32> {
        let [from, to] = addresses.map(u32::to_be);
        let addresses = Addresses::V4(from, to);
        let keys = match self.policy {
            FlowPolicy::L3 => Keys { addresses, ..Keys::NONE },
            FlowPolicy::L4 => Keys { addresses, label: 0, protocol, ports: ports.map(u16::to_be) },
            FlowPolicy::Inner | FlowPolicy::Custom(_) => return None,
        };
        Some(keys.hash(self.seed))
    }

    /// The same of IPv6, with a flow label and without extension headers.
    pub fn known_v6(&self, addresses: [u128; 2], label: u32, protocol: u8, ports: [u16; 2]) -> Option<u32> {
        let [from, to] = addresses.map(u128::to_be);
        let addresses = Addresses::V6(from, to);
        let keys = match self.policy {
            // As in `addresses`.
            FlowPolicy::L3 => Keys { addresses, label: label.to_be(), protocol, ports: [0; 2] },
            FlowPolicy::L4 => Keys { addresses, label: 0, protocol, ports: ports.map(u16::to_be) },
            FlowPolicy::Inner | FlowPolicy::Custom(_) => return None,
        };
        Some(keys.hash(self.seed))
    }

    #[inline(always)]
    fn hash(&self, packet: &[u8], version: Version) -> Option<u32> {
        let keys = match self.policy {
            FlowPolicy::L3 => addresses(packet, version)?,
            FlowPolicy::L4 => {
                let flow = dissect(packet, version, false)?;
                Keys { addresses: flow.addresses, label: 0, protocol: flow.protocol, ports: flow.ports }
            }
            FlowPolicy::Inner => innermost(&dissect(packet, version, true)?),
            FlowPolicy::Custom(fields) => return self.custom(fields, packet, version),
        };
        Some(keys.hash(self.seed))
    }

    /// A hash of the chosen fields of the outermost header and one of the innermost, combined.
    fn custom(&self, fields: FlowFields, packet: &[u8], version: Version) -> Option<u32> {
        let (mut outer, mut inner) = (0, 0);
        let mut encapsulated = true;
        if !fields.outer().is_empty() {
            let flow = dissect(packet, version, false)?;
            outer = chosen(&flow, fields.outer()).hash(self.seed);
            encapsulated = flow.encapsulated;
        }
        if encapsulated && !fields.inner().is_empty() {
            let flow = dissect(packet, version, true)?;
            if flow.encapsulated {
                inner = chosen(&flow, fields.inner()).hash(self.seed);
            }
        }
        Some(keys::combine(outer, inner))
    }
}

/// The keys of [`FlowPolicy::L3`].
#[inline(always)]
fn addresses(packet: &[u8], version: Version) -> Option<Keys> {
    let header = dissect::error_about(packet, version).unwrap_or(packet);
    let flow = Flow::of_header(header, version)?;
    match version {
        Version::V4 => Some(Keys { addresses: flow.addresses, ..Keys::NONE }),
        // Here, and only here, the kernel keeps the label in the packet's order of octets.
        Version::V6 => Some(Keys {
            addresses: flow.addresses,
            label: flow.label.to_be(),
            protocol: flow.protocol,
            ports: [0; 2],
        }),
    }
}

/// The keys of [`FlowPolicy::Inner`].
fn innermost(flow: &Flow) -> Keys {
    match flow.addresses {
        Addresses::V4(..) => Keys { addresses: flow.addresses, ..Keys::NONE },
        Addresses::V6(..) => {
            Keys { addresses: flow.addresses, label: flow.label, protocol: flow.protocol, ports: [0; 2] }
        }
    }
}

/// The keys that the bits choose.
fn chosen(flow: &Flow, fields: FlowFields) -> Keys {
    let (source, destination) = (fields.has(Field::Source), fields.has(Field::Destination));
    let port = |index: usize, field| if fields.has(field) { flow.ports[index] } else { 0 };
    let v6 = matches!(flow.addresses, Addresses::V6(..));
    Keys {
        addresses: flow.addresses.keep(source, destination),
        label: if v6 && fields.has(Field::Label) { flow.label } else { 0 },
        protocol: if fields.has(Field::Protocol) { flow.protocol } else { 0 },
        ports: [port(0, Field::SourcePort), port(1, Field::DestinationPort)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP from 192.0.2.1 port 4000 to 198.51.100.7 port 53.
    const V4: [u8; 28] =
        [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7, 15, 160, 0, 53, 0, 8, 0, 0];

    /// UDP from 2001:db8::1 port 4000 to 2001:db8:1::2 port 53, with the flow label 0x54321.
    fn v6() -> Vec<u8> {
        let mut packet = vec![0x60, 5, 0x43, 0x21, 0, 8, 17, 64];
        for (group, last) in [(0, 1), (1, 2)] {
            packet.extend([0x20, 1, 0x0d, 0xb8, 0, group, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        packet.extend(&V4[20..]);
        packet
    }

    /// Values that stood when thousands of packets went where the kernel sent them; for machines where that test cannot run.
    #[test]
    #[cfg(target_endian = "little")]
    fn hashes_are_those_that_the_kernel_agreed_with() {
        let hash = |policy, fields| FlowHash::new(FlowPolicy::new(policy, fields).unwrap(), 0x1234_5678);
        let told = [(0, 0), (1, 0), (2, 0), (3, 0x37), (3, 0xfff)].map(|(policy, fields)| {
            let hash = hash(policy, fields);
            (hash.v4(&V4).unwrap(), hash.v6(&v6()).unwrap())
        });
        assert_eq!(
            told,
            [
                (4151885347, 1454637176),
                (3254632746, 3164674342),
                (4151885347, 1615215925),
                (1674887871, 148821398),
                (1674887871, 623035360),
            ]
        );
    }

    #[test]
    fn what_is_known_of_a_flow_has_the_packets_hash() {
        let addresses = [0x2001_0db8_0000_0000, 0x2001_0db8_0001_0000].map(|upper: u128| upper << 64);
        let (addresses, label) = ([addresses[0] | 1, addresses[1] | 2], 0x5_4321);
        for (policy, seed) in [(0, 0), (0, 7), (1, 0), (1, 7)] {
            let hash = FlowHash::new(FlowPolicy::new(policy, 0).unwrap(), seed);
            let known = hash.known_v4([0xc000_0201, 0xc633_6407], 17, [4000, 53]);
            assert_eq!(known, hash.v4(&V4), "{policy} {seed}");
            assert_eq!(hash.known_v6(addresses, label, 17, [4000, 53]), hash.v6(&v6()), "{policy} {seed}");
        }
        for policy in [2, 3] {
            let hash = FlowHash::new(FlowPolicy::new(policy, 0xfff).unwrap(), 7);
            assert_eq!(hash.known_v6(addresses, label, 17, [4000, 53]), None, "more headers may count");
        }
    }

    #[test]
    fn what_is_not_known_is_the_kernels() {
        assert_eq!(FlowPolicy::new(4, 0), None);
        let hash = FlowHash::new(FlowPolicy::L4, 1);
        assert_eq!(hash.v4(&V4[..27]), None, "shorter than it says");
        assert_eq!(hash.v4(&[&[0x44], &V4[1..]].concat()), None, "a header shorter than one can be");
        assert_eq!(hash.v6(&v6()[..47]), None);
        // More extension headers than the kernel follows.
        let mut deep = v6();
        deep.truncate(40);
        deep[6] = 60;
        deep.extend([60, 0, 1, 4, 0, 0, 0, 0].repeat(20));
        deep[5] = 160;
        assert_eq!(hash.v6(&deep), None);
    }
}
