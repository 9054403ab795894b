//! Classifications as decision diagrams: many rules, tested at once.
//!
//! A program that only compares and chooses, as those of Classifier, IPClassifier and IPFilter, is a list of tests of words
//! under masks, of which a packet meets one after the other. Here it becomes an interval decision diagram (Christiansen and
//! Fleury, *An Interval Decision Diagram Based Firewall*, 2004; of the family of Bryant's graphs, 1986): fields in a fixed
//! order, each looked at once on any way, and from each a way for each interval of values, found by bisection. Equal parts
//! are one, so that rules and terms share what they have in common. The number of steps grows with the number of fields and
//! the logarithm of the number of rules.
//!
//! Packets too short for some test keep the list, whose tests say how they come out then.

use super::intervals::{Intervals, Node};
use super::{Alu, At, Base, Block, Builder, Code, End, Op, Program, Reg, Test, Value};
use std::collections::BTreeMap;

/// Intervals of a diagram at most: each is some instructions.
const MOST_CUTS: usize = 3_000;

/// The same program, as a diagram in front of itself if it is a classification that becomes shorter so.
#[must_use]
pub fn as_diagram(program: Program) -> Program {
    match List::of(&program).and_then(|list| list.diagram()) {
        Some(diagram) => diagram,
        None => program,
    }
}

/// A test of bytes: the eight from a place on, shifted up if there are fewer, under a mask.
#[derive(Clone, Copy, Debug)]
struct Masked {
    at: At,
    mask: u64,
    value: u64,
    /// How many bytes are loaded.
    bytes: u8,
}

/// What a block of a classification is.
#[derive(Clone, Copy, Debug)]
enum Step {
    Has(At, u32, [Block; 2]),
    Is(Masked, [Block; 2]),
    Go(Block),
    Answer(End),
}

/// A program that only compares and chooses.
struct List(Vec<Step>);

impl List {
    fn of(program: &Program) -> Option<List> {
        let step = |code: &Code| match (&code.ops[..], code.end) {
            ([], End::If(Test::Has(at, bytes), yes, no)) => Some(Step::Has(at, bytes, [no, yes])),
            ([], End::Go(to)) => Some(Step::Go(to)),
            ([], end @ (End::Leave(_) | End::Drop(_) | End::GiveUp)) => Some(Step::Answer(end)),
            (
                &[
                    Op::Load { to, at, bytes },
                    Op::Compute { to: masked, how: Alu::And, a, b: Value::Const(mask) },
                ],
                End::If(Test::Equal(Value::Of(compared), Value::Const(value)), yes, no),
            ) if a == Value::Of(to) && compared == masked && (1..=8).contains(&bytes) => {
                let up = 64 - 8 * u32::from(bytes);
                let fits = value & !mask == 0 && mask << up >> up == mask && mask != 0;
                let test = Masked { at, mask: mask << up, value: value << up, bytes };
                fits.then_some(Step::Is(test, [no, yes]))
            }
            _ => None,
        };
        program.blocks().iter().map(step).collect::<Option<Vec<_>>>().map(List)
    }

    fn tests(&self) -> impl Iterator<Item = Masked> + '_ {
        self.0.iter().filter_map(|step| match step {
            Step::Is(test, _) => Some(*test),
            _ => None,
        })
    }

    /// The program with a diagram for packets that have all bytes which are looked at.
    fn diagram(&self) -> Option<Program> {
        let fields = Fields::of(self);
        let (graph, first, answers) = self.intervals(&fields)?;
        let used = graph.reached(first);
        let cuts: usize = used.iter().map(|&node| graph.cuts(node).len()).sum();
        // One that tests no less than the list is no gain.
        if cuts > MOST_CUTS || self.tests().count() < 2 {
            return None;
        }
        let mut whole: BTreeMap<u8, (Base, u32)> = BTreeMap::new();
        for test in self.tests() {
            let end = &mut whole.entry(number(test.at.base)).or_insert((test.at.base, 0)).1;
            *end = (*end).max(test.at.offset.saturating_add(test.bytes.into()));
        }
        // Blocks lead to later ones: what is asked first, the diagram, the list, the answers.
        let mut b = Builder::new();
        let asked: Vec<Block> = whole.iter().map(|_| b.block()).collect();
        let mut nodes: BTreeMap<u32, Vec<Block>> = BTreeMap::new();
        for &node in &used {
            let blocks = 1 + 2 * halvings(graph.cuts(node));
            nodes.insert(node, (0..blocks).map(|_| b.block()).collect());
        }
        let list: Vec<Block> = self.0.iter().map(|_| b.block()).collect();
        let ends: Vec<Block> = answers.iter().map(|_| b.block()).collect();
        for ((base, bytes), next) in whole.into_values().zip(asked) {
            b.branch(Test::Has(At { base, offset: 0 }, bytes), next, *list.first()?);
            b.at(next);
        }
        let place = |node: u32| match graph.node(node) {
            Node::Answer(answer) => ends.get(*answer).copied(),
            Node::Field(..) => nodes.get(&node)?.first().copied(),
        };
        b.go(place(first)?);
        for (&node, blocks) in &nodes {
            let mut blocks = blocks.iter().copied();
            b.at(blocks.next()?);
            fields.write(&mut b, graph.node(node), &place, &mut blocks)?;
        }
        self.write(&mut b, &list);
        for (&end, &block) in answers.iter().zip(&ends) {
            b.at(block);
            finish(&mut b, end);
        }
        let program = b.finish()?;
        Some(Program { list: list.first().copied(), ..program })
    }

    /// The diagram, its first node and the answers that it gives.
    fn intervals(&self, fields: &Fields) -> Option<(Intervals, u32, Vec<End>)> {
        let mut graph = Intervals::new(fields.0.iter().map(|field| field.mask >> field.shift()).collect());
        let (mut of_step, mut answers) = (vec![0; self.0.len()], Vec::new());
        // Steps lead to later ones.
        for (n, step) in self.0.iter().enumerate().rev() {
            of_step[n] = match *step {
                // Those that have too little are not here.
                Step::Has(_, _, [_, yes]) | Step::Go(yes) => *of_step.get(yes)?,
                Step::Answer(end) => {
                    let known = answers.iter().position(|&other| other == end);
                    let answer = known.unwrap_or_else(|| {
                        answers.push(end);
                        answers.len() - 1
                    });
                    graph.answer(answer)
                }
                Step::Is(test, [no, yes]) => {
                    let no = *of_step.get(no)?;
                    let mut result = *of_step.get(yes)?;
                    for (field, low, high) in fields.parts(&test) {
                        result = graph.choose(field, low..=high, result, no)?;
                    }
                    result
                }
            };
        }
        Some((graph, *of_step.first()?, answers))
    }

    /// Writes the list itself.
    fn write(&self, b: &mut Builder, blocks: &[Block]) {
        let to = |n: Block| blocks.get(n).copied().unwrap_or(usize::MAX - 1);
        for (step, &block) in self.0.iter().zip(blocks) {
            b.at(block);
            match *step {
                Step::Has(at, bytes, [no, yes]) => b.branch(Test::Has(at, bytes), to(yes), to(no)),
                Step::Go(next) => b.go(to(next)),
                Step::Answer(end) => finish(b, end),
                Step::Is(test, [no, yes]) => b.with_scratch(|b| {
                    let up = 64 - 8 * u32::from(test.bytes);
                    let word = b.load(test.at, test.bytes);
                    let bits = b.compute(Alu::And, word, test.mask >> up);
                    b.branch(Test::Equal(bits.into(), (test.value >> up).into()), to(yes), to(no));
                }),
            }
        }
    }
}

fn finish(b: &mut Builder, end: End) {
    match end {
        End::Leave(port) => b.leave(port),
        End::Drop(reason) => b.drop(reason),
        _ => {
            let last = b.given_up();
            b.go(last);
        }
    }
}

fn number(base: Base) -> u8 {
    match base {
        Base::Data => 0,
        Base::Network => 1,
        Base::Transport => 2,
    }
}

/// Bits that are looked at together, high ones first: each test wants all of them, or the first so many, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    at: At,
    /// In the eight bytes from `at` on.
    mask: u64,
}

impl Field {
    fn shift(&self) -> u32 {
        self.mask.trailing_zeros()
    }
}

/// The fields of a classification, in the order in which a diagram looks at them: those of few values first, since what
/// comes later is there several times.
struct Fields(Vec<Field>);

impl Fields {
    fn of(list: &List) -> Fields {
        let mut words: BTreeMap<(u8, u32), (At, Vec<u64>)> = BTreeMap::new();
        for test in list.tests() {
            let (_, masks) =
                words.entry((number(test.at.base), test.at.offset)).or_insert((test.at, Vec::new()));
            masks.push(test.mask);
        }
        let fields: Vec<Field> = words
            .into_values()
            .flat_map(|(at, masks)| fields(&masks).into_iter().map(move |mask| Field { at, mask }))
            .collect();
        let mut fields = Fields(fields);
        let mut values: Vec<(usize, Field)> = Vec::new();
        for (n, &field) in fields.0.iter().enumerate() {
            let mut seen: Vec<(u64, u64)> = list
                .tests()
                .flat_map(|test| fields.parts(&test))
                .filter_map(|(of, low, high)| (of == n).then_some((low, high)))
                .collect();
            seen.sort_unstable();
            seen.dedup();
            values.push((seen.len(), field));
        }
        values.sort_by_key(|&(count, field)| (count, number(field.at.base), field.at.offset, field.shift()));
        fields.0 = values.into_iter().map(|(_, field)| field).collect();
        fields
    }

    /// What a test is in terms of fields: each must be in an interval.
    fn parts(&self, test: &Masked) -> Vec<(usize, u64, u64)> {
        let mine = self.0.iter().enumerate();
        let mine = mine.filter(|(_, field)| field.at == test.at && field.mask & test.mask != 0);
        mine.map(|(n, field)| {
            let low = (test.value & field.mask) >> field.shift();
            let free = (field.mask & !test.mask) >> field.shift();
            (n, low, low | free)
        })
        .collect()
    }

    /// Writes a node of a diagram: the field is loaded, and its interval found by bisection.
    fn write(
        &self,
        b: &mut Builder,
        node: &Node,
        place: &impl Fn(u32) -> Option<Block>,
        free: &mut impl Iterator<Item = Block>,
    ) -> Option<()> {
        let Node::Field(field, cuts) = node else { return None };
        let Field { at, mask } = *self.0.get(*field)?;
        // The bytes from the first bit to the last one.
        let first = mask.leading_zeros() / 8;
        let bytes = 8 - mask.trailing_zeros() / 8 - first;
        let down = 64 - 8 * (first + bytes);
        let whole = u64::MAX >> (64 - 8 * bytes);
        let (mask, shift) = (mask >> down & whole, mask.trailing_zeros() - down);
        let mut done = None;
        b.with_scratch(|b| {
            let word = b.load(At { offset: at.offset + first, ..at }, bytes as u8);
            let value = if mask == whole { word } else { b.compute(Alu::And, word, mask) };
            done = Bisection { value, shift, place, free }.write(b, cuts);
        });
        done
    }
}

/// Whether intervals are told apart by one comparison: there are two, or one value alone is different.
fn is_simple(cuts: &[(u64, u32)]) -> bool {
    match *cuts {
        [(before, first), (value, _), (_, last)] => first == last && value == before + 1,
        _ => cuts.len() <= 2,
    }
}

/// How often a bisection branches to halves.
fn halvings(cuts: &[(u64, u32)]) -> usize {
    let (low, high) = cuts.split_at(cuts.len() / 2);
    if is_simple(cuts) { 0 } else { 1 + halvings(low) + halvings(high) }
}

/// Where a value is looked for among the intervals of a field, which has so many bits below it.
struct Bisection<'a, P, F> {
    value: Reg,
    shift: u32,
    place: &'a P,
    free: &'a mut F,
}

impl<P: Fn(u32) -> Option<Block>, F: Iterator<Item = Block>> Bisection<'_, P, F> {
    /// Ends the block: goes on at the place of the interval that the value is in.
    fn write(&mut self, b: &mut Builder, cuts: &[(u64, u32)]) -> Option<()> {
        let (value, number) = (self.value.into(), |n: u64| (n << self.shift).into());
        match *cuts {
            [(_, only)] => b.go((self.place)(only)?),
            [(_, first), (alone, middle), _] if is_simple(cuts) => {
                b.branch(Test::Equal(value, number(alone)), (self.place)(middle)?, (self.place)(first)?);
            }
            [(end, low), (_, high)] => {
                b.branch(Test::Above(value, number(end)), (self.place)(high)?, (self.place)(low)?);
            }
            _ => {
                let (below, above) = cuts.split_at(cuts.len() / 2);
                let (low, high) = (self.free.next()?, self.free.next()?);
                b.branch(Test::Above(value, number(below.last()?.0)), high, low);
                b.at(low);
                self.write(b, below)?;
                b.at(high);
                self.write(b, above)?;
            }
        }
        Some(())
    }
}

/// Masks of one word, as few as can be of which each of `masks` has all, the highest bits, or none.
fn fields(masks: &[u64]) -> Vec<u64> {
    let same = |a: u32, b: u32| masks.iter().all(|mask| mask >> a & 1 == mask >> b & 1);
    // Neighbouring bits that belong to the same masks.
    let mut atoms: Vec<u64> = Vec::new();
    for bit in (0..64).rev().filter(|bit| masks.iter().any(|mask| mask >> bit & 1 == 1)) {
        match atoms.last_mut() {
            Some(last) if last.trailing_zeros() == bit + 1 && same(bit, bit + 1) => *last |= 1 << bit,
            _ => atoms.push(1 << bit),
        }
    }
    let mut fields: Vec<u64> = Vec::new();
    for atom in atoms {
        let joins = |field: u64| {
            let next = field.trailing_zeros() == 64 - atom.leading_zeros();
            // Whoever has the lower bits has the higher ones.
            next && masks.iter().all(|mask| mask & atom == 0 || mask & field == field)
        };
        match fields.last_mut() {
            Some(last) if joins(*last) => *last |= atom,
            _ => fields.push(atom),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fall_into_fields() {
        assert_eq!(fields(&[0xff00, 0xffff, 0xfff0]), [0xffff], "prefixes of one number");
        assert_eq!(fields(&[0xff00, 0x00ff, 0xffff]), [0xff00, 0x00ff], "two numbers and both");
        assert_eq!(fields(&[0x1fff, 0x3fff]), [0x2000, 0x1fff]);
        assert_eq!(fields(&[0xf00f]), [0xf000, 0xf]);
    }
}
