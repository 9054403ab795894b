//! Devices under test that are processes.

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a device may take to start, or to stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long one that says nothing must have lived to be ready.
const SILENCE: Duration = Duration::from_millis(500);

/// A device in a process of its own, stopped when this is dropped.
pub struct Process {
    child: Child,
    command: Command,
    /// What it reads from its standard input, again after each start.
    input: Option<Arc<str>>,
    ready: Option<String>,
    /// What is to be run before it is terminated.
    stop: Option<Command>,
    patience: Duration,
}

/// What else there is to a process.
#[derive(Default)]
struct Ways<'a> {
    /// What it reads.
    input: Option<&'a str>,
    /// What ends it.
    stop: Option<Command>,
}

impl Process {
    /// Starts it, and waits until it says a line with `ready` in it; without one it is ready if it has not ended after a
    /// while. It is in a process group of its own: an interrupt from the terminal is for who measures, and he ends it.
    ///
    /// # Errors
    /// If it cannot be started, ends, or is not ready in time; with what it said.
    pub fn start(command: Command, ready: Option<&str>) -> Result<Process> {
        Process::start_within(PATIENCE, command, ready, Ways::default())
    }

    /// As [`Process::start`], one that `stop` ends, if there is such a command: it is run when the process is to end, which
    /// then has some time to do so before it is terminated.
    ///
    /// # Errors
    /// As [`Process::start`].
    pub fn start_and_stop(command: Command, ready: Option<&str>, stop: Option<Command>) -> Result<Process> {
        Process::start_within(PATIENCE, command, ready, Ways { stop, ..Ways::default() })
    }

    /// As [`Process::start`], one that reads `input` from its standard input.
    ///
    /// # Errors
    /// As [`Process::start`].
    pub fn fed(command: Command, ready: Option<&str>, input: &str) -> Result<Process> {
        Process::start_within(PATIENCE, command, ready, Ways { input: Some(input), ..Ways::default() })
    }

    fn start_within(
        patience: Duration,
        mut command: Command,
        ready: Option<&str>,
        ways: Ways<'_>,
    ) -> Result<Process> {
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (input, stop) = (ways.input.map(Arc::from), ways.stop);
        let child = spawn(&mut command, input.as_ref()).context("cannot start the device")?;
        let mut process = Process { child, command, input, ready: ready.map(str::to_owned), stop, patience };
        process.wait_until_ready()?;
        Ok(process)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let (sender, lines) = channel();
        let out = self.child.stdout.take().map(|out| Box::new(out) as Box<dyn Read + Send>);
        let err = self.child.stderr.take().map(|err| Box::new(err) as Box<dyn Read + Send>);
        // Read to the end, so that the device never waits for room in a pipe.
        for pipe in out.into_iter().chain(err) {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        drop(sender);
        let ready = self.ready.as_deref();
        let (mut said, until) =
            (Vec::new(), Instant::now() + if ready.is_some() { self.patience } else { SILENCE });
        loop {
            match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if ready.is_some_and(|ready| line.contains(ready)) => return Ok(()),
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Disconnected) => bail!("the device did not start: {}", said.join("; ")),
                Err(RecvTimeoutError::Timeout) if ready.is_none() => return Ok(()),
                Err(RecvTimeoutError::Timeout) => bail!(
                    "the device is not ready after {} s: {}",
                    self.patience.as_secs_f64(),
                    said.join("; ")
                ),
            }
        }
    }

    /// Kills it without a warning and starts it again (RFC 6201 §4.2.1: software reset). Returns when it is ready.
    ///
    /// # Errors
    /// As [`Process::start`].
    pub fn reset(&mut self) -> Result<()> {
        self.child.kill().context("cannot kill the device")?;
        self.child.wait().context("cannot wait for the device")?;
        self.child =
            spawn(&mut self.command, self.input.as_ref()).context("cannot start the device again")?;
        self.wait_until_ready()
    }

    /// Fails if it has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(Some(status)) => bail!("the device died: {status}"),
            _ => Ok(()),
        }
    }

    /// Runs the command that stops it, and gives it time to end by that.
    fn stop(&mut self) {
        let Some(stop) = &mut self.stop else { return };
        stop.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let ended = stop.spawn().map(|mut stop| {
            let ended = within(self.patience, &mut stop);
            if ended.is_none() {
                // It is of no use any more.
                let _ = stop.kill();
                let _ = stop.wait();
            }
            ended
        });
        match ended {
            Ok(Some(status)) if status.success() => {}
            Ok(Some(status)) => log::warn!("the command that stops the device failed: {status}"),
            Ok(None) => log::warn!("the command that stops the device did not end"),
            Err(e) => log::warn!("the command that stops the device cannot be started: {e}"),
        }
        within(self.patience, &mut self.child);
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

/// Gives a thread of any process a real-time priority, 1 to 99, above all threads that have none.
///
/// # Errors
/// If there is no such thread, or this user may not.
pub fn set_fifo(thread: i32, priority: u32) -> Result<()> {
    let mut set = Command::new("chrt");
    set.args(["--fifo", "--pid", &priority.to_string(), &thread.to_string()]);
    let out = set.output().context("cannot run chrt (util-linux)")?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr).trim());
    Ok(())
}

fn spawn(command: &mut Command, input: Option<&Arc<str>>) -> std::io::Result<Child> {
    let mut child = command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() }).spawn()?;
    if let Some((mut stdin, input)) = child.stdin.take().zip(input.cloned()) {
        // It may be longer than a pipe. A device that ends before it has read everything says why.
        std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    }
    Ok(child)
}

/// How a process has ended; `None` if it has not within this time.
fn within(patience: Duration, child: &mut Child) -> Option<ExitStatus> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if began.elapsed() < patience => std::thread::sleep(Duration::from_millis(10)),
            _ => return None,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
        if within(Duration::ZERO, &mut self.child).is_some() {
            return;
        }
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        if within(PATIENCE, &mut self.child).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_device_is_ready_when_it_says_so_and_is_stopped_when_it_is_dropped() {
        for script in ["echo begun; echo now ready; exec sleep 60", "echo now ready >&2; exec sleep 60"] {
            let mut device = Process::start(shell(script), Some("ready")).expect("started");
            device.check().expect("alive");
            let folder = format!("/proc/{}", device.id());
            drop(device);
            assert!(!std::path::Path::new(&folder).exists());
        }
        Process::start(shell("exec sleep 60"), None).expect("alive").check().expect("alive");
    }

    #[test]
    fn a_device_reads_its_input_again_when_it_is_reset() {
        // More than a pipe holds.
        let input = "line\n".repeat(100_000);
        let script = "test $(wc -l) = 100000 && echo ready; exec sleep 60";
        let mut device = Process::fed(shell(script), Some("ready"), &input).expect("started");
        device.reset().expect("started again");
        device.check().expect("alive");
    }

    #[test]
    fn a_device_that_is_reset_is_another_process() {
        let mut device = Process::start(shell("echo ready; exec sleep 60"), Some("ready")).expect("started");
        let first = device.id();
        device.reset().expect("started again");
        assert_ne!(device.id(), first);
        device.check().expect("alive");
        assert!(!std::path::Path::new(&format!("/proc/{first}")).exists());
    }

    #[test]
    fn a_device_that_ends_or_dies_is_told_of_with_what_it_said() {
        let error =
            |script, ready| Process::start(shell(script), ready).err().expect("no device").to_string();
        assert_eq!(error("echo no such port >&2", Some("ready")), "the device did not start: no such port");
        assert_eq!(error("exit 1", None), "the device did not start: ");
        let mut device =
            Process::start(shell("echo ready; read x < /dev/null; exit 3"), Some("ready")).expect("started");
        let _ = device.child.wait();
        assert!(device.check().expect_err("dead").to_string().contains("the device died: exit status: 3"));
    }

    #[test]
    fn a_device_that_never_becomes_ready_is_told_of_and_stopped() {
        let patience = Duration::from_millis(300);
        let script = shell("echo $$; echo still waiting; exec sleep 60");
        let error =
            Process::start_within(patience, script, Some("ready"), Ways::default()).err().expect("not ready");
        let error = error.to_string();
        let said = error.strip_prefix("the device is not ready after 0.3 s: ").expect("why");
        let (id, rest) = said.split_once("; ").expect("what it said");
        assert_eq!(rest, "still waiting");
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }

    #[test]
    fn a_device_is_stopped_by_its_own_command_and_what_that_leaves_is_terminated() {
        let folder = std::env::temp_dir().join(format!("causeway-lab-{}-stop", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (order, told) = (folder.join("order"), folder.join("told"));
        let (order, told) = (order.to_string_lossy(), told.to_string_lossy());
        // It ends when it finds the order, and says how it ended.
        let script = format!(
            "trap 'echo terminated > {told}; exit' TERM; echo ready; \
             while ! test -e {order}; do sleep 0.02; done; echo stopped > {told}"
        );
        let ended_by = |stop: &str| {
            let _ = std::fs::remove_file(&*order);
            let ways = Ways { stop: Some(shell(stop)), ..Ways::default() };
            let patience = Duration::from_millis(500);
            let device = Process::start_within(patience, shell(&script), Some("ready"), ways);
            let device = device.expect("started");
            let process = format!("/proc/{}", device.id());
            drop(device);
            assert!(!std::path::Path::new(&process).exists(), "{stop}");
            std::fs::read_to_string(&*told).expect("its end")
        };
        assert_eq!(ended_by(&format!("touch {order}")), "stopped\n");
        for other in ["true", "exit 1", "exec sleep 60"] {
            assert_eq!(ended_by(other), "terminated\n", "{other}");
        }
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
