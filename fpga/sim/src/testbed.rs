//! Cards, bus, host and tester, and the clocks that drive them: one for the bus and all packet logic, and for each
//! card two of its MAC's, of any phase and some parts in a million off.

use std::ffi::CString;
use std::path::Path;

use causeway_nic_driver::RuleTable;
use causeway_nic_driver::registers as reg;

use crate::card::{BusWires, Card, Edges};
use crate::faults::{Fault, Scheduled};
use crate::gmii::{LineError, Transmitter};
use crate::host::{Host, HostParameters, Transaction};
use crate::models::{Chipset, Nic4, Nic8};
use crate::scoreboard::Scoreboard;
use crate::slot::{ClockSkew, Slot};
use crate::traffic::{Generator, Source, Stamp};

pub use causeway_model::enhanced::{PCI_66_PS, PCI_133_PS};

mod bus;

/// How the bus was used, in bus clock cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusUse {
    /// All cycles.
    pub cycles: u64,
    /// A sequence was under way, or the bus wanted.
    pub busy: u64,
    /// A data word was moved.
    pub data: u64,
}

/// What a testbed is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What the cards are loaded with.
    pub table: RuleTable,
    /// What the host forwards by.
    pub host_table: RuleTable,
    /// The host's speed.
    pub host: HostParameters,
    /// The clock of bus and packet logic.
    pub bus_period_ps: u64,
    /// Idle bus cycles before a grant, on top of the protocol's own five a sequence.
    pub bus_extra_cycles: u64,
    /// Registers written to every card after the rules and before it is enabled.
    pub registers: Vec<reg::Write>,
    /// Receive and transmit clock of each card; exact and in phase beyond the end.
    pub clocks: Vec<[ClockSkew; 2]>,
    /// Cards that are not there at all.
    pub absent: Vec<u8>,
    /// Frames of no generator come beside those of generators, and the host hands on what it receives
    /// ([`Host::received`]) instead of forwarding it.
    pub foreign_frames: bool,
    /// What uninitialised registers hold.
    pub seed: u64,
}

impl Setup {
    /// A router of `table` whose host knows the same, with the defaults: 66.67 MHz, ten cycles of bus overhead.
    pub fn new(table: &RuleTable) -> Self {
        Self {
            table: table.clone(),
            host_table: table.clone(),
            host: HostParameters::default(),
            bus_period_ps: PCI_66_PS,
            bus_extra_cycles: 5,
            registers: Vec::new(),
            clocks: Vec::new(),
            absent: Vec::new(),
            foreign_frames: false,
            seed: 1,
        }
    }
}

/// A running router with a tester at its ports.
pub struct Testbed {
    slots: Vec<Slot>,
    chipset: Chipset,
    wires: BusWires,
    host: Host,
    transaction: Option<(Transaction, usize)>,
    failed: bool,
    generators: Vec<Generator>,
    setup: Setup,
    faults: Vec<Scheduled>,
    /// Words to come, and their bits, that turn over.
    corrupt: (u32, u64),
    /// Checks and statistics.
    pub scoreboard: Scoreboard,
    /// Frames of no generator that left a port; kept when there is no generator, or the setup takes foreign frames.
    pub raw: Vec<(u8, Vec<u8>)>,
    /// What a receiver of a port's frames would have refused.
    pub line_errors: Vec<(u8, LineError)>,
    bus: BusUse,
    now_ps: u64,
    next_core_ps: u64,
    waves: bool,
    last_activity_ps: u64,
    last_requests: u64,
    in_reset: bool,
}

impl Testbed {
    /// Builds the router, resets it, loads the tables through the bus, and waits until the links are up.
    pub fn new(setup: &Setup) -> Self {
        let count = setup.table.nics.len();
        let slots = (0..count as u8).map(|n| {
            let seed = (setup.seed + u64::from(n)) as i32 + 1;
            let card: Box<dyn Card> =
                if count <= 4 { Box::new(Nic4::new(seed)) } else { Box::new(Nic8::new(seed)) };
            let clocks = setup.clocks.get(usize::from(n)).copied().unwrap_or_default();
            Slot::new(card, reg::bus_address(n, 0), clocks, setup.absent.contains(&n))
        });
        let mut testbed = Self {
            slots: slots.collect(),
            chipset: Chipset::new(setup.seed as i32 + 1),
            wires: BusWires::default(),
            host: Host::new(&setup.host_table, setup.host, setup.bus_period_ps),
            transaction: None,
            failed: false,
            generators: Vec::new(),
            setup: setup.clone(),
            faults: Vec::new(),
            corrupt: (0, 0),
            scoreboard: Scoreboard::new(setup.table.clone(), setup.host_table.clone()),
            raw: Vec::new(),
            line_errors: Vec::new(),
            bus: BusUse::default(),
            now_ps: 0,
            next_core_ps: setup.bus_period_ps,
            waves: false,
            last_activity_ps: 0,
            last_requests: 0,
            in_reset: true,
        };
        testbed.host.hands_on = setup.foreign_frames;
        testbed.begin();
        testbed
    }

    /// Waves of every card, in `card0.vcd` and so on; needs the feature `waves`.
    pub fn open_waves(&mut self, folder: &Path) {
        for (n, slot) in self.slots.iter_mut().enumerate() {
            let path = folder.join(format!("card{n}.vcd"));
            if let Ok(path) = CString::new(path.to_string_lossy().into_owned()) {
                slot.card.open_waves(&path);
                self.waves = true;
            }
        }
    }

    /// Ends the waves for now; [`open_waves`](Self::open_waves) cannot begin them again elsewhere.
    pub fn close_waves(&mut self) {
        self.waves = false;
    }

    fn begin(&mut self) {
        self.chipset.set_rst(1);
        self.chipset.set_start(0);
        self.chipset.set_extra_cycles(self.setup.bus_extra_cycles);
        self.run_until_ps(400_000);
        self.chipset.set_rst(0);
        self.slots.iter_mut().for_each(|slot| slot.hold(Edges::default()));
        self.in_reset = false;
        let there: Vec<u8> = (0..self.slots.len() as u8).filter(|n| !self.setup.absent.contains(n)).collect();
        there.iter().for_each(|&nic| self.set_up(nic));
        while !self.host.is_quiet(self.now_ps) || self.transaction.is_some() {
            self.step();
        }
        for &nic in &there {
            while !self.is_linked(nic) {
                self.step();
            }
        }
    }

    /// Queues all that the driver writes to a card after its reset.
    fn set_up(&mut self, nic: u8) {
        self.host.set_up(nic);
        let writes = reg::compile(&self.setup.table, nic);
        let (rules, enable) = writes.split_at(writes.len() - 1);
        for &(register, value) in rules.iter().chain(&self.setup.registers).chain(enable) {
            self.host.write(nic, register, value);
        }
    }

    /// Queues the writes of another table for a card, without stopping it.
    pub fn load(&mut self, nic: u8, table: &RuleTable) {
        for (register, value) in reg::rules(table, nic) {
            self.host.write(nic, register, value);
        }
    }

    /// Whether a card has links in both directions with all others that are there.
    pub fn is_linked(&mut self, nic: u8) -> bool {
        let state = self.read_register(nic, reg::PEER_STATE);
        let mut others = (0..self.slots.len()).filter(|&n| n != usize::from(nic) && !self.slots[n].absent);
        others.all(|n| state >> (4 * n) & 3 == 3)
    }

    /// The present time, from the beginning of the simulation.
    pub fn now_ps(&self) -> u64 {
        self.now_ps
    }

    /// The same in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ps / 1_000
    }

    /// Whether a card raises its interrupt.
    pub fn interrupts(&self, nic: u8) -> bool {
        self.slots[usize::from(nic)].interrupts()
    }

    /// The number of cards.
    pub fn card_count(&self) -> usize {
        self.slots.len()
    }

    /// The host model.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The host model, to write to cards.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }

    /// How the bus has been used since the start.
    pub fn bus(&self) -> BusUse {
        self.bus
    }

    /// Adds traffic; its times count from now.
    pub fn add_source(&mut self, mut source: Source, seed: u64) {
        source.start_ns += self.now_ns();
        self.generators.push(Generator::new(source, seed));
    }

    /// Whether there is traffic.
    pub fn has_sources(&self) -> bool {
        !self.generators.is_empty()
    }

    /// Ends all traffic.
    pub fn stop_sources(&mut self) {
        self.generators.clear();
    }

    /// Adds faults; their times count from the beginning.
    pub fn schedule(&mut self, faults: impl IntoIterator<Item = Scheduled>) {
        self.faults.extend(faults);
        // The next one is the last.
        self.faults.sort_by_key(|scheduled| std::cmp::Reverse(scheduled.at_ps));
    }

    /// The tester's transmitter at a port.
    pub fn transmitter(&mut self, port: u8) -> &mut Transmitter {
        &mut self.slots[usize::from(port)].transmitter
    }

    /// Queues a frame with a given check sequence at a port.
    pub fn send_raw(&mut self, port: u8, frame: &[u8], fcs: u32) {
        self.transmitter(port).send_with_fcs(frame, fcs);
    }

    /// Runs to a time.
    pub fn run_until_ps(&mut self, end_ps: u64) {
        while self.next_edge_ps() <= end_ps {
            self.step();
        }
    }

    /// Runs to a time.
    pub fn run_until(&mut self, end_ns: u64) {
        self.run_until_ps(end_ns * 1_000);
    }

    /// Runs until nothing has moved for 200 microseconds, at most `limit_ns`.
    pub fn drain(&mut self, limit_ns: u64) {
        let limit_ps = self.now_ps + limit_ns * 1_000;
        self.last_activity_ps = self.now_ps;
        while self.now_ps < limit_ps && self.now_ps < self.last_activity_ps + 200_000_000 {
            self.step();
        }
    }

    fn next_edge_ps(&self) -> u64 {
        self.slots.iter().map(Slot::next_edge_ps).fold(self.next_core_ps, u64::min)
    }

    /// The instant that is next, with all edges of it.
    pub fn step(&mut self) {
        self.now_ps = self.next_edge_ps();
        let core = self.now_ps == self.next_core_ps;
        if core {
            self.next_core_ps += self.setup.bus_period_ps;
            self.fault();
        }
        self.generate();
        let granted = self.chipset.card_gnt();
        for port in 0..self.slots.len() {
            let granted = granted >> port & 1 == 1;
            let slot = &mut self.slots[port];
            if slot.step(self.now_ps, core, &self.wires, granted, self.waves) && !self.in_reset {
                self.collect(port);
            }
        }
        if core {
            self.clock_chipset();
        }
    }

    /// Frames whose time has come.
    fn generate(&mut self) {
        let now_ns = self.now_ps / 1_000;
        for generator in &mut self.generators {
            if let Some(stamp) = generator.due(now_ns) {
                let port = generator.port();
                let mac = self.scoreboard.router_mac(port);
                self.scoreboard.sent(&stamp);
                self.slots[usize::from(port)].transmitter.send(&stamp.frame(mac));
            }
        }
    }

    /// What leaves a port.
    fn collect(&mut self, port: usize) {
        let slot = &mut self.slots[port];
        let (data, enable, error) = slot.card.tx();
        let Some(frame) = slot.receiver.tick(data, enable, error) else { return };
        self.last_activity_ps = self.now_ps;
        match frame {
            Ok(frame) if self.is_foreign(&frame) => self.raw.push((port as u8, frame)),
            Ok(frame) => self.scoreboard.delivered(port as u8, &frame, self.now_ps / 1_000),
            Err(e) => self.line_errors.push((port as u8, e)),
        }
    }

    fn is_foreign(&self, frame: &[u8]) -> bool {
        if self.setup.foreign_frames {
            return Stamp::read(frame).is_none();
        }
        self.generators.is_empty() && self.scoreboard.flows.is_empty()
    }

    fn fault(&mut self) {
        while self.faults.last().is_some_and(|scheduled| scheduled.at_ps <= self.now_ps) {
            let Some(Scheduled { fault, .. }) = self.faults.pop() else { return };
            self.last_activity_ps = self.now_ps;
            self.apply(fault);
        }
    }

    fn apply(&mut self, fault: Fault) {
        let now_ps = self.now_ps;
        let slot = |nic: u8| usize::from(nic);
        match fault {
            Fault::Unplug(nic) => self.slots[slot(nic)].plugged = false,
            Fault::Plug(nic) => self.slots[slot(nic)].plugged = true,
            Fault::Reset(nic, resets) => self.slots[slot(nic)].hold(resets),
            Fault::Release(nic) => self.slots[slot(nic)].hold(Edges::default()),
            Fault::SetUp(nic) => self.set_up(nic),
            Fault::StopReceiveClock(nic) => self.slots[slot(nic)].rx.stop(),
            Fault::StartReceiveClock(nic) => self.slots[slot(nic)].rx.start(now_ps),
            Fault::Starve(nic) => self.slots[slot(nic)].starved = true,
            Fault::Feed(nic) => self.slots[slot(nic)].starved = false,
            Fault::IgnoreReads(count) => self.host.faulty_reads.0 += count,
            Fault::AnswerLate(count) => self.host.faulty_reads.1 += count,
            Fault::CorruptWords(count, bits) => self.corrupt = (count, bits),
            Fault::Write(nic, (register, value)) => self.host.write(nic, register, value),
            Fault::BusExtraCycles(cycles) => self.chipset.set_extra_cycles(cycles),
        }
    }
}
