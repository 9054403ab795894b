//! `causeway xform`, click-xform(1), and the patterns that `run` and `check` take.

use super::{AnyClass, fail, read, source, write};
use crate::cli::XformArgs;
use crate::explained::Explained;
use crate::load::{self, Source};
use crate::logger::answer;
use anyhow::Result;
use causeway_lang::render::{self, Quotes};
use causeway_lang::transform::Patterns;
use std::path::PathBuf;
use std::process::ExitCode;

/// Replaces patterns of elements by others.
pub fn xform(args: &XformArgs) -> Result<ExitCode> {
    match transformed(args) {
        Ok(text) => write(args.output.as_deref(), text.as_bytes()),
        Err(why) => Ok(fail(why)),
    }
}

fn transformed(args: &XformArgs) -> Result<String, Explained> {
    let is_definition = |operand: &&String| operand.contains('=');
    let (definitions, files): (Vec<&String>, Vec<&String>) = args.operands.iter().partition(is_definition);
    // With an option for the configuration all files are patterns.
    let given = args.file.is_some() || args.expression.is_some();
    let (own, rest) = files.split_at(usize::from(!given).min(files.len()));
    let operands: Vec<String> = definitions.into_iter().chain(own.iter().copied()).cloned().collect();
    let (source, params) = source(&operands, args.file.as_deref(), args.expression.as_deref())?;
    let flat = read(&source, &params, false)?;
    let mut patterns = Patterns::default();
    let files = args.patterns.iter().cloned().chain(rest.iter().map(PathBuf::from));
    let mut attempted = false;
    for file in files {
        attempted = true;
        let source = Source::File(file);
        let bytes = load::read(&source)?;
        let classes = AnyClass(causeway_elements::library());
        let read = patterns.read(&source.name(), &bytes, &load::find_library, &classes);
        read.map_err(|failed| render::plain(&failed.diagnostics, &failed.sources, Quotes::Ascii))?;
    }
    if !attempted {
        answer("warning: no patterns read\n");
    }
    let patterns = if args.reverse { patterns.reversed() } else { patterns };
    let rewritten = patterns.apply(&flat.graph);
    if rewritten.endless {
        return Err(Explained::from(format!("{}: the patterns come to no end\n", source.name())));
    }
    Ok(flat.text(&rewritten.graph))
}
