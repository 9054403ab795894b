//! A comparison from arguments to files.

use super::sizes::{divide, size};
use super::{Comparison, Description, Preset, Progress};
use crate::regression::changes;
use crate::report::{begun, write};
use anyhow::{Context, Result, bail, ensure};
use causeway_engine::usable_processors;
use causeway_results::html::{CONDITIONAL, NOT_MEASURED, UPPER};
use causeway_results::{Document, Series, Source, csv, html, stats};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The setting that says why a document is only a part; `make papers` looks for it.
pub const ENDED_EARLY: &str = "ended early";

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Task {
    /// Names of devices.
    pub devices: Vec<String>,
    /// The test bed.
    pub description: Description,
    /// Lists of lengths of frames. Without any the lengths are those of the description's streams, or those of the preset.
    pub sizes: Vec<String>,
    /// How long trials take.
    pub preset: Preset,
    /// How often all is measured.
    pub repetitions: usize,
    /// Also on an interface that carries the default route.
    pub yes: bool,
    /// Where the document goes; a table and a page go beside it.
    pub output: PathBuf,
}

impl Task {
    pub(super) fn comparison(&self) -> Result<Comparison> {
        let own = self.description.has_lengths;
        ensure!(
            self.sizes.is_empty() || !own,
            "the streams of the description have lengths: leave them out there, or ask for no others with --sizes"
        );
        let lists = self.sizes.iter().map(|list| divide(list)).collect::<Result<Vec<_>>>()?.concat();
        let lists = if lists.is_empty() && !own { self.preset.lengths() } else { lists };
        let mut sizes = Vec::new();
        for text in &lists {
            let asked = size(text)?;
            // What is asked for twice is measured once.
            if !sizes.contains(&asked) {
                sizes.push(asked);
            }
        }
        let (devices, preset, repetitions) = (self.devices.clone(), self.preset.clone(), self.repetitions);
        let mut description = self.description.clone();
        description.share(&usable_processors());
        Ok(Comparison { description, devices, sizes, preset, repetitions, only_curve: false, yes: self.yes })
    }

    /// Runs it, and writes what was found, also when it ends early. The lines are for people.
    ///
    /// # Errors
    /// What is wrong with the task, what ended it, or that the files cannot be written.
    pub fn run(&self, interrupted: &Arc<AtomicBool>, progress: &mut Progress<'_>) -> Result<Vec<String>> {
        let comparison = self.comparison()?;
        let mut document = Document::new(begun());
        let outcome = comparison.run(&mut document, &mut None, interrupted, progress);
        if let Err(error) = &outcome {
            document.run.settings.insert(ENDED_EARLY.to_owned(), format!("{error:#}"));
        }
        if document.series.is_empty() {
            outcome?;
        } else {
            keep(&self.output, "Router test", &document)?;
            outcome
                .with_context(|| format!("ended early; what was found is in {}", self.output.display()))?;
        }
        Ok(verdict(&document))
    }
}

/// Writes a document, and its table and page beside it; where there is no room, the document goes to the folder for
/// temporary files instead.
///
/// # Errors
/// That a file cannot be written, and where the document is.
pub fn keep(file: &Path, title: &str, document: &Document) -> Result<()> {
    let all = || {
        write(file, &document.to_json()?)?;
        write(&file.with_extension("csv"), &csv::table(document))?;
        write(&file.with_extension("html"), &html::page(title, document)?)
    };
    all().map_err(|error| {
        let name = format!("causeway-lab-{}.json", std::process::id());
        let elsewhere = std::env::temp_dir().join(name);
        let kept = document.to_json().map_err(Into::into).and_then(|json| write(&elsewhere, &json));
        match kept {
            Ok(()) => error.context(format!("the results are in {} instead", elsewhere.display())),
            Err(_) => error,
        }
    })
}

/// The loads and rates that were found, a line each, with ratios to the first device; and what was not measured.
pub fn verdict(document: &Document) -> Vec<String> {
    let mut lines = Vec::new();
    let told = |series: &&Series| {
        let by_length = series.x.as_ref().is_some_and(|axis| axis.quantity == "frame length");
        by_length && ![UPPER, CONDITIONAL].contains(&series.quantity.as_str())
    };
    for series in document.series.iter().filter(told) {
        let baseline = series.baseline.as_deref().and_then(|name| document.series(name));
        for one in series.measurements.iter().filter(|one| one.source == Source::Measured) {
            let (Some(median), Some(x)) = (stats::median(&one.repetitions), one.x) else { continue };
            let interval = stats::median_interval(&one.repetitions, stats::SEED);
            let interval =
                interval.map_or(String::new(), |i| format!(" ({} to {})", short(i.low), short(i.high)));
            let other = baseline.and_then(|series| series.measurements.iter().find(|other| other.x == one.x));
            let ratio =
                other.and_then(|other| stats::compare(&one.repetitions, &other.repetitions, stats::SEED));
            let ratio = ratio.map_or(String::new(), |found| match found.interval {
                Some(i) => format!("  {:.2} x ({:.2} to {:.2})", found.ratio, i.low, i.high),
                None => format!("  {:.2} x", found.ratio),
            });
            let note = if one.note.is_empty() { String::new() } else { format!("  {}", one.note) };
            let name = format!("{} at {x:.0} bytes", series.name);
            let median = short(median);
            lines.push(format!("{name:<52} {median:>9} {}{interval}{ratio}{note}", series.unit));
        }
    }
    let missing = document.run.settings.iter().filter(|(name, _)| name.starts_with(NOT_MEASURED));
    lines.extend(missing.map(|(name, why)| format!("{name}: {why}")));
    lines
}

/// A number with three places or more.
fn short(value: f64) -> String {
    let digits = if value.abs() >= 100.0 || value == 0.0 { 0 } else { 2 };
    format!("{value:.digits$}")
}

/// Compares two documents: a line for each measurement that both have and that is not 0 in both, and whether one became worse by more than
/// `fail_on`, a part.
///
/// # Errors
/// If one cannot be read, or they have nothing in common.
pub fn compare_files(old: &Path, new: &Path, fail_on: Option<f64>) -> Result<(Vec<String>, bool)> {
    let read = |file: &Path| -> Result<Document> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Document::from_json(&text).with_context(|| file.display().to_string())
    };
    let found = changes(&read(old)?, &read(new)?);
    if found.is_empty() {
        bail!("{} and {} have no measurement in common", old.display(), new.display());
    }
    let mut failed = false;
    let line = |change: &crate::regression::Change| {
        let worse = fail_on.is_some_and(|part| change.is_worse_by(part));
        failed |= worse;
        let sure = if change.differs == Some(false) { "  may be chance" } else { "" };
        let worse = if worse { "  WORSE" } else { "" };
        let percent = change.percent();
        let [old, new] = [change.old, change.new].map(precise);
        format!("{:<60} {old:>12} {new:>12} {:<9} {percent}{sure}{worse}", change.name, change.unit)
    };
    // Of what is nothing in both there is much, and nothing to say.
    let lines = found.iter().filter(|change| change.old != 0.0 || change.new != 0.0).map(line).collect();
    Ok((lines, failed))
}

/// A number of which small ones, such as a part that was lost, are to be seen.
fn precise(value: f64) -> String {
    let digits = if value.abs() < 10.0 { 4 } else { 2 };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_results::Measurement;

    fn file(name: &str, rate: f64) -> PathBuf {
        let mut document = Document::new(begun());
        document.series.push(Series::single(
            "kernel/rate",
            "forwarding rate",
            "frames/s",
            Measurement::measured([rate]),
        ));
        let file = std::env::temp_dir().join(format!("causeway-lab-{}-{name}.json", std::process::id()));
        write(&file, &document.to_json().expect("valid")).expect("written");
        file
    }

    #[test]
    fn files_are_compared_and_a_loss_beyond_the_threshold_fails() {
        let (old, new) = (file("old", 100.0), file("new", 96.0));
        let (lines, failed) = compare_files(&old, &new, Some(0.03)).expect("compared");
        assert!(failed && lines[0].contains("-4.0 %") && lines[0].ends_with("WORSE"), "{lines:?}");
        assert!(!compare_files(&old, &new, Some(0.05)).expect("compared").1);
        assert!(!compare_files(&old, &new, None).expect("compared").1);
        assert!(compare_files(&old, Path::new("/no/such/file"), None).is_err());
        // It came to nothing, it rose from nothing, and it is nothing still.
        let (was, none) = (file("was", 0.004), file("none", 0.0));
        let lines = |old: &Path, new: &Path| compare_files(old, new, Some(0.03)).expect("compared");
        let (gone, failed) = lines(&was, &none);
        assert!(failed && gone[0].contains(" 0.0040 ") && gone[0].contains("-100.0 %"), "{gone:?}");
        let (risen, failed) = lines(&none, &was);
        assert!(!failed && risen[0].ends_with("it was 0, of which there is no percentage"), "{risen:?}");
        assert_eq!(lines(&none, &none), (Vec::new(), false));
        for file in [old, new, was, none] {
            std::fs::remove_file(file).expect("removed");
        }
    }

    #[test]
    fn a_task_that_is_wrong_is_refused_before_anything_is_set_up() {
        let task = Task {
            devices: vec!["kernel".to_owned()],
            description: Description::default(),
            sizes: vec!["64,imix".to_owned()],
            preset: Preset::quick(),
            repetitions: 1,
            yes: false,
            output: PathBuf::from("unused.json"),
        };
        assert_eq!(task.comparison().expect("a comparison").sizes.len(), 2);
        let refused = |task: Task| {
            let error = task.run(&Arc::default(), &mut |_, _| ()).expect_err("refused");
            assert!(!task.output.exists());
            format!("{error:#}")
        };
        let task = |change: fn(&mut Task)| {
            let mut task = task.clone();
            change(&mut task);
            task
        };
        assert!(refused(task(|t| t.sizes = vec!["big".to_owned()])).contains("'big' is no frame length"));
        assert!(refused(task(|t| t.devices = vec!["cisco".to_owned()])).contains("no device 'cisco'"));
    }

    #[test]
    fn on_a_full_disk_the_results_are_kept_elsewhere() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root to mount a disk that is full");
        }
        let folder = std::env::temp_dir().join(format!("causeway-lab-full-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let command = |program: &str, args: &[&str]| {
            let status = std::process::Command::new(program).args(args).arg(&folder).status().expect("run");
            assert!(status.success());
        };
        command("mount", &["-t", "tmpfs", "-o", "size=4k", "tmpfs"]);
        let mut document = Document::new(begun());
        let values = Measurement::measured(vec![1.5; 5_000]);
        document.series.push(Series::single("kernel/rate", "rate", "frames/s", values));
        let error = keep(&folder.join("lab.json"), "full", &document).expect_err("full");
        command("umount", &[]);
        std::fs::remove_dir(&folder).expect("removed");
        let error = format!("{error:#}");
        let elsewhere = error.strip_prefix("the results are in ").and_then(|rest| rest.split(' ').next());
        let elsewhere = PathBuf::from(elsewhere.expect("where"));
        assert!(error.contains("No space left on device"), "{error}");
        let text = std::fs::read_to_string(&elsewhere).expect("there");
        assert_eq!(Document::from_json(&text).expect("whole"), document);
        std::fs::remove_file(elsewhere).expect("removed");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_what_was_there() {
        let folder = std::env::temp_dir().join(format!("causeway-lab-{}", std::process::id()));
        let file = folder.join("results.json");
        write(&file, "old").expect("written");
        std::fs::create_dir(folder.join("results.json.part")).expect("in the way");
        let error = write(&file, "new").expect_err("in the way");
        assert!(format!("{error:#}").starts_with("cannot write "), "{error:#}");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "old");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
