//! IPPrint.

use super::contents::{self, Contents};
use super::ip_text;
use super::lines::{self, Lines};
use crate::out_file::Losses;
use causeway_engine::prelude::*;
use causeway_engine::value::Filename;
use causeway_packet::wire::{Ipv4, ethernet};
use std::fmt::Write as _;

pub(crate) static SPEC: Spec = Spec {
    name: "IPPrint",
    category: "printing",
    summary: "prints IPv4 packets for people to read",
    ports: "1/1",
    processing: "a/a",
    doc: "Prints a line for each IPv4 packet whose network header is marked, much as tcpdump(1) does: timestamp, \
          addresses, ports, what the transport header says, and the fragment, such as \
          `1.000000000: 10.0.0.1.7 > 10.0.0.2.9: udp 77`. For TCP, `5:12(7,47,47)` are sequence numbers, length \
          of the payload, of the packet in the router, and of the IP packet. Packets without a marked header pass \
          unprinted, so CheckIPHeader or MarkIPHeader must come before. It is for looking at a few packets; each \
          one costs microseconds.",
    args: Style::ARGS,
    handlers: Style::HANDLERS,
    example: "FromDump(trace.pcap, STOP true, FORCE_IP true) -> IPPrint(in, TTL true) -> Discard;",
    see: &["Print", "CheckIPHeader"],
    tells: |_| true,
    build,
    ..Spec::DEFAULT
};

/// Bytes on a line, and in a group on it.
const HEX_LINE: (usize, usize) = (24, 4);
const ASCII_LINE: (usize, usize) = (48, 8);

settings! {
    struct Style {
        label: String = optional("LABEL", "string", "how the line begins; default nothing"), or(String::new());
        contents: Contents = keyword("CONTENTS", "NONE, HEX or ASCII", "whether and how to print the whole packet; default NONE"), or(Contents::None);
        payload: Contents = keyword("PAYLOAD", "NO, HEX or ASCII", "the same for what is behind the transport header; default NO"), or(Contents::None);
        max_length: i32 = keyword("MAXLENGTH", "bytes", "most bytes of those; negative prints all; default 1500"), or(1_500);
        nbytes: Option<i32> = keyword("NBYTES", "bytes", "the same as MAXLENGTH"), or(None);
        ether: bool = keyword("ETHER", "boolean", "whether to print the Ethernet addresses; default false"), or(false);
        id: bool = keyword("ID", "boolean", "whether to print the identification; default false"), or(false);
        timestamp: bool = keyword("TIMESTAMP", "boolean", "whether to print the packet's timestamp; default true"), or(true);
        paint: bool = keyword("PAINT", "boolean", "whether to print the paint annotation; default false"), or(false);
        tos: bool = keyword("TOS", "boolean", "whether to print the type of service; default false"), or(false);
        ttl: bool = keyword("TTL", "boolean", "whether to print the time to live; default false"), or(false);
        swap: bool = keyword("SWAP", "boolean", "whether numbers of echo messages are in network order; default true"), or(true);
        length: bool = keyword("LENGTH", "boolean", "whether to print the length of the IP packet; default false"), or(false);
        aggregate: bool = keyword("AGGREGATE", "boolean", "whether to print the aggregate annotation; default false"), or(false);
        filename: Option<Filename> = keyword("OUTFILE", "file name", "where to print, an existing file anew; a hot swap goes on in the same file; default standard error"), or(None);
        _channel: String = keyword("CHANNEL", "word", "accepted for compatibility"), or(String::new());
        active: bool = keyword("ACTIVE", "boolean", "whether to print at all; default true"), or(true), live("active", "whether it prints");
    }
}

struct IpPrint {
    style: Style,
    lines: Lines,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let style = Style::configure(conf);
    if style.contents != Contents::None && style.payload != Contents::None {
        conf.error("specify at most one of PAYLOAD and CONTENTS");
    }
    conf.finish()?;
    let lines = Lines::to(style.filename.as_ref(), Losses::of(conf)?);
    Ok(Box::new(IpPrint { style, lines }))
}

impl Style {
    /// Appends the packet's line. Writing to a string cannot fail.
    fn line(&self, packet: &Packet, text: &mut String) {
        let Some(bytes) = packet.network_header() else { return };
        self.annotations(packet, text);
        match Ipv4::new_quoted(bytes) {
            Ok(ip) => {
                self.ip_fields(&ip, text);
                ip_text::packet(text, ip, packet.len(), self.swap);
                let behind = bytes.get(ip.header_len()..).unwrap_or_default();
                match self.payload {
                    Contents::None => self.bytes(self.contents, packet.data(), text),
                    payload => self.bytes(payload, ip_text::payload(&ip, behind), text),
                }
            }
            Err(_) => *text += "truncated-ip",
        }
        text.push('\n');
    }

    fn annotations(&self, packet: &Packet, text: &mut String) {
        let &Style { timestamp, aggregate, paint, ether, .. } = self;
        lines::begin(text, &self.label, timestamp.then(|| packet.timestamp_ns()));
        if aggregate {
            let _ = write!(text, "#{}", packet.anno_u32(Anno::AGGREGATE.offset));
        }
        if paint {
            let _ = write!(text, "{}{}", if aggregate { "." } else { "paint " }, packet.paint());
        }
        if aggregate || paint {
            *text += ": ";
        }
        let link = packet.mac_header().or_else(|| packet.stripped_mac_header());
        let whole = link.filter(|header| ether && header.len() >= ethernet::HEADER_LEN);
        if let Some(addresses) = whole.and_then(|header| header.first_chunk()) {
            lines::ethernet(text, addresses);
        }
    }

    fn ip_fields(&self, ip: &Ipv4<&[u8]>, text: &mut String) {
        let fields = [
            (self.id, "id", ip.identification()),
            (self.ttl, "ttl", ip.ttl().into()),
            (self.tos, "tos", ip.tos().into()),
            (self.length, "length", ip.total_len()),
        ];
        for (_, name, value) in fields.into_iter().filter(|(wanted, ..)| *wanted) {
            let _ = write!(text, "{name} {value} ");
        }
    }

    fn bytes(&self, contents: Contents, bytes: &[u8], text: &mut String) {
        let most = usize::try_from(self.nbytes.unwrap_or(self.max_length)).unwrap_or(usize::MAX);
        let (line, group) = match contents {
            Contents::None => return,
            Contents::Hex => HEX_LINE,
            Contents::Ascii => ASCII_LINE,
        };
        for (i, &byte) in bytes.iter().take(most).enumerate() {
            if i % line == 0 {
                *text += "\n  ";
            } else if i % group == 0 {
                text.push(' ');
            }
            match contents {
                Contents::Ascii => text.push(contents::printable(byte)),
                _ => contents::hex(text, byte),
            }
        }
    }
}

impl Element for IpPrint {
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
        if let Some(old) = old.downcast_mut::<IpPrint>() {
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
    use causeway_engine::harness::Harness;
    use proptest::prelude::*;

    /// A packet from 10.0.0.1 to 10.0.0.2 with network header at its start.
    fn ip(protocol: u8, fragment: u16, behind: &[u8]) -> Packet {
        let len = (20 + behind.len() as u16).to_be_bytes();
        let fragment = fragment.to_be_bytes();
        let head = [0x45, 3, len[0], len[1], 0, 9, fragment[0], fragment[1], 64, protocol, 0, 0];
        let mut packet =
            Packet::from_bytes(&[&head[..], &[10, 0, 0, 1, 10, 0, 0, 2], behind].concat()).unwrap();
        packet.set_network_header(0);
        packet
    }

    fn line(config: &str, packet: &Packet) -> String {
        let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
        let mut text = String::new();
        h.element::<IpPrint>().unwrap().style.line(packet, &mut text);
        text
    }

    fn plain(packet: &Packet) -> String {
        line("TIMESTAMP false", packet).trim_end().to_owned()
    }

    const UDP: &[u8] = b"\0\x07\0\x09\0\x0a\0\0ab";

    #[test]
    fn transports_have_their_words() {
        let tcp = b"\0\x50\x04\0\0\0\0\x05\0\0\0\x09\x50\x12\x01\0\0\0\0\0abc";
        for (protocol, behind, text) in [
            (17, UDP, "10.0.0.1.7 > 10.0.0.2.9: udp 10"),
            (17, &UDP[..6], "10.0.0.1.7 > 10.0.0.2.9: truncated-udp"),
            (17, &UDP[..3], "10.0.0.1 > 10.0.0.2: truncated-udp"),
            (6, tcp, "10.0.0.1.80 > 10.0.0.2.1024: S 5:9(4,43,43) ack 9 win 256"),
            (6, &tcp[..14], "10.0.0.1.80 > 10.0.0.2.1024: S 5:0(-5,34,34) ack 9truncated-tcp"),
            (6, &tcp[..9], "10.0.0.1.80 > 10.0.0.2.1024: truncated-tcp"),
            (50, b"x", "10.0.0.1 > 10.0.0.2: ip-proto-50"),
            (1, b"\x08\0\0\0\x12\x34\0\x01", "10.0.0.1 > 10.0.0.2: icmp echo (4660, 1)"),
            (1, b"\0\0\0\0\0\x01\0\x02", "10.0.0.1 > 10.0.0.2: icmp echo-reply (1, 2)"),
            (1, b"\x08\0\0\0", "10.0.0.1 > 10.0.0.2: icmp echo truncated-icmp"),
            (1, b"\x0b\x01", "10.0.0.1 > 10.0.0.2: icmp timeexceeded reassembly"),
            (1, b"\x0b\x07", "10.0.0.1 > 10.0.0.2: icmp timeexceeded code 7"),
            (1, b"\x63\0", "10.0.0.1 > 10.0.0.2: icmp type 99"),
            (1, b"\x03", "10.0.0.1 > 10.0.0.2: truncated-icmp"),
        ] {
            assert_eq!(plain(&ip(protocol, 0, behind)), text);
        }
    }

    #[test]
    fn unreachables_quote_their_packet() {
        let quoted = ip(17, 0, UDP);
        for (code, rest, text) in [
            (0, &[][..], "icmp 10.0.0.2 unreachable net"),
            (2, &[], "icmp 10.0.0.2 unreachable protocol udp"),
            (3, &[], "icmp 10.0.0.2 unreachable port udp/9"),
            (4, &[5, 0xdc], "icmp 10.0.0.2 unreachable needfrag (mtu 1500)"),
            (77, &[], "icmp 10.0.0.2 unreachable code 77"),
        ] {
            let mut message = vec![3, code, 0, 0, 0, 0, 0, 0];
            message[6..6 + rest.len()].copy_from_slice(rest);
            message.extend(quoted.data());
            assert_eq!(plain(&ip(1, 0, &message)), format!("10.0.0.1 > 10.0.0.2: {text}"));
        }
        let text = "10.0.0.1 > 10.0.0.2: icmp unreachable host truncated-icmp";
        assert_eq!(plain(&ip(1, 0, &[3, 1, 0, 0, 0, 0, 0, 0, 0x45])), text);
    }

    #[test]
    fn fragments_say_where_they_belong() {
        assert_eq!(plain(&ip(17, 0x2000, UDP)), "10.0.0.1.7 > 10.0.0.2.9: udp 10 (frag 9:10@0+)");
        assert_eq!(plain(&ip(17, 3, UDP)), "10.0.0.1 > 10.0.0.2: udp (frag 9:10@24)");
        assert_eq!(plain(&ip(1, 3, UDP)), "10.0.0.1 > 10.0.0.2: icmp (frag 9:10@24)");
    }

    #[test]
    fn fields_are_printed_when_they_are_wanted() {
        let mut packet =
            Packet::from_bytes(&[b"abcdefABCDEF\x08\0", ip(17, 0, UDP).data()].concat()).unwrap();
        packet.set_mac_header(0);
        packet.set_network_header(14);
        packet.set_timestamp_ns(5_000_000_006);
        packet.set_paint(7);
        let udp = "10.0.0.1.7 > 10.0.0.2.9: udp 10\n";
        for (config, front) in [
            ("", "5.000000006: "),
            ("x, TIMESTAMP no, ID yes, TTL yes, TOS yes, LENGTH yes", "x: id 9 ttl 64 tos 3 length 30 "),
            ("TIMESTAMP no, PAINT yes", "paint 7: "),
            ("TIMESTAMP no, PAINT yes, AGGREGATE yes", "#0.7: "),
            ("TIMESTAMP no, ETHER yes", "41-42-43-44-45-46 > 61-62-63-64-65-66: "),
        ] {
            assert_eq!(line(config, &packet), format!("{front}{udp}"), "{config}");
        }
        packet.pull(14).unwrap();
        assert!(line("ETHER yes", &packet).contains("41-42-43-44-45-46 > 61-"));
    }

    #[test]
    fn contents_follow_on_lines_of_their_own() {
        let packet = ip(17, 0, UDP);
        let hex = "\n  4503001e 00090000 40110000 0a000001 0a000002 00070009\n  000a0000 6162\n";
        assert!(line("CONTENTS HEX", &packet).ends_with(hex));
        assert!(line("PAYLOAD ascii", &packet).ends_with("udp 10\n  ab\n"));
        assert!(line("CONTENTS ASCII, MAXLENGTH 10", &packet).ends_with("\n  E....... @.\n"));
        let errors = Harness::new(&SPEC, "CONTENTS HEX, PAYLOAD HEX", 1, 1).err().unwrap();
        assert_eq!(errors, ["specify at most one of PAYLOAD and CONTENTS"]);
    }

    #[test]
    fn packets_pass_and_lines_go_to_the_file() {
        let path = std::env::temp_dir().join(format!("causeway-ip-print-{}", std::process::id()));
        let mut h = Harness::new(&SPEC, &format!("a, OUTFILE {}", path.display()), 1, 1).unwrap();
        h.push_all(0, [ip(17, 0, UDP), Packet::from_bytes(b"unmarked").unwrap()]);
        h.write("active", "false").unwrap();
        h.push(0, ip(17, 0, UDP));
        assert_eq!(h.take(0).len(), 3);
        h.assert_balanced();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "a: 0.000000: 10.0.0.1.7 > 10.0.0.2.9: udp 10\n");
    }

    proptest! {
        #[test]
        fn any_bytes_do(
            bytes in proptest::collection::vec(any::<u8>(), 0..90),
            protocol in prop_oneof![Just(1u8), Just(6), Just(17), any::<u8>()],
            header in any::<bool>(),
        ) {
            let mut packet = Packet::from_bytes(&bytes).unwrap();
            if header && bytes.len() > 20 {
                packet.data_mut()[0] = 0x45;
                packet.data_mut()[9] = protocol;
            }
            packet.set_network_header(0);
            let text = line("PAYLOAD HEX, ETHER true", &packet);
            prop_assert!(text.ends_with('\n') && text.is_ascii());
        }
    }
}
