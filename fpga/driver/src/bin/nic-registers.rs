//! `nic-registers`: writes what is made from the register map, the Verilog package and the documentation.
//!
//! `nic-registers --rules FILE` prints the writes that make cards on one bus the router of a rule table, a bus address
//! and a value a line.

use std::path::Path;
use std::process::ExitCode;

use causeway_nic_driver::RuleTable;
use causeway_nic_driver::registers::{bus_address, compile, render};

fn main() -> ExitCode {
    match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => render_all(),
        [option, file] if option == "--rules" => print_writes(file),
        _ => {
            eprintln!("usage: nic-registers [--rules FILE]");
            ExitCode::FAILURE
        }
    }
}

fn print_writes(file: &str) -> ExitCode {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string());
    match text.and_then(|text| RuleTable::parse(&text).map_err(|e| e.to_string())) {
        Ok(table) => {
            for nic in 0..table.nics.len() as u8 {
                for (register, value) in compile(&table, nic) {
                    println!("{:08x} {value:016x}", bus_address(nic, register));
                }
            }
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("nic-registers: {file}: {e}");
            ExitCode::FAILURE
        }
    }
}

fn render_all() -> ExitCode {
    let Some(fpga) = Path::new(env!("CARGO_MANIFEST_DIR")).parent() else { return ExitCode::FAILURE };
    for (path, content) in render::files() {
        let path = fpga.join(path);
        // What has not changed is left alone, so that nothing is built anew for it.
        if std::fs::read_to_string(&path).is_ok_and(|old| old == content) {
            continue;
        }
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, content));
        if let Err(e) = written {
            eprintln!("nic-registers: {}: {e}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
