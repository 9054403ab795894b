//! `causeway graph`: the graph as a picture, of a configuration or of a running router with what passes its edges.

pub(super) mod dot;
mod layered;
pub(super) mod picture;
mod rates;
pub(super) mod svg;
mod tree;

use super::{fail, source};
use crate::cli::{GraphArgs, GraphFormat};
use crate::control::Client;
use crate::driver::part;
use crate::load::{self, Source, Style};
use crate::output;
use anyhow::{Context, Result};
use causeway_engine::{End, Plan, PlanElement};
use picture::Picture;
use rates::Rates;
use std::process::ExitCode;

/// Draws the graph.
pub fn graph(args: &GraphArgs) -> Result<ExitCode> {
    let mut client = match args.live {
        Some(_) => Some(Client::connect(args.socket.socket.as_deref())?),
        None => None,
    };
    let source = match &mut client {
        Some(client) => Source::Text("flatconfig", client.read("flatconfig", "")?),
        None => source(&args.source),
    };
    let library = causeway_elements::library();
    let loaded = match load::load(&source, &library, &args.define, Style::Human) {
        Ok(loaded) => loaded,
        Err(why) => return Ok(fail(why)),
    };
    let rates = match client.as_mut().zip(args.live) {
        Some((client, time)) => Some(Rates::measure(client, &loaded.plan, time)?),
        None => None,
    };
    let in_driver = if args.driver { part::in_driver(&library, &loaded.plan) } else { Default::default() };
    let text = match args.format {
        GraphFormat::Dot => dot::dot(&loaded.plan, rates.as_ref(), &in_driver),
        GraphFormat::Svg => svg::svg(&Picture::new(&loaded.plan), rates.as_ref(), &in_driver),
    };
    match &args.output {
        Some(file) => {
            std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?
        }
        None => output::print(text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn is_pulled(plan: &Plan, (element, port): End) -> bool {
    plan.elements[element].pulled_inputs.get(port) == Some(&true)
}

/// As in a configuration, without names that nobody gave.
fn label(PlanElement { name, class, .. }: &PlanElement) -> String {
    let own = name.rsplit('/').next().unwrap_or(name);
    if own.starts_with(&format!("{class}@")) { class.clone() } else { format!("{own} :: {class}") }
}
