//! `causeway stats`: what a running router counts, for people: by interface, what is not zero, rates when watched.

mod report;

use crate::cli::StatsArgs;
use crate::control::Client;
use crate::output;
use anyhow::{Context, Result};
use causeway_elements::devices::interface;
use causeway_engine::read_line;
use report::{Counted, Report};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

/// Prints once, or again and again.
pub fn stats(args: &StatsArgs) -> Result<ExitCode> {
    let mut client = Client::connect(args.socket.socket.as_deref())?;
    let mut before: Option<(Counted, Instant)> = None;
    loop {
        let (now, when) = (counted(&mut client)?, Instant::now());
        let interfaces = interfaces(&mut client, &now)?;
        let since = before.as_ref().map(|(counted, then)| (counted, when - *then));
        let report = Report::new(&now, &interfaces, since);
        output::print(if args.json { format!("{:#}\n", report.to_json()) } else { report.to_string() })?;
        let Some(period) = args.watch else { return Ok(ExitCode::SUCCESS) };
        if !args.json {
            output::print("\n")?;
        }
        before = Some((now, when));
        std::thread::sleep(period);
    }
}

/// All counters, the sum of the workers'.
fn counted(client: &mut Client) -> Result<Counted> {
    let mut sums = Counted::new();
    for line in client.read("counters", "")?.lines() {
        let read = read_line(line).context("the router's counters are of another version")?;
        let (element, name, value) = read;
        // What passed the edges is read as such.
        if !name.starts_with("in.") && !name.starts_with("out.") {
            *sums.entry((element.to_owned(), name.to_owned())).or_default() += value;
        }
    }
    Ok(sums)
}

/// The interface of each element that has one: the first argument of what opens ports.
fn interfaces(client: &mut Client, counted: &Counted) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for (element, _) in counted.keys().filter(|(_, name)| name.starts_with("port.")) {
        if !found.contains_key(element) {
            let config = client.read(&format!("{element}.config"), "")?;
            found.insert(element.clone(), interface(&config).unwrap_or_default());
        }
    }
    Ok(found)
}
