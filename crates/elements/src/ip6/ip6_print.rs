//! IP6Print.

use super::written::Written;
use crate::printing::{Lines, contents};
use causeway_engine::prelude::*;
use causeway_packet::wire::ipv6::{HEADER_LEN, field};
use std::fmt::Write as _;
use std::ops::Range;

pub(crate) static SPEC: Spec = Spec {
    name: "IP6Print",
    category: "ip6",
    summary: "prints IPv6 packets in words",
    doc: "Prints a line to standard error for each packet whose IPv6 header is marked, such as \
          `in: 2001:db8::1 -> 2001:db8::2 plen 20, next 17, hlim 64`. With CONTENTS a second line has its first NBYTES \
          bytes, in groups of four, 24 a line. Of other packets it says that they are none. It is for looking at a few \
          packets.",
    args: Style::ARGS,
    example: "InfiniteSource(LIMIT 2, STOP true) -> UDPIP6Encap(2001:db8::1, 53, 2001:db8::2, 53) \
              -> IP6Print(in, CONTENTS true, NBYTES 40) -> Discard;",
    see: &["IPPrint", "Print"],
    tells: |_| true,
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Style {
        label: String = optional("LABEL", "string", "how the line begins; default nothing"), or(String::new());
        contents: bool = keyword("CONTENTS", "boolean", "whether bytes are printed; default false"), or(false);
        bytes: u32 = keyword("NBYTES", "bytes", "most bytes printed; default 1500"), or(1500);
    }
}

struct IP6Print {
    style: Style,
    lines: Lines,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let style = Style::configure(conf);
    conf.finish()?;
    Ok(Box::new(IP6Print { style, lines: Lines::default() }))
}

/// The address in `range` of the header.
fn address(header: &[u8; HEADER_LEN], range: Range<usize>) -> Ipv6Addr {
    header[range].first_chunk::<16>().copied().unwrap_or_default().into()
}

impl Style {
    /// Appends the packet's lines. Writing to a string cannot fail.
    fn lines(&self, packet: &Packet, text: &mut String) {
        if !self.label.is_empty() {
            let _ = write!(text, "{}: ", self.label);
        }
        // Whatever the version is: it is for looking at.
        match packet.network_header().and_then(|bytes| bytes.first_chunk::<HEADER_LEN>()) {
            Some(h) => {
                let [src, dst] = [field::SRC, field::DST].map(|at| Written(address(h, at)));
                let (length, next, hops) = (u16::from_be_bytes([h[4], h[5]]), h[6], h[7]);
                let _ = writeln!(text, "{src} -> {dst} plen {length}, next {next}, hlim {hops}");
            }
            _ => text.push_str("no IPv6 header\n"),
        }
        if self.contents {
            text.push_str("  ");
            for (i, &byte) in packet.data().iter().take(self.bytes as usize).enumerate() {
                contents::hex(text, byte);
                match i % 24 {
                    23 => text.push_str("\n  "),
                    _ if i % 4 == 3 => text.push(' '),
                    _ => {}
                }
            }
            text.push('\n');
        }
    }
}

impl Element for IP6Print {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        self.lines.write(batch, |packet, text| self.style.lines(packet, text));
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_ip6_header::tests::packet as bytes;
    use super::*;
    use crate::ip::corpus::marked;

    fn text(contents: bool, bytes: u32, packet: &Packet) -> String {
        let mut text = String::new();
        Style { label: "in".into(), contents, bytes }.lines(packet, &mut text);
        text
    }

    #[test]
    fn a_packet_is_a_line_and_its_bytes_another() {
        let p = marked(&bytes(64, b"payload"), 0);
        let line = "in: 2001:db8::1 -> 2001:db8::2 plen 7, next 59, hlim 64\n";
        assert_eq!(text(false, 1500, &p), line);
        assert_eq!(text(true, 6, &p), format!("{line}  60000000 0007\n"));
        let long = text(true, 25, &p);
        let (_, second) = long.split_once("\n  ").unwrap();
        assert_eq!(second, "60000000 00073b40 20010db8 00000000 00000000 00000001\n  20\n");
        assert_eq!(text(false, 0, &marked(b"no", 0)), "in: no IPv6 header\n");
        let mut other = bytes(64, b"payload");
        other[0] = 0x45;
        other[8..24].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        assert_eq!(
            text(false, 0, &marked(&other, 0)),
            "in: ::0.0.0.1 -> 2001:db8::2 plen 7, next 59, hlim 64\n"
        );
    }
}
