//! The decision program: what a list of expressions becomes before packets come.
//!
//! A step tests one word and goes on to one of two places, each a later step or the program's answer. The steps of
//! an expression follow from where it is to go when it holds and when it does not (short-circuit evaluation).
//! [`thread`] then redirects every branch past the steps whose outcome is already decided by those before it, so
//! that what two patterns have in common is tested once. All of this keeps the meaning on packets too short for a
//! test, for which each test says how it comes out.

use super::cuts::{Cuts, longest};
use super::expr::{Base, Expr, LINK_BYTES, Test};
use super::lower::lower;
use super::{split, thread};
use causeway_engine::ir;
use causeway_packet::Packet;
use std::fmt;

/// Where a branch leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Goal {
    /// Step of this number.
    Step(usize),
    /// The packet leaves by this output.
    Output(usize),
    /// The packet is dropped.
    Drop,
}

/// A step while the program is being made: branches taken when the test fails and when it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) test: Test,
    pub(crate) to: [Goal; 2],
}

/// A step as it is run. Mask and value are in the byte order of memory.
#[derive(Clone, Copy, Debug)]
struct Step {
    mask: u32,
    value: u32,
    to: [u32; 2],
    offset: u16,
    base: u8,
    /// Place of the word in the program's window.
    slot: u8,
    short: bool,
}

/// Which words of a packet are all that the program looks at. A packet that has them runs through without
/// further checks of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// The first 32 bytes.
    Start,
    /// The first 60 bytes, which are the shortest Ethernet frame.
    Frame,
    /// 32 bytes from the network header on and 16 from the transport header on.
    Headers,
    /// Others.
    None,
}

impl Window {
    /// The smallest window with all tests in it.
    fn of(nodes: &[Node]) -> Window {
        let within = |base: Base, end: u16| {
            nodes.iter().filter(|n| n.test.base == base).all(|n| n.test.offset + 4 <= end)
        };
        let data_only = nodes.iter().all(|n| n.test.base == Base::Data);
        let headers_only = nodes.iter().all(|n| matches!(n.test.base, Base::Network | Base::Transport));
        match (data_only, headers_only) {
            (true, _) if within(Base::Data, 32) => Window::Start,
            (true, _) if within(Base::Data, 60) => Window::Frame,
            (_, true) if within(Base::Network, 32) && within(Base::Transport, 16) => Window::Headers,
            _ => Window::None,
        }
    }

    /// Where the word is in the window that lies so many bytes behind a base.
    pub fn slot(self, is_transport: bool, offset: u32) -> u8 {
        let first = if self == Window::Headers && is_transport { TRANSPORT_SLOT } else { 0 };
        (first + offset as usize / 4) as u8
    }

    /// The words of a packet, if it has them all.
    #[inline(always)]
    pub fn words(self, data: &[u8], bases: &Bases) -> Option<[u32; SLOTS]> {
        let mut words = [0; SLOTS];
        match self {
            Window::Start => load(&mut words, data.first_chunk::<32>()?),
            Window::Frame => load(&mut words, data.first_chunk::<60>()?),
            Window::Headers => {
                load(&mut words, data.get(bases[1]..)?.first_chunk::<32>()?);
                load(&mut words[TRANSPORT_SLOT..], data.get(bases[2]..)?.first_chunk::<16>()?);
            }
            Window::None => return None,
        }
        Some(words)
    }
}

/// Words that a window has room for, a power of two.
pub(super) const SLOTS: usize = 16;
/// Where the words of the transport header start.
const TRANSPORT_SLOT: usize = 8;

#[inline(always)]
fn load<const N: usize>(words: &mut [u32], bytes: &[u8; N]) {
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_ne_bytes(*bytes);
    }
}

/// Answers are numbered from here on, above every step.
const ANSWERS: u32 = 1 << 31;
/// The answer "drop the packet".
pub(crate) const DROP: usize = (u32::MAX - ANSWERS) as usize;

/// The longest way through a program that a diagram is not tried for.
const SHORT: usize = 8;
/// The most steps of a program that one is made of, since whoever writes a handler waits for it: some two hundred rules.
const MOST_STEPS: usize = 800;

/// A base that no packet reaches.
const NOWHERE: usize = usize::MAX / 2;

/// Where the headers of a packet start in its data, by [`Base`].
pub(crate) type Bases = [usize; 3];

/// Headers of a packet whose data alone is looked at.
pub(crate) const DATA_ONLY: Bases = [0, NOWHERE, NOWHERE];

/// The bases of a packet whose network header starts at `network`, if it has one, and its transport header at
/// `transport`.
#[inline]
pub(crate) fn bases(network: Option<usize>, transport: Option<usize>) -> Bases {
    [0, network.unwrap_or(NOWHERE), transport.unwrap_or(NOWHERE)]
}

/// What tests from [`Base::Link`] look at: the Ethernet addresses, which may be in front of the data already.
pub(crate) type Link = [u8; LINK_BYTES];

/// The Ethernet addresses of `packet`, if its link-layer header is known.
#[cold]
pub(crate) fn link(packet: &Packet) -> Option<Link> {
    let stripped = packet.stripped_mac_header().filter(|header| header.len() >= LINK_BYTES - 2);
    let header = stripped.or_else(|| packet.mac_header())?;
    let mut link = [0; LINK_BYTES];
    link[2..].copy_from_slice(header.get(..LINK_BYTES - 2)?);
    Some(link)
}

/// A compiled list of expressions.
#[derive(Debug)]
pub(crate) struct Program {
    /// What is run.
    steps: Box<[Step]>,
    start: u32,
    window: Window,
    /// The same for packets with all words of the window, if this is a shorter way.
    cuts: Option<Cuts>,
    /// The same before steps were split, which is what people see.
    nodes: Vec<Node>,
    first: Goal,
}

impl Program {
    /// The program that answers with the goal of the first rule whose expression holds, else drops.
    pub(crate) fn new(rules: &[(Expr, Goal)]) -> Program {
        let mut builder = Builder::default();
        let mut first = Goal::Drop;
        for (expr, goal) in rules.iter().rev() {
            first = builder.add(expr, *goal, first);
        }
        let (nodes, first) = builder.finish(first);
        let (nodes, first) = thread::optimise(nodes, first);
        let window = Window::of(&nodes);
        let (copies, start) = split::split(&nodes, first);
        let steps = copies.iter().map(|n| Step {
            mask: u32::from_ne_bytes(n.test.mask.to_be_bytes()),
            value: u32::from_ne_bytes(n.test.value.to_be_bytes()),
            to: n.to.map(encode),
            offset: n.test.offset,
            base: n.test.base as u8,
            slot: window.slot(n.test.base == Base::Transport, n.test.offset.into()),
            short: n.test.short,
        });
        let (steps, start): (Box<[Step]>, u32) = (steps.collect(), encode(start));
        let way = longest(steps.iter().map(|step| step.to), start);
        let slot = |at: ir::At| window.slot(at.base == ir::Base::Transport, at.offset);
        let worthwhile = window != Window::None && way > SHORT && nodes.len() <= MOST_STEPS;
        let cuts = worthwhile.then(|| Cuts::of(lower(&nodes, first)?, slot)).flatten();
        let cuts = cuts.filter(|cuts| cuts.longest() < way);
        Program { steps, start, window, cuts, nodes, first }
    }

    /// The output for a packet, or [`DROP`]. `link` is asked only by programs that look at Ethernet addresses, and by
    /// short packets.
    #[inline]
    pub(crate) fn run(&self, data: &[u8], bases: &Bases, link: impl FnOnce() -> Option<Link>) -> usize {
        let Some(words) = self.window.words(data, bases) else {
            return self.run_checked(data, bases, link());
        };
        if let Some(cuts) = &self.cuts {
            return (cuts.run(&words) - ANSWERS) as usize;
        }
        let mut at = self.start;
        while let Some(step) = self.steps.get(at as usize) {
            let word = words[step.slot as usize % SLOTS];
            at = step.to[(word & step.mask == step.value) as usize];
        }
        (at - ANSWERS) as usize
    }

    /// The same for packets and programs that do not fit a window.
    fn run_checked(&self, data: &[u8], bases: &Bases, link: Option<Link>) -> usize {
        let link = link.as_ref().map_or(&[][..], |link| link);
        let mut at = self.start;
        while let Some(step) = self.steps.get(at as usize) {
            // The base that is no part of the data is the link-layer header.
            let (bytes, base) = bases.get(step.base as usize).map_or((link, 0), |&base| (data, base));
            let start = base + step.offset as usize;
            let holds = match bytes.get(start..).and_then(|d| d.first_chunk::<4>()) {
                Some(word) => u32::from_ne_bytes(*word) & step.mask == step.value,
                None => short_word_holds(bytes, start, step),
            };
            at = step.to[holds as usize];
        }
        (at - ANSWERS) as usize
    }

    /// The same in the intermediate representation, if it can be said there.
    pub(crate) fn lower(&self) -> Option<causeway_engine::ir::Program> {
        lower(&self.nodes, self.first)
    }

    /// Those of the first `outputs` outputs that no packet leaves by.
    pub(crate) fn unused(&self, outputs: usize) -> Vec<usize> {
        let mut goals = self.nodes.iter().flat_map(|n| n.to).chain([self.first]).collect::<Vec<_>>();
        goals.sort_unstable();
        (0..outputs).filter(|&o| goals.binary_search(&Goal::Output(o)).is_err()).collect()
    }

    /// Bytes that a packet must have for every test to lie inside, counted as offsets are printed.
    fn safe_length(&self) -> usize {
        self.nodes.iter().map(|n| printed(n.test.base, n.test.needed())).max().unwrap_or(0)
    }
}

/// How a step comes out whose word the packet ends in: as zeros would behind the end, if the mask covers none of
/// them, and else as the test says.
#[cold]
fn short_word_holds(bytes: &[u8], start: usize, step: &Step) -> bool {
    let mut word = [0; 4];
    let have = bytes.get(start..).unwrap_or_default();
    word.iter_mut().zip(have).for_each(|(to, from)| *to = *from);
    let mask = step.mask.to_ne_bytes();
    match mask.get(have.len()..).is_some_and(|missing| missing.iter().any(|&m| m != 0)) {
        true => step.short,
        false => u32::from_ne_bytes(word) & step.mask == step.value,
    }
}

/// Where a step leads to that has this goal.
pub(super) fn encode(goal: Goal) -> u32 {
    match goal {
        Goal::Step(n) => n as u32,
        Goal::Output(port) => ANSWERS + (port as u32).min(u32::MAX - ANSWERS),
        Goal::Drop => u32::MAX,
    }
}

/// Makes steps, the last ones first: one for each test, in the order of the text.
#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
}

impl Builder {
    /// Adds the steps that lead to `yes` if `expr` holds and to `no` if not; returns where to start.
    fn add(&mut self, expr: &Expr, yes: Goal, no: Goal) -> Goal {
        match expr {
            Expr::Const(true) => yes,
            Expr::Const(false) => no,
            Expr::Test(test) => {
                self.nodes.push(Node { test: *test, to: [no, yes] });
                Goal::Step(self.nodes.len() - 1)
            }
            Expr::Not(e) => self.add(e, no, yes),
            Expr::And(list) => list.iter().rev().fold(yes, |yes, e| self.add(e, yes, no)),
            Expr::Or(list) => list.iter().rev().fold(no, |no, e| self.add(e, yes, no)),
            Expr::If(parts) => {
                let fails = self.add(&parts[2], yes, no);
                let holds = self.add(&parts[1], yes, no);
                self.add(&parts[0], holds, fails)
            }
        }
    }

    /// The steps in order, and the first place.
    fn finish(mut self, first: Goal) -> (Vec<Node>, Goal) {
        let last = self.nodes.len().saturating_sub(1);
        let turned = |goal| match goal {
            Goal::Step(n) => Goal::Step(last - n),
            answer => answer,
        };
        self.nodes.reverse();
        self.nodes.iter_mut().for_each(|node| node.to = node.to.map(turned));
        (self.nodes, turned(first))
    }
}

/// How an offset is printed: those from the network header with 256 more, those from the transport header with 512.
fn printed(base: Base, offset: usize) -> usize {
    match base {
        Base::Data | Base::Link => offset,
        Base::Network => 256 + offset,
        Base::Transport => 512 + offset,
    }
}

/// The program in Click's format: number, offset, value and mask of each step, and where its branches lead.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let goal = |g: Goal| match g {
            Goal::Step(n) => format!("step {n}"),
            Goal::Output(port) => format!("[{port}]"),
            Goal::Drop => "[X]".to_owned(),
        };
        match self.first {
            Goal::Step(_) => {}
            Goal::Output(port) => writeln!(f, "all->[{port}]")?,
            // An output that nobody has, the largest number.
            Goal::Drop => writeln!(f, "all->[{}]", i32::MAX)?,
        }
        for (i, Node { test, to }) in self.nodes.iter().enumerate() {
            let offset = printed(test.base, test.offset as usize);
            let (no, yes) = (goal(to[0]), goal(to[1]));
            let short = if test.short { "  short->yes" } else { "" };
            writeln!(
                f,
                "{i:2} {offset:3}/{:08x}%{:08x}  yes->{yes}  no->{no}{short}",
                test.value, test.mask
            )?;
        }
        writeln!(f, "safe length {}\nalignment offset 0", self.safe_length())
    }
}

#[cfg(test)]
mod tests;
