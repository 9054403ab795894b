//! What is asked of a running router.

#![allow(rustdoc::broken_intra_doc_links, reason = "brackets in the help are what users write")]

use super::seconds;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Which router is meant.
#[derive(Args)]
pub struct SocketArgs {
    /// Control socket of the router; needed only when several run in this network namespace
    #[arg(short, long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// `handlers`.
#[derive(Args)]
pub struct HandlersArgs {
    /// Element; the router's own handlers and all elements are listed without it
    pub element: Option<String>,
    /// Which router is meant
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// `stats`.
#[derive(Args)]
pub struct StatsArgs {
    /// Show it again every so many seconds, with rates
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    pub watch: Option<Duration>,
    /// Show it for programs, as JSON
    #[arg(long)]
    pub json: bool,
    /// Which router is meant
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// `capture`.
#[derive(Args)]
pub struct CaptureArgs {
    /// Edges: 'a [1] -> [0] b', 'a -> b', 'a [1]', '[0] b', or a for all that leave a; `causeway read edges` lists them
    #[arg(required = true, value_name = "EDGE")]
    pub edges: Vec<String>,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub write: PathBuf,
    /// Stop after so many packets
    #[arg(short, long, value_name = "N")]
    pub count: Option<u64>,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = seconds)]
    pub seconds: Duration,
    /// Copy so many bytes of each packet, instead of all
    #[arg(short = 'l', long, value_name = "BYTES")]
    pub snaplen: Option<usize>,
    /// Which router is meant
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// `trace`.
#[derive(Args)]
pub struct TraceArgs {
    /// How many packets
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(causeway_engine::MOST_TRACED)))]
    pub count: u16,
    /// Only packets that match this expression of IPClassifier, such as 'udp port 53 and dst 10.0.0.0/8'
    #[arg(short, long, value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Follow them from this edge on, instead of from where they enter the graph
    #[arg(long, value_name = "EDGE")]
    pub from: Option<String>,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub seconds: Duration,
    /// Print each step as a JSON object
    #[arg(long)]
    pub json: bool,
    /// Which router is meant
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// `metrics`.
#[derive(Args)]
pub struct MetricsArgs {
    /// Print it as OpenMetrics
    #[arg(long)]
    pub openmetrics: bool,
    /// Which router is meant
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// `read`.
#[derive(Args)]
pub struct ReadArgs {
    /// Handler, as ELEMENT.NAME or NAME
    pub handler: String,
    /// Its parameters
    pub arguments: Vec<String>,
    /// Which router is meant
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// `write`.
#[derive(Args)]
pub struct WriteArgs {
    /// Handler, as ELEMENT.NAME or NAME
    pub handler: String,
    /// The value; - reads it from standard input
    pub value: Vec<String>,
    /// Which router is meant
    #[command(flatten)]
    pub socket: SocketArgs,
}
