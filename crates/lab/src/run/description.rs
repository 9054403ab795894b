//! What stands between which ports, as a file says it.

use super::Side;
use crate::bed::Kind;
use anyhow::{Context, Result, ensure};
use causeway_results::traffic::{Sizes, Traffic};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What stands between which ports, as a file says it (TOML).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Description {
    /// Ports of the bed.
    pub ports: usize,
    /// How the tester opens its ports: `afxdp` or `packet`.
    pub method: String,
    /// Processors of the tester; any if empty.
    pub tester_processors: Vec<usize>,
    /// Processors of the device; any if empty.
    pub device_processors: Vec<usize>,
    /// The most frames a second that are offered, by all ports together.
    pub highest_fps: f64,
    /// Devices in a row, where that is more than one.
    pub chain: usize,
    /// Interfaces of this machine that are the ports, instead of those of a bed.
    #[serde(rename = "interface")]
    pub interfaces: Vec<Side>,
    /// Devices by name, beside kernel, causeway and click.
    #[serde(rename = "device")]
    pub devices: BTreeMap<String, Kind>,
    /// What is offered; streams without lengths have those that the run goes through, one after the other.
    pub traffic: Option<Traffic>,
    /// Whether all streams have lengths of their own.
    #[serde(skip)]
    pub has_lengths: bool,
    /// The text that it was read from, for the results.
    #[serde(skip)]
    pub text: String,
}

impl Default for Description {
    fn default() -> Description {
        Description {
            ports: 2,
            method: "afxdp".to_owned(),
            tester_processors: Vec::new(),
            device_processors: Vec::new(),
            highest_fps: 2e6,
            chain: 1,
            interfaces: Vec::new(),
            devices: BTreeMap::new(),
            traffic: None,
            has_lengths: false,
            text: String::new(),
        }
    }
}

impl Description {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn read(text: &str) -> Result<Description> {
        let mut description: Description = toml::from_str(text)?;
        text.clone_into(&mut description.text);
        ensure!(description.highest_fps > 0.0, "highest_fps is above zero");
        let Some(mut traffic) = description.traffic.clone() else { return Ok(description) };
        let given = lengths_given(text);
        description.has_lengths = given.iter().all(|&given| given) && !given.is_empty();
        for (stream, given_here) in traffic.streams.iter_mut().zip(&given) {
            ensure!(
                *given_here || !given.contains(&true),
                "stream '{}' has no size, and others have: a run takes those of all streams, or of none",
                stream.name
            );
            if !given_here {
                // The run looks at the streams with each of its lengths.
                stream.size = Sizes::Fixed(stream.family.shortest_frame());
            }
        }
        traffic.check()?;
        Ok(description)
    }

    /// Reads a file of one.
    ///
    /// # Errors
    /// That it cannot be read, and those of [`Self::read`].
    pub fn open(file: &Path) -> Result<Description> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Description::read(&text).with_context(|| file.display().to_string())
    }

    /// Gives tester and device processors of their own, half of `usable` each, where a bed has them run on any: a thread that
    /// waits for the other's turn is late by far more than a router takes.
    pub fn share(&mut self, usable: &[usize]) {
        let any = self.tester_processors.is_empty() && self.device_processors.is_empty();
        if any && self.interfaces.is_empty() && usable.len() > 1 {
            let (tester, device) = usable.split_at(usable.len() / 2);
            (self.tester_processors, self.device_processors) = (tester.to_vec(), device.to_vec());
        }
    }

    /// The device of a name.
    ///
    /// # Errors
    /// If there is none.
    pub fn device(&self, name: &str) -> Result<Kind> {
        self.devices.get(name).cloned().map_or_else(|| Kind::by_name(name), Ok)
    }
}

/// Of each stream of a description, whether it says which lengths its frames have. That they are as they are if nothing is
/// said is no answer.
fn lengths_given(text: &str) -> Vec<bool> {
    let table: toml::Table = text.parse().unwrap_or_default();
    let streams = table.get("traffic").and_then(|traffic| traffic.get("stream")?.as_array());
    streams.into_iter().flatten().map(|stream| stream.get("size").is_some()).collect()
}
