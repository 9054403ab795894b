//! The ways through one program, one of which a walk takes.

use super::expr::{Condition, Expr};
use super::walk::Walk;
use super::{Block, End, Program, REGISTERS, Reg};

/// Blocks looked at for one element, at most; a program may have very many ways.
const MOST_BLOCKS: usize = 1 << 10;

impl Walk {
    /// Those packets that go through an element and leave it by `output`, or by one that it computes. `None` if that
    /// cannot be told: none does, or they get there on several ways, or by what this cannot follow.
    pub fn through(&self, program: &Program, output: Option<u16>) -> Option<Walk> {
        let mut start = self.clone();
        start.left_by = None;
        let first = Way { block: 0, walk: start, registers: vec![Expr::Const(0); REGISTERS] };
        let mut search = Search { program, output, ways: vec![first], found: Vec::new() };
        for _ in 0..MOST_BLOCKS {
            let Some(way) = search.ways.pop() else { break };
            search.follow(way)?;
        }
        if !search.ways.is_empty() {
            return None;
        }
        let mut found = search.found.pop().filter(|_| search.found.is_empty())?;
        found.elements += 1;
        Some(found)
    }
}

/// The ways through one element.
struct Search<'p> {
    program: &'p Program,
    output: Option<u16>,
    /// Those that are not followed to their end yet.
    ways: Vec<Way>,
    found: Vec<Walk>,
}

/// Packets in front of a block.
struct Way {
    block: Block,
    walk: Walk,
    registers: Registers,
}

type Registers = Vec<Expr>;

impl Search<'_> {
    /// Follows a way through one block; `None` if it may lead to the output that is looked for, and that cannot be told.
    /// Ways that end elsewhere are let go.
    fn follow(&mut self, way: Way) -> Option<()> {
        let Way { block, mut walk, mut registers } = way;
        let code = self.program.blocks.get(block)?;
        if !code.ops.iter().all(|op| walk.step(op, &mut registers, self.program).is_some()) {
            return Some(());
        }
        match code.end {
            End::Go(block) => self.ways.push(Way { block, walk, registers }),
            End::If(test, yes, no) => {
                if let Some(condition) = walk.condition(test, &registers) {
                    self.branch(condition, [no, yes], walk, registers);
                }
            }
            End::Leave(port) if self.output == Some(port) => self.found.push(walk),
            End::LeaveBy(Reg(r)) => {
                let port = registers.swap_remove(r as usize);
                match self.output {
                    None => {
                        walk.left_by = Some(port);
                        self.found.push(walk);
                    }
                    Some(wanted) if port.known()? == u64::from(wanted) => self.found.push(walk),
                    Some(_) => {}
                }
            }
            End::Leave(_) | End::Drop(_) | End::GiveUp => {}
        }
        Some(())
    }

    fn branch(&mut self, condition: Condition, to: [Block; 2], walk: Walk, registers: Registers) {
        for holds in [false, true] {
            let (mut walk, block) = (walk.clone(), to[usize::from(holds)]);
            if walk.note(condition.clone(), holds).is_some() {
                self.ways.push(Way { block, walk, registers: registers.clone() });
            }
        }
    }
}
