//! Whether `docs/architecture.md` is true: its arrows, its files, its tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn page() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("docs/architecture.md")).expect("the page")
}

/// A crate's dependency that is not for tests alone.
struct Dependency {
    of: String,
    on: String,
    features: Vec<String>,
}

/// Names of crates without `causeway-`.
fn short(name: &serde_json::Value) -> String {
    let name = name.as_str().expect("a name");
    name.strip_prefix("causeway-").unwrap_or(name).to_owned()
}

/// All crates of the workspace, and what they use of it.
fn workspace() -> (Vec<String>, Vec<Dependency>) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(ROOT);
    let output = cargo.output().expect("cargo");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let array = |value: &serde_json::Value| value.as_array().expect("an array").clone();
    let packages = array(&metadata["packages"]);
    let names = packages.iter().map(|p| short(&p["name"])).collect();
    let mut found = Vec::new();
    for package in &packages {
        let all = array(&package["dependencies"]);
        for dependency in all.iter().filter(|d| d["kind"] != "dev" && !d["path"].is_null()) {
            let features = array(&dependency["features"]);
            let features = features.iter().filter_map(|f| f.as_str().map(str::to_owned)).collect();
            found.push(Dependency { of: short(&package["name"]), on: short(&dependency["name"]), features });
        }
    }
    (names, found)
}

#[test]
fn arrows_are_those_of_the_manifests_and_point_to_what_is_above() {
    let page = page();
    let block = page.split("```arrows\n").nth(1).and_then(|rest| rest.split("```").next()).expect("arrows");
    let mut told: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in block.lines() {
        let (of, on) = line.split_once("->").unwrap_or_else(|| panic!("'{line}' has no arrow"));
        let mut on: Vec<&str> = on.split_whitespace().collect();
        on.sort_unstable();
        assert_eq!(on.iter().find(|known| !told.contains_key(**known)), None, "of {of}: not above it");
        told.insert(of.trim(), on);
    }
    let (names, dependencies) = workspace();
    for name in &names {
        let mut on: Vec<&str> =
            dependencies.iter().filter(|d| d.of == *name).map(|d| d.on.as_str()).collect();
        on.sort_unstable();
        assert_eq!(told.remove(name.as_str()), Some(on), "what {name} uses, told and true");
    }
    assert!(told.is_empty(), "there is no {told:?}");
}

#[test]
fn the_bench_of_tables_alone_asks_for_rivals() {
    let (_, dependencies) = workspace();
    let asks = dependencies.iter().filter(|d| d.features.iter().any(|feature| feature == "rivals"));
    assert_eq!(asks.map(|d| d.of.as_str()).collect::<Vec<_>>(), ["fib-bench"]);
}

#[test]
fn files_and_tests_that_are_named_exist() {
    let page = page();
    let mut tests = 0;
    let folders = ["crates/", "fpga/", "fuzz/", "docs/", "conf/", "demo/"];
    // What is between backticks, outside blocks.
    let blocks = page.split("```").step_by(2);
    let named = blocks.flat_map(|text| text.split('`').skip(1).step_by(2));
    for name in named.filter(|name| folders.iter().any(|folder| name.starts_with(folder))) {
        let (path, test) = name.split_once("::").map_or((name, None), |(path, test)| (path, Some(test)));
        let file = Path::new(ROOT).join(path);
        assert!(file.exists(), "there is no {path}");
        let Some(test) = test else { continue };
        let text = std::fs::read_to_string(&file).expect("a text");
        let (before, _) =
            text.split_once(&format!("fn {test}(")).unwrap_or_else(|| panic!("there is no {name}"));
        let attributes = before.rsplit("\n\n").next().expect("the last part");
        assert!(
            attributes.contains("#[test]") && !attributes.contains("#[ignore"),
            "{name} is no test that runs"
        );
        tests += 1;
    }
    assert!(tests >= 12, "only {tests} invariants have a test");
}
