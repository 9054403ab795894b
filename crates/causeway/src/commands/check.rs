//! `causeway check`.

use super::{fail, source};
use crate::cli::CheckArgs;
use crate::load::{self, Style};
use crate::output;
use anyhow::Result;
use causeway_engine::{Library, Options, Plan, Router};
use causeway_fastpath::{Known, split};
use std::process::ExitCode;

/// Checks a configuration: its text, its graph, and the arguments of every element. Devices are not opened.
pub fn check(args: &CheckArgs) -> Result<ExitCode> {
    let library = causeway_elements::library();
    if let Err(text) = load::set_patterns(&args.patterns, &library) {
        return Ok(fail(&text));
    }
    let loaded = match load::load(&source(&args.source), &library, &args.define, Style::Human) {
        Ok(loaded) => loaded,
        Err(text) => return Ok(fail(&text)),
    };
    if let Err(e) = Router::check(&library, &loaded.plan, &Options::default()) {
        return Ok(fail(&loaded.explain(&e)));
    }
    if args.flat {
        output::print(loaded.flat())?;
    }
    if args.explain {
        let optimised = causeway_elements::optimise(&loaded.plan);
        output::print(optimised.explanation)?;
        let fused = Router::check(&library, &optimised.plan, &Options::default());
        for line in fused.unwrap_or_default() {
            output::print_line(line)?;
        }
        output::print(driver_part(&library, &loaded.plan))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Which part of the graph could run in the driver behind each element that packets come in by, and where it is cut.
/// Tables are not shared with the driver yet.
fn driver_part(library: &Library, plan: &Plan) -> String {
    let Ok(programs) = Router::lowered(library, plan, &Options::default()) else { return String::new() };
    let is = |element: usize, class: &str| plan.elements[element].class == class;
    let devices: Vec<usize> = (0..plan.elements.len()).filter(|&i| is(i, "ToDevice")).collect();
    // A queue in front of a device is what the driver needs none of.
    let behind = |element: usize| match plan.next(element, 0) {
        Some((next, _)) if is(element, "Queue") => next,
        _ => element,
    };
    let port = |element: usize| devices.iter().position(|&device| device == behind(element));
    let known = Known { programs: &programs, port: &port, has_tables: &|_| false };
    let starts = (0..plan.elements.len()).filter(|&i| is(i, "FromDevice"));
    starts.map(|start| split(plan, start, &known).explain(plan)).collect()
}
