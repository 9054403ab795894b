//! `causeway graph`: the graph as a picture.
//!
//! Elements are laid out in layers: each one below those that feed it. That is enough to read a router by, and needs
//! no layout library; `--format dot` is for those who want Graphviz to do better.

use super::{fail, source};
use crate::cli::{GraphArgs, GraphFormat};
use crate::load::{self, Style};
use crate::output;
use anyhow::{Context, Result};
use causeway_engine::Plan;
use std::process::ExitCode;

const CHAR_WIDTH: usize = 7;
const BOX_HEIGHT: usize = 40;
const LAYER_HEIGHT: usize = 90;
const GAP: usize = 30;

/// Draws the graph.
pub fn graph(args: &GraphArgs) -> Result<ExitCode> {
    let library = causeway_elements::library();
    let loaded = match load::load(&source(&args.source), &library, &args.define, Style::Human) {
        Ok(loaded) => loaded,
        Err(text) => return Ok(fail(&text)),
    };
    let text = match args.format {
        GraphFormat::Dot => dot(&loaded.plan),
        GraphFormat::Svg => svg(&loaded.plan),
    };
    match &args.output {
        Some(file) => {
            std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?
        }
        None => output::print(text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn is_pulled(plan: &Plan, (element, port): (usize, usize)) -> bool {
    plan.elements[element].pulled_inputs.get(port) == Some(&true)
}

fn dot(plan: &Plan) -> String {
    let quote = |s: &str| format!("\"{}\"", s.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = String::from("digraph router {\n  node [shape=box, fontname=\"monospace\"];\n");
    for (i, e) in plan.elements.iter().enumerate() {
        text += &format!("  e{i} [label={}];\n", quote(&label(&e.name, &e.class)));
    }
    for &(from, to) in &plan.edges {
        let style = if is_pulled(plan, to) { "dashed" } else { "solid" };
        text += &format!(
            "  e{} -> e{} [style={style}, taillabel={}, headlabel={}];\n",
            from.0,
            to.0,
            quote(&from.1.to_string()),
            quote(&to.1.to_string())
        );
    }
    text + "}\n"
}

fn label(name: &str, class: &str) -> String {
    if name.starts_with(&format!("{class}@")) { class.to_owned() } else { format!("{name} :: {class}") }
}

/// The layer of each element: one below its lowest feeder, not counting edges that close a loop.
fn layers(plan: &Plan) -> Vec<usize> {
    let mut layer = vec![0; plan.elements.len()];
    // As many rounds as a path without loops can be long; edges of loops stop moving things then.
    for _ in 0..plan.elements.len().min(200) {
        let mut moved = false;
        for &((from, _), (to, _)) in &plan.edges {
            if from != to
                && layer[to] <= layer[from]
                && layer[from] + 1 < plan.elements.len()
                && !feeds(plan, to, from)
            {
                layer[to] = layer[from] + 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    layer
}

/// Whether packets can get from `a` to `b`.
fn feeds(plan: &Plan, a: usize, b: usize) -> bool {
    let mut seen = vec![false; plan.elements.len()];
    let mut todo = vec![a];
    while let Some(at) = todo.pop() {
        if at == b {
            return true;
        }
        if !std::mem::replace(&mut seen[at], true) {
            todo.extend(plan.edges.iter().filter(|(from, _)| from.0 == at).map(|(_, to)| to.0));
        }
    }
    false
}

fn svg(plan: &Plan) -> String {
    let layer = layers(plan);
    let labels: Vec<String> = plan.elements.iter().map(|e| label(&e.name, &e.class)).collect();
    let width = |i: usize| labels[i].chars().count() * CHAR_WIDTH + 20;
    let mut right = vec![GAP; layer.iter().max().map_or(0, |m| m + 1)];
    let mut place = Vec::new();
    for (i, &l) in layer.iter().enumerate() {
        place.push((right[l], GAP + l * LAYER_HEIGHT));
        right[l] += width(i) + GAP;
    }
    let (w, h) = (right.iter().max().copied().unwrap_or(GAP), GAP * 2 + right.len() * LAYER_HEIGHT);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"monospace\" font-size=\"11\">\n\
         <defs><marker id=\"a\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto-start-reverse\"><path d=\"M0 0L10 5L0 10z\"/></marker></defs>\n\
         <rect width=\"{w}\" height=\"{h}\" fill=\"white\"/>\n"
    );
    for &(from, to) in &plan.edges {
        let at = |(e, port): (usize, usize), ports: usize| place[e].0 + width(e) * (port + 1) / (ports + 1);
        let x1 = at(from, plan.elements[from.0].pulled_outputs.len());
        let x2 = at(to, plan.elements[to.0].pulled_inputs.len());
        let (y1, y2) = (place[from.0].1 + BOX_HEIGHT, place[to.0].1);
        let dash = if is_pulled(plan, to) { " stroke-dasharray=\"5 3\"" } else { "" };
        let (c1, c2) = (y1 + GAP, y2.saturating_sub(GAP));
        text += &format!(
            "<path d=\"M{x1} {y1}C{x1} {c1} {x2} {c2} {x2} {y2}\" fill=\"none\" stroke=\"#456\"{dash} \
             marker-end=\"url(#a)\"/>\n"
        );
    }
    for (i, &(x, y)) in place.iter().enumerate() {
        let config: String = plan.elements[i].config.split_whitespace().collect::<Vec<_>>().join(" ");
        text += &format!(
            "<g><title>{}({})</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{BOX_HEIGHT}\" rx=\"4\" \
             fill=\"#eef4fa\" stroke=\"#456\"/><text x=\"{}\" y=\"{}\">{}</text></g>\n",
            escape(&labels[i]),
            escape(&config),
            width(i),
            x + 10,
            y + BOX_HEIGHT / 2 + 4,
            escape(&labels[i])
        );
    }
    text + "</svg>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
