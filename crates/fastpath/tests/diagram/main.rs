//! Classifications as diagrams: the same answers in fewer steps.

mod firewall;
mod time;

use causeway_engine::harness::Harness;
use causeway_engine::ir::as_diagram;
use causeway_engine::ir::{Alu, At, Base, End, Op, Outcome, Program, Test, Value};
use causeway_packet::Packet;
use fastrand::Rng;
use firewall::{Sent, packets, pattern_of, rules};

/// What an element lowers to.
fn program(class: &str, config: &str, outputs: usize) -> Program {
    let spec = causeway_elements::library().get(class).expect("a class");
    let h = Harness::new(spec, config, 1, outputs).unwrap_or_else(|why| panic!("{config}: {why:?}"));
    h.lower().expect("a program")
}

fn marked(bytes: &[u8], network: usize, transport: usize) -> Packet {
    let mut packet = Packet::from_bytes(bytes).expect("a packet");
    packet.set_network_header(network);
    packet.set_transport_header(transport);
    packet
}

/// Steps that the interpreter takes for a packet with these headers: operations, and ends of blocks.
fn steps(program: &Program, data: &[u8], [network, transport]: [usize; 2]) -> (usize, End) {
    let mut registers = [0_u64; 64];
    let (mut at, mut count) = (0, 0);
    let start = |at: At| match at.base {
        Base::Data => at.offset as usize,
        Base::Network => network + at.offset as usize,
        Base::Transport => transport + at.offset as usize,
    };
    loop {
        let code = &program.blocks()[at];
        count += code.ops.len() + 1;
        for op in &code.ops {
            match *op {
                Op::Load { to, at, bytes } => {
                    let bytes = &data[start(at)..start(at) + usize::from(bytes)];
                    registers[to.number()] = bytes.iter().fold(0, |n, &b| n << 8 | u64::from(b));
                }
                Op::Compute { to, how: Alu::And, a: Value::Of(a), b: Value::Const(b) } => {
                    registers[to.number()] = registers[a.number()] & b;
                }
                ref op => panic!("{op:?} in a classification"),
            }
        }
        let value = |value| match value {
            Value::Of(reg) => registers[causeway_engine::ir::Reg::number(reg)],
            Value::Const(n) => n,
        };
        at = match code.end {
            End::Go(to) => to,
            End::If(test, yes, no) => {
                let holds = match test {
                    Test::Equal(a, b) => value(a) == value(b),
                    Test::Above(a, b) => value(a) > value(b),
                    Test::Has(at, bytes) => start(at) + bytes as usize <= data.len(),
                };
                if holds { yes } else { no }
            }
            end => return (count, end),
        };
    }
}

#[test]
fn a_hundred_rules_take_a_tenth_of_the_steps() {
    let rules = rules();
    let shared = program("IPFilter", &rules.join(", "), 1);
    let diagram = as_diagram(program("IPFilter", &rules.join(", "), 1));
    // What each rule takes by itself, and whether it applies.
    let alone: Vec<Program> =
        rules.iter().map(|rule| program("IPClassifier", &format!("{}, -", pattern_of(rule)), 2)).collect();
    let (mut worst, headers) = ([0; 3], [14, 34]);
    println!("{:38} {:>12} {:>6} {:>8}", "steps", "rule by rule", "list", "diagram");
    for (name, sent) in packets() {
        let bytes = sent.bytes();
        let mut by_rule = 0;
        for rule in &alone {
            let (count, end) = steps(rule, &bytes, headers);
            by_rule += count;
            if end == End::Leave(0) {
                break;
            }
        }
        let ((list, expected), (short, end)) =
            (steps(&shared, &bytes, headers), steps(&diagram, &bytes, headers));
        assert_eq!(end, expected, "{name}");
        println!("{name:38} {by_rule:12} {list:6} {short:8}");
        worst.iter_mut().zip([by_rule, list, short]).for_each(|(worst, n)| *worst = n.max(*worst));
    }
    println!(
        "{} blocks of the list, {} of the diagram with it",
        shared.blocks().len(),
        diagram.blocks().len()
    );
    assert!(worst[2] * 10 <= worst[0], "the worst packet: {worst:?}");
}

/// A pattern at random.
fn pattern(rng: &mut Rng, depth: u8) -> String {
    if depth > 0 && rng.u8(..3) > 0 {
        let (a, b) = (pattern(rng, depth - 1), pattern(rng, depth - 1));
        return match rng.u8(..3) {
            0 => format!("({a} or {b})"),
            1 => format!("not ({a})"),
            _ => format!("({a} and {b})"),
        };
    }
    let (near, port) = (rng.u8(..4), rng.u16(..6));
    match rng.u8(..10) {
        0 => format!("src net 10.{near}.0.0/{}", rng.u8(9..25)),
        1 => format!("dst host 10.0.{near}.2"),
        2 => format!("dst port {port}"),
        3 => format!("src port {port}"),
        4 => "ip frag".to_owned(),
        5 => format!("ip tos {near}"),
        6 => format!("ip proto {}", [1, 6, 17, 89][usize::from(near)]),
        7 => format!("ip ttl < {}", 1 + near),
        8 => "tcp opt syn".to_owned(),
        _ => format!("dst net 10.0.{near}.0/30"),
    }
}

#[test]
fn diagrams_answer_as_their_lists_do() {
    let rng = &mut Rng::with_seed(3);
    let (mut shorter, mut outcomes) = (0, std::collections::BTreeSet::new());
    for _ in 0..150 {
        let rules: Vec<String> =
            (0..rng.usize(1..12)).map(|n| format!("{} {}", n % 3, pattern(rng, 2))).collect();
        let config = rules.join(", ");
        let (mut list, mut diagram) =
            (program("IPFilter", &config, 3), as_diagram(program("IPFilter", &config, 3)));
        shorter += usize::from(list.blocks() != diagram.blocks());
        for _ in 0..80 {
            let sent = Sent {
                protocol: [1, 6, 17, 89][rng.usize(..4)],
                from: [10, rng.u8(..4), 0, rng.u8(..4)],
                to: [10, 0, rng.u8(..4), rng.u8(..4)],
                ports: [rng.u16(..6), rng.u16(..6)],
            };
            let mut bytes = sent.bytes();
            (bytes[15], bytes[22]) = (rng.u8(..4), rng.u8(..5));
            bytes[20] = if rng.u8(..4) == 0 { rng.u8(..) } else { 0 };
            bytes[47] = rng.u8(..4);
            let least = if rng.bool() { 54 } else { 14 };
            bytes.truncate(rng.usize(least..=54));
            let answer = |program: &mut Program| program.run(&mut marked(&bytes, 14, 34), 0);
            let expected = answer(&mut list);
            assert_eq!(answer(&mut diagram), expected, "{config}\n{bytes:02x?}");
            outcomes.insert(format!("{expected:?}"));
        }
    }
    // Else the test shows nothing.
    assert!(shorter > 100 && outcomes.len() == 4, "{shorter} diagrams, {outcomes:?}");
    assert!(outcomes.contains(&format!("{:?}", Outcome::Drop(0))));
}

#[test]
fn words_of_a_frame_become_diagrams_too() {
    let config = "12/0806 20/0001, 12/0806 20/0002, 12/0800 14/45, 12/0800, 12/86dd, -";
    let (mut list, mut diagram) =
        (program("Classifier", config, 6), as_diagram(program("Classifier", config, 6)));
    assert_ne!(list.blocks(), diagram.blocks());
    for frame in 0..=u8::MAX {
        let mut bytes = vec![0; 14 + usize::from(frame % 12)];
        bytes[12..14].copy_from_slice(&[[8, 0], [8, 6], [0x86, 0xdd], [8, 1]][usize::from(frame >> 6)]);
        bytes.iter_mut().skip(14).for_each(|byte| *byte = [0, 1, 2, 0x45][usize::from(frame >> 4 & 3)]);
        let answer = |program: &mut Program| program.run(&mut marked(&bytes, 0, 0), 0);
        assert_eq!(answer(&mut list), answer(&mut diagram), "{bytes:02x?}");
    }
}
