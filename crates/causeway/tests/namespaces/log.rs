//! What a router has logged.

use crate::net::{Net, Router, wait_for};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The log of a router that was started with [`Log::up`] or [`Log::run`]; its file goes with the value.
pub struct Log(PathBuf);

impl Log {
    /// Starts `causeway up ARGS` in a namespace, with its log in a file.
    pub fn up(net: &Net, space: &str, args: &str) -> (Router, Log) {
        Log::start_by(net, space, "", &format!("up {args}"))
    }

    /// As [`Log::up`], with another control socket.
    pub fn up_at(net: &Net, space: &str, socket: &Path, args: &str) -> (Router, Log) {
        let (file, log) = Log::file(net, space);
        (net.start_at(space, socket, "", &format!("up {args}"), file), log)
    }

    /// Starts `causeway run ARGS` in a namespace, with its log in a file.
    pub fn run(net: &Net, space: &str, args: &str) -> (Router, Log) {
        Log::start_by(net, space, "", &format!("run {args}"))
    }

    /// The log at a path.
    pub fn at(path: PathBuf) -> Log {
        Log(path)
    }

    /// Starts `causeway ARGS` by way of another program that ends in running a command, with its log in a file.
    pub fn start_by(net: &Net, space: &str, by: &str, args: &str) -> (Router, Log) {
        let (file, log) = Log::file(net, space);
        (net.start_by(space, by, args, file), log)
    }

    fn file(net: &Net, space: &str) -> (File, Log) {
        let path = std::env::temp_dir().join(format!("{}.log", net.name(space)));
        (File::create(&path).expect("a file"), Log(path))
    }

    /// All of it.
    pub fn text(&self) -> String {
        std::fs::read_to_string(&self.0).expect("a log")
    }

    /// Lines of this code whose text contains `what`.
    pub fn count(&self, code: &str, what: &str) -> usize {
        let code = format!("Z causeway: [{code}] ");
        self.text().lines().filter(|line| line.contains(&code) && line.contains(what)).count()
    }

    /// Waits for one more line than `before` of this code whose text contains `what`.
    pub fn wait(&self, before: usize, code: &str, what: &str) {
        wait_for(&format!("[{code}] {what}"), || self.count(code, what) > before);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.text());
        }
        let _ = std::fs::remove_file(&self.0);
    }
}
