//! The assembler's programs, run by the interpreter and, as root, by the kernel.

use super::*;
use crate::interp;
use crate::{Map, MapKind, MappedArray, Program, ProgramKind, XdpContext, action};
use proptest::prelude::*;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

/// Loads `code`, or says that the test needs root.
fn load(code: &Code) -> Option<Program> {
    match Program::load(ProgramKind::Xdp, "asm_test", code) {
        Ok(p) => Some(p),
        Err(e) if e.kind() == ErrorKind::Privilege => {
            eprintln!("skipped: needs root: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// The verdict of the interpreter, checked against the kernel's where allowed.
fn verdict(code: &Code) -> i32 {
    let frame = [0u8; 64];
    let (v, _) = interp::run_xdp(code, &frame, 0).expect("interpreted");
    if let Some(program) = load(code) {
        assert_eq!(
            program.test_run(&frame, None, 1).expect("run").verdict,
            v,
            "kernel and interpreter differ"
        );
    }
    v
}

fn binary(op: Alu, wide: bool, x: i32, y: Operand) -> i32 {
    let mut a = Asm::new();
    a.mov(Reg::R0, x);
    a.mov(Reg::R3, 7);
    if wide {
        a.alu(op, Reg::R0, y)
    } else {
        a.alu32(op, Reg::R0, y)
    }
    a.exit();
    verdict(&a.finish().expect("assembled"))
}

#[test]
fn arithmetic() {
    for wide in [true, false] {
        let run = |op, x, y: Operand| binary(op, wide, x, y);
        assert_eq!(run(Alu::Add, 40, 2.into()), 42);
        assert_eq!(run(Alu::Sub, 40, Reg::R3.into()), 33);
        assert_eq!(run(Alu::Mul, 6, Reg::R3.into()), 42);
        assert_eq!(run(Alu::Div, 42, Reg::R3.into()), 6);
        assert_eq!(run(Alu::Mod, 44, Reg::R3.into()), 2);
        assert_eq!(run(Alu::Or, 0x50, 0x0f.into()), 0x5f);
        assert_eq!(run(Alu::And, 0x5a, 0x0f.into()), 0x0a);
        assert_eq!(run(Alu::Xor, 0x5a, 0xff.into()), 0xa5);
        assert_eq!(run(Alu::Lsh, 3, 4.into()), 48);
        assert_eq!(run(Alu::Rsh, 48, 4.into()), 3);
        assert_eq!(run(Alu::Arsh, -48, 4.into()), -3);
        assert_eq!(run(Alu::Mov, 1, Reg::R3.into()), 7);
    }
}

#[test]
fn conditions() {
    let table = [
        (Cond::Eq, 5, 5, 6),
        (Cond::Ne, 5, 6, 5),
        (Cond::Gt, 5, 4, 5),
        (Cond::Ge, 5, 5, 6),
        (Cond::Lt, 5, 6, 5),
        (Cond::Le, 5, 5, 4),
        (Cond::Set, 6, 4, 1),
        (Cond::Sgt, -1, -2, 0),
        (Cond::Sge, -1, -1, 0),
        (Cond::Slt, -1, 0, -1),
        (Cond::Sle, -1, -1, -2),
    ];
    for (cond, x, holds, fails) in table {
        for (y, want) in [(holds, 1), (fails, 0)] {
            for narrow in [false, true] {
                let mut a = Asm::new();
                let yes = a.label();
                a.mov(Reg::R1, x);
                if narrow {
                    a.jump_if32(cond, Reg::R1, y, yes)
                } else {
                    a.jump_if(cond, Reg::R1, y, yes)
                }
                a.mov(Reg::R0, 0);
                a.exit();
                a.bind(yes);
                a.mov(Reg::R0, 1);
                a.exit();
                assert_eq!(verdict(&a.finish().expect("assembled")), want, "{x} {cond:?} {y}");
            }
        }
    }
}

#[test]
fn memory_byte_order_and_jumps_backwards() {
    let mut a = Asm::new();
    let slot = a.slot(16);
    let again = a.label();
    a.mov64(Reg::R1, 0x0102_0304_0506_0708);
    a.to_be(Reg::R1, 64);
    a.store_slot(Size::D, slot, 0, Reg::R1);
    a.slot_address(Reg::R2, slot);
    a.load(Size::H, Reg::R3, Reg::R2, 0);
    a.to_be(Reg::R3, 16); // 0x0102
    a.store_slot(Size::W, slot, 8, 0);
    a.store_slot(Size::W, slot, 12, 0);
    a.mov(Reg::R4, 3);
    a.bind(again);
    a.load(Size::W, Reg::R5, Reg::R2, 8);
    a.alu(Alu::Add, Reg::R5, Reg::R4); // 3 + 2 + 1
    a.store(Size::W, Reg::R2, 8, Reg::R5);
    a.alu(Alu::Sub, Reg::R4, 1);
    a.jump_if(Cond::Ne, Reg::R4, 0, again);
    a.load_slot(Size::B, Reg::R0, slot, 8);
    a.neg(Reg::R0);
    a.alu(Alu::Add, Reg::R0, Reg::R3);
    a.exit();
    assert_eq!(verdict(&a.finish().expect("assembled")), 0x0102 - 6);
}

#[test]
fn mistakes_are_reported() {
    let text = |a: Asm| a.finish().expect_err("a mistake").to_string();
    let mut a = Asm::new();
    let l = a.label();
    a.jump(l);
    assert!(text(a).contains("bound nowhere"));
    let mut a = Asm::new();
    let l = a.label();
    a.bind(l);
    a.bind(l);
    assert!(text(a).contains("bound twice"));
    let mut a = Asm::new();
    let l = a.label();
    a.jump(l);
    (0..40_000).for_each(|_| a.mov(Reg::R0, 0));
    a.bind(l);
    assert!(text(a).contains("too far"));
    let mut a = Asm::new();
    (0..65).for_each(|_| {
        a.slot(8);
    });
    assert!(text(a).contains("512 bytes"));
}

#[test]
fn verifier_log_is_shown() {
    let mut a = Asm::new();
    a.load(Size::W, Reg::R0, Reg::R1, 400);
    a.exit();
    let error =
        Program::load(ProgramKind::Xdp, "bad", &a.finish().expect("assembled")).expect_err("out of context");
    if error.kind() == ErrorKind::Privilege {
        return eprintln!("skipped: needs root: {error}");
    }
    assert_eq!(error.kind(), ErrorKind::Verifier);
    assert!(error.to_string().contains("invalid bpf_context access"), "{error}");
}

#[test]
fn of_a_log_that_is_longer_than_any_buffer_the_end_is_shown() {
    let mut a = Asm::new();
    a.mov(Reg::R0, 0);
    (0..300_000).for_each(|_| a.alu(Alu::Add, Reg::R0, 1));
    a.mov(Reg::R0, Reg::R5);
    a.exit();
    let error =
        Program::load(ProgramKind::Xdp, "bad", &a.finish().expect("assembled")).expect_err("of nothing");
    if error.kind() == ErrorKind::Privilege {
        return eprintln!("skipped: needs root: {error}");
    }
    assert_eq!(error.kind(), ErrorKind::Verifier);
    let text = error.to_string();
    assert!(text.lines().count() < 30, "{} lines", text.lines().count());
    // Linux 6.3 and earlier leave its start.
    assert!(text.contains("R5 !read_ok") || !text.contains("processed"), "{text}");
}

/// Moves the calling thread to `cpu`, if there is such a one.
fn on_cpu(cpu: usize) {
    // SAFETY: the set is plain data, for which zeros are valid, and `cpu` is inside it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

#[test]
fn maps_are_shared_with_the_program() {
    let (Ok(hash), Ok(counters), Ok(words)) = (
        Map::new(MapKind::Hash, "hash", 4, 8, 4),
        Map::new(MapKind::PerCpuArray, "counters", 4, 8, 2),
        MappedArray::new("words", 16, 1),
    ) else {
        return eprintln!("skipped: needs root");
    };
    hash.insert(&9u32.to_ne_bytes(), &1234u64.to_ne_bytes()).expect("insert");
    let mut a = Asm::new();
    let (key, miss) = (a.slot(4), a.label());
    a.mov(Reg::R9, Reg::R1);
    a.store_slot(Size::W, key, 0, 1);
    a.map(Reg::R1, counters.as_fd());
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, Reg::R0, 0, miss);
    a.mov(Reg::R1, 5);
    a.atomic_add(Size::D, Reg::R0, 0, Reg::R1);
    a.store_slot(Size::W, key, 0, 9);
    a.map(Reg::R1, hash.as_fd());
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, Reg::R0, 0, miss);
    a.load(Size::D, Reg::R0, Reg::R0, 0);
    a.map_value(Reg::R2, words.map().as_fd(), 8);
    a.load(Size::W, Reg::R3, Reg::R9, crate::xdp_md::RX_QUEUE_INDEX);
    a.store(Size::D, Reg::R2, 0, Reg::R3);
    a.mov(Reg::R3, 77);
    a.exchange(Size::D, Reg::R2, 0, Reg::R3);
    a.map_value(Reg::R2, words.map().as_fd(), 0);
    a.store(Size::D, Reg::R2, 0, Reg::R3);
    a.exit();
    a.bind(miss);
    a.mov(Reg::R0, action::XDP_ABORTED);
    a.exit();
    let program = load(&a.finish().expect("assembled")).expect("maps were allowed");
    let context = Some(XdpContext { ingress_ifindex: 1, rx_queue_index: 0 });
    [0, 8].into_iter().for_each(|at| words.word(at).store(99, Ordering::Relaxed));
    // On two CPUs, where there are two: the counters are per CPU.
    on_cpu(0);
    assert_eq!(program.test_run(&[0; 14], context, 2).expect("run").verdict, 1234);
    on_cpu(1);
    assert_eq!(program.test_run(&[0; 14], context, 1).expect("run").verdict, 1234);
    let words = [0, 8].map(|at| words.word(at).load(Ordering::Relaxed));
    assert_eq!(words, [0, 77], "the queue's number, which was there before the exchange");
    assert_eq!(counters.per_cpu_sum(1).expect("sum"), 15);
    assert_eq!(counters.per_cpu_sum(0).expect("sum"), 0);
    assert_eq!(hash.keys().expect("keys"), vec![9u32.to_ne_bytes().to_vec()]);
    assert!(hash.remove(&9u32.to_ne_bytes()).expect("remove"));
    assert!(!hash.remove(&9u32.to_ne_bytes()).expect("remove"));
    assert_eq!(program.test_run(&[0; 14], None, 1).expect("run").verdict, action::XDP_ABORTED);
    assert!(
        hash.insert(&[1], &[0; 8]).is_err(),
        "a short key must be refused before the kernel reads beyond it"
    );
    assert!(counters.insert(&[0; 4], &[0; 8]).is_err(), "so must one value where it reads one for each CPU");
}

proptest! {
    /// 32-bit arithmetic of random operands agrees with Rust's.
    #[test]
    fn narrow_arithmetic_wraps(x: i32, y: i32) {
        let table: [(Alu, i32); 5] = [
            (Alu::Add, x.wrapping_add(y)),
            (Alu::Sub, x.wrapping_sub(y)),
            (Alu::Mul, x.wrapping_mul(y)),
            (Alu::Xor, x ^ y),
            (Alu::And, x & y),
        ];
        for (op, want) in table {
            let mut a = Asm::new();
            a.mov32(Reg::R0, x);
            a.mov32(Reg::R1, y);
            a.alu32(op, Reg::R0, Reg::R1);
            a.exit();
            let (got, _) = interp::run_xdp(&a.finish().expect("assembled"), &[0; 14], 0).expect("interpreted");
            prop_assert_eq!(got, want);
        }
    }
}
