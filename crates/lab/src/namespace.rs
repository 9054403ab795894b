//! Network namespaces that go when they are dropped.

use anyhow::{Context, Result, anyhow, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

/// A network namespace, deleted when this is dropped.
pub struct Namespace {
    /// Its name for ip-netns(8).
    pub name: String,
    file: File,
}

impl Namespace {
    /// Makes one of this name.
    pub fn new(name: &str) -> Result<Namespace> {
        ip(&format!("netns add {name}"))?;
        let path = format!("/run/netns/{name}");
        match File::open(&path) {
            Ok(file) => Ok(Namespace { name: name.to_owned(), file }),
            Err(e) => {
                ip(&format!("netns del {name}"))?;
                Err(e).context(path)
            }
        }
    }

    /// Runs `work` on a thread in this namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        std::thread::scope(|s| {
            let thread = s.spawn(|| {
                self.enter()?;
                work()
            });
            thread.join().unwrap_or_else(|_| Err(anyhow!("a thread in {} failed", self.name)))
        })
    }

    /// Moves the calling thread into this namespace.
    pub fn enter(&self) -> Result<()> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
            .with_context(|| format!("cannot enter {}", self.name))
    }

    /// A command that runs in this namespace.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs `ip` with these arguments in this namespace.
    pub fn ip(&self, line: &str) -> Result<()> {
        ip(&format!("-n {} {line}", self.name))
    }

    /// Sets a sysctl of `/proc/sys/net`.
    pub fn set(&self, setting: &str, value: &str) -> Result<()> {
        let path = format!("/proc/sys/net/{setting}");
        self.run(|| std::fs::write(&path, value).context(path))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(e) = ip(&format!("netns del {}", self.name)) {
            log::error!("{e:#}");
        }
    }
}

/// Runs `ip` with these arguments.
pub fn ip(line: &str) -> Result<()> {
    let out =
        Command::new("ip").args(line.split_whitespace()).output().context("cannot run ip (iproute2)")?;
    if !out.status.success() {
        bail!("ip {line}: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(())
}
