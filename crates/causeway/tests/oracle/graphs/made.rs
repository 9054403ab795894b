//! A random configuration, of elements that the driver can have and some that it cannot, and what may be written to it.

mod ip;

use super::CLICK;
use crate::plan;
use fastrand::Rng;
use std::fmt::Write;

/// What packets are on an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Frames with their Ethernet headers.
    Frame,
    /// IPv4 packets, mostly with their headers marked.
    Ip4,
    /// The same of IPv6.
    Ip6,
    /// Anything, of which not much more is to be made.
    Any,
}

use Kind::{Any, Frame, Ip4, Ip6};

/// A handler that can be written, and what to.
pub type Order = [String; 2];

/// Makes a configuration.
pub struct Maker {
    rng: Rng,
    pub text: String,
    /// What may be written while it runs.
    pub orders: Vec<Order>,
    count: usize,
    /// Elements that packets of a kind may be sent to.
    known: Vec<(Kind, String)>,
    /// Whether Click itself is to run it.
    for_click: bool,
}

/// Elements from which on no way goes on for long.
const MOST: usize = 60;

const FRAMES: [&str; 17] = [
    "12/0800",
    "12/0800",
    "12/86dd",
    "12/0800 23/11",
    "12/0800 23/06",
    "12/0800 14/45",
    "12/0800 30/0a40%fffc",
    "37/01%01",
    "0/01%01",
    "6/02ee",
    "12/8100",
    "12/0800 20/2000%3fff",
    "60/00%80",
    "!12/0800",
    "12/08?? 30/0a",
    "33/0a 36/00%0f",
    "-",
];

impl Maker {
    /// A graph with so many ports that packets come in by, from 0 on, and two that they leave by, 2 and 3.
    pub fn graph(rng: Rng, for_click: bool) -> Maker {
        let (text, orders, known) = (String::new(), Vec::new(), Vec::new());
        let mut maker = Maker { rng, text, orders, count: 0, known, for_click };
        for port in [2, 3] {
            let queued = maker.rng.bool();
            let queue =
                if queued { format!("Idle -> q{port} :: Queue(2000) -> ") } else { "Idle -> ".to_owned() };
            let _ = writeln!(maker.text, "{queue}out{port} :: ToDevice(p{port});");
            let first = if queued { format!("q{port}") } else { format!("out{port}") };
            maker.known.push((Any, first));
        }
        for port in 0..2 {
            let depth = maker.rng.u32(2..9);
            let first = match maker.rng.u32(0..3) {
                0 => maker.tail(Frame, depth),
                _ => maker.by_type(depth),
            };
            let _ = writeln!(maker.text, "in{port} :: FromDevice(p{port}) -> {first};");
        }
        maker
    }

    fn chance(&mut self, n: u32) -> bool {
        self.rng.u32(0..n) == 0
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.rng.usize(0..list.len())]
    }

    /// The usual start: one way for each version of IP.
    fn by_type(&mut self, depth: u32) -> String {
        let strip4 = self.stripped(Ip4, depth);
        let strip6 = self.stripped(Ip6, depth);
        let rest = self.tail(Any, 1);
        self.add("Classifier(12/0800, 12/86dd, -)", &[strip4, strip6, rest])
    }

    fn stripped(&mut self, kind: Kind, depth: u32) -> String {
        let checked = self.checked(kind, depth);
        self.add("Strip(14)", &[checked])
    }

    fn checked(&mut self, kind: Kind, depth: u32) -> String {
        let mut ways = vec![self.tail(kind, depth)];
        if self.rng.bool() {
            ways.push(self.tail(Any, 1));
        }
        let class = match kind {
            Ip6 => self.pick(&["CheckIP6Header", "CheckIP6Header(2001:db8::1)"]),
            _ => self.pick(&[
                "CheckIPHeader",
                "CheckIPHeader",
                "CheckIPHeader(INTERFACES 10.1.0.1/24 10.1.1.1/24)",
                "CheckIPHeader2",
                "CheckIPHeader(BADSRC 10.1.0.9, GOODDST 10.64.0.1)",
                "CheckIPHeader(CHECKSUM false)",
            ]),
        };
        self.add(class, &ways)
    }

    /// An element whose outputs lead there.
    fn add(&mut self, class: &str, outputs: &[String]) -> String {
        self.count += 1;
        let name = format!("e{}", self.count);
        let _ = writeln!(self.text, "{name} :: {class};");
        for (output, to) in outputs.iter().enumerate() {
            let _ = writeln!(self.text, "{name}[{output}] -> {to};");
        }
        name
    }

    /// As [`Maker::add`], of an element whose handler may be written.
    fn add_with(&mut self, class: &str, outputs: &[String], orders: &[(&str, String)]) -> String {
        let name = self.add(class, outputs);
        self.orders
            .extend(orders.iter().map(|(handler, value)| [format!("{name}.{handler}"), value.clone()]));
        name
    }

    /// What packets of a kind go on to.
    fn tail(&mut self, kind: Kind, depth: u32) -> String {
        if self.chance(6) {
            let known: Vec<String> = self
                .known
                .iter()
                .filter(|(k, _)| *k == kind && kind != Any)
                .map(|(_, name)| name.clone())
                .collect();
            if !known.is_empty() {
                return known[self.rng.usize(0..known.len())].clone();
            }
        }
        if depth == 0 || self.count > MOST {
            return self.end(kind);
        }
        let name = match (kind, self.rng.u32(0..3)) {
            (Any, _) => self.anything(kind, depth),
            (_, 0) => self.anything(kind, depth),
            (Frame, _) => self.of_frames(depth),
            (Ip4, _) => self.of_ip4(depth),
            (Ip6, _) => self.of_ip6(depth),
        };
        self.known.push((kind, name.clone()));
        name
    }

    fn end(&mut self, kind: Kind) -> String {
        let device = self.known[self.rng.usize(0..2)].1.clone();
        let ethertype = if kind == Ip6 { "0x86dd" } else { "0x0800" };
        match self.rng.u32(0..8) {
            0 => self.add("Discard", &[]),
            1 => {
                let end = self.add("Discard", &[]);
                self.add("Counter", &[end])
            }
            _ if matches!(kind, Frame | Any) && self.rng.bool() => device,
            _ => {
                let last = self.rng.u8(..);
                self.add_with(
                    &format!("EtherEncap({ethertype}, 2:0:0:0:0:{last:x}, 2:1:2:3:4:5)"),
                    &[device],
                    &[
                        ("src", "2:9:9:9:9:9".into()),
                        ("dst", format!("2:8:8:8:8:{last:x}")),
                        ("ethertype", "34525".into()),
                    ],
                )
            }
        }
    }

    /// Elements that take whatever comes.
    fn anything(&mut self, kind: Kind, depth: u32) -> String {
        let next = self.tail(kind, depth - 1);
        let (a, b) = (self.rng.u8(0..4), self.rng.u8(0..4));
        match self.rng.u32(0..12) {
            0 => self.add_with(&format!("Paint({a})"), &[next], &[("color", b.to_string())]),
            1 => self.add(&format!("Paint({a}, 17)"), &[next]),
            2 => {
                let other = self.tail(kind, depth.saturating_sub(2));
                self.add_with(&format!("CheckPaint({a})"), &[next, other], &[("color", b.to_string())])
            }
            3 => self.add(&format!("CheckPaint({a})"), &[next]),
            4 => {
                let copy = self.tail(Any, depth.saturating_sub(3));
                self.add_with(&format!("PaintTee({a})"), &[next, copy], &[("color", b.to_string())])
            }
            5 => {
                let mut ways = vec![next];
                (0..self.rng.u32(1..3)).for_each(|_| ways.push(self.tail(kind, depth.saturating_sub(2))));
                let orders = ["0", "1", "-1", "7"].map(|way| ("switch", way.to_owned()));
                let first = self.rng.usize(0..ways.len());
                self.add_with(&format!("Switch({first})"), &ways, &orders)
            }
            6 => {
                let mut ways = vec![next];
                (0..self.rng.u32(0..3)).for_each(|_| ways.push(self.tail(kind, depth.saturating_sub(2))));
                let (at, len) = (self.rng.u32(0..70), self.rng.u32(1..12));
                self.add(&format!("HashSwitch({at}, {len})"), &ways)
            }
            7 if !self.for_click => self.add("DropBroadcasts", &[next]),
            8 => self.cut(next),
            9 => {
                let other = self.tail(kind, depth.saturating_sub(2));
                let at = self.rng.u32(0..40);
                let first = format!("{at}/{:02x}%{:02x}", self.rng.u8(..), self.pick(&[1u8, 3, 0x80]));
                self.add(&format!("Classifier({first}, -)"), &[next, other])
            }
            10 => {
                // Beyond the packet Click finds an address as well.
                let at = self.rng.u32(0..if self.for_click { 10 } else { 40 });
                self.add(&format!("GetIPAddress({at})"), &[next])
            }
            _ => next,
        }
    }

    /// An element that is not in the driver.
    fn cut(&mut self, next: String) -> String {
        match self.rng.u32(0..5) {
            0 => self.add("Counter", &[next]),
            1 => {
                let copy = self.add("Discard", &[]);
                self.add("Tee(2)", &[next, copy])
            }
            2 => {
                let unqueue = self.add("Unqueue", &[next]);
                self.add("Queue(2000)", &[unqueue])
            }
            3 => {
                let more = self.add("Discard", &[]);
                self.add("PaintSwitch", &[more.clone(), next, more.clone(), more])
            }
            _ => self.add("CheckLength(200)", &[next]),
        }
    }

    fn of_frames(&mut self, depth: u32) -> String {
        match self.rng.u32(0..6) {
            0 | 1 => {
                let mut patterns: Vec<&str> = (0..self.rng.usize(1..5)).map(|_| self.pick(&FRAMES)).collect();
                if self.rng.bool() {
                    patterns.push("-");
                }
                let ways: Vec<String> = patterns.iter().map(|_| self.tail(Frame, depth - 1)).collect();
                self.add(&format!("Classifier({})", patterns.join(", ")), &ways)
            }
            2 | 3 => {
                let kind = if self.chance(3) { Ip6 } else { Ip4 };
                self.stripped(kind, depth - 1)
            }
            4 => {
                let next = self.tail(Frame, depth - 1);
                let class = self.pick(&[
                    "CheckIPHeader(14)",
                    "CheckIP6Header(OFFSET 14)",
                    "CheckIPHeader(14, CHECKSUM false)",
                ]);
                self.add(class, &[next])
            }
            _ => {
                let next = self.by_type(depth - 1);
                let n = self.rng.u32(1..6);
                let back = self.add_with(&format!("Unstrip({n})"), &[next], &[]);
                self.add_with(&format!("Strip({n})"), &[back], &[])
            }
        }
    }

    /// The same for Click, which reads packets from files and writes them to files of a folder.
    pub fn for_files(&self, folder: &str) -> String {
        let mut text = self.text.clone();
        for port in 0..plan::PORTS {
            text = text.replace(
                &format!("FromDevice(p{port})"),
                &format!("FromDump({folder}/in{port}.pcap, TIMING false)"),
            );
            text = text.replace(
                &format!("ToDevice(p{port})"),
                &format!("ToDump({folder}/out{port}.pcap, SNAPLEN 0)"),
            );
        }
        text + &format!("DriverManager(wait {CLICK}s, stop);\n")
    }
}
