//! `causeway model`: the papers' figures from a model of their machines, and machines of today.

use super::fail;
use super::lab::{interrupted, progress};
use crate::cli::{CalibrateArgs, CardsArgs, ModelAction, ModelArgs, ScaleOutArgs, WhatIfArgs};
use crate::load::{self, Source, Style};
use crate::output;
use anyhow::{Context, Result, ensure};
use causeway_engine::usable_processors;
use causeway_lab::run::{Description, Rounds};
use causeway_model::calibrate::{self, Calibration, How};
use causeway_model::cluster::{failure::Offered, network::Rates, report};
use causeway_model::enhanced;
use causeway_model::figures::{self, Figure};
use causeway_model::machine::Machine;
use causeway_model::run::Effort;
use causeway_model::today::graph::{Configuration, costs};
use causeway_model::today::{machine::Plan, what_if as plans};
use causeway_model::veth::FULL_FPS;
use causeway_packet::pool;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Frames of each run of many machines.
const FRAMES: u64 = 300_000;
/// Frames that wait for a machine at most: a ring.
const ROOM: usize = 1_024;
/// Frames for packets that graphs hold. Memory is touched only as they are used.
const GRAPH_FRAMES: u32 = 1 << 18;
/// Lengths of frames that this machine is calibrated and held against, loads in percent of what a device carries, and how long a
/// trial takes.
const LENGTHS: [u32; 5] = [64, 256, 512, 1_024, 1_518];
const LOADS: [u32; 4] = [20, 40, 60, 80];
const TRIAL: Duration = Duration::from_millis(200);
/// Rates of machines that make sense, millions of frames a second.
const MPPS: std::ops::RangeInclusive<f64> = 0.001..=10_000.0;

/// Does what was asked for.
pub fn model(args: &ModelArgs) -> Result<ExitCode> {
    match &args.action {
        Some(ModelAction::WhatIf(args)) => return what_if(args),
        Some(ModelAction::ScaleOut(args)) => return scale_out(args),
        Some(ModelAction::Calibrate(args)) => return calibrate(args),
        Some(ModelAction::Cards(args)) => return cards(args),
        None => {}
    }
    let figures: Vec<&Figure> = match args.figure.as_deref() {
        None | Some("list") => return list(),
        Some("all") => Figure::all().collect(),
        Some(name) => vec![Figure::find(name)?],
    };
    // Said before the figures are reckoned, which takes a while.
    ensure!(args.out.is_dir(), "{0} is no folder to write into; `mkdir -p {0}` makes it", args.out.display());
    let given = args.machine.as_deref().map(Machine::read).transpose()?;
    for figure in figures {
        let machine = given.clone().map_or_else(|| figure.machine(), Ok)?;
        let found = figure.run(&machine, args.seed, Effort::FULL, args.packet)?;
        let mut lines = figures::lines(figure, &found);
        if args.why {
            lines.extend(figures::why(&found));
        }
        if args.packet.is_some() {
            lines.extend(figures::ways(&found));
        }
        lines.iter().try_for_each(output::print_line)?;
        let file = figures::keep(&args.out, figure, &found, &machine, args.seed)?;
        output::print_line(format_args!("  results in {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<ExitCode> {
    for one in Figure::all() {
        output::print_line(format_args!("{:<8} {}", one.name, one.about))?;
    }
    output::print_line(format_args!("{:<8} {}", "cards", enhanced::ABOUT))?;
    Ok(ExitCode::SUCCESS)
}

fn what_if(args: &WhatIfArgs) -> Result<ExitCode> {
    if args.print {
        let ready = || Plan::ready().collect::<Vec<_>>().join(", ");
        let elements = (args.plan == costs::NAME).then_some(costs::TEXT);
        let text = Plan::text(&args.plan)
            .or(elements)
            .with_context(|| format!("there is no machine '{}'; ready are {}", args.plan, ready()))?;
        output::print(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut plan = Plan::find(&args.plan)?;
    if let Some(file) = &args.graph {
        let library = causeway_elements::library();
        match load::load(&Source::File(file.clone()), &library, &args.define, Style::Human) {
            Ok(loaded) => plan.graph = Some(graph(file, loaded.plan, &plan)?),
            Err(why) => return Ok(fail(why)),
        }
    }
    let answer = plans::ask(&plan, args.seed, args.packet)?;
    plans::lines(&plan, &answer).iter().try_for_each(output::print_line)?;
    if args.packet.is_some() {
        plans::ways(&answer).iter().try_for_each(output::print_line)?;
    }
    kept(&plans::keep(&args.out, &plan, &answer, args.seed)?)
}

/// A graph on a machine, and frames for its packets: neighbours of the machine are modelled at the same time.
fn graph(file: &Path, graph: causeway_engine::Plan, plan: &Plan) -> Result<Arc<Configuration>> {
    // What each port is, of each neighbour of the machine, is no news.
    log::set_max_level(log::LevelFilter::Warn);
    pool::init(pool::Config { frames: GRAPH_FRAMES, ..pool::Config::default() })?;
    Configuration::new(&file.display().to_string(), graph, plan).map(Arc::new)
}

fn cards(args: &CardsArgs) -> Result<ExitCode> {
    let answer = enhanced::ask(args.seed)?;
    enhanced::lines(&answer).iter().try_for_each(output::print_line)?;
    kept(&enhanced::keep(&args.out, &answer, args.seed)?)
}

fn scale_out(args: &ScaleOutArgs) -> Result<ExitCode> {
    for (name, mpps) in [("--node", args.node), ("--front", args.front)] {
        ensure!(MPPS.contains(&mpps), "{name} {mpps}: possible are {} to {} Mpps", MPPS.start(), MPPS.end());
    }
    let rates = Rates { front_fps: args.front * 1e6, node_fps: args.node * 1e6, room: ROOM };
    let offered = Offered { flows: args.flows, ..Offered::LABORATORY };
    let found = report::find(&rates, offered, FRAMES, args.seed);
    report::lines(&found).iter().try_for_each(output::print_line)?;
    kept(&report::keep(&args.out, &found, args.seed)?)
}

fn calibrate(args: &CalibrateArgs) -> Result<ExitCode> {
    let usable = usable_processors();
    // Said before the laboratory measures for some minutes.
    ensure!(
        usable.contains(&args.processor),
        "processor {} is none that this program may run on; --processor names one of {usable:?}",
        args.processor
    );
    let machine = args.machine.as_deref().map(text).transpose()?;
    let results = match &args.results {
        Some(file) => file.clone(),
        None => measured(args)?,
    };
    let document = calibrate::read(&results)?;
    let how = How { seed: args.seed, followed: args.packet };
    let calibration = match &machine {
        Some((name, text)) => Calibration::by_file(&document, text, name, how)?,
        None => Calibration::of(&document, how)?,
    };
    let files = calibration.keep(&args.out)?;
    let mut lines = calibration.lines();
    if args.why {
        lines.extend(calibration.why());
    }
    if args.packet.is_some() {
        lines.extend(calibration.ways());
    }
    lines.iter().try_for_each(output::print_line)?;
    let [machine, curves] = files.map(|file| file.display().to_string());
    output::print_line(format_args!("  the machine in {machine}, both curves in {curves}"))?;
    Ok(if calibration.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The name of a file, and its text.
fn text(file: &Path) -> Result<(String, String)> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    Ok((name, text))
}

/// Has the laboratory measure the kernel's path and Causeway's in rounds, with a processor of its own for the device where there
/// are two; says where the results are.
fn measured(args: &CalibrateArgs) -> Result<PathBuf> {
    let usable = usable_processors();
    ensure!(usable.len() > 1, "tester and device need a processor each, and this program may run on one");
    // One, as the simulated tester has: on several it would send and receive on threads of their own.
    let other = usable.into_iter().filter(|&other| other != args.processor).take(1).collect();
    let rounds = Rounds {
        devices: ["kernel", "causeway"].map(str::to_owned).into(),
        description: Description {
            tester_processors: other,
            device_processors: vec![args.processor],
            highest_fps: FULL_FPS,
            ..Description::default()
        },
        lengths: LENGTHS.into(),
        parts: LOADS.into(),
        rounds: usize::from(args.repetitions),
        trial: TRIAL,
        output: args.out.join("model-lab.json"),
    };
    rounds.run(&interrupted()?, &mut progress)?;
    Ok(rounds.output)
}

fn kept(file: &Path) -> Result<ExitCode> {
    output::print_line(format_args!("  results in {}", file.display()))?;
    Ok(ExitCode::SUCCESS)
}
