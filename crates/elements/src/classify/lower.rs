//! Decision programs in the intermediate representation.

use super::expr::{Base, Test};
use super::program::{Goal, Node};
use causeway_engine::ir::{self, At, Block, Builder};

/// The program that `nodes` are, from `first` on. `None` if it looks at the link-layer header, which may be in front of
/// the data, or leaves by more outputs than there can be.
pub(super) fn lower(nodes: &[Node], first: Goal) -> Option<ir::Program> {
    let mut b = Builder::new();
    // Steps lead to later ones, and answers are behind them all.
    let steps: Vec<[Block; 2]> = nodes.iter().map(|_| [b.block(), b.block()]).collect();
    let mut answers: Vec<Goal> = nodes.iter().flat_map(|node| node.to).chain([first]).collect();
    answers.retain(|goal| !matches!(goal, Goal::Step(_)));
    answers.sort_unstable();
    answers.dedup();
    let answers: Vec<(Goal, Block)> = answers.into_iter().map(|goal| (goal, b.block())).collect();
    let block_of = |goal| match goal {
        Goal::Step(n) => steps.get(n).map(|blocks| blocks[0]),
        answer => answers.iter().find(|(known, _)| *known == answer).map(|&(_, block)| block),
    };
    b.go(block_of(first)?);
    for (node, blocks) in nodes.iter().zip(&steps) {
        test(&mut b, &node.test, blocks, block_of(node.to[0])?, block_of(node.to[1])?)?;
    }
    for &(goal, block) in &answers {
        b.at(block);
        match goal {
            Goal::Output(port) => b.leave(port.try_into().ok()?),
            Goal::Drop | Goal::Step(_) => b.drop(0),
        }
    }
    b.finish()
}

/// Writes `test` to its two blocks: whether the bytes are there, and which they are.
fn test(b: &mut Builder, test: &Test, [first, second]: &[Block; 2], no: Block, yes: Block) -> Option<()> {
    let base = match test.base {
        Base::Data => ir::Base::Data,
        Base::Network => ir::Base::Network,
        Base::Transport => ir::Base::Transport,
        Base::Link => return None,
    };
    // Bytes behind the last one that counts need not be there; of a test in which none counts the second block decides.
    let bytes = test.needed().saturating_sub(test.offset.into()) as u32;
    let at = At { base, offset: test.offset.into() };
    b.at(*first);
    if bytes == 0 {
        b.go(*second);
        b.at(*second);
        b.go(if test.value == 0 { yes } else { no });
        return Some(());
    }
    b.branch(ir::Test::Has(at, bytes), *second, if test.short { yes } else { no });
    b.at(*second);
    b.with_scratch(|b| {
        let word = b.load(at, bytes as u8);
        let behind = 8 * (4 - bytes.min(4));
        let bits = b.compute(ir::Alu::And, word, u64::from(test.mask >> behind));
        b.branch(ir::Test::Equal(bits.into(), u64::from(test.value >> behind).into()), yes, no);
    });
    Some(())
}
