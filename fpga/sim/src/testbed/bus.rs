//! The testbed's bus: the wires between cards and chipset, and the host behind it.

use causeway_nic_driver::registers as reg;

use super::Testbed;
use crate::card::BusWires;
use crate::host::{Transaction, command};

impl Testbed {
    /// Reads a register over the bus; all ones if nobody answers, as on PCI.
    ///
    /// # Panics
    /// If the bus is not done with it after a millisecond.
    pub fn read_register(&mut self, nic: u8, register: u16) -> u64 {
        while self.transaction.is_some() {
            self.step();
        }
        let address = reg::bus_address(nic, register);
        self.start(Transaction { command: command::READ_DWORD, address, tag: 0, data: vec![0] });
        let end_ps = self.now_ps + 1_000_000_000;
        while self.transaction.is_some() {
            assert!(self.now_ps < end_ps, "the read of {address:x} does not end");
            self.step();
        }
        if self.failed { u64::MAX } else { self.chipset.read_data() }
    }

    pub(super) fn clock_chipset(&mut self) {
        let requests =
            self.slots.iter().enumerate().fold(0, |r, (n, slot)| r | u64::from(slot.requests()) << n);
        // The chipset sees the bus as it was before this edge; what the cards drove at this edge is collected after.
        let old_requests = std::mem::replace(&mut self.last_requests, requests);
        let chipset = &mut self.chipset;
        chipset.set_card_req(old_requests);
        chipset.set_frame_i(self.wires.frame);
        chipset.set_irdy_i(self.wires.irdy);
        chipset.set_cmd_i(self.wires.cmd);
        chipset.set_ad_i(self.wires.ad);
        chipset.set_par_i(self.wires.par);
        chipset.set_devsel_i(self.wires.devsel);
        chipset.set_trdy_i(self.wires.trdy);
        chipset.set_disconnect_i(self.wires.disconnect);
        chipset.set_perr_i(self.wires.perr);
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
        for slot in self.slots.iter().filter(|slot| slot.plugged) {
            slot.card.drive(&mut wires);
        }
        let chipset = &self.chipset;
        wires.frame |= chipset.frame_o();
        wires.irdy |= chipset.irdy_o();
        wires.cmd |= chipset.cmd_o();
        wires.ad |= chipset.ad_o();
        wires.par |= chipset.par_o();
        wires.devsel |= chipset.devsel_o();
        wires.perr |= chipset.perr_o();
        if wires.frame == 1 && wires.ad != 0 {
            let (count, bits) = &mut self.corrupt;
            wires.ad ^= if *count > 0 { *bits } else { 0 };
            *count = count.saturating_sub(1);
        }
        self.wires = wires;
    }

    fn serve_host(&mut self, popped: bool) {
        if self.chipset.mem_wr_valid() == 1 {
            self.host.memory_write(self.chipset.mem_wr_addr() as u32, self.chipset.mem_wr_data());
        }
        if self.chipset.mem_rd_valid() == 1 {
            let (address, words) = (self.chipset.mem_rd_addr() as u32, self.chipset.mem_rd_words());
            let (requester, tag) = (self.chipset.mem_rd_requester() as u8, self.chipset.mem_rd_tag() as u8);
            self.host.memory_read(self.now_ps, address, words, requester, tag);
        }
        let irqs =
            self.slots.iter().enumerate().fold(0, |r, (n, slot)| r | u32::from(slot.interrupts()) << n);
        self.host.run(self.now_ps, irqs);
        self.chipset.set_start(0);
        if let Some((transaction, position)) = &mut self.transaction {
            if popped {
                *position += 1;
                self.chipset.set_data(transaction.data.get(*position).copied().unwrap_or(0));
            }
            if self.chipset.done() == 1 {
                self.failed = self.chipset.error() == 1;
                self.host.transacted(self.now_ps, transaction, self.failed);
                self.transaction = None;
            }
        } else if let Some(next) = self.host.next_transaction(self.now_ps) {
            self.start(next);
        }
    }

    fn start(&mut self, transaction: Transaction) {
        self.chipset.set_start(1);
        self.chipset.set_tag(transaction.tag.into());
        self.chipset.set_cmd(transaction.command.into());
        self.chipset.set_addr(transaction.address.into());
        self.chipset.set_words(transaction.data.len() as u64);
        self.chipset.set_data(transaction.data.first().copied().unwrap_or(0));
        self.transaction = Some((transaction, 0));
    }
}
