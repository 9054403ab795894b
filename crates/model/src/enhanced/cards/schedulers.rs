//! A card's schedulers: what it asks for, grants and sends.

use super::{AHEAD_WORDS, BURSTS, Burst, Card, Event, Message, Model, Policy, round_robin};

/// Words of the longest packet with its header.
const LARGEST_WORDS: i64 = 191;

/// Cycles of the length scan over `there` packets of which `fit` fit.
fn scan_cycles(there: usize, fit: usize) -> u64 {
    if there == 0 { 3 } else { 6 + there.min(fit + 4) as u64 }
}

impl Card {
    /// Whose request is answered next.
    fn pick(&self, policy: Policy) -> Option<usize> {
        let (last, count) = (self.response_turn, self.pending.len());
        let asks = |source: usize| self.pending[source] != [0; 2];
        let urgent = |source: usize| self.pending[source][1] != 0;
        let in_turn = || round_robin(last, count, asks);
        match policy {
            Policy::RoundRobin => in_turn(),
            Policy::HighFirst => round_robin(last, count, urgent).or_else(in_turn),
            Policy::LongestHigh => {
                let around = (1..=count).map(|k| (last + k) % count).filter(|&source| asks(source));
                // Of equals the first in turn.
                around.rev().max_by_key(|&source| self.pending[source][1])
            }
            Policy::Surplus { .. } if asks(last) && self.surplus[last] > 0 => Some(last),
            Policy::Surplus { .. } => in_turn(),
        }
    }
}

impl Model {
    /// The request scheduler: a token that is here and packets that wait.
    pub(super) fn request(&mut self, index: usize) {
        let now = self.now;
        let card = &mut self.cards[index];
        if card.awaited.is_some() || card.req.is_some() {
            return;
        }
        // Peers are counted by the difference of the numbers' bits.
        let slots = card.queues.len().next_power_of_two();
        let peer = |slot: usize| slot ^ index;
        let active = |slot: usize| {
            slot != 0
                && peer(slot) < card.queues.len()
                && card.token[peer(slot)]
                && card.used[peer(slot)] != [0; 2]
        };
        if let Some(slot) = round_robin(card.request_turn, slots, active) {
            card.request_turn = slot;
            let dest = peer(slot);
            card.token[dest] = false;
            card.awaited = Some(dest);
            card.req = Some((now + 1, dest, card.used[dest]));
        }
    }

    /// The response scheduler: one grant outstanding, strict priority within the room.
    pub(super) fn respond(&mut self, index: usize) {
        let (now, policy) = (self.now, self.policy);
        let card = &mut self.cards[index];
        if card.serving || card.res.is_some() || now < card.response_from {
            return;
        }
        let Some(source) = card.pick(policy) else { return };
        let asked_by_all: u64 = card.pending.iter().map(|words| words[1]).sum();
        let goes_on = source == card.response_turn && card.surplus[source] > 0;
        card.response_turn = source;
        card.serving = true;
        let [mut low, high] = std::mem::take(&mut card.pending[source]);
        let mut room = card.free;
        let mut cycles = 2;
        match policy {
            Policy::RoundRobin | Policy::HighFirst => {}
            Policy::LongestHigh => {
                low = low.min(room.saturating_sub(asked_by_all));
                // Once around the card's slots, of which there are four or eight, and two cycles to decide.
                cycles += card.pending.len().next_power_of_two().max(4) as u64 + 2;
            }
            Policy::Surplus { quantum_words } => {
                let left = &mut card.surplus[source];
                if !goes_on {
                    *left = (*left).min(0) + i64::from(quantum_words);
                }
                // At least a packet, so that a turn does not end in an empty burst.
                room = room.min(((*left).max(1) + LARGEST_WORDS - 1) as u64);
                cycles += 1;
            }
        }
        let high = high.min(room);
        card.res = Some((now + cycles, source, [low.min(room - high), high]));
    }

    pub(super) fn send_message(&mut self, index: usize) {
        let now = self.now;
        let card = &mut self.cards[index];
        if card.message.is_some() {
            return;
        }
        let req = card.req.filter(|r| r.0 <= now);
        let res = card.res.filter(|r| r.0 <= now);
        let message = match (req, res) {
            (req, Some((_, dest, words))) if !(card.last_was_res && req.is_some()) => {
                card.last_was_res = true;
                Message::Res { dest, words }
            }
            (Some((_, dest, words)), _) => {
                card.last_was_res = false;
                Message::Req { dest, words }
            }
            _ => return,
        };
        card.message = Some((now + 1, message));
    }

    /// The burst scheduler: scan both classes, then generate.
    pub(super) fn begin_burst(&mut self, index: usize) {
        let now = self.now;
        let card = &mut self.cards[index];
        if card.burst.is_some() || now < card.burst_from {
            return;
        }
        let slots = card.grants.len().next_power_of_two();
        let granted = |slot: usize| card.grants.get(slot ^ index).is_some_and(Option::is_some);
        let Some(slot) = round_robin(card.burst_turn, slots, granted) else { return };
        card.burst_turn = slot;
        let dest = slot ^ index;
        let grants = card.grants[dest].take().unwrap_or_default();
        let mut packets = Vec::new();
        let mut counts = [0; 2];
        let mut cycles = 0;
        for class in [1, 0] {
            let mut room = grants[class];
            let queue = &card.queues[dest][class];
            let fitting = queue.iter().take_while(|&&words| {
                let fits = words < room;
                room = room.saturating_sub(words + 1);
                fits
            });
            packets.extend(fitting);
            counts[class] = packets.len() - counts[1];
            cycles += scan_cycles(queue.len(), counts[class]);
        }
        let words = packets.iter().map(|words| words + 1).sum::<u64>() + 2;
        let head = now + cycles + 1;
        let (ready_at, tail_at) =
            if packets.is_empty() { (head + 7, head + 4) } else { (head + 14, head + 7 + words) };
        card.burst =
            Some(Burst { dest, packets, counts, words, sent_words: 0, ready_at, tail_at, tail: None });
        if words <= AHEAD_WORDS {
            self.at(tail_at, Event::Tail(index));
        }
    }

    /// The packets are out of the input FIFO, and the trailing REQ tells what is left.
    pub(super) fn make_tail(&mut self, index: usize) {
        let card = &mut self.cards[index];
        if let Some(burst) = &mut card.burst {
            for class in 0..2 {
                for words in card.queues[burst.dest][class].drain(..burst.counts[class]) {
                    card.used[burst.dest][class] -= words + 1;
                }
            }
            burst.tail = Some(card.used[burst.dest]);
        }
    }

    pub(super) fn end_sequence(&mut self, index: usize) {
        let now = self.now;
        let card = &mut self.cards[index];
        let Some(burst) = &mut card.burst else { return };
        if burst.sent_words < burst.words {
            burst.ready_at = now + 3;
            return;
        }
        // A null REQ returns the token.
        if burst.tail == Some([0; 2]) {
            card.token[burst.dest] = true;
        }
        card.burst = None;
        card.burst_from = now + 2;
        self.counts[BURSTS] += 1;
    }
}
