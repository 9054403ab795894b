//! `causeway model`: the papers' figures from a model of their machines, and machines of today.

use super::fail;
use super::lab::{interrupted, progress};
use crate::cli::{CalibrateArgs, CardsArgs, ModelAction, ModelArgs, ScaleOutArgs, WhatIfArgs};
use crate::load::{self, Source, Style};
use crate::output;
use anyhow::{Context, Result, ensure};
use causeway_engine::usable_processors;
use causeway_lab::primitives;
use causeway_lab::run::{Description, Preset, Task};
use causeway_model::calibrate::Calibration;
use causeway_model::cluster::{failure::Offered, network::Rates, report};
use causeway_model::enhanced;
use causeway_model::figures::{self, Figure};
use causeway_model::machine::Machine;
use causeway_model::run::Effort;
use causeway_model::today::graph::{Configuration, costs};
use causeway_model::today::{machine::Plan, what_if as plans};
use causeway_packet::pool;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Frames of each run of many machines.
const FRAMES: u64 = 300_000;
/// Frames that wait for a machine at most: a ring.
const ROOM: usize = 1_024;
/// Frames for packets that graphs hold. Memory is touched only as they are used.
const GRAPH_FRAMES: u32 = 1 << 18;
/// Lengths of frames that this machine is calibrated and held against, and how often each is measured.
const SIZES: [&str; 6] = ["64", "128", "256", "512", "1024", "1518"];
const REPETITIONS: usize = 5;
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
    // Said before the laboratory measures for a quarter of an hour.
    ensure!(
        usable.contains(&args.processor),
        "processor {} is none that this program may run on; --processor names one of {usable:?}",
        args.processor
    );
    let results = match &args.results {
        Some(file) => file.clone(),
        None => measured(&args.out, args.processor)?,
    };
    let calibration = Calibration::read(&results)?;
    let files = calibration.keep(&args.out, &primitives(args.processor)?)?;
    calibration.lines().iter().try_for_each(output::print_line)?;
    let [machine, curves] = files.map(|file| file.display().to_string());
    output::print_line(format_args!("  the machine in {machine}, both curves in {curves}"))?;
    Ok(if calibration.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Has the laboratory measure the kernel's path and Causeway's, which has a processor of its own where there are two; says where
/// the results are.
fn measured(folder: &Path, processor: usize) -> Result<PathBuf> {
    let others: Vec<usize> = usable_processors().into_iter().filter(|&other| other != processor).collect();
    let own = if others.is_empty() { Vec::new() } else { vec![processor] };
    let task = Task {
        devices: ["kernel", "causeway"].map(str::to_owned).into(),
        description: Description {
            tester_processors: others,
            device_processors: own,
            ..Description::default()
        },
        sizes: SIZES.map(str::to_owned).into(),
        preset: Preset::quick(),
        repetitions: REPETITIONS,
        yes: false,
        output: folder.join("model-lab.json"),
    };
    task.run(&interrupted()?, &mut progress)?;
    Ok(task.output)
}

fn kept(file: &Path) -> Result<ExitCode> {
    output::print_line(format_args!("  results in {}", file.display()))?;
    Ok(ExitCode::SUCCESS)
}
