//! A page for each paper: what it found, our pictures with its points, and whether they agree.

use super::claim::Verdict;
use super::{Experiment, ROUTERS, What, chart, experiments};
use crate::report::write;
use crate::run::ENDED_EARLY;
use anyhow::{Context, Result, ensure};
use causeway_engine::usable_processors;
use causeway_results::Document;
use causeway_results::stats::{median, quantile};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The paper whose experiments make no detour: there nothing is slowed down.
const WITHOUT_DETOUR: &str = "CvL";

/// The papers: how their figures' names begin, and their titles.
const PAPERS: [(&str, &str); 4] = [
    (
        "OSR",
        "Open-Source PC-Based Software Routers: a Viable Approach to High-Performance Packet Switching (2005)",
    ),
    ("CvL", "Click vs. Linux: Two Efficient Open-Source IP Network Stacks for Software Routers (2005)"),
    (
        "LUT",
        "The IP Lookup Mechanism in a Linux Software Router: Performance Evaluation and Optimizations (2006)",
    ),
    ("AFF", "Performance of IP-forwarding of Linux hosts with multiple network interfaces (2012)"),
];

/// How the names of rates at the highest load end.
const SATURATION: &str = "/saturation forwarding rate";

/// Writes a page with pictures into `folder` for each paper of which `results` has documents, and says which files.
///
/// # Errors
/// If a document cannot be read, a file cannot be written, or there are no documents.
pub fn pages(results: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (paper, title) in PAPERS {
        let name = paper.to_lowercase();
        let mut seen = Vec::new();
        for one in experiments().filter(|one| one.name().starts_with(paper)) {
            seen.push((one, document(one, results)?));
        }
        if seen.iter().all(|(_, document)| document.is_none()) {
            continue;
        }
        let mut text = head(paper, title, seen.iter().find_map(|(_, document)| document.as_ref()));
        for (one, document) in &seen {
            section(&mut text, one, document.as_ref(), &name, folder)?;
        }
        let file = folder.join(format!("{name}.md"));
        write(&file, &text)?;
        written.push(file);
    }
    ensure!(!written.is_empty(), "{} has no results of an experiment, such as OSR-4.json", results.display());
    Ok(written)
}

/// What was measured of an experiment, if it was.
fn document(one: &Experiment, results: &Path) -> Result<Option<Document>> {
    let file = results.join(format!("{}.json", one.name()));
    if matches!(one.what, What::Refused(_)) || !file.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Document::from_json(&text).with_context(|| file.display().to_string()).map(Some)
}

fn head(paper: &str, title: &str, document: Option<&Document>) -> String {
    let machine = document.map(|document| {
        let of = &document.run.machine;
        format!("{}, {} processors, kernel {}", of.processor, of.processors, of.kernel)
    });
    let detour = match paper {
        WITHOUT_DETOUR => "",
        _ => " and a detour makes each packet as dear as on the paper's machine or dearer",
    };
    format!(
        "# {paper}: {title}\n\n\
         Written by `causeway lab pages` from the results of `make papers`. Points are the paper's; curves were **measured** \
         between network namespaces of one machine ({}), where tester and router share two processors{detour}: see \
         [the laboratory](../lab.md). So shapes and ratios can be compared, and rates cannot. A ratio is the median of those of \
         repetitions that were made in turns, its interval by the bootstrap; what it says of the paper cannot be told if a part of \
         the interval is where the paper has it and a part is not.\n",
        machine.unwrap_or_default()
    )
}

fn section(
    text: &mut String,
    one: &Experiment,
    document: Option<&Document>,
    name: &str,
    folder: &Path,
) -> Result<()> {
    let figures: Vec<&str> = one.figures().collect();
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## {}: {}\n\nThe paper: {}.\n", figures.join(", "), one.about, one.paper);
    let here = match one.what {
        What::Refused(_) => {
            let why = one.refusal(&usable_processors()).unwrap_or_default();
            let _ = write!(text, "\nNot measured: {why}.\n");
            return Ok(());
        }
        What::Measured { here, .. } => here,
    };
    let Some(document) = document else {
        match one.refusal(&usable_processors()) {
            Some(why) => {
                let _ = write!(text, "\nNot measured here: {why}.\n");
            }
            None => text.push_str("\nNot measured yet.\n"),
        }
        return Ok(());
    };
    if let Some(why) = document.run.settings.get(ENDED_EARLY) {
        let _ = write!(text, "\nNot measured whole, so nothing is said of it: it ended early ({why}).\n");
        return Ok(());
    }
    let load = &document.run.machine.load_average;
    let routers = document.run.settings.get(ROUTERS).map_or(String::new(), |only| format!(", {only}"));
    let repetitions = document.series.iter().flat_map(|series| &series.measurements);
    let repetitions = repetitions.map(|one| one.repetitions.len()).max().unwrap_or_default();
    let apart = spread(document) * 100.0;
    let _ = write!(
        text,
        "\nMeasured {repetitions} times{routers}; the repetitions of a saturation rate are up to {apart:.0} % apart. Load of the machine \
         before it: {load}.\n"
    );
    let found = one.found(document);
    if !found.is_empty() {
        text.push_str(
            "\n| the paper | seen here | ratio | 95 % interval | seen if it is |\n| --- | --- | ---: | --- | --- |\n",
        );
    }
    for (says, found) in found {
        let seen = match found.verdict() {
            Verdict::NotSeen => "**no**".to_owned(),
            verdict => verdict.to_string(),
        };
        let (ratio, interval, bounds) = (found.ratio(), found.interval(), found.bounds());
        let _ = writeln!(text, "| {says} | {seen} | {ratio} | {interval} | {bounds} |");
    }
    if !here.is_empty() {
        let _ = write!(text, "\n{here}\n");
    }
    for picture in one.pictures {
        let Some(chart) = chart::chart(picture, one.about, document) else { continue };
        let file = format!("{name}-{}.svg", picture.figure);
        write(&folder.join(&file), &chart.svg()?)?;
        let _ = write!(text, "\n![{}]({file})\n", picture.figure);
    }
    Ok(())
}

/// How far the repetitions of a rate at the highest load are apart at most, as a part of their median.
fn spread(document: &Document) -> f64 {
    let rates = document.series.iter().filter(|series| series.name.ends_with(SATURATION));
    let spreads = rates.flat_map(|series| &series.measurements).filter_map(|one| {
        let (lowest, highest) = (quantile(&one.repetitions, 0.0)?, quantile(&one.repetitions, 1.0)?);
        median(&one.repetitions).filter(|middle| *middle > 0.0).map(|middle| (highest - lowest) / middle)
    });
    spreads.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_results::{Axis, Measurement, Run, Series};

    #[test]
    fn a_page_speaks_of_the_detour_where_packets_make_one() {
        for (paper, title) in PAPERS {
            let without = paper == "CvL";
            assert_ne!(head(paper, title, None).contains("detour"), without, "{paper}");
        }
    }

    #[test]
    fn a_page_says_what_agrees_and_what_was_not_measured() {
        let name = format!("causeway-pages-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let error = pages(&folder, &folder).expect_err("there is nothing").to_string();
        assert!(error.contains("no results of an experiment"), "{error}");
        let mut document = Document::new(Run::default());
        let mut series = Series::single(
            "napi/64 bytes/forwarding rate",
            "forwarding rate",
            "frames/s",
            Measurement::measured([0.0]),
        );
        series.x = Some(Axis { quantity: "offered load".to_owned(), unit: "frames/s".to_owned() });
        let at = |x: f64, y: f64| Measurement { x: Some(x), ..Measurement::measured([y; 5]) };
        series.measurements = vec![at(1e5, 1e5), at(5e5, 2e5), at(1e6, 1e5)];
        let mut other = series.clone();
        other.name = "interrupt/64 bytes/forwarding rate".to_owned();
        let last = Measurement { x: Some(1e6), ..Measurement::measured([2e4, 9e4, 5.5e4, 5.5e4, 5.5e4]) };
        other.measurements = vec![at(1e5, 1e5), last];
        document.series.extend([series, other]);
        for (name, rates) in [("napi", [1e5, 1.1e5, 1.3e5]), ("polling", [2e5, 2e5, 2e5])] {
            let rates = Measurement::measured(rates);
            let name = format!("{name}/saturation forwarding rate");
            document.series.push(Series::single(&name, "forwarding rate", "frames/s", rates));
        }
        std::fs::write(folder.join("OSR-4.json"), document.to_json().expect("valid")).expect("written");
        let files = pages(&folder, &folder).expect("pages");
        assert_eq!(files, [folder.join("osr.md")], "only what was measured has a page");
        let text = std::fs::read_to_string(&files[0]).expect("a page");
        for line in [
            "## OSR-rx: one port, reception alone",
            "Measured 5 times; the repetitions of a saturation rate are up to 27 % apart.",
            "| NAPI stays at its peak | **no** | 0.50 | 0.50 to 0.50 | at least 0.9 |",
            "| NAPI's peak is twice that of interrupts | yes | 2.00 | 2.00 to 2.00 | 1.8 to 2.6 |",
            "| interrupts collapse | cannot be told | 0.55 | 0.20 to 0.90 | at most 0.5 |",
            "![OSR-4](osr-OSR-4.svg)",
            "Not measured yet.",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(folder.join("osr-OSR-4.svg").exists());
        std::fs::copy(folder.join("OSR-4.json"), folder.join("LUT-9.json")).expect("copied");
        pages(&folder, &folder).expect("pages");
        let lut = std::fs::read_to_string(folder.join("lut.md")).expect("a page");
        assert!(lut.contains("Not measured: it takes interrupts of cards that clean a ring"), "{lut}");
        document.run.settings.insert(ENDED_EARLY.to_owned(), "interrupted".to_owned());
        std::fs::write(folder.join("OSR-4.json"), document.to_json().expect("valid")).expect("written");
        pages(&folder, &folder).expect("pages");
        let text = std::fs::read_to_string(&files[0]).expect("a page");
        assert!(text.contains("Not measured whole") && text.contains("(interrupted)"), "{text}");
        assert!(!text.contains("NAPI stays at its peak |") && !text.contains("osr-OSR-4.svg"), "{text}");
        std::fs::write(folder.join("OSR-4.json"), "{").expect("written");
        let error = format!("{:#}", pages(&folder, &folder).expect_err("broken"));
        assert!(error.contains("OSR-4.json"), "{error}");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
