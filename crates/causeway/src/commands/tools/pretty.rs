//! `causeway pretty`, click-pretty(1): a configuration as one page of HTML that needs nothing else.

use super::{AnyClass, Flat, say, transform};
use crate::cli::PrettyArgs;
use crate::commands::elements;
use crate::commands::graph::picture::Picture;
use crate::commands::graph::svg::escape;
use crate::commands::graph::{dot, svg};
use crate::load::Source;
use anyhow::Result;
use causeway_engine::{Library, Plan};
use causeway_lang::{Compiled, Diagnostics, Sources, check};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::ExitCode;

const STYLE: &str = "
  :root { color-scheme: light dark; --ink: #1c2733; --dim: #51616f; --line: #c9d3dc; --sheet: #fff; --link: #1a5fb4 }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #dfe6ec; --dim: #9fb0be; --line: #3a4752; --sheet: #14191e; --link: #8ab8f0 } }
  body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--sheet); margin: 2em auto;
    max-width: 70em; padding: 0 1em }
  a { color: var(--link) }
  pre, code { font: 13px/1.4 'DejaVu Sans Mono', Menlo, Consolas, monospace }
  pre { border: 1px solid var(--line); border-radius: 4px; padding: .8em; overflow-x: auto }
  .graph { overflow-x: auto }
  table { border-collapse: collapse; width: 100% }
  td, th { text-align: left; vertical-align: top; padding: .3em .8em .3em 0; border-bottom: 1px solid var(--line) }
  .dim { color: var(--dim) }
  :target { outline: 2px solid var(--link); outline-offset: 3px }";

/// Shows a configuration as a page.
pub fn pretty(args: &PrettyArgs) -> Result<ExitCode> {
    transform(&args.common, true, |source, flat| {
        let library = causeway_elements::library();
        let checked = check(&flat.graph, &AnyClass(library.clone()));
        // A page of a configuration that is not right is better than none.
        if let Err(wrong) = say(&checked.diagnostics, &flat.sources) {
            crate::logger::answer(&wrong.to_string());
        }
        let (graph, sources) = (flat.graph.clone(), flat.sources.clone());
        let plan = Plan::new(&Compiled { sources, graph, checked, warnings: Diagnostics::new() });
        if args.dot {
            return Ok(dot::dot(&plan, None, &Default::default()));
        }
        Ok(Page { plan: &plan, library: &library, docs: args.class_docs.as_deref() }.html(source, flat))
    })
}

struct Page<'a> {
    plan: &'a Plan,
    library: &'a Library,
    /// Where classes are described, with `%s` for the class.
    docs: Option<&'a str>,
}

impl Page<'_> {
    fn html(&self, source: &Source, flat: &Flat) -> String {
        let title = escape(&source.name());
        let graph = svg::linked(&Picture::new(self.plan), &|i| format!("#e{i}"));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>{STYLE}\n</style>\n</head>\n<body>\n<h1>{title}</h1>\n<div class=\"graph\">\n{graph}</div>\n\
             <h2>Configuration</h2>\n<pre>{}</pre>\n<h2>Elements</h2>\n{}\n{}</body>\n</html>\n",
            escape(first_text(&flat.sources)),
            self.elements(),
            self.classes()
        )
    }

    fn class_link(&self, class: &str) -> String {
        let href = match self.docs {
            Some(url) if url.contains("%s") => url.replace("%s", class),
            Some(url) => format!("{url}{class}"),
            None if self.library.get(class).is_some() => format!("#class-{class}"),
            None => return escape(class),
        };
        format!("<a href=\"{}\">{}</a>", escape(&href), escape(class))
    }

    fn elements(&self) -> String {
        let mut text =
            "<table>\n<tr><th>Element</th><th>Class</th><th>Configuration</th><th>Connections</th></tr>\n"
                .to_owned();
        for (i, e) in self.plan.elements.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "<tr id=\"e{i}\"><td><b>{}</b><br><span class=\"dim\">{}</span></td><td>{}</td><td><code>{}</code></td>\
                 <td>{}</td></tr>",
                escape(&e.name),
                escape(&e.landmark),
                self.class_link(&e.class),
                escape(&e.config),
                self.connections(i)
            );
        }
        text + "</table>\n"
    }

    /// Where an element's ports lead, a line each.
    fn connections(&self, element: usize) -> String {
        let name = |i: usize| format!("<a href=\"#e{i}\">{}</a>", escape(&self.plan.elements[i].name));
        let kind = |pulled: &[bool], port: usize| match pulled.get(port) {
            Some(true) => "pull",
            _ => "push",
        };
        let e = &self.plan.elements[element];
        let inputs = self.plan.edges.iter().filter(|(_, to)| to.0 == element).map(|&(from, to)| {
            (
                0,
                to.1,
                format!("input {} ({}) ← {} [{}]", to.1, kind(&e.pulled_inputs, to.1), name(from.0), from.1),
            )
        });
        let outputs = self.plan.edges.iter().filter(|(from, _)| from.0 == element).map(|&(from, to)| {
            (
                1,
                from.1,
                format!(
                    "output {} ({}) → [{}] {}",
                    from.1,
                    kind(&e.pulled_outputs, from.1),
                    to.1,
                    name(to.0)
                ),
            )
        });
        let mut lines: Vec<(usize, usize, String)> = inputs.chain(outputs).collect();
        lines.sort();
        lines.into_iter().map(|(_, _, line)| line).collect::<Vec<_>>().join("<br>")
    }

    /// What the classes do, if the page is to say that itself.
    fn classes(&self) -> String {
        let classes: BTreeSet<&str> = self.plan.elements.iter().map(|e| e.class.as_str()).collect();
        let known = classes.into_iter().filter_map(|class| Some((class, self.library.get(class)?)));
        let entries = known.map(|(class, spec)| {
            let class = escape(class);
            format!(
                "<section id=\"class-{class}\"><h3>{class}</h3><pre>{}</pre></section>\n",
                escape(&elements::text(spec))
            )
        });
        match self.docs {
            Some(_) => String::new(),
            None => format!("<h2>Classes</h2>\n{}", entries.collect::<String>()),
        }
    }
}

/// The text of the configuration itself, without libraries.
fn first_text(sources: &Sources) -> &str {
    sources.files().next().map_or("", |file| file.text())
}
