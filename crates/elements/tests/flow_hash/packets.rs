//! Random packets of all kinds that a flow can be made of.

use fastrand::Rng;

/// What is behind the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tcp,
    Udp,
    /// Another protocol with ports, or what is taken for ports: UDP-Lite, SCTP, DCCP, ESP, AH.
    Ports,
    /// Any protocol that the kernel does not look into, MPLS among them.
    Opaque,
    /// Transport header cut short.
    Short,
    Echo,
    /// An ICMP error, about a packet that may be cut short.
    Error,
    /// A fragment: the first, one in the middle, the last.
    Fragment,
    /// IPv4 options, IPv6 extension headers.
    Options,
    /// A packet in the packet, one to four deep, perhaps cut short.
    Tunnel,
    /// A packet in GRE, with any of its options.
    Gre,
    /// Something else in GRE, or a GRE header of another kind.
    StrangeGre,
}

impl Kind {
    pub const ALL: [Kind; 12] = [
        Kind::Tcp,
        Kind::Udp,
        Kind::Ports,
        Kind::Opaque,
        Kind::Short,
        Kind::Echo,
        Kind::Error,
        Kind::Fragment,
        Kind::Options,
        Kind::Tunnel,
        Kind::Gre,
        Kind::StrangeGre,
    ];

    /// Whether such a packet may be one that only the kernel knows the hash of.
    pub fn may_be_left(self) -> bool {
        self == Kind::StrangeGre
    }
}

/// Makes packets.
pub struct Packets(Rng);

/// A payload and the protocol it is of.
type Payload = (u8, Vec<u8>);

impl Packets {
    pub fn new(seed: u64) -> Self {
        Packets(Rng::with_seed(seed))
    }

    /// An IPv4 packet to the route with many paths.
    pub fn v4(&mut self, kind: Kind) -> Vec<u8> {
        let mut packet = match kind {
            Kind::Fragment => {
                let payload = if self.0.bool() { self.leaf() } else { self.error4() };
                let mut packet = self.v4_of(payload);
                packet[6..8].copy_from_slice(&self.fragment().to_be_bytes());
                packet
            }
            Kind::Options => {
                let (protocol, payload) = self.leaf();
                let options = vec![1; 4 * self.0.usize(1..=10)];
                self.v4_with(protocol, &options, &payload)
            }
            Kind::Error => {
                let payload = self.error4();
                self.v4_of(payload)
            }
            Kind::Echo => {
                let payload = (1, [&[8, 0, 0, 0][..], &self.bytes(20)].concat());
                self.v4_of(payload)
            }
            _ => {
                let payload = self.payload(kind);
                self.v4_of(payload)
            }
        };
        let to = 10 << 24 | 64 << 16 | self.0.u32(..) & 0x003f_ffff;
        packet[16..20].copy_from_slice(&to.to_be_bytes());
        checksum(&mut packet);
        packet
    }

    /// An IPv6 packet to the route with many paths.
    pub fn v6(&mut self, kind: Kind) -> Vec<u8> {
        let payload = match kind {
            Kind::Fragment => {
                let leaf = self.leaf();
                self.fragmented(leaf)
            }
            Kind::Options => self.extended(),
            Kind::Error => self.error6(),
            Kind::Echo => (58, [&[128, 0, 0, 0][..], &self.bytes(20)].concat()),
            _ => self.payload(kind),
        };
        let mut packet = self.v6_of(payload);
        packet[24..40].copy_from_slice(&self.address6(0x8000));
        packet
    }

    /// Cuts a packet short or changes some octets.
    pub fn damage(&mut self, packet: &mut Vec<u8>) {
        packet.truncate(self.0.usize(0..=packet.len()));
        for _ in 0..self.0.usize(0..4) {
            if !packet.is_empty() {
                let at = self.0.usize(0..packet.len());
                packet[at] = self.0.u8(..);
            }
        }
    }

    fn payload(&mut self, kind: Kind) -> Payload {
        match kind {
            Kind::Tcp => (6, self.bytes(20)),
            Kind::Udp => (17, self.bytes(16)),
            Kind::Ports => (*self.0.choice(&[136, 132, 33, 50, 51]).unwrap(), self.bytes(24)),
            Kind::Opaque => {
                (*self.0.choice(&[2, 46, 89, 103, 112, 115, 137, 200, 253]).unwrap(), self.bytes(24))
            }
            Kind::Short => {
                let len = self.0.usize(0..8);
                (*self.0.choice(&[6, 17, 50, 51, 4, 41]).unwrap(), self.bytes(len))
            }
            Kind::Tunnel => self.tunnel(),
            Kind::Gre => (47, self.gre()),
            Kind::StrangeGre => (47, self.strange_gre()),
            _ => self.leaf(),
        }
    }

    /// A payload with nothing in it.
    fn leaf(&mut self) -> Payload {
        let kind = *self.0.choice(&[Kind::Tcp, Kind::Udp, Kind::Ports, Kind::Opaque, Kind::Short]).unwrap();
        match kind {
            Kind::Short => (17, self.bytes(3)),
            kind => self.payload(kind),
        }
    }

    fn inner(&mut self) -> (u8, Vec<u8>) {
        let kind = *self.0.choice(&Kind::ALL[..9]).unwrap();
        let mut inner = if self.0.bool() { (4, self.v4(kind)) } else { (41, self.v6(kind)) };
        match self.0.u8(..12) {
            0 => inner.1.truncate(self.0.usize(0..inner.1.len())),
            1 if inner.0 == 4 => inner.1[0] = 0x43,
            2 => inner.1[1..4].fill(0),
            _ => {}
        }
        inner
    }

    fn tunnel(&mut self) -> Payload {
        let mut payload = self.inner();
        for _ in 0..self.0.usize(0..4) {
            payload = match self.0.u8(..3) {
                0 => (4, self.v4_of(payload)),
                1 => (41, self.v6_of(payload)),
                _ => {
                    let ethertype = if payload.0 == 4 { 0x0800 } else { 0x86dd };
                    (47, self.gre_with(ethertype, payload.1))
                }
            };
            if payload.0 == 47 {
                payload = (4, self.v4_of(payload));
            }
        }
        payload
    }

    fn gre(&mut self) -> Vec<u8> {
        let (protocol, inner) = self.inner();
        self.gre_with(if protocol == 4 { 0x0800 } else { 0x86dd }, inner)
    }

    fn gre_with(&mut self, ethertype: u16, inner: Vec<u8>) -> Vec<u8> {
        let flags = self.0.u16(..) & 0xb000;
        let optional = 4 * (flags & 0xb000).count_ones() as usize;
        [&flags.to_be_bytes()[..], &ethertype.to_be_bytes(), &self.bytes(optional), &inner].concat()
    }

    fn strange_gre(&mut self) -> Vec<u8> {
        let ethertype = *self.0.choice(&[0x6558, 0x8847, 0x880b, 0x0806, 0x8100, 0x0800]).unwrap();
        let mut packet = self.gre_with(ethertype, Vec::new());
        packet[1] = self.0.u8(..4);
        packet[0] |= self.0.u8(..) & 0x40;
        packet.extend(self.bytes(40));
        packet.truncate(self.0.usize(0..packet.len()));
        packet
    }

    fn error4(&mut self) -> Payload {
        let leaf = self.leaf();
        let inner = self.v4_of(leaf);
        let kind = *self.0.choice(&[3, 4, 5, 11, 12, 0, 8, 13]).unwrap();
        let len = self.0.usize(10..40).min(inner.len());
        (1, [&[kind, 0, 0, 0][..], &self.bytes(4), &inner[..len]].concat())
    }

    fn error6(&mut self) -> Payload {
        let leaf = self.leaf();
        let inner = self.v6_of(leaf);
        let kind = *self.0.choice(&[1, 2, 3, 4, 128, 129]).unwrap();
        let len = self.0.usize(30..60).min(inner.len());
        (58, [&[kind, 0, 0, 0][..], &self.bytes(4), &inner[..len]].concat())
    }

    /// Offset and flag of a fragment.
    fn fragment(&mut self) -> u16 {
        *self.0.choice(&[0x2000, 0x2010, 0x0010]).unwrap()
    }

    fn fragmented(&mut self, (protocol, payload): Payload) -> Payload {
        let offset = match self.fragment() {
            0x2000 => 1u16,
            0x2010 => 0x81,
            _ => 0x80,
        };
        let header = [&[protocol, 0][..], &offset.to_be_bytes(), &self.bytes(4)].concat();
        (44, [header, payload].concat())
    }

    /// Extension headers in any number, with padding for options; hop-by-hop options may only be the first.
    fn extended(&mut self) -> Payload {
        let mut payload = if self.0.u8(..4) == 0 {
            let leaf = self.leaf();
            self.fragmented(leaf)
        } else {
            self.leaf()
        };
        for _ in 0..self.0.usize(1..4) {
            let kind = *self.0.choice(&[60, 43]).unwrap();
            payload = (kind, self.extension(payload));
        }
        if self.0.bool() { (0, self.extension(payload)) } else { payload }
    }

    fn extension(&mut self, (protocol, payload): Payload) -> Vec<u8> {
        let len = self.0.u8(..3);
        let option = 8 * (usize::from(len) + 1) - 4;
        // One option that nobody knows, to be skipped (RFC 8200 §4.2, RFC 4727); as a routing header, of no known type.
        [&[protocol, len, 0x1e, option as u8][..], &vec![0; option], &payload].concat()
    }

    fn v4_of(&mut self, (protocol, payload): Payload) -> Vec<u8> {
        self.v4_with(protocol, &[], &payload)
    }

    fn v4_with(&mut self, protocol: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let header_len = 20 + options.len();
        let mut packet = vec![0x40 | (header_len / 4) as u8, 0];
        packet.extend(((header_len + payload.len()) as u16).to_be_bytes());
        packet.extend([self.0.u8(..), self.0.u8(..), 0, 0, 64, protocol, 0, 0, 11, self.0.u8(..)]);
        packet.extend([self.0.u8(..), self.0.u8(1..255), 10, 64, self.0.u8(..), self.0.u8(..)]);
        packet.extend(options);
        packet.extend(payload);
        checksum(&mut packet);
        packet
    }

    fn v6_of(&mut self, (protocol, payload): Payload) -> Vec<u8> {
        let label = if self.0.bool() { self.0.u32(..0x10_0000) } else { 0 };
        let mut packet = (0x6000_0000 | label).to_be_bytes().to_vec();
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([protocol, 64]);
        packet.extend(self.address6(0x4000));
        packet.extend(self.address6(0x4000));
        packet.extend(payload);
        packet
    }

    /// An address of 2001:db8::/32 with these bits in the third group.
    fn address6(&mut self, group: u16) -> [u8; 16] {
        let mut address: [u8; 16] = std::array::from_fn(|_| self.0.u8(..));
        let third = group | self.0.u16(..) & 0x3fff;
        address[..6].copy_from_slice(&[0x20, 1, 0x0d, 0xb8, (third >> 8) as u8, third as u8]);
        address
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.0.u8(..)).collect()
    }
}

/// Writes the checksum of an IPv4 header (RFC 791 §3.1).
fn checksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let header = &packet[..usize::from(packet[0] & 0x0f) * 4];
    let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}
