//! A router of simulated cards that people can touch: each port is a TAP, `port0` and so on, and so is each card towards
//! the operating system, `nic0` and so on, whose routing is the slow path.
//!
//! Time is the simulation's, some hundred times slower than the wall's; it stands while nothing moves. A TAP is read
//! only while its port has little to send, so that the kernel's queues fill as before a real card.

use std::io::BufRead as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use causeway_netio::Port;
use causeway_netio::tap::{self, Kind};
use causeway_nic_driver::{RuleTable, registers as reg};
use causeway_packet::{Batch, Packet};

use crate::faults::{Fault, Scheduled};
use crate::host::HostParameters;
use crate::scenario::{read_counters, source};
use crate::testbed::{Setup, Testbed};
use crate::traffic::Source;

/// Simulated time between two looks at the TAPs.
const SLICE_NS: u64 = 1_000;
/// Without a frame for so long nothing is under way: more than four full FIFOs take to drain.
const IDLE_NS: u64 = 1_000_000;
/// Frames that wait before a port.
const PORT_QUEUE: usize = 4;
/// The shortest frame without check sequence.
const SHORTEST: usize = 60;
/// What waves are of.
const WAVES_NS: u64 = 100_000;

/// The router, its TAPs, and what is asked of it.
pub struct Live {
    testbed: Testbed,
    ports: Vec<Port>,
    nics: Vec<Port>,
    last_frame_ns: u64,
    waves_until_ns: Option<u64>,
}

impl Live {
    /// Builds the router and makes its TAPs in the calling thread's network namespace.
    ///
    /// # Errors
    /// A TAP that cannot be made.
    pub fn new(table: &RuleTable) -> Result<Self, causeway_netio::Error> {
        let taps = |name: &str| -> Result<Vec<Port>, causeway_netio::Error> {
            (0..table.nics.len()).map(|n| tap::open(&format!("{name}{n}"), Kind::Tap, 1)).collect()
        };
        let (ports, nics) = (taps("port")?, taps("nic")?);
        // The host's time is the operating system's own.
        let host = HostParameters { packet_cost_ns: 100, ..HostParameters::default() };
        let testbed = Testbed::new(&Setup { foreign_frames: true, host, ..Setup::new(table) });
        Ok(Self { testbed, ports, nics, last_frame_ns: 0, waves_until_ns: None })
    }

    /// Runs until the commands' end or `quit`. They come line by line from the standard input:
    ///
    /// * `counters`: prints what the cards have counted;
    /// * `load PORT DEST SHARE`: the tester sends low-class frames of 512 bytes at a share of the line rate;
    /// * `stop`: it stops;
    /// * `unplug NIC`: the card loses the bus; `plug NIC`: it is back;
    /// * `waves FOLDER`: writes the next 100 µs as waves, a file a card, once (built with the feature `waves`).
    pub fn run(&mut self) {
        let (sender, commands) = channel();
        thread::spawn(move || {
            // What is no text is no command either, and no end.
            let lines = std::io::stdin().lock().split(b'\n').map_while(Result::ok);
            let text = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
            text.map_while(|line| sender.send(line).ok()).for_each(drop);
        });
        while self.obey(&commands) {
            let moved = self.exchange();
            let now_ns = self.testbed.now_ns();
            if moved {
                self.last_frame_ns = now_ns;
            }
            if self.is_idle() {
                thread::sleep(Duration::from_micros(200));
            } else {
                self.testbed.run_until(now_ns + SLICE_NS);
            }
            if self.waves_until_ns.is_some_and(|end_ns| end_ns < now_ns) {
                self.waves_until_ns = None;
                self.testbed.close_waves();
                say("the waves are written");
            }
        }
    }

    fn is_idle(&self) -> bool {
        let quiet_ns = self.testbed.now_ns() - self.last_frame_ns;
        quiet_ns > IDLE_NS && !self.testbed.has_sources() && self.waves_until_ns.is_none()
    }

    /// Does what is asked; whether to go on.
    fn obey(&mut self, commands: &Receiver<String>) -> bool {
        let line = match commands.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Empty) => return true,
            Err(TryRecvError::Disconnected) => return false,
        };
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [] => {}
            ["quit"] => return false,
            ["counters"] => self.print_counters(),
            ["stop"] => self.testbed.stop_sources(),
            ["waves", folder] if cfg!(feature = "waves") && self.waves_until_ns.is_none() => {
                self.testbed.open_waves(Path::new(folder));
                self.waves_until_ns = Some(self.testbed.now_ns() + WAVES_NS);
            }
            ["waves", _] => say("waves need a build with --features waves, and are written once at a time"),
            ["load", port, dest, share] => match self.load(port, dest, share) {
                Some(source) => self.testbed.add_source(source, 1),
                None => {
                    say("load PORT DEST SHARE: two ports of the router, and a number above 0 and up to 1")
                }
            },
            ["unplug", nic] => self.disturb(nic, Fault::Unplug),
            ["plug", nic] => self.disturb(nic, Fault::Plug),
            _ => say("counters | load PORT DEST SHARE | stop | unplug NIC | plug NIC | waves FOLDER | quit"),
        }
        true
    }

    /// The card of that number; each has one port.
    fn card(&self, text: &str) -> Option<u8> {
        text.parse().ok().filter(|&n: &u8| usize::from(n) < self.ports.len())
    }

    fn load(&self, port: &str, dest: &str, share: &str) -> Option<Source> {
        let load = share.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0)?;
        let start = source(self.card(port)?, &[self.card(dest)?]);
        Some(Source { load, frame_bytes: 512, start_ns: 0, ..start })
    }

    fn disturb(&mut self, nic: &str, fault: fn(u8) -> Fault) {
        let Some(nic) = self.card(nic) else { return say("there is no such card") };
        self.testbed.schedule([Scheduled { at_ps: self.testbed.now_ps(), fault: fault(nic) }]);
        // The others notice in time that passes.
        self.last_frame_ns = self.testbed.now_ns();
    }

    /// Frames from and to the TAPs; whether there were any.
    fn exchange(&mut self) -> bool {
        let mut moved = false;
        for port in 0..self.ports.len() {
            if !self.testbed.transmitter(port as u8).has_queued(PORT_QUEUE)
                && let Some(mut frame) = take(&mut self.ports[port])
            {
                frame.resize(frame.len().max(SHORTEST), 0);
                self.testbed.transmitter(port as u8).send(&frame);
                moved = true;
            }
            if self.testbed.host_mut().has_room(port as u8)
                && let Some(frame) = take(&mut self.nics[port])
            {
                self.testbed.host_mut().transmit(port as u8, &frame);
                moved = true;
            }
        }
        for (port, frame) in std::mem::take(&mut self.testbed.raw) {
            give(&mut self.ports[usize::from(port)], &frame);
            moved = true;
        }
        while let Some((nic, frame)) = self.testbed.host_mut().received.pop_front() {
            give(&mut self.nics[usize::from(nic)], &frame);
            moved = true;
        }
        moved
    }

    fn print_counters(&mut self) {
        for nic in 0..self.ports.len() as u8 {
            let counters = read_counters(&mut self.testbed, nic);
            // All ones is what is read where nobody answers.
            let answers = counters.iter().any(|(_, count)| *count != u64::MAX);
            let counted: Vec<String> = counters
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| format!("{name} {count}"))
                .collect();
            say(&format!(
                "nic{nic}: {}",
                if answers { counted.join(", ") } else { "does not answer".into() }
            ));
        }
        let links = self.testbed.read_register(0, reg::PEER_STATE);
        let [taken, given, lost] = taps(&self.ports);
        let sound = if self.testbed.line_errors.is_empty() { "sound" } else { "broken" };
        say(&format!("taps: {taken} taken, {given} given, {lost} lost, {sound}; links of nic0: {links:x}"));
    }
}

/// Frames taken from TAPs, given to them, and lost because nobody took them.
fn taps(ports: &[Port]) -> [u64; 3] {
    let halves = ports.iter().map(|port| &port.queues[0]);
    let counted: Vec<_> = halves
        .flat_map(|queue| [queue.rx.statistics(), queue.tx.statistics()])
        .flat_map(|s| s.list())
        .collect();
    let sum =
        |wanted: &[&str]| counted.iter().filter(|(name, _)| wanted.contains(name)).map(|(_, n)| n).sum();
    [sum(&["rx_packets"]), sum(&["tx_packets"]), sum(&["tx_drop_error", "tx_ring_full"])]
}

/// A frame that waits at a TAP.
fn take(port: &mut Port) -> Option<Vec<u8>> {
    let mut batch = Batch::new();
    port.queues[0].rx.poll(&mut batch, 1);
    batch.drain().next().map(|packet| packet.data().to_vec())
}

/// Gives a frame to a TAP; as with a wire, it is lost if nobody takes it.
fn give(port: &mut Port, frame: &[u8]) {
    let mut batch = Batch::new();
    batch.extend(Packet::from_bytes(frame));
    port.queues[0].tx.offer(&mut batch);
    port.queues[0].tx.flush();
}

#[allow(clippy::print_stdout)] // This is a program's answer.
fn say(what: &str) {
    println!("{what}");
}
