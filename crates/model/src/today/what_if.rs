//! What a plan does, what of it goes first, and what one more of anything buys.

use super::graph::report;
use super::machine::{Copies, Plan};
use super::router::{Drop, Outcome, run};
use crate::figures::write;
use crate::pcie::GENERATION_MOST;
use crate::run::parallel;
use crate::series::modelled;
use anyhow::Result;
use causeway_results::{Document, Run};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// What a resource is used from which on it counts as saturated. Reads under way are looked at now and then, and a read that
/// ends lets the next begin a little later.
const SATURATED: f64 = 0.95;
/// Losses below this part of what is offered are none.
const LOST: f64 = 0.001;
/// Parts of what is forwarded at which delays are looked at.
const LOADS: [f64; 3] = [0.1, 0.5, 0.9];

/// A plan that differs by one thing.
pub struct Neighbour {
    /// By what.
    pub what: String,
    /// The plan.
    pub plan: Plan,
}

/// What was found.
pub struct Answer {
    /// As it is planned.
    pub planned: Outcome,
    /// At parts of what it forwards: the part, and what came of it.
    pub loads: Vec<(f64, Outcome)>,
    /// With one thing changed.
    pub neighbours: Vec<(String, Outcome)>,
}

/// Plans that differ by one thing: a core, a generation of the slots, a card, a channel of memory, the mechanism if that is what
/// the cores run.
pub fn neighbours(plan: &Plan) -> Vec<Neighbour> {
    let mut all = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        all.push(Neighbour { what, plan });
    };
    add("one more core".to_owned(), &|plan| plan.processor.cores.value += 1);
    if plan.slot.values().all(|slot| slot.generation.value < GENERATION_MOST as u64) {
        add("slots of the next generation".to_owned(), &|plan| {
            plan.slot.values_mut().for_each(|slot| slot.generation.value += 1);
        });
    }
    // A graph has the ports that it names.
    if plan.graph.is_none() {
        add("one more card with one port".to_owned(), &one_more_card);
    }
    add("one more channel of memory".to_owned(), &|plan| plan.memory.channels.value += 1);
    for name in plan.software.mechanisms.keys() {
        // What a graph takes is not the mechanism's.
        if plan.graph.is_none() && name != plan.software.mechanism.get_ref() {
            add(format!("mechanism {name}"), &|plan| {
                plan.software.mechanism = Spanned::new(0..0, name.clone());
            });
        }
    }
    all
}

/// A port as the first ones, in a slot of its own of the same kind.
fn one_more_card(plan: &mut Plan) {
    let Some(first) = plan.ports.first().cloned() else { return };
    let name = format!("{}, one more", first.slot.get_ref());
    let slot = plan.slot[first.slot.get_ref()].clone();
    plan.slot.insert(name.clone(), slot);
    plan.ports.push(super::machine::Ports {
        slot: Spanned::new(0..0, name),
        count: Spanned::new(0..0, 1),
        speed: first.speed,
    });
}

/// Runs a plan and its neighbours, with a frame that is followed in each, as many at a time as there are processors. Same seed, same numbers.
///
/// # Errors
///
/// If the plan's lengths of frames are not possible.
pub fn ask(plan: &Plan, seed: u64, followed: Option<u64>) -> Result<Answer> {
    let load = plan.traffic.load.value as f64 / 1e3;
    let planned = run(plan, load, seed, followed)?;
    let carried = planned.rate_fps() / planned.offered_fps.max(1.0) * load;
    let around = neighbours(plan);
    let mut jobs: Vec<(&Plan, f64)> = LOADS.map(|part| (plan, part * carried)).into();
    jobs.extend(around.iter().map(|neighbour| (&neighbour.plan, load)));
    let outcomes: Result<Vec<Outcome>> =
        parallel(&jobs, |(plan, load)| run(plan, *load, seed, followed)).into_iter().collect();
    let mut outcomes = outcomes?.into_iter();
    let loads = LOADS.into_iter().zip(outcomes.by_ref()).collect();
    let neighbours = around.into_iter().map(|neighbour| neighbour.what).zip(outcomes).collect();
    Ok(Answer { planned, loads, neighbours })
}

/// What goes first, in words.
pub fn first(outcome: &Outcome) -> String {
    let lost: f64 = outcome.drops_fps.iter().sum();
    let most = outcome.first();
    if lost <= LOST * outcome.offered_fps {
        return format!("nothing: all is forwarded; most used is {} ({:.0} %)", most.name, most.part * 100.0);
    }
    let most_lost = Drop::ALL
        .into_iter()
        .max_by(|a, b| outcome.drops_fps[*a as usize].total_cmp(&outcome.drops_fps[*b as usize]));
    let in_graph = outcome.dropped_by.first().filter(|_| most_lost == Some(Drop::Graph));
    let place = in_graph.map_or_else(
        || most_lost.map_or("", Drop::name).to_owned(),
        |(what, _)| format!("in the graph, at {what}"),
    );
    let how = if most.part >= SATURATED { "saturated" } else { "most used" };
    format!("{}, {how} ({:.0} %); losses {place}", most.name, most.part * 100.0)
}

/// What the cores run.
fn runs(plan: &Plan) -> String {
    let mechanism = plan.software.mechanism.get_ref();
    match &plan.graph {
        Some(graph) => format!("{} on {}, {mechanism}", graph.name, graph.devices.join(", ")),
        None => mechanism.clone(),
    }
}

/// For people.
pub fn lines(plan: &Plan, answer: &Answer) -> Vec<String> {
    let planned = &answer.planned;
    let rate = |outcome: &Outcome| {
        format!("{:>8.2} Mpps {:>7.1} Gbit/s", outcome.rate_fps() / 1e6, outcome.wire_bps / 1e9)
    };
    let m = plan.mechanism();
    let copies = match m.copies {
        Copies::None => "no copies",
        Copies::In => "a copy",
        Copies::InAndOut => "two copies",
    };
    let mut lines = vec![
        format!("{}, modelled: {}", plan.name, plan.about),
        format!(
            "  {} ports, {} cores, {} ({copies}), {} routes, {} flows a port",
            plan.port_count(),
            plan.processor.cores.value,
            runs(plan),
            plan.traffic.routes.value,
            plan.traffic.flows.value
        ),
        format!("  {:<32} {:>8.2} Mpps", "offered", planned.offered_fps / 1e6),
        format!("  {:<32} {}", "forwarded", rate(planned)),
        format!("  {:<32} {}", "what goes first", first(planned)),
    ];
    for one in &planned.resources {
        lines.push(format!("    {:<30} {:>7.1} %", one.name, one.part * 100.0));
    }
    lines.push(format!("    {:<30} {:>7.1} %", "lines found in the cache", planned.found * 100.0));
    lines.extend(report::lines(planned));
    for (part, outcome) in &answer.loads {
        let [median, late] = outcome.delay_ns.map(|ns| ns / 1e3);
        let what = format!("inside at {:.0} % of that", part * 100.0);
        lines.push(format!("  {what:<32} median {median:.1} us, 99 of 100 within {late:.1} us"));
    }
    for (what, outcome) in &answer.neighbours {
        let gain = (outcome.rate_fps() / planned.rate_fps().max(1.0) - 1.0) * 100.0;
        lines.push(format!("  {what:<32} {} {gain:>+6.0} %; then first: {}", rate(outcome), first(outcome)));
    }
    lines
}

/// The way of the frame that was followed, as it is planned and at parts of what it forwards.
pub fn ways(answer: &Answer) -> Vec<String> {
    let planned = ("as planned".to_owned(), &answer.planned);
    let at = |(part, outcome)| (format!("at {:.0} % of what is forwarded", part * 100.0), outcome);
    let loads = answer.loads.iter().map(|(part, outcome)| at((part, outcome)));
    let way = |(place, outcome): (String, &Outcome)| {
        let head = format!("  one packet, {place} (modelled)");
        [head].into_iter().chain(outcome.trace.iter().map(|step| format!("    {step}"))).collect::<Vec<_>>()
    };
    [planned].into_iter().chain(loads).flat_map(way).collect()
}

/// Writes the document into a folder, with a table and a page beside it; says which file it is.
///
/// # Errors
///
/// If it cannot be written.
pub fn keep(folder: &Path, plan: &Plan, answer: &Answer, seed: u64) -> Result<PathBuf> {
    write(folder, &format!("what-if-{}", plan.name), &document(plan, answer, seed))
}

/// What was found, in the common format. Everything in it is modelled.
pub fn document(plan: &Plan, answer: &Answer, seed: u64) -> Document {
    let mut command = Vec::from(
        ["causeway", "model", "what-if", &plan.name, "--seed", &seed.to_string()].map(str::to_owned),
    );
    if let Some(graph) = &plan.graph {
        command.extend(["--graph".to_owned(), graph.name.clone()]);
    }
    let machine = causeway_results::Machine {
        processor: format!("modelled: {}, {}", plan.name, plan.about),
        processors: plan.processor.cores.value as usize,
        kernel: String::new(),
        load_average: String::new(),
    };
    let mut document = Document::new(Run { command, machine, ..Run::default() });
    let along = ["part of what is forwarded", "%"];
    let mut add = |name: String, what, values| document.series.push(modelled(name, what, along, values));
    let rate = ["forwarding rate", "frames/s"];
    add("as planned/forwarding rate".to_owned(), rate, vec![(None, answer.planned.windows_fps.clone())]);
    for (what, outcome) in &answer.neighbours {
        add(format!("{what}/forwarding rate"), rate, vec![(None, outcome.windows_fps.clone())]);
    }
    for one in &answer.planned.resources {
        let used = vec![(None, vec![one.part * 100.0])];
        add(format!("{}/what is used", one.name), ["part", "%"], used);
    }
    for (n, name) in ["median", "99 of 100"].into_iter().enumerate() {
        let at = |(part, outcome): &(f64, Outcome)| (Some(part * 100.0), vec![outcome.delay_ns[n]]);
        add(format!("{name}/time inside"), ["latency", "ns"], answer.loads.iter().map(at).collect());
    }
    document.series.extend(report::series(&answer.planned));
    document
}
