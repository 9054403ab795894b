//! What element classes cost: a file for all machines, of which a machine's own may say otherwise.

use super::super::machine::ElementValues;
use crate::machine::from_toml;
use anyhow::Result;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What the file is called where one asks for it.
pub const NAME: &str = "elements";
/// The file.
pub const TEXT: &str = include_str!("../../../machines/elements.toml");

/// Costs, by class.
pub type Costs = BTreeMap<String, ElementValues>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    element: Costs,
}

/// What elements cost on a machine that says this of some of them.
///
/// # Errors
///
/// None, or the program was built with a file that is wrong.
pub fn of(machine: &Costs) -> Result<Costs> {
    let File { element: mut costs } = from_toml(TEXT, "elements.toml")?;
    costs.extend(machine.iter().map(|(class, values)| (class.clone(), values.clone())));
    Ok(costs)
}
