//! Programs at random: what a walk says of them is what the interpreter does.

use super::expr::{Condition, Expr};
use super::run::number;
use super::walk::{Guard, Kind, Walk};
use super::*;
use causeway_packet::Packet;
use proptest::prelude::*;
use proptest::sample::select;

/// Builds a program with `write`.
fn program(write: impl FnOnce(&mut Builder)) -> Option<Program> {
    let mut b = Builder::new();
    write(&mut b);
    b.finish()
}

fn packet(bytes: &[u8]) -> Packet {
    Packet::from_bytes(bytes).unwrap()
}

#[test]
fn bytes_fields_and_tables_are_read_and_written() {
    struct Doubled;
    impl Table for Doubled {
        fn look_up(&mut self, [key, ..]: Key<u64>, now_ns: u64) -> Option<[u64; 3]> {
            (key < 100).then_some([2 * key, now_ns, 0])
        }
    }
    let doubles = |b: &mut Builder| {
        let key = b.load(At::data(1), 2);
        let [twice, now, _] = b.look_up(Box::new(Doubled), [key.into()]);
        b.store(At::data(1), 2, twice);
        b.put(Field::Anno(4, 2), now);
        b.put(Field::Length, 3);
        b.put(Field::Network, 1);
        b.leave(7);
    };
    let mut p = packet(&[9, 0, 21, 4, 5]);
    assert_eq!(program(doubles).unwrap().run(&mut p, 0x1234), Outcome::Leave(7));
    assert_eq!((p.data(), p.network_offset()), (&[9, 0, 42][..], Some(1)));
    assert_eq!((p.anno_u8(4), p.anno_u8(5)), (0x12, 0x34));
    let mut p = packet(&[9, 1, 0, 4, 5]);
    assert_eq!(program(doubles).unwrap().run(&mut p, 0), Outcome::GiveUp, "not in the table");
    assert_eq!(p.data(), [9, 1, 0, 4, 5]);
    assert_eq!(program(doubles).unwrap().run(&mut packet(&[9, 0]), 0), Outcome::GiveUp, "too short");
}

#[test]
fn keys_have_the_words_that_were_said_and_zeros() {
    struct Same(Key<u64>);
    impl Table for Same {
        fn look_up(&mut self, key: Key<u64>, _: u64) -> Option<[u64; 3]> {
            (key == self.0).then_some([1, 2, 3])
        }
    }
    let finds = |key, write: fn(&mut Builder, Box<Same>) -> [Reg; 3]| {
        let found = |b: &mut Builder| {
            let [_, second, _] = write(b, Box::new(Same(key)));
            b.leave_by(second);
        };
        program(found).unwrap().run(&mut packet(&[1, 2, 3, 4, 5, 6]), 0)
    };
    let of_two = |b: &mut Builder, table: Box<Same>| b.look_up(table, [7.into(), 8.into()]);
    assert_eq!(finds([7, 8, 0, 0, 0, 0], of_two), Outcome::Leave(2));
    assert_eq!(finds([7, 8, 0, 0, 0, 1], of_two), Outcome::GiveUp);
    let of_all = |b: &mut Builder, table: Box<Same>| {
        let words: [Value; KEY_WORDS] = std::array::from_fn(|n| b.load(At::data(n as u32), 1).into());
        b.look_up(table, words)
    };
    assert_eq!(finds([1, 2, 3, 4, 5, 6], of_all), Outcome::Leave(2));
    assert_eq!(finds([1, 2, 3, 4, 6, 5], of_all), Outcome::GiveUp);
}

#[test]
fn headers_that_are_not_marked_give_up() {
    let first = |b: &mut Builder| {
        let byte = b.load(At::network(0), 1);
        b.leave_by(byte);
    };
    let mut p = packet(&[1, 2, 3]);
    assert_eq!(program(first).unwrap().run(&mut p, 0), Outcome::GiveUp);
    p.set_network_header(2);
    assert_eq!(program(first).unwrap().run(&mut p, 0), Outcome::Leave(3));
    p.pull(3).unwrap();
    assert_eq!(program(first).unwrap().run(&mut p, 0), Outcome::GiveUp, "stripped off");
}

#[test]
fn sums_are_those_of_the_internet_checksum() {
    let sum = |b: &mut Builder| {
        let sum = b.sum(At::data(0), 4);
        let more = b.compute(Alu::OnesAdd, sum, 0xfffe);
        b.leave_by(more);
    };
    let mut p = packet(&[0xff, 0xff, 0x12, 0x34]);
    // 0xffff + 0x1234 + 0xfffe, each carry added again.
    assert_eq!(program(sum).unwrap().run(&mut p, 0), Outcome::Leave(0x1233));
}

#[test]
fn what_is_no_program_is_not_made() {
    let none = |write: fn(&mut Builder)| program(write).is_none();
    assert!(none(|_| {}), "block 0 does not end");
    assert!(none(|b| b.go(0)), "it goes round");
    assert!(none(|b| b.go(1)), "there is no such block");
    assert!(
        none(|b| {
            b.put(Field::Anno(0, 1), 1);
            b.load(At::data(0), 1);
            b.leave(0);
        }),
        "it may give up after a change"
    );
    assert!(
        none(|b| {
            b.pull(1);
            b.require(Test::Has(At::data(0), 4));
            b.leave(0);
        }),
        "it gives up after a change"
    );
    assert!(
        none(|b| {
            (0..=REGISTERS).for_each(|_| _ = b.load(At::data(0), 1));
            b.leave(0);
        }),
        "too many registers"
    );
    assert!(
        none(|b| {
            b.load(At::data(0), 9);
            b.leave(0);
        }),
        "more than a register holds"
    );
    assert!(
        !none(|b| {
            b.require(Test::Has(At::data(0), 4));
            b.pull(2);
            b.load(At::data(0), 2);
            b.leave(0);
        }),
        "the bytes are known to be there"
    );
}

#[test]
fn a_walk_forgets_in_which_order_things_were_done() {
    let paint = || {
        program(|b| {
            b.put(Field::Anno(8, 1), 3);
            b.leave(0);
        })
        .unwrap()
    };
    let strip = || {
        program(|b| {
            b.pull(4);
            b.leave(0);
        })
        .unwrap()
    };
    let check = |at| {
        program(move |b| {
            let byte = b.load(At::data(at), 1);
            b.require(Test::Equal(byte.into(), 7.into()));
            b.leave(0);
        })
        .unwrap()
    };
    let walk = |programs: &[Program]| {
        let kind = Kind { least: 20, ..Kind::default() };
        programs.iter().try_fold(Walk::of(kind), |walk, p| walk.through(p, Some(0))).unwrap()
    };
    let one = walk(&[paint(), strip(), check(2)]);
    let other = walk(&[check(6), strip(), paint()]);
    assert!(one.same_but_annotations(&other) && one.annotations == other.annotations);
    assert!(!one.same_but_annotations(&walk(&[strip(), paint(), check(6)])));
    assert!(walk(&[check(1), check(1)]).guards.len() == 1, "what is known is not asked again");
}

// Random programs.

fn at() -> impl Strategy<Value = At> {
    let base = select(vec![Base::Data, Base::Data, Base::Network]);
    (base, 0u32..12).prop_map(|(base, offset)| At { base, offset })
}

fn reg() -> impl Strategy<Value = Reg> {
    (0u8..4).prop_map(Reg)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        reg().prop_map(Value::Of),
        select(vec![0u64, 1, 2, 7, 0xff, 14, 0x1ff, 300, u64::MAX, 1 << 40]).prop_map(Value::Const)
    ]
}

fn field() -> impl Strategy<Value = Field> {
    select(vec![
        Field::Length,
        Field::PacketType,
        Field::Mac,
        Field::Network,
        Field::Transport,
        Field::Anno(0, 4),
        Field::Anno(2, 1),
        Field::Anno(8, 8),
    ])
}

fn op() -> impl Strategy<Value = Op> {
    use Alu::*;
    let how = select(vec![Add, Sub, And, Or, Xor, Shl, Shr, OnesAdd]);
    prop_oneof![
        4 => (reg(), at(), 1u8..5).prop_map(|(to, at, bytes)| Op::Load { to, at, bytes }),
        2 => (reg(), field()).prop_map(|(to, field)| Op::Get { to, field }),
        3 => (reg(), how, value(), value()).prop_map(|(to, how, a, b)| Op::Compute { to, how, a, b }),
        1 => (reg(), at(), value()).prop_map(|(to, at, bytes)| Op::Sum { to, at, bytes }),
        1 => (reg(), value()).prop_map(|(to, of)| Op::Member { to, of, set: [1, 7, 14].into() }),
        2 => (at(), 1u8..5, value()).prop_map(|(at, bytes, value)| Op::Store { at, bytes, value }),
        2 => (field(), value()).prop_map(|(field, value)| Op::Put { field, value }),
        1 => (0u32..6).prop_map(Op::Pull),
        1 => (0u32..6).prop_map(Op::Push),
    ]
}

fn test() -> impl Strategy<Value = Test> {
    prop_oneof![
        (value(), value()).prop_map(|(a, b)| Test::Equal(a, b)),
        (value(), value()).prop_map(|(a, b)| Test::Above(a, b)),
        (at(), 0u32..6).prop_map(|(at, bytes)| Test::Has(at, bytes)),
    ]
}

/// The end of block number `at` of `n`.
fn end(at: usize, n: usize) -> BoxedStrategy<End> {
    let last = select(vec![
        End::Leave(0),
        End::Leave(0),
        End::Leave(1),
        End::GiveUp,
        End::Drop(0),
        End::LeaveBy(Reg(0)),
    ]);
    if at + 1 == n {
        return last.boxed();
    }
    let branch = (test(), at + 1..n, at + 1..n).prop_map(|(test, yes, no)| End::If(test, yes, no));
    prop_oneof![1 => last, 4 => branch, 1 => (at + 1..n).prop_map(End::Go)].boxed()
}

fn any_program() -> impl Strategy<Value = Vec<Code>> {
    (1usize..6).prop_flat_map(|n| {
        (0..n)
            .map(|i| (prop::collection::vec(op(), 0..4), end(i, n)).prop_map(|(ops, end)| Code { ops, end }))
            .collect::<Vec<_>>()
    })
}

/// What `e` is for a packet that came as `before`.
fn eval(e: &Expr, before: &Packet) -> Option<u64> {
    Some(match e {
        Expr::Const(n) => *n,
        Expr::Bytes { at, len } => number(before.data().get(*at as usize..*at as usize + *len as usize)?),
        Expr::Field(Field::Length) => before.len() as u64,
        Expr::Field(Field::PacketType) => before.packet_type() as u64,
        Expr::Field(Field::Anno(at, n)) => {
            number(&(*at..at + n).map(|i| before.anno_u8(i)).collect::<Vec<_>>())
        }
        Expr::Compute(how, parts) => how.of(eval(&parts[0], before)?, eval(&parts[1], before)?),
        Expr::Sum { at, len } => {
            let n = eval(len, before)? as usize;
            let sum = causeway_packet::checksum::Sum::new()
                .bytes(before.data().get(*at as usize..*at as usize + n)?);
            u64::from(!sum.finish())
        }
        Expr::Member(e, set) => set.contains(&eval(e, before)?) as u64,
        Expr::Field(_) | Expr::Found { .. } => return None,
    })
}

fn holds(guard: &Guard, before: &Packet) -> Option<bool> {
    let holds = match &guard.condition {
        Condition::Equal(a, b) => eval(a, before)? == eval(b, before)?,
        Condition::Above(a, b) => eval(a, before)? > eval(b, before)?,
        Condition::Has(end) => *end <= before.len() as i64,
    };
    Some(holds == guard.holds)
}

/// Compares what `walk` says with what became of `after`, which was `before`.
fn compare(walk: &Walk, before: &Packet, after: &Packet) -> Result<(), TestCaseError> {
    let data = after.headroom() as i64 - before.headroom() as i64;
    prop_assert_eq!(walk.data, data);
    let end = eval(&walk.end, before).unwrap() as i64;
    // An end behind the packet's, or in front of its start, leaves it as it is, or empty.
    if (walk.data..=before.len() as i64).contains(&end) {
        prop_assert_eq!(end, data + after.len() as i64);
    }
    for (field, e) in &walk.annotations {
        let Field::Anno(at, n) = *field else { panic!("{field:?}") };
        let mask = if n < 8 { (1 << (8 * n)) - 1 } else { u64::MAX };
        let is = number(&(at..at + n).map(|i| after.anno_u8(i)).collect::<Vec<_>>());
        prop_assert_eq!(eval(e, before).unwrap() & mask, is);
    }
    for (i, &byte) in after.data().iter().enumerate() {
        let at = data + i as i64;
        let stored = walk.stores.iter().find(|&(&start, &(n, _))| (start..start + n as i64).contains(&at));
        let expected = match stored {
            Some((&start, (n, e))) => {
                eval(e, before).unwrap().to_be_bytes()[8 - *n as usize..][(at - start) as usize]
            }
            None => match before.data().get(at as usize) {
                Some(&byte) => byte,
                None => continue,
            },
        };
        prop_assert_eq!(expected, byte, "byte {}", at);
    }
    if let Some(Expr::Const(at)) = walk.headers.get(&Field::Network)
        && (*at as i64) >= data
        && *at < 1_000
    {
        prop_assert_eq!(after.network_offset(), Some((*at as i64 - data) as usize));
    }
    Ok(())
}

/// Runs `programs` one after the other as long as packets leave them by output 0.
fn run_all(programs: &mut [Program], packet: &mut Packet) -> Result<Outcome, TestCaseError> {
    let mut verdict = Outcome::Leave(0);
    for program in programs {
        if verdict == Outcome::Leave(0) {
            let before = (packet.data().to_vec(), packet.anno_bytes::<48>(0), packet.network_offset());
            verdict = program.run(packet, 0);
            let after = (packet.data().to_vec(), packet.anno_bytes::<48>(0), packet.network_offset());
            prop_assert!(verdict != Outcome::GiveUp || before == after, "given up and changed");
        }
    }
    Ok(verdict)
}

#[test]
fn what_walks_say_is_what_the_interpreter_does() {
    use std::cell::Cell;
    let (sound, walked) = (Cell::new(0), Cell::new(0));
    let config = ProptestConfig { cases: 30_000, failure_persistence: None, ..ProptestConfig::default() };
    let bytes = prop::collection::vec(select(vec![0u8, 1, 2, 7, 14, 0xff]), 10..48);
    let all = prop::collection::vec(any_program(), 1..4);
    proptest!(config, |(all in all, mut bytes in bytes, known in 0usize..8, marked in any::<bool>())| {
        let program = |blocks| Program { blocks, tables: Vec::new(), counters: Vec::new(), list: None };
        let mut programs: Vec<Program> = all.into_iter().map(program).filter(check::is_sound).collect();
        sound.set(sound.get() + programs.len());
        bytes.resize(bytes.len().max(known), 7);
        let kind = Kind {
            bytes: bytes.iter().take(known).enumerate().map(|(i, &b)| (i as i64, b)).collect(),
            least: 10,
            guards: Vec::new(),
        };
        let (before, mut after) = (packet(&bytes), packet(&bytes));
        if marked {
            after.set_network_header(3);
            after.set_transport_header(8);
        }
        let verdict = run_all(&mut programs, &mut after)?;
        let walk = programs.iter().try_fold(Walk::of(kind), |walk, program| walk.through(program, Some(0)));
        let Some(walk) = walk else { return Ok(()) };
        let all = walk.guards.iter().map(|guard| holds(guard, &before)).collect::<Option<Vec<_>>>();
        if all.is_some_and(|all| all.into_iter().all(|holds| holds)) {
            walked.set(walked.get() + 1);
            prop_assert_eq!(verdict, Outcome::Leave(0), "{:?}", walk);
            compare(&walk, &before, &after)?;
        }
    });
    // Else the test shows nothing.
    assert!(sound.get() > 10_000 && walked.get() > 1_000, "{} sound, {} walked", sound.get(), walked.get());
}

#[test]
fn very_many_ways_are_no_walk_and_no_crash() {
    let many = |blocks: usize| {
        program(|b| {
            // Each block has a way out, and all of them meet.
            for n in 0..blocks {
                let byte = b.load(At::data(0), 1);
                let (yes, no) = (b.block(), b.block());
                b.with_scratch(|b| b.branch(Test::Equal(byte.into(), (n as u64).into()), yes, no));
                b.at(yes);
                b.leave(1);
                b.at(no);
            }
            b.leave(0);
        })
    };
    let walk = |p: Option<Program>| Walk::of(Kind { least: 20, ..Kind::default() }).through(&p?, Some(0));
    assert_eq!(walk(many(40)).map(|w| w.guards.len()), Some(40));
    let long = |n: usize| {
        let end = |i| {
            if i + 1 == n {
                End::Leave(0)
            } else {
                End::If(Test::Equal(Value::Of(Reg(0)), (i as u64).into()), n - 1, i + 1)
            }
        };
        let blocks = (0..n).map(|i| {
            let load = Op::Load { to: Reg(0), at: At::data(0), bytes: 1 };
            Code { ops: if i == 0 { vec![load] } else { Vec::new() }, end: end(i) }
        });
        Program { blocks: blocks.collect(), tables: Vec::new(), counters: Vec::new(), list: None }
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let found = thread.spawn(move || {
        Walk::of(Kind { least: 20, ..Kind::default() }).through(&long(5_000), Some(0)).is_some()
    });
    assert!(!found.unwrap().join().unwrap(), "too many to tell");
}
