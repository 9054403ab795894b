//! The host: memory with the cards' rings, and a processor that forwards.
//!
//! The processor sleeps until a card interrupts, then polls NAPI-style (Salim et al., ALS 2001): the card's receive
//! interrupt stays masked while its rings give packets, at most a quota from a card before the next one's turn, the
//! high class's ring strictly before the low class's. A packet costs a fixed time; it is looked up in this project's
//! own FIB and posted to the output card's transmit queue. A write that a card does not take is tried again until it
//! does, or the card is set up anew.

use std::collections::VecDeque;

use causeway_fib::{Fib4, Lookup, MISS, Prefix4, Table};
use causeway_nic_driver::registers as reg;
use causeway_nic_driver::{Mac, RuleTable, Target};

mod transaction;

pub use transaction::{Transaction, command};

/// Bytes of host memory for each card.
const CARD_BYTES: u32 = 0x20_0000;
const RX_BUFFERS: u32 = 0x0;
const RX_BUFFERS_STRIDE: u32 = 0x8_0000;
const RX_DESCRIPTORS: u32 = 0x10_0000;
const RX_DESCRIPTORS_STRIDE: u32 = 0x800;
const TX_BUFFERS: u32 = 0x18_0000;
const TX_DONE: u32 = 0x1f_0000;
/// Packets taken from a card before the next one's turn.
const QUOTA: u32 = 64;
/// Buffers are given back in groups, to spare the bus.
const GIVE_BACK: u16 = 16;
/// How long the driver leaves a card alone that did not take a write.
const RETRY_PS: u64 = 2_000_000;
/// Later than the cards of the tests wait for an answer, and sooner than they use its tag again.
const LATE_PS: u64 = 60_000_000;

/// How fast the host is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostParameters {
    /// Processor time per forwarded packet; 1 667 ns gives the papers' 600 kpkt/s.
    pub packet_cost_ns: u64,
    /// From the interrupt line to the first poll.
    pub interrupt_latency_ns: u64,
    /// From a read request to its completion being ready.
    pub memory_latency_ns: u64,
}

impl Default for HostParameters {
    fn default() -> Self {
        Self { packet_cost_ns: 1_667, interrupt_latency_ns: 2_000, memory_latency_ns: 200 }
    }
}

#[derive(Debug, Default)]
struct Ring {
    next: u16,
    ungiven: u16,
}

#[derive(Debug, Default)]
struct Card {
    rings: [Ring; 2],
    tail: [u16; 2],
    posted: u16,
    polled: bool,
    taken: u32,
    writes: VecDeque<Transaction>,
    queued: u64,
    written: u64,
    /// The write that masks the interrupt, counted from the first write.
    masked_by: u64,
    alone_until_ps: u64,
}

/// What the host counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Packets taken from receive rings.
    pub received: u64,
    /// Packets posted to a transmit queue.
    pub forwarded: u64,
    /// Packets without a route, not IPv4, or with TTL used up.
    pub not_routed: u64,
    /// Packets dropped because the output card's transmit queue was full.
    pub tx_full: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Writes and completions that a card did not take.
    pub bus_errors: u64,
}

/// The host model.
pub struct Host {
    parameters: HostParameters,
    memory: Vec<u64>,
    fib: Fib4,
    next_hops: Vec<(u8, Mac)>,
    table: RuleTable,
    cards: Vec<Card>,
    turn: usize,
    write_turn: usize,
    bus_period_ps: u64,
    busy_until_ps: u64,
    awake: bool,
    completions: VecDeque<(u64, Transaction)>,
    /// Reads to leave unanswered, and to answer too late.
    pub faulty_reads: (u32, u32),
    /// Received packets are handed on instead of forwarded.
    pub hands_on: bool,
    /// Those handed on, with their card.
    pub received: VecDeque<(u8, Vec<u8>)>,
    /// What has happened so far.
    pub counters: HostCounters,
}

impl Host {
    /// A host that forwards by all routes of `table` through cards, whatever the cards know of them.
    ///
    /// # Panics
    /// If a route of the table is no prefix, which the tables of this crate never have.
    pub fn new(table: &RuleTable, parameters: HostParameters, bus_period_ps: u64) -> Self {
        let cards = table.nics.len();
        let mut fib = Fib4::new().expect("address space for a table");
        let mut next_hops = vec![(0, Mac::default())];
        for route in &table.routes {
            let Target::Nic { nic, next_hop } = route.to else { continue };
            let prefix = Prefix4::new(route.value, route.mask.leading_ones() as u8);
            let prefix = prefix.unwrap_or_else(|e| panic!("route {route:?}: {e}"));
            fib.insert(prefix, next_hops.len() as u32).unwrap_or_else(|e| panic!("route {route:?}: {e}"));
            next_hops.push((nic, next_hop));
        }
        Self {
            parameters,
            memory: vec![0; cards * CARD_BYTES as usize / 8],
            fib,
            next_hops,
            table: table.clone(),
            cards: (0..cards).map(|_| Card::default()).collect(),
            turn: 0,
            write_turn: 0,
            bus_period_ps,
            busy_until_ps: 0,
            awake: false,
            completions: VecDeque::new(),
            faulty_reads: (0, 0),
            hands_on: false,
            received: VecDeque::new(),
            counters: HostCounters::default(),
        }
    }

    /// Queues the writes that set up a card's rings after its reset; what was queued for it is forgotten.
    pub fn set_up(&mut self, nic: u8) {
        let base = u32::from(nic) * CARD_BYTES;
        self.cards[usize::from(nic)] = Card::default();
        for class in 0..2 {
            let offset = reg::RX_RING_STRIDE * class as u16;
            let class = class as u32;
            let descriptors = base + RX_DESCRIPTORS + class * RX_DESCRIPTORS_STRIDE;
            let first = descriptors as usize / 8;
            self.memory[first..first + usize::from(reg::RX_RING_LEN)].fill(0);
            self.write_register(nic, reg::RX_DESC_BASE + offset, descriptors);
            let buffers = base + RX_BUFFERS + class * RX_BUFFERS_STRIDE;
            self.write_register(nic, reg::RX_BUFFER_BASE + offset, buffers);
            self.cards[usize::from(nic)].tail[class as usize] = reg::RX_RING_LEN;
            self.write_register(nic, reg::RX_TAIL + offset, u32::from(reg::RX_RING_LEN));
        }
        self.memory[(base + TX_DONE) as usize / 8] = 0;
        self.write_register(nic, reg::TX_DONE_ADDRESS, base + TX_DONE);
        self.write_register(nic, reg::IRQ_ENABLE, reg::IRQ_RX as u32);
    }

    /// Queues a register write.
    pub fn write_register(&mut self, nic: u8, register: u16, value: u32) {
        self.write(nic, register, u64::from(value));
    }

    /// Queues a write of one word.
    pub fn write(&mut self, nic: u8, register: u16, value: u64) {
        let card = &mut self.cards[usize::from(nic)];
        card.queued += 1;
        let address = reg::bus_address(nic, register);
        card.writes.push_back(Transaction { command: command::WRITE, address, tag: 0, data: vec![value] });
    }

    /// A card wrote a word of memory.
    pub fn memory_write(&mut self, address: u32, value: u64) {
        if let Some(word) = self.memory.get_mut(address as usize / 8) {
            *word = value;
        }
    }

    /// A card asks for memory. What there is no memory for is not answered.
    pub fn memory_read(&mut self, now_ps: u64, address: u32, words: u64, requester: u8, tag: u8) {
        let (ignored, late) = &mut self.faulty_reads;
        if *ignored > 0 {
            *ignored -= 1;
            return;
        }
        let mut ready_ps = now_ps + self.parameters.memory_latency_ns * 1_000;
        if *late > 0 {
            *late -= 1;
            ready_ps += LATE_PS;
        }
        let first = address as usize / 8;
        let Some(data) = self.memory.get(first..first + words as usize).map(<[u64]>::to_vec) else { return };
        let address = reg::bus_address(requester, 0x2000);
        let completion = Transaction { command: command::SPLIT, address, tag, data };
        let place = self.completions.partition_point(|(ps, _)| *ps <= ready_ps);
        self.completions.insert(place, (ready_ps, completion));
    }

    /// The transaction to put on the bus next.
    pub fn next_transaction(&mut self, now_ps: u64) -> Option<Transaction> {
        if self.completions.front().is_some_and(|(ready_ps, _)| *ready_ps <= now_ps) {
            return self.completions.pop_front().map(|(_, transaction)| transaction);
        }
        for _ in 0..self.cards.len() {
            self.write_turn = (self.write_turn + 1) % self.cards.len();
            let card = &self.cards[self.write_turn];
            if card.alone_until_ps <= now_ps && !card.writes.is_empty() {
                return card.writes.front().cloned();
            }
        }
        None
    }

    /// A transaction of ours has been on the bus.
    pub fn transacted(&mut self, now_ps: u64, transaction: &Transaction, failed: bool) {
        self.counters.bus_errors += u64::from(failed);
        if transaction.command != command::WRITE {
            return;
        }
        let nic = (transaction.address - reg::BAR_BASE) / reg::BAR_BYTES;
        let Some(card) = self.cards.get_mut(nic as usize) else { return };
        if failed {
            card.alone_until_ps = now_ps + RETRY_PS;
        } else if card.writes.front() == Some(transaction) {
            // Unless the card was set up anew meanwhile.
            card.writes.pop_front();
            card.written += 1;
        }
    }

    /// How many transmit descriptors a card has reported finished.
    pub fn finished(&self, nic: u8) -> u16 {
        self.memory[(u32::from(nic) * CARD_BYTES + TX_DONE) as usize / 8] as u16
    }

    /// Whether nothing is queued or in progress on the host.
    pub fn is_quiet(&self, now_ps: u64) -> bool {
        !self.awake
            && self.cards.iter().all(|card| card.writes.is_empty())
            && self.completions.is_empty()
            && self.busy_until_ps <= now_ps
    }

    /// Lets the processor act; `irq` has a bit for each card.
    #[inline]
    pub fn run(&mut self, now_ps: u64, irq: u32) {
        if now_ps < self.busy_until_ps || (!self.awake && irq == 0) {
            return;
        }
        for nic in 0..self.cards.len() {
            if irq >> nic & 1 == 1 && !self.cards[nic].polled {
                self.counters.interrupts += 1;
                self.write_register(nic as u8, reg::IRQ_ENABLE, 0);
                self.write_register(nic as u8, reg::IRQ_STATUS, reg::IRQ_RX as u32);
                let card = &mut self.cards[nic];
                card.polled = true;
                card.masked_by = card.queued;
            }
        }
        if !self.awake {
            self.awake = true;
            self.busy_until_ps = now_ps + self.parameters.interrupt_latency_ns * 1_000;
            return;
        }
        self.poll(now_ps);
    }

    /// One packet, or the end of a card's turn.
    fn poll(&mut self, now_ps: u64) {
        for _ in 0..self.cards.len() {
            let nic = self.turn;
            // Not before the status is cleared: what the card forgets with it must be in memory when we look.
            if self.cards[nic].polled && self.cards[nic].written >= self.cards[nic].masked_by {
                if self.cards[nic].taken < QUOTA
                    && let Some((class, bytes)) = self.pending(nic)
                {
                    self.cards[nic].taken += 1;
                    self.take(nic, class, bytes);
                    // The processor has its own clock: a packet begins when the one before ended, not at a bus edge.
                    let on_time = now_ps - self.busy_until_ps < self.bus_period_ps;
                    let begin_ps = if on_time { self.busy_until_ps } else { now_ps };
                    self.busy_until_ps = begin_ps + self.parameters.packet_cost_ns * 1_000;
                    return;
                }
                if self.pending(nic).is_none() {
                    // Unmasked without clearing: a descriptor may have come since the look. The price is an
                    // interrupt now and then for packets that were polled already.
                    self.cards[nic].polled = false;
                    self.write_register(nic as u8, reg::IRQ_ENABLE, reg::IRQ_RX as u32);
                }
                self.cards[nic].taken = 0;
            }
            self.turn = (self.turn + 1) % self.cards.len();
        }
        self.awake = self.cards.iter().any(|card| card.polled);
    }

    /// The class and length of the packet that is next in a card's rings.
    fn pending(&self, nic: usize) -> Option<(usize, usize)> {
        for class in [1, 0] {
            let next = self.cards[nic].rings[class].next;
            let at = nic as u32 * CARD_BYTES + RX_DESCRIPTORS + class as u32 * RX_DESCRIPTORS_STRIDE;
            let descriptor = self.memory[at as usize / 8 + usize::from(next % reg::RX_RING_LEN)];
            let phase = u64::from((next / reg::RX_RING_LEN).is_multiple_of(2));
            // A ring that was never written holds zero, which is the second lap's phase with no length.
            if descriptor >> 63 == phase && descriptor & 0x7ff != 0 {
                return Some((class, (descriptor & 0x7ff) as usize));
            }
        }
        None
    }

    fn take(&mut self, nic: usize, class: usize, bytes: usize) {
        self.counters.received += 1;
        let ring = &mut self.cards[nic].rings[class];
        let index = u32::from(ring.next % reg::RX_RING_LEN);
        ring.next = ring.next.wrapping_add(1);
        ring.ungiven += 1;
        let buffer = nic as u32 * CARD_BYTES + RX_BUFFERS + class as u32 * RX_BUFFERS_STRIDE;
        let at = (buffer + index * reg::BUFFER_BYTES) as usize / 8;
        let words = &self.memory[at..at + bytes.div_ceil(8)];
        let mut frame: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        frame.truncate(bytes);
        if ring.ungiven == GIVE_BACK {
            ring.ungiven = 0;
            let tail = self.cards[nic].tail[class].wrapping_add(GIVE_BACK);
            self.cards[nic].tail[class] = tail;
            let register = reg::RX_TAIL + reg::RX_RING_STRIDE * class as u16;
            self.write_register(nic as u8, register, u32::from(tail));
        }
        if self.hands_on {
            self.received.push_back((nic as u8, frame));
        } else {
            self.forward(frame);
        }
    }

    fn forward(&mut self, mut frame: Vec<u8>) {
        let Some((out, next_hop)) = self.route(&frame) else {
            self.counters.not_routed += 1;
            return;
        };
        let source = self.table.nics[usize::from(out)];
        forward_rewrite(&mut frame, source, next_hop);
        if self.transmit(out, &frame) {
            self.counters.forwarded += 1;
        } else {
            self.counters.tx_full += 1;
        }
    }

    /// Whether a card's transmit queue has room.
    pub fn has_room(&self, out: u8) -> bool {
        self.cards[usize::from(out)].posted.wrapping_sub(self.finished(out)) < reg::TX_QUEUE_LEN
    }

    /// Posts a frame at a card; whether its transmit queue had room.
    pub fn transmit(&mut self, out: u8, frame: &[u8]) -> bool {
        if !self.has_room(out) {
            return false;
        }
        let card = usize::from(out);
        let tag = self.cards[card].posted;
        let index = u32::from(tag % reg::TX_QUEUE_LEN);
        self.cards[card].posted = tag.wrapping_add(1);
        let address = u32::from(out) * CARD_BYTES + TX_BUFFERS + index * reg::BUFFER_BYTES;
        for (word, chunk) in self.memory[address as usize / 8..].iter_mut().zip(frame.chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_le_bytes(bytes);
        }
        self.write(out, reg::TX_POST, u64::from(tag) << 48 | (frame.len() as u64) << 32 | u64::from(address));
        true
    }

    fn route(&self, frame: &[u8]) -> Option<(u8, Mac)> {
        if frame.len() < 34 || frame[12..15] != [8, 0, 0x45] || frame[22] <= 1 {
            return None;
        }
        let dst = u32::from_be_bytes([frame[30], frame[31], frame[32], frame[33]]);
        let index = self.fib.lookup(dst);
        if index == MISS { None } else { self.next_hops.get(index as usize).copied() }
    }
}

/// What a forwarding router does to a frame: addresses, TTL, checksum (RFC 1812 §5.3.1, RFC 1624).
pub fn forward_rewrite(frame: &mut [u8], source: Mac, next_hop: Mac) {
    frame[..6].copy_from_slice(&next_hop.0);
    frame[6..12].copy_from_slice(&source.0);
    frame[22] -= 1;
    frame[24..26].fill(0);
    let checksum = !causeway_nic_driver::golden::ones_complement_sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}
