//! The fields that make a flow, laid out and hashed.

use super::dissect::Addresses;
use siphasher::sip::SipHasher24;

/// What is hashed of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub addresses: Addresses,
    /// IPv6 flow label.
    pub label: u32,
    pub protocol: u8,
    /// As they stand in the packet.
    pub ports: [u16; 2],
}

/// Octets that the kernel hashes for IPv4 and IPv6, and where it has them (`struct flow_keys` from its member `basic` on). What
/// is not named here (VLANs, GRE's key, ICMP's fields) is zero when paths are chosen.
const LEN4: usize = 48;
const LEN6: usize = 72;
const PROTOCOL: usize = 2;
const LABEL: usize = 4;
const PORTS: usize = 28;
const ADDRESSES: usize = 36;

/// A prime near 2^64 divided by the golden ratio; its multiples spread over all bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Keys {
    /// Nothing but addresses that are still to be put in.
    pub const NONE: Keys = Keys { addresses: Addresses::V4(0, 0), label: 0, protocol: 0, ports: [0; 2] };

    /// The kernel's hash if the seed is not 0, another one else; never 0 with a seed.
    #[inline(always)]
    pub fn hash(self, seed: u32) -> u32 {
        let keys = self.undirected();
        if seed == 0 { keys.fast() } else { keys.siphash(seed) }
    }

    /// The same for both directions: the smaller address and the smaller port first, in the machine's order of octets for IPv4
    /// addresses and ports, in the packet's for IPv6 addresses.
    #[inline(always)]
    fn undirected(mut self) -> Keys {
        // Minimum and maximum, because a branch here is guessed wrong for every other flow.
        self.addresses = match self.addresses {
            Addresses::V4(from, to) => Addresses::V4(from.min(to), from.max(to)),
            Addresses::V6(from, to) => {
                let (from, to) = (from.to_be(), to.to_be());
                Addresses::V6(from.min(to).to_be(), from.max(to).to_be())
            }
        };
        self.ports = [self.ports[0].min(self.ports[1]), self.ports[0].max(self.ports[1])];
        self
    }

    /// SipHash-2-4 with the seed in all four halves of the key.
    fn siphash(self, seed: u32) -> u32 {
        let mut bytes = [0; LEN6];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(PROTOCOL, &[self.protocol]);
        put(LABEL, &self.label.to_ne_bytes());
        put(PORTS, &self.ports[0].to_ne_bytes());
        put(PORTS + 2, &self.ports[1].to_ne_bytes());
        let len = match self.addresses {
            Addresses::V4(from, to) => {
                put(ADDRESSES, &from.to_ne_bytes());
                put(ADDRESSES + 4, &to.to_ne_bytes());
                LEN4
            }
            Addresses::V6(from, to) => {
                put(ADDRESSES, &from.to_ne_bytes());
                put(ADDRESSES + 16, &to.to_ne_bytes());
                LEN6
            }
        };
        let key = u64::from(seed) << 32 | u64::from(seed);
        (SipHasher24::new_with_keys(key, key).hash(&bytes[..len]) as u32).max(1)
    }

    /// A hash of the same fields, a few nanoseconds long.
    #[inline(always)]
    fn fast(self) -> u32 {
        let hash = match self.addresses {
            Addresses::V4(from, to) => mix(0, u64::from(from) << 32 | u64::from(to)),
            Addresses::V6(from, to) => [from, to].into_iter().fold(self.label.into(), |hash, address| {
                mix(mix(hash, address as u64), (address >> 64) as u64)
            }),
        };
        let ports = u64::from(self.ports[0]) << 16 | u64::from(self.ports[1]);
        let hash = mix(hash, ports << 8 | u64::from(self.protocol));
        (mix(hash, hash >> 32) >> 32) as u32
    }
}

#[inline(always)]
fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(SPREAD).rotate_left(29)
}

/// Two hashes to one, as the kernel does it: Jenkins' lookup3 over two words, from its final mixing alone.
pub(super) fn combine(outer: u32, inner: u32) -> u32 {
    /// 0xdeadbeef, and the length of two words.
    const START: u32 = 0xdead_beef + (2 << 2);
    let (mut a, mut b, mut c) = (outer.wrapping_add(START), inner.wrapping_add(START), START);
    let step = |into: u32, from: u32, bits: u32| (into ^ from).wrapping_sub(from.rotate_left(bits));
    c = step(c, b, 14);
    a = step(a, c, 11);
    b = step(b, a, 25);
    c = step(c, b, 16);
    a = step(a, c, 4);
    b = step(b, a, 14);
    step(c, b, 24)
}
