//! The rules of the card's streams: that they are bound to every stream, and that a stream that breaks them is found.

use std::fs;
use std::path::Path;
use std::process::Command;

use causeway_nic_driver::corpus::Random;
use causeway_nic_sim::models::{FaultyGearboxTx, GearboxTx};

/// Set in the process that is to break the rules.
const BREAK: &str = "CAUSEWAY_NIC_BREAK_A_STREAM";

/// Sends words through a transmit gearbox whose receiver is not always ready; gives the bytes that came out.
macro_rules! stall {
    ($model:ty, $words:expr) => {{
        let mut gearbox = <$model>::new(1);
        let mut random = Random::new(4);
        let mut out = Vec::new();
        let mut next = 0;
        for cycle in 0..40 * $words {
            let ready = random.below(3) != 0;
            gearbox.set_rst(u64::from(cycle < 2));
            gearbox.set_s_axis_tvalid(u64::from(cycle > 2 && next < $words));
            gearbox.set_s_axis_tdata(next * 0x0101_0101_0101_0101);
            gearbox.set_s_axis_tkeep(0xff);
            gearbox.set_s_axis_tlast(u64::from(next % 8 == 7));
            gearbox.set_m_axis_tready(ready.into());
            gearbox.set_clk(0);
            gearbox.eval();
            if cycle > 2 {
                if ready && gearbox.m_axis_tvalid() == 1 {
                    out.push(gearbox.m_axis_tdata() as u8);
                }
                next += u64::from(next < $words && gearbox.s_axis_tready() == 1);
            }
            gearbox.set_clk(1);
            gearbox.eval();
        }
        out
    }};
}

#[test]
fn a_receiver_that_is_not_always_ready_gets_every_byte_once() {
    let bytes = stall!(GearboxTx, 64);
    let expected: Vec<u8> = (0..64).flat_map(|word| [word; 8]).collect();
    assert_eq!(bytes, expected);
}

#[test]
fn a_stream_that_does_not_wait_is_stopped() {
    if std::env::var_os(BREAK).is_some() {
        stall!(FaultyGearboxTx, 64);
        return;
    }
    // The assertion ends the process, so it has to be another one.
    let this_test = "a_stream_that_does_not_wait_is_stopped";
    let output = Command::new(std::env::current_exe().unwrap())
        .args([this_test, "--exact", "--nocapture"])
        .env(BREAK, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("handshake_checker.sv") && said.contains("Assertion failed"), "{said}");
}

#[test]
fn every_stream_has_its_checker() {
    let fpga = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let binds = fs::read_to_string(fpga.join("tb/axis_bind.sv")).unwrap();
    let mut streams = 0;
    for entry in fs::read_dir(fpga.join("rtl")).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let ports = text.split("\n);").next().unwrap();
        for side in ["s_axis", "m_axis"] {
            if ports.contains(&format!("{side}_tvalid")) {
                streams += 1;
                let bound = binds.lines().any(|line| {
                    line.starts_with(&format!("bind {module} axis_checker "))
                        && line.contains(&format!(" {side}_checker ("))
                });
                assert!(bound, "{side} of {module} is not checked");
            }
        }
    }
    assert!(streams >= 13, "{streams}");
}
