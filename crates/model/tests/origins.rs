//! Where the values of all machines come from, as docs/model.md counts them.

use std::path::Path;
use toml::Value;

const ORIGINS: [&str; 4] = ["given", "literature", "calibrated", "assumed"];

/// Of each value: its origin, as a number, and what the file says of it.
fn origins(value: &Value) -> Vec<(usize, String)> {
    let inner: Vec<&Value> = match value {
        Value::Table(table) if table.contains_key("value") => {
            let of = |(n, key): (usize, &&str)| Some((n, table.get(*key)?.as_str()?.to_owned()));
            return ORIGINS.iter().enumerate().filter_map(of).collect();
        }
        Value::Table(table) => table.values().collect(),
        Value::Array(array) => array.iter().collect(),
        _ => Vec::new(),
    };
    inner.into_iter().flat_map(origins).collect()
}

#[test]
fn the_page_counts_the_values_of_each_machine_by_their_origin() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/model.md")).expect("the page");
    let mut files: Vec<_> = std::fs::read_dir(root.join("machines"))
        .expect("machines")
        .map(|e| e.expect("a file").path())
        .collect();
    files.sort();
    for file in &files {
        let name = file.file_name().expect("a name").to_string_lossy();
        let text = std::fs::read_to_string(file).expect("text");
        let table: Value = toml::from_str(&text).expect("right");
        let all = origins(&table);
        assert!(all.iter().all(|(_, what)| !what.is_empty()), "{name}: an origin without words");
        let count = |origin: usize| all.iter().filter(|(n, _)| *n == origin).count();
        let elsewhere = all.iter().filter(|(n, what)| *n == 1 && what.contains("calibrated there")).count();
        let row = format!(
            "| `{name}` | {} | {} | {elsewhere} | {} | {} |",
            count(0),
            count(1) - elsewhere,
            count(2),
            count(3)
        );
        assert!(page.lines().any(|line| line == row), "docs/model.md does not have: {row}");
    }
    assert_eq!(files.len(), 10, "a row for each, and no more");
    assert_eq!(page.lines().filter(|line| line.starts_with("| `") && line.contains(".toml` |")).count(), 10);
}
