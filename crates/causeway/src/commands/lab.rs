//! `causeway lab`: the tester.

use crate::cli::{LabCommand, LabDevicesArgs, LabReceiveArgs, LabTransmitArgs};
use crate::output;
use crate::signals::Signals;
use anyhow::{Context, Result, bail, ensure};
use causeway_lab::bed;
use causeway_lab::run::{Task, compare_files};
use causeway_lab::search::Request;
use causeway_lab::tester::{Attached, carries_default_route, receive_only, transmit_only};
use causeway_lab::traffic;
use causeway_packet::wire::MacAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Does what was asked for.
pub fn lab(command: LabCommand) -> Result<ExitCode> {
    match command {
        LabCommand::Run(args) => devices(args.devices, args.how),
        LabCommand::Compare(args) => {
            let files: Vec<PathBuf> = args.things.iter().map(PathBuf::from).collect();
            match &files[..] {
                [old, new] if [old, new].iter().all(|file| is_document(file)) => {
                    compare(old, new, args.fail_on)
                }
                _ if files.iter().any(|file| is_document(file)) => {
                    bail!("compare takes two files of results, or names of devices")
                }
                _ => devices(args.things, args.how),
            }
        }
        LabCommand::Transmit(args) => transmit(&args),
        LabCommand::Receive(args) => receive(&args),
    }
}

fn is_document(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "json")
}

/// Set by the first signal.
fn interrupted() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let set = interrupted.clone();
    Signals::watch(move || set.store(true, Ordering::Relaxed))?;
    Ok(interrupted)
}

fn devices(devices: Vec<String>, how: LabDevicesArgs) -> Result<ExitCode> {
    let task = Task {
        devices,
        description: how.file,
        sizes: how.sizes,
        conformant: how.conformant,
        repetitions: how.repetitions.clamp(1, 1_000),
        output: how.output,
    };
    let interrupted = interrupted()?;
    let mut progress = |what: &str, left: Duration| {
        let seconds = left.as_secs();
        // The results go to a file, whoever reads along.
        drop(output::print_line(format_args!("{what}; {}:{:02} left", seconds / 60, seconds % 60)));
    };
    for line in task.run(&interrupted, &mut progress)? {
        output::print_line(line)?;
    }
    output::print_line(format_args!("results in {}", task.output.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn compare(old: &Path, new: &Path, fail_on: Option<f64>) -> Result<ExitCode> {
    let (lines, failed) = compare_files(old, new, fail_on)?;
    lines.iter().try_for_each(output::print_line)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn port(
    interface: &str,
    method: &str,
    gateway: MacAddr,
    hosts: [Option<&str>; 2],
    yes: bool,
) -> Result<Attached> {
    ensure!(
        yes || !carries_default_route(interface),
        "{interface} carries the default route: test traffic there may reach others; if that is meant, say --yes"
    );
    let [four, six] = hosts.map(|hosts| hosts.map(str::parse).transpose());
    bed::open(interface, method, gateway, [four?, six?])
}

fn transmit(args: &LabTransmitArgs) -> Result<ExitCode> {
    let to: MacAddr = args.to.parse().map_err(|e| anyhow::anyhow!("--to {}: {e}", args.to))?;
    let mut port = port(&args.interface, &args.method, to, [Some(&args.source), None], args.yes)?;
    let traffic = match &args.traffic {
        Some(file) => {
            let text =
                std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            traffic::read(&text).with_context(|| file.display().to_string())?
        }
        None => traffic::simple(args.size),
    };
    let destinations = [Some(args.destination.parse()?), None];
    let interrupted = interrupted()?;
    let request = Request::new(args.rate, args.seconds.as_nanos() as u64);
    let sent = transmit_only(&mut port, &traffic, destinations, &request, &[], &interrupted)?;
    let rate = sent.frames as f64 * 1e9 / (sent.took_ns as f64).max(1.0);
    output::print_line(format_args!("sent {} of {} frames, {rate:.0} frames/s", sent.frames, sent.intended))?;
    Ok(ExitCode::SUCCESS)
}

fn receive(args: &LabReceiveArgs) -> Result<ExitCode> {
    let mut port = port(&args.interface, &args.method, MacAddr::ZERO, [None, None], args.yes)?;
    let interrupted = interrupted()?;
    let received = receive_only(&mut port, args.seconds, &[], &interrupted);
    let (all, total) = (&received.analysis, received.analysis.total());
    for (what, count) in [
        ("in order", total.in_order),
        ("reordered", total.reordered),
        ("duplicated", total.duplicated),
        ("too late to tell", total.too_late),
        ("missing below the highest number", total.lost),
        ("corrupt", all.corrupt),
        ("of an earlier trial", all.earlier),
        ("foreign", all.foreign),
    ] {
        output::print_line(format_args!("{what:<34} {count:>12}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
