//! The command line.

mod clients;
mod lab;
mod model;
mod tools;

pub use clients::*;
pub use lab::*;
pub use model::*;
pub use tools::*;

use crate::mask::Mask;
use anyhow::Result;
use causeway_engine::Names;
use causeway_engine::reception::Mechanism;
use causeway_engine::value::{BytesPerSecond, Value};
use causeway_packet::pool;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A software router: Click graphs over AF_XDP, beside the kernel's own stack.
#[derive(Parser)]
#[command(name = "causeway", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What can be asked for.
#[derive(Subcommand)]
pub enum Command {
    /// Run a configuration
    Run(RunArgs),
    /// Forward between interfaces by the kernel's routes, beside the kernel
    Up(UpArgs),
    /// Have a new process of this binary take the place of the router that runs, without losing a packet
    Upgrade(UpgradeArgs),
    /// Undo what killed routers left behind, and say what this machine lacks for `up`, and the command that mends it
    Doctor(DoctorArgs),
    /// Check a configuration without running it
    Check(CheckArgs),
    /// Draw a configuration's graph as SVG or DOT
    Graph(GraphArgs),
    /// Replace compound elements by their members (click-flatten)
    Flatten(FlattenArgs),
    /// Show a configuration as a page of HTML (click-pretty)
    Pretty(PrettyArgs),
    /// Remove elements that no packet passes (click-undead)
    Undead(UndeadArgs),
    /// Replace patterns of elements by others (click-xform)
    Xform(XformArgs),
    /// Join routers at their devices (click-combine)
    Combine(CombineArgs),
    /// Take a router out of joined ones (click-uncombine)
    Uncombine(UncombineArgs),
    /// Write the configuration as it is, because nothing needs alignment (click-align)
    Align(AlignArgs),
    /// Show the element reference
    Elements(ElementsArgs),
    /// Write a configuration to begin with
    New {
        /// What it is to do
        #[command(subcommand)]
        what: NewCommand,
    },
    /// Begin a new element class in a checkout of the sources
    NewElement(NewElementArgs),
    /// List the handlers of a running router
    Handlers(HandlersArgs),
    /// Read a handler of a running router
    Read(ReadArgs),
    /// Write a handler of a running router
    Write(WriteArgs),
    /// Show what a running router counts, by interface and element
    Stats(StatsArgs),
    /// Copy the packets on edges of a running router's graph into a pcapng file
    Capture(CaptureArgs),
    /// Follow the next packets on their way through a running router's graph, to where each ends and why
    Trace(TraceArgs),
    /// Print what a running router counts and measures in the text format of Prometheus
    Metrics(MetricsArgs),
    /// Measure the router on this machine
    Bench(BenchArgs),
    /// Test routers as a router tester does
    #[command(subcommand)]
    Lab(LabCommand),
    /// Model the papers' machines: their figures, beside the papers' numbers, and why they are so
    Model(ModelArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff)
    Man,
}

/// Where a configuration comes from.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct SourceArgs {
    /// Configuration file; - is standard input
    pub file: Option<PathBuf>,
    /// Take TEXT as the configuration
    #[arg(short = 'e', long, value_name = "TEXT")]
    pub expression: Option<String>,
}

/// `run`.
#[derive(Args)]
pub struct RunArgs {
    /// Where the configuration comes from
    #[command(flatten)]
    pub source: SourceArgs,
    /// Define $NAME for the configuration
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = definition)]
    pub define: Vec<(String, String)>,
    /// Replace the patterns of FILE by their replacements, as xform does; may be repeated
    #[arg(long, value_name = "FILE")]
    pub patterns: Vec<PathBuf>,
    /// Run in the driver what of the graph can be there; the rest, and what that gives up, runs above. New, and off by
    /// default
    #[arg(long)]
    pub driver: bool,
    /// Take each packet from the general allocator and give it back there, instead of using its memory again for the next:
    /// to measure what that is worth. Not with ports over AF_XDP, whose frames are the pool's
    #[arg(long, conflicts_with_all = ["driver", "frames"])]
    pub no_recycling: bool,
    /// How it runs
    #[command(flatten)]
    pub runtime: RuntimeArgs,
}

/// How a router runs.
#[derive(Args)]
pub struct RuntimeArgs {
    /// Run a copy of the graph on each of N workers, a queue of every port each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Pin the workers to these processors, in turn, or let the kernel move them: any. Without it each has one with little to do
    #[arg(long, value_name = "LIST|any", value_parser = processors)]
    pub processors: Option<Processors>,
    /// Name of the control socket and of the shared counters; without it router, or the next free of router-2, ...
    #[arg(long, value_parser = router_name)]
    pub name: Option<String>,
    /// Path of the control socket, instead of one made from the name
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Serve metrics over HTTP at this address, such as 127.0.0.1:9464, under /metrics
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_and_port)]
    pub metrics: Option<SocketAddr>,
    /// How ports learn of packets that do not say: interrupt, moderated, napi, disable-enable, polling
    #[arg(long, value_name = "MECHANISM", default_value = "napi", value_parser = mechanism)]
    pub reception: String,
    /// Packets that NAPI takes from one port in a turn
    #[arg(long, default_value_t = causeway_engine::reception::DEFAULT_QUOTA)]
    pub quota: u32,
    /// Packets that NAPI takes from all ports of a worker in a run
    #[arg(long, default_value_t = causeway_engine::reception::DEFAULT_BUDGET)]
    pub budget: usize,
    /// Microseconds for which a worker without work looks for some before it sleeps; without this as long as it has paid
    /// lately, at most 50
    #[arg(long, value_name = "MICROSECONDS")]
    pub spin: Option<u32>,
    /// Frames in the pool, instead of as many as the queues of the ports need
    #[arg(long)]
    pub frames: Option<u32>,
    /// Bytes a frame: a power of two from 2048 to 32768; ports of AF_XDP take no more than 4096
    #[arg(long, value_name = "BYTES", default_value_t = 2048, value_parser = frame_size)]
    pub frame_size: u32,
    /// Run the graph as it is written, without fusing elements
    #[arg(long)]
    pub plain: bool,
}

/// `up`.
#[derive(Args)]
pub struct UpArgs {
    /// Interfaces to forward between; the kernel keeps them
    #[arg(required = true, value_name = "IF")]
    pub interfaces: Vec<String>,
    /// Print the graph and exit
    #[arg(long)]
    pub print: bool,
    /// Attach to all of them here, instead of where it suits each
    #[arg(long, value_enum, value_name = "WHERE")]
    pub attach: Option<Attach>,
    /// Forward in the driver what needs no graph, or at tcx in the stack: packets in transit. New, and off by default
    #[arg(long)]
    pub driver: bool,
    /// In the driver: ask the kernel about at least one packet in so many whether it would do the same
    #[arg(
        long, value_name = "N", default_value_t = 1_000, requires = "driver",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub check_every: u32,
    /// Packets of the high class, which go before all others where a way out is full, such as 'tos 0xb8/0xfc, dst 192.0.2.0/24,
    /// proto 17'; may be repeated
    #[arg(long, value_name = "MASK", value_parser = Mask::parse)]
    pub high: Vec<Mask>,
    /// With --high: the speed of a link, such as eth1=100Mbps, if that is another than its interface says. No more is sent
    #[arg(long, value_name = "IF=BANDWIDTH", requires = "high", value_parser = link_speed)]
    pub link_speed: Vec<(String, BytesPerSecond)>,
    /// With --high and --driver: as long as less than so many percent of a link's speed are used, the driver forwards
    #[arg(
        long, value_name = "PERCENT", default_value_t = 80, requires_all = ["high", "driver"],
        value_parser = clap::value_parser!(u8).range(1..=100)
    )]
    pub driver_share: u8,
    /// Start although packets would pass by rules that the kernel applies
    #[arg(long)]
    pub force: bool,
    /// Say what would be attached where and what stands against it, and exit
    #[arg(long)]
    pub dry_run: bool,
    /// Take the place of the router of this --name, which runs, without losing a packet: what `upgrade` does
    #[arg(long, requires = "name")]
    pub take_over: bool,
    /// How it runs
    #[command(flatten)]
    pub runtime: RuntimeArgs,
}

/// `upgrade`.
#[derive(Args)]
pub struct UpgradeArgs {
    /// Name of the router; needed only when several run in this network namespace
    #[arg(long)]
    pub name: Option<String>,
    /// Arguments for `up`, instead of those that the router was started with
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,
}

/// The arguments of `up` in a command line of this program.
///
/// # Errors
/// It is wrong, as this version takes it, or no `up`.
pub fn up_args(line: &[String]) -> Result<UpArgs> {
    match Cli::try_parse_from(line)?.command {
        Command::Up(args) => Ok(args),
        _ => anyhow::bail!("only the place of a router that `causeway up` started can be taken"),
    }
}

/// Where a router attaches to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Attach {
    /// In the driver, before the kernel's stack: forwards
    Xdp,
    /// In the stack: harms no offload of virtual interfaces. With --driver it forwards there, else packets are the kernel's
    Tcx,
}

/// `doctor`.
#[derive(Args)]
pub struct DoctorArgs {
    /// Interfaces to look at; all that could be ports without it
    #[arg(value_name = "IF")]
    pub interfaces: Vec<String>,
    /// Look at all of them as `up` with the same option would attach
    #[arg(long, value_enum, value_name = "WHERE")]
    pub attach: Option<Attach>,
    /// Look at all of them as `up` with the same option would forward
    #[arg(long)]
    pub driver: bool,
    /// Print one JSON object: verdict, exit_status, attach and checks
    #[arg(long)]
    pub json: bool,
}

/// `check`.
#[derive(Args)]
pub struct CheckArgs {
    /// Where the configuration comes from
    #[command(flatten)]
    pub source: SourceArgs,
    /// Define $NAME for the configuration
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = definition)]
    pub define: Vec<(String, String)>,
    /// Replace the patterns of FILE by their replacements, as xform does; may be repeated
    #[arg(long, value_name = "FILE")]
    pub patterns: Vec<PathBuf>,
    /// Print the graph after expansion of compounds
    #[arg(long)]
    pub flat: bool,
    /// Say what the optimiser does
    #[arg(long)]
    pub explain: bool,
}

/// `graph`.
#[derive(Args)]
pub struct GraphArgs {
    /// Where the configuration comes from
    #[command(flatten)]
    pub source: SourceArgs,
    /// Define $NAME for the configuration
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = definition)]
    pub define: Vec<(String, String)>,
    /// Colour the elements that `run --driver` has in the driver
    #[arg(long)]
    pub driver: bool,
    /// Format
    #[arg(long, value_enum, default_value = "svg")]
    pub format: GraphFormat,
    /// Draw the graph of a running router, with the packets a second on its edges, counted over so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds, group = "SourceArgs")]
    pub live: Option<Duration>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Which router is meant
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// Formats of `graph`.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GraphFormat {
    /// A picture
    Svg,
    /// For Graphviz
    Dot,
}

/// `elements`.
#[derive(Args)]
pub struct ElementsArgs {
    /// Class to describe; all are listed without it, with what each is beside Click's of the same name: same, more, differs,
    /// or own where Click has none
    #[arg(conflicts_with = "search")]
    pub name: Option<String>,
    /// List the classes that have WORD in their names, summaries, arguments or documentation
    #[arg(long, value_name = "WORD")]
    pub search: Option<String>,
    /// Write the whole reference as Markdown into this folder
    #[arg(long, value_name = "DIR")]
    pub markdown: Option<PathBuf>,
}

/// `new-element`.
#[derive(Args)]
pub struct NewElementArgs {
    /// Name of the class, such as CheckLength
    pub name: String,
    /// Its subject, a folder of crates/elements/src
    #[arg(long = "in", value_name = "FOLDER", default_value = "basic")]
    pub folder: String,
}

/// `bench`.
#[derive(Args)]
pub struct BenchArgs {
    /// Benchmarks to run: memory, nat, middleboxes, veth, routes, latency, tcp, lut; all but lut by default
    pub parts: Vec<String>,
    /// Seconds of each round
    #[arg(long, default_value_t = 0.4)]
    pub seconds: f64,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Processor to pin the measured worker to
    #[arg(long, default_value_t = 0)]
    pub processor: usize,
    /// Measure the graphs of nat and middleboxes in this program of Click too, beside this one, with packets from a file
    #[arg(long, value_name = "PROGRAM")]
    pub click: Option<PathBuf>,
    /// Write the results to this file
    #[arg(short, long, value_name = "FILE", default_value = "bench.json")]
    pub output: PathBuf,
}

fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    let good = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if good { Ok((name.to_owned(), value.to_owned())) } else { Err(format!("'{name}' is not a name")) }
}

fn address_and_port(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "an address and a port are wanted, such as 127.0.0.1:9464 or [::1]:9464".to_owned())
}

fn mechanism(text: &str) -> Result<String, String> {
    let known = Mechanism::NAMES.contains(&text);
    if known { Ok(text.to_owned()) } else { Err(format!("they are {}", Mechanism::NAMES.join(", "))) }
}

fn frame_size(text: &str) -> Result<u32, String> {
    let good = text.parse().ok().filter(|&bytes| pool::is_frame_size(bytes));
    good.ok_or_else(|| format!("a power of two from {} to {}", pool::LEAST_FRAME, pool::MOST_FRAME))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let good = text.parse::<f64>().ok().filter(|s| (0.05..=86_400.0).contains(s));
    good.map(Duration::from_secs_f64).ok_or_else(|| "a number of seconds, from 0.05 on".to_owned())
}

/// Where the workers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processors {
    /// Where the kernel puts them.
    Any,
    /// On these, in turn.
    These(Vec<usize>),
}

fn processors(text: &str) -> Result<Processors, String> {
    if text == "any" {
        return Ok(Processors::Any);
    }
    let list: Result<_, _> = text.split(',').map(|number| number.trim().parse()).collect();
    list.map(Processors::These).map_err(|_| "'any', or numbers of processors such as 2,3".to_owned())
}

/// Reads the speed of a link, `INTERFACE=BANDWIDTH`, the latter as the element BandwidthShaper does.
pub fn link_speed(text: &str) -> Result<(String, BytesPerSecond), String> {
    let parts = text.rsplit_once('=').filter(|(interface, _)| !interface.is_empty());
    let (interface, bandwidth) = parts.ok_or("write it as INTERFACE=BANDWIDTH, such as eth1=100Mbps")?;
    let names = Names::default();
    let speed = BytesPerSecond::parse(bandwidth, &names.scope(""));
    match speed.map_err(|_| format!("'{bandwidth}' is no bandwidth, such as 100Mbps or 2.5Gbps"))? {
        BytesPerSecond(0) => Err(format!("'{bandwidth}' lets nothing pass")),
        speed => Ok((interface.to_owned(), speed)),
    }
}

fn router_name(text: &str) -> Result<String, String> {
    let good = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if good && !text.starts_with('.') {
        Ok(text.to_owned())
    } else {
        Err("a name is letters, digits, '-', '_' and '.'".to_owned())
    }
}

/// What the exit status says.
pub const EXIT_STATUS: [(&str, &str); 4] = [
    ("0", "done; of doctor: up has what it needs"),
    (
        "1",
        "failed; of run and up: a worker failed, or something could not be written into a file; of doctor: something is missing that up needs; of lab compare: something became worse; of model calibrate: a prediction missed what it promises",
    ),
    ("2", "the command line is wrong"),
    (
        "3",
        "of up: refused, because the kernel does to packets what the router would not; of doctor: up would be",
    ),
];

/// The command line, with what the exit status says at the end of each help.
fn command() -> clap::Command {
    let lines = EXIT_STATUS.map(|(status, meaning)| format!("\n  {status}  {meaning}")).concat();
    let text = format!("Exit status:{lines}");
    Cli::command().after_help(text.clone()).mut_subcommands(move |c| c.after_help(text.clone()))
}

/// What the command line asks for. Ends the process if it is wrong, or asks for help.
pub fn parse() -> Command {
    Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|e| e.exit()).command
}

/// The whole command line, for who writes it down.
pub fn whole() -> clap::Command {
    Cli::command()
}
