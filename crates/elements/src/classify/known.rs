//! What the tests on the way to a step say about the packet there.

use super::expr::{Base, Test};

/// Failed tests that are remembered on one way; what is forgotten is tested again, no more.
const FAILED: usize = 48;
/// Ways to one step that are told apart; of more only what they have in common is known.
const WAYS: usize = 4;

/// How a word compared: `word & mask == value` is `holds`, if the packet is long enough for the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fact {
    test: Test,
    holds: bool,
}

/// One way to a step, as what is known of the packets that take it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Way {
    facts: Vec<Fact>,
    /// Bytes that the packet has for sure, by base.
    has: [usize; 4],
}

/// Bits of a word that are known.
#[derive(Clone, Copy, Debug, Default)]
struct Bits {
    mask: u32,
    value: u32,
}

impl Bits {
    fn add(self, mask: u32, value: u32) -> Bits {
        Bits { mask: self.mask | mask, value: self.value | value & mask }
    }

    /// How `test` comes out, if these bits decide.
    fn decide(self, test: &Test) -> Option<bool> {
        match (self.value ^ test.value) & self.mask & test.mask {
            0 => (test.mask & !self.mask == 0).then_some(true),
            _ => Some(false),
        }
    }
}

impl Way {
    /// How `test` comes out on this way, if that is known.
    pub(crate) fn outcome(&self, test: &Test) -> Option<bool> {
        let has = self.has[test.base as usize];
        let compares = self.compares(test, has.max(test.needed()))?;
        (test.needed() <= has || compares == test.short).then_some(compares)
    }

    /// The way that goes on after `test` came out as `holds`.
    pub(crate) fn after(&self, test: &Test, holds: bool) -> Way {
        let mut way = self.clone();
        if holds != test.short {
            let has = &mut way.has[test.base as usize];
            *has = test.needed().max(*has);
        }
        if holds || way.facts.iter().filter(|f| !f.holds).count() < FAILED {
            way.facts.push(Fact { test: *test, holds });
        }
        way
    }

    fn facts_of(&self, test: &Test, bytes: usize) -> impl Iterator<Item = &Fact> {
        self.facts.iter().filter(move |f| f.test.same_word(test) && f.test.needed() <= bytes)
    }

    /// Bits of the word of `test` in packets with at least that many `bytes`.
    fn bits(&self, test: &Test, bytes: usize) -> Bits {
        let held = self.facts_of(test, bytes).filter(|f| f.holds);
        let mut bits = held.fold(Bits::default(), |bits, f| bits.add(f.test.mask, f.test.value));
        // A test that failed by one bit alone tells that bit.
        loop {
            let told = self.facts_of(test, bytes).filter(|f| !f.holds).find_map(|f| {
                let open = f.test.mask & !bits.mask;
                (open.is_power_of_two() && bits.decide(&f.test).is_none()).then_some((open, !f.test.value))
            });
            match told {
                Some((mask, value)) => bits = bits.add(mask, value),
                None => return bits,
            }
        }
    }

    /// How the word of `test` compares in packets with at least that many `bytes`.
    fn compares(&self, test: &Test, bytes: usize) -> Option<bool> {
        let bits = self.bits(test, bytes);
        bits.decide(test).or_else(|| {
            // Together with what is known, the test would make one hold that failed.
            let both = bits.add(test.mask, test.value);
            let failed = self.facts_of(test, bytes).filter(|f| !f.holds);
            failed.into_iter().any(|f| both.decide(&f.test) == Some(true)).then_some(false)
        })
    }

    /// Whether all that is known on `other` is known here.
    fn knows_all_of(&self, other: &Way) -> bool {
        (0..4).all(|base| self.has[base] >= other.has[base]) && other.facts.iter().all(|f| self.knows(f))
    }

    fn knows(&self, fact: &Fact) -> bool {
        let bytes = self.has[fact.test.base as usize].max(fact.test.needed());
        self.compares(&fact.test, bytes) == Some(fact.holds)
    }
}

/// The same ways, fewer if one says no more than another or if there are too many.
pub(crate) fn reduced(ways: Vec<Way>) -> Vec<Way> {
    let mut out: Vec<Way> = Vec::new();
    for way in ways {
        if !out.iter().any(|o| way.knows_all_of(o)) {
            out.retain(|o| !o.knows_all_of(&way));
            out.push(way);
        }
    }
    if out.len() > WAYS { vec![in_common(&out)] } else { out }
}

/// What is known on all `ways`.
fn in_common(ways: &[Way]) -> Way {
    let Some((first, others)) = ways.split_first() else { return Way::default() };
    let mut common = Way::default();
    for base in 0..4 {
        common.has[base] = ways.iter().map(|w| w.has[base]).min().unwrap_or(0);
    }
    common.facts = first.facts.iter().filter(|f| others.iter().all(|o| o.knows(f))).copied().collect();
    let words: Vec<(Base, u16)> = first.facts.iter().map(|f| (f.test.base, f.test.offset)).collect();
    for (base, offset) in words {
        let word = Test { base, offset, mask: 0, value: 0, short: false };
        // What differs between two ways is known of neither word.
        let bits = ways.iter().map(|w| w.bits(&word, w.has[base as usize]));
        let Some(bits) = bits.reduce(|a, b| {
            let mask = a.mask & b.mask & !(a.value ^ b.value);
            Bits { mask, value: a.value & mask }
        }) else {
            continue;
        };
        let fact = Fact { test: Test { mask: bits.mask, value: bits.value, ..word }, holds: true };
        if bits.mask != 0 && !common.knows(&fact) {
            common.facts.push(fact);
        }
    }
    common
}
