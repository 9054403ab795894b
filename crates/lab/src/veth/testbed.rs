//! Three network namespaces, g0--r0 router r1--s0, and what forwards between them. All of it goes when it is dropped.

use super::fib_lookup;
use crate::namespace::{Namespace, ip};
use crate::process::Process;
use anyhow::{Context, Result, bail};
use causeway_bpf::{Asm, Helper, Program, ProgramKind, Reg, XdpLink, XdpMode};
use causeway_netio::interface::Interface;
use causeway_netio::offload::{Offload, set_offload};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// What a router says once its ports are open.
const READY: &str = "control socket";

/// An IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V4,
    V6,
}

impl Version {
    /// Where the frames of the generator and the pings go, behind s0. The blocks are for benchmarks (RFC 2544, appendix
    /// C.2.2; RFC 5180 §8).
    pub const SINK: ([u8; 4], [u8; 16]) =
        ([198, 18, 2, 1], [0x20, 1, 0, 2, 0, 0, 0, 0x12, 0, 0, 0, 0, 0, 0, 0, 1]);
    /// Where they come from: g0.
    pub const GENERATOR: ([u8; 4], [u8; 16]) =
        ([10, 78, 1, 2], [0x20, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);

    pub fn name(self) -> &'static str {
        match self {
            Version::V4 => "IPv4",
            Version::V6 => "IPv6",
        }
    }

    pub fn ethertype(self) -> u16 {
        match self {
            Version::V4 => 0x0800,
            Version::V6 => 0x86dd,
        }
    }

    /// Bytes of a frame on the wire, with the checksum. UDP over IPv6 takes two more than the shortest frame of Ethernet has.
    pub fn frame_lens(self) -> [usize; 3] {
        match self {
            Version::V4 => [64, 512, 1518],
            Version::V6 => [66, 512, 1518],
        }
    }

    /// The sink's address.
    pub fn sink(self) -> IpAddr {
        match self {
            Version::V4 => Self::SINK.0.into(),
            Version::V6 => Self::SINK.1.into(),
        }
    }

    /// The router's way to the sink.
    pub fn gateway(self) -> &'static str {
        match self {
            Version::V4 => "10.78.2.2",
            Version::V6 => "2001:2:0:2::2",
        }
    }

    /// The first address of the `n`th of the networks that frames go to: 16.0.0.0/24 and 2400::/48 are number 0.
    pub fn network(self, n: u32) -> u128 {
        match self {
            Version::V4 => (16 << 24) + (u128::from(n) << 8),
            Version::V6 => (0x2400 << 112) + (u128::from(n) << 80),
        }
    }

    /// The prefix of one of them.
    pub fn prefix(self, n: u32) -> String {
        let first = self.network(n);
        match self {
            Version::V4 => format!("{}/24", Ipv4Addr::from(first as u32)),
            Version::V6 => format!("{}/48", Ipv6Addr::from(first)),
        }
    }
}

/// What the hosts' interfaces do for their stacks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    /// Nothing: the other ends stand for cards, which get whole frames.
    Plain,
    /// What a veth does by default: segments and checksums are left open.
    Offloading,
}

/// One for a role, of a name that no other test bed has.
fn namespace(role: &str) -> Result<Namespace> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Namespace::new(&format!("cwb-{}-{role}{number}", std::process::id()))
}

/// The namespaces and the links between them.
pub struct Testbed {
    /// With g0.
    pub generator: Arc<Namespace>,
    /// With r0 and r1.
    pub router: Namespace,
    /// With s0.
    pub sink: Namespace,
    hosts: Hosts,
    interrupted: Arc<AtomicBool>,
    signals: Vec<signal_hook::SigId>,
}

impl Testbed {
    /// Makes the namespaces. From here to its end, an interrupt ends the benchmark instead of the process.
    pub fn new(hosts: Hosts) -> Result<Testbed> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let mut bed = Testbed {
            generator: Arc::new(namespace("g")?),
            router: namespace("r")?,
            sink: namespace("s")?,
            hosts,
            interrupted: interrupted.clone(),
            signals: Vec::new(),
        };
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            bed.signals.push(signal_hook::flag::register(signal, interrupted.clone())?);
        }
        bed.link(&bed.generator, "g0", "r0", 1)?;
        bed.link(&bed.sink, "s0", "r1", 2)?;
        bed.router.set("ipv4/ip_forward", "1")?;
        bed.router.set("ipv6/conf/all/forwarding", "1")?;
        let sink_mac = bed.sink.run(|| Ok(Interface::open("s0")?.mac))?;
        let mac = sink_mac.map(|b| format!("{b:02x}")).join(":");
        for (version, network) in [(Version::V4, "198.18.2.0/24"), (Version::V6, "2001:2:0:12::/64")] {
            let gateway = version.gateway();
            bed.router.ip(&format!("neigh replace {gateway} lladdr {mac} nud permanent dev r1"))?;
            bed.router.ip(&format!("route add {network} via {gateway}"))?;
            bed.sink.ip(&format!("addr add {} dev lo", version.sink()))?;
        }
        Ok(bed)
    }

    /// Connects `host` to the router by networks 10.78.`n`.0/24 and 2001:2:0:`n`::/64.
    fn link(&self, host: &Namespace, end: &str, port: &str, n: u8) -> Result<()> {
        for namespace in [host, &self.router] {
            // As little as can be is on the wire besides what is measured. Link-local addresses a router must have.
            namespace.set("ipv6/conf/default/accept_dad", "0")?;
            namespace.set("ipv6/conf/default/router_solicitations", "0")?;
            namespace.ip("link set lo up")?;
        }
        ip(&format!(
            "link add {end} netns {} type veth peer name {port} netns {}",
            host.name, self.router.name
        ))?;
        for (namespace, name, last) in [(host, end, 2), (&self.router, port, 1)] {
            namespace.ip(&format!("addr add 10.78.{n}.{last}/24 dev {name}"))?;
            namespace.ip(&format!("addr add 2001:2:0:{n}::{last}/64 dev {name} nodad"))?;
            namespace.ip(&format!("link set {name} up"))?;
        }
        if self.hosts == Hosts::Plain {
            // A host leaves checksums to the device, which a veth does not compute.
            host.run(|| Ok(set_offload(end, Offload::TxChecksum, false)?))?;
        }
        host.ip(&format!("route add default via 10.78.{n}.1"))?;
        host.ip(&format!("-6 route add default via 2001:2:0:{n}::1"))
    }

    /// Fails after an interrupt.
    pub fn check(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Packets that the kernel has forwarded in the router's namespace.
    pub fn kernel_forwarded(&self) -> Result<u64> {
        let texts = self.router.run(|| {
            let read = |path: &'static str| std::fs::read_to_string(path).context(path);
            Ok((read("/proc/thread-self/net/snmp")?, read("/proc/thread-self/net/snmp6")?))
        });
        let (v4, v6) = texts?;
        forwarded(&v4, &v6).context("the kernel does not say how many packets it has forwarded")
    }

    /// Leaves forwarding to the kernel.
    pub fn kernel(&self) -> Result<()> {
        if self.hosts == Hosts::Offloading {
            return Ok(());
        }
        // Gives r0 the interrupt work that frames redirected to g0 need. Only works while the interface is up.
        self.router.run(|| Ok(set_offload("r0", Offload::Gro, true)?))
    }

    /// Whether what is for the generator can be redirected to r0 in the driver, which a veth takes if its peer polls.
    pub fn redirect_back(&self, on: bool) -> Result<()> {
        if self.hosts == Hosts::Offloading {
            return Ok(());
        }
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
            attach(&Program::load(ProgramKind::Xdp, "redirect", &a.finish()?)?)
        })
    }

    /// Forwards what comes in by r0 in the driver, by the kernel's own tables.
    pub fn fib_lookup(&self) -> Result<XdpLink> {
        self.router.run(|| attach(&fib_lookup::program()?))
    }

    /// Starts `causeway up` between r0 and r1, with more `options`.
    pub fn causeway(&self, processor: usize, options: &[&str]) -> Result<Process> {
        let binary = std::env::current_exe().context("cannot find this program")?;
        let mut command = self.router.command(&binary.to_string_lossy());
        let name = format!("bench-{}", std::process::id());
        command.args(["up", "r0", "r1", "--name", &name, "--processors", &processor.to_string()]);
        command.args(options);
        Process::start(command, Some(READY))
    }
}

/// In front of r0, in the router's namespace.
fn attach(program: &Program) -> Result<XdpLink> {
    Ok(XdpLink::attach(program, "r0", Interface::open("r0")?.index, XdpMode::Native)?)
}

/// Packets of both versions that were forwarded, of the texts of snmp and snmp6.
fn forwarded(v4: &str, v6: &str) -> Option<u64> {
    let mut lines = v4.lines().filter_map(|l| l.strip_prefix("Ip:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    let (_, v4) = columns.find(|(name, _)| *name == "ForwDatagrams")?;
    let v6 = v6.lines().find_map(|l| l.strip_prefix("Ip6OutForwDatagrams"))?;
    Some(v4.parse::<u64>().ok()? + v6.trim().parse::<u64>().ok()?)
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for signal in self.signals.drain(..) {
            signal_hook::low_level::unregister(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_bpf::{XdpContext, action};
    use causeway_packet::checksum::checksum;

    #[test]
    fn forwarded_packets_are_those_of_both_versions() {
        let v4 = "Ip: Forwarding InReceives ForwDatagrams OutTransmits\nIp: 1 9 7 8\nIcmp: InMsgs\nIcmp: 3\n";
        let v6 = "Ip6InReceives                   \t2\nIp6OutForwDatagrams             \t5\n";
        assert_eq!(forwarded(v4, v6), Some(12));
        assert_eq!(forwarded(v4, ""), None);
        assert_eq!(forwarded("Ip: Forwarding\nIp: 1\n", v6), None);
    }

    #[test]
    fn networks_are_beside_one_another() {
        assert_eq!(
            (Version::V4.prefix(0), Version::V4.prefix(257)),
            ("16.0.0.0/24".into(), "16.1.1.0/24".into())
        );
        assert_eq!(
            (Version::V6.prefix(0), Version::V6.prefix(65_537)),
            ("2400::/48".into(), "2400:1:1::/48".into())
        );
    }

    /// What the kernel's tables say of a frame, by the program: where it goes, its lifetime, its checksum; and what it must not
    /// forward.
    #[test]
    fn a_frame_is_forwarded_by_the_kernels_tables() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root to make network namespaces");
        }
        let bed = Testbed::new(Hosts::Plain).expect("a test bed");
        bed.router
            .run(|| {
                let program = fib_lookup::program()?;
                let (r0, r1) = (Interface::open("r0")?, Interface::open("r1")?);
                let s0 = bed.sink.run(|| Ok(Interface::open("s0")?.mac))?;
                let context = Some(XdpContext { ingress_ifindex: r0.index, rx_queue_index: 0 });
                for (version, lifetime) in [(Version::V4, 22), (Version::V6, 21)] {
                    let frame = super::super::packets::frame(version, r0.mac, [2; 6], 80);
                    let run = program.test_run(&frame, context, 1)?;
                    assert_eq!(run.verdict, action::XDP_REDIRECT, "{version:?}");
                    assert_eq!((&run.data[..6], &run.data[6..12]), (&s0[..], &r1.mac[..]), "{version:?}");
                    assert_eq!(run.data[lifetime], frame[lifetime] - 1, "{version:?}");
                    if version == Version::V4 {
                        assert_eq!(checksum(&run.data[14..34]), 0);
                    }
                    let mut last = frame.clone();
                    last[lifetime] = 1;
                    let mut nowhere = frame.clone();
                    nowhere[if version == Version::V4 { 30 } else { 38 }] = 0x3f;
                    for left in [last, nowhere] {
                        let run = program.test_run(&left, context, 1)?;
                        assert_eq!((run.verdict, &run.data), (action::XDP_PASS, &left), "{version:?}");
                    }
                }
                Ok(())
            })
            .expect("run");
    }
}
