//! Rules compiled so that finding the next one for a packet does not depend on how many there are.
//!
//! Rules with the same source prefix form a group; a packet meets the groups of the prefixes around its source, one
//! inside the other, and the group of the rules for every source. Inside a group, rules that look at the same fields
//! (a shape: ToS or not, interface or not, which bits of the mark) are told apart by the fields' values in one hash
//! table for all (tuple space search, Srinivasan, Suri and Varghese, SIGCOMM 1999). A step costs at most a probe for
//! each shape of each group around the source, however many rules the groups have. Real rules have one to three
//! shapes. A group takes in the rules of the group around it when those are not many more, so that deep nests make
//! few groups to visit; the memory stays linear in the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::values::{Shape, Table, Values};
use super::{Action, PolicyKey, PolicyPlace, Rule};
use crate::address::Address;
use crate::baseline::radix::Radix;
use crate::error::FibError;
use crate::fib::Fib;
use crate::lookup::{BATCH_MAX, Lookup};
use crate::prefix::Prefix;
use crate::table::Structure;

/// Different masks of the mark that rules may use.
const MASKS_MAX: usize = 8;
/// A group takes in those of the group around it that has at most this many times its own rules.
const TAKEN_IN: usize = 16;
/// In place of the first rule of a group: it depends on more than the source.
const ASK: u32 = u32::MAX;

/// The rules of one source prefix and of those around it that it has taken in.
#[derive(Clone, Debug, Default)]
struct Group {
    /// The group to visit next; 0, the rules for every source, is the last.
    next: u32,
    /// List of the rules that look at nothing but the source.
    any: u32,
    /// Where the numbers of the other shapes are.
    shapes: Range<u32>,
}

/// The rules of a group in the making, by what they want of ToS, mark and interface.
type Lists = BTreeMap<(Shape, [u32; 3]), Vec<u32>>;

/// The bits of a packet that the rules for every source look at.
#[derive(Debug, Default)]
struct Seen {
    tos: u8,
    mark: u32,
    interface: u32,
}

impl Seen {
    fn by(shapes: impl Iterator<Item = Shape>) -> Self {
        let all = |used: bool| if used { u32::MAX } else { 0 };
        shapes.fold(Seen::default(), |seen, shape| Seen {
            tos: seen.tos | all(shape.tos) as u8,
            mark: seen.mark | shape.mask,
            interface: seen.interface | all(shape.interface),
        })
    }

    /// Whether two packets look the same.
    #[inline]
    fn alike<A>(&self, one: &PolicyKey<A>, other: &PolicyKey<A>) -> bool {
        let tos = (one.tos ^ other.tos) & self.tos;
        let mark = (one.mark ^ other.mark) & self.mark;
        let interface = (one.interface ^ other.interface) & self.interface;
        u32::from(tos) | mark | interface == 0
    }
}

/// What the rules for every source said about a packet; the packets of a batch mostly look the same to them.
pub(super) struct Memo<'a, A> {
    key: &'a PolicyKey<A>,
    from: u32,
    rule: u32,
}

/// The rules, compiled. A rule is named by its position, and the position after the last means none.
#[derive(Debug)]
pub(super) struct Compiled<A: Address, S> {
    /// Group of a source; 0, the rules for every source, where no rule names one.
    sources: Fib<A, S>,
    groups: Vec<Group>,
    /// First rule of each group and those visited after it, but for those for every source, if the source decides
    /// it; or [`ASK`].
    firsts: Vec<u32>,
    group_shapes: Vec<u8>,
    shapes: Vec<Shape>,
    seen: Seen,
    by_values: Table,
    /// Ascending positions, each list ending in the position after the last rule. List 0 is empty.
    lists: Vec<u32>,
    /// The table of each rule; 0 for unreachable and after the last.
    tables: Vec<u8>,
}

impl<A: Address, S: Structure<A>> Compiled<A, S> {
    /// Compiles rules in the order they apply.
    ///
    /// # Errors
    /// [`FibError::Full`] with more than [`MASKS_MAX`] masks, [`FibError::AdjacencyRange`] with more sources than a
    /// table has adjacencies. Neither passes by waiting.
    pub(super) fn new(rules: &[Rule<A>]) -> Result<Self, FibError> {
        let masks: BTreeSet<u32> =
            rules.iter().map(|rule| Shape::of(rule).mask).filter(|&mask| mask != 0).collect();
        if masks.len() > MASKS_MAX {
            return Err(FibError::Full);
        }
        let prefixes: BTreeSet<Prefix<A>> = rules.iter().filter_map(source).collect();
        let routes: Vec<_> = prefixes.into_iter().zip(1..).collect();
        let sources = Fib::build(&routes)?;
        let shapes: BTreeSet<Shape> = rules.iter().map(Shape::of).collect();
        let tables = rules.iter().map(|rule| match rule.action {
            Action::Table(number) => number,
            Action::Unreachable => 0,
        });
        let mut compiled = Compiled {
            sources,
            groups: Vec::new(),
            firsts: Vec::new(),
            group_shapes: Vec::new(),
            shapes: shapes.into_iter().collect(),
            seen: Seen::by(rules.iter().filter(|rule| source(rule).is_none()).map(Shape::of)),
            by_values: Table::new([].into_iter()),
            lists: vec![rules.len() as u32],
            tables: tables.chain([0]).collect(),
        };
        let mut lists = compiled.sort(rules, &routes);
        let next = compiled.take_in(&mut lists, &routes);
        let mut named = Vec::new();
        for (group, next) in (0..).zip(next) {
            let lists = std::mem::take(&mut lists[group as usize]);
            compiled.store(group, next, lists, &mut named);
        }
        compiled.by_values = Table::new(named.into_iter());
        Ok(compiled)
    }

    /// Sorts the rules into the lists of their groups.
    fn sort(&self, rules: &[Rule<A>], routes: &[(Prefix<A>, u32)]) -> Vec<Lists> {
        let numbers: BTreeMap<Prefix<A>, u32> = routes.iter().copied().collect();
        let mut groups = vec![Lists::new(); routes.len() + 1];
        // There is no table 0: looking in it leads nowhere.
        let named = (0..).zip(rules).filter(|rule| rule.1.action != Action::Table(0));
        for (position, rule) in named {
            let values = [
                u32::from(rule.tos.unwrap_or(0)),
                rule.mark.map_or(0, |(mark, mask)| mark & mask),
                rule.interface.unwrap_or(0),
            ];
            let group = source(rule).map_or(0, |prefix| numbers[&prefix]);
            self.add(groups[group as usize].entry((Shape::of(rule), values)).or_default(), position);
        }
        groups
    }

    /// Adds a rule after those of a list. One that sends its packets where an earlier one sent them is of no use,
    /// and none is after one that ends the search.
    fn add(&self, list: &mut Vec<u32>, rule: u32) {
        let table = self.tables[rule as usize];
        let tables = list.iter().map(|&earlier| self.tables[earlier as usize]);
        if !tables.into_iter().any(|before| before == table || before == 0) {
            list.push(rule);
        }
    }

    /// Lets groups take in those around them; returns which group to visit after each.
    fn take_in(&self, lists: &mut [Lists], routes: &[(Prefix<A>, u32)]) -> Vec<u32> {
        let mut next = vec![0; lists.len()];
        // A prefix comes right before those it covers: the ones open at a time lie inside each other.
        let mut open: Vec<(Prefix<A>, u32)> = Vec::new();
        for &(prefix, number) in routes {
            while open.pop_if(|outer| !outer.0.covers(prefix)).is_some() {}
            let around = open.last().map_or(0, |outer| outer.1);
            open.push((prefix, number));
            let (before, here) = lists.split_at_mut(number as usize);
            let (around_lists, here) = (&before[around as usize], &mut here[0]);
            next[number as usize] = around;
            if around != 0 && around_lists.len() <= TAKEN_IN * here.len() {
                next[number as usize] = next[around as usize];
                for (values, positions) in around_lists {
                    let own = here.entry(*values).or_default();
                    let mut all = std::mem::take(own);
                    all.extend(positions);
                    all.sort_unstable();
                    all.into_iter().for_each(|rule| self.add(own, rule));
                }
            }
        }
        next
    }

    /// Makes a group of its lists and adds what goes into the hash table to `named`.
    fn store(&mut self, number: u32, next: u32, lists: Lists, named: &mut Vec<(Values, u32)>) {
        let start = self.group_shapes.len() as u32;
        let mut group = Group { next, any: 0, shapes: start..start };
        for ((shape, [tos, mark, interface]), positions) in lists {
            let list = self.lists.len() as u32;
            self.lists.extend(positions.into_iter().chain([self.none()]));
            if shape == Shape::ANY {
                group.any = list;
                continue;
            }
            let place = self.shapes.partition_point(|&other| other < shape);
            if group.shapes.is_empty() || self.group_shapes.last() != Some(&(place as u8)) {
                self.group_shapes.push(place as u8);
                group.shapes.end += 1;
            }
            named.push((Values::new(number, place, shape, tos as u8, mark, interface), list));
        }
        // Groups around come before those inside.
        let after = if next == 0 { self.none() } else { self.firsts[next as usize] };
        let first = if group.shapes.is_empty() { self.lists[group.any as usize].min(after) } else { ASK };
        self.firsts.push(match number {
            0 => self.none(),
            _ if after == ASK => ASK,
            _ => first,
        });
        self.groups.push(group);
    }

    fn none(&self) -> u32 {
        self.lists[0]
    }

    /// The table a rule names; 0 if it ends the search, as the position after the last does.
    #[inline]
    pub(super) fn table(&self, rule: u32) -> u8 {
        self.tables[rule as usize]
    }

    /// The group of a source.
    pub(super) fn group(&self, source: A) -> u32 {
        self.sources.lookup(source)
    }

    /// The first rule at or after `from` that selects a packet whose source is of this group.
    pub(super) fn next(
        &self,
        key: &PolicyKey<A>,
        group: u32,
        from: u32,
        reads: &mut impl FnMut(PolicyPlace),
    ) -> u32 {
        self.next_of_source(key, group, from, reads).min(self.next_here(key, 0, from, reads))
    }

    /// The same of the rules that name a source.
    fn next_of_source(
        &self,
        key: &PolicyKey<A>,
        group: u32,
        from: u32,
        reads: &mut impl FnMut(PolicyPlace),
    ) -> u32 {
        let (mut first, mut group) = (self.none(), group);
        while group != 0 {
            first = first.min(self.next_here(key, group, from, reads));
            group = self.groups[group as usize].next;
        }
        first
    }

    /// Nothing remembered yet.
    pub(super) fn memo<'a>(&self, key: &'a PolicyKey<A>, from: u32) -> Memo<'a, A> {
        Memo { key, from, rule: self.next_here(key, 0, from, &mut |_| ()) }
    }

    /// [`Compiled::next`] for packets one after the other.
    #[inline]
    pub(super) fn next_after<'a>(
        &self,
        memo: &mut Memo<'a, A>,
        key: &'a PolicyKey<A>,
        group: u32,
        from: u32,
    ) -> u32 {
        if memo.from != from || !self.seen.alike(key, memo.key) {
            *memo = self.memo(key, from);
        }
        let first = self.firsts[group as usize];
        // Neither ASK nor before `from`.
        let decided = first.wrapping_sub(from) <= self.none().wrapping_sub(from);
        memo.rule.min(if decided { first } else { self.next_of_source(key, group, from, &mut |_| ()) })
    }

    /// The same of the rules of one group.
    #[inline]
    fn next_here(
        &self,
        key: &PolicyKey<A>,
        number: u32,
        from: u32,
        reads: &mut impl FnMut(PolicyPlace),
    ) -> u32 {
        let group = &self.groups[number as usize];
        reads(PolicyPlace::Group(number));
        let mut first = self.next_in(group.any, from, reads);
        for &shape in &self.group_shapes[group.shapes.start as usize..group.shapes.end as usize] {
            let fields = self.shapes[usize::from(shape)];
            let values = Values::new(number, shape.into(), fields, key.tos, key.mark, key.interface);
            first = first.min(self.next_in(self.by_values.list(values, reads), from, reads));
        }
        first
    }

    #[inline]
    fn next_in(&self, list: u32, from: u32, reads: &mut impl FnMut(PolicyPlace)) -> u32 {
        let mut at = list as usize;
        reads(PolicyPlace::Rule(at as u32));
        while self.lists[at] < from.min(self.none()) {
            at += 1;
            reads(PolicyPlace::Rule(at as u32));
        }
        self.lists[at]
    }

    /// The groups of the sources of a batch.
    pub(super) fn groups(&self, keys: &[PolicyKey<A>], groups: &mut [u32; BATCH_MAX]) {
        if self.groups.len() > 1 {
            let mut sources = [A::ZERO; BATCH_MAX];
            sources.iter_mut().zip(keys).for_each(|(source, key)| *source = key.source);
            self.sources.lookup_batch(&sources[..keys.len()], groups);
        }
    }
}

impl<A: Address> Compiled<A, Radix<A>> {
    /// The group of a source, and what is read to find it.
    pub(super) fn visit_group(&self, source: A, reads: &mut impl FnMut(PolicyPlace)) -> u32 {
        self.sources.structure().visit(source, |node| reads(PolicyPlace::Source(node)))
    }
}

/// The source a rule names, unless that is every source.
fn source<A: Address>(rule: &Rule<A>) -> Option<Prefix<A>> {
    rule.source.filter(|prefix| prefix.len() > 0)
}
