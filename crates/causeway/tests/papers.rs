//! Whether `docs/results/papers.md` has a line for all that the papers describe, and says what the programs do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The systems of the papers.
const SYSTEMS: [&str; 17] = [
    "RFC 1812 forwarding",
    "interrupts, livelock",
    "moderated interrupts",
    "NAPI",
    "Disable–Enable",
    "polling",
    "buffer recycling",
    "Click",
    "route cache",
    "Radix tree, LC-trie",
    "policy routing",
    "FPGA-enhanced NIC",
    "affinity modes",
    "generator and sink",
    "router tester",
    "internal counters",
    "profiler",
];
/// The experiments of the papers, each with its figures where the row's name is not that of one.
const EXPERIMENTS: [(&str, &[&str]); 37] = [
    ("OSR-rx", &[]),
    ("OSR-tx", &[]),
    ("OSR-4", &[]),
    ("OSR-5", &[]),
    ("OSR-6", &[]),
    ("OSR-7", &[]),
    ("OSR-8", &[]),
    ("OSR-9", &[]),
    ("OSR-10", &[]),
    ("OSR-11", &[]),
    ("CvL-4", &[]),
    ("CvL-5", &[]),
    ("CvL-6a", &[]),
    ("CvL-6b", &[]),
    ("CvL-7", &[]),
    ("LUT-2/3/4", &["LUT-2", "LUT-3", "LUT-4"]),
    ("LUT-5/6", &["LUT-5", "LUT-6"]),
    ("LUT-7/8", &["LUT-7", "LUT-8"]),
    ("LUT-9", &[]),
    ("LUT-10/12", &["LUT-10", "LUT-12"]),
    ("LUT-11, 13 to 19", &["LUT-11", "LUT-13", "LUT-14", "LUT-15", "LUT-16", "LUT-17", "LUT-18", "LUT-19"]),
    ("recycling", &["LUT-skb"]),
    ("FPGA-4", &[]),
    ("FPGA-A", &[]),
    ("FPGA-B", &[]),
    ("FPGA-C", &[]),
    ("FPGA-D", &[]),
    ("FPGA-E", &[]),
    ("FPGA-F", &[]),
    ("FPGA-5", &[]),
    ("FPGA-6", &[]),
    ("FPGA-LE", &[]),
    ("AFF-5", &[]),
    ("AFF-6", &[]),
    ("AFF-7/8", &["AFF-7", "AFF-8"]),
    ("AFF-9/10", &["AFF-9", "AFF-10"]),
    ("AFF-11/12/13", &["AFF-11", "AFF-12", "AFF-13"]),
];

/// The cells of the tables' rows below a heading, by the first.
fn rows(page: &str, heading: &str) -> BTreeMap<String, Vec<String>> {
    let below = page.split(&format!("## {heading}\n")).nth(1).expect("the heading");
    let table = below.split("\n## ").next().expect("a table");
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut found = BTreeMap::new();
    for line in table.lines().filter(|line| line.starts_with("| ")).skip(2) {
        let mut cells = cells(line);
        let name = cells.remove(0);
        assert!(found.insert(name.clone(), cells).is_none(), "{name} twice");
    }
    found
}

fn page() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("docs/results/papers.md")).expect("the page")
}

fn said(arguments: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_causeway")).args(arguments).output().expect("run");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

/// The figures that `causeway lab paper` measures where there are as many processors as it says, with that number.
fn measured() -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    for line in said(&["lab", "paper"]).lines() {
        let Some((what, _)) = line.split_once(" processors, ") else { continue };
        let Some((before, Ok(processors))) = what.rsplit_once('[').map(|(a, b)| (a, b.parse())) else {
            continue;
        };
        let more = before.split_once(" (with ").and_then(|(_, rest)| rest.split_once(')'));
        let more = more.map_or("", |(figures, _)| figures).split(", ").filter(|figure| !figure.is_empty());
        let figures = before.split_whitespace().take(1).chain(more);
        found.extend(figures.map(|figure| (figure.to_owned(), processors)));
    }
    found
}

/// The figures that `causeway model` has: the name of a line, and those that it has in brackets, `(Figs. 11 and 13 to 15)`;
/// of the cards the scenarios.
fn modelled() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in said(&["model"]).lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        found.insert(name.to_owned());
        if name == "cards" && line.contains("scenarios A to F") {
            found.extend(('A'..='F').map(|scenario| format!("FPGA-{scenario}")));
        }
        let Some((paper, (_, figures))) = name.split_once('-').map(|it| it.0).zip(line.split_once("(Figs. "))
        else {
            continue;
        };
        let (mut last, mut range) = (0, false);
        for word in figures.trim_end_matches(')').split([' ', ',']) {
            if let Ok(number) = word.parse::<u32>() {
                let first = if range { last + 1 } else { number };
                found.extend((first..=number).map(|number| format!("{paper}-{number}")));
                last = number;
            }
            range = word == "to";
        }
    }
    found
}

/// The figures that come of the card's Verilog: those that its page names, which `make fpga-experiments` writes, and the logic
/// elements if `make fpga-report` counts them.
fn simulated() -> BTreeSet<String> {
    let read = |path: &str| std::fs::read_to_string(Path::new(ROOT).join(path)).expect(path);
    let mut found = BTreeSet::new();
    for heading in read("docs/results/fpga-nic.md").lines().filter_map(|line| line.strip_prefix("## ")) {
        if heading.contains("scenarios A to F (paper section IV-B)") {
            found.extend(('A'..='F').map(|scenario| format!("FPGA-{scenario}")));
        }
        let figure = heading.split_once("(paper figure ").and_then(|(_, rest)| rest.split_once(')'));
        found.extend(figure.map(|(number, _)| format!("FPGA-{number}")));
    }
    if read("fpga/README.md").lines().any(|line| line.starts_with("Logic elements of `nic_pcix`: ")) {
        found.insert("FPGA-LE".to_owned());
    }
    found
}

/// How a cell says that so many figures of a row are there.
fn word(figures: &[&str], there: &BTreeSet<String>) -> &'static str {
    match figures.iter().filter(|figure| there.contains(**figure)).count() {
        0 => "no",
        some if some < figures.len() => "in part",
        _ => "yes",
    }
}

#[test]
fn every_system_has_a_line_that_says_where_it_is() {
    let page = page();
    let rows = rows(&page, "Systems");
    assert_eq!(rows.keys().map(String::as_str).collect::<BTreeSet<_>>(), SYSTEMS.into());
    for (name, cells) in &rows {
        for path in cells[1].split('`').filter(|word| word.contains('/')) {
            assert!(Path::new(ROOT).join(path).exists(), "{name}: there is no {path}");
        }
    }
}

#[test]
fn every_figure_has_a_line_that_says_what_the_programs_say() {
    let rows = rows(&page(), "Figures");
    let known: BTreeSet<&str> = EXPERIMENTS.iter().map(|(row, _)| *row).collect();
    assert_eq!(rows.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
    let (measured, modelled, simulated) = (measured(), modelled(), simulated());
    let here = measured.keys().cloned().collect();
    for (row, figures) in EXPERIMENTS {
        let own = [row];
        let figures = if figures.is_empty() { &own[..] } else { figures };
        let [_, in_lab, in_model, verilog, says] = &rows[row][..] else { panic!("{row} has other columns") };
        let processors = figures.iter().filter_map(|figure| measured.get(*figure)).max();
        let lab = match processors {
            Some(more) if *more > 2 => format!("on {more} processors"),
            _ => word(figures, &here).to_owned(),
        };
        assert_eq!(*in_lab, lab, "{row}, measured");
        assert_eq!(in_model, word(figures, &modelled), "{row}, modelled");
        assert_eq!(verilog, word(figures, &simulated), "{row}, Verilog");
        let some = [in_lab, in_model, verilog].iter().any(|cell| *cell == "yes");
        assert!(some || !says.is_empty(), "{row} is nowhere, and the page does not say why");
    }
}

/// `make papers` with a program in the place of this one, in a folder where some experiments have results.
#[test]
fn what_ended_early_is_measured_again_and_what_is_whole_is_not() {
    let folder = std::env::temp_dir().join(format!("causeway-make-papers-{}", std::process::id()));
    let results = folder.join("target/lab");
    std::fs::create_dir_all(&results).expect("a folder");
    let write = |path: &Path, text: &str| std::fs::write(path, text).expect("written");
    write(&folder.join("build"), "");
    write(
        &folder.join("program"),
        "#!/bin/sh\nif [ \"$3\" = --names ]; then echo A B C; else echo \"$*\"; fi\n",
    );
    write(
        &results.join("A.json"),
        "{\n  \"run\": {\"settings\": {\n    \"ended early\": \"interrupted\"\n}}}\n",
    );
    write(&results.join("B.json"), "{\n  \"command\": [\"ended early\"]\n}\n");
    let mut make = Command::new("make");
    make.args(["--silent", "--file"]).arg(Path::new(ROOT).canonicalize().expect("a path").join("mk/lab.mk"));
    let program = format!("CAUSEWAY=sh {}", folder.join("program").display());
    let out = make.args(["--assume-old=build", "papers", &program]).current_dir(&folder).output();
    let Ok(out) = out else { return eprintln!("skipped: there is no make") };
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let measured: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("lab paper ")).collect();
    assert_eq!(measured, ["A --output target/lab/A.json", "C --output target/lab/C.json"]);
    assert!(said.ends_with("lab pages target/lab --output docs/results\n"), "{said}");
    std::fs::remove_dir_all(&folder).expect("removed");
}
