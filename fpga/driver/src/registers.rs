//! The register map of one card, and the writes that load a rule table into it.
//!
//! Every register is a 64-bit word of BAR 0 at a multiple of 8 bytes. The map has one source, [`map`], from which
//! [`render`] makes the Verilog package and the documentation.

pub mod map;
pub mod render;

use crate::rules::{ClassRule, MAX_NICS, Route, RuleTable, Target};

pub use map::*;

/// From one route or class rule to the next.
pub const ENTRY_STRIDE: u16 = 0x20;
/// From the low class's ring registers to the high class's.
pub const RX_RING_STRIDE: u16 = 0x18;

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

/// The register of the counter of frames dropped at the full input FIFO of a destination and class.
pub fn drop_fifo_counter(destination: u8, high: bool) -> u16 {
    COUNTERS + 8 * (COUNTER_TABLE.len() as u16 + 2 * u16::from(destination) + u16::from(high))
}

/// One register write: offset in BAR 0, and value.
pub type Write = (u16, u64);

/// The bus address of a card's register.
pub fn bus_address(nic: u8, register: u16) -> u32 {
    BAR_BASE + u32::from(nic) * BAR_BYTES + u32::from(register)
}

/// The writes that make a card one of `table`'s, not yet enabled: who it is, and which other cards there are.
pub fn identity(table: &RuleTable, nic: u8) -> Vec<Write> {
    let mut writes = vec![(OWN_ID, u64::from(nic))];
    writes.extend(table.nics.get(usize::from(nic)).map(|mac| (OWN_MAC, mac.to_register())));
    for peer in 0..MAX_NICS as u8 {
        let there = usize::from(peer) < table.nics.len() && peer != nic;
        let value = if there { u64::from(bus_address(peer, 0)) | PEER_PRESENT } else { 0 };
        writes.push((PEER_BASE + 8 * u16::from(peer), value));
    }
    writes
}

/// The writes that bring the rules of `table` into force, between two frames and all at once: every entry, those that
/// are not wanted too, and the commit last. The card must have done the last commit ([`RULES`]).
pub fn rules(table: &RuleTable, nic: u8) -> Vec<Write> {
    let mut writes = Vec::new();
    let mut routes = table.by_precedence();
    for index in 0..ROUTES as u16 {
        writes.extend(route_writes(table, ROUTE + ENTRY_STRIDE * index, routes.next()));
    }
    for destination in 0..MAX_NICS as u8 {
        let own = destination == nic;
        let rule = if own { table.host_class } else { table.classes[usize::from(destination)] };
        writes.extend(class_writes(destination, rule));
    }
    let policy = table.policy;
    let mut bits = 0;
    for (bit, set) in [
        (POLICY_WRITE_SOURCE_MAC, !policy.keep_source_mac),
        (POLICY_DROP_BAD_CHECKSUM, policy.drop_bad_checksum),
        (POLICY_TTL_TO_HOST, policy.ttl_expired_to_host),
    ] {
        bits |= if set { bit } else { 0 };
    }
    writes.extend([(POLICY, bits), (RULES, 1)]);
    writes
}

/// The writes that make a card forward by `table` after a reset; the enable bit last.
pub fn compile(table: &RuleTable, nic: u8) -> Vec<Write> {
    let mut writes = identity(table, nic);
    writes.extend(rules(table, nic));
    writes.push((CONTROL, CONTROL_ENABLE));
    writes
}

fn route_writes(table: &RuleTable, at: u16, route: Option<&Route>) -> [Write; 4] {
    let Some(route) = route else { return [0, 8, 16, 24].map(|word| (at + word, 0)) };
    let mut lead = ROUTE_VALID | if route.has_edges() { ROUTE_EDGES } else { 0 };
    let (mut next_hop, mut source) = (0, 0);
    match route.to {
        Target::Host => lead |= ROUTE_HOST,
        Target::Nic { nic, next_hop: mac } => {
            lead |= u64::from(nic);
            next_hop = mac.to_register();
            source = table.nics.get(usize::from(nic)).map_or(0, |mac| mac.to_register());
        }
    }
    let compared = u64::from(route.mask) << 32 | u64::from(route.value);
    [(at, compared), (at + 8, lead), (at + 16, next_hop), (at + 24, source)]
}

fn class_writes(destination: u8, rule: Option<ClassRule>) -> [Write; 4] {
    let at = CLASS + ENTRY_STRIDE * u16::from(destination);
    let enable = if rule.is_some() { CLASS_ENABLE } else { 0 };
    let ClassRule { value, mask } = rule.unwrap_or_default();
    [
        (at, value.0 as u64),
        (at + 8, enable | (value.0 >> 64) as u64),
        (at + 16, mask.0 as u64),
        (at + 24, (mask.0 >> 64) as u64),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    #[test]
    fn a_load_writes_every_entry_once_and_then_commits() {
        let short = RuleTable { routes: Vec::new(), ..corpus::table() };
        for table in [corpus::table(), short] {
            let writes = rules(&table, 0);
            assert_eq!(writes.last(), Some(&(RULES, 1)));
            let mut offsets: Vec<u16> = writes.iter().map(|w| w.0).collect();
            offsets.sort_unstable();
            offsets.dedup();
            assert_eq!(offsets.len(), writes.len());
            assert_eq!(writes.len(), 4 * ROUTES + 4 * MAX_NICS + 2);
        }
        assert_eq!(compile(&corpus::table(), 0).last(), Some(&(CONTROL, CONTROL_ENABLE)));
    }

    #[test]
    fn the_hosts_routes_come_first() {
        let mut table = corpus::table();
        table.routes.push(Route { value: 0x0a00_0101, mask: u32::MAX, to: Target::Host });
        let writes = rules(&table, 0);
        let word = |at: u16| writes.iter().find(|w| w.0 == at).map(|w| w.1);
        assert_eq!(word(ROUTE), Some(0xffff_ffff_0a00_0101));
        assert_eq!(word(ROUTE + 8), Some(ROUTE_VALID | ROUTE_HOST));
        assert_eq!(word(ROUTE + ENTRY_STRIDE + 8), Some(ROUTE_VALID | ROUTE_EDGES));
    }

    #[test]
    fn the_own_number_holds_the_slow_path_class_rule() {
        let table = corpus::table();
        let host = table.host_class.unwrap();
        let writes = rules(&table, 2);
        let value = writes.iter().find(|w| w.0 == CLASS + 2 * ENTRY_STRIDE).unwrap().1;
        assert_eq!(value, host.value.0 as u64);
    }
}
