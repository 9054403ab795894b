//! `causeway check`.

use super::{fail, source};
use crate::cli::CheckArgs;
use crate::driver::part;
use crate::load::{self, Style};
use crate::output;
use anyhow::Result;
use causeway_engine::{Options, Router};
use std::process::ExitCode;

/// Checks a configuration: its text, its graph, and the arguments of every element. Devices are not opened.
pub fn check(args: &CheckArgs) -> Result<ExitCode> {
    let library = causeway_elements::library();
    if let Err(why) = load::set_patterns(&args.patterns, &library) {
        return Ok(fail(why));
    }
    let loaded = match load::load(&source(&args.source), &library, &args.define, Style::Human) {
        Ok(loaded) => loaded,
        Err(why) => return Ok(fail(why)),
    };
    if let Err(e) = Router::check(&library, &loaded.plan, &Options::default()) {
        return Ok(fail(loaded.explain(&e)));
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
        output::print(part::explain(&library, &loaded.plan))?;
    }
    Ok(ExitCode::SUCCESS)
}
