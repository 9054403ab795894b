//! The file of one flow: its packets, as FromIPSummaryDump reads them.

use super::fields::tcp_options::{self, Choice};
use super::fields::text::{print_flags, print_time};
use causeway_engine::Error;
use causeway_packet::wire::tcp::Tcp;
use causeway_packet::wire::{Ipv4, icmpv4, protocol};
use causeway_packet::{Anno, Packet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::Path;

/// Packets and notes that are kept in memory, before they are written together.
const KEPT: u32 = 128;
/// The bit of a binary record's length that says that it is text.
const TEXT: u32 = 1 << 31;
/// The bit of the paint annotation that says that a packet goes back, and the values that are ICMP errors.
const BACK: u8 = 1;
const ERROR: u8 = 2;

/// What is written of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub absolute_time: bool,
    pub absolute_seq: bool,
    pub binary: bool,
    pub gzip: bool,
    pub ip_id: bool,
    pub tcp_window: bool,
    /// Options of TCP, and whether timestamps are among them.
    pub tcp_opt: bool,
    pub tcp_timestamp: bool,
}

/// What names a flow: its number and its first packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub aggregate: u32,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub ports: (u16, u16),
    pub is_tcp: bool,
}

impl Origin {
    /// Of the packet; `None` unless it is of a numbered flow of TCP or UDP, or an ICMP error about one.
    pub fn of(packet: &Packet) -> Option<Origin> {
        let aggregate = packet.anno_u32(Anno::AGGREGATE.offset);
        let ip = Ipv4::new_quoted(packet.network_header()?).ok()?;
        if aggregate == 0 {
            return None;
        }
        if ip.protocol() != protocol::ICMP {
            return Origin::from(aggregate, &ip);
        }
        let quoted = ip.payload().get(icmpv4::HEADER_LEN..)?;
        Origin::from(aggregate, &Ipv4::new_quoted(quoted).ok()?)
    }

    fn from(aggregate: u32, ip: &Ipv4<&[u8]>) -> Option<Origin> {
        let ports = ip.payload().first_chunk::<4>()?;
        let word = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
        let is_tcp = ip.protocol() == protocol::TCP;
        (is_tcp || ip.protocol() == protocol::UDP).then(|| Origin {
            aggregate,
            source: ip.src(),
            destination: ip.dst(),
            ports: (word(0), word(2)),
            is_tcp,
        })
    }

    fn reverse(self) -> Origin {
        let (source, destination) = (self.destination, self.source);
        Origin { source, destination, ports: (self.ports.1, self.ports.0), ..self }
    }
}

/// A flow and its file.
pub(super) struct FlowDump {
    /// In the direction of packets whose paint says that they do not go back.
    origin: Origin,
    name: String,
    style: Style,
    /// Packets so far.
    packets: u32,
    /// Packets and notes in `lines`.
    kept: u32,
    lines: Vec<u8>,
    /// The line that is being made, and the TCP options of its packet; kept for their room.
    line: String,
    options: Vec<u8>,
    /// What is behind this file's head.
    begun: bool,
    first_ns: u64,
    /// First sequence number of each direction.
    first_seq: [Option<u32>; 2],
}

impl FlowDump {
    /// The flow that begins with `packet`, of which nothing is written yet.
    pub fn new(packet: &Packet, origin: Origin, name: String, style: Style) -> FlowDump {
        let back = packet.paint() & BACK != 0;
        // The first packet's time is then a nanosecond, since zero is none.
        let first_ns = if style.absolute_time { 0 } else { packet.timestamp_ns().saturating_sub(1) };
        FlowDump {
            origin: if back { origin.reverse() } else { origin },
            name,
            style,
            packets: 0,
            kept: 0,
            lines: Vec::new(),
            line: String::new(),
            options: Vec::new(),
            begun: false,
            first_ns,
            first_seq: [style.absolute_seq.then_some(0); 2],
        }
    }

    /// Adds a packet; what is no whole packet of the flow is left out.
    pub fn add(&mut self, packet: &Packet) -> Result<(), Error> {
        let Some(Ok(ip)) = packet.network_header().map(Ipv4::new_quoted) else { return Ok(()) };
        let back = usize::from(packet.paint() & BACK);
        if packet.paint() >= ERROR {
            self.add_error(packet.timestamp_ns(), back);
        } else if (ip.protocol() == protocol::TCP) != self.origin.is_tcp || ip.is_fragment() {
            return Ok(());
        } else {
            let ns = packet.timestamp_ns().saturating_sub(self.first_ns);
            match self.origin.is_tcp {
                true => match Tcp::new_checked(ip.payload()) {
                    Ok(tcp) => self.add_tcp(ns, back, &ip, &tcp),
                    Err(_) => return Ok(()),
                },
                false => {
                    let payload_len = (ip.total_len() as usize).saturating_sub(ip.header_len() + 8);
                    self.add_udp(ns, back, &ip, payload_len as u32);
                }
            }
        }
        self.packets = self.packets.saturating_add(1);
        self.kept += 1;
        if self.kept >= KEPT { self.write() } else { Ok(()) }
    }

    /// A line that says that there was an ICMP error.
    fn add_error(&mut self, ns: u64, back: usize) {
        self.line.clear();
        self.line.push('#');
        print_time(ns, &mut self.line);
        let _ = writeln!(self.line, " {} ICMP_error", ['<', '>'][back]);
        if self.style.binary {
            self.lines.extend((TEXT | (self.line.len() as u32 + 4)).to_be_bytes());
        }
        self.lines.extend(self.line.as_bytes());
    }

    fn add_tcp(&mut self, ns: u64, back: usize, ip: &Ipv4<&[u8]>, tcp: &Tcp<&[u8]>) {
        const ACK: u8 = 0x10;
        let first = *self.first_seq[back].get_or_insert(tcp.sequence());
        let sequence = tcp.sequence().wrapping_sub(first);
        let acknowledgement = match tcp.flags() & ACK {
            0 => 0,
            _ => {
                let first = *self.first_seq[1 - back].get_or_insert(tcp.acknowledgement());
                tcp.acknowledgement().wrapping_sub(first)
            }
        };
        let headers_len = ip.header_len() + tcp.header_len();
        let payload_len = (ip.total_len() as usize).saturating_sub(headers_len) as u32;
        self.options.clear();
        if self.style.tcp_opt {
            self.choose(back, tcp.options_bytes());
        }
        if self.style.binary {
            let start = self.begin_record(ns, &[sequence, payload_len, acknowledgement], ip.identification());
            if self.style.tcp_window {
                self.lines.extend(tcp.window().to_be_bytes());
            }
            self.lines.extend([tcp.flags(), back as u8]);
            if !self.options.is_empty() {
                self.lines.push(self.options.len() as u8);
                self.lines.extend(&self.options);
            }
            return self.end_record(start);
        }
        self.begin_line(ns, back, ip.identification());
        print_flags(u64::from(tcp.flags() & 0x7f), &mut self.line);
        let _ = write!(self.line, " {sequence} {payload_len} {acknowledgement}");
        if self.style.tcp_window {
            let _ = write!(self.line, " {}", tcp.window());
        }
        if !self.options.is_empty() {
            self.line.push(' ');
            tcp_options::print(&self.options, Choice::All, &mut self.line);
        }
        self.end_line();
    }

    fn add_udp(&mut self, ns: u64, back: usize, ip: &Ipv4<&[u8]>, payload_len: u32) {
        if self.style.binary {
            let start = self.begin_record(ns, &[payload_len], ip.identification());
            self.lines.push(back as u8);
            return self.end_record(start);
        }
        self.begin_line(ns, back, ip.identification());
        let _ = write!(self.line, "{payload_len}");
        self.end_line();
    }

    fn begin_line(&mut self, ns: u64, back: usize, id: u16) {
        self.line.clear();
        print_time(ns, &mut self.line);
        let _ = write!(self.line, " {} ", ['>', '<'][back]);
        if self.style.ip_id {
            let _ = write!(self.line, "{id} ");
        }
    }

    fn end_line(&mut self) {
        self.line.push('\n');
        self.lines.extend(self.line.as_bytes());
    }

    /// Begins a binary record; says where.
    fn begin_record(&mut self, ns: u64, words: &[u32], id: u16) -> usize {
        let start = self.lines.len();
        let time = [ns / 1_000_000_000, ns % 1_000_000_000].map(|n| n as u32);
        // The length comes first, and is known in the end.
        for word in [0].iter().chain(&time).chain(words) {
            self.lines.extend(word.to_be_bytes());
        }
        if self.style.ip_id {
            self.lines.extend(id.to_be_bytes());
        }
        start
    }

    fn end_record(&mut self, start: usize) {
        let len = (self.lines.len() - start) as u32;
        self.lines[start..start + 4].copy_from_slice(&len.to_be_bytes());
    }

    /// Chooses the options that are written, with the sequence numbers of the other direction; none if one is bad.
    fn choose(&mut self, back: usize, options: &[u8]) {
        const SACK: u8 = 5;
        for option in tcp_options::each(options) {
            let Some(option) = option.ok().filter(|o| tcp_options::is_well_formed(o)) else {
                return self.options.clear();
            };
            match option[0] {
                SACK => {
                    self.options.extend(&option[..2]);
                    for edge in option[2..].chunks_exact(4) {
                        let edge = edge.iter().fold(0, |n, byte| n << 8 | u32::from(*byte));
                        let first = *self.first_seq[1 - back].get_or_insert(edge);
                        self.options.extend(edge.wrapping_sub(first).to_be_bytes());
                    }
                }
                2..=4 => self.options.extend(option),
                8 if self.style.tcp_timestamp => self.options.extend(option),
                _ => {}
            }
        }
    }

    /// The lines at the start.
    fn head(&self) -> String {
        let Origin { source, destination, ports, is_tcp, aggregate } = self.origin;
        let kind = if is_tcp { 'T' } else { 'U' };
        let mut text = format!(
            "!IPSummaryDump 1.3\n!flowid {source} {} {destination} {} {kind}\n!aggregate {aggregate}\n!data ntimestamp",
            ports.0, ports.1
        );
        let style = self.style;
        let options = if style.tcp_timestamp { " tcp_opt" } else { " tcp_ntopt" };
        let id = if style.ip_id { " ip_id" } else { "" };
        let window = if style.tcp_window { " tcp_window" } else { "" };
        text += &match (style.binary, is_tcp) {
            (false, true) => {
                format!(" direction{id} tcp_flags tcp_seq payload_len tcp_ack{window}{options}\n")
            }
            (false, false) => format!(" direction{id} payload_len\n"),
            (true, true) => {
                format!(" tcp_seq payload_len tcp_ack{id}{window} tcp_flags direction{options}\n")
            }
            (true, false) => format!(" payload_len{id} direction\n"),
        };
        for (direction, first) in ['>', '<'].into_iter().zip(self.first_seq) {
            if let Some(first) = first.filter(|first| is_tcp && *first != 0) {
                let _ = writeln!(text, "!firstseq {direction} {first}");
            }
        }
        if self.first_ns > 0 {
            text += "!firsttime ";
            print_time(self.first_ns, &mut text);
            text.push('\n');
        }
        text + if style.binary { "!binary\n" } else { "" }
    }

    /// Writes what is kept to the file, which is made if this is the first time.
    fn write(&mut self) -> Result<(), Error> {
        let head = if self.begun { String::new() } else { self.head() };
        let done = self.open().and_then(|mut out| {
            out.write_all(head.as_bytes())?;
            out.write_all(&self.lines)?;
            out.flush()
        });
        self.begun = true;
        self.kept = 0;
        self.lines.clear();
        done.map_err(|e| Error::caused_by(e).of(&self.name))
    }

    fn open(&self) -> io::Result<Box<dyn Write>> {
        if self.name == "-" {
            return Ok(Box::new(io::stdout()));
        }
        if self.begun {
            return Ok(Box::new(File::options().append(true).open(&self.name)?));
        }
        if let Some(folder) = Path::new(&self.name).parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(Box::new(File::create(&self.name)?))
    }

    /// Ends the file. With fewer than `least` packets there is none.
    pub fn end(mut self, least: u32) -> Result<(), Error> {
        if self.packets < least {
            return match self.begun && self.name != "-" {
                true => std::fs::remove_file(&self.name).map_err(|e| Error::caused_by(e).of(&self.name)),
                false => Ok(()),
            };
        }
        self.write()?;
        match self.style.gzip && self.name != "-" {
            true => compress(&self.name).map_err(|e| Error::caused_by(e).of(&self.name)),
            false => Ok(()),
        }
    }
}

/// Puts a compressed file in the place of the file called `name`.
fn compress(name: &str) -> io::Result<()> {
    let compressed = format!("{name}.gz");
    let mut out = super::compressed::compress(&compressed, File::create(&compressed)?);
    io::copy(&mut File::open(name)?, &mut out)?;
    out.flush()?;
    std::fs::remove_file(name)
}
