//! A decision diagram as it is run: comparisons of the words of a packet that has them all.
//!
//! What a list of rules lowers to is made a diagram ([`as_diagram`]), which asks a packet for each field once. Its comparisons
//! are all of one form here: whether a word under a mask is in an interval.

use super::program::{Goal, SLOTS, encode};
use causeway_engine::ir::{Alu, At, Code, End, Op, Program, Reg, Test, Value, as_diagram};

/// A comparison. Mask and bounds are in network order.
#[derive(Clone, Copy, Debug)]
struct Cut {
    mask: u32,
    /// The interval's least number, and how many more are in it.
    low: u32,
    span: u32,
    /// Where it goes on outside of the interval and inside, as steps of a program do.
    to: [u32; 2],
    /// Place of the word in the program's window.
    slot: u8,
}

/// A diagram.
#[derive(Debug)]
pub(super) struct Cuts {
    cuts: Box<[Cut]>,
    start: u32,
}

/// Bytes that are compared: as they are loaded, under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loaded {
    to: Reg,
    at: At,
    bytes: u8,
    mask: u64,
}

/// What a block of a diagram does with a packet that has all bytes.
enum Step {
    Go(usize),
    Answer(Goal),
    Compare(Cut, [usize; 2]),
}

impl Cuts {
    /// The diagram of a program that only compares, whose words have a place in the window; of one that has none its own
    /// comparisons. `None` if it does more.
    pub fn of(program: Program, slot: impl Fn(At) -> u8) -> Option<Cuts> {
        let program = as_diagram(program);
        let blocks = program.blocks();
        let mut loaded: Vec<Option<Loaded>> = vec![None; blocks.len()];
        let mut steps: Vec<Option<Step>> = blocks.iter().map(|_| None).collect();
        let mut reached = vec![false; blocks.len()];
        *reached.first_mut()? = true;
        for (number, code) in blocks.iter().enumerate() {
            if !reached[number] {
                continue;
            }
            let known = if code.ops.is_empty() { loaded[number] } else { Some(loading(code)?) };
            let step = step(code, known, &slot)?;
            let next = match &step {
                Step::Go(to) => &[*to][..],
                Step::Compare(_, to) => &to[..],
                Step::Answer(_) => &[],
            };
            for &to in next {
                // What is loaded on one way must be what is loaded on the other.
                if reached[to] && compares_further(&blocks[to]) && loaded[to] != known {
                    return None;
                }
                (loaded[to], reached[to]) = (known, true);
            }
            steps[number] = Some(step);
        }
        Cuts::join(&steps)
    }

    /// Gives comparisons numbers, and leaves out what only leads to others.
    fn join(steps: &[Option<Step>]) -> Option<Cuts> {
        let is_cut = |step: &&Option<Step>| matches!(step, Some(Step::Compare(..)));
        let mut left = steps.iter().filter(is_cut).count();
        let mut cuts = Vec::with_capacity(left);
        // Blocks lead to later ones.
        let mut places = vec![0; steps.len()];
        for (number, step) in steps.iter().enumerate().rev() {
            places[number] = match step {
                None => continue,
                Some(Step::Go(to)) => places[*to],
                Some(Step::Answer(goal)) => encode(*goal),
                Some(Step::Compare(cut, to)) => {
                    left -= 1;
                    cuts.push(Cut { to: to.map(|to| places[to]), ..*cut });
                    left as u32
                }
            };
        }
        cuts.reverse();
        Some(Cuts { cuts: cuts.into(), start: *places.first()? })
    }

    /// Comparisons on the longest way.
    pub fn longest(&self) -> usize {
        longest(self.cuts.iter().map(|cut| cut.to), self.start)
    }

    /// Where a packet with these words gets to, as a step says it.
    #[inline(always)]
    pub fn run(&self, words: &[u32; SLOTS]) -> u32 {
        let mut at = self.start;
        while let Some(cut) = self.cuts.get(at as usize) {
            let word = u32::from_be(words[usize::from(cut.slot) % SLOTS]) & cut.mask;
            at = cut.to[usize::from(word.wrapping_sub(cut.low) <= cut.span)];
        }
        at
    }
}

/// Steps on the longest way from `start` on; each leads to later ones.
pub(super) fn longest(
    steps: impl DoubleEndedIterator<Item = [u32; 2]> + ExactSizeIterator,
    start: u32,
) -> usize {
    let mut ways = vec![0; steps.len()];
    for (number, to) in steps.enumerate().rev() {
        let behind = to.map(|to| ways.get(to as usize).copied().unwrap_or(0));
        ways[number] = 1 + behind[0].max(behind[1]);
    }
    ways.get(start as usize).copied().unwrap_or(0)
}

/// Whether a block compares what was loaded before.
fn compares_further(code: &Code) -> bool {
    code.ops.is_empty() && matches!(code.end, End::If(Test::Equal(..) | Test::Above(..), ..))
}

/// What a block loads to compare it.
fn loading(code: &Code) -> Option<Loaded> {
    let (&Op::Load { to, at, bytes }, more) = code.ops.split_first()? else { return None };
    match *more {
        [] => Some(Loaded { to, at, bytes, mask: u64::MAX }),
        [Op::Compute { to: masked, how: Alu::And, a: Value::Of(of), b: Value::Const(mask) }] if of == to => {
            Some(Loaded { to: masked, at, bytes, mask })
        }
        _ => None,
    }
}

/// What a block does; `None` if that is more than a diagram does.
fn step(code: &Code, loaded: Option<Loaded>, slot: &impl Fn(At) -> u8) -> Option<Step> {
    Some(match code.end {
        End::Go(to) | End::If(Test::Has(..), to, _) => Step::Go(to),
        End::Leave(port) => Step::Answer(Goal::Output(port.into())),
        End::Drop(_) => Step::Answer(Goal::Drop),
        End::If(Test::Equal(Value::Of(reg), Value::Const(n)), yes, no) => {
            Step::Compare(cut(loaded.filter(|l| l.to == reg)?, n, Some(0), slot)?, [no, yes])
        }
        End::If(Test::Above(Value::Of(reg), Value::Const(n)), yes, no) => {
            Step::Compare(cut(loaded.filter(|l| l.to == reg)?, n.checked_add(1)?, None, slot)?, [no, yes])
        }
        _ => return None,
    })
}

/// Whether what is loaded is `low` or one of `span` numbers above it; of all without a span.
fn cut(loaded: Loaded, low: u64, span: Option<u32>, slot: &impl Fn(At) -> u8) -> Option<Cut> {
    // Words begin at multiples of four, and what is loaded lies in one.
    let end = loaded.at.offset % 4 + u32::from(loaded.bytes);
    let shift = 8 * 4u32.checked_sub(end)?;
    let whole = u64::MAX >> (64 - 8 * u32::from(loaded.bytes));
    let [mask, low] = [loaded.mask & whole, low].map(|n| u32::try_from(n << shift));
    let low = low.ok()?;
    Some(Cut {
        mask: mask.ok()?,
        low,
        span: span.unwrap_or(u32::MAX - low),
        to: [0; 2],
        slot: slot(loaded.at),
    })
}
