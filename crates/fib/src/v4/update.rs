//! How either IPv4 structure is brought in step with the routes: a word for each chunk of addresses, compiled beside the
//! one that stands there and stored when all of a change are.

use crate::error::FibError;
use crate::prefix::{Prefix, outermost};
use crate::rib::Rib;
use crate::sync::epoch::{Domain, Limbo};
use crate::v4::chunks::{Run, for_each_chunk};

/// What the writer of a [`Chunked`] needs besides the words and what they lead to.
pub(crate) struct Writer<P> {
    pub(crate) domain: Domain,
    /// What words that were replaced lead to.
    pub(crate) limbo: Limbo<P>,
    /// Of one chunk; kept for its memory.
    runs: Vec<Run>,
}

impl<P> Writer<P> {
    /// That of a structure which is read under the announcements of `domain`.
    pub(crate) fn new(domain: &Domain) -> Self {
        Writer { domain: domain.clone(), limbo: Limbo::new(), runs: Vec::new() }
    }
}

/// A structure that is one word for each chunk of `2^CHUNK_BITS` addresses, and what the words lead to.
pub(crate) trait Chunked {
    /// Address bits below the ones that choose a word; at least eight.
    const CHUNK_BITS: u32;
    /// By default the word of a chunk without routes.
    type Word: Copy + Default + PartialEq;
    /// Something that a word leads to and that is freed by itself.
    type Part;

    /// The writer's other half.
    fn writer(&mut self) -> &mut Writer<Self::Part>;

    /// The word of a chunk.
    fn word(&self, chunk: u32) -> Self::Word;

    /// Stores a word, for readers that may look at any time; returns the one before.
    fn swap(&mut self, chunk: u32, word: Self::Word) -> Self::Word;

    /// The word for a chunk of `runs`; the one in place if that says the same. `None` if there is no room; nothing is left
    /// behind then.
    fn compile(&mut self, chunk: u32, runs: &[Run]) -> Option<Self::Word>;

    /// Adds what a word leads to that no other does.
    fn parts(&self, word: Self::Word, parts: &mut Vec<Self::Part>);

    /// Frees a part that no reader can see.
    fn free(&mut self, part: Self::Part);

    /// Frees what no reader can see any more, if enough waits to be worth asking or `now` is set.
    fn reclaim(&mut self, now: bool) {
        let domain = self.writer().domain.clone();
        let mut limbo = std::mem::replace(&mut self.writer().limbo, Limbo::new());
        limbo.reclaim(&domain, now, |part| self.free(part));
        self.writer().limbo = limbo;
    }

    /// Compiles the words that change. `None` if there is no room; nothing is left behind then.
    fn compile_all(&mut self, rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Option<Vec<(u32, Self::Word)>> {
        let mut changes = Vec::new();
        let mut full = false;
        let mut runs = std::mem::take(&mut self.writer().runs);
        for range in outermost(changed, 32 - Self::CHUNK_BITS as u8) {
            for_each_chunk(rib, range, Self::CHUNK_BITS, &mut runs, |chunk, runs| {
                if full {
                    return;
                }
                match self.compile(chunk, runs) {
                    Some(word) if word == self.word(chunk) => {}
                    Some(word) => changes.push((chunk, word)),
                    None => full = true,
                }
            });
        }
        self.writer().runs = runs;
        if full {
            let mut parts = Vec::new();
            changes.into_iter().for_each(|(_, word)| self.parts(word, &mut parts));
            parts.into_iter().for_each(|part| self.free(part));
            return None;
        }
        Some(changes)
    }

    /// Makes words visible, and what they replace wait for the readers.
    fn publish(&mut self, changes: Vec<(u32, Self::Word)>) {
        let mut retired = Vec::new();
        for (chunk, word) in changes {
            let before = self.swap(chunk, word);
            self.parts(before, &mut retired);
        }
        let Writer { domain, limbo, .. } = self.writer();
        limbo.retire(domain, retired);
        self.reclaim(false);
    }

    /// Brings all words in step with `rib` after a change of these prefixes, which are in order, or none.
    fn bring_in_step(&mut self, rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Result<(), FibError> {
        let changes = match self.compile_all(rib, changed) {
            Some(changes) => changes,
            None => {
                // What readers have left by now may be enough.
                self.reclaim(true);
                self.compile_all(rib, changed).ok_or_else(|| self.writer().limbo.refusal())?
            }
        };
        self.publish(changes);
        Ok(())
    }

    /// Has the chunks of these prefixes, which are in order, lead nowhere; returns all that misses now.
    fn clear(&mut self, changed: &[Prefix<u32>]) -> Vec<Prefix<u32>> {
        let ranges: Vec<_> = outermost(changed, 32 - Self::CHUNK_BITS as u8).collect();
        let nothing = Self::Word::default();
        let chunks =
            |range: &Prefix<u32>| range.first() >> Self::CHUNK_BITS..=range.last() >> Self::CHUNK_BITS;
        let changes = ranges.iter().flat_map(chunks).filter(|&chunk| self.word(chunk) != nothing);
        let changes = changes.map(|chunk| (chunk, nothing)).collect();
        self.publish(changes);
        ranges
    }
}
