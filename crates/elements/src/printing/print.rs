//! Print.

use super::contents::{self, Contents};
use causeway_engine::prelude::*;
use causeway_lang::Of;
use causeway_packet::meta::ANNO_BYTES;
use std::fmt::Write as _;

pub(crate) static SPEC: Spec = Spec {
    name: "Print",
    category: "printing",
    summary: "prints packets' bytes",
    ports: "1/1",
    processing: "a/a",
    doc: "Prints a line to standard error for each packet: LABEL, the packet's length, and its first MAXLENGTH \
          bytes in groups of four, such as `arp:   42 | ffffffff ffff0200 00000001`. It is for looking at a few \
          packets; each one costs microseconds.",
    args: Style::ARGS,
    handlers: handlers!(Style::HANDLERS, &[CONFIG]),
    example: "InfiniteSource(DATA \"0123456789\", LIMIT 2, STOP true) -> Print(in, MAXLENGTH 8) -> Discard;",
    see: &["IPPrint"],
    tells: |_| true,
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Style {
        label: String = optional("LABEL", "string", "how the line begins; default nothing"), or(String::new());
        max_length: i32 = optional("MAXLENGTH", "bytes", "most bytes printed; negative prints all; default 24"), or(24);
        length: Option<i32> = keyword("LENGTH", "bytes", "the same as MAXLENGTH"), or(None);
        nbytes: Option<i32> = keyword("NBYTES", "bytes", "the same as MAXLENGTH"), or(None);
        contents: Contents = keyword("CONTENTS", "NONE, HEX or ASCII", "how bytes are printed; default HEX"),
            or(Contents::Hex);
        timestamp: bool = keyword("TIMESTAMP", "boolean", "whether to print the packet's timestamp; default false"),
            or(false);
        annotations: bool = keyword("PRINTANNO", "boolean", "whether to print the annotation area; default false"),
            or(false);
        headroom: bool = keyword("HEADROOM", "boolean", "whether to print headroom and tailroom; default false"),
            or(false);
        worker: bool = keyword("CPU", "boolean", "whether to print the number of the worker; default false"), or(false);
        active: bool = keyword("ACTIVE", "boolean", "whether to print at all; default true"), or(true),
            live("active", "whether it prints");
    }
}

struct Print {
    style: Style,
    /// The text of a batch, kept for its memory.
    lines: String,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let style = Style::configure(conf);
    for (name, given) in [("LENGTH", style.length), ("NBYTES", style.nbytes)] {
        if given.is_some() {
            conf.warn_of(Of::Argument(name.to_owned()), "argument deprecated");
        }
    }
    conf.finish()?;
    Ok(Box::new(Print { style, lines: String::new() }))
}

impl Style {
    /// Most bytes printed.
    fn most(&self) -> usize {
        let length = self.nbytes.or(self.length).unwrap_or(self.max_length);
        usize::try_from(length).unwrap_or(usize::MAX)
    }

    /// Appends the packet's line. Writing to a string cannot fail.
    fn line(&self, packet: &Packet, worker: usize, text: &mut String) {
        let mut separator = if self.label.is_empty() { "" } else { ": " };
        *text += &self.label;
        if self.worker {
            let _ = write!(text, "({worker})");
            separator = ": ";
        }
        if self.timestamp {
            *text += separator;
            contents::timestamp(text, packet.timestamp_ns());
            separator = ": ";
        }
        let _ = write!(text, "{separator}{:4}", packet.len());
        if self.headroom {
            let _ = write!(text, " (h{} t{})", packet.headroom(), packet.tailroom());
        }
        if self.annotations {
            *text += " | ";
            (0..ANNO_BYTES as u8).for_each(|i| contents::hex(text, packet.anno_u8(i)));
        }
        let bytes = packet.data();
        self.bytes(&bytes[..self.most().min(bytes.len())], text);
        text.push('\n');
    }

    fn bytes(&self, bytes: &[u8], text: &mut String) {
        if bytes.is_empty() || self.contents == Contents::None {
            return;
        }
        *text += " | ";
        for (i, &byte) in bytes.iter().enumerate() {
            match self.contents {
                Contents::Ascii => {
                    if i % 8 == 0 {
                        text.push(' ');
                    }
                    text.push(contents::printable(byte));
                }
                _ => {
                    if i > 0 && i % 4 == 0 {
                        text.push(' ');
                    }
                    contents::hex(text, byte);
                }
            }
        }
    }
}

impl Element for Print {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !self.style.active {
            return;
        }
        let mut lines = std::mem::take(&mut self.lines);
        for packet in batch.iter() {
            self.style.line(packet, cx.worker(), &mut lines);
        }
        contents::to_stderr(&lines);
        lines.clear();
        self.lines = lines;
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    fn line(config: &str, packet: &Packet) -> String {
        let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
        let mut text = String::new();
        h.element::<Print>().unwrap().style.line(packet, 0, &mut text);
        text
    }

    #[test]
    fn lines_have_their_form() {
        let mut packet = Packet::from_bytes(b"\x00\x11\x7eABCDEFG\x7f").unwrap();
        packet.set_timestamp_ns(1_000_000_002_000_000_345);
        for (config, text) in [
            ("", "  11 | 00117e41 42434445 46477f\n"),
            ("MAXLENGTH 0", "  11\n"),
            ("x", "x:   11 | 00117e41 42434445 46477f\n"),
            ("x, 4", "x:   11 | 00117e41\n"),
            ("x, NBYTES 5", "x:   11 | 00117e41 42\n"),
            ("x, CONTENTS none", "x:   11\n"),
            ("x, CONTENTS ASCII", "x:   11 |  ..~ABCDE FG.\n"),
            ("x, 2, CONTENTS true, TIMESTAMP true", "x: 1000000002.000000345:   11 | 0011\n"),
            ("MAXLENGTH 2, TIMESTAMP true", "1000000002.000000345:   11 | 0011\n"),
            ("x, 1, CPU true", "x(0):   11 | 00\n"),
        ] {
            assert_eq!(line(config, &packet), text, "{config}");
        }
        packet.set_anno_u8(1, 0xab);
        let annotations = format!("  11 | 00ab{} | 00\n", "00".repeat(46));
        assert_eq!(line("MAXLENGTH 1, PRINTANNO yes", &packet), annotations);
        let room = format!("  11 (h{} t{}) | 00\n", packet.headroom(), packet.tailroom());
        assert_eq!(line("MAXLENGTH 1, HEADROOM yes", &packet), room);
    }

    #[test]
    fn a_negative_length_prints_all() {
        let packet = Packet::from_bytes(&[0; 100]).unwrap();
        assert_eq!(line("x, -1", &packet).matches("00").count(), 101);
        assert_eq!(line("x", &packet).matches("00").count(), 25);
    }

    #[test]
    fn packets_pass_and_the_handler_switches() {
        let mut h = Harness::new(&SPEC, "ACTIVE false", 1, 1).unwrap();
        h.push(0, Packet::from_bytes(b"x").unwrap());
        assert_eq!((h.take(0).len(), h.read("active").unwrap()), (1, "false".to_owned()));
        h.write("active", "true").unwrap();
        assert_eq!(h.read("active").unwrap(), "true");
        h.assert_balanced();
    }

    #[test]
    fn contents_are_checked() {
        let errors = Harness::new(&SPEC, "x, CONTENTS octal", 1, 1).err().unwrap();
        assert_eq!(errors, ["bad contents value 'OCTAL'; should be 'NONE', 'HEX', or 'ASCII'"]);
    }
}
