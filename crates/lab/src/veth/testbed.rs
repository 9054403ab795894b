//! Three network namespaces, g0--r0 router r1--s0, and what forwards between them. All of it goes when it is dropped.

use crate::namespace::{Namespace, ip};
use crate::process::Process;
use anyhow::{Context, Result, bail};
use causeway_bpf::{Asm, Helper, Program, ProgramKind, Reg, XdpLink, XdpMode};
use causeway_netio::interface::Interface;
use causeway_netio::offload::{Offload, set_offload};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the frames of the generator and the pings go, behind s0. The block is for benchmarks (RFC 2544, appendix
/// C.2.2).
pub const SINK: [u8; 4] = [198, 18, 2, 1];
/// Where they come from: g0.
pub const GENERATOR: [u8; 4] = [10, 78, 1, 2];
/// What a router says once its ports are open.
const READY: &str = "control socket";

fn namespace(role: &str) -> Result<Namespace> {
    Namespace::new(&format!("cwb-{}-{role}", std::process::id()))
}

/// The namespaces and the links between them.
pub struct Testbed {
    /// With g0.
    pub generator: Arc<Namespace>,
    /// With r0 and r1.
    pub router: Namespace,
    /// With s0.
    pub sink: Namespace,
    interrupted: Arc<AtomicBool>,
    signals: Vec<signal_hook::SigId>,
}

impl Testbed {
    /// Makes the namespaces. From here to its end, an interrupt ends the benchmark instead of the process.
    pub fn new() -> Result<Testbed> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let mut bed = Testbed {
            generator: Arc::new(namespace("g")?),
            router: namespace("r")?,
            sink: namespace("s")?,
            interrupted: interrupted.clone(),
            signals: Vec::new(),
        };
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            bed.signals.push(signal_hook::flag::register(signal, interrupted.clone())?);
        }
        bed.link(&bed.generator, "g0", "r0", 1)?;
        bed.link(&bed.sink, "s0", "r1", 2)?;
        bed.router.set("ipv4/ip_forward", "1")?;
        let sink_mac = bed.sink.run(|| Ok(Interface::open("s0")?.mac))?;
        let mac = sink_mac.map(|b| format!("{b:02x}")).join(":");
        bed.router.ip(&format!("neigh replace 10.78.2.2 lladdr {mac} nud permanent dev r1"))?;
        bed.router.ip("route add 198.18.2.0/24 via 10.78.2.2")?;
        bed.sink.ip("addr add 198.18.2.1/32 dev lo")?;
        Ok(bed)
    }

    /// Connects `host` to the router by network 10.78.`n`.0/24.
    fn link(&self, host: &Namespace, end: &str, port: &str, n: u8) -> Result<()> {
        for namespace in [host, &self.router] {
            // Only what is measured is on the wire.
            namespace.set("ipv6/conf/default/disable_ipv6", "1")?;
            namespace.ip("link set lo up")?;
        }
        ip(&format!(
            "link add {end} netns {} type veth peer name {port} netns {}",
            host.name, self.router.name
        ))?;
        for (namespace, name, last) in [(host, end, 2), (&self.router, port, 1)] {
            namespace.ip(&format!("addr add 10.78.{n}.{last}/24 dev {name}"))?;
            namespace.ip(&format!("link set {name} up"))?;
        }
        // A host leaves checksums to the device, which a veth does not compute.
        host.run(|| Ok(set_offload(end, Offload::TxChecksum, false)?))?;
        host.ip(&format!("route add default via 10.78.{n}.1"))
    }

    /// Fails after an interrupt.
    pub fn check(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// IPv4 packets that the kernel has forwarded in the router's namespace.
    pub fn kernel_forwarded(&self) -> Result<u64> {
        let path = "/proc/thread-self/net/snmp";
        let text = self.router.run(|| std::fs::read_to_string(path).context(path))?;
        let mut lines = text.lines().filter_map(|l| l.strip_prefix("Ip:"));
        let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let mut columns = names.split_whitespace().zip(values.split_whitespace());
        let value = columns.find(|(name, _)| *name == "ForwDatagrams").and_then(|(_, v)| v.parse().ok());
        value.with_context(|| format!("{path} has no ForwDatagrams"))
    }

    /// Leaves forwarding to the kernel.
    pub fn kernel(&self) -> Result<()> {
        // Gives r0 the interrupt work that frames redirected to g0 need. Only works while the interface is up.
        self.router.run(|| Ok(set_offload("r0", Offload::Gro, true)?))
    }

    /// Whether what is for the generator can be redirected to r0 in the driver, which a veth takes if its peer polls.
    pub fn redirect_back(&self, on: bool) -> Result<()> {
        self.generator.run(|| Ok(set_offload("g0", Offload::Gro, on)?))
    }

    /// Redirects every frame from r0 to r1 in the driver, unchanged.
    pub fn redirect(&self) -> Result<XdpLink> {
        self.router.run(|| {
            let mut a = Asm::new();
            a.mov(Reg::R1, Interface::open("r1")?.index as i32);
            a.mov(Reg::R2, 0);
            a.call(Helper::Redirect);
            a.exit();
            let program = Program::load(ProgramKind::Xdp, "redirect", &a.finish()?)?;
            Ok(XdpLink::attach(&program, "r0", Interface::open("r0")?.index, XdpMode::Native)?)
        })
    }

    /// Starts `causeway up` between r0 and r1, with more `options`.
    pub fn causeway(&self, processor: usize, options: &[&str]) -> Result<Process> {
        let binary = std::env::current_exe().context("cannot find this program")?;
        let mut command = self.router.command(&binary.to_string_lossy());
        let name = format!("bench-{}", std::process::id());
        command.args([
            "up",
            "r0",
            "r1",
            "--attach",
            "xdp",
            "--name",
            &name,
            "--processors",
            &processor.to_string(),
        ]);
        command.args(options);
        Process::start(command, Some(READY))
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for signal in self.signals.drain(..) {
            signal_hook::low_level::unregister(signal);
        }
    }
}
