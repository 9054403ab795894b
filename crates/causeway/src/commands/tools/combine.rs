//! `causeway combine` and `causeway uncombine`, click-combine(1) and click-uncombine(1).

use super::{Flat, fail, from_name, read_bytes, write};
use crate::cli::{CombineArgs, UncombineArgs};
use crate::explained::Explained;
use crate::load::{self, Source};
use crate::logger::answer;
use anyhow::Result;
use causeway_lang::transform::{self, Part};
use causeway_lang::{archive, print};
use std::process::ExitCode;

/// The member of the archive that lists the routers in it.
const MAP: &str = "componentmap";

/// Joins routers at their devices.
pub fn combine(args: &CombineArgs) -> Result<ExitCode> {
    match combined(args) {
        Ok(bytes) => write(args.output.as_deref(), &bytes),
        Err(why) => Ok(fail(why)),
    }
}

/// Routers in order: those of options before the operands. Names of options are for those that have none.
fn combined(args: &CombineArgs) -> Result<Vec<u8>, Explained> {
    let mut routers: Vec<(Option<String>, Source)> = vec![];
    routers.extend(args.file.iter().map(|f| (None, from_name(f))));
    routers.extend(args.expression.iter().map(|e| (None, Source::Text("config", e.clone()))));
    let mut links = args.link.clone();
    for operand in &args.operands {
        let name_ends = operand.find([':', '=']);
        match (name_ends, operand.find('.')) {
            (Some(end), Some(dot)) if dot < end && operand[end..].starts_with('=') => {
                links.push(operand.clone())
            }
            (Some(end), _) => {
                routers.push((Some(operand[..end].to_owned()), from_name(&operand[end + 1..])));
            }
            (None, _) => routers.push((None, from_name(operand))),
        }
    }
    let mut names = args.name.iter();
    let mut parts = vec![];
    let mut map = String::new();
    for (n, (name, source)) in routers.into_iter().enumerate() {
        let name = name.or_else(|| names.next().cloned());
        let name =
            name.ok_or_else(|| format!("router {} has no name: write NAME={}\n", n + 1, source.name()))?;
        let bytes = load::read(&source)?;
        let Flat { graph, .. } = read_bytes(&source.name(), &bytes, &[], true)?;
        map += &format!("{name}\n");
        let inner = components(&bytes).unwrap_or_default();
        inner.iter().for_each(|c| map += &format!("{name}/{c}\n"));
        parts.push(Part { name, graph });
    }
    let combined = transform::combine(&parts, &links)
        .map_err(|wrong| wrong.iter().map(|text| format!("click-combine: {text}\n")).collect::<String>())?;
    combined.warnings.iter().for_each(|text| answer(&format!("warning: {text}\n")));
    let text = print::graph(&combined.graph);
    if args.config {
        return Ok(text.into_bytes());
    }
    Ok(archive::write(&[("config".to_owned(), text.as_bytes()), (MAP.to_owned(), map.as_bytes())]))
}

/// The routers in an archive that combine wrote.
fn components(bytes: &[u8]) -> Option<Vec<String>> {
    let members = archive::members(bytes)?.ok()?;
    let (_, map) = members.into_iter().find(|(name, _)| name == MAP)?;
    Some(String::from_utf8_lossy(map).split_whitespace().map(str::to_owned).collect())
}

/// Takes a router out of joined ones.
pub fn uncombine(args: &UncombineArgs) -> Result<ExitCode> {
    match uncombined(args) {
        Ok(bytes) => write(args.output.as_deref(), &bytes),
        Err(why) => Ok(fail(why)),
    }
}

fn uncombined(args: &UncombineArgs) -> Result<Vec<u8>, Explained> {
    let mut operands = args.operands.iter();
    let file = args.file.as_ref().or_else(|| operands.next());
    let component = args.name.as_ref().or_else(|| operands.next());
    if operands.next().is_some() {
        return Err(Explained::from("click-uncombine: component name specified twice\n"));
    }
    let source = file.map_or(Source::Stdin, |f| from_name(f));
    let bytes = load::read(&source)?;
    let name = source.name();
    let mut known =
        components(&bytes).ok_or_else(|| format!("{name}: not created by 'click-combine' (no '{MAP}')\n"))?;
    let component = component.ok_or("click-uncombine: no component specified\n")?;
    let Flat { mut graph, .. } = read_bytes(&name, &bytes, &[], true)?;
    let mut walked = String::new();
    for step in component.split('/') {
        if !known.iter().any(|c| c == step) {
            return Err(Explained::from(format!("{name}: no '{walked}{step}' component\n")));
        }
        graph = transform::uncombine(&graph, step)
            .map_err(|wrong| wrong.iter().map(|text| format!("{text}\n")).collect::<String>())?;
        let prefix = format!("{step}/");
        known = known.iter().filter_map(|c| c.strip_prefix(&prefix).map(str::to_owned)).collect();
        walked += &prefix;
    }
    let text = print::graph(&graph);
    if known.is_empty() {
        return Ok(text.into_bytes());
    }
    let map = known.join("\n") + "\n";
    Ok(archive::write(&[("config".to_owned(), text.as_bytes()), (MAP.to_owned(), map.as_bytes())]))
}
