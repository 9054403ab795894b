//! Diagrams against the rules that they are made of.

use super::*;
use crate::classify::expr::model::View;
use crate::classify::ip_expr;
use causeway_engine::Names;
use fastrand::Rng;

fn rule(rng: &mut Rng) -> String {
    let (near, port) = (rng.u8(..4), rng.u16(..6));
    let one = |rng: &mut Rng| match rng.u8(..7) {
        0 => format!("src net 10.{near}.0.0/{}", rng.u8(9..25)),
        1 => format!("dst host 10.0.{near}.2"),
        2 => format!("udp and dst port {port}"),
        3 => format!("tcp src port > {port}"),
        4 => "ip frag".to_owned(),
        5 => format!("ip ttl < {}", 1 + near),
        _ => format!("not (dst net 10.0.{near}.0/30 or ip tos {near})"),
    };
    format!("{} and {}", one(rng), one(rng))
}

/// A packet that rules may be about, and that may be short.
fn packet(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; if rng.u8(..4) == 0 { rng.usize(..44) } else { 44 }];
    let fields: [(usize, &[u8]); 9] = [
        (0, &[0x45]),
        (1, &[rng.u8(..4)]),
        (6, &[rng.u8(..2) << 5]),
        (8, &[rng.u8(..6)]),
        (9, &[[6, 17, 1][rng.usize(..3)]]),
        (12, &[10, rng.u8(..4), rng.u8(..2), rng.u8(..4)]),
        (16, &[10, 0, rng.u8(..4), rng.u8(..4)]),
        (20, &[0, rng.u8(..8)]),
        (22, &[0, rng.u8(..8)]),
    ];
    for (at, field) in fields {
        bytes.iter_mut().skip(at).zip(field).for_each(|(to, from)| *to = *from);
    }
    bytes
}

#[test]
fn a_diagram_answers_as_the_rules_do() {
    let rng = &mut Rng::with_seed(5);
    let (mut with, mut answers) = (0, std::collections::BTreeSet::new());
    for _ in 0..60 {
        let names = Names::default();
        let expr = |text: String| ip_expr::parse(&text, &names.scope(""), &mut Vec::new()).unwrap();
        let exprs: Vec<Expr> = (0..rng.usize(1..25)).map(|_| expr(rule(rng))).collect();
        let rules: Vec<_> = exprs.iter().enumerate().map(|(n, e)| (e.clone(), Goal::Output(n % 3))).collect();
        let program = Program::new(&rules);
        with += usize::from(program.cuts.is_some());
        for _ in 0..200 {
            let packet = packet(rng);
            let view: View<'_> = [Some(&packet), Some(&packet), packet.get(20..), None];
            let expected = exprs.iter().position(|e| e.holds(&view)).map_or(DROP, |n| n % 3);
            assert_eq!(program.run(&packet, &bases(Some(0), Some(20)), || None), expected, "{program}");
            answers.insert(expected);
        }
    }
    assert!(with > 30 && answers.len() == 4, "{with} {answers:?}");
}

#[test]
fn a_hundred_rules_are_a_short_way() {
    let rules: Vec<_> = (0..100)
        .map(|n| {
            let text = format!("udp and src net 10.{n}.0.0/16 and dst port {}", 1_000 + n);
            let expr = ip_expr::parse(&text, &Names::default().scope(""), &mut Vec::new()).unwrap();
            (expr, Goal::Output(0))
        })
        .collect();
    let program = Program::new(&rules);
    let list = longest(program.steps.iter().map(|step| step.to), program.start);
    let diagram = program.cuts.as_ref().expect("a diagram").longest();
    assert!(diagram * 5 < list, "{diagram} of {list}");
    let few = Program::new(&rules[..2]);
    assert!(few.cuts.is_none(), "a few comparisons are made one by one");
}
