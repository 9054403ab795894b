//! What an element becomes.

use super::{Compiler, Place, Places, arrive};
use crate::exit::{Above, Exit, Hook};
use crate::frame::{self, Frame, SPILLS};
use crate::parts;
use crate::registers::{BlockHomes, Homes};
use crate::state::{Reach, State};
use crate::write::{Stop, Writer};
use causeway_bpf::{Alu, Asm, Cond, Label, Reg, Size};
use causeway_engine::ir::{End, Op, Program, Test, Value};

impl Compiler<'_, '_> {
    /// Writes a node's program for packets in one state; the error is why that cannot be.
    pub(super) fn program(
        &mut self,
        node: usize,
        program: &Program,
        state: State,
        reach: Reach,
    ) -> Result<(), &'static str> {
        let whole = state.parts.map(|ip| parts::read(program, ip, &state)).transpose()?;
        let (blocks, begin, lengths) = match &whole {
            Some(whole) => (&whole.blocks[..], whole.first, Some(&whole.lengths)),
            None => (program.blocks(), 0, None),
        };
        let homes = Homes::of(blocks);
        if homes.slots > SPILLS {
            return Err("it has too many registers in use at once");
        }
        let give_up = self.exit(Exit::Up(Place::Node(node)), state);
        let mut places = Places::new();
        let first = arrive(&mut self.asm, &mut places, (begin, state), reach);
        let mut w = self.writer(homes.of_block(begin), state, reach, give_up);
        w.asm.mov(Reg::R0, 0);
        homes.zeroed.iter().for_each(|&home| w.set_home(home, Reg::R0));
        w.go(first, Some(first));
        while let Some(((block, state), (label, reach))) = places.pop_first() {
            self.asm.bind(label);
            let homes = homes.of_block(block);
            let mut at = (state, reach);
            let mut done = Ok(());
            for (number, op) in blocks[block].ops.iter().enumerate() {
                let less = lengths.and_then(|lengths| lengths.get(&(block, number)).copied());
                done = self.op(node, (op, less), homes, &mut at, give_up);
                if done.is_err() {
                    break;
                }
            }
            let longest = whole.as_ref().and_then(|whole| whole.longest.get(&block).copied());
            let done = done.and_then(|()| self.bound(longest, at.1, give_up));
            let done = done.and_then(|()| self.end(node, blocks[block].end, homes, at, &mut places, give_up));
            match done {
                Ok(()) | Err(Stop::Left) => {}
                Err(Stop::Unsaid(why)) => return Err(why),
            }
        }
        Ok(())
    }

    fn writer<'w>(
        &'w mut self,
        homes: &'w BlockHomes,
        state: State,
        reach: Reach,
        give_up: Label,
    ) -> Writer<'w> {
        let (partial, unfinished) =
            (self.options.hook.is_tcx(), self.options.hook == Hook::Tcx(Above::Graph));
        Writer { asm: &mut self.asm, frame: self.frame, homes, state, reach, give_up, partial, unfinished }
    }

    fn op(
        &mut self,
        node: usize,
        (op, less): (&Op, Option<i64>),
        homes: &BlockHomes,
        at: &mut (State, Reach),
        give_up: Label,
    ) -> Result<(), Stop> {
        let table = match *op {
            Op::LookUp { table, .. } => {
                let table = self.graph.nodes[node].tables.get(usize::from(table)).and_then(Option::as_ref);
                Some(table.ok_or(Stop::Unsaid("its table is not in the driver"))?)
            }
            _ => None,
        };
        // One that was changed is not for the kernel any more.
        let doubted = (!at.0.touched).then(|| self.exit(Exit::Doubted, at.0));
        let (map, first) = (self.options.counters.map(), self.node_counters[node]);
        let frame = self.frame;
        let mut w = self.writer(homes, at.0, at.1, give_up);
        match (op, table) {
            (Op::LookUp { to, key, .. }, Some(table)) => {
                let (words, others) = key.split_at(table.key_words());
                if others.iter().any(|&word| word != Value::Const(0)) {
                    return Err(Stop::Unsaid("its keys have more words than its table in the driver"));
                }
                for (at, &word) in (0..).step_by(8).zip(words).skip(2) {
                    w.read(Reg::R0, word);
                    w.asm.store_slot(Size::D, frame.key, at, Reg::R0);
                }
                w.read(Reg::R0, key[0]);
                w.read(Reg::R1, key[1]);
                table.write(w.asm, frame, give_up, doubted);
                for (&to, from) in to.iter().zip([Reg::R0, Reg::R1, Reg::R2]) {
                    w.set(to, from);
                }
            }
            (&Op::Count { counter, by }, _) => {
                w.read(Reg::R0, by);
                if w.state.parts.is_some() {
                    frame::of_parts(w.asm, frame, less);
                }
                count(w.asm, frame, map, first + usize::from(counter));
                w.reach.changed = true;
            }
            _ => w.op(op)?,
        }
        *at = (w.state, w.reach);
        Ok(())
    }

    /// Super-packets go on only if no part has more bytes than `longest`.
    fn bound(&mut self, longest: Option<i32>, reach: Reach, give_up: Label) -> Result<(), Stop> {
        match longest {
            Some(_) if reach.changed => {
                Err(Stop::Unsaid("it asks how long a super-packet's parts are after a change"))
            }
            Some(longest) => {
                frame::longest_part(&mut self.asm, self.frame);
                self.asm.jump_if(Cond::Gt, Reg::R1, longest, give_up);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn end(
        &mut self,
        node: usize,
        end: End,
        homes: &BlockHomes,
        (state, reach): (State, Reach),
        places: &mut Places,
        give_up: Label,
    ) -> Result<(), Stop> {
        let next = |places: &Places| places.first_key_value().map(|(_, &(label, _))| label);
        match end {
            End::Go(to) => {
                let to = arrive(&mut self.asm, places, (to, state), reach);
                let next = next(places);
                self.writer(homes, state, reach, give_up).go(to, next);
            }
            End::If(Test::Has(place, bytes), yes, no) => {
                // Only what a jump leads to is written, and the packet may be known to have them.
                let there = places.get(&(no, state)).map(|&(label, _)| label);
                let label = there.unwrap_or_else(|| self.asm.label());
                let mut w = self.writer(homes, state, reach, give_up);
                let done = w.spot(place, bytes, label);
                let with = (w.state, w.reach);
                if self.asm.is_target(label) {
                    let (_, known) = places.entry((no, state)).or_insert((label, reach));
                    *known = known.or(reach);
                }
                done?;
                let yes = arrive(&mut self.asm, places, (yes, with.0), with.1);
                let next = next(places);
                self.writer(homes, state, reach, give_up).go(yes, next);
            }
            End::If(test, yes, no) => {
                let no = arrive(&mut self.asm, places, (no, state), reach);
                let yes = arrive(&mut self.asm, places, (yes, state), reach);
                let next = next(places);
                let (how, values) = match test {
                    Test::Above(a, b) => ([Cond::Gt, Cond::Le], [a, b]),
                    Test::Equal(a, b) => ([Cond::Eq, Cond::Ne], [a, b]),
                    Test::Has(..) => return Ok(()),
                };
                self.writer(homes, state, reach, give_up).branch(how, values, [no, yes], next);
            }
            End::Leave(port) => self.leave_by(node, port.into(), state, reach),
            End::LeaveBy(port) => {
                self.writer(homes, state, reach, give_up).read(Reg::R0, Value::Of(port));
                let mut counted = Vec::new();
                for output in 0..self.graph.nodes[node].outputs.len() {
                    let to = match self.options.edges {
                        true => self.asm.label(),
                        false => self.output(node, output, state, reach),
                    };
                    self.asm.jump_if(Cond::Eq, Reg::R0, output as i32, to);
                    counted.push((output, to));
                }
                let nowhere = self.exit(Exit::Nowhere(node), state);
                self.asm.jump(nowhere);
                for (output, way) in counted.into_iter().filter(|_| self.options.edges) {
                    self.asm.bind(way);
                    self.leave_by(node, output, state, reach);
                }
            }
            End::Drop(reason) => {
                let to = self.exit(Exit::Drop(node, reason), state);
                self.asm.jump(to);
            }
            End::GiveUp => self.asm.jump(give_up),
        }
        Ok(())
    }

    /// The packet leaves a node by an output.
    fn leave_by(&mut self, node: usize, output: usize, state: State, reach: Reach) {
        let leads = self.graph.nodes[node].outputs.get(output).is_some_and(Option::is_some);
        if let Some(&first) = self.edge_counters.get(node).filter(|_| leads) {
            one(&mut self.asm, self.frame, &state);
            count(&mut self.asm, self.frame, self.options.counters.map(), first + output);
        }
        let to = self.output(node, output, state, reach);
        self.asm.jump(to);
    }

    /// Where packets go on that leave a node by an output.
    fn output(&mut self, node: usize, output: usize, state: State, reach: Reach) -> Label {
        match self.graph.nodes[node].outputs.get(output).copied().flatten() {
            Some(target) => self.target(target, Some(node), state, reach),
            None => self.exit(Exit::Nowhere(node), state),
        }
    }
}

/// R0 becomes how many packets one in this state counts as.
pub(super) fn one(asm: &mut Asm, frame: &Frame, state: &State) {
    asm.mov(Reg::R0, 1);
    if state.parts.is_some() {
        frame::of_parts(asm, frame, None);
    }
}

/// Adds R0 to a counter of this processor; destroys R0 to R2. Programs of one kind do not interrupt each other, so that no
/// atomic operation is needed.
pub(super) fn count(asm: &mut Asm, frame: &Frame, map: std::os::fd::BorrowedFd<'_>, counter: usize) {
    asm.map_value(Reg::R1, map, 8 * counter as i32);
    asm.load_slot(Size::D, Reg::R2, frame.counters, 0);
    asm.alu(Alu::Add, Reg::R1, Reg::R2);
    asm.load(Size::D, Reg::R2, Reg::R1, 0);
    asm.alu(Alu::Add, Reg::R2, Reg::R0);
    asm.store(Size::D, Reg::R1, 0, Reg::R2);
}
