//! `causeway-nic-xdp RULES INTERFACE...`: the router of a rule table on interfaces of this machine, until SIGINT or
//! SIGTERM. SIGHUP reads the rules again, SIGUSR1 prints the counters.

use causeway_bpf::XdpMode;
use causeway_nic_driver::RuleTable;
use causeway_nic_xdp::Router;
use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Forward between interfaces by the FPGA-enhanced NIC's rule table, in XDP.
///
/// What the rules are sure of goes from interface to interface; everything else goes to the kernel. Signals: HUP
/// reads the rules again, USR1 prints the counters, INT and TERM end it.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// File with the rule table, a rule a line.
    rules: PathBuf,
    /// The interfaces, one for each card of the table, card 0 first.
    #[arg(required = true)]
    interfaces: Vec<String>,
    /// Run in the kernel's stack, for drivers without XDP: works everywhere, slower.
    #[arg(long)]
    generic: bool,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("causeway-nic-xdp: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), String> {
    let mut signals =
        Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1]).map_err(|e| format!("signals: {e}"))?;
    let mode = if cli.generic { XdpMode::Generic } else { XdpMode::Native };
    let table = read(&cli.rules)?;
    let mut router = Router::attach(&table, &cli.interfaces, mode).map_err(|e| e.to_string())?;
    for (nic, (name, reachable)) in router.reachable().enumerate() {
        let note = if reachable {
            ""
        } else {
            "; takes no redirected frames: what is routed there goes to the kernel"
        };
        println!("card {nic}: {name}, {}{note}", mode.name());
    }
    for signal in signals.forever() {
        match signal {
            SIGHUP => match read(&cli.rules).and_then(|t| router.replace(&t).map_err(|e| e.to_string())) {
                Ok(()) => println!("rules read"),
                Err(text) => eprintln!("causeway-nic-xdp: {text}; the rules stay as they were"),
            },
            SIGUSR1 => print_counters(&router)?,
            _ => break,
        }
    }
    print_counters(&router)
}

fn read(path: &Path) -> Result<RuleTable, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    RuleTable::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// The counters that are not zero, a card a line.
fn print_counters(router: &Router) -> Result<(), String> {
    for ((name, _), counters) in router.reachable().zip(router.counters()) {
        let counters = counters.read().map_err(|e| e.to_string())?;
        let shown: String =
            counters.iter().filter(|c| c.1 > 0).map(|(name, n)| format!(" {name} {n}")).collect();
        println!("{name}:{shown}");
    }
    Ok(())
}
