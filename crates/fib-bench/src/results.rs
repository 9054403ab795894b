//! What a run leaves behind: one file of numbers, and a page and plots made from them.

use std::path::Path;

use causeway_results::{Document, Measurement, Series, csv};

use crate::Result;
use crate::environment::Environment;
use crate::goals;
use crate::race::{Lookups, Score, Section};
use crate::report::{label, number, svg};

/// Names of the modes of lookups, in their order.
const MODES: [&str; 3] = ["chained", "single", "batch"];

/// All that was measured of one table.
fn series<'s>(section: &'s Section, score: &'s Score) -> impl Iterator<Item = Series> + 's {
    let stem = format!("{}/{}", section.stem, label(score));
    let name = stem.clone();
    let series = move |what: &str, quantity: &str, unit: &str, rounds: &[f64]| {
        let measurement = Measurement::measured(rounds);
        (!rounds.is_empty()).then(|| Series::single(&format!("{name}/{what}"), quantity, unit, measurement))
    };
    let one = series.clone();
    let lookups = score.lookups.iter().flat_map(move |lookups| {
        let modes = MODES.iter().zip(&lookups.rounds_ns);
        let name = |mode: &str| format!("{}/{mode}", lookups.traffic);
        let each = modes.map(|(mode, rounds)| {
            series(&name(mode), &format!("processor time a lookup, {mode}"), "ns", rounds)
        });
        each.flatten().collect::<Vec<_>>()
    });
    let updates = score.updates.as_ref().map_or(Vec::new(), |updates| {
        let [p50, p99, p999] = updates.percentiles_us;
        vec![
            one("updates", "updates", "1/s", &[updates.rate_ups]),
            one("update, 50 %", "time of an update", "us", &[p50]),
            one("update, 99 %", "time of an update", "us", &[p99]),
            one("update, 99.9 %", "time of an update", "us", &[p999]),
        ]
    });
    let fill = score.build_ms.and_then(|ms| one("fill", "processor time to fill", "ms", &[ms]));
    let prefixes = one("prefixes", "prefixes", "", &[score.prefixes as f64]);
    let memory = one("memory", "memory", "bytes", &[score.bytes as f64]);
    prefixes.into_iter().chain(memory).chain(fill).chain(lookups).chain(updates.into_iter().flatten())
}

fn document(environment: &Environment, sections: &[Section]) -> Document {
    let mut document = Document::new(environment.run());
    for section in sections {
        document.run.settings.insert(section.stem.clone(), section.title.clone());
        document.series.extend(section.scores.iter().flat_map(|score| series(section, score)));
    }
    document
}

fn row(score: &Score) -> String {
    let build = number(score.build_ms, 0);
    let megabytes = score.bytes as f64 / 1e6;
    let each = score.bytes as f64 / score.prefixes as f64;
    let mut row = format!("| {} | {megabytes:.2} | {each:.1} | {build} |", label(score));
    for [chained, single, batch] in score.lookups.iter().map(Lookups::median_ns) {
        let rate = batch.map(|ns| 1e3 / ns);
        let cell = [number(chained, 1), number(single, 1), number(batch, 1), number(rate, 0)];
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
        let traffic = section.scores.first().map_or(&[][..], |score| &score.lookups);
        traffic.iter().for_each(|lookups| page += &format!(" {} |", lookups.traffic));
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

/// Writes the numbers, as document and as table, the page and a plot for each section.
///
/// # Errors
/// Those of the file system.
pub fn write(directory: &Path, environment: &Environment, sections: &[Section]) -> Result<()> {
    let document = document(environment, sections);
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("lookup.json"), document.to_json()?)?;
    std::fs::write(directory.join("lookup.csv"), csv::table(&document))?;
    std::fs::write(directory.join("lookup.md"), page(environment, sections))?;
    for section in sections {
        std::fs::write(directory.join(plot(section)), svg(section)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Fill;
    use crate::race::Updates;

    #[test]
    fn the_document_has_every_round_of_every_table() {
        let score = |name: &str, fill| Score {
            name: name.to_owned(),
            fill,
            bytes: 400,
            prefixes: 100,
            build_ms: Some(20.0),
            lookups: vec![Lookups {
                traffic: "zipf",
                rounds_ns: [vec![9.0, 8.0], Vec::new(), vec![2.0, 4.0, 3.0]],
            }],
            updates: Some(Updates { rate_ups: 2e6, percentiles_us: [1.0, 50.0, 60.0] }),
        };
        let scores = vec![score("rank24", Fill::ByRoute), score("rank24", Fill::Whole)];
        let section = Section { title: "IPv4".to_owned(), stem: "ipv4".to_owned(), scores };
        let written = document(&Environment::here(false), std::slice::from_ref(&section)).to_json().unwrap();
        let document = Document::from_json(&written).unwrap();
        let rounds = |name: &str| {
            let series = document.series(name).unwrap_or_else(|| panic!("{name}: {written}"));
            series.measurements[0].repetitions.clone()
        };
        assert_eq!(rounds("ipv4/rank24, route by route/zipf/batch"), [2.0, 4.0, 3.0]);
        assert_eq!(rounds("ipv4/rank24, loaded/zipf/chained"), [9.0, 8.0]);
        assert_eq!(rounds("ipv4/rank24, loaded/update, 99 %"), [50.0]);
        assert_eq!(document.series.len(), 2 * (3 + 2 + 4), "no series for what was not measured");
        assert_eq!(document.run.settings["ipv4"], "IPv4");
        let plot = svg(&section).unwrap();
        for text in ["\nzipf\n", "\nrank24, loaded\n", "\n333\n", "(million a second), measured"] {
            assert!(plot.contains(text), "{text}: {plot}");
        }
    }
}
