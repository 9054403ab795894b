//! The command line.

use crate::Result;
use std::path::PathBuf;

/// What `--help` prints.
pub const USAGE: &str =
    "usage: fib-bench [disturb | policy | worst] [--v4 FILE] [--v4-updates FILE] [--v6 FILE] [--v6-updates FILE]
  [--routes4 N] [--routes6 N] [--queries-log2 N] [--rounds N] [--updates N] [--only NAME]...
  [--no-ipv4] [--no-ipv6] [--no-random-next-hops] [--no-dpdk] [--poptrie LIBRARY] [--processor N]
  [--output DIRECTORY] [--help]
files hold lines of `prefix [next hop]`, update streams lines of `A prefix` or `W prefix`; .gz is understood;
LIBRARY is a shared object of Poptrie's own code, for example ./libpoptrie.so";

/// Which measurement.
#[derive(Clone, Copy)]
pub enum Command {
    /// Says how to call it.
    Help,
    /// All tables against each other.
    Tables,
    /// Readers while a writer changes the table.
    Disturb,
    /// Policy rules in front of a table.
    Policy,
    /// Crafted tables and traffic.
    Worst,
}

/// What to measure.
pub struct Options {
    /// Which measurement.
    pub command: Command,
    /// IPv4 table and update stream.
    pub v4: (Option<String>, Option<String>),
    /// IPv6 table and update stream.
    pub v6: (Option<String>, Option<String>),
    /// Prefixes of a synthetic IPv4 table.
    pub routes4: usize,
    /// Prefixes of a synthetic IPv6 table.
    pub routes6: usize,
    /// Binary logarithm of the addresses looked up in a round.
    pub queries_log2: u32,
    /// Rounds counted.
    pub rounds: usize,
    /// Most updates replayed.
    pub updates: usize,
    /// Parts of the names of the tables that take part; all if empty.
    pub only: Vec<String>,
    /// Whether to measure IPv4.
    pub ipv4: bool,
    /// Whether to measure IPv6.
    pub ipv6: bool,
    /// Whether to measure random next hops too.
    pub random_next_hops: bool,
    /// Whether DPDK takes part.
    #[cfg_attr(not(dpdk), allow(dead_code))]
    pub dpdk: bool,
    /// Poptrie's own library, which takes part if it is given.
    pub poptrie: Option<String>,
    /// Processor to run on.
    pub processor: usize,
    /// Where results go.
    pub output: PathBuf,
}

impl Options {
    /// Reads the command line.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Options> {
        let mut options = Options {
            command: Command::Tables,
            v4: (None, None),
            v6: (None, None),
            routes4: 1_000_000,
            routes6: 250_000,
            queries_log2: 20,
            rounds: 5,
            updates: 400_000,
            only: Vec::new(),
            ipv4: true,
            ipv6: true,
            random_next_hops: true,
            dpdk: true,
            poptrie: None,
            processor: 0,
            output: PathBuf::from("target/bench-fib"),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
            match word.as_str() {
                "disturb" => options.command = Command::Disturb,
                "policy" => options.command = Command::Policy,
                "worst" => options.command = Command::Worst,
                "--v4" => options.v4.0 = Some(value()?),
                "--v4-updates" => options.v4.1 = Some(value()?),
                "--v6" => options.v6.0 = Some(value()?),
                "--v6-updates" => options.v6.1 = Some(value()?),
                "--routes4" => options.routes4 = parse(&value()?)?,
                "--routes6" => options.routes6 = parse(&value()?)?,
                "--queries-log2" => options.queries_log2 = parse(&value()?)?,
                "--rounds" => options.rounds = parse(&value()?)?,
                "--updates" => options.updates = parse(&value()?)?,
                "--only" => options.only.push(value()?),
                "--processor" => options.processor = parse(&value()?)?,
                "--output" => options.output = PathBuf::from(value()?),
                "--poptrie" => options.poptrie = Some(value()?),
                "--help" | "-h" => options.command = Command::Help,
                "--no-ipv4" => options.ipv4 = false,
                "--no-ipv6" => options.ipv6 = false,
                "--no-random-next-hops" => options.random_next_hops = false,
                "--no-dpdk" => options.dpdk = false,
                _ => return Err(format!("unknown argument {word}\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> Result<T> {
    Ok(text.parse().map_err(|_| format!("{text} is not a number that fits\n{USAGE}"))?)
}
