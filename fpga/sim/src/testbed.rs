//! Cards, bus, host and tester, and the two clocks that drive them.

use std::ffi::CString;
use std::path::Path;

use causeway_nic_driver::RuleTable;
use causeway_nic_driver::registers as reg;

use crate::gmii::{Receiver, Transmitter};
use crate::host::{Host, HostParameters, Transaction, command};
use crate::models::{Chipset, Nic4, Nic8};
use crate::scoreboard::Scoreboard;
use crate::traffic::{Generator, Source};

/// Period of the bus and packet logic clock: 66.67 MHz.
pub const PCI_NS: u64 = 15;
/// Period of the MAC clock: 125 MHz.
pub const MAC_NS: u64 = 8;

/// The wires that the agents of the bus share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusWires {
    frame: u64,
    irdy: u64,
    cmd: u64,
    ad: u64,
    devsel: u64,
    trdy: u64,
    disconnect: u64,
}

/// A card, whatever number of peers it was built for.
pub trait Card {
    /// Drives the clocks, resets, bus and GMII inputs, and reads the outputs.
    fn set_clocks(&mut self, pci: bool, mac: bool);
    /// Holds the card in reset.
    fn set_reset(&mut self, reset: bool);
    /// Lets inputs take effect.
    fn eval(&mut self);
    /// Sets the BAR.
    fn set_bar(&mut self, bar: u32);
    /// Sets the bus as the card sees it.
    fn set_bus(&mut self, wires: &BusWires, granted: bool);
    /// Adds what the card drives.
    fn drive(&self, wires: &mut BusWires);
    /// Whether the card asks for the bus.
    fn requests(&self) -> bool;
    /// The interrupt line.
    fn irq(&self) -> bool;
    /// Gives a byte time of GMII.
    fn set_rx(&mut self, data: u8, valid: bool);
    /// Reads a byte time of GMII.
    fn tx(&self) -> (u8, bool);
    /// Begins to write waves.
    fn open_waves(&mut self, path: &std::ffi::CStr);
    /// Writes the present values to the waves.
    fn dump(&mut self, time_ps: u64);
}

macro_rules! card {
    ($model:ty) => {
        impl Card for $model {
            fn set_clocks(&mut self, pci: bool, mac: bool) {
                self.set_pci_clk(pci.into());
                self.set_mac_clk(mac.into());
            }
            fn set_reset(&mut self, reset: bool) {
                self.set_pci_rst(reset.into());
                self.set_mac_rst(reset.into());
            }
            fn eval(&mut self) {
                <$model>::eval(self);
            }
            fn set_bar(&mut self, bar: u32) {
                <$model>::set_bar(self, bar.into());
            }
            fn set_bus(&mut self, wires: &BusWires, granted: bool) {
                self.set_gnt(granted.into());
                self.set_frame_i(wires.frame);
                self.set_irdy_i(wires.irdy);
                self.set_cmd_i(wires.cmd);
                self.set_ad_i(wires.ad);
                self.set_devsel_i(wires.devsel);
                self.set_trdy_i(wires.trdy);
                self.set_disconnect_i(wires.disconnect);
            }
            fn drive(&self, wires: &mut BusWires) {
                let frame = self.frame_o();
                wires.frame |= frame;
                wires.irdy |= self.irdy_o();
                if frame == 1 {
                    wires.cmd |= self.cmd_o();
                }
                wires.ad |= self.ad_o();
                wires.devsel |= self.devsel_o();
                wires.trdy |= self.trdy_o();
                wires.disconnect |= self.disconnect_o();
            }
            fn requests(&self) -> bool {
                self.req() == 1
            }
            fn irq(&self) -> bool {
                <$model>::irq(self) == 1
            }
            fn set_rx(&mut self, data: u8, valid: bool) {
                self.set_gmii_rxd(data.into());
                self.set_gmii_rx_dv(valid.into());
                self.set_gmii_rx_er(0);
            }
            fn tx(&self) -> (u8, bool) {
                (self.gmii_txd() as u8, self.gmii_tx_en() == 1)
            }
            fn open_waves(&mut self, path: &std::ffi::CStr) {
                <$model>::open_waves(self, path);
            }
            fn dump(&mut self, time_ps: u64) {
                <$model>::dump(self, time_ps);
            }
        }
    };
}
card!(Nic4);
card!(Nic8);

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
    /// Idle bus cycles before a grant, on top of the protocol's own five a sequence.
    pub bus_extra_cycles: u64,
    /// [`reg::GRANT_MIN_WORDS`].
    pub grant_min_words: u64,
    /// Bits ORed into [`reg::CONTROL`].
    pub control: u64,
    /// What uninitialised registers hold.
    pub seed: u64,
}

/// A running router with a tester at its ports.
pub struct Testbed {
    cards: Vec<Box<dyn Card>>,
    chipset: Chipset,
    wires: BusWires,
    host: Host,
    transaction: Option<(Transaction, usize)>,
    transmitters: Vec<Transmitter>,
    receivers: Vec<Receiver>,
    generators: Vec<Generator>,
    /// Checks and statistics.
    pub scoreboard: Scoreboard,
    /// Frames of no generator that left a port; filled when there is no generator.
    pub raw: Vec<(u8, Vec<u8>)>,
    bus: BusUse,
    now_ns: u64,
    next_pci_ns: u64,
    next_mac_ns: u64,
    waves: bool,
    last_activity_ns: u64,
    last_requests: u64,
    high: (bool, bool),
    in_reset: bool,
}

impl Testbed {
    /// Builds the router, resets it, and loads the tables through the bus.
    pub fn new(setup: &Setup) -> Self {
        let count = setup.table.nics.len();
        let cards = (0..count as u64).map(|n| -> Box<dyn Card> {
            let seed = (setup.seed + n) as i32 + 1;
            if count <= 4 { Box::new(Nic4::new(seed)) } else { Box::new(Nic8::new(seed)) }
        });
        let mut host = Host::new(&setup.host_table, setup.host);
        for nic in 0..count as u8 {
            host.set_up(nic);
            host.write(reg::bus_address(nic, reg::GRANT_MIN_WORDS), setup.grant_min_words);
        }
        for nic in 0..count as u8 {
            for (register, mut value) in reg::compile(&setup.table, nic) {
                value |= if register == reg::CONTROL { setup.control } else { 0 };
                host.write(reg::bus_address(nic, register), value);
            }
        }
        let scoreboard = Scoreboard::new(setup.table.clone(), setup.host_table.clone());
        let mut testbed = Self {
            cards: cards.collect(),
            chipset: Chipset::new(setup.seed as i32 + 1),
            wires: BusWires::default(),
            host,
            transaction: None,
            transmitters: (0..count).map(|_| Transmitter::default()).collect(),
            receivers: (0..count).map(|_| Receiver::default()).collect(),
            generators: Vec::new(),
            scoreboard,
            raw: Vec::new(),
            bus: BusUse::default(),
            now_ns: 0,
            next_pci_ns: PCI_NS,
            next_mac_ns: MAC_NS,
            waves: false,
            last_activity_ns: 0,
            last_requests: 0,
            high: (false, false),
            in_reset: true,
        };
        testbed.reset(setup.bus_extra_cycles);
        testbed
    }

    /// Waves of every card, in `card0.vcd` and so on; needs the feature `waves`.
    pub fn open_waves(&mut self, folder: &Path) {
        for (n, card) in self.cards.iter_mut().enumerate() {
            let path = folder.join(format!("card{n}.vcd"));
            if let Ok(path) = CString::new(path.to_string_lossy().into_owned()) {
                card.open_waves(&path);
                self.waves = true;
            }
        }
    }

    fn reset(&mut self, bus_extra_cycles: u64) {
        self.chipset.set_rst(1);
        self.chipset.set_start(0);
        self.chipset.set_extra_cycles(bus_extra_cycles);
        for (n, card) in self.cards.iter_mut().enumerate() {
            card.set_reset(true);
            card.set_bar(reg::bus_address(n as u8, 0));
        }
        self.run_until(self.now_ns + 400);
        self.chipset.set_rst(0);
        self.cards.iter_mut().for_each(|card| card.set_reset(false));
        self.in_reset = false;
        while !self.host.is_quiet(self.now_ns) || self.transaction.is_some() {
            self.step();
        }
    }

    /// The present time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The number of cards.
    pub fn card_count(&self) -> usize {
        self.cards.len()
    }

    /// The host model.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// How the bus has been used since the start.
    pub fn bus(&self) -> BusUse {
        self.bus
    }

    /// Adds traffic; its times count from now.
    pub fn add_source(&mut self, mut source: Source, seed: u64) {
        source.start_ns += self.now_ns;
        self.generators.push(Generator::new(source, seed));
    }

    /// Ends all traffic.
    pub fn stop_sources(&mut self) {
        self.generators.clear();
    }

    /// Queues a frame with a given check sequence at a port.
    pub fn send_raw(&mut self, port: u8, frame: &[u8], fcs: u32) {
        self.transmitters[usize::from(port)].send_with_fcs(frame, fcs);
    }

    /// Runs to a time.
    pub fn run_until(&mut self, end_ns: u64) {
        while self.next_pci_ns.min(self.next_mac_ns) <= end_ns {
            self.step();
        }
    }

    /// Runs until nothing has moved for 200 microseconds, at most `limit_ns`.
    pub fn drain(&mut self, limit_ns: u64) {
        let limit_ns = self.now_ns + limit_ns;
        self.last_activity_ns = self.now_ns;
        while self.now_ns < limit_ns && self.now_ns < self.last_activity_ns + 200_000 {
            self.step();
        }
    }

    /// Reads a register over the bus.
    pub fn read_register(&mut self, nic: u8, register: u16) -> u64 {
        while self.transaction.is_some() {
            self.step();
        }
        let address = reg::bus_address(nic, register);
        let read = Transaction { command: command::READ_DWORD, address, data: vec![0] };
        self.start(read);
        while self.transaction.is_some() {
            self.step();
        }
        self.chipset.read_data()
    }

    /// The edge that is next: bus clock, MAC clock, or both.
    fn step(&mut self) {
        self.now_ns = self.next_pci_ns.min(self.next_mac_ns);
        let pci = self.now_ns == self.next_pci_ns;
        let mac = self.now_ns == self.next_mac_ns;
        if mac {
            self.feed_ports();
        }
        let granted = self.chipset.card_gnt();
        // A falling edge is put where an evaluation is due anyway, unless the same clock rises next.
        let fall = (pci && self.high.0) || (mac && self.high.1);
        self.high = (pci, mac);
        for (n, card) in self.cards.iter_mut().enumerate() {
            if pci {
                card.set_bus(&self.wires, granted >> n & 1 == 1);
            }
            if fall {
                card.set_clocks(false, false);
                card.eval();
                if self.waves {
                    card.dump(self.now_ns * 1_000 - 500);
                }
            }
            card.set_clocks(pci, mac);
            card.eval();
            if self.waves {
                card.dump(self.now_ns * 1_000);
            }
        }
        if pci {
            self.next_pci_ns += PCI_NS;
            self.clock_chipset();
        }
        if mac {
            self.next_mac_ns += MAC_NS;
            if !self.in_reset {
                self.collect_ports();
            }
        }
    }

    fn feed_ports(&mut self) {
        for generator in &mut self.generators {
            let port = generator.port();
            if let Some(stamp) = generator.due(self.now_ns) {
                let mac = self.scoreboard.router_mac(port);
                self.scoreboard.sent(&stamp);
                self.transmitters[usize::from(port)].send(&stamp.frame(mac));
            }
        }
        for (card, transmitter) in self.cards.iter_mut().zip(&mut self.transmitters) {
            let (data, valid) = transmitter.tick();
            card.set_rx(data, valid);
        }
    }

    fn collect_ports(&mut self) {
        for (port, (card, receiver)) in self.cards.iter().zip(&mut self.receivers).enumerate() {
            let (data, enable) = card.tx();
            if let Some(frame) = receiver.tick(data, enable) {
                self.last_activity_ns = self.now_ns;
                match frame {
                    Ok(frame) if self.generators.is_empty() && self.scoreboard.flows.is_empty() => {
                        self.raw.push((port as u8, frame));
                    }
                    Ok(frame) => self.scoreboard.delivered(port as u8, &frame, self.now_ns),
                    Err(e) => self.scoreboard.error(format!("port {port}: {e:?}")),
                }
            }
        }
    }

    fn clock_chipset(&mut self) {
        let requests =
            self.cards.iter().enumerate().fold(0, |r, (n, card)| r | u64::from(card.requests()) << n);
        // The chipset sees the bus as it was before this edge; what the cards drove at this edge is collected after.
        let old_requests = std::mem::replace(&mut self.last_requests, requests);
        let chipset = &mut self.chipset;
        chipset.set_card_req(old_requests);
        chipset.set_frame_i(self.wires.frame);
        chipset.set_irdy_i(self.wires.irdy);
        chipset.set_cmd_i(self.wires.cmd);
        chipset.set_ad_i(self.wires.ad);
        chipset.set_devsel_i(self.wires.devsel);
        chipset.set_trdy_i(self.wires.trdy);
        chipset.set_disconnect_i(self.wires.disconnect);
        chipset.set_clk(0);
        chipset.eval();
        let popped = chipset.pop() == 1;
        chipset.set_clk(1);
        chipset.eval();
        self.bus.cycles += 1;
        self.bus.busy += u64::from(self.wires.frame == 1 || old_requests != 0 || chipset.req() == 1);
        self.bus.data += self.wires.irdy | self.wires.trdy;
        self.collect_wires();
        if !self.in_reset {
            self.serve_host(popped);
        }
    }

    fn collect_wires(&mut self) {
        let mut wires = BusWires::default();
        self.cards.iter().for_each(|card| card.drive(&mut wires));
        let chipset = &self.chipset;
        let frame = chipset.frame_o();
        wires.frame |= frame;
        wires.irdy |= chipset.irdy_o();
        wires.cmd |= if frame == 1 { chipset.cmd_o() } else { 0 };
        wires.ad |= chipset.ad_o();
        wires.devsel |= chipset.devsel_o();
        self.wires = wires;
    }

    fn serve_host(&mut self, popped: bool) {
        if self.chipset.mem_wr_valid() == 1 {
            self.host.memory_write(self.chipset.mem_wr_addr() as u32, self.chipset.mem_wr_data());
        }
        if self.chipset.mem_rd_valid() == 1 {
            let (address, words) = (self.chipset.mem_rd_addr() as u32, self.chipset.mem_rd_words());
            self.host.memory_read(self.now_ns, address, words, self.chipset.mem_rd_requester() as u8);
        }
        let irq = self.cards.iter().enumerate().fold(0, |r, (n, card)| r | u32::from(card.irq()) << n);
        self.host.run(self.now_ns, irq);
        self.chipset.set_start(0);
        if let Some((transaction, position)) = &mut self.transaction {
            if popped {
                *position += 1;
                self.chipset.set_data(transaction.data.get(*position).copied().unwrap_or(0));
            }
            if self.chipset.done() == 1 {
                if self.chipset.aborted() == 1 {
                    self.scoreboard.error("the host addressed nobody".into());
                }
                self.host.transacted(transaction);
                self.transaction = None;
            }
        } else if let Some(next) = self.host.next_transaction(self.now_ns) {
            self.start(next);
        }
    }

    fn start(&mut self, transaction: Transaction) {
        self.chipset.set_start(1);
        self.chipset.set_cmd(transaction.command.into());
        self.chipset.set_addr(transaction.address.into());
        self.chipset.set_words(transaction.data.len() as u64);
        self.chipset.set_data(transaction.data.first().copied().unwrap_or(0));
        self.transaction = Some((transaction, 0));
    }
}
