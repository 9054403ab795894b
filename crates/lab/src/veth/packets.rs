//! The generator's frames.

use super::testbed::Version;
use causeway_packet::checksum::checksum;
use fastrand::Rng;

/// Bytes of the checksum that a frame has on the wire and not in memory.
pub const FCS: usize = 4;
pub const PROTOCOL_UDP: u8 = 17;
/// Where the IP header is, and the destination in either.
const IP: usize = 14;
const DESTINATION_V4: usize = IP + 16;
const DESTINATION_V6: usize = IP + 24;
/// Where the UDP header is, and its length.
const UDP_V6: usize = IP + 40;
const UDP: usize = 8;
/// The port of the discard service.
const DISCARD: u16 = 9;

/// Where frames go.
#[derive(Clone, Copy)]
pub enum To {
    /// To the sink, all of them.
    Sink(Version),
    /// Each to an address by chance in so many networks, from [`Version::network`] of 0 on.
    Any(Version, u32),
}

impl To {
    pub fn version(self) -> Version {
        let (To::Sink(version) | To::Any(version, _)) = self;
        version
    }
}

/// A frame of `len` bytes, or as many more as the headers need, from the generator to the sink.
pub fn frame(version: Version, to: [u8; 6], from: [u8; 6], len: usize) -> Vec<u8> {
    let mut f = [to, from].concat();
    f.extend(version.ethertype().to_be_bytes());
    match version {
        Version::V4 => v4(&mut f, len.max(IP + 20 + UDP)),
        Version::V6 => v6(&mut f, len.max(UDP_V6 + UDP)),
    }
    f
}

fn v4(f: &mut Vec<u8>, len: usize) {
    let ip_len = (len - IP) as u16;
    f.extend([0x45, 0]);
    f.extend(ip_len.to_be_bytes());
    f.extend([0, 0, 0, 0, 64, PROTOCOL_UDP, 0, 0]);
    f.extend(Version::GENERATOR.0);
    f.extend(Version::SINK.0);
    let sum = checksum(&f[IP..IP + 20]);
    f[24..26].copy_from_slice(&sum.to_be_bytes());
    // The checksum is left out, as IPv4 allows.
    for field in [DISCARD, DISCARD, ip_len - 20, 0] {
        f.extend(field.to_be_bytes());
    }
    f.resize(len, 0);
}

fn v6(f: &mut Vec<u8>, len: usize) {
    let payload = (len - UDP_V6) as u16;
    f.extend([0x60, 0, 0, 0]);
    f.extend(payload.to_be_bytes());
    f.extend([PROTOCOL_UDP, 64]);
    f.extend(Version::GENERATOR.1);
    f.extend(Version::SINK.1);
    for field in [DISCARD, DISCARD, payload, 0] {
        f.extend(field.to_be_bytes());
    }
    f.resize(len, 0);
    sum_v6(f);
}

/// Has a frame go to another address.
pub fn send_to(version: Version, frame: &mut [u8], address: u128) {
    match version {
        Version::V4 => {
            frame[DESTINATION_V4..][..4].copy_from_slice(&(address as u32).to_be_bytes());
            frame[24..26].fill(0);
            let sum = checksum(&frame[IP..IP + 20]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        Version::V6 => {
            frame[DESTINATION_V6..][..16].copy_from_slice(&address.to_be_bytes());
            sum_v6(frame);
        }
    }
}

/// The UDP checksum of an IPv6 frame, which it must have (RFC 8200 §8.1). What follows the headers is zero.
fn sum_v6(frame: &mut [u8]) {
    let at = UDP_V6 + 6;
    frame[at..at + 2].fill(0);
    let mut summed = [0; 32 + 8 + UDP];
    summed[..32].copy_from_slice(&frame[IP + 8..UDP_V6]);
    summed[34..36].copy_from_slice(&frame[IP + 4..IP + 6]);
    summed[39] = PROTOCOL_UDP;
    summed[40..].copy_from_slice(&frame[UDP_V6..UDP_V6 + UDP]);
    let sum = match checksum(&summed) {
        0 => u16::MAX,
        sum => sum,
    };
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// An address in one of the first `networks`, by chance.
pub fn any_address(version: Version, networks: u32, rng: &mut Rng) -> u128 {
    let network = version.network(rng.u32(..networks));
    network
        | match version {
            Version::V4 => u128::from(rng.u8(..)),
            Version::V6 => u128::from(rng.u16(..)) << 64 | 1,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frame of either version, in memory, for a frame of this length on the wire.
    fn of(version: Version, len: usize) -> Vec<u8> {
        frame(version, [1; 6], [2; 6], len - FCS)
    }

    #[test]
    fn frames_are_whole_packets() {
        for len in Version::V4.frame_lens() {
            let f = of(Version::V4, len);
            assert_eq!(f.len(), len - FCS);
            assert_eq!(checksum(&f[14..34]), 0, "the header's checksum");
            assert_eq!(usize::from(u16::from_be_bytes([f[16], f[17]])), f.len() - 14);
            assert_eq!(usize::from(u16::from_be_bytes([f[38], f[39]])), f.len() - 34);
        }
        for len in Version::V6.frame_lens() {
            let f = of(Version::V6, len);
            assert_eq!(f.len(), len - FCS);
            assert_eq!(usize::from(u16::from_be_bytes([f[18], f[19]])), f.len() - 54);
            assert_eq!(usize::from(u16::from_be_bytes([f[58], f[59]])), f.len() - 54);
        }
    }

    /// The sum over pseudo-header and packet that a receiver of UDP makes, RFC 8200 §8.1.
    fn received_v6(f: &[u8]) -> u16 {
        let len = (f.len() - 54) as u32;
        let pseudo = [&f[22..54], &len.to_be_bytes(), &[0, 0, 0, 17], &f[54..]].concat();
        checksum(&pseudo)
    }

    #[test]
    fn a_frame_for_another_address_is_whole() {
        let mut f = of(Version::V4, 64);
        send_to(Version::V4, &mut f, 0x0102_0304);
        assert_eq!((&f[30..34], checksum(&f[14..34])), (&[1, 2, 3, 4][..], 0));
        let mut rng = Rng::with_seed(1);
        for len in Version::V6.frame_lens() {
            let mut f = of(Version::V6, len);
            assert_eq!(received_v6(&f), 0, "{len}");
            let address = any_address(Version::V6, 1_000, &mut rng);
            send_to(Version::V6, &mut f, address);
            assert_eq!((&f[38..54], received_v6(&f)), (&address.to_be_bytes()[..], 0), "{len}");
        }
    }

    #[test]
    fn addresses_are_in_the_networks_that_are_asked_for() {
        let mut rng = Rng::with_seed(1);
        let mut networks = std::collections::BTreeSet::new();
        for _ in 0..1_000 {
            networks.insert(any_address(Version::V6, 4, &mut rng) >> 80);
            let v4 = any_address(Version::V4, 4, &mut rng);
            assert!((16 << 24..(16 << 24) + 1_024).contains(&v4), "{v4:x}");
        }
        assert_eq!(networks.len(), 4);
    }
}
