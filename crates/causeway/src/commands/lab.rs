//! `causeway lab`: the tester.

use crate::cli::{
    LabClusterArgs, LabCommand, LabDevicesArgs, LabPaperArgs, LabReceiveArgs, LabReplayArgs, LabTransmitArgs,
    LabTrials,
};
use crate::output;
use crate::signals::Signals;
use anyhow::{Context, Result, bail, ensure};
use causeway_engine::usable_processors;
use causeway_lab::bed;
use causeway_lab::cluster;
use causeway_lab::network::Network;
use causeway_lab::papers::{Experiment, Needs, experiments, pages};
use causeway_lab::run::{Description, Preset, Task, check_rate, compare_files};
use causeway_lab::search::Request;
use causeway_lab::tester::{
    Attached, Capture, Timing, Transmitted, carries_default_route, receive_only, replay, transmit_bare,
    transmit_only,
};
use causeway_lab::traffic;
use causeway_packet::wire::MacAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Frames a second that no interface takes.
const AS_FAST_AS_IT_GOES: f64 = 1e9;

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
        LabCommand::Paper(args) => paper(&args),
        LabCommand::Pages(args) => {
            let written = pages(&args.results, &args.output)?;
            written
                .iter()
                .try_for_each(|file| output::print_line(format_args!("written: {}", file.display())))?;
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::Cluster(args) => cluster(args),
        LabCommand::Transmit(args) => transmit(&args),
        LabCommand::Replay(args) => replayed(&args),
        LabCommand::Receive(args) => receive(&args),
    }
}

fn is_document(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "json")
}

/// Set by the first signal.
pub(super) fn interrupted() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let set = interrupted.clone();
    Signals::watch(move || set.store(true, Ordering::Relaxed))?;
    Ok(interrupted)
}

fn devices(devices: Vec<String>, how: LabDevicesArgs) -> Result<ExitCode> {
    let preset = preset(&how.trials);
    let task = Task {
        devices,
        description: how.file.as_deref().map_or_else(|| Ok(Description::default()), Description::open)?,
        sizes: how.sizes,
        preset,
        yes: how.yes,
        repetitions: how.repetitions.clamp(1, 1_000),
        output: how.output,
    };
    let interrupted = interrupted()?;
    for line in task.run(&interrupted, &mut progress)? {
        output::print_line(line)?;
    }
    output::print_line(format_args!("results in {}", task.output.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn preset(trials: &LabTrials) -> Preset {
    match (trials.paper, trials.conformant) {
        (true, _) => Preset::paper(),
        (_, true) => Preset::conformant(),
        _ => Preset::quick(),
    }
}

/// A line for a step.
pub(super) fn progress(what: &str, left: Duration) {
    let seconds = left.as_secs();
    // The results go to a file, whoever reads along.
    drop(output::print_line(format_args!("{what}; {}:{:02} left", seconds / 60, seconds % 60)));
}

fn paper(args: &LabPaperArgs) -> Result<ExitCode> {
    let usable = usable_processors();
    if args.names {
        let mut measured = experiments().filter(|one| one.refusal(&usable).is_none());
        measured.try_for_each(|one| output::print_line(one.name()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(name) = &args.name else {
        for one in experiments() {
            let refusal =
                one.refusal(&usable).map_or(String::new(), |why| format!("; not measured here: {why}"));
            let more: Vec<&str> = one.figures().skip(1).collect();
            let more = if more.is_empty() { String::new() } else { format!(" (with {})", more.join(", ")) };
            let Needs { processors, ports, .. } = one.needs;
            let needs = match one.is_measured() {
                true => format!(" [{processors} processors, {ports} ports]"),
                false => String::new(),
            };
            output::print_line(format_args!("{:<8} {}{more}{needs}{refusal}", one.name(), one.about))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let experiment = Experiment::find(name)?;
    let file = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.json", experiment.name())));
    let interrupted = interrupted()?;
    let repetitions = args.repetitions.clamp(1, 1_000);
    let how = (&preset(&args.trials), repetitions);
    for line in experiment.run(how, &args.only, &file, &interrupted, &mut progress)? {
        output::print_line(line)?;
    }
    output::print_line(format_args!("results in {}", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn cluster(args: LabClusterArgs) -> Result<ExitCode> {
    let LabClusterArgs { runs, nodes, daemon, hashing, output: file } = args;
    let task = cluster::Task { runs, nodes, daemon, hashing, output: file };
    // The results go to a file, whoever reads along.
    task.run(&interrupted()?, &mut |line| drop(output::print_line(line)))?;
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
    hosts: [Option<Network>; 2],
    yes: bool,
) -> Result<Attached> {
    ensure!(
        yes || !carries_default_route(interface),
        "{interface} carries the default route: test traffic there may reach others; if that is meant, say --yes"
    );
    bed::open(interface, method, gateway, hosts)
}

fn transmit(args: &LabTransmitArgs) -> Result<ExitCode> {
    let to: MacAddr = args.to.parse().map_err(|e| anyhow::anyhow!("--to {}: {e}", args.to))?;
    let source = Network::by_family(&args.source).context("--source")?;
    let destinations = Network::by_family(&args.destination).context("--destination")?;
    let mut port = port(&args.interface, &args.method, to, source, args.yes)?;
    let traffic = match &args.traffic {
        Some(file) => {
            let text =
                std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            traffic::read(&text).with_context(|| file.display().to_string())?
        }
        None => traffic::simple(args.size),
    };
    let interrupted = interrupted()?;
    if args.bare {
        let how = (args.count.unwrap_or(u64::MAX), args.seconds);
        let sent = transmit_bare(&mut port, &traffic, destinations, how, &interrupted)?;
        return say_sent(&sent, false);
    }
    let (rate, seconds) = (if args.rate > 0.0 { args.rate } else { AS_FAST_AS_IT_GOES }, args.seconds);
    if args.rate > 0.0 {
        check_rate(&args.interface, rate, traffic.mean_length().unwrap_or_default())?;
    }
    let request = Request { most_frames: args.count, ..Request::new(rate, seconds.as_nanos() as u64) };
    let sent = transmit_only(&mut port, &traffic, destinations, &request, &[], &interrupted)?;
    say_sent(&sent, args.rate > 0.0)
}

fn say_sent(sent: &Transmitted, intended: bool) -> Result<ExitCode> {
    let rate = sent.frames as f64 * 1e9 / (sent.took_ns as f64).max(1.0);
    let of = if intended { format!(" of {}", sent.intended) } else { String::new() };
    output::print_line(format_args!("sent {}{of} frames, {rate:.0} frames/s", sent.frames))?;
    Ok(ExitCode::SUCCESS)
}

fn replayed(args: &LabReplayArgs) -> Result<ExitCode> {
    let capture = Capture::open(&args.file)?;
    let mut port = port(&args.interface, &args.method, MacAddr::ZERO, [None, None], args.yes)?;
    let timing = if args.fast { Timing::Fastest } else { Timing::Speed(args.speed) };
    let sent = replay(&mut port, &capture, timing, args.times, &[], &*interrupted()?)?;
    if capture.cut > 0 {
        let what = "frames of the capture were not captured whole, and are sent as they are";
        output::print_line(format_args!("{} {what}", capture.cut))?;
    }
    say_sent(&sent, true)
}

fn receive(args: &LabReceiveArgs) -> Result<ExitCode> {
    let mut port = port(&args.interface, &args.method, MacAddr::ZERO, [None, None], args.yes)?;
    let interrupted = interrupted()?;
    let received = receive_only(&mut port, args.seconds, &[], &interrupted);
    let (all, total) = (&received.analysis, received.analysis.total());
    let rate = total.received() as f64 * 1e9 / (received.took_ns as f64).max(1.0);
    output::print_line(format_args!("received {} frames, {rate:.0} frames/s", total.received()))?;
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
    for (what, ns) in [
        ("delay, least", all.latency.min_ns()),
        ("delay, median", all.latency.percentile_ns(0.5)),
        ("delay, 99.9 %", all.latency.percentile_ns(0.999)),
        ("delay, most", all.latency.max_ns()),
        ("its variation, PDV", all.pdv_ns()),
        ("its variation, IPDV 99.9 %", all.ipdv.percentile_ns(0.999)),
    ] {
        if let Some(ns) = ns {
            output::print_line(format_args!("{what:<34} {:>12.1} us", ns as f64 / 1e3))?;
        }
    }
    if all.before_sent > 0 {
        let what = "frames came before they were sent: the clocks of the two ends do not agree";
        output::print_line(format_args!("{} {what}", all.before_sent))?;
    }
    Ok(ExitCode::SUCCESS)
}
