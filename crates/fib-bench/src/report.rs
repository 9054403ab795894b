//! The report: a table on the terminal, a JSON file, SVG plots.

use std::fmt::Write as _;
use std::path::Path;

use crate::race::Score;

/// The scores of one table of routes.
pub struct Section {
    /// Heading, for example `IPv4, synthetic`.
    pub title: String,
    /// File name stem.
    pub stem: String,
    /// A row a contender.
    pub scores: Vec<Score>,
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Prints a section: nanoseconds chained / single / batch for each traffic, and millions a second in batches.
pub fn print(section: &Section) {
    let prefixes = section.scores.first().map_or(0, |score| score.prefixes);
    println!(
        "\n{} ({prefixes} prefixes); ns a lookup: chained / single / batch of 256 (M lookups/s)",
        section.title
    );
    print!("{:<16} {:>8} {:>7} {:>9}", "structure", "MB", "B/pfx", "build ms");
    if let Some(score) = section.scores.first() {
        score.lookup_ns.iter().for_each(|(name, _)| print!(" {name:>32}"));
    }
    println!(" {:>10} {:>22}", "updates/s", "update us 50/99/99.9%");
    for score in &section.scores {
        let per_prefix = score.bytes as f64 / score.prefixes as f64;
        print!(
            "{:<16} {:>8.2} {:>7.1} {:>9.1}",
            score.name,
            score.bytes as f64 / 1e6,
            per_prefix,
            score.build_ms
        );
        for (_, [chain, single, batch]) in &score.lookup_ns {
            let cell = format!(
                "{} / {} / {} ({})",
                number(*chain, 1),
                number(*single, 1),
                number(*batch, 2),
                number(batch.map(|ns| 1e3 / ns), 0)
            );
            print!(" {cell:>32}");
        }
        match &score.updates {
            Some(updates) => {
                let [p50, p99, p999] = updates.percentiles_us;
                println!(" {:>10.0} {:>22}", updates.rate_ups, format!("{p50:.2}/{p99:.2}/{p999:.2}"));
            }
            None => println!(" {:>10} {:>22}", "-", "-"),
        }
    }
}

/// Prints how many times faster in batches `ours` is than each other table.
pub fn print_ratios(section: &Section, ours: &[&str]) {
    for score in section.scores.iter().filter(|score| ours.contains(&score.name.as_str())) {
        for other in section.scores.iter().filter(|other| other.name != score.name) {
            let ratio = |mode: usize| -> Vec<f64> {
                let pairs = score.lookup_ns.iter().zip(&other.lookup_ns);
                pairs.filter_map(|(mine, theirs)| Some(theirs.1[mode]? / mine.1[mode]?)).collect()
            };
            let (batch, chain) = (ratio(2), ratio(0).iter().map(|v| 1.0 / v).collect::<Vec<_>>());
            if batch.is_empty() {
                continue;
            }
            let mean =
                |values: &[f64]| (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp();
            let list =
                |values: &[f64]| values.iter().map(|v| format!("{v:.2}")).collect::<Vec<_>>().join(" ");
            println!(
                "{:>10} over {:<16} batch {} (mean {:.2}, without random {:.2}); chained latency {} (mean {:.2}) of theirs",
                score.name,
                other.name,
                list(&batch),
                mean(&batch),
                mean(&batch[1..]),
                list(&chain),
                mean(&chain)
            );
        }
    }
}

fn json_number(value: Option<f64>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| format!("{value:.3}"))
}

/// All sections as one JSON document.
pub fn json(sections: &[Section]) -> String {
    let mut text =
        String::from("{\n  \"format\": \"causeway-fib-bench\",\n  \"version\": 1,\n  \"sections\": [");
    for (s, section) in sections.iter().enumerate() {
        let comma = if s > 0 { "," } else { "" };
        let _ = write!(
            text,
            "{comma}\n    {{ \"title\": \"{}\", \"source\": \"measured\", \"tables\": [",
            section.title
        );
        for (t, score) in section.scores.iter().enumerate() {
            let comma = if t > 0 { "," } else { "" };
            let _ = write!(
                text,
                "{comma}\n      {{ \"name\": \"{}\", \"prefixes\": {}, \"bytes\": {}, \"build_ms\": {:.3}",
                score.name, score.prefixes, score.bytes, score.build_ms
            );
            for (traffic, [chain, single, batch]) in &score.lookup_ns {
                let _ = write!(
                    text,
                    ", \"{traffic}\": {{ \"chained_ns\": {}, \"single_ns\": {}, \"batch_ns\": {} }}",
                    json_number(*chain),
                    json_number(*single),
                    json_number(*batch)
                );
            }
            if let Some(updates) = &score.updates {
                let [p50, p99, p999] = updates.percentiles_us;
                let _ = write!(
                    text,
                    ", \"updates_per_s\": {:.0}, \"update_p50_us\": {p50:.3}, \"update_p99_us\": {p99:.3}, \"update_p999_us\": {p999:.3}",
                    updates.rate_ups
                );
            }
            text.push_str(" }");
        }
        text.push_str("\n    ] }");
    }
    text.push_str("\n  ]\n}\n");
    text
}

const COLOURS: [&str; 3] = ["#4477aa", "#ee6677", "#228833"];

/// A bar chart of batched lookups a second, a group of bars a table.
pub fn svg(section: &Section) -> String {
    let (left, row, width) = (130.0, 44.0, 760.0);
    let rate = |ns: Option<f64>| ns.map_or(0.0, |ns| 1e3 / ns);
    let all = section.scores.iter().flat_map(|score| score.lookup_ns.iter().map(|(_, ns)| rate(ns[2])));
    let top = all.fold(1.0, f64::max);
    let height = 60.0 + row * section.scores.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"10\" y=\"18\" font-size=\"14\">{}: million lookups a second, batches of 256</text>\n",
        left + width + 60.0,
        section.title
    );
    if let Some(score) = section.scores.first() {
        for (i, (name, _)) in score.lookup_ns.iter().enumerate() {
            let x = left + 110.0 * i as f64;
            let _ = writeln!(
                text,
                "<rect x=\"{x}\" y=\"28\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{}\" y=\"37\">{name}</text>",
                COLOURS[i % 3],
                x + 14.0
            );
        }
    }
    for (r, score) in section.scores.iter().enumerate() {
        let y = 48.0 + row * r as f64;
        let _ = writeln!(text, "<text x=\"10\" y=\"{}\">{}</text>", y + 20.0, score.name);
        for (i, (_, ns)) in score.lookup_ns.iter().enumerate() {
            let rate = rate(ns[2]);
            let (length, y) = (rate / top * width, y + 12.0 * i as f64);
            let _ = writeln!(
                text,
                "<rect x=\"{left}\" y=\"{y}\" width=\"{length:.1}\" height=\"10\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{}\">{rate:.0}</text>",
                COLOURS[i % 3],
                left + length + 4.0,
                y + 10.0
            );
        }
    }
    text.push_str("</svg>\n");
    text
}

/// Writes the result file and a plot for each section.
pub fn write(directory: &Path, sections: &[Section]) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("results.json"), json(sections))?;
    for section in sections {
        std::fs::write(directory.join(format!("{}.svg", section.stem)), svg(section))?;
    }
    Ok(())
}
