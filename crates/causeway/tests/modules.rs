//! Whether the modules of each crate stand above and below each other, but for the circles that `docs/architecture.md` owns
//! up to. A module is a file or folder right below `src`; one uses another if a path in it, outside its tests, leads there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

type Names = BTreeSet<String>;

/// The files of a folder and those below.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

/// A file's path below `src`, without extension.
fn path_of(file: &Path, src: &Path) -> Vec<String> {
    let below = file.strip_prefix(src).expect("below").with_extension("");
    below.iter().map(|part| part.to_string_lossy().into_owned()).collect()
}

/// The text without comments, and without the tests at its end.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).expect("a text");
    let text = text.split("\nmod tests {").next().expect("a first part");
    text.lines().map(|line| line.split("//").next().expect("a first part")).collect::<Vec<_>>().join("\n")
}

/// The first names of the paths that `text` begins with: one, or those between braces.
fn first_names(text: &str) -> Vec<&str> {
    let name = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(group) = text.strip_prefix('{') else { return vec![&text[..name(text)]] };
    let (mut names, mut depth, mut begins) = (Vec::new(), 1, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' => begins = depth == 1,
            c if begins && !c.is_whitespace() => {
                names.push(&group[at..at + name(&group[at..])]);
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// What the crate's root gives on, and of which module it is.
fn given_on(root: &str) -> BTreeMap<&str, &str> {
    let uses = root.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()?.split_once("::"));
    uses.flat_map(|(module, path)| {
        let items = path.find('{').map_or_else(|| path.rsplit("::").next(), |at| path.get(at..));
        first_names(items.expect("a last part")).into_iter().map(move |item| (item, module))
    })
    .collect()
}

/// Which module uses which.
fn arrows(src: &Path) -> BTreeMap<String, Names> {
    let all: Vec<_> =
        files(src).into_iter().filter(|file| file.extension().is_some_and(|e| e == "rs")).collect();
    let paths: Vec<Vec<String>> = all.iter().map(|file| path_of(file, src)).collect();
    let is_root = |path: &[String]| path.len() == 1 && ["lib", "main"].contains(&path[0].as_str());
    let modules: Names = paths.iter().filter(|path| !is_root(path)).map(|path| path[0].clone()).collect();
    let roots: String =
        all.iter().zip(&paths).filter(|(_, path)| is_root(path)).map(|(file, _)| code(file)).collect();
    let given_on = given_on(&roots);
    let mut found: BTreeMap<String, Names> = BTreeMap::new();
    for (file, path) in all.iter().zip(&paths).filter(|(_, path)| !is_root(path)) {
        if path.iter().any(|part| part == "tests") {
            continue;
        }
        let code = code(file);
        // As many steps up as there are modules around the file lead to the root.
        let up = "super::".repeat(path.len() - usize::from(path.last().is_some_and(|last| last == "mod")));
        let ends = |before: &str| !before.ends_with(|c: char| c.is_alphanumeric() || "_$:".contains(c));
        for way in ["crate::", up.as_str()] {
            for (at, _) in code.match_indices(way).filter(|(at, _)| ends(&code[..*at])) {
                for name in first_names(&code[at + way.len()..]) {
                    let module =
                        if modules.contains(name) { name } else { given_on.get(name).copied().unwrap_or("") };
                    if modules.contains(module) && module != path[0] {
                        found.entry(path[0].clone()).or_default().insert(module.to_owned());
                    }
                }
            }
        }
    }
    found
}

/// All that can be reached from `start`.
fn reached<'a>(arrows: &'a BTreeMap<String, Names>, start: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut todo) = (BTreeSet::new(), vec![start]);
    while let Some(module) = todo.pop() {
        for next in arrows.get(module).into_iter().flatten() {
            if seen.insert(next.as_str()) {
                todo.push(next);
            }
        }
    }
    seen
}

/// The sets of modules each of which can be reached from all others of the set.
fn circles(arrows: &BTreeMap<String, Names>) -> BTreeSet<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|module| (module.as_str(), reached(arrows, module))).collect();
    let returns = |from: &str, to: &str| reached.get(from).is_some_and(|seen| seen.contains(to));
    let around = |module: &&str| -> Vec<&str> {
        reached[module].iter().copied().filter(|other| returns(other, module)).collect()
    };
    reached.keys().map(around).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn modules_of_a_crate_go_round_in_the_circles_that_are_told_and_in_no_other() {
    let page = std::fs::read_to_string(Path::new(ROOT).join("docs/architecture.md")).expect("the page");
    let block = page.split("```circles\n").nth(1).and_then(|rest| rest.split("```").next()).expect("circles");
    let told: BTreeSet<String> =
        block.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(Path::new(ROOT).join("crates")).expect("the crates") {
        let folder = entry.expect("an entry").path();
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let arrows = arrows(&folder.join("src"));
        found.extend(circles(&arrows).iter().map(|circle| format!("{name} {}", circle.join(" "))));
    }
    assert_eq!(found, told);
}
