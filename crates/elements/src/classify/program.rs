//! The decision program: what a list of expressions becomes before packets come.
//!
//! A step tests one word and goes on to one of two places, each a later step or the program's answer. The steps of
//! an expression follow from where it is to go when it holds and when it does not (short-circuit evaluation).
//! [`thread`] then redirects every branch past the steps whose outcome is already decided by those before it, so
//! that what two patterns have in common is tested once. All of this keeps the meaning on packets too short for a
//! test: there it is false, and a test that implies another one covers its bytes.

use super::expr::{Base, Expr, Test};
use super::thread;
use std::collections::HashMap;
use std::fmt;

/// Where a branch leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
}

/// Which words of a packet are all that the program looks at. A packet that has them runs through without
/// further checks of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
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
        let no_data = nodes.iter().all(|n| n.test.base != Base::Data);
        match (data_only, no_data) {
            (true, _) if within(Base::Data, 32) => Window::Start,
            (true, _) if within(Base::Data, 60) => Window::Frame,
            (_, true) if within(Base::Network, 32) && within(Base::Transport, 16) => Window::Headers,
            _ => Window::None,
        }
    }

    /// Where `test` finds its word in the window.
    fn slot(self, test: &Test) -> u8 {
        let first = if self == Window::Headers && test.base == Base::Transport { TRANSPORT_SLOT } else { 0 };
        (first + test.offset as usize / 4) as u8
    }

    /// The words of a packet, if it has them all.
    #[inline(always)]
    fn words(self, data: &[u8], bases: &Bases) -> Option<[u32; SLOTS]> {
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
const SLOTS: usize = 16;
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

/// A base that no packet reaches.
const NOWHERE: usize = usize::MAX / 2;

/// Where the headers of a packet start, by [`Base`].
pub(crate) type Bases = [usize; 3];

/// Headers of a packet whose data alone is looked at.
pub(crate) const DATA_ONLY: Bases = [0, NOWHERE, NOWHERE];

/// The bases of a packet whose network header starts at `network`, if it has one, and its transport header at
/// `transport`.
#[inline]
pub(crate) fn bases(network: Option<usize>, transport: Option<usize>) -> Bases {
    [0, network.unwrap_or(NOWHERE), transport.unwrap_or(NOWHERE)]
}

/// A compiled list of expressions.
#[derive(Debug)]
pub(crate) struct Program {
    steps: Box<[Step]>,
    start: u32,
    window: Window,
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
        let (nodes, first) = thread::optimise(builder.nodes, first);
        let window = Window::of(&nodes);
        let steps = nodes.iter().map(|n| Step {
            mask: u32::from_ne_bytes(n.test.mask.to_be_bytes()),
            value: u32::from_ne_bytes(n.test.value.to_be_bytes()),
            to: n.to.map(encode),
            offset: n.test.offset,
            base: n.test.base as u8,
            slot: window.slot(&n.test),
        });
        Program { steps: steps.collect(), start: encode(first), window, nodes, first }
    }

    /// The output for a packet, or [`DROP`].
    #[inline]
    pub(crate) fn run(&self, data: &[u8], bases: &Bases) -> usize {
        let Some(words) = self.window.words(data, bases) else { return self.run_checked(data, bases) };
        let mut at = self.start;
        while let Some(step) = self.steps.get(at as usize) {
            let word = words[step.slot as usize % SLOTS];
            at = step.to[(word & step.mask == step.value) as usize];
        }
        (at - ANSWERS) as usize
    }

    /// The same for packets and programs that do not fit a window.
    fn run_checked(&self, data: &[u8], bases: &Bases) -> usize {
        let mut at = self.start;
        while let Some(step) = self.steps.get(at as usize) {
            let base = bases.get(step.base as usize).copied().unwrap_or(NOWHERE);
            let start = base + step.offset as usize;
            let word = match data.get(start..).and_then(|d| d.first_chunk::<4>()) {
                Some(word) => u32::from_ne_bytes(*word),
                None => short_word(data, start, step),
            };
            at = step.to[(word & step.mask == step.value) as usize];
        }
        (at - ANSWERS) as usize
    }

    /// Where the program gets to with packets that pass `test`, which is an answer if that decides.
    pub(crate) fn decided_by(&self, test: &Test) -> Goal {
        thread::follow_from(&self.nodes, self.first, test)
    }

    /// Bytes of data that a packet must have for every test to lie inside, when all offsets count from the data.
    fn safe_length(&self) -> usize {
        let ends = self.nodes.iter().map(|n| {
            let used = 4 - n.test.mask.trailing_zeros() as usize / 8;
            n.test.offset as usize + used
        });
        ends.max().unwrap_or(0)
    }
}

/// A word that the packet ends in: its bytes and zeros, if the mask covers none of those that are missing. Else
/// something that fails the test.
#[cold]
fn short_word(data: &[u8], start: usize, step: &Step) -> u32 {
    let mut word = [0; 4];
    let have = data.get(start..).unwrap_or_default();
    word.iter_mut().zip(have).for_each(|(to, from)| *to = *from);
    let mask = step.mask.to_ne_bytes();
    match mask.get(have.len()..).is_some_and(|missing| missing.iter().any(|&m| m != 0)) {
        true => !step.value,
        false => u32::from_ne_bytes(word),
    }
}

fn encode(goal: Goal) -> u32 {
    match goal {
        Goal::Step(n) => n as u32,
        Goal::Output(port) => ANSWERS + (port as u32).min(u32::MAX - ANSWERS),
        Goal::Drop => u32::MAX,
    }
}

/// Makes steps, the last ones first; equal ones are made once.
#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    made: HashMap<Node, Goal>,
}

impl Builder {
    /// Adds the steps that lead to `yes` if `expr` holds and to `no` if not; returns where to start.
    fn add(&mut self, expr: &Expr, yes: Goal, no: Goal) -> Goal {
        match expr {
            Expr::Const(true) => yes,
            Expr::Const(false) => no,
            Expr::Test(test) => self.step(Node { test: *test, to: [no, yes] }),
            Expr::Not(e) => self.add(e, no, yes),
            Expr::And(list) => merged(list).iter().rev().fold(yes, |yes, e| self.add(e, yes, no)),
            Expr::Or(list) => list.iter().rev().fold(no, |no, e| self.add(e, yes, no)),
            Expr::If(parts) => {
                let [holds, fails] = [self.add(&parts[1], yes, no), self.add(&parts[2], yes, no)];
                self.add(&parts[0], holds, fails)
            }
        }
    }

    fn step(&mut self, node: Node) -> Goal {
        if node.to[0] == node.to[1] {
            return node.to[0];
        }
        if node.test.mask == 0 {
            return node.to[1];
        }
        let next = Goal::Step(self.nodes.len());
        let goal = *self.made.entry(node).or_insert(next);
        if goal == next {
            self.nodes.push(node);
        }
        goal
    }
}

/// The terms of a conjunction, nested ones included, with tests of the same word made one.
fn merged(terms: &[Expr]) -> Vec<Expr> {
    let mut out: Vec<Expr> = Vec::new();
    let mut todo: Vec<&Expr> = terms.iter().rev().collect();
    while let Some(term) = todo.pop() {
        match term {
            Expr::And(inner) => todo.extend(inner.iter().rev()),
            Expr::Test(test) => {
                let same = out.iter_mut().find_map(|e| match e {
                    Expr::Test(t) if (t.base, t.offset) == (test.base, test.offset) => Some(t),
                    _ => None,
                });
                match same {
                    Some(t) if (t.value ^ test.value) & t.mask & test.mask != 0 => {
                        return vec![Expr::Const(false)];
                    }
                    Some(t) => {
                        *t = Test { mask: t.mask | test.mask, value: t.value | test.value, ..*t };
                    }
                    None => out.push(term.clone()),
                }
            }
            _ => out.push(term.clone()),
        }
    }
    out
}

/// The program in Click's format: number, offset, value and mask of each step, and where its branches lead.
/// Offsets from the network header are printed plus 256, those from the transport header plus 512.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let goal = |g: Goal| match g {
            Goal::Step(n) => format!("step {n}"),
            Goal::Output(port) => format!("[{port}]"),
            Goal::Drop => "[X]".to_owned(),
        };
        if self.nodes.is_empty() {
            writeln!(f, "all->{}", goal(self.first))?;
        }
        for (i, Node { test, to }) in self.nodes.iter().enumerate() {
            let offset = test.base as u32 * 256 + test.offset as u32;
            let (no, yes) = (goal(to[0]), goal(to[1]));
            writeln!(f, "{i:2} {offset:3}/{:08x}%{:08x}  yes->{yes}  no->{no}", test.value, test.mask)?;
        }
        if self.nodes.iter().all(|n| n.test.base == Base::Data) {
            writeln!(f, "safe length {}", self.safe_length())?;
        }
        writeln!(f, "alignment offset 0")
    }
}
