//! An inspector in a test bed, what it told, and what it asks the kernel by calls that take unsafe code.
#![allow(dead_code)] // Each test file uses its own part.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use causeway_kernel::{
    Attachment, Finding, Inspection, InspectionDoubt as Doubt, Inspector, InspectorConfig, Probe, Program,
    Settings,
};

use crate::common::Testbed;

/// Asks as the router does, and says of programs what the test wants.
#[derive(Default)]
pub struct TestProbe {
    pub programs: Mutex<Vec<Program>>,
    /// Nothing can be asked.
    pub broken: Mutex<bool>,
    /// Runs when the programs are asked for the next time.
    pub meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Probe for TestProbe {
    fn socket_option(
        &self,
        socket: BorrowedFd<'_>,
        level: i32,
        name: i32,
        value: &mut [u8],
    ) -> io::Result<usize> {
        causeway_netio::socket_option(socket, level, name, value)
    }

    fn filter_dumps(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        causeway_netio::filter_dumps(socket)
    }

    fn programs(&self, _ports: &[u32]) -> io::Result<Vec<Program>> {
        if let Some(meanwhile) = self.meanwhile.lock().unwrap().take() {
            meanwhile();
        }
        if *self.broken.lock().unwrap() {
            return Err(io::Error::other("broken"));
        }
        Ok(self.programs.lock().unwrap().clone())
    }
}

/// A router that forwards between its ports and has nothing to find.
pub fn router(tag: &str) -> Option<Testbed> {
    let bed = Testbed::new(tag)?;
    // Only a change of the setting is obeyed everywhere.
    bed.router.run("sysctl -qw net.ipv4.ip_forward=0");
    bed.router.run("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
    Some(bed)
}

/// Whether there is nft, and what it asks the kernel for; says so if not.
pub fn has_nft() -> bool {
    let there = Command::new("nft").args(["list", "ruleset"]).output();
    let there = there.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("skipped: needs nft (nftables)");
    }
    there
}

/// A running inspector of the router's ports `r0` and `r1`.
pub struct Watched {
    /// Ends before what it reports to.
    pub inspector: Option<Inspector>,
    pub probe: Arc<TestProbe>,
    pub pulse: Arc<AtomicU64>,
    /// Held by the test, it holds up the inspector's thread in its next report.
    pub gate: Arc<Mutex<()>>,
    /// Reports that were begun.
    pub begun: Arc<AtomicU64>,
    inspections: Receiver<Inspection>,
    /// What is known.
    pub findings: Vec<Finding>,
    pub settings: Settings,
    pub exceptions: BTreeSet<IpAddr>,
}

impl Watched {
    /// Opens one; nothing is known yet.
    pub fn open(bed: &Testbed, receive_buffer_bytes: usize) -> Watched {
        Watched::open_with(bed, receive_buffer_bytes, TestProbe::default())
    }

    /// Opens one that asks so.
    pub fn open_with(bed: &Testbed, receive_buffer_bytes: usize, probe: TestProbe) -> Watched {
        let (sender, inspections) = channel();
        let (probe, gate) = (Arc::new(probe), Arc::new(Mutex::new(())));
        let ports = ["r0", "r1"].map(str::to_owned);
        let mut config = InspectorConfig::new(ports, probe.clone());
        config.receive_buffer_bytes = receive_buffer_bytes;
        let pulse = config.pulse.clone();
        let begun = Arc::new(AtomicU64::new(0));
        let (held, beginning) = (gate.clone(), begun.clone());
        let report = move |inspection| {
            beginning.fetch_add(1, Ordering::Relaxed);
            drop(held.lock().unwrap());
            let _ = sender.send(inspection);
        };
        let inspector = bed.router.enter(|| Inspector::open(config, report).unwrap());
        let (findings, settings, exceptions) = (Vec::new(), Settings::default(), BTreeSet::new());
        let inspector = Some(inspector);
        Watched { inspector, probe, pulse, gate, begun, inspections, findings, settings, exceptions }
    }

    /// Opens one and waits until it knows that there is nothing to find.
    pub fn quiet(bed: &Testbed) -> Watched {
        let mut watched = Watched::open(bed, 4 << 20);
        assert_eq!(watched.until("all is known", |_| true), [Doubt::Start]);
        assert_eq!(watched.findings, []);
        watched
    }

    /// The next that is told; panics after some seconds.
    pub fn next(&mut self, what: &str) -> Inspection {
        let next = self.inspections.recv_timeout(Duration::from_secs(20));
        let next = next.unwrap_or_else(|_| panic!("never: {what}; known: {:#?}", self.findings));
        if let Inspection::Known { findings, settings, exceptions } = &next {
            (self.findings, self.settings) = (findings.clone(), settings.clone());
            self.exceptions.clone_from(exceptions);
        }
        next
    }

    /// Waits until something known satisfies `condition`; panics after some seconds. Returns what was in doubt meanwhile.
    pub fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) -> Vec<Doubt> {
        let end = Instant::now() + Duration::from_secs(20);
        let mut doubts = Vec::new();
        loop {
            assert!(Instant::now() < end, "never: {what}; known: {:#?}", self.findings);
            match self.next(what) {
                Inspection::Doubt(doubt) => doubts.push(doubt),
                Inspection::Known { .. } if condition(self) => return doubts,
                Inspection::Known { .. } => {}
            }
        }
    }

    /// Lets the inspector find something that no message tells of, and lose it again: what happened before is known then.
    /// Returns what was in doubt meanwhile.
    pub fn mark(&mut self) -> Vec<Doubt> {
        *self.probe.programs.lock().unwrap() = vec![Program { attachment: Attachment::Netfilter, id: 1 }];
        let mut doubts = self.until("the mark", |w| w.found("netfilter-program"));
        self.probe.programs.lock().unwrap().clear();
        doubts.extend(self.until("no mark", |w| !w.found("netfilter-program")));
        doubts
    }

    /// Makes the inspector's thread report something and holds it up there while `meanwhile` runs.
    pub fn hold_up(&mut self, provoke: impl FnOnce(&Self), meanwhile: impl FnOnce(&Self)) {
        let gate = self.gate.clone();
        let held = gate.lock().unwrap();
        let before = self.begun.load(Ordering::Relaxed);
        provoke(self);
        wait_while(|| self.begun.load(Ordering::Relaxed) == before);
        meanwhile(self);
        drop(held);
    }

    /// Whether something of that code was found.
    pub fn found(&self, code: &str) -> bool {
        self.findings.iter().any(|finding| finding.code() == code)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        drop(self.inspector.take());
    }
}

/// Waits until `condition` does not hold any more; panics after some seconds.
pub fn wait_while(condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while condition() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(1));
    }
}
