//! The register map of one card, and the writes that load a rule table into it.
//!
//! Every register is a 64-bit word of BAR 0 at a multiple of 8 bytes. Configuration registers can only be written;
//! the driver knows what it wrote, and a read path to each would cost the card more logic than the packet parser.
//! The drawings are in `fpga/README.md`; the hardware's copy of the map is `fpga/rtl/nic_pkg.sv`, and a test
//! compares the two.

use crate::rules::{ClassRule, MAX_NICS, RuleTable};

/// What [`ID`] reads.
pub const ID_VALUE: u64 = 0x4341_5553_0001_0000;
/// Identity and version (read).
pub const ID: u16 = 0x000;
/// Control bits (`CONTROL_*`).
pub const CONTROL: u16 = 0x008;
/// The card's number in bits 2:0.
pub const OWN_ID: u16 = 0x010;
/// The card's Ethernet address; low byte first on the wire.
pub const OWN_MAC: u16 = 0x018;
/// The response scheduler answers only when this many words are free in the output FIFO.
pub const GRANT_MIN_WORDS: u16 = 0x020;
/// Bit 0: receive interrupt enabled.
pub const IRQ_ENABLE: u16 = 0x028;
/// Where a receive ring's descriptors are in host memory; low class, then `+ RX_RING_STRIDE` for the high class.
pub const RX_DESC_BASE: u16 = 0x030;
/// Where a receive ring's buffers are.
pub const RX_BUFFER_BASE: u16 = 0x038;
/// How many buffers the host has given to a ring since the start, modulo 2^16.
pub const RX_TAIL: u16 = 0x040;
/// From the low class's ring registers to the high class's.
pub const RX_RING_STRIDE: u16 = 0x18;
/// Posts a transmit descriptor: address in bits 31:0, bytes in 42:32.
pub const TX_POST: u16 = 0x060;
/// Where the card writes how many transmit descriptors it has done.
pub const TX_DONE_ADDRESS: u16 = 0x068;
/// Base address of each card's BAR 0.
pub const PEER_BASE: u16 = 0x080;
/// Routes, four words each: value and mask; destination; next hop; source address.
pub const ROUTE: u16 = 0x100;
/// Class rules by destination, four words each: value, mask (low 64 bits, then high 16). The card's own number is
/// the slow path.
pub const CLASS: u16 = 0x200;
/// From one route or class rule to the next.
pub const ENTRY_STRIDE: u16 = 0x20;
/// The counters (read), one a register.
pub const COUNTERS: u16 = 0x400;

/// Receive and forward.
pub const CONTROL_ENABLE: u64 = 1 << 0;
/// Write the output port's address into forwarded frames.
pub const CONTROL_WRITE_SOURCE_MAC: u64 = 1 << 1;
/// Drop wrong header checksums instead of leaving them to the host.
pub const CONTROL_DROP_BAD_CHECKSUM: u64 = 1 << 2;
/// Hand expired packets to the host instead of dropping them.
pub const CONTROL_TTL_TO_HOST: u64 = 1 << 3;
/// Response scheduler: requests with high-class bytes before all others (an extension).
pub const CONTROL_HIGH_FIRST: u64 = 1 << 4;
/// As a target, disconnect write sequences at every 128-byte boundary (for tests).
pub const CONTROL_DISCONNECT: u64 = 1 << 5;

/// In a route's second word: the entry is valid.
pub const ROUTE_VALID: u64 = 1 << 63;
/// In a class rule's second word: the rule is enabled.
pub const CLASS_ENABLE: u64 = 1 << 63;

/// Where the BARs of the cards are on the bus; card `n` at `BAR_BASE + n * BAR_BYTES`.
pub const BAR_BASE: u32 = 0x8000_0000;
/// The size of BAR 0.
pub const BAR_BYTES: u32 = 0x1_0000;
/// The stride of a ring's buffers.
pub const BUFFER_BYTES: u32 = 2048;
/// Buffers of a receive ring.
pub const RX_RING_LEN: u16 = 256;
/// Transmit descriptors that a card holds.
pub const TX_QUEUE_LEN: u16 = 64;

/// The counters in the order of their registers; `drop_fifo` follows, one for each destination and class.
pub const COUNTER_NAMES: [&str; 16] = [
    "rx_frames",
    "rx_bad_fcs",
    "rx_bad_length",
    "drop_ttl",
    "drop_checksum",
    "drop_truncated",
    "rx_fast",
    "rx_slow",
    "req_sent",
    "res_sent",
    "bursts_sent",
    "bursts_empty",
    "tx_fast",
    "tx_slow",
    "rx_to_host",
    "bus_disconnects",
];

/// The register of the counter of frames dropped at the full input FIFO of a destination and class.
pub fn drop_fifo_counter(destination: u8, high: bool) -> u16 {
    COUNTERS + 8 * (COUNTER_NAMES.len() as u16 + 2 * u16::from(destination) + u16::from(high))
}

/// One register write: offset in BAR 0, and value.
pub type Write = (u16, u64);

/// The bus address of a card's register.
pub fn bus_address(nic: u8, register: u16) -> u32 {
    BAR_BASE + u32::from(nic) * BAR_BYTES + u32::from(register)
}

/// The writes that make a card forward by `table`: all rules first, the enable bit last.
pub fn compile(table: &RuleTable, nic: u8) -> Vec<Write> {
    let mut writes = vec![(OWN_ID, u64::from(nic))];
    writes.extend(table.nics.get(usize::from(nic)).map(|mac| (OWN_MAC, mac.to_register())));
    for peer in 0..table.nics.len() as u8 {
        writes.push((PEER_BASE + 8 * u16::from(peer), u64::from(bus_address(peer, 0))));
    }
    for (index, route) in (0..).zip(&table.routes) {
        let at = ROUTE + ENTRY_STRIDE * index;
        writes.push((at, u64::from(route.mask) << 32 | u64::from(route.value)));
        writes.push((at + 16, route.next_hop.to_register()));
        writes.push((at + 24, table.nics[usize::from(route.nic)].to_register()));
        writes.push((at + 8, ROUTE_VALID | u64::from(route.nic)));
    }
    for destination in 0..MAX_NICS as u8 {
        let own = destination == nic;
        let rule = if own { table.host_class } else { table.classes[usize::from(destination)] };
        writes.extend(rule.iter().flat_map(|rule| class_writes(destination, rule)));
    }
    let policy = table.policy;
    let mut control = CONTROL_ENABLE;
    for (bit, set) in [
        (CONTROL_WRITE_SOURCE_MAC, !policy.keep_source_mac),
        (CONTROL_DROP_BAD_CHECKSUM, policy.drop_bad_checksum),
        (CONTROL_TTL_TO_HOST, policy.ttl_expired_to_host),
    ] {
        control |= if set { bit } else { 0 };
    }
    writes.push((CONTROL, control));
    writes
}

fn class_writes(destination: u8, rule: &ClassRule) -> [Write; 4] {
    let at = CLASS + ENTRY_STRIDE * u16::from(destination);
    let (value, mask) = (rule.value.0, rule.mask.0);
    [
        (at, value as u64),
        (at + 16, mask as u64),
        (at + 24, (mask >> 64) as u64),
        (at + 8, CLASS_ENABLE | (value >> 64) as u64),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    #[test]
    fn the_enable_bit_is_written_last_and_every_rule_once() {
        let writes = compile(&corpus::table(), 0);
        assert_eq!(writes.last().map(|w| w.0), Some(CONTROL));
        let mut offsets: Vec<u16> = writes.iter().map(|w| w.0).collect();
        offsets.sort_unstable();
        offsets.dedup();
        assert_eq!(offsets.len(), writes.len());
        // Own number and address, four peers, four routes, three class rules of four words, control.
        assert_eq!(writes.len(), 2 + 4 + 16 + 12 + 1);
    }

    #[test]
    fn the_own_number_holds_the_slow_path_class_rule() {
        let table = corpus::table();
        let host = table.host_class.unwrap();
        let writes = compile(&table, 2);
        let value = writes.iter().find(|w| w.0 == CLASS + 2 * ENTRY_STRIDE).unwrap().1;
        assert_eq!(value, host.value.0 as u64);
    }
}
