//! Hashes of flows, for routes with several ways out (RFC 2992 §1: packets of one flow take one way).

const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// A prime near 2^64 divided by the golden ratio; its multiples spread over all bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    ((hash ^ value).wrapping_mul(SPREAD)).rotate_left(29)
}

/// The two ports, if the transport protocol has them.
#[inline]
fn ports(protocol: u8, transport: &[u8]) -> u64 {
    match (protocol, transport.first_chunk::<4>()) {
        (TCP | UDP | DCCP | SCTP | UDP_LITE, Some(ports)) => u32::from_be_bytes(*ports).into(),
        _ => 0,
    }
}

fn finish(hash: u64) -> u32 {
    (mix(hash, hash >> 32) >> 32) as u32
}

/// Hash of an IPv4 packet's flow: addresses, protocol and ports; no ports in fragments, which must stay together.
pub(crate) fn hash4(header: &[u8], transport: Option<&[u8]>) -> u32 {
    let Some(h) = header.first_chunk::<20>() else { return 0 };
    let fragment = u16::from_be_bytes([h[6], h[7]]) & 0x3fff != 0;
    let addresses = u64::from_be_bytes([h[12], h[13], h[14], h[15], h[16], h[17], h[18], h[19]]);
    let ports = if fragment { 0 } else { ports(h[9], transport.unwrap_or(&[])) };
    finish(mix(mix(0, addresses), ports << 8 | u64::from(h[9])))
}

/// Hash of an IPv6 packet's flow: addresses, protocol and ports, where the ports follow the fixed header at once.
pub(crate) fn hash6(header: &[u8]) -> u32 {
    let Some(h) = header.first_chunk::<40>() else { return 0 };
    let (words, _) = h[8..].as_chunks::<8>();
    let hash = words.iter().fold(0, |hash, word| mix(hash, u64::from_be_bytes(*word)));
    finish(mix(hash, ports(h[6], &header[40..]) << 8 | u64::from(h[6])))
}
