//! Formal proofs with Yosys and z3 (Debian's), each with a mutant of the design that must be refuted, so that no
//! proof holds for want of anything to prove. The properties are in `fpga/formal`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Proof {
    /// The harness, `fpga/formal/NAME.sv`.
    name: &'static str,
    /// Files of `fpga/rtl`.
    design: &'static [&'static str],
    /// Steps of bounded model checking, and of induction.
    steps: u32,
    /// Whether the proof is by induction; otherwise it is bounded.
    induction: bool,
    /// More than one clock.
    clocks: bool,
    /// File, text, and what to put in its place: the mutant.
    mutant: (&'static str, &'static str, &'static str),
}

const PROOFS: [Proof; 5] = [
    Proof {
        name: "fv_rr_arbiter",
        design: &["rr_arbiter.sv"],
        steps: 12,
        induction: true,
        clocks: false,
        mutant: ("rr_arbiter.sv", "req & above", "req & 3'b111"),
    },
    Proof {
        name: "fv_grant_split",
        design: &["grant_split.sv"],
        steps: 2,
        induction: true,
        clocks: false,
        mutant: ("grant_split.sv", "free - grant_high", "free"),
    },
    Proof {
        name: "fv_sync_fifo",
        design: &["sync_fifo.sv", "lutram_1r1w.sv"],
        steps: 14,
        induction: false,
        clocks: false,
        mutant: ("sync_fifo.sv", "if (rd_en) rd_ptr", "if (rd_en && !wr_en) rd_ptr"),
    },
    Proof {
        name: "fv_async_fifo",
        design: &["async_fifo.sv", "lutram_1r1w.sv"],
        steps: 14,
        induction: false,
        clocks: true,
        mutant: ("async_fifo.sv", "wr_gray <= wr_next ^ (wr_next >> 1)", "wr_gray <= wr_next"),
    },
    Proof {
        name: "fv_credit",
        design: &["response_scheduler.sv", "rr_arbiter.sv", "grant_split.sv"],
        steps: 9,
        induction: false,
        clocks: false,
        mutant: (
            "response_scheduler.sv",
            "res_valid <= 1'b0;\n          state <= BURST",
            "res_valid <= 1'b0;\n          state <= IDLE",
        ),
    },
];

/// Whether the properties hold, with the solver's output.
fn holds(proof: &Proof, folder: &Path, mutated: bool) -> (bool, String) {
    fs::create_dir_all(folder).unwrap();
    let fpga = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = vec![fpga.join("formal").join(format!("{}.sv", proof.name))];
    for file in proof.design {
        let mut text = fs::read_to_string(fpga.join("rtl").join(file)).unwrap();
        if mutated && proof.mutant.0 == *file {
            assert!(text.contains(proof.mutant.1), "{file} no longer has what the mutant changes");
            text = text.replace(proof.mutant.1, proof.mutant.2);
        }
        let copy = folder.join(file);
        fs::write(&copy, text).unwrap();
        files.push(copy);
    }
    let model = folder.join("model.smt2");
    let files: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    let clocks = if proof.clocks { "clk2fflogic" } else { "async2sync; dffunmap" };
    let script = format!(
        "read_verilog -formal -sv -DASSERTIONS {}; prep -top {} -flatten; memory_map; opt -fast; {clocks}; write_smt2 -wires {}",
        files.join(" "),
        proof.name,
        model.display()
    );
    let yosys = Command::new("yosys").args(["-q", "-p", &script]).output().expect("yosys is installed");
    assert!(yosys.status.success(), "{}", String::from_utf8_lossy(&yosys.stderr));
    let steps = proof.steps.to_string();
    let mut all = String::new();
    for induction in [false, true] {
        if induction && !proof.induction {
            continue;
        }
        let mut solver = Command::new("yosys-smtbmc");
        solver.args(["--unroll", "--noprogress", "-s", "z3", "-t", &steps]);
        if induction {
            solver.arg("-i");
        }
        let output = solver.arg(&model).output().expect("yosys-smtbmc is installed");
        all += &String::from_utf8_lossy(&output.stdout);
        all += &String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return (false, all);
        }
    }
    (true, all)
}

fn prove(name: &str) {
    let proof = PROOFS.iter().find(|p| p.name == name).unwrap();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (proved, output) = holds(proof, &folder.join("design"), false);
    assert!(proved, "{output}");
    let (survived, output) = holds(proof, &folder.join("mutant"), true);
    assert!(!survived, "the mutant passes:\n{output}");
    assert!(output.contains("Assert failed") || output.contains("FAILED"), "{output}");
}

#[test]
fn round_robin_passes_nobody_over_too_often() {
    prove("fv_rr_arbiter");
}

#[test]
fn grants_are_strict_priority_within_the_room() {
    prove("fv_grant_split");
}

#[test]
fn fifo_keeps_order() {
    prove("fv_sync_fifo");
}

#[test]
fn clock_crossing_changes_one_bit_and_keeps_order() {
    prove("fv_async_fifo");
}

#[test]
fn granted_bursts_cannot_overflow_the_output() {
    prove("fv_credit");
}
