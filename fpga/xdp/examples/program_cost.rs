//! What the program of card 0 costs a frame, by its fate: `cargo run --release -p causeway-nic-xdp --example
//! program_cost`, as root.
//!
//! BPF_PROG_TEST_RUN runs the program over and over on one buffer and gives the mean. What it changes in the frame
//! stays changed, so a frame that is forwarded is no longer what it was: here the next hop has the card's own
//! address and the TTL begins at 255, and 254 runs find the frame addressed to the card and alive. The mean counts
//! the program alone: neither the driver nor what becomes of a redirected frame.

use causeway_bpf::{Asm, Program, ProgramKind, Reg, action};
use causeway_nic_driver::RuleTable;
use causeway_nic_driver::golden::ones_complement_sum;
use causeway_nic_xdp::{Card, router};
use std::error::Error;

/// Runs of the program in one measurement, what a TTL of 255 allows.
const RUNS: u32 = 254;
/// Measurements, of which the median counts.
const MEASUREMENTS: usize = 999;

const RULES: &str = "
    nic 0 mac 02:00:00:00:00:00
    nic 1 mac 02:00:00:00:00:01
    nic 2 mac 02:00:00:00:00:02
    nic 3 mac 02:00:00:00:00:03
    route 10.0.0.0/24 nic 0 mac 02:00:00:00:00:00
    route 10.0.1.0/24 nic 1 mac 02:00:00:00:00:00
    route 10.0.2.0/24 nic 2 mac 02:00:00:00:00:00
    route 10.0.3.0/24 nic 3 mac 02:00:00:00:00:00
    class nic 1 src 192.0.2.0/24 dst 10.0.1.0/24 proto 17
    class nic 3 src 192.0.2.0/24 dst 10.0.3.0/24 proto 17
    class host src 192.0.2.0/24 proto 17";

/// 60 bytes of UDP to 10.0.`network`.1.
fn frame(network: u8, ttl: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 8, 0]);
    frame[14..34]
        .copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, ttl, 17, 0, 0, 192, 0, 2, 1, 10, 0, network, 1]);
    let checksum = !ones_complement_sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

fn main() -> Result<(), Box<dyn Error>> {
    let ports = router::ports()?;
    for nic in 0..4 {
        // The loopback interface: the redirect is decided, not carried out.
        ports.insert_u32(nic, 1)?;
    }
    let card = Card::load(&RuleTable::parse(RULES)?, 0, &ports)?;
    let mut not_ipv4 = frame(1, 255);
    not_ipv4[12] = 0x86;
    let card = card.program();
    report("the test run itself: a program that passes at once", &idle()?, &not_ipv4, action::XDP_PASS)?;
    report("not IPv4, to the host", card, &not_ipv4, action::XDP_PASS)?;
    report("no route, to the host, high class", card, &frame(4, 255), action::XDP_PASS)?;
    report("TTL used up, dropped", card, &frame(1, 1), action::XDP_DROP)?;
    report("forwarded by the second route, high class", card, &frame(1, 255), action::XDP_REDIRECT)?;
    report("forwarded by the fourth route, high class", card, &frame(3, 255), action::XDP_REDIRECT)?;
    Ok(())
}

/// Passes everything.
fn idle() -> causeway_netio::Result<Program> {
    let mut a = Asm::new();
    a.mov(Reg::R0, action::XDP_PASS);
    a.exit();
    Program::load(ProgramKind::Xdp, "idle", &a.finish()?)
}

/// Prints the median of the mean cost of a run; the last run of each measurement must still end in `verdict`.
fn report(name: &str, program: &Program, frame: &[u8], verdict: i32) -> Result<(), Box<dyn Error>> {
    let mut durations_ns = Vec::new();
    for _ in 0..MEASUREMENTS {
        let run = program.test_run(frame, None, RUNS)?;
        if run.verdict != verdict {
            return Err(format!("{name}: verdict {} instead of {verdict}", run.verdict).into());
        }
        durations_ns.push(run.duration_ns);
    }
    durations_ns.sort_unstable();
    println!("{:3} ns  {name}", durations_ns[MEASUREMENTS / 2]);
    Ok(())
}
