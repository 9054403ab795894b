//! A card as the testbed sees it, and the bus between cards and chipset.

use std::ffi::CStr;

use crate::models::{Nic4, Nic8};

/// The wires that the agents of the bus share; each is the OR of what the agents drive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusWires {
    /// A sequence is under way.
    pub frame: u64,
    /// The master gives a word.
    pub irdy: u64,
    /// The command.
    pub cmd: u64,
    /// Address, attributes, data.
    pub ad: u64,
    /// Parity of what was on `cmd` and `ad` a cycle ago.
    pub par: u64,
    /// A target has claimed the sequence and takes its words.
    pub devsel: u64,
    /// The target gives a word.
    pub trdy: u64,
    /// The target wants to stop at the next boundary.
    pub disconnect: u64,
    /// A word of two cycles ago came with wrong parity.
    pub perr: u64,
}

/// The rising edges of one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Edges {
    /// Packet logic and bus.
    pub core: bool,
    /// Receive side of the MAC.
    pub rx: bool,
    /// Transmit side of the MAC.
    pub tx: bool,
}

impl Edges {
    /// Whether there is none.
    pub fn none(self) -> bool {
        !(self.core || self.rx || self.tx)
    }

    /// Whether they have one in common.
    pub fn meet(self, other: Self) -> bool {
        self.core && other.core || self.rx && other.rx || self.tx && other.tx
    }
}

/// A card, whatever number of peers it was built for.
pub trait Card {
    /// Drives the clocks.
    fn set_clocks(&mut self, high: Edges);
    /// Drives the resets, by the clock that each belongs to.
    fn set_resets(&mut self, reset: Edges);
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
    fn set_rx(&mut self, data: u8, valid: bool, error: bool);
    /// Reads a byte time of GMII: data, enable, error.
    fn tx(&self) -> (u8, bool, bool);
    /// Begins to write waves.
    fn open_waves(&mut self, path: &CStr);
    /// Writes the present values to the waves.
    fn dump(&mut self, time_ps: u64);
}

macro_rules! card {
    ($model:ty) => {
        impl Card for $model {
            fn set_clocks(&mut self, high: Edges) {
                self.set_pci_clk(high.core.into());
                self.set_gmii_rx_clk(high.rx.into());
                self.set_gmii_tx_clk(high.tx.into());
            }
            fn set_resets(&mut self, reset: Edges) {
                self.set_pci_arst(reset.core.into());
                self.set_rx_arst(reset.rx.into());
                self.set_tx_arst(reset.tx.into());
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
                self.set_par_i(wires.par);
                self.set_devsel_i(wires.devsel);
                self.set_trdy_i(wires.trdy);
                self.set_disconnect_i(wires.disconnect);
                self.set_perr_i(wires.perr);
            }
            fn drive(&self, wires: &mut BusWires) {
                wires.frame |= self.frame_o();
                wires.irdy |= self.irdy_o();
                wires.cmd |= self.cmd_o();
                wires.ad |= self.ad_o();
                wires.par |= self.par_o();
                wires.devsel |= self.devsel_o();
                wires.trdy |= self.trdy_o();
                wires.disconnect |= self.disconnect_o();
                wires.perr |= self.perr_o();
            }
            fn requests(&self) -> bool {
                self.req() == 1
            }
            fn irq(&self) -> bool {
                <$model>::irq(self) == 1
            }
            fn set_rx(&mut self, data: u8, valid: bool, error: bool) {
                self.set_gmii_rxd(data.into());
                self.set_gmii_rx_dv(valid.into());
                self.set_gmii_rx_er(error.into());
            }
            fn tx(&self) -> (u8, bool, bool) {
                (self.gmii_txd() as u8, self.gmii_tx_en() == 1, self.gmii_tx_er() == 1)
            }
            fn open_waves(&mut self, path: &CStr) {
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
