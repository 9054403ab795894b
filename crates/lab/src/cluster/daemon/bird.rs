//! BIRD 2: one process, and a socket for birdc.

use super::{Role, Timers, numbered, output, program};
use crate::namespace::Namespace;
use crate::process::Process;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

const FRONT: &str = include_str!("../../../../../conf/cluster/bird-front.conf");
const NODE: &str = include_str!("../../../../../conf/cluster/bird-node.conf");
/// What it says when it runs.
const READY: &str = "<INFO> Started";
const FILE: &str = "bird.conf";
const SOCKET: &str = "bird.ctl";

/// The configuration of a role.
pub fn configuration(role: Role, timers: Timers) -> String {
    let text = match role {
        Role::Front { .. } => FRONT.to_owned(),
        Role::Node(node) => numbered(NODE, node),
    };
    let line = |line: &str| {
        let of_timers = ["interval ", "multiplier "].iter().any(|word| line.trim_start().starts_with(word));
        match line.split_once("keeps: ") {
            _ if of_timers && timers == Timers::Default => None,
            Some((_, table)) if role == (Role::Front { aside: true }) => Some(format!("    {table}\n")),
            _ => Some(format!("{line}\n")),
        }
    };
    // For who reads along.
    std::iter::once("log stderr all;\n".to_owned()).chain(text.lines().filter_map(line)).collect()
}

pub fn start(role: Role, timers: Timers, namespace: &Namespace, folder: &Path) -> Result<Vec<Process>> {
    let file = folder.join(FILE);
    std::fs::write(&file, configuration(role, timers)).with_context(|| file.display().to_string())?;
    let program = program("bird").context("there is no bird")?;
    let mut command = namespace.command(&program.to_string_lossy());
    command.arg("-f").arg("-c").arg(&file).arg("-s").arg(folder.join(SOCKET));
    Ok(vec![Process::start(command, Some(READY))?])
}

pub fn ask(folder: &Path, words: &[&str]) -> Result<String> {
    let program = program("birdc").context("there is no birdc")?;
    output(Command::new(program).arg("-s").arg(folder.join(SOCKET)).args(words))
}

pub fn drain(folder: &Path) -> Result<()> {
    let file = folder.join(FILE);
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    std::fs::write(&file, text.replace("draining = false", "draining = true"))?;
    let said = ask(folder, &["configure"])?;
    ensure!(said.contains("Reconfigured"), "{}", said.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_that_of_the_node_and_of_the_table() {
        let third = configuration(Role::Node(3), Timers::Stated);
        assert!(
            third.contains("neighbor 198.19.3.1 as 65000;") && third.contains("local as 65003;"),
            "{third}"
        );
        assert!(third.contains("via 198.19.100.254;") && third.contains("interval 300 ms;"), "{third}");
        assert!(!configuration(Role::Node(1), Timers::Default).contains("300 ms"));
        let table = format!("\n    kernel table {};\n", super::super::ASIDE);
        assert!(configuration(Role::Front { aside: true }, Timers::Stated).contains(&table));
        assert!(!configuration(Role::Front { aside: false }, Timers::Stated).contains(&table));
    }

    #[test]
    fn bird_takes_every_configuration() {
        let Some(bird) = program("bird") else { return eprintln!("skipped: needs BIRD (bird2)") };
        let nodes = (1..=4).map(Role::Node);
        for role in [false, true].map(|aside| Role::Front { aside }).into_iter().chain(nodes) {
            for timers in [Timers::Stated, Timers::Default] {
                let file = std::env::temp_dir().join(format!("causeway-bird-{}.conf", std::process::id()));
                std::fs::write(&file, configuration(role, timers)).expect("written");
                let said = output(Command::new(&bird).arg("-p").arg("-c").arg(&file));
                std::fs::remove_file(&file).expect("removed");
                said.unwrap_or_else(|error| panic!("{role:?}, {timers:?}: {error:#}"));
            }
        }
    }
}
