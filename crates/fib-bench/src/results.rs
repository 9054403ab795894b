//! What a run leaves behind: one file of numbers, and a page and plots made from them.

use std::path::Path;

use serde_json::{Value, json};

use crate::environment::Environment;
use crate::goals;
use crate::race::Score;
use crate::report::{label, number, svg};

/// The scores of one table of routes.
pub struct Section {
    /// Heading, for example `IPv4, synthetic table`.
    pub title: String,
    /// File name stem.
    pub stem: String,
    /// A row a contender.
    pub scores: Vec<Score>,
}

fn score_json(score: &Score) -> Value {
    let traffic = score.lookup_ns.iter().map(|(traffic, [chained, single, batch])| {
        let ns = json!({ "chained_ns": chained, "single_ns": single, "batch_ns": batch });
        ((*traffic).to_owned(), ns)
    });
    let updates = score.updates.as_ref().map(|updates| {
        let [p50, p99, p999] = updates.percentiles_us;
        json!({ "rate_ups": updates.rate_ups, "p50_us": p50, "p99_us": p99, "p999_us": p999 })
    });
    json!({
        "name": score.name,
        "fill": score.fill.name(),
        "prefixes": score.prefixes,
        "bytes": score.bytes,
        "build_ms": score.build_ms,
        "lookups": traffic.collect::<Value>(),
        "updates": updates,
    })
}

fn json(environment: &Environment, sections: &[Section]) -> Value {
    let section = |section: &Section| {
        let scores: Vec<Value> = section.scores.iter().map(score_json).collect();
        json!({ "title": section.title, "stem": section.stem, "tables": scores })
    };
    json!({
        "format": "causeway-fib-bench",
        "version": 2,
        "source": "measured",
        "environment": environment.json(),
        "sections": sections.iter().map(section).collect::<Vec<_>>(),
    })
}

fn row(score: &Score) -> String {
    let build = number(score.build_ms, 0);
    let megabytes = score.bytes as f64 / 1e6;
    let each = score.bytes as f64 / score.prefixes as f64;
    let mut row = format!("| {} | {megabytes:.2} | {each:.1} | {build} |", label(score));
    for (_, [chained, single, batch]) in &score.lookup_ns {
        let rate = batch.map(|ns| 1e3 / ns);
        let cell = [number(*chained, 1), number(*single, 1), number(*batch, 1), number(rate, 0)];
        row += &format!(" {} |", cell.join(" / "));
    }
    match &score.updates {
        Some(updates) => {
            let [p50, p99, p999] = updates.percentiles_us;
            row + &format!(" {:.2} | {p50:.2} / {p99:.1} / {p999:.1} |\n", updates.rate_ups / 1e6)
        }
        None => row + " | |\n",
    }
}

fn page(environment: &Environment, sections: &[Section]) -> String {
    let mut page = format!(
        "# Lookup tables: one run\n\nMade by `make bench-fib`, all of it from one run (`lookup.json`); what it means is in \
         [docs/lookup.md](../lookup.md).\n\n{}\n## Aims\n\nOurs are the tables that were filled route by route.\n\n{}",
        environment.markdown(),
        goals::markdown(sections)
    );
    for section in sections {
        let prefixes = section.scores.first().map_or(0, |score| score.prefixes);
        page += &format!(
            "\n## {}\n\n{prefixes} prefixes. Lookups: ns chained / single / in batches of 256 / million a second in batches. \
             Updates: million a second, and µs at 50 / 99 / 99.9 %.\n\n![]({})\n\n| table | MB | bytes a prefix | filled in, ms |",
            section.title,
            plot(section)
        );
        let traffic = section.scores.first().map_or(&[][..], |score| &score.lookup_ns);
        traffic.iter().for_each(|(name, _)| page += &format!(" {name} |"));
        page += " updates | µs |\n| --- | --- | --- | --- |";
        traffic.iter().for_each(|_| page += " --- |");
        page += " --- | --- |\n";
        section.scores.iter().for_each(|score| page += &row(score));
    }
    page
}

fn plot(section: &Section) -> String {
    format!("lookup-{}.svg", section.stem)
}

/// Writes the numbers, the page and a plot for each section.
///
/// # Errors
/// Those of the file system.
pub fn write(directory: &Path, environment: &Environment, sections: &[Section]) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let numbers = format!("{:#}\n", json(environment, sections));
    std::fs::write(directory.join("lookup.json"), numbers)?;
    std::fs::write(directory.join("lookup.md"), page(environment, sections))?;
    for section in sections {
        std::fs::write(directory.join(plot(section)), svg(section))?;
    }
    Ok(())
}
