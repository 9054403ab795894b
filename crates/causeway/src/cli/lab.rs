//! Arguments of `lab`.

use causeway_lab::network::Network;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// What the laboratory can be asked for.
#[derive(Subcommand)]
pub enum LabCommand {
    /// Measure devices one beside the other, between network namespaces: throughput, forwarding rate, loss, delay
    Run(LabRunArgs),
    /// Compare devices, as run does, or two files of results: an older one and a newer one
    Compare(LabCompareArgs),
    /// Measure an experiment of the papers; without a name: list those that are known
    Paper(LabPaperArgs),
    /// Write a page with pictures for each paper from the results of its experiments
    Pages(LabPagesArgs),
    /// Run a cluster between network namespaces: routers behind one that spreads packets over them, of which one fails
    Cluster(LabClusterArgs),
    /// Send test frames by an interface
    Transmit(LabTransmitArgs),
    /// Send the frames of a capture by an interface: at their own times, scaled, or as fast as it goes
    Replay(LabReplayArgs),
    /// Count the test frames that come by an interface
    Receive(LabReceiveArgs),
}

/// `lab run`.
#[derive(Args)]
pub struct LabRunArgs {
    /// Devices: kernel, causeway, driver, graph, click, or those of the description; the first is what the others are compared with
    #[arg(value_name = "DEVICE", default_values = ["kernel", "causeway"])]
    pub devices: Vec<String>,
    #[command(flatten)]
    pub how: LabDevicesArgs,
}

/// `lab compare`.
#[derive(Args)]
pub struct LabCompareArgs {
    /// Devices, or an older and a newer file of results
    #[arg(value_name = "DEVICE|FILE.json", required = true)]
    pub things: Vec<String>,
    /// With files: fail if anything is worse by more than this, such as -3%
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    pub fail_on: Option<f64>,
    #[command(flatten)]
    pub how: LabDevicesArgs,
}

/// How devices are measured.
#[derive(Args)]
pub struct LabDevicesArgs {
    /// A description of the test bed: ports, processors, devices, traffic (TOML)
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Lengths of frames in bytes, with the checksum, imix, csit-imix, or as in a description, such as
    /// 'sweep = { first = 64, last = 1518, step = 2 }' or, a genome of RFC 6985,
    /// 'mix = { genome = "7a4A1g", custom = { A = 594 } }'; commas between them; without any those of the
    /// description's streams, else 64, 512 and 1518, or with --conformant those of RFC 2544
    #[arg(long, value_name = "LENGTHS")]
    pub sizes: Vec<String>,
    /// Also on an interface of the description that carries the default route
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub trials: LabTrials,
    /// How often all is measured
    #[arg(long, default_value_t = 3)]
    pub repetitions: usize,
    /// Write the results to this file
    #[arg(short, long, value_name = "FILE", default_value = "lab.json")]
    pub output: PathBuf,
}

/// How long the tester's trials take.
#[derive(Args)]
#[group(multiple = false)]
pub struct LabTrials {
    /// Trials of a tenth of a second, for minutes in all; so it is if nothing is said
    #[arg(long)]
    pub quick: bool,
    /// Trials of 30 s, as in the papers
    #[arg(long)]
    pub paper: bool,
    /// Trials as long and as many as RFC 2544 and CSIT have them, for a day and more in all
    #[arg(long)]
    pub conformant: bool,
}

/// `lab paper`.
#[derive(Args)]
pub struct LabPaperArgs {
    /// Its name, such as OSR-4
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print the names of those that are measured
    #[arg(long, conflicts_with = "name")]
    pub names: bool,
    #[command(flatten)]
    pub trials: LabTrials,
    /// How often all is measured; five times in the papers
    #[arg(long, default_value_t = 5)]
    pub repetitions: usize,
    /// Measure only this one of its routers; may be said several times
    #[arg(long, value_name = "ROUTER", requires = "name")]
    pub only: Vec<String>,
    /// Write the results to this file instead of NAME.json
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `lab pages`.
#[derive(Args)]
pub struct LabPagesArgs {
    /// The folder that has OSR-4.json and so on
    #[arg(value_name = "FOLDER")]
    pub results: PathBuf,
    /// Write the pages into this folder
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    pub output: PathBuf,
}

/// `lab cluster`.
#[derive(Args)]
pub struct LabClusterArgs {
    /// What happens: steady, router (one is killed), silent (nodes hang), cable (it is pulled), drain; all of it without any
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// Nodes behind the router in front, 2 to 4
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub nodes: usize,
    /// The routing daemon: bird or frr
    #[arg(long, value_name = "NAME", default_value = "bird")]
    pub daemon: String,
    /// How the router in front chooses a node: hash-threshold or resilient; without it one after the other
    #[arg(long, value_name = "HOW")]
    pub hashing: Option<String>,
    /// Write the results to this file
    #[arg(short, long, value_name = "FILE", default_value = "cluster.json")]
    pub output: PathBuf,
}

/// `lab transmit`.
#[derive(Args)]
pub struct LabTransmitArgs {
    /// The interface
    #[arg(value_name = "IF")]
    pub interface: String,
    /// Ethernet address that frames go to
    #[arg(long, value_name = "MAC")]
    pub to: String,
    /// Frames a second; 0: as many as the interface takes
    #[arg(long, default_value_t = 1000.0)]
    pub rate: f64,
    /// How long, at most
    #[arg(long, value_parser = super::seconds, default_value = "1")]
    pub seconds: Duration,
    /// How many frames, at most
    #[arg(long, value_name = "FRAMES")]
    pub count: Option<u64>,
    /// Bytes of a frame, with the checksum
    #[arg(long, default_value_t = 64)]
    pub size: u32,
    /// Streams and their schedule (TOML), instead of frames of one length
    #[arg(long, value_name = "FILE")]
    pub traffic: Option<PathBuf>,
    /// Networks of the hosts that send, one of IPv4, of IPv6 or of each
    #[arg(
        long,
        value_name = "NETWORKS",
        value_delimiter = ',',
        default_values = ["198.18.0.0/18", "2001:2::/64"]
    )]
    pub source: Vec<Network>,
    /// Networks of the hosts that frames are for
    #[arg(
        long,
        value_name = "NETWORKS",
        value_delimiter = ',',
        default_values = ["198.18.64.0/18", "2001:2:0:1::/64"]
    )]
    pub destination: Vec<Network>,
    /// Kind of port: packet or afxdp
    #[arg(long, default_value = "packet")]
    pub method: String,
    /// One frame again and again, untouched, as fast as the interface takes it: what a generator is held to
    #[arg(long, hide = true, conflicts_with = "rate")]
    pub bare: bool,
    /// Also on the interface that carries the default route
    #[arg(long)]
    pub yes: bool,
}

/// `lab replay`.
#[derive(Args)]
pub struct LabReplayArgs {
    /// The interface
    #[arg(value_name = "IF")]
    pub interface: String,
    /// A capture, pcap or pcapng
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// So many times as fast as it was captured
    #[arg(long, default_value_t = 1.0, conflicts_with = "fast")]
    pub speed: f64,
    /// As fast as the interface takes the frames
    #[arg(long)]
    pub fast: bool,
    /// How many times
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub times: u32,
    /// Kind of port: packet or afxdp
    #[arg(long, default_value = "packet")]
    pub method: String,
    /// Also on the interface that carries the default route
    #[arg(long)]
    pub yes: bool,
}

/// `lab receive`.
#[derive(Args)]
pub struct LabReceiveArgs {
    /// The interface
    #[arg(value_name = "IF")]
    pub interface: String,
    /// How long
    #[arg(long, value_parser = super::seconds, default_value = "1")]
    pub seconds: Duration,
    /// Kind of port: packet or afxdp
    #[arg(long, default_value = "packet")]
    pub method: String,
    /// Also on the interface that carries the default route
    #[arg(long)]
    pub yes: bool,
}

/// A loss as a part: of -3% and 3%, 0.03.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().map(f64::abs);
    number
        .ok()
        .filter(|n| n.is_finite())
        .map(|n| n / 100.0)
        .ok_or_else(|| "a part in percent, such as -3%".to_owned())
}
