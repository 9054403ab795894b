//! What forwards in a test bed.

use super::Bed;
use crate::process::Process;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What a router says once its ports are open.
const READY: &str = "control socket";

/// A kind of device under test.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kind {
    /// The kernel's own forwarding.
    Kernel {},
    /// This program's `up` between all ports.
    Causeway {
        /// More arguments.
        #[serde(default)]
        arguments: Vec<String>,
    },
    /// Kohler's Click in user space: an IPv4 router over packet sockets, or a configuration of one's own.
    Click {
        /// The program.
        program: PathBuf,
        /// A configuration, for ports r0, r1 and so on.
        #[serde(default)]
        configuration: Option<PathBuf>,
    },
    /// Any command that forwards between r0, r1 and so on until it is terminated.
    Command {
        /// Program and arguments.
        start: Vec<String>,
        /// What a line of its output says when it is ready; without it, it is when it has not ended after half a second.
        #[serde(default)]
        ready: Option<String>,
        /// Whether the kernel forwards too what the program leaves to it.
        #[serde(default)]
        beside_kernel: bool,
    },
}

/// A device in its bed. It is stopped when it is dropped.
pub struct Device(Option<Arc<Mutex<Process>>>);

impl Device {
    /// Starts a device, which the bed outlives.
    ///
    /// # Errors
    /// If it cannot be started or does not become ready.
    pub fn start(kind: &Kind, bed: &Bed, processors: &[usize]) -> Result<Device> {
        // A program that gets copies of frames would be one of two that forward them.
        bed.kernel_forwards(match kind {
            Kind::Kernel {} | Kind::Causeway { .. } => true,
            Kind::Click { .. } => false,
            Kind::Command { beside_kernel, .. } => *beside_kernel,
        })?;
        let (program, mut arguments, ready) = match kind {
            Kind::Kernel {} => return Ok(Device(None)),
            Kind::Causeway { arguments } => {
                let binary = std::env::current_exe().context("cannot find this program")?;
                let name = format!("lab-{}", std::process::id());
                let mut all = vec!["up".to_owned()];
                all.extend((0..bed.ports).map(|i| format!("r{i}")));
                all.extend(["--attach", "xdp", "--name", &name].map(str::to_owned));
                if !processors.is_empty() {
                    all.extend(["--processors".to_owned(), list(processors)]);
                }
                all.extend(arguments.iter().cloned());
                (binary.to_string_lossy().into_owned(), all, Some(READY))
            }
            Kind::Click { program, configuration } => {
                let arguments = match configuration {
                    Some(file) => vec![file.to_string_lossy().into_owned()],
                    None => vec!["-e".to_owned(), click_router(bed)?],
                };
                (program.to_string_lossy().into_owned(), arguments, None)
            }
            Kind::Command { start, ready, .. } => {
                let (program, arguments) = start.split_first().context("the command to start is empty")?;
                (program.clone(), arguments.to_vec(), ready.as_deref())
            }
        };
        // Causeway pins its workers itself, and must not find its other threads on the same processor.
        let pinned = !processors.is_empty() && !matches!(kind, Kind::Causeway { .. });
        let mut command = if pinned {
            let mut command = bed.device.command("taskset");
            command.args(["--cpu-list", &list(processors)]);
            arguments.insert(0, program);
            command
        } else {
            bed.device.command(&program)
        };
        command.args(arguments);
        Ok(Device(Some(Arc::new(Mutex::new(Process::start(command, ready)?)))))
    }

    /// What fails once the device has died.
    pub fn alive(&self) -> Box<dyn FnMut() -> Result<()> + Send> {
        // Not kept alive by who asks.
        let process = self.0.as_ref().map(Arc::downgrade);
        Box::new(move || match process.as_ref().and_then(Weak::upgrade) {
            Some(process) => process.lock().unwrap_or_else(PoisonError::into_inner).check(),
            None => Ok(()),
        })
    }
}

fn list(processors: &[usize]) -> String {
    processors.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

impl Kind {
    /// The kind of a name: kernel, causeway, or click with the program of that name in the path.
    ///
    /// # Errors
    /// If there is no such kind.
    pub fn by_name(name: &str) -> Result<Kind> {
        Ok(match name {
            "kernel" => Kind::Kernel {},
            "causeway" => Kind::Causeway { arguments: Vec::new() },
            "click" => Kind::Click { program: PathBuf::from("click"), configuration: None },
            _ => bail!(
                "there is no device '{name}'; there are kernel, causeway and click, and those of a description"
            ),
        })
    }

    /// What the device is, for the results.
    pub fn version(&self) -> String {
        let first_line = |program: &str, argument: &str| {
            let output = Command::new(program).arg(argument).output().ok()?;
            Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
        };
        match self {
            Kind::Kernel {} => {
                std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
            }
            Kind::Causeway { .. } => env!("CARGO_PKG_VERSION").to_owned(),
            Kind::Click { program, .. } => {
                first_line(&program.to_string_lossy(), "--version").unwrap_or_default()
            }
            Kind::Command { start, .. } => start.join(" "),
        }
    }
}

/// An IPv4 router between the ports of a bed: check, look up, decrement, encapsulate, queue.
fn click_router(bed: &Bed) -> Result<String> {
    use causeway_netio::interface::Interface;
    use causeway_packet::wire::MacAddr;
    let mac = |namespace: &crate::namespace::Namespace, name: String| {
        namespace.run(|| Ok(Interface::open(&name)?.mac)).map(MacAddr)
    };
    let routes: Vec<String> = (0..bed.ports).map(|i| format!("198.18.{}.0/18 {i}", 64 * i)).collect();
    let mut text = format!("route :: StaticIPLookup({});\n", routes.join(", "));
    for i in 0..bed.ports {
        let (own, peer) = (mac(&bed.device, format!("r{i}"))?, mac(&bed.tester, format!("t{i}"))?);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "FromDevice(r{i}, SNIFFER false, METHOD LINUX) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> route;\n\
             route[{i}] -> DecIPTTL -> EtherEncap(0x0800, {own}, {peer}) -> Queue(1000) -> ToDevice(r{i}, METHOD LINUX);\n"
        );
    }
    Ok(text)
}
