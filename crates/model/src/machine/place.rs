//! Where something stands in a machine's file, for what is said of it.

use anyhow::{Result, anyhow};
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

/// What a text that is called `name` says; where it says something else, the line and what is allowed there.
pub(crate) fn from_toml<T: DeserializeOwned>(text: &str, name: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line(text, span.start));
        anyhow!("{name}, line {line}: {}: {}", excerpt(text, line), error.message())
    })
}

/// The number of the line at a place of a text, from 1.
pub(crate) fn line(text: &str, place: usize) -> usize {
    text.bytes().take(place).filter(|byte| *byte == b'\n').count() + 1
}

/// The key that a line has, or all of it.
fn excerpt(text: &str, line: usize) -> &str {
    let whole = text.lines().nth(line - 1).unwrap_or_default();
    whole.split('=').next().unwrap_or_default().trim()
}

/// The line of a key within others, or of the last of those that is there.
pub(crate) fn line_of(text: &str, keys: &[&str]) -> usize {
    let Ok(whole) = DeTable::parse(text) else { return 1 };
    let (mut place, mut table) = (0, Some(whole.get_ref()));
    for wanted in keys {
        let found = table.and_then(|table| table.iter().find(|(key, _)| key.get_ref() == wanted));
        let Some((key, value)) = found else { break };
        place = key.span().start;
        table = value.get_ref().as_table();
    }
    line(text, place)
}

/// The texts that stand under a key, wherever, in the order of the file, each with its line.
pub(super) fn all_under(text: &str, wanted: &str) -> Vec<(usize, String)> {
    let Ok(whole) = DeTable::parse(text) else { return Vec::new() };
    let (mut found, mut left) = (Vec::new(), vec![whole.get_ref()]);
    while let Some(table) = left.pop() {
        for (key, value) in table {
            match value.get_ref() {
                DeValue::String(said) if key.get_ref() == wanted => {
                    found.push((key.span().start, said.to_string()));
                }
                DeValue::Table(inner) => left.push(inner),
                _ => {}
            }
        }
    }
    found.sort();
    found.into_iter().map(|(place, said)| (line(text, place), said)).collect()
}
