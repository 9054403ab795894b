//! A document as a page of tables, for folders of documentation.

use crate::document::{Document, Measurement, Series};
use crate::stats::{self, SEED};
use std::fmt::Write;

/// A table for each first part of the series' names: medians with least and most, and the ratio to the baseline by pairs of
/// repetitions with its 95 % interval. What the numbers depend on stands in front.
pub fn page(title: &str, document: &Document) -> String {
    let mut text = head(title, document);
    let mut groups: Vec<&str> = Vec::new();
    for series in &document.series {
        let group = parts(&series.name).0;
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n## {group}\n\n| | median | least to most | unit | ratio | to | |\n");
        text += "| --- | ---: | ---: | --- | ---: | --- | --- |\n";
        for series in document.series.iter().filter(|series| parts(&series.name).0 == group) {
            let baseline = series.baseline.as_deref().and_then(|name| document.series(name));
            series.measurements.iter().for_each(|one| text += &row(series, one, baseline));
        }
    }
    text
}

fn head(title: &str, document: &Document) -> String {
    let run = &document.run;
    let mut text = format!(
        "# {title}\n\nWritten by `{}`, from the document beside it.\n\n- machine: {}, {} processors, kernel {}, load average before {}\n",
        run.command.join(" "),
        run.machine.processor,
        run.machine.processors,
        run.machine.kernel,
        run.machine.load_average
    );
    for (name, value) in run.versions.iter().chain(&run.settings) {
        let _ = writeln!(text, "- {name}: {value}");
    }
    text
}

/// A name's first part and the rest.
fn parts(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((name, name))
}

fn row(series: &Series, one: &Measurement, baseline: Option<&Series>) -> String {
    let at = match (&series.x, one.x) {
        (Some(axis), Some(x)) => format!(", {} {x} {}", axis.quantity, axis.unit),
        _ => String::new(),
    };
    let all = &one.repetitions;
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let other = baseline.and_then(|base| base.measurements.iter().find(|other| other.x == one.x));
    let ratio = other.and_then(|other| stats::compare(all, &other.repetitions, SEED));
    let ratio = ratio.map_or(String::new(), |found| {
        let interval = found.interval.map_or(String::new(), |i| format!(" ({:.2} to {:.2})", i.low, i.high));
        format!("{:.2}{interval}", found.ratio)
    });
    format!(
        "| {}{} | {} | {} to {} | {} | {ratio} | {} | {} |\n",
        quoted(parts(&series.name).1),
        at.trim_end(),
        number(stats::median(all).unwrap_or(f64::NAN)),
        number(least),
        number(most),
        series.unit,
        baseline.map_or(String::new(), |base| quoted(parts(&base.name).1)),
        quoted(&one.note),
    )
}

/// Four digits that count, and no fewer than the whole number.
fn number(value: f64) -> String {
    let digits = 3 - value.abs().max(1.0).log10().floor() as i64;
    format!("{value:.*}", usize::try_from(digits).unwrap_or(0))
}

fn quoted(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Axis, Run};

    #[test]
    fn a_table_a_group_and_a_row_a_measurement() {
        let mut document = Document::new(Run::default());
        document.run.settings.insert("rounds".to_owned(), "3".to_owned());
        let kernel =
            Series::single("veth/kernel | 64", "rate", "Mpps", Measurement::measured([2.0, 2.0, 2.0]));
        let mut ours = Series::single("veth/ours", "rate", "Mpps", Measurement::measured([4.0, 5.0, 3.0]));
        ours.baseline = Some("veth/kernel | 64".to_owned());
        let mut memory = Series::single("memory", "rate", "kpps", Measurement::measured([12_345.6]));
        memory.x = Some(Axis { quantity: "routes".to_owned(), unit: String::new() });
        memory.measurements[0].x = Some(7.0);
        document.series = vec![kernel, memory, ours];
        let page = page("Bench", &document);
        assert!(page.starts_with("# Bench\n") && page.contains("\n- rounds: 3\n"), "{page}");
        assert_eq!(page.matches("\n## ").count(), 2);
        let (veth, memory) = page.split_once("\n## memory\n").expect("both");
        assert!(veth.contains("\n| kernel \\| 64 | 2.000 | 2.000 to 2.000 | Mpps |  |  |  |\n"), "{veth}");
        let ratio = "| ours | 4.000 | 3.000 to 5.000 | Mpps | 2.00 (1.50 to 2.50) | kernel \\| 64 |  |\n";
        assert!(veth.contains(ratio), "{veth}");
        assert!(
            memory.contains("| memory, routes 7 | 12346 | 12346 to 12346 | kpps |  |  |  |\n"),
            "{memory}"
        );
    }
}
