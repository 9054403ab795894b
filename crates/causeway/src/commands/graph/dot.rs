//! The graph for Graphviz: clusters for compound elements.

use super::rates::{self, Rates};
use super::tree::Tree;
use super::{is_pulled, label};
use causeway_engine::Plan;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Writes the graph down; elements `in_driver` are filled.
pub fn dot(plan: &Plan, rates: Option<&Rates>, in_driver: &BTreeSet<usize>) -> String {
    let mut text = String::from("digraph router {\n  node [shape=box, fontname=\"monospace\"];\n");
    cluster(&mut text, (plan, in_driver), &Tree::new(plan), 0, 1);
    for (edge, &(from, to)) in plan.edges.iter().enumerate() {
        let style = if is_pulled(plan, to) { "style=dashed, arrowhead=empty" } else { "style=solid" };
        let rate = rates.map(|rates| rates.of_edge(edge)).filter(|&rate| rate > 0.0);
        let rate = rate.map_or_else(String::new, |rate| format!(", label={}", quote(&rates::text(rate))));
        let _ = writeln!(
            text,
            "  e{} -> e{} [{style}, taillabel=\"{}\", headlabel=\"{}\"{rate}];",
            from.0, to.0, from.1, to.1
        );
    }
    text + "}\n"
}

/// The elements of a group, and its members as clusters.
fn cluster(
    text: &mut String,
    (plan, in_driver): (&Plan, &BTreeSet<usize>),
    tree: &Tree,
    group: usize,
    depth: usize,
) {
    let indent = "  ".repeat(depth);
    for &element in &tree.groups[group].elements {
        let style = if in_driver.contains(&element) { ", style=filled, fillcolor=\"#d5f0e3\"" } else { "" };
        let _ =
            writeln!(text, "{indent}e{element} [label={}{style}];", quote(&label(&plan.elements[element])));
    }
    for &member in &tree.groups[group].groups {
        let _ = writeln!(text, "{indent}subgraph cluster_{member} {{");
        let _ = writeln!(text, "{indent}  label={};", quote(&tree.groups[member].name));
        cluster(text, (plan, in_driver), tree, member, depth + 1);
        let _ = writeln!(text, "{indent}}}");
    }
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
