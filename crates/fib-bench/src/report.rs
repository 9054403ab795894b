//! What the terminal shows, and plots.

use causeway_results::chart::{Bar, Chart, DrawError, Plot, Scale, Value};
use causeway_results::{Axis, Source};

use crate::race::{BATCHED, Lookups, Score, Section};

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
        score.lookups.iter().for_each(|lookups| print!(" {:>32}", lookups.traffic));
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
        for [chain, single, batch] in score.lookups.iter().map(Lookups::median_ns) {
            let cell = format!(
                "{} / {} / {} ({})",
                number(chain, 1),
                number(single, 1),
                number(batch, 2),
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

/// Batched lookups a second, a group of bars a table.
///
/// # Errors
/// If there are more tables than a picture has room for.
pub fn svg(section: &Section) -> Result<String, DrawError> {
    let traffic = section.scores.first().map_or(&[][..], |score| &score.lookups);
    let rate = |score: &Score, number: usize| {
        let rounds_ns = &score.lookups.get(number)?.rounds_ns[BATCHED];
        Value::of(&rounds_ns.iter().map(|ns| 1e3 / ns).collect::<Vec<_>>())
    };
    let bar = |(number, lookups): (usize, &Lookups)| Bar {
        name: lookups.traffic.to_owned(),
        values: section.scores.iter().map(|score| rate(score, number)).collect(),
    };
    let chart = Chart {
        title: format!("{}: lookups in batches of 256", section.title),
        source: Source::Measured,
        values: Axis { quantity: "lookups".to_owned(), unit: "million a second".to_owned() },
        scale: Scale::Linear,
        plot: Plot::Bars {
            groups: section.scores.iter().map(label).collect(),
            bars: traffic.iter().enumerate().map(bar).collect(),
        },
    };
    chart.svg()
}
