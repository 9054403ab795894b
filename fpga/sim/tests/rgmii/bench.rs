//! A PHY at the pads of a MAC, in steps of 25 ps.

use std::collections::VecDeque;

use causeway_nic_sim::gmii::{LineError, Receiver, Transmitter};
use causeway_nic_sim::models::{DelayedRx, DelayedTx};

/// What time is counted in, and what delays in the pads are.
pub const STEP_PS: i64 = 25;
/// Half a period of 125 MHz.
const HALF_FS: i64 = 4_000_000;
/// What a receiver is promised before and after an edge (RGMII 2.0: TsetupR, TholdR).
const STEADY_PS: i64 = 1_000;
/// What a PHY says between frames of its link (RGMII 1.3, section 3.4.1): up, 125 MHz, full duplex.
const IN_BAND: u8 = 0xd;

/// The pads of a model, and its streams.
pub trait Line {
    /// What the pads see and the clocks; then `eval`.
    fn set_pads(&mut self, step: bool, rx_clk: bool, rxd: u8, rx_ctl: bool, tx_clk: bool, clk: bool);
    /// Resets of the transmit side and of all.
    fn set_resets(&mut self, tx: bool, all: bool);
    /// Clock, data with the control line above them.
    fn pads(&self) -> (bool, u8);
    /// Offers a word to send: data, bytes, last.
    fn offer(&mut self, word: Option<(u64, u8, bool)>);
    /// The word that was offered is taken at the next edge.
    fn taken(&self) -> bool;
    /// A received word: data, bytes, last, what is wrong.
    fn received(&self) -> Option<(u64, u8, bool, u8)>;
    /// A carrier without start-of-frame delimiter was seen.
    fn no_delimiter(&self) -> bool;
}

macro_rules! line {
    ($model:ty) => {
        impl Line for $model {
            fn set_pads(&mut self, step: bool, rx_clk: bool, rxd: u8, rx_ctl: bool, tx_clk: bool, clk: bool) {
                self.set_step(step.into());
                self.set_rx_clk(rx_clk.into());
                self.set_rgmii_rxd(rxd.into());
                self.set_rgmii_rx_ctl(rx_ctl.into());
                self.set_tx_clk(tx_clk.into());
                self.set_clk(clk.into());
                self.eval();
            }
            fn set_resets(&mut self, tx: bool, all: bool) {
                self.set_tx_arst(tx.into());
                self.set_arst(all.into());
            }
            fn pads(&self) -> (bool, u8) {
                (self.rgmii_txc() == 1, (self.rgmii_tx_ctl() << 4 | self.rgmii_txd()) as u8)
            }
            fn offer(&mut self, word: Option<(u64, u8, bool)>) {
                let (data, keep, last) = word.unwrap_or_default();
                self.set_s_axis_tvalid(word.is_some().into());
                self.set_s_axis_tdata(data);
                self.set_s_axis_tkeep(keep.into());
                self.set_s_axis_tlast(last.into());
            }
            fn taken(&self) -> bool {
                self.s_axis_tready() == 1
            }
            fn received(&self) -> Option<(u64, u8, bool, u8)> {
                let last = self.m_axis_tlast() == 1;
                let wrong = if last { self.m_axis_tuser() as u8 } else { 0 };
                (self.m_axis_tvalid() == 1)
                    .then(|| (self.m_axis_tdata(), self.m_axis_tkeep() as u8, last, wrong))
            }
            fn no_delimiter(&self) -> bool {
                self.no_sfd() == 1
            }
        }
    };
}
line!(DelayedRx);
line!(DelayedTx);

/// How the clocks lie.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// How much later than the data's edge the received clock's comes to the registers: what the PHY adds, and the
    /// clock's way through the chip.
    pub rx_late_ps: i64,
    /// How much later than the clock's edge at its pad the PHY takes the data.
    pub phy_takes_ps: i64,
    /// By how much the PHY's clock is fast, in parts per million.
    pub rx_ppm: i64,
    /// When the PHY's clock begins.
    pub rx_phase_ps: i64,
    /// Period of packet logic.
    pub core_ps: i64,
}

/// An edge that comes again and again.
#[derive(Clone, Copy, Debug)]
struct Edges {
    next_fs: i64,
    half_fs: i64,
    high: bool,
}

impl Edges {
    /// Whether there is an edge until then; turns over.
    fn due(&mut self, now_ps: i64) -> bool {
        let due = self.next_fs <= now_ps * 1_000;
        if due {
            self.next_fs += self.half_fs;
            self.high = !self.high;
        }
        due
    }
}

/// The PHY's receiver: takes what the pads show some time after each edge of their clock.
#[derive(Default)]
struct Taker {
    clock: bool,
    pads: u8,
    changed_ps: i64,
    due: VecDeque<(i64, bool)>,
    low: u8,
    gmii: Receiver,
    edges: u64,
    unsteady: u64,
    taken_ps: i64,
}

impl Taker {
    fn look(
        &mut self,
        now_ps: i64,
        takes_ps: i64,
        (clock, pads): (bool, u8),
    ) -> Option<Result<Vec<u8>, LineError>> {
        if pads != self.pads {
            self.unsteady += u64::from(now_ps - self.taken_ps < STEADY_PS);
            (self.pads, self.changed_ps) = (pads, now_ps);
        }
        if clock != self.clock {
            self.clock = clock;
            self.edges += 1;
            self.due.push_back((now_ps + takes_ps, clock));
        }
        let (_, rising) = *self.due.front().filter(|due| due.0 <= now_ps)?;
        self.due.pop_front();
        self.unsteady += u64::from(now_ps - self.changed_ps < STEADY_PS);
        self.taken_ps = now_ps;
        if rising {
            self.low = pads;
            return None;
        }
        let enable = self.low & 0x10 != 0;
        let error = enable != (pads & 0x10 != 0);
        self.gmii.tick(pads << 4 | self.low & 0xf, enable, error)
    }
}

/// A model with a PHY at its pads.
pub struct Bench<L> {
    line: L,
    clocks: Clocks,
    now_ps: i64,
    /// The PHY's own edges, at which its data change; the clock's, as the registers see it; the card's two.
    phy: Edges,
    rx: Edges,
    tx: Edges,
    core: Edges,
    resets: (bool, bool),
    sender: Transmitter,
    byte: (u8, bool, bool),
    rx_pads: (u8, bool),
    words: VecDeque<(u64, u8, bool)>,
    offered: bool,
    partial: Vec<u8>,
    taker: Taker,
    /// Frames that the MAC received, and what is wrong with each.
    pub received: Vec<(Vec<u8>, u8)>,
    /// Carriers that it saw no delimiter in.
    pub no_delimiters: u64,
    /// What the PHY made of the frames that were sent.
    pub sent: Vec<Result<Vec<u8>, LineError>>,
}

impl<L: Line> Bench<L> {
    pub fn new(line: L, clocks: Clocks) -> Self {
        let edges = |first_ps: i64, half_fs| Edges { next_fs: first_ps * 1_000, half_fs, high: false };
        let half_fs = HALF_FS - HALF_FS * clocks.rx_ppm / 1_000_000;
        let mut bench = Self {
            line,
            clocks,
            now_ps: 0,
            phy: edges(clocks.rx_phase_ps, half_fs),
            rx: edges(clocks.rx_phase_ps + clocks.rx_late_ps, half_fs),
            tx: edges(1_000, HALF_FS),
            core: edges(1_000, clocks.core_ps * 500),
            resets: (false, false),
            sender: Transmitter::default(),
            byte: (0, false, false),
            rx_pads: (IN_BAND, false),
            words: VecDeque::new(),
            offered: false,
            partial: Vec::new(),
            taker: Taker::default(),
            received: Vec::new(),
            no_delimiters: 0,
            sent: Vec::new(),
        };
        // A reset begins with its edge.
        bench.step();
        bench.resets = (true, true);
        bench.run(100);
        bench.resets = (false, false);
        bench.run(200);
        // What came of registers that had not been reset.
        bench.taker.unsteady = 0;
        bench.partial.clear();
        (bench.received, bench.sent, bench.no_delimiters) = (Vec::new(), Vec::new(), 0);
        bench
    }

    /// Queues a frame at the PHY, for the MAC to receive.
    pub fn send_to_mac(&mut self, frame: &[u8]) {
        self.sender.send(frame);
    }

    /// The same with an error that the PHY signals at one of the bytes.
    pub fn send_with_error(&mut self, frame: &[u8], at: usize) {
        let mut bytes = [[0x55; 7].as_slice(), &[0xd5], frame].concat();
        bytes.extend(causeway_nic_sim::gmii::check_sequence(frame).to_le_bytes());
        self.sender.send_line(bytes, Some(at), 12);
    }

    /// Queues the words of a frame for the MAC to send; without the last of them it lacks the end.
    pub fn send_from_mac(&mut self, frame: &[u8], whole: bool) {
        let words = frame.chunks(8).map(|chunk| {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            (u64::from_le_bytes(bytes), 0xff >> (8 - chunk.len()), false)
        });
        self.words.extend(words);
        if let Some(last) = self.words.back_mut() {
            last.2 = whole;
        }
    }

    /// The PHY's clock stops where it is.
    pub fn stop_clock(&mut self) {
        self.phy.next_fs = i64::MAX;
        self.rx.next_fs = i64::MAX;
    }

    /// It goes on, so much later, and with so long a period; what the PHY had to send is gone.
    pub fn start_clock(&mut self, after_ps: i64, half_ps: i64) {
        self.sender = Transmitter::default();
        self.byte = (0, false, false);
        let begins_fs = (self.now_ps + after_ps) * 1_000;
        (self.phy.next_fs, self.phy.high) = (begins_fs, self.rx.high);
        self.rx.next_fs = begins_fs + self.clocks.rx_late_ps * 1_000;
        self.phy.half_fs = half_ps * 1_000;
        self.rx.half_fs = half_ps * 1_000;
    }

    /// Resets the transmit side, or lets it go.
    pub fn reset_tx(&mut self, on: bool) {
        self.resets.0 = on;
    }

    /// Edges of the transmit clock's pad so far.
    pub fn txc_edges(&self) -> u64 {
        self.taker.edges
    }

    /// How often what the PHY took did not stand still.
    pub fn unsteady(&self) -> u64 {
        self.taker.unsteady
    }

    /// So many nanoseconds.
    pub fn run(&mut self, ns: i64) {
        for _ in 0..ns * 1_000 / STEP_PS {
            self.step();
        }
    }

    fn step(&mut self) {
        self.now_ps += STEP_PS;
        if self.phy.due(self.now_ps) {
            self.drive();
        }
        self.rx.due(self.now_ps);
        self.tx.due(self.now_ps);
        let core_rises = self.core.due(self.now_ps) && self.core.high;
        if core_rises {
            self.before_core_edge();
        }
        self.line.set_resets(self.resets.0, self.resets.1);
        let (rxd, rx_ctl) = self.rx_pads;
        let odd = self.now_ps / STEP_PS % 2 == 1;
        self.line.set_pads(odd, self.rx.high, rxd, rx_ctl, self.tx.high, self.core.high);
        if core_rises {
            self.after_core_edge();
        }
        let frame = self.taker.look(self.now_ps, self.clocks.phy_takes_ps, self.line.pads());
        self.sent.extend(frame);
    }

    /// The PHY's half of a byte: the lower one with data-valid, then the upper one with data-valid unless there is an error.
    fn drive(&mut self) {
        if self.phy.high {
            self.byte = self.sender.tick();
        }
        let (byte, valid, error) = self.byte;
        let idle = if valid || error { None } else { Some(IN_BAND) };
        self.rx_pads = if self.phy.high {
            (idle.unwrap_or(byte & 0xf), valid)
        } else {
            (idle.unwrap_or(byte >> 4), valid != error)
        };
    }

    fn before_core_edge(&mut self) {
        if let Some((data, keep, last, wrong)) = self.line.received() {
            let bytes = keep.count_ones() as usize;
            self.partial.extend(&data.to_le_bytes()[..bytes]);
            if last {
                self.received.push((std::mem::take(&mut self.partial), wrong));
            }
        }
        self.no_delimiters += u64::from(self.line.no_delimiter());
        if self.offered && self.line.taken() {
            self.words.pop_front();
        }
    }

    fn after_core_edge(&mut self) {
        let word = self.words.front().filter(|_| !self.resets.1).copied();
        self.offered = word.is_some();
        self.line.offer(word);
    }
}
