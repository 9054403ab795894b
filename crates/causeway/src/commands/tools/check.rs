//! click-check(1): what `causeway check` does, in Click's words.

use super::{fail, source, write};
use crate::cli::ClickCheckArgs;
use crate::load::{self, Style};
use crate::logger::answer;
use anyhow::Result;
use causeway_engine::{Options, Router};
use causeway_lang::print;
use std::process::ExitCode;

/// Checks a configuration, its elements' arguments too.
pub fn check(args: &ClickCheckArgs) -> Result<ExitCode> {
    let common = &args.common;
    if let Some(path) = &common.clickpath {
        load::set_library_path(path.clone());
    }
    let given = source(&common.operands, common.file.as_deref(), common.expression.as_deref());
    let (source, params) = match given {
        Ok(given) => given,
        Err(why) => return Ok(fail(why)),
    };
    let kernel = [(args.linuxmodule, "linuxmodule"), (args.bsdmodule, "bsdmodule")];
    if let Some((_, driver)) = kernel.iter().find(|(asked, _)| *asked) {
        return Ok(fail(format!("{}: configuration incompatible with {driver} driver\n", source.name())));
    }
    let library = causeway_elements::library();
    let loaded = match load::load(&source, &library, &params, Style::Click) {
        Ok(loaded) => loaded,
        Err(why) => return Ok(fail(why)),
    };
    if let Err(e) = Router::check(&library, &loaded.plan, &Options::default()) {
        return Ok(fail(loaded.explain(&e)));
    }
    if args.filter || common.output.is_some() {
        let text = print::graph_with_lines(&loaded.compiled.graph, &loaded.compiled.sources, &[]);
        return write(common.output.as_deref(), text.as_bytes());
    }
    if !args.quiet {
        answer(&format!("{}: configuration OK in userlevel driver\n", source.name()));
    }
    Ok(ExitCode::SUCCESS)
}
