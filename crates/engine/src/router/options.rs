//! How a router is run, and why it cannot be.

use crate::conf::{Defaults, Persistent};
use crate::driver::OnFailure;
use crate::error::NoAnswer;
use crate::globals::Globals;
use crate::reception::{DEFAULT_BUDGET, Mechanism};
use crate::said::ElementError;
use crate::spin::SpinTime;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// How to run a router.
#[derive(Clone)]
pub struct Options {
    /// Workers.
    pub workers: usize,
    /// Whether each worker gets a copy of the whole graph and its own queue of every port.
    pub replicate: bool,
    /// Processors to pin the workers to, in turn; empty = let the kernel choose.
    pub processors: Vec<usize>,
    /// Seed of the random numbers; `None` = a fresh one.
    pub seed: Option<u64>,
    /// Where simulated time starts; `None` = live.
    pub simulated_ns: Option<u64>,
    /// Shared-memory file of the counters, which only one router may use; it goes with the router. `None` = private
    /// memory.
    pub counters: Option<PathBuf>,
    /// Reception mechanism of ports that do not name one.
    pub mechanism: Mechanism,
    /// Packets in one NAPI run over all ports of a worker.
    pub budget: usize,
    /// How long workers without work look for some before they sleep.
    pub spin: SpinTime,
    /// Values that the elements find and that outlive hot swaps.
    pub persistent: Persistent,
    /// What is to be done at once when a worker fails.
    pub on_failure: Option<OnFailure>,
    /// Whose defaults the elements' arguments have.
    pub defaults: Defaults,
    /// Who answers elements that call the router's own handlers.
    pub globals: Option<Arc<dyn Globals>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            workers: 1,
            replicate: false,
            processors: Vec::new(),
            seed: None,
            simulated_ns: None,
            counters: None,
            mechanism: Mechanism::default(),
            budget: DEFAULT_BUDGET,
            spin: SpinTime::default(),
            persistent: Persistent::default(),
            on_failure: None,
            defaults: Defaults::default(),
            globals: None,
        }
    }
}

/// Why a router could not be started or changed.
#[derive(Debug)]
pub enum StartError {
    /// Elements that could not be configured or initialised.
    Elements(Vec<ElementError>),
    /// The file of the counters cannot be made.
    CountersFile(PathBuf, io::Error),
    /// The operating system refused something.
    Io(&'static str, io::Error),
    /// A worker does not answer.
    NoAnswer(NoAnswer),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Elements(errors) => {
                for (i, e) in errors.iter().enumerate() {
                    write!(f, "{}{e}", if i > 0 { "\n" } else { "" })?;
                }
                Ok(())
            }
            StartError::CountersFile(file, e) => {
                write!(f, "cannot make the counters' file {}: {e}", file.display())
            }
            StartError::Io(what, e) => write!(f, "{what}: {e}"),
            StartError::NoAnswer(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl From<NoAnswer> for StartError {
    fn from(error: NoAnswer) -> Self {
        StartError::NoAnswer(error)
    }
}
