//! FRR: zebra, staticd, bfdd and bgpd, and vtysh, which tells them all.

use super::{Role, Timers, numbered, output, program};
use crate::namespace::Namespace;
use crate::process::Process;
use anyhow::{Context, Result, bail, ensure};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const FRONT: &str = include_str!("../../../../../conf/cluster/frr-front.conf");
const NODE: &str = include_str!("../../../../../conf/cluster/frr-node.conf");
/// In the order in which they start: the others are zebra's clients.
const DAEMONS: [&str; 4] = ["zebra", "staticd", "bfdd", "bgpd"];
/// What each says when it listens to vtysh.
const READY: &str = "starting";
const FILE: &str = "frr.conf";
/// How long a daemon may take to listen to vtysh.
const PATIENCE: Duration = Duration::from_secs(5);

/// The configuration of a role. The timers that it states are the defaults.
fn configuration(role: Role) -> String {
    let text = match role {
        Role::Front { .. } => FRONT.to_owned(),
        Role::Node(node) => numbered(NODE, node),
    };
    let line = |line: &str| match line.split_once("keeps: ") {
        Some((_, table)) if role == (Role::Front { aside: true }) => format!(" {table}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

pub fn start(role: Role, _: Timers, namespace: &Namespace, folder: &Path) -> Result<Vec<Process>> {
    let (file, nothing) = (folder.join(FILE), folder.join("nothing.conf"));
    std::fs::write(&file, configuration(role)).with_context(|| file.display().to_string())?;
    std::fs::write(&nothing, "").with_context(|| nothing.display().to_string())?;
    // They are root no more when they make their sockets.
    let users = std::fs::read_to_string("/etc/passwd").context("/etc/passwd")?;
    let (user, group) = user(&users).context("there is no user frr, which the package makes")?;
    [folder, &nothing].iter().try_for_each(|path| chown(path, Some(user), Some(group)))?;
    let mut processes = Vec::new();
    for name in DAEMONS {
        let program = program(name).with_context(|| format!("there is no {name}"))?;
        let mut command = namespace.command(&program.to_string_lossy());
        command.args(["--log", "stdout", "-f"]).arg(&nothing);
        command.arg("--vty_socket").arg(folder).arg("-z").arg(folder.join("zserv.api"));
        command.arg("-i").arg(folder.join(format!("{name}.pid")));
        if name == "bfdd" {
            command.arg("--bfdctl").arg(folder.join("bfdd.sock"));
        }
        processes.push(Process::start(command, Some(READY)).with_context(|| name.to_owned())?);
        wait_for(&folder.join(format!("{name}.vty")))?;
    }
    tell(folder, &["-f".as_ref(), file.as_os_str()])?;
    Ok(processes)
}

/// Numbers of FRR's user and its group, in the format of passwd(5).
fn user(users: &str) -> Option<(u32, u32)> {
    let mut fields = users.lines().find_map(|line| line.strip_prefix("frr:"))?.split(':').skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Waits until a daemon listens.
fn wait_for(socket: &Path) -> Result<()> {
    let began = Instant::now();
    while !socket.exists() {
        if began.elapsed() > PATIENCE {
            bail!("{} is not there after {} s", socket.display(), PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn tell(folder: &Path, arguments: &[&std::ffi::OsStr]) -> Result<String> {
    let program = program("vtysh").context("there is no vtysh")?;
    let said = output(Command::new(program).arg("--vty_socket").arg(folder).args(arguments))?;
    ensure!(!said.contains('%'), "{}", said.trim());
    Ok(said)
}

pub fn ask(folder: &Path, commands: &[&str]) -> Result<String> {
    let words: Vec<&std::ffi::OsStr> =
        commands.iter().flat_map(|command| ["-c".as_ref(), (*command).as_ref()]).collect();
    tell(folder, &words)
}

pub fn drain(folder: &Path, node: usize) -> Result<()> {
    let number = format!("router bgp 6500{node}");
    ask(folder, &["configure terminal", &number, "bgp graceful-shutdown"]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_found_by_name() {
        assert_eq!(
            user("root:x:0:0::/:/bin/sh\nfrr:x:105:114:Routing,,,:/nonexistent:/usr/sbin/nologin\n"),
            Some((105, 114))
        );
        assert_eq!(user("frrx:x:1:2::/:\n"), None);
    }

    #[test]
    fn the_configuration_is_that_of_the_node_and_of_the_table() {
        let second = configuration(Role::Node(2));
        assert!(
            second.contains("neighbor 198.19.2.1 remote-as 65000") && second.contains("router bgp 65002")
        );
        assert!(second.contains("ip route 198.18.64.0/18 198.19.100.254"));
        let table = format!("\n set table {}\n", super::super::ASIDE);
        assert!(configuration(Role::Front { aside: true }).contains(&table));
        assert!(!configuration(Role::Front { aside: false }).contains(&table));
    }
}
