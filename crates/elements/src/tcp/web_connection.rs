//! A client's side of a TCP connection that asks a web server for one page, as WebGen keeps many.

use causeway_engine::prelude::*;
use causeway_packet::checksum::pseudo_header_v4;
use causeway_packet::wire::ipv4::{self, Ipv4Header};
use causeway_packet::wire::tcp::{self, Tcp, flag};

/// Port of the server.
pub(super) const HTTP: u16 = 80;
/// Length of the headers of a packet, in bytes.
pub(super) const HEADERS_LEN: usize = ipv4::HEADER_LEN + tcp::HEADER_LEN;
const TCP: u8 = 6;
const TTL: u8 = 250;
/// Receive window, in bytes.
const WINDOW: u16 = 60 * 1024;

/// What the server is asked for; the digits are those of a page.
const REQUEST: &[u8; 30] = b"GET /spec/0/0-0-0 HTTP/1.0\r\n\r\n";

/// A page: its directory, class and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page(pub [u8; 3]);

impl Page {
    fn request(self) -> [u8; REQUEST.len()] {
        let (mut text, Page([directory, class, number])) = (*REQUEST, self);
        for (place, digit) in [(10, directory), (12, directory), (14, class), (16, number)] {
            text[place] = b'0' + digit % 10;
        }
        text
    }
}

/// The fields of a packet that differ from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Addresses, source first.
    pub ip: [Ipv4Addr; 2],
    /// Ports, source first.
    pub ports: [u16; 2],
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    /// The page that is asked for, if one is.
    pub page: Option<Page>,
}

impl Segment {
    /// The packet, if a frame is to be had.
    pub fn packet(&self, identification: u16) -> Option<Packet> {
        let request = self.page.map(Page::request);
        let payload: &[u8] = request.as_ref().map_or(&[], |text| text);
        let mut bytes = [0; HEADERS_LEN + REQUEST.len()];
        let bytes = &mut bytes[..HEADERS_LEN + payload.len()];
        let (header, segment) = bytes.split_first_chunk_mut()?;
        let [src, dst] = self.ip;
        let total_len = (HEADERS_LEN + payload.len()) as u16;
        Ipv4Header {
            tos: 0,
            total_len,
            identification,
            flags_fragment: 0,
            ttl: TTL,
            protocol: TCP,
            src,
            dst,
        }
        .emit(header);
        segment[tcp::HEADER_LEN..].copy_from_slice(payload);
        segment[tcp::field::DATA_OFFSET.start] = (tcp::HEADER_LEN as u8 / 4) << 4;
        let length = segment.len() as u16;
        let mut fields = Tcp::new_checked(&mut *segment).ok()?;
        fields.set_src_port(self.ports[0]);
        fields.set_dst_port(self.ports[1]);
        fields.set_sequence(self.sequence);
        fields.set_acknowledgement(self.acknowledgement);
        fields.set_flags(self.flags);
        fields.set_window(WINDOW);
        fields.fill_checksum(pseudo_header_v4(src, dst, TCP, length));
        let mut packet = Packet::from_bytes(bytes)?;
        packet.set_network_headers(0, ipv4::HEADER_LEN);
        packet.set_dst_ip(dst.octets());
        Some(packet)
    }
}

/// Whether sequence number `a` is behind `b` (RFC 9293 §3.4).
fn is_behind(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// A connection. Numbers are sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    pub src: Ipv4Addr,
    pub port: u16,
    pub page: Page,
    /// The first, that of the SYN.
    first: u32,
    /// The first that the server has not acknowledged.
    unacknowledged: u32,
    next: u32,
    /// The next that is to come from the server.
    expected: u32,
    /// The server answered the SYN.
    connected: bool,
    got_fin: bool,
    sent_fin: bool,
    /// Something came that is to be acknowledged.
    owes: bool,
    /// How often it was sent again.
    pub resent: u8,
}

/// What a packet did to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It goes on.
    GoesOn,
    /// The server wants no more of it.
    Reset,
}

impl Connection {
    pub fn new(src: Ipv4Addr, port: u16, first: u32, page: Page) -> Connection {
        Connection {
            src,
            port,
            page,
            first,
            unacknowledged: first,
            next: first,
            expected: 0,
            connected: false,
            got_fin: false,
            sent_fin: false,
            owes: false,
            resent: 0,
        }
    }

    /// Takes note of a segment of the server with `len` bytes of payload.
    pub fn hear(&mut self, segment: &Tcp<&[u8]>, len: u32) -> Heard {
        let (sequence, flags) = (segment.sequence(), segment.flags());
        let behind = sequence.wrapping_add(len);
        let acknowledgement = segment.acknowledgement();
        let answers = flags & (flag::ACK | flag::RST) == flag::ACK
            && acknowledgement == self.first.wrapping_add(1)
            && !self.connected;
        if answers {
            self.next = acknowledgement;
            self.unacknowledged = acknowledgement;
            self.expected = sequence.wrapping_add(1);
            self.connected = true;
            self.owes = true;
        } else if len > 0 {
            self.owes = true;
            if is_behind(behind, self.expected) {
                self.expected = behind;
            }
        }
        if flags & flag::ACK != 0 && is_behind(acknowledgement, self.unacknowledged) {
            self.unacknowledged = acknowledgement;
        }
        if flags & flag::FIN != 0 && behind == self.expected && !self.got_fin {
            self.got_fin = true;
            self.expected = self.expected.wrapping_add(1);
            self.owes = true;
        }
        if flags & flag::RST != 0 { Heard::Reset } else { Heard::GoesOn }
    }

    /// Both sides have said that they send no more.
    pub fn is_over(&self) -> bool {
        self.got_fin && self.sent_fin
    }

    /// The segment that is due: the SYN, the request with the FIN until it is acknowledged, or an acknowledgement that is owed.
    pub fn segment(&mut self, server: Ipv4Addr) -> Option<Segment> {
        let asked = self.unacknowledged.wrapping_sub(self.first).wrapping_sub(1);
        let asks = self.connected && (asked as usize) < REQUEST.len();
        if self.connected && !self.owes && !asks {
            return None;
        }
        self.owes = false;
        let mut sequence = self.next.wrapping_add(self.sent_fin.into());
        if asks {
            sequence = self.first.wrapping_add(1);
            self.next = sequence.wrapping_add(REQUEST.len() as u32);
        }
        let flags = match (self.connected, asks, self.got_fin) {
            (false, ..) => flag::SYN,
            (true, true, _) => flag::ACK | flag::PSH | flag::FIN,
            (true, false, true) => flag::ACK | flag::FIN,
            (true, false, false) => flag::ACK,
        };
        self.sent_fin |= flags & flag::FIN != 0;
        Some(Segment {
            ip: [self.src, server],
            ports: [self.port, HTTP],
            sequence,
            acknowledgement: if self.connected { self.expected } else { 0 },
            flags,
            page: asks.then_some(self.page),
        })
    }
}
