//! The rules of IPClassifier and IPFilter as one question: whether a packet leaves by output 0.

use super::cuts::Cuts;
use super::program::{Goal, Window, bases, encode};
use causeway_engine::ir::{At, Base, End, Op, Program, Test};

/// Rules about IPv4 packets.
pub(crate) struct Sieve(Cuts);

/// What rules may look at: so many bytes from the network header on, and from the transport header on.
const LOOKED_AT: [(Base, u32); 2] = [(Base::Network, 32), (Base::Transport, 16)];

fn is_looked_at(at: At, bytes: u32) -> bool {
    LOOKED_AT.iter().any(|&(base, most)| at.base == base && at.offset.saturating_add(bytes) <= most)
}

/// Blocks of a program that is made a question, since a worker may wait for it: those of some two hundred rules.
const MOST_BLOCKS: usize = 1_600;

impl Sieve {
    /// The rules that an element lowers to; `None` if they look at something else, or are many.
    pub fn of(program: Program) -> Option<Sieve> {
        if program.blocks().len() > MOST_BLOCKS {
            return None;
        }
        let code = program.blocks().iter();
        let within = code.flat_map(|code| &code.ops).all(|op| match *op {
            Op::Load { at, bytes, .. } => is_looked_at(at, bytes.into()),
            _ => true,
        });
        let asked = program.blocks().iter().all(|code| match code.end {
            End::If(Test::Has(at, bytes), ..) => is_looked_at(at, bytes),
            _ => true,
        });
        let slot = |at: At| Window::Headers.slot(at.base == Base::Transport, at.offset);
        (within && asked).then(|| Cuts::of(program, slot)).flatten().map(Sieve)
    }

    /// Whether a packet passes whose headers are there; `None` if it is too short to tell.
    #[inline]
    pub fn passes(&self, packet: &[u8], network: usize, transport: usize) -> Option<bool> {
        let words = Window::Headers.words(packet, &bases(Some(network), Some(transport)))?;
        Some(self.0.run(&words) == encode(Goal::Output(0)))
    }
}
