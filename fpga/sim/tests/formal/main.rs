//! Formal proofs with Yosys and z3 or ABC (Debian's), each with mutants of the design that must be refuted, so that no
//! proof holds for want of anything to prove. The properties are in `fpga/formal`.
//!
//! With `NIC_LONG` in the environment (`make fpga-formal`) the mutants are refuted, what bounded proofs reach is shown, and
//! the proofs that take more than two seconds of a processor each run; the others take a quarter of a minute in all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

mod edges;
mod proofs;

use edges::*;
use proofs::*;

/// Copies the design, with a mutation if there is one, and gives all files.
fn sources(proof: &Proof, folder: &Path, mutant: Option<&Mutant>) -> String {
    fs::create_dir_all(folder).unwrap();
    let fpga = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for file in proof.design {
        let path = if file.contains('/') { fpga.join(file) } else { fpga.join("rtl").join(file) };
        let mut text = fs::read_to_string(&path).unwrap();
        if let Some((_, from, to)) = mutant.filter(|m| m.0 == *file) {
            assert!(text.contains(from), "{file} no longer has what the mutant changes: {from}");
            text = text.replace(from, to);
        }
        let copy = folder.join(path.file_name().unwrap());
        fs::write(&copy, text).unwrap();
        files.push(copy.display().to_string());
    }
    files.push(fpga.join("formal").join(format!("{}.sv", proof.name)).display().to_string());
    files.join(" ")
}

fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said.into_owned())
}

/// What is asked of the engine.
#[derive(Clone, Copy)]
enum Question<'a> {
    /// Whether the properties hold.
    Proof,
    /// The same of a mutant.
    Mutant(&'a Mutant),
    /// Whether what the harness says under `REACH` is out of reach.
    Reach,
}

/// The answer, with the engine's output.
fn holds(proof: &Proof, folder: &Path, question: Question<'_>) -> (bool, String) {
    let mutant = if let Question::Mutant(mutant) = question { Some(mutant) } else { None };
    let files = sources(proof, folder, mutant);
    let reach = if matches!(question, Question::Reach) { "-DREACH" } else { "" };
    let read = format!(
        "read_verilog -formal -sv -DASSERTIONS {reach} {files}; prep -top {} -flatten; memory_map",
        proof.name
    );
    let yosys = |script: String| {
        let (done, said) = run(Command::new("yosys").args(["-q", "-p", &script]));
        assert!(done, "{said}");
    };
    match proof.engine {
        Engine::Z3 { steps, induction } => {
            let model = folder.join("model.smt2");
            let clocks = if proof.clocks { "clk2fflogic" } else { "async2sync; dffunmap" };
            yosys(format!("{read}; opt -fast; {clocks}; write_smt2 -wires {}", model.display()));
            let solve = |more: &[&str]| {
                let mut solver = Command::new("yosys-smtbmc");
                solver.args(["--unroll", "--noprogress", "-s", "z3", "-t", &steps.to_string()]);
                run(solver.args(more).arg(&model))
            };
            let bounded = solve(&[]);
            if bounded.0 && induction { solve(&["-i"]) } else { bounded }
        }
        Engine::Bounded { .. } | Engine::Reachability => {
            let model = folder.join("model.aig").display().to_string();
            let clocks = if proof.clocks { "clk2fflogic" } else { "async2sync; dffunmap" };
            yosys(format!(
                "{read}; {clocks}; techmap; dffunmap; opt_clean; \
                 setundef -undriven -anyseq; setundef -anyseq; aigmap; write_aiger -zinit {model}"
            ));
            let (engine, proved) = match proof.engine {
                Engine::Bounded { cycles } => {
                    (format!("bmc3 -F {cycles}"), format!("No output asserted in {cycles} frames"))
                }
                _ => ("orpos; pdr".into(), "Property proved".into()),
            };
            let script = format!("read_aiger {model}; fold; &get; &scorr; &put; dc2; {engine}");
            let (_, said) = run(Command::new("yosys-abc").args(["-c", &script]));
            assert!(said.contains(&proved) != said.contains("was asserted in frame"), "{said}");
            (said.contains(&proved), said)
        }
    }
}

fn long_run() -> bool {
    std::env::var_os("NIC_LONG").is_some()
}

/// Of a proof that takes more than two seconds of a processor.
fn prove_in_the_long_run(proof: &Proof) {
    if long_run() {
        prove(proof);
    } else {
        println!("skipped: {} is for the long run", proof.name);
    }
}

fn prove(proof: &Proof) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(proof.name);
    let (proved, output) = holds(proof, &folder.join("design"), Question::Proof);
    assert!(proved, "{output}");
    if !long_run() {
        println!("skipped: {} mutants of {}", proof.mutants.len(), proof.name);
        return;
    }
    if proof.reach {
        let (unreached, output) = holds(proof, &folder.join("reach"), Question::Reach);
        assert!(!unreached && output.contains("was asserted in frame"), "{output}");
    }
    for (number, mutant) in proof.mutants.iter().enumerate() {
        let (survived, output) =
            holds(proof, &folder.join(format!("mutant{number}")), Question::Mutant(mutant));
        assert!(!survived, "the mutant passes: {mutant:?}\n{output}");
        let refuted = ["Assert failed", "FAILED", "was asserted in frame"].iter().any(|s| output.contains(s));
        assert!(refuted, "{output}");
    }
}

#[test]
fn round_robin_passes_nobody_over_too_often() {
    prove(&ROUND_ROBIN);
}

#[test]
fn grants_are_strict_priority_within_the_room() {
    prove(&GRANT);
}

#[test]
fn fifo_keeps_order() {
    prove(&FIFO);
}

#[test]
fn clock_crossing_changes_one_bit_and_keeps_order() {
    prove_in_the_long_run(&CROSSING);
}

#[test]
fn granted_bursts_cannot_overflow_the_output() {
    prove_in_the_long_run(&CREDIT);
}

#[test]
fn one_token_a_pair_and_one_request_awaited() {
    prove(&REQUESTS);
}

#[test]
fn input_fifos_keep_order_and_count_every_word() {
    prove_in_the_long_run(&QUEUES);
}

#[test]
fn the_scan_takes_what_fits_the_grant() {
    prove_in_the_long_run(&SCAN);
}

#[test]
fn bursts_keep_within_their_grants() {
    prove_in_the_long_run(&BURSTS);
}

#[test]
fn the_slow_path_leaves_first_between_packets() {
    prove_in_the_long_run(&OUTPUT);
}

#[test]
fn the_header_is_what_the_bytes_say() {
    prove_in_the_long_run(&PARSER);
}

#[test]
fn the_lowest_route_that_matches_decides() {
    prove_in_the_long_run(&RULES);
}

#[test]
fn the_rewritten_checksum_is_the_recomputed_one() {
    prove_in_the_long_run(&REWRITE);
}

#[test]
fn channels_take_turns_at_the_bus() {
    prove(&CHANNELS);
}

#[test]
fn the_host_gets_the_high_class_first_and_only_where_it_has_given_buffers() {
    prove_in_the_long_run(&UPLOADS);
}

#[test]
fn frames_of_the_host_have_room_and_are_whole() {
    prove_in_the_long_run(&DOWNLOADS);
}

#[test]
fn no_event_is_eaten_by_a_clear() {
    prove(&INTERRUPTS);
}

#[test]
fn counters_count_everything() {
    prove_in_the_long_run(&COUNTERS);
}

#[test]
fn output_fifos_give_whole_packets_in_order() {
    prove_in_the_long_run(&OUTPUT_FIFO);
}

#[test]
fn messages_go_one_at_a_time_and_none_waits_for_ever() {
    prove(&MESSAGES);
}

#[test]
fn a_link_is_up_only_after_its_sync_and_ack() {
    prove(&LINKS);
}

#[test]
fn words_on_axi_have_arrived_when_they_are_said_to() {
    prove(&AXI_WRITES);
}

#[test]
fn ticks_are_so_many_idle_cycles_apart() {
    prove(&TICKS);
}

#[test]
fn received_bytes_become_words_in_order() {
    prove(&GEARBOX_RX);
}

#[test]
fn words_become_bytes_in_order_and_without_a_pause() {
    prove(&GEARBOX_TX);
}

#[test]
fn only_whole_granted_packets_pass_the_burst_receiver() {
    prove(&BURST_RECEIVER);
}

#[test]
fn the_bus_target_hands_out_what_is_meant_for_it() {
    prove(&BUS_TARGET);
}

#[test]
fn the_axi_target_hands_out_words_once_and_answers_every_burst() {
    prove_in_the_long_run(&AXI_TARGET);
}

#[test]
fn frames_leave_with_preamble_padding_and_gap() {
    prove_in_the_long_run(&MAC_TX);
}

#[test]
fn received_frames_are_what_was_on_the_line() {
    prove_in_the_long_run(&MAC_RX);
}

#[test]
fn received_frames_cross_whole_or_cut_off() {
    prove_in_the_long_run(&RX_CROSSING);
}

#[test]
fn frames_to_send_cross_whole_and_in_turn() {
    prove_in_the_long_run(&TX_CROSSING);
}

#[test]
fn pulses_cross_once_each() {
    prove(&PULSES);
}
