//! Network namespaces that go when they are dropped.

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

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

/// The network namespace of the thread that asked for it.
#[derive(Debug)]
pub struct Home(File);

impl Home {
    /// That of the calling thread.
    pub fn here() -> Result<Home> {
        let path = "/proc/thread-self/ns/net";
        Ok(Home(File::open(path).context(path)?))
    }

    /// Moves the calling thread there.
    pub fn enter(&self) -> Result<()> {
        Ok(move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

/// Removes the namespaces that a process called PREFIX…-PID-… and that it did not live to remove, and ends what still runs
/// in them.
pub fn remove_stale(prefix: &str) -> Result<()> {
    let Ok(folder) = std::fs::read_dir("/run/netns") else { return Ok(()) };
    for name in folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        if maker(&name, prefix).is_some_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()) {
            log::info!("removes {name}, which a tester that was killed left");
            let out = Command::new("ip").args(["netns", "pids", &name]).output().context("ip netns pids")?;
            let pids = String::from_utf8_lossy(&out.stdout);
            for pid in pids.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
                // It may have ended meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
            ip(&format!("netns del {name}"))?;
        }
    }
    Ok(())
}

/// The process that a namespace of such a name was made by.
fn maker(name: &str, prefix: &str) -> Option<u32> {
    let (word, rest) = name.strip_prefix(prefix)?.split_once('-')?;
    let (pid, _) = rest.split_once('-')?;
    word.bytes().all(|b| b.is_ascii_lowercase()).then(|| pid.parse().ok())?
}

/// Has `ip` run these lines, one after the other, in the namespace of this name.
pub fn ip_lines(namespace: &str, lines: &str) -> Result<()> {
    let mut command = Command::new("ip");
    command.args(["-n", namespace, "-batch", "-"]);
    feed(command, lines)
}

/// Runs a command with this input.
pub fn feed(mut command: Command, input: &str) -> Result<()> {
    let (stdin, null) = (Stdio::piped(), Stdio::null());
    let mut child =
        command.stdin(stdin).stdout(null).stderr(Stdio::piped()).spawn().context("cannot run it")?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that ends before it has read everything says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let out = child.wait_with_output()?;
    if !out.status.success() {
        bail!("{}", String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maker_is_in_the_name() {
        assert_eq!(maker("cwl-123-t", "cwl"), Some(123));
        assert_eq!(maker("cwlk-7-r2", "cwl"), Some(7));
        for other in ["cwl-123", "cw-123-t", "cwl1-123-t", "cwl-x-t", "mycwl-123-t", ""] {
            assert_eq!(maker(other, "cwl"), None, "{other}");
        }
    }

    #[test]
    fn what_a_killed_tester_left_goes_at_the_next_start() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root to make network namespaces");
        }
        // A process that has ended, and was waited for.
        let mut gone = Command::new("true").spawn().expect("started");
        gone.wait().expect("ended");
        let name = format!("cwlstale-{}-t", gone.id());
        ip(&format!("netns add {name}")).expect("made");
        let mine = Namespace::new(&format!("cwlstale-{}-t", std::process::id())).expect("made");
        let mut left = Command::new("ip");
        let mut left = left.args(["netns", "exec", &name, "sleep", "60"]).spawn().expect("started");
        // It is in the namespace once it is no longer the one that brings it there.
        let comm = format!("/proc/{}/comm", left.id());
        while std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() != "sleep") {
            std::thread::yield_now();
        }
        remove_stale("cwlstale").expect("removed");
        assert!(!std::path::Path::new("/run/netns").join(&name).exists());
        assert!(std::path::Path::new("/run/netns").join(&mine.name).exists());
        assert!(!left.wait().expect("ended").success());
    }
}
