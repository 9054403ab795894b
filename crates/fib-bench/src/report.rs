//! What the terminal shows, and plots.

use std::fmt::Write as _;

use crate::race::Score;
use crate::results::Section;

/// A contender's name in tables, with how it was filled where that is not the usual way.
pub fn label(score: &Score) -> String {
    format!("{}, {}", score.name, score.fill.name())
}

/// A number, or a stroke.
pub fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Prints a section: nanoseconds chained / single / batch for each traffic, and millions a second in batches.
pub fn print(section: &Section) {
    let prefixes = section.scores.first().map_or(0, |score| score.prefixes);
    println!(
        "\n{} ({prefixes} prefixes); ns a lookup: chained / single / batch of 256 (M lookups/s)",
        section.title
    );
    print!("{:<30} {:>8} {:>7} {:>9}", "structure", "MB", "B/pfx", "build ms");
    if let Some(score) = section.scores.first() {
        score.lookup_ns.iter().for_each(|(name, _)| print!(" {name:>32}"));
    }
    println!(" {:>10} {:>22}", "updates/s", "update us 50/99/99.9%");
    for score in &section.scores {
        let per_prefix = score.bytes as f64 / score.prefixes as f64;
        print!(
            "{:<30} {:>8.2} {:>7.1} {:>9}",
            label(score),
            score.bytes as f64 / 1e6,
            per_prefix,
            number(score.build_ms, 1)
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

const COLOURS: [&str; 3] = ["#4477aa", "#ee6677", "#228833"];

/// A bar chart of batched lookups a second, a group of bars a table.
pub fn svg(section: &Section) -> String {
    let (left, row, width) = (210.0, 44.0, 680.0);
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
        let _ = writeln!(text, "<text x=\"10\" y=\"{}\">{}</text>", y + 20.0, label(score));
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
