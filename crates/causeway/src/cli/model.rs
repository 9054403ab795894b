//! Arguments of `model`.

use super::definition;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `model`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ModelArgs {
    /// What is not a paper's figure
    #[command(subcommand)]
    pub action: Option<ModelAction>,
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

/// Models of machines that can be had.
#[derive(Subcommand)]
pub enum ModelAction {
    /// What a machine of today will do, what of it goes first, and what one more of anything buys
    WhatIf(WhatIfArgs),
    /// One to 64 machines behind a router that spreads packets, or in several stages, and what a failure costs
    ScaleOut(ScaleOutArgs),
    /// This machine: what a few of the laboratory's numbers say of all others, and whether it is so
    Calibrate(CalibrateArgs),
    /// FPGA's own cards, which route by themselves: scenarios A to F, and 2 to 8 of them, on both buses
    Cards(CardsArgs),
}

/// `model cards`.
#[derive(Args)]
pub struct CardsArgs {
    /// What is random follows from it: same seed, same numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the results into this folder: model-cards.json, .csv and .html
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}

/// `model calibrate`.
#[derive(Args)]
pub struct CalibrateArgs {
    /// Results of an earlier run (model-lab.json); without it, measure now, as root
    #[arg(value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// Predict by this machine's file instead of calibrating one
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// The device runs on this processor, and the thread that is woken; the tester has the others
    #[arg(long, default_value_t = 1)]
    pub processor: usize,
    /// How often each point is measured; two modes can be told from five on
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub repetitions: u16,
    /// What is random in the simulation follows from it: same seed, same numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Say for every point where the time of both processors goes
    #[arg(long)]
    pub why: bool,
    /// Follow the frame of this number, from 0, at each point of the shortest frames
    #[arg(long, value_name = "NUMBER")]
    pub packet: Option<u64>,
    /// Write into this folder: this-machine.toml, model-calibrate.json, .csv, .html and pictures, and model-lab.json if it was measured
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}

/// `model what-if`.
#[derive(Args)]
pub struct WhatIfArgs {
    /// A file (TOML), or a machine that is ready: board-2x1g, server-2x25g, server-2x100g
    #[arg(value_name = "FILE")]
    pub plan: String,
    /// Print the file of a machine that is ready, to change a copy of it; or `elements`: what elements cost
    #[arg(long)]
    pub print: bool,
    /// Have its cores run this graph instead of the file's mechanism: the live router's scheduler and elements, in simulated time
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,
    /// Define $NAME for the graph
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = definition, requires = "graph")]
    pub define: Vec<(String, String)>,
    /// What is random follows from it: same seed, same numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Follow the frame of this number, from 0, through the machine as planned and at parts of what it forwards
    #[arg(long, value_name = "NUMBER")]
    pub packet: Option<u64>,
    /// Write the results into this folder: model-what-if-NAME.json, .csv and .html
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}

/// `model scale-out`.
#[derive(Args)]
pub struct ScaleOutArgs {
    /// Millions of frames a second that a node forwards
    #[arg(long, value_name = "MPPS", default_value_t = 10.0)]
    pub node: f64,
    /// Millions of frames a second that the router in front handles, or each front end
    #[arg(long, value_name = "MPPS", default_value_t = 100.0)]
    pub front: f64,
    /// Flows
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub flows: u32,
    /// What is random follows from it: same seed, same numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the results into this folder: model-scale-out.json, .csv and .html
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}
