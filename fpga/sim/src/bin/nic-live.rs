//! `nic-live RULES`: simulated cards whose ports are TAPs (see the module `live`); RULES is a rule table as
//! `causeway-nic-xdp` takes it. `make nic-live` makes the network around it.

use std::process::ExitCode;

use causeway_nic_driver::RuleTable;
use causeway_nic_sim::live::Live;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("nic-live: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: nic-live RULES")?;
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let table = RuleTable::parse(&text).map_err(|e| format!("{path}: {e}"))?;
    let mut live = Live::new(&table)?;
    println!("ready");
    live.run();
    Ok(())
}
