//! `causeway upgrade`: has a new process of this binary take the place of the router that runs.
//!
//! The new process is a child of this one until it has taken over ([`crate::handover`]); what it says until then is said
//! here. It has the running router's arguments and, where a service manager listens, its way to that.

use crate::cli::{UpgradeArgs, up_args};
use crate::control::{Record, routers_here};
use crate::output;
use anyhow::{Context, Result, bail};
use rustix::process::geteuid;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// What a service manager says to the process that it starts: where it listens, and how long its watchdog waits.
const MANAGER: [&str; 2] = ["NOTIFY_SOCKET", "WATCHDOG_USEC"];
/// How often it is looked whether the new process has taken over.
const PERIOD: Duration = Duration::from_millis(20);
/// How long the old process may take to end once the new one has its place.
const ENDING: Duration = Duration::from_secs(10);

/// Starts the new process and waits until it has taken over, or has not.
pub fn upgrade(args: &UpgradeArgs) -> Result<ExitCode> {
    let own = (!args.arguments.is_empty()).then(|| {
        let up = ["causeway", "up"].map(str::to_owned);
        [&up[..], &args.arguments[..]].concat()
    });
    let asked = own.as_deref().map(up_args).transpose()?.and_then(|up| up.runtime.name);
    let old = choose(routers_here(), args.name.as_deref().or(asked.as_deref()))?;
    let line = own.map_or_else(|| arguments(old.pid), Ok)?;
    let up = up_args(&line)?;
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(&line[1..]);
    match up.runtime.name {
        Some(name) if name != old.name => bail!("--name {name} among the arguments is another router's"),
        Some(_) => {}
        None => _ = command.args(["--name", &old.name]),
    }
    // A process that has taken over itself was started so.
    if !up.take_over {
        command.arg("--take-over");
    }
    command.env_remove("WATCHDOG_PID").envs(manager(old.pid));
    // What the terminal sends to this one is not meant for a router; and who reads what this one prints would wait for its end.
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    let child = command.spawn().context("cannot start the new process")?;
    wait(child, &old)
}

/// The router that is meant.
fn choose(mut routers: Vec<Record>, name: Option<&str>) -> Result<Record> {
    routers.retain(|router| name.is_none_or(|name| router.name == name));
    let names = routers.iter().map(|r| format!("--name {}", r.name)).collect::<Vec<_>>().join(", ");
    match (routers.pop(), routers.is_empty(), name) {
        (Some(router), true, _) => Ok(router),
        (Some(_), false, _) => bail!("several routers run here; say which: {names}"),
        (None, _, Some(name)) => {
            bail!("no router of this user that is called '{name}' runs here{}", others())
        }
        (None, ..) => bail!("no router of this user runs here; `causeway up` starts one{}", others()),
    }
}

/// Whose routers were not looked for.
fn others() -> &'static str {
    if geteuid().is_root() { "" } else { "; one that root has started only root can upgrade" }
}

/// The command line of a process.
fn arguments(pid: u32) -> Result<Vec<String>> {
    let line = fs::read(format!("/proc/{pid}/cmdline"));
    let line =
        line.with_context(|| format!("cannot find the arguments of process {pid}; give them behind --"))?;
    let words = line.split(|&b| b == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut words: Vec<String> = words.collect();
    // Each ends with a zero.
    words.pop();
    if words.is_empty() {
        bail!("process {pid} has just ended");
    }
    Ok(words)
}

/// What a process was told by its service manager; nothing if that cannot be seen.
fn manager(pid: u32) -> Vec<(String, String)> {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let pairs = environment.split(|&b| b == 0).map(|pair| String::from_utf8_lossy(pair).into_owned());
    let pairs = pairs.filter_map(|pair| pair.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())));
    pairs.filter(|(key, _)| MANAGER.contains(&key.as_str())).collect()
}

/// Waits until the new process has the place of the old one.
fn wait(mut child: Child, old: &Record) -> Result<ExitCode> {
    let (name, before, now) = (&old.name, old.pid, child.id());
    let has_taken = |r: &Record| r.name == *name && r.pid == now;
    let mut since = None;
    loop {
        if since.is_none() && routers_here().iter().any(has_taken) {
            since = Some(Instant::now());
        }
        let is_over = since.is_some_and(|since| since.elapsed() >= ENDING);
        if since.is_some() && (is_over || !old.is_alive()) {
            if is_over {
                log::warn!("process {before} forwards no more, but does not end: `kill -KILL {before}`");
            }
            output::print(format!("router '{name}': process {now} has taken over from process {before}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(status) = child.try_wait().context("cannot wait for the new process")? {
            let goes_on = if old.is_alive() { "goes on" } else { "has ended" };
            log::error!("the new process has not taken over ({status}); process {before} {goes_on}");
            let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
            return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
        }
        std::thread::sleep(PERIOD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(name: &str) -> Record {
        let (socket, counters) = (String::new().into(), String::new().into());
        let (name, netns) = (name.to_owned(), String::new());
        Record {
            name,
            pid: 7,
            started: 0,
            netns,
            cookie: None,
            pidns: None,
            socket,
            counters,
            xdp: None,
            tcx: None,
            undo: Default::default(),
        }
    }

    #[test]
    fn the_router_that_is_meant_is_found() {
        let chosen = |names: &[&str], name| {
            let routers = names.iter().map(|name| router(name)).collect();
            choose(routers, name).map(|r| r.name).map_err(|e| e.to_string())
        };
        assert_eq!(chosen(&["a"], None).unwrap(), "a");
        assert_eq!(chosen(&["a", "b"], Some("b")).unwrap(), "b");
        assert!(chosen(&["a", "b"], None).unwrap_err().ends_with("say which: --name a, --name b"));
        let none = "no router of this user that is called 'b' runs here";
        assert!(chosen(&["a"], Some("b")).unwrap_err().starts_with(none));
        assert!(chosen(&[], None).unwrap_err().starts_with("no router of this user runs here"));
    }

    #[test]
    fn arguments_are_those_of_the_process() {
        let own: Vec<String> = std::env::args().collect();
        assert_eq!(arguments(std::process::id()).unwrap(), own);
        assert!(arguments(u32::MAX).is_err());
        let mut child = Command::new("true").spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
            std::thread::yield_now();
        }
        assert_eq!(
            arguments(child.id()).unwrap_err().to_string(),
            format!("process {} has just ended", child.id())
        );
        child.wait().unwrap();
    }
}
