//! Formal proofs with Yosys and z3 or ABC (Debian's), each with mutants of the design that must be refuted, so that no
//! proof holds for want of anything to prove. The properties are in `fpga/formal`.
//!
//! Of the mutants the first is refuted, with `NIC_LONG` in the environment (`make fpga-long`) all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What proves.
#[derive(Clone, Copy)]
enum Engine {
    /// z3: so many steps from reset, bounded, and by induction over as many if asked for.
    Z3 { steps: u32, induction: bool },
    /// ABC's bounded model checking: so many cycles from reset.
    Bounded { cycles: u32 },
    /// ABC's property-directed reachability: without a bound.
    Reachability,
}

/// A mutant: file, text, and what to put in its place.
type Mutant = (&'static str, &'static str, &'static str);

struct Proof {
    /// The harness, `fpga/formal/NAME.sv`.
    name: &'static str,
    /// Files of `fpga/rtl`, or of `fpga` with a folder.
    design: &'static [&'static str],
    engine: Engine,
    /// More than one clock.
    clocks: bool,
    mutants: &'static [Mutant],
}

const ROUND_ROBIN: Proof = Proof {
    name: "fv_rr_arbiter",
    design: &["rr_arbiter.sv"],
    engine: Engine::Z3 { steps: 12, induction: true },
    clocks: false,
    mutants: &[
        ("rr_arbiter.sv", "req & above", "req & 3'b111"),
        ("rr_arbiter.sv", "~(grant | (grant - 1'b1))", "~(grant - 1'b1)"),
    ],
};

const GRANT: Proof = Proof {
    name: "fv_grant_split",
    design: &["grant_split.sv"],
    engine: Engine::Z3 { steps: 2, induction: true },
    clocks: false,
    mutants: &[("grant_split.sv", "free - grant_high", "free")],
};

const FIFO: Proof = Proof {
    name: "fv_sync_fifo",
    design: &["sync_fifo.sv", "lutram_1r1w.sv"],
    engine: Engine::Z3 { steps: 14, induction: false },
    clocks: false,
    mutants: &[
        ("sync_fifo.sv", "if (reads) rd_ptr", "if (reads && !wr_en) rd_ptr"),
        ("lutram_1r1w.sv", "if (wr_en) mem[wr_addr]", "if (wr_en && wr_addr != 3) mem[wr_addr]"),
    ],
};

const CROSSING: Proof = Proof {
    name: "fv_async_fifo",
    design: &["async_fifo.sv", "lutram_1r1w.sv", "reset_sync.sv"],
    engine: Engine::Bounded { cycles: 26 },
    clocks: true,
    mutants: &[
        ("async_fifo.sv", "wr_gray <= wr_next ^ (wr_next >> 1)", "wr_gray <= wr_next"),
        ("async_fifo.sv", "rd_gray <= rd_next ^ (rd_next >> 1)", "rd_gray <= rd_next"),
        ("async_fifo.sv", "wr_gray_r2 <= wr_gray_r1", "wr_gray_r2 <= wr_gray"),
        ("async_fifo.sv", "rd_gray_w2 <= rd_gray_w1", "rd_gray_w2 <= rd_gray"),
        ("async_fifo.sv", "rd_gray != wr_gray_r2", "rd_gray[AW-1:0] != wr_gray_r2[AW-1:0]"),
        ("lutram_1r1w.sv", "if (wr_en) mem[wr_addr]", "if (wr_en && wr_addr != 3) mem[wr_addr]"),
    ],
};

const CREDIT: Proof = Proof {
    name: "fv_credit",
    design: &["response_scheduler.sv", "rr_arbiter.sv", "grant_split.sv"],
    engine: Engine::Bounded { cycles: 60 },
    clocks: false,
    mutants: &[
        (
            "response_scheduler.sv",
            "if (tail) begin\n          state <= IDLE",
            "if (word) begin\n          state <= IDLE",
        ),
        ("response_scheduler.sv", "asking = pending & ~cancel", "asking = pending"),
        ("grant_split.sv", "free - grant_high", "free"),
    ],
};

const REQUESTS: Proof = Proof {
    name: "fv_request_scheduler",
    design: &["request_scheduler.sv", "rr_arbiter.sv"],
    engine: Engine::Reachability,
    clocks: false,
    mutants: &[
        ("request_scheduler.sv", "token <= token & ~grant;", ""),
        ("request_scheduler.sv", "!take && res_peer == waiting_peer", "!take"),
        ("request_scheduler.sv", "waiting && !req_valid && waited[1]", "waiting && !req_valid && waited[0]"),
        ("request_scheduler.sv", "any && !waiting && !req_valid", "any && !req_valid"),
        ("request_scheduler.sv", "token[i] && ready[i]", "token[i]"),
        ("rr_arbiter.sv", "req & above", "req"),
    ],
};

const QUEUES: Proof = Proof {
    name: "fv_queue_bank",
    design: &["queue_bank.sv", "keep_count.sv", "formal/ram_one_word.sv"],
    engine: Engine::Bounded { cycles: 16 },
    clocks: false,
    mutants: &[
        ("queue_bank.sv", "fill >= CAP_WORDS[11:0]", "fill > CAP_WORDS[11:0]"),
        ("queue_bank.sv", "&& !s1_discard && fits && !rst;", "&& fits && !rst;"),
        ("queue_bank.sv", "used[i] + frame_words - rd_free_words", "used[i] + frame_words"),
        ("queue_bank.sv", "cur_ptr <= rd_ptr[rd_queue]", "cur_ptr <= rd_ptr[cur_queue]"),
    ],
};

const SCAN: Proof = Proof {
    name: "fv_length_scan",
    design: &["length_scan.sv"],
    engine: Engine::Bounded { cycles: 25 },
    clocks: false,
    mutants: &[
        ("length_scan.sv", "total <= {1'b0, grant_words}", "words <= grant_words"),
        ("length_scan.sv", "else stop <= 1'b1;", ""),
    ],
};

const BURSTS: Proof = Proof {
    name: "fv_burst_scheduler",
    design: &[
        "nic_pkg.sv",
        "burst_scheduler.sv",
        "rr_arbiter.sv",
        "sync_fifo.sv",
        "lutram_1r1w.sv",
        "formal/length_scan_contract.sv",
    ],
    engine: Engine::Bounded { cycles: 32 },
    clocks: false,
    mutants: &[
        ("burst_scheduler.sv", "scan_grant <= grant_low[burst_peer]", "scan_grant <= grant_high[burst_peer]"),
        ("burst_scheduler.sv", "token_return <= was_null", "token_return <= 1'b1"),
        ("burst_scheduler.sv", "end else state <= SETTLE", "end else state <= TAIL"),
    ],
};

const OUTPUT: Proof = Proof {
    name: "fv_output_scheduler",
    design: &["output_scheduler.sv", "sync_fifo.sv", "lutram_1r1w.sv"],
    engine: Engine::Bounded { cycles: 20 },
    clocks: false,
    mutants: &[
        ("output_scheduler.sv", "from_slow <= slow_packet", "from_slow <= slow_packet && !fast_packet"),
        ("output_scheduler.sv", "if (last) state <= DONE", "if (last || slow_packet) state <= DONE"),
    ],
};

const REWRITE: Proof = Proof {
    name: "fv_ip_rewrite",
    design: &["nic_pkg.sv", "ip_rewrite.sv", "keep_count.sv"],
    engine: Engine::Reachability,
    clocks: false,
    mutants: &[
        ("ip_rewrite.sv", "17'h0feff", "17'h0ff00"),
        ("ip_rewrite.sv", "~(sum[15:0] + {15'd0, sum[16]})", "~sum[15:0]"),
    ],
};

const CHANNELS: Proof = Proof {
    name: "fv_dma_engine",
    design: &["dma_engine.sv", "rr_arbiter.sv"],
    engine: Engine::Reachability,
    clocks: false,
    mutants: &[
        ("dma_engine.sv", ".req(valid), .take(take)", ".req(valid), .take(1'b0)"),
        ("dma_engine.sv", "done <= 4'd1 << channel", "done <= 4'd1 << pick"),
    ],
};

const UPLOADS: Proof = Proof {
    name: "fv_slow_path_rx",
    design: &["slow_path_rx.sv", "sync_fifo.sv", "lutram_1r1w.sv"],
    engine: Engine::Bounded { cycles: 36 },
    clocks: false,
    mutants: &[
        ("slow_path_rx.sv", "len_queue <= ready_high", "len_queue <= !ready_low"),
        ("slow_path_rx.sv", "packets[15:8] != 0 && head_high != tail[31:16]", "packets[15:8] != 0"),
        ("slow_path_rx.sv", "{!head[8], len_queue, 51'd0", "{!head[8], !len_queue, 51'd0"),
    ],
};

const DOWNLOADS: Proof = Proof {
    name: "fv_slow_path_tx",
    design: &["nic_pkg.sv", "slow_path_tx.sv", "sync_fifo.sv", "lutram_1r1w.sv"],
    engine: Engine::Bounded { cycles: 20 },
    clocks: false,
    mutants: &[
        ("slow_path_tx.sv", "free_words > {4'd0, data_words}", "free_words >= {4'd0, data_words}"),
        ("slow_path_tx.sv", "rsp_valid && rsp_tag == read_tag", "rsp_valid"),
        ("slow_path_tx.sv", "post_length < SHORTEST ||", ""),
    ],
};

const INTERRUPTS: Proof = Proof {
    name: "fv_interrupts",
    design: &["nic_pkg.sv", "register_file.sv"],
    engine: Engine::Reachability,
    clocks: false,
    mutants: &[(
        "register_file.sv",
        "irq_status <= (irq_status & ~wr_data[2:0]) | {errors != 0, irq_tx, irq_rx}",
        "irq_status <= irq_status & ~wr_data[2:0]",
    )],
};

const COUNTERS: Proof = Proof {
    name: "fv_counter_bank",
    design: &["counter_bank.sv", "formal/ram_one_word.sv"],
    engine: Engine::Bounded { cycles: 20 },
    clocks: false,
    mutants: &[
        ("counter_bank.sv", "add_ready ? add_amount : 8'd1", "add_ready ? add_amount : 8'd2"),
        (
            "counter_bank.sv",
            "reads ? rd_addr : add_ready ? add_addr",
            "reads ? rd_addr : add_ready ? rd_addr",
        ),
    ],
};

const OUTPUT_FIFO: Proof = Proof {
    name: "fv_output_fifo",
    design: &["output_fifo.sv", "formal/ram_one_word.sv"],
    engine: Engine::Bounded { cycles: 13 },
    clocks: false,
    mutants: &[
        ("output_fifo.sv", "end else wr_ptr <= begin_ptr;", "end"),
        ("output_fifo.sv", "- {11'd0, writes} + returned", "- {11'd0, writes}"),
        ("output_fifo.sv", "{8'd0, complete} - {8'd0, rd_done}", "{8'd0, writes} - {8'd0, rd_done}"),
    ],
};

const MESSAGES: Proof = Proof {
    name: "fv_message_sender",
    design: &["nic_pkg.sv", "message_sender.sv"],
    engine: Engine::Reachability,
    clocks: false,
    mutants: &[
        ("message_sender.sv", "!(last_was_res && req_valid)", "1'b1"),
        ("message_sender.sv", "req_valid && !link_valid && !res_ready", "req_valid && !res_ready"),
        ("message_sender.sv", "wire take = !busy;", "wire take = !busy || dma_done;"),
    ],
};

const LINKS: Proof = Proof {
    name: "fv_peer_links",
    design: &["nic_pkg.sv", "peer_links.sv"],
    engine: Engine::Reachability,
    clocks: false,
    mutants: &[
        ("peer_links.sv", "if (!busy[k]) begin", "if (1'b1) begin"),
        ("peer_links.sv", "waiting[k] && acked[k]", "waiting[k]"),
        ("peer_links.sv", "if (taken[k] && got_ack", "if (got_ack"),
        ("peer_links.sv", "            acked[k] <= 1'b0;\n", ""),
        ("peer_links.sv", "heard[k] <= 1'b0;\n        forget", "forget"),
    ],
};

const AXI_WRITES: Proof = Proof {
    name: "fv_axi_master",
    design: &["axi_master.sv"],
    engine: Engine::Bounded { cycles: 16 },
    clocks: false,
    mutants: &[
        ("axi_master.sv", "(to_boundary < longest) ? to_boundary : longest", "longest"),
        ("axi_master.sv", "bvalid && !bresp[1];", "bvalid;"),
        ("axi_master.sv", "if (arrived == 0) begin", "if (1'b1) begin"),
    ],
};

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

/// Whether the properties hold, with the engine's output.
fn holds(proof: &Proof, folder: &Path, mutant: Option<&Mutant>) -> (bool, String) {
    let files = sources(proof, folder, mutant);
    let read = format!(
        "read_verilog -formal -sv -DASSERTIONS {files}; prep -top {} -flatten; memory_map",
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

fn prove(proof: &Proof) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(proof.name);
    let (proved, output) = holds(proof, &folder.join("design"), None);
    assert!(proved, "{output}");
    let taken = if std::env::var_os("NIC_LONG").is_some() { proof.mutants.len() } else { 1 };
    for (number, mutant) in proof.mutants.iter().enumerate().take(taken) {
        let (survived, output) = holds(proof, &folder.join(format!("mutant{number}")), Some(mutant));
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
    prove(&CROSSING);
}

#[test]
fn granted_bursts_cannot_overflow_the_output() {
    prove(&CREDIT);
}

#[test]
fn one_token_a_pair_and_one_request_awaited() {
    prove(&REQUESTS);
}

#[test]
fn input_fifos_keep_order_and_count_every_word() {
    prove(&QUEUES);
}

#[test]
fn the_scan_takes_what_fits_the_grant() {
    prove(&SCAN);
}

#[test]
fn bursts_keep_within_their_grants() {
    prove(&BURSTS);
}

#[test]
fn the_slow_path_leaves_first_between_packets() {
    prove(&OUTPUT);
}

#[test]
fn the_rewritten_checksum_is_the_recomputed_one() {
    prove(&REWRITE);
}

#[test]
fn channels_take_turns_at_the_bus() {
    prove(&CHANNELS);
}

#[test]
fn the_host_gets_the_high_class_first_and_only_where_it_has_given_buffers() {
    prove(&UPLOADS);
}

#[test]
fn frames_of_the_host_have_room_and_are_whole() {
    prove(&DOWNLOADS);
}

#[test]
fn no_event_is_eaten_by_a_clear() {
    prove(&INTERRUPTS);
}

#[test]
fn counters_count_everything() {
    prove(&COUNTERS);
}

#[test]
fn output_fifos_give_whole_packets_in_order() {
    prove(&OUTPUT_FIFO);
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
