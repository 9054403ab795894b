//! Small graphs for targets that attack elements: the example of a class as it is, or classes of several examples one behind
//! the other. An input is which classes, and then steps: packets, time, handlers.
//!
//! Elements that touch devices, files or the terminal are left out, and so are handlers that write files.

use causeway_engine::prelude::*;
use causeway_engine::simulation::{Simulation, Step, Visit};
use causeway_engine::spec::{HandlerDoc, writes};
use causeway_engine::{Library, Options, Plan, PlanElement};
use causeway_lang::NoLibraries;
use causeway_packet::wire::ipv4::Ipv4;
use std::cell::RefCell;
use std::fmt::Write;
use std::sync::LazyLock;

/// Subjects whose elements touch devices, files or the terminal.
const OTHERS: &[&str] = &["control", "devices", "fuse", "kernel", "printing", "sockets", "traces"];
/// Classes of those that do not, if nobody tells them to.
const BUT: &[&str] = &["DriverManager", "Script"];
/// Classes of other subjects that do, or whose tables take long to make.
const NOT: &[&str] = &["DirectIPLookup", "IP6Print"];
/// Most pieces of work of one input.
const PIECES: u32 = 4_000;
/// What handlers and their parameters are often made of.
const WORDS: &[&str] = &[
    "0", "1", "-1", "4294967295", "4294967296", "18446744073709551615", "0.5", "1s", "1e9", "true", "false", "10.0.0.1",
    "10.0.0.0/8 0", "0/0 1.2.3.4 0", "2001:db8::1", "::/0 0", "2:0:0:0:0:1", "10.0.0.1 2:0:0:0:0:1", "allow all",
    "pattern 1.0.0.1 1024-65535 - - 0 0", "8kbps", "set x $(add 1 2), return $x", "goto begin", "wait 1, loop", "\"", "(", ",",
];

/// A class as an example has it.
struct Sample {
    spec: &'static Spec,
    config: String,
    inputs: usize,
    outputs: usize,
}

struct Samples {
    /// Examples that have no other elements than those that may be used.
    examples: Vec<Plan>,
    /// Elements with inputs, by class.
    elements: Vec<Sample>,
}

fn library() -> Library {
    Library::new(causeway_elements::library().iter().chain([&FEED]))
}

static LIBRARY: LazyLock<Library> = LazyLock::new(library);

fn plan(text: &str) -> Option<Plan> {
    let compiled = causeway_lang::compile("fuzz", text.as_bytes(), &NoLibraries, &*LIBRARY, &[]).ok()?;
    Some(Plan::new(&compiled))
}

fn may_be_used(class: &str) -> bool {
    let spec = LIBRARY.get(class);
    spec.is_some_and(|s| (!OTHERS.contains(&s.category) || BUT.contains(&class)) && !NOT.contains(&class))
}

static SAMPLES: LazyLock<Samples> = LazyLock::new(|| {
    let mut samples = Samples { examples: Vec::new(), elements: Vec::new() };
    for spec in LIBRARY.iter() {
        let Some(example) = plan(spec.example) else { continue };
        if !example.elements.iter().all(|e| may_be_used(&e.class)) {
            continue;
        }
        let own = example.elements.iter().find(|e| e.class == spec.name && !e.pulled_inputs.is_empty());
        if let Some(own) = own {
            let (inputs, outputs) = (own.pulled_inputs.len(), own.pulled_outputs.len());
            samples.elements.push(Sample { spec, config: own.config.clone(), inputs, outputs });
        }
        samples.examples.push(example);
    }
    samples
});

thread_local! {
    /// Packets for the element that feeds the graph.
    static PACKETS: RefCell<Vec<Packet>> = const { RefCell::new(Vec::new()) };
}

/// Emits packets when it is told to.
static FEED: Spec = Spec {
    name: "Feed",
    category: "fuzz",
    ports: "0/-",
    processing: "h/h",
    handlers: &[writes("emit", "emits the packets that are there by this output")],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Feed))
    },
    ..Spec::DEFAULT
};

struct Feed;

impl Element for Feed {
    fn write(&mut self, _handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let port = value.parse().map_err(|_| "no output")?;
        PACKETS.with_borrow_mut(|packets| packets.drain(..).for_each(|packet| cx.emit(port, packet)));
        Ok(())
    }
}

/// What is left of an input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<usize> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(usize::from(first))
    }

    fn below(&mut self, n: usize) -> Option<usize> {
        Some(self.byte()? % n.max(1))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.byte()?.min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        Some(bytes)
    }

    /// A text: one of the usual ones, one of its own, or both.
    fn text(&mut self) -> Option<String> {
        let choice = self.byte()?;
        let usual = WORDS.get(choice / 4).copied().unwrap_or_default();
        let own = if choice % 4 == 0 { &[][..] } else { self.bytes()? };
        Some(format!("{usual}{}", String::from_utf8_lossy(own)))
    }
}

/// Frames that are right, to be spoilt: UDP, TCP, ICMP and a first fragment over IPv4, ARP, UDP and a neighbour solicitation
/// over IPv6, and a tagged frame.
fn frame(kind: usize) -> Vec<u8> {
    let ip = |protocol: u8, word: u16, payload: &[u8]| {
        let mut bytes = vec![0x45, 0, 0, (20 + payload.len()) as u8, 7, 7, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 9, 0, 2];
        bytes[6..8].copy_from_slice(&word.to_be_bytes());
        [&bytes, payload].concat()
    };
    let ip6 = |next: u8, payload: &[u8]| {
        let header = [0x60, 0, 0, 0, 0, payload.len() as u8, next, 255];
        let (from, to) = ([0x20, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [0x20, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        [&header[..], &from, &to, payload].concat()
    };
    let udp = [4, 0, 0, 53, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let tcp = [4, 0, 0, 21, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 2, 16, 0, 0, 0, 0, 0, b'P', b'O', b'R', b'T', b' ', b'1', 13, 10];
    let icmp = [8, 0, 0, 0, 0, 1, 0, 2, 9, 9, 9, 9];
    let ethernet = |kind: u16, payload: Vec<u8>| {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        bytes.extend(kind.to_be_bytes());
        [bytes, payload].concat()
    };
    match kind {
        0 => ip(17, 0, &udp),
        1 => ip(6, 0, &tcp),
        2 => ip(1, 0, &icmp),
        3 => ip(17, 0x2000, &udp),
        4 => ip(17, 2, &udp),
        5 => ip6(17, &udp),
        6 => ip6(58, &[135, 0, 0, 0, 0, 0, 0, 0, 0x20, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]),
        7 => ethernet(0x800, ip(17, 0, &udp)),
        8 => ethernet(0x806, vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 9, 0, 2]),
        9 => ethernet(0x8100, [vec![0, 5, 8, 0], ip(6, 0, &tcp)].concat()),
        10 => ethernet(0x86dd, ip6(17, &udp)),
        11 => ip(1, 0, &[&[3, 4, 0, 0, 0, 0, 0, 60][..], &ip(17, 0, &udp)].concat()),
        12 => [ip(4, 0, &ip(17, 0, &udp))].concat(),
        _ => Vec::new(),
    }
}

/// A packet: a frame with bytes spoilt and more behind it, its headers marked or not.
fn packet(input: &mut Input<'_>) -> Option<Packet> {
    let (kind, how) = (input.below(16)?, input.byte()?);
    let mut bytes = frame(kind);
    for _ in 0..how % 4 {
        let (at, value) = (input.byte()?, input.byte()? as u8);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
    }
    if how & 4 == 4 || bytes.is_empty() {
        bytes.extend(input.bytes()?);
    }
    let network = match kind {
        7 | 8 | 10 => 14,
        9 => 18,
        _ => 0,
    };
    if how & 8 == 0
        && let Some(Ok(mut ip)) = bytes.get_mut(network..).map(Ipv4::new_checked)
    {
        ip.fill_checksum();
    }
    if how & 0xc0 == 0xc0 {
        bytes.truncate(input.byte()?);
    }
    let first = bytes.get(network).copied().unwrap_or(0);
    let mut packet = Packet::from_bytes(&bytes)?;
    if how & 16 == 0 && network <= packet.len() {
        let header_len = if first >> 4 == 6 { 40 } else { usize::from(first & 15) * 4 };
        packet.set_network_header(network);
        packet.set_transport_header((network + header_len).min(packet.len()));
    }
    if how & 32 == 32 {
        packet.set_mac_header(0);
        packet.set_dst_ip([10, 9, 0, how as u8]);
        packet.set_paint(how as u8 >> 4);
        packet.set_anno_u32(20, how as u32);
        packet.set_timestamp_ns(1_000_000_000 + how as u64);
    }
    Some(packet)
}

/// A graph, and how many outputs its feed has.
type Fed = (Plan, usize);

/// The example with a feed at all inputs that are pushed to.
fn example(number: usize) -> Option<Fed> {
    let mut plan = SAMPLES.examples.get(number % SAMPLES.examples.len().max(1))?.clone();
    let feed = plan.elements.len();
    let mut outputs = 0;
    for (element, one) in plan.elements.iter().enumerate() {
        for port in (0..one.pulled_inputs.len()).filter(|&port| !one.pulled_inputs[port]) {
            plan.edges.push(((feed, outputs), (element, port)));
            outputs += 1;
        }
    }
    plan.elements.push(PlanElement {
        name: "feed".to_owned(),
        class: FEED.name.to_owned(),
        config: String::new(),
        landmark: String::new(),
        span: None,
        pulled_inputs: Vec::new(),
        pulled_outputs: vec![false; outputs],
    });
    Some((plan, outputs))
}

/// Whether port `port` is pulled by what a code of processing says; an agnostic one is as those `around` it.
fn is_pulled(code: &str, port: usize, around: bool) -> bool {
    match code.chars().nth(port).or(code.chars().last()) {
        Some('a') | None => around,
        Some(kind) => kind == 'l',
    }
}

/// Classes one behind the other, with a queue or its end where packets must be pulled or pushed.
fn chain(numbers: &[usize]) -> Option<Fed> {
    let mut text = "feed :: Feed; feed[0] -> ".to_owned();
    let (mut pulled, mut fed) = (false, 1);
    let mut sides = String::new();
    for (i, number) in numbers.iter().enumerate() {
        let one = SAMPLES.elements.get(number % SAMPLES.elements.len().max(1))?;
        let (inputs, outputs) = one.spec.processing.split_once('/').unwrap_or((one.spec.processing, one.spec.processing));
        let wants = is_pulled(inputs, 0, pulled);
        text += match (pulled, wants) {
            (false, true) => "Queue(8) -> ",
            (true, false) => "Unqueue -> ",
            _ => "",
        };
        let _ = write!(text, "e{i} :: {}({}) -> ", one.spec.name, one.config);
        for port in 1..one.inputs {
            let queue = if is_pulled(inputs, port, wants) { "Queue(8) -> " } else { "" };
            let _ = write!(sides, "feed[{fed}] -> {queue}[{port}] e{i}; ");
            fed += 1;
        }
        for port in 1..one.outputs {
            let _ = write!(sides, "e{i}[{port}] -> Discard; ");
        }
        pulled = is_pulled(outputs, 0, wants);
        if one.outputs == 0 {
            let _ = write!(text, "Idle; Idle -> ");
            text = text.replace(" -> Idle; Idle -> ", "; Idle -> ");
            pulled = false;
        }
    }
    Some((plan(&format!("{text}Discard; {sides}"))?, fed))
}

fn graph(input: &mut Input<'_>) -> Option<Fed> {
    match input.below(4)? {
        0 => example(input.byte()?),
        n => {
            let numbers: Option<Vec<usize>> = (0..n).map(|_| input.byte()).collect();
            chain(&numbers?)
        }
    }
}

/// The handlers of an element that may be called here.
fn handlers(class: &str) -> Vec<&'static HandlerDoc> {
    let all = LIBRARY.get(class).map_or(&[][..], |spec| spec.handlers);
    all.iter().filter(|h| !h.name.contains("file")).collect()
}

/// Whether a script may be told this: it writes no files.
fn is_harmless(class: &str, text: &str) -> bool {
    let harms = ["save", "append", "print", "read", "cat", ">"];
    !BUT.contains(&class) || !harms.iter().any(|word| text.contains(word))
}

struct Running {
    simulation: Simulation,
    elements: Vec<PlanElement>,
    outputs: usize,
    /// Pieces of work that it may still do.
    pieces: u32,
}

impl Running {
    fn pass(&mut self, ns: u64) {
        let until = self.simulation.now_ns(0).saturating_add(ns);
        while self.pieces > 0 && self.simulation.now_ns(0) < until {
            self.pieces -= 1;
            match self.simulation.step(0) {
                None | Some(Step::Worked) => {}
                Some(Step::Until(when)) => self.simulation.idle(0, when.min(until)),
                Some(Step::Blocked) => self.simulation.idle(0, until),
                Some(Step::Stopped) => break,
            }
        }
    }

    fn step(&mut self, input: &mut Input<'_>, calls: bool) -> Option<()> {
        match input.below(if calls { 8 } else { 5 })? {
            0..=3 => {
                let port = input.below(self.outputs)?;
                let packet = packet(input)?;
                PACKETS.with_borrow_mut(|packets| packets.push(packet));
                if self.outputs > 0 {
                    self.simulation.write("feed", "emit", &port.to_string()).expect("a feed");
                }
                PACKETS.take();
                self.pass(1_000);
            }
            4 => self.pass(1_000 << (input.below(28)?)),
            n => {
                let element = &self.elements[input.below(self.elements.len())?];
                let known = handlers(&element.class);
                let handler = known.get(input.below(known.len())?)?;
                let text = input.text()?;
                if !is_harmless(&element.class, &text) {
                    return Some(());
                }
                let name = handler.names(element.pulled_outputs.len()).next()?;
                // Refusals are as good as answers.
                if n == 5 {
                    let _ = self.simulation.read(&element.name, &name, &text);
                } else {
                    let _ = self.simulation.write(&element.name, &name, &text);
                }
                self.pass(1_000);
            }
        }
        Some(())
    }
}

/// Builds the graph that the input names and does its steps, of which `calls` says whether handlers are called. No packet is
/// lost.
pub fn attack(data: &[u8], calls: bool) {
    causeway_packet::pool::flush_thread();
    let free = causeway_packet::pool::shared_free();
    let mut input = Input(data);
    if let Some((plan, outputs)) = graph(&mut input) {
        let options = Options { seed: Some(1), ..Options::default() };
        let costs = |_| |_: &Visit<'_>| 100;
        if let Ok(simulation) = Simulation::new(&LIBRARY, &plan, &options, costs) {
            let mut running = Running { simulation, elements: plan.elements, outputs, pieces: PIECES };
            while running.step(&mut input, calls).is_some() {}
            for element in &running.elements {
                for handler in handlers(&element.class).iter().filter(|h| h.access.reads()) {
                    let _ = running.simulation.read(&element.name, handler.name, "");
                }
            }
        }
    }
    PACKETS.take();
    causeway_packet::pool::flush_thread();
    assert_eq!(causeway_packet::pool::shared_free(), free, "frames that nobody gave back");
}
