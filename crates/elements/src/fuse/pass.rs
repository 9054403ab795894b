//! What a fused element does, from the programs that the elements of its chain lower to.
//!
//! The packets of one kind, the ordinary ones, are followed through the programs ([`Walk`]). What is done to them up to the
//! table must be what the pass does there, whoever did it and in which order; behind the table the pass goes as far as it
//! can do what is done.

use super::ordinary::{self, Effect, Link};
use super::rules::Rules;
use crate::ethernet::header_cache::{self, Header, HeaderCache};
use crate::ip::check_ip_header::Checker;
use crate::iproute::lower::RouteLookup;
use causeway_engine::ir::expr::Expr;
use causeway_engine::ir::walk::Walk;
use causeway_engine::ir::{Field, Program};
use causeway_engine::{Counter, Error};
use causeway_packet::Anno;
use std::any::Any;

/// The elements of a chain, by name.
pub(super) struct Names {
    /// The classifier.
    pub start: String,
    /// Its output that the chain starts at.
    pub output: u16,
    /// Between it and the table.
    pub path: Vec<String>,
    /// Places in the path that are lists of rules.
    pub rules: Vec<usize>,
    pub table: String,
    /// Behind each output of the table.
    pub branches: Vec<Vec<String>>,
}

impl Names {
    /// The number of the output at which packets stop that were taken past so many elements of a branch.
    pub fn stop(&self, branch: usize, past: usize) -> usize {
        self.branches[..branch].iter().map(|names| names.len() + 1).sum::<usize>() + past
    }

    /// The number of the output at which packets stop that do not pass rules; later ones come first, as where the chain has
    /// been followed to its end before it goes on with what it did not let pass.
    pub fn stop_at_rules(&self, number: usize) -> usize {
        self.detour() - 1 - number
    }

    /// The number of the output to the chain's start.
    pub fn detour(&self) -> usize {
        self.stop(self.branches.len(), 0) + self.rules.len()
    }
}

/// What is done to ordinary packets.
pub(super) struct Pass {
    /// The header check, of headers behind an Ethernet header, which is stripped.
    pub check: Checker,
    /// What stops some of them before the table.
    pub sieves: Vec<Rules>,
    pub table: RouteLookup<u32>,
    /// Paint that packets get.
    pub paint: Option<u8>,
    /// What counts the packets that get to the table.
    pub good: Vec<Counter>,
    /// For each output of the table.
    pub rules: Vec<Rule>,
    /// Where the pass stops early, a line for each such output.
    pub left: Vec<String>,
}

/// What is done to the packets of one output of the table.
pub(super) struct Rule {
    pub effect: Effect,
    /// Where the Ethernet header comes from that packets get, if they get one.
    pub headers: Option<Headers>,
    /// The output that they leave by.
    pub output: usize,
}

/// Where Ethernet headers come from.
pub(super) enum Headers {
    Fixed(Header),
    Found(HeaderCache),
}

/// Answers what an element lowers to, by name.
pub(super) type Ask<'a> = &'a mut dyn FnMut(&str) -> Option<Program>;

fn program(name: &str, ask: Ask<'_>) -> Result<Program, Error> {
    let what = "as it is configured is not part of a pass, or it lives on another worker";
    ask(name).ok_or_else(|| Error::new(format!("{name} {what}")))
}

/// The table called `number` of a program, if it is a `T`.
fn table<T: Any>(program: Program, number: u8) -> Option<T> {
    let table: Box<dyn Any> = program.into_tables().into_iter().nth(number.into())?;
    table.downcast().ok().map(|table| *table)
}

impl Pass {
    /// The pass of a chain, or why there is none.
    pub fn of(names: &Names, ask: Ask<'_>) -> Result<Pass, Error> {
        let (start, output) = (&names.start, names.output);
        let classified = Walk::of(ordinary::kind()).through(&program(start, ask)?, Some(output));
        let mut walk = classified
            .filter(|walk| walk.guards.is_empty())
            .ok_or_else(|| Error::new(format!("IPv4 frames do not all leave {start} by output {output}")))?;
        let mut at_rules = Vec::new();
        for (place, name) in names.path.iter().enumerate() {
            let next = program(name, ask)?;
            if names.rules.contains(&place) {
                at_rules.push((name, next, walk.clone()));
                continue;
            }
            let next = walk.through(&next, Some(0));
            walk = next.ok_or_else(|| Error::new(format!("{name} does not let ordinary packets pass")))?;
        }
        let routes = program(&names.table, ask)?;
        let no_table = || format!("{} is no table of routes", names.table);
        let check = ordinary::header_check(&walk);
        let usual = ordinary::checked_and_stripped(&check).and_then(|w| w.through(&routes, None));
        let walk = walk.through(&routes, None).ok_or_else(no_table)?;
        let usual = usual.filter(|usual| usual.same_but_annotations(&walk)).ok_or_else(|| {
            let start = &names.start;
            format!("what is between {start} and {} is no check of headers behind an Ethernet header, which is stripped", names.table)
        })?;
        let paint = paint(&walk, &usual).ok_or_else(|| {
            format!("annotations are set in front of {} that the pass does not know", names.table)
        })?;
        let sieves = at_rules.into_iter().enumerate().map(|(number, (name, program, walk))| {
            let rules = Rules::of(program, &walk, &check, names.stop_at_rules(number));
            rules.ok_or_else(|| {
                format!("the pass cannot ask the rules of {name}, or not where they are asked")
            })
        });
        let sieves = sieves.collect::<Result<Vec<_>, _>>()?;
        let one = Expr::Const(1);
        let good = walk.counts.iter().map(|(counter, by)| (*by == one).then(|| counter.clone()));
        let good = good.collect::<Option<_>>().ok_or("more than packets is counted")?;
        let table = table(routes, walk.lookups[0].table).ok_or_else(no_table)?;
        let (mut rules, mut left) = (Vec::new(), Vec::new());
        for branch in 0..names.branches.len() {
            let (rule, why) = Rule::of(names, branch, &walk, ask);
            rules.push(rule);
            left.extend(why);
        }
        Ok(Pass { check, sieves, table, paint, good, rules, left })
    }
}

impl Pass {
    /// Whether what is done depends on the time.
    pub fn asks_time(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.headers, Some(Headers::Found(_))))
    }
}

/// The paint that packets get, if that is all that is different from `usual`.
pub(super) fn paint(walk: &Walk, usual: &Walk) -> Option<Option<u8>> {
    let paint = Field::from(Anno::PAINT);
    let mut annotations = walk.annotations.clone();
    let paint = match annotations.remove(&paint) {
        Some(color) => Some(u8::try_from(color.known()?).ok()?),
        None => None,
    };
    (annotations == usual.annotations).then_some(paint)
}

impl Rule {
    /// What is done behind one output of the table, as far as the pass can do it; and why it does not go on, if it stops
    /// early.
    fn of(names: &Names, branch: usize, at_table: &Walk, ask: Ask<'_>) -> (Rule, Option<String>) {
        let path = &names.branches[branch];
        let (mut walk, mut past) = (at_table.clone(), 0);
        let (mut effect, mut headers) = (Effect::NONE, None);
        for name in path {
            let Some(program) = ask(name) else { break };
            let Some(next) = walk.through(&program, Some(0)) else { break };
            let Some(found) = Effect::between(at_table, &next) else { break };
            if found.link != effect.link {
                let Some(of_link) = Headers::of(found.link, &next, program) else { break };
                headers = Some(of_link);
            }
            (walk, effect, past) = (next, found, past + 1);
        }
        let left = path.get(past).map(|name| format!("output {branch} of {}: {name} and on", names.table));
        (Rule { effect, headers, output: names.stop(branch, past) }, left)
    }
}

impl Headers {
    /// Where the headers of `link` come from, which the last element of `walk` gives.
    fn of(link: Link, walk: &Walk, last: Program) -> Option<Headers> {
        match link {
            Link::No => None,
            Link::Fixed(words) => Some(Headers::Fixed(header_cache::header(words))),
            Link::Found(lookup) => table(last, walk.lookups.get(lookup)?.table).map(Headers::Found),
        }
    }
}
