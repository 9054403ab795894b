//! ARPPrint.

use super::lines::{self, Lines};
use crate::out_file::Losses;
use causeway_engine::prelude::*;
use causeway_engine::value::{Ether, Filename};
use causeway_packet::wire::arp;
use causeway_packet::wire::ethernet::{self, ether_type};
use std::fmt::Write as _;

pub(crate) static SPEC: Spec = Spec {
    name: "ARPPrint",
    category: "printing",
    summary: "prints ARP packets for people to read",
    doc: "Prints a line for each ARP packet whose network header is marked (RFC 826), much as tcpdump(1) does: \
          `1.000000: arp who-has 10.0.0.2 tell 10.0.0.1`. Packets without a marked header, and those that map no IPv4 \
          addresses, pass unprinted.",
    args: Style::ARGS,
    handlers: Style::HANDLERS,
    example: "InfiniteSource(LIMIT 1, DATA \\<0001080006040001 020000000001 0a000001 000000000000 0a000002>, STOP true) \
              -> MarkIPHeader -> ARPPrint(arp) -> Discard;",
    see: &["Print", "IPPrint", "CheckARPHeader"],
    tells: |_| true,
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Style {
        label: String = optional("LABEL", "string", "how the line begins; default nothing"), or(String::new());
        timestamp: bool = keyword("TIMESTAMP", "boolean", "whether to print the packet's timestamp; default true"), or(true);
        ether: bool = keyword("ETHER", "boolean", "whether to print the Ethernet addresses; default false"), or(false);
        active: bool = keyword("ACTIVE", "boolean", "whether to print at all; default true"), or(true), live("active", "whether it prints");
        filename: Option<Filename> = keyword("OUTFILE", "file name", "where to print, an existing file anew; a hot swap goes on in the same file; default standard error"), or(None);
    }
}

struct ArpPrint {
    style: Style,
    lines: Lines,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let style = Style::configure(conf);
    conf.finish()?;
    let lines = Lines::to(style.filename.as_ref(), Losses::of(conf)?);
    Ok(Box::new(ArpPrint { style, lines }))
}

/// Trailer encapsulation, an old way to carry IP (RFC 893).
const TRAILER: u16 = 0x1000;

/// A header's fields; those of the addresses are as they are for IPv4 over Ethernet.
struct Header {
    hardware: u16,
    protocol: u16,
    hardware_len: u8,
    protocol_len: u8,
    operation: u16,
    sender: (Ether, Ipv4Addr),
    target: (Ether, Ipv4Addr),
}

impl Header {
    fn of(bytes: &[u8; arp::PACKET_LEN]) -> Header {
        let &[h0, h1, p0, p1, hardware_len, protocol_len, o0, o1, ref addresses @ ..] = bytes;
        let pair = |at: usize| {
            let pair: [u8; 10] = std::array::from_fn(|i| addresses[at + i]);
            let [a, b, c, d, e, f, w, x, y, z] = pair;
            (Ether([a, b, c, d, e, f]), Ipv4Addr::new(w, x, y, z))
        };
        Header {
            hardware: u16::from_be_bytes([h0, h1]),
            protocol: u16::from_be_bytes([p0, p1]),
            hardware_len,
            protocol_len,
            operation: u16::from_be_bytes([o0, o1]),
            sender: pair(0),
            target: pair(10),
        }
    }

    fn maps_ipv4(&self) -> bool {
        matches!(self.protocol, ether_type::IPV4 | TRAILER) && self.protocol_len == 4 && self.hardware_len > 0
    }

    /// Appends what it says. Writing to a string cannot fail.
    fn write(&self, text: &mut String) {
        let ((sender, sender_ip), (target, target_ip)) = (self.sender, self.target);
        if self.protocol == TRAILER {
            *text += "trailer-";
        }
        let _ = match self.operation {
            arp::REQUEST if target == Ether::default() => {
                write!(text, "arp who-has {target_ip} tell {sender_ip}")
            }
            arp::REQUEST => write!(text, "arp who-has {target_ip} ({target}) tell {sender_ip}"),
            arp::REPLY => write!(text, "arp reply {sender_ip} is-at {sender}"),
            3 => write!(text, "rarp who-is {target} tell {sender}"),
            4 => write!(text, "rarp reply {target} at {target_ip}"),
            8 => write!(text, "invarp who-is {target} tell {sender}"),
            9 => write!(text, "invarp reply {target} at {target_ip}"),
            other => write!(text, "arp-#{other}"),
        };
        if self.hardware != arp::HARDWARE_ETHERNET {
            let _ = write!(text, "hardware #{}", self.hardware);
        }
    }
}

impl Style {
    /// Appends the packet's line, if it has one.
    fn line(&self, packet: &Packet, text: &mut String) {
        let Some(bytes) = packet.network_header() else { return };
        let header = bytes.first_chunk().map(Header::of);
        // One of another protocol that is cut is printed as any that is cut.
        if header.as_ref().is_some_and(|h| !h.maps_ipv4()) {
            return;
        }
        lines::begin(text, &self.label, self.timestamp.then(|| packet.timestamp_ns()));
        if let Some(addresses) = link(packet).filter(|_| self.ether) {
            lines::ethernet(text, &addresses);
        }
        match header {
            Some(header) => header.write(text),
            None => {
                let _ = write!(text, "truncated-arp ({})", bytes.len());
            }
        }
        text.push('\n');
    }
}

/// The addresses of the Ethernet header in front of the network header: the one that is marked, else at the packet's start.
fn link(packet: &Packet) -> Option<[u8; 12]> {
    let (network, mac) = (packet.network_distance()?, packet.mac_distance());
    if network - mac.unwrap_or(0) < ethernet::HEADER_LEN as i32 {
        return None;
    }
    let header = match mac {
        Some(..0) => packet.stripped_mac_header(),
        Some(_) => packet.mac_header(),
        None => Some(packet.data()),
    };
    header?.first_chunk().copied()
}

impl Element for ArpPrint {
    fn initialize(&mut self, _cx: &mut Cx<'_>) -> Result<(), Error> {
        self.lines.open()
    }

    fn commit(&mut self, cx: &mut Cx<'_>) {
        self.lines.commit(cx);
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        if self.style.active {
            self.lines.write(batch, |packet, text| self.style.line(packet, text));
        }
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<ArpPrint>() {
            self.lines.go_on(&mut old.lines);
        }
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    fn arp(hardware: u8, protocol: u16, operation: u8, target: u8) -> Packet {
        let protocol = protocol.to_be_bytes();
        let head = [0, hardware, protocol[0], protocol[1], 6, 4, 0, operation];
        let sender = [2, 0, 0, 0, 0, 0xab, 10, 0, 0, 1];
        let target = [target, target, target, target, target, target, 10, 0, 0, 2];
        let mut p = packet(&[&[7; 12][..], &[8, 6], &head, &sender, &target].concat());
        p.set_network_header(14);
        p.set_timestamp_ns(1_500_000_000);
        p
    }

    fn line(config: &str, packet: &Packet) -> String {
        let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
        let mut text = String::new();
        h.element::<ArpPrint>().unwrap().style.line(packet, &mut text);
        text
    }

    #[test]
    fn operations_have_their_words() {
        for (operation, target, text) in [
            (1, 0, "arp who-has 10.0.0.2 tell 10.0.0.1"),
            (1, 1, "arp who-has 10.0.0.2 (01-01-01-01-01-01) tell 10.0.0.1"),
            (2, 1, "arp reply 10.0.0.1 is-at 02-00-00-00-00-AB"),
            (3, 1, "rarp who-is 01-01-01-01-01-01 tell 02-00-00-00-00-AB"),
            (4, 1, "rarp reply 01-01-01-01-01-01 at 10.0.0.2"),
            (8, 1, "invarp who-is 01-01-01-01-01-01 tell 02-00-00-00-00-AB"),
            (9, 1, "invarp reply 01-01-01-01-01-01 at 10.0.0.2"),
            (77, 1, "arp-#77"),
        ] {
            assert_eq!(line("TIMESTAMP false", &arp(1, 0x800, operation, target)), format!("{text}\n"));
        }
        let other = line("TIMESTAMP false", &arp(6, TRAILER, 2, 1));
        assert_eq!(other, "trailer-arp reply 10.0.0.1 is-at 02-00-00-00-00-ABhardware #6\n");
        assert_eq!(line("", &arp(1, 0x86dd, 1, 0)), "");
    }

    #[test]
    fn what_is_asked_for_is_in_front() {
        let p = arp(1, 0x800, 1, 0);
        let says = "arp who-has 10.0.0.2 tell 10.0.0.1\n";
        assert_eq!(line("x", &p), format!("x: 1.500000: {says}"));
        let ether = "07-07-07-07-07-07 > 07-07-07-07-07-07: ";
        assert_eq!(line("ETHER true, TIMESTAMP no", &p), format!("{ether}{says}"));
        let mut bare = arp(1, 0x800, 1, 0);
        bare.pull(14).unwrap();
        assert_eq!(line("ETHER true, TIMESTAMP no", &bare), says, "unmarked, and not at the front any more");
        let mut cut = arp(1, 0x800, 1, 0);
        cut.truncate(14 + 10);
        assert_eq!(line("TIMESTAMP no", &cut), "truncated-arp (10)\n");
        assert_eq!(line("", &packet(&[0; 60])), "", "unmarked");
    }

    #[test]
    fn lines_go_to_the_file_while_it_is_active() {
        let path = std::env::temp_dir().join(format!("causeway-arp-print-{}", std::process::id()));
        let mut h = Harness::new(&SPEC, &format!("OUTFILE {}", path.display()), 1, 1).unwrap();
        h.push(0, arp(1, 0x800, 1, 0));
        h.write("active", "false").unwrap();
        h.push(0, arp(1, 0x800, 1, 0));
        assert_eq!((h.take(0).len(), h.read("active").unwrap()), (2, "false".to_owned()));
        h.assert_balanced();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "1.500000: arp who-has 10.0.0.2 tell 10.0.0.1\n");
    }
}
