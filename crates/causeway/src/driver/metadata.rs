//! How much may lie in front of a frame.

use causeway_bpf::{Asm, Cond, Helper, Program, ProgramKind, Reg, Result, action};
use causeway_fastpath::{Compiled, Luggage};

/// Bytes that every kernel allows.
const ANYWHERE: usize = 32;

/// Bytes of metadata that this kernel allows, as far as luggage has use for them. Those of 2023 and older allow 32.
///
/// # Errors
/// What bpf(2) says.
pub fn allowed() -> Result<usize> {
    let mut asm = Asm::new();
    let refused = asm.label();
    asm.mov(Reg::R2, -(Luggage::MOST as i32));
    asm.call(Helper::XdpAdjustMeta);
    asm.jump_if(Cond::Ne, Reg::R0, 0, refused);
    asm.mov(Reg::R0, action::XDP_PASS);
    asm.exit();
    asm.bind(refused);
    asm.mov(Reg::R0, action::XDP_DROP);
    asm.exit();
    let program = Program::load(ProgramKind::Xdp, "causeway_room", &asm.finish()?)?;
    let run = program.test_run(&[0; 64], None, 1)?;
    Ok(if run.verdict == action::XDP_PASS { Luggage::MOST } else { ANYWHERE })
}

/// Why what goes up from a program cannot bring its luggage, if that is so.
pub fn obstacle(compiled: &Compiled, allowed: usize) -> Option<String> {
    let longest = compiled.luggage.iter().flatten().map(Luggage::len).max()?;
    (longest > allowed).then(|| {
        format!("packets that go up bring {longest} bytes in front of them, and this kernel allows {allowed}")
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use causeway_bpf::ErrorKind;
    use causeway_engine::ir::{Builder, Field, Program};
    use causeway_fastpath::{Action, Counters, Graph, Hook, Node, Options, Target, compile};

    /// A program that does this and sends all up by its first exit, number 1; none without the right to make maps.
    pub fn sends_up(build: impl FnOnce(&mut Builder)) -> Option<Compiled> {
        let counters = match Counters::new() {
            Ok(counters) => counters,
            Err(e) if e.kind() == ErrorKind::Privilege => {
                eprintln!("skipped: needs root to make BPF maps: {e}");
                return None;
            }
            Err(e) => panic!("{e}"),
        };
        let mut b = Builder::new();
        build(&mut b);
        b.leave(0);
        let program: Option<Program> = b.finish();
        let outputs = vec![Some(Target::Up(1, 0))];
        let graph =
            Graph { nodes: vec![Node { name: "a".to_owned(), program, tables: Vec::new(), outputs }] };
        let options = Options {
            hook: Hook::Xdp([2; 6]),
            ports: &[],
            up: Action::Return(action::XDP_DROP),
            anew: None,
            doubted: None,
            without_room: None,
            counters: &counters,
            edges: true,
            first_number: 1,
        };
        Some(compile(&graph, &options).expect("small enough"))
    }

    #[test]
    fn longer_luggage_than_the_kernel_allows_is_refused_before_packets_come() {
        // Three annotations that lie apart.
        let annotate =
            |b: &mut Builder| [0, 8, 16].into_iter().for_each(|at| b.put(Field::Anno(at, 4), 1u64));
        let Some(compiled) = sends_up(annotate) else { return };
        assert!(obstacle(&compiled, ANYWHERE).is_some_and(|why| why.contains("bring 40 bytes")));
        assert_eq!(obstacle(&compiled, 40), None);
        let allowed = allowed().expect("a program that loads everywhere");
        assert!(allowed == ANYWHERE || allowed == Luggage::MOST, "{allowed}");
    }
}
