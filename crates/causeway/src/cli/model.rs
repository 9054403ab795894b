//! Arguments of `model`.

use clap::Args;
use std::path::PathBuf;

/// `model`.
#[derive(Args)]
pub struct ModelArgs {
    /// A figure, such as OSR-4, or all; without it, or with list: list those that are known
    #[arg(value_name = "FIGURE")]
    pub figure: Option<String>,
    /// Model this machine (TOML) instead of the paper's
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// What is random follows from it: same seed, same numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Say for every point what is saturated, where the processor's time goes, and where the losses are
    #[arg(long)]
    pub why: bool,
    /// Follow the packet of this number through the machine, at both ends of each curve
    #[arg(long, value_name = "NUMBER")]
    pub packet: Option<u64>,
    /// Write the results into this folder: model-FIGURE.json, .csv and .html
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}
