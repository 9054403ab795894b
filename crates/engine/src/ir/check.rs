//! What makes a list of blocks a program: it ends, and it changes nothing before it is sure.

use super::{At, Base, Code, End, Field, Op, Program, Test};
use causeway_packet::meta::ANNO_BYTES;

/// What is known at one point of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// Bytes that the packet has behind each base, at least.
    has: [u32; 3],
    /// Whether something may have been changed.
    changed: bool,
}

/// What is known where two ways meet.
fn both(a: Known, b: Known) -> Known {
    let mut has = a.has;
    has.iter_mut().zip(b.has).for_each(|(a, b)| *a = b.min(*a));
    Known { has, changed: a.changed || b.changed }
}

fn index(base: Base) -> usize {
    match base {
        Base::Data => 0,
        Base::Network => 1,
        Base::Transport => 2,
    }
}

impl Known {
    /// Whether bytes are there for sure; afterwards they are.
    fn has(&mut self, at: At, bytes: u32) -> bool {
        let has = &mut self.has[index(at.base)];
        let end = at.offset.saturating_add(bytes);
        let sure = end <= *has;
        *has = end.max(*has);
        sure
    }

    /// Whether `op` cannot give up after something was changed.
    fn is_sound(&mut self, op: &Op) -> bool {
        let sure = match *op {
            Op::Load { at, bytes, .. } | Op::Store { at, bytes, .. } => {
                (1..=8).contains(&bytes) && self.has(at, bytes as u32) || !self.changed && bytes <= 8
            }
            Op::Sum { .. } | Op::LookUp { .. } | Op::Get { field: Field::Network | Field::Transport, .. } => {
                !self.changed
            }
            Op::Get { field: Field::Mac, .. } => false,
            Op::Pull(n) => {
                let sure = self.has[0] >= n || !self.changed;
                self.has[0] = self.has[0].saturating_sub(n);
                // A header in front of the data is none any more.
                if n > 0 {
                    (self.has[1], self.has[2]) = (0, 0);
                }
                sure
            }
            Op::Push(n) => {
                let sure = !self.changed;
                self.has[0] = self.has[0].saturating_add(n);
                sure
            }
            Op::Put { field: Field::Anno(at, bytes), .. } | Op::Get { field: Field::Anno(at, bytes), .. } => {
                (1..=8).contains(&bytes) && usize::from(at) + usize::from(bytes) <= ANNO_BYTES
            }
            Op::Put { field, .. } => {
                match field {
                    // What was known of the end is no more.
                    Field::Length => self.has = [0; 3],
                    Field::Network => self.has[1] = 0,
                    Field::Transport => self.has[2] = 0,
                    _ => {}
                }
                field != Field::PacketType
            }
            _ => true,
        };
        self.changed |=
            matches!(op, Op::Store { .. } | Op::Put { .. } | Op::Pull(_) | Op::Push(_) | Op::Count { .. });
        sure
    }
}

/// Whether the blocks of `program` go forwards only, and none gives up after a change on the way there.
pub(super) fn is_sound(program: &Program) -> bool {
    let blocks = &program.blocks;
    let mut reached = vec![None; blocks.len()];
    let start = Known { has: [0; 3], changed: false };
    if let Some(first) = reached.first_mut() {
        *first = Some(start);
    }
    for (number, Code { ops, end }) in blocks.iter().enumerate() {
        let Some(mut known) = reached[number] else { continue };
        if !ops.iter().all(|op| known.is_sound(op)) {
            return false;
        }
        let mut with = known;
        let next = match *end {
            End::Go(to) => vec![(to, known)],
            End::If(test, yes, no) => {
                if let Test::Has(at, bytes) = test {
                    with.has(at, bytes);
                }
                vec![(yes, with), (no, known)]
            }
            End::GiveUp if known.changed => return false,
            _ => Vec::new(),
        };
        for (to, known) in next {
            match reached.get_mut(to) {
                Some(there) if to > number => *there = Some(there.map_or(known, |other| both(other, known))),
                _ => return false,
            }
        }
    }
    !blocks.is_empty()
}
