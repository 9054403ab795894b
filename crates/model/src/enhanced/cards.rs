//! The cards of a scenario, stepped through the bus's clock cycles.

mod bus;
mod schedulers;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::source::{Generator, Source};
use super::{Policy, Scenario};

/// A byte's time at 1 Gbit/s.
const BYTE_PS: u64 = 8_000;
/// Bytes of preamble and start delimiter.
const PREAMBLE_BYTES: u64 = 8;
/// Bytes of the check sequence, which does not cross the bus, and of a word that does.
const CHECK_BYTES: u64 = 4;
const WORD_BYTES: u64 = 8;
/// Words of a FIFO.
const CAP_WORDS: u64 = 1_920;
/// The protocol's own cycles of overhead; a longer one is a longer pause before the grant.
const OWN_OVERHEAD_CYCLES: u64 = 5;
/// From a frame's last bit to its place in the input FIFO: clock crossing, decision, rewrite, two stages of storing.
const INPUT_CYCLES: u64 = 34;
/// From the grant to the first word: address, attribute, response.
const ADDRESS_CYCLES: u64 = 3;
/// From a word on the bus to the block that it is for.
const TARGET_CYCLES: u64 = 3;
/// From the end of a sequence, over what the target says of its last word, to its channel.
const DONE_CYCLES: u64 = 5;
/// From the channel's request to the one of the bus master.
const MASTER_CYCLES: u64 = 1;
/// Words between the burst's generator and the bus.
const AHEAD_WORDS: u64 = 13;
/// Words in a clock crossing before the output scheduler pauses.
const CROSSING_WORDS: u64 = 13;
/// More than two full FIFOs need to drain at any line rate.
const DRAIN_CYCLES: u64 = 100_000;
/// Between two looks whether all are empty.
const DRAIN_LOOK_CYCLES: u64 = 1_000;
/// Longest sequence.
const SEQUENCE_WORDS: u64 = 512;

/// What comes out, over the time measured: of the model, or of a simulation of the Verilog that it is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Packets that left the ports.
    pub delivered_pps: f64,
    /// Those of the high class.
    pub high_pps: f64,
    /// Bursts that left the cards; the packets a burst are taken over the whole run, with draining.
    pub bursts_pps: f64,
    /// Share of bus cycles in which a sequence was under way or wanted.
    pub bus_busy: f64,
    /// Share of bus cycles with a data word.
    pub bus_data: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A frame is in its card's hands: card, destination, high class, data words.
    Stored(usize, usize, bool, u64),
    /// A REQ is at an output: output, source, low and high words.
    Request(usize, usize, [u64; 2]),
    /// The card's burst is at its output with the trailing REQ.
    Trailing(usize),
    /// A RES is at an input: input, output, grants.
    Response(usize, usize, [u64; 2]),
    /// The card's message has left.
    MessageDone(usize),
    /// The burst's trailing REQ is made.
    Tail(usize),
    /// A sequence of the card's burst has left.
    SequenceDone(usize),
    /// A packet is whole in the output FIFO: card, high class, data words.
    Output(usize, bool, u64),
}

#[derive(Clone, Copy, Debug)]
enum Message {
    Req { dest: usize, words: [u64; 2] },
    Res { dest: usize, words: [u64; 2] },
}

/// A burst between its grant and its end.
#[derive(Clone, Debug)]
struct Burst {
    dest: usize,
    packets: Vec<u64>,
    counts: [usize; 2],
    words: u64,
    sent_words: u64,
    ready_at: u64,
    tail_at: u64,
    tail: Option<[u64; 2]>,
}

#[derive(Default)]
struct Card {
    /// By destination: low and high class, data words of each packet.
    queues: Vec<[VecDeque<u64>; 2]>,
    used: Vec<[u64; 2]>,
    token: Vec<bool>,
    awaited: Option<usize>,
    request_turn: usize,
    req: Option<(u64, usize, [u64; 2])>,
    // Output side.
    pending: Vec<[u64; 2]>,
    response_turn: usize,
    response_from: u64,
    /// By source, words left of its turn.
    surplus: Vec<i64>,
    serving: bool,
    res: Option<(u64, usize, [u64; 2])>,
    free: u64,
    outputs: VecDeque<(bool, u64)>,
    out_left: u64,
    out_high: bool,
    out_pause_until: u64,
    /// Words on their way to the line: whether the last of a packet, its class, from when on.
    crossing: VecDeque<(bool, bool, u64)>,
    mac_free_ns: u64,
    // Channels.
    message: Option<(u64, Message)>,
    last_was_res: bool,
    grants: Vec<Option<[u64; 2]>>,
    burst_turn: usize,
    burst_from: u64,
    burst: Option<Burst>,
    last_channel: usize,
    dma_from: u64,
    /// When the bus was asked for, and whether for the burst.
    wants: Option<(u64, bool)>,
}

struct Model {
    cards: Vec<Card>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    policy: Policy,
    extra: u64,
    period_ps: u64,
    frame_bytes: u64,
    bus_end: u64,
    bus_turn: usize,
    now: u64,
    counts: [u64; 5],
}

const DELIVERED: usize = 0;
const BURSTS: usize = 1;
const BUSY: usize = 2;
const DATA: usize = 3;
const DELIVERED_HIGH: usize = 4;

/// Runs the model over a scenario of the fast path.
pub fn predict(scenario: &Scenario) -> Statistics {
    let mut generators: Vec<Generator> =
        scenario.sources.iter().map(|s| Generator::new(s.clone(), scenario.seed)).collect();
    let mut model = Model::new(scenario);
    let period_ps = scenario.bus_period_ps;
    let begin = scenario.warm_up_ns * 1_000 / period_ps;
    let end = begin + scenario.measure_ns * 1_000 / period_ps;
    let mut measured = [0; 5];
    for now in 0..end + DRAIN_CYCLES {
        if now == begin || now == end {
            measured = std::array::from_fn(|i| model.counts[i] - measured[i]);
        }
        for generator in generators.iter_mut().filter(|_| now < end) {
            let &Source { port, frame_bytes, .. } = generator.source();
            let bytes = u64::from(frame_bytes);
            while let Some(due) = generator.due(now * period_ps / 1_000) {
                let at = now + (bytes + PREAMBLE_BYTES) * BYTE_PS / period_ps + INPUT_CYCLES;
                let high = due.high && scenario.classify;
                let words = (bytes - CHECK_BYTES).div_ceil(WORD_BYTES);
                model.at(at, Event::Stored(usize::from(port), usize::from(due.dest), high, words));
            }
        }
        model.step(now);
        if now > end && now.is_multiple_of(DRAIN_LOOK_CYCLES) && model.is_drained() {
            break;
        }
    }
    let cycles = (end - begin) as f64;
    let seconds = cycles * period_ps as f64 / 1e12;
    let delivered_pps = measured[DELIVERED] as f64 / seconds;
    Statistics {
        delivered_pps,
        high_pps: measured[DELIVERED_HIGH] as f64 / seconds,
        bursts_pps: delivered_pps * model.counts[BURSTS] as f64 / model.counts[DELIVERED].max(1) as f64,
        bus_busy: measured[BUSY] as f64 / cycles,
        bus_data: measured[DATA] as f64 / cycles,
    }
}

/// The first index after `last` that `wants`, around `count`.
fn round_robin(last: usize, count: usize, wants: impl Fn(usize) -> bool) -> Option<usize> {
    (1..=count).map(|k| (last + k) % count).find(|&i| wants(i))
}

impl Model {
    fn new(scenario: &Scenario) -> Self {
        let cards = scenario.cards;
        let card = || Card {
            queues: (0..cards).map(|_| Default::default()).collect(),
            used: vec![[0; 2]; cards],
            token: vec![true; cards],
            pending: vec![[0; 2]; cards],
            surplus: vec![0; cards],
            grants: vec![None; cards],
            free: CAP_WORDS,
            ..Card::default()
        };
        Self {
            cards: (0..cards).map(|_| card()).collect(),
            events: BinaryHeap::new(),
            order: 0,
            policy: scenario.policy,
            extra: scenario.bus_overhead_cycles.saturating_sub(OWN_OVERHEAD_CYCLES),
            period_ps: scenario.bus_period_ps,
            frame_bytes: scenario.sources.first().map_or(64, |s| u64::from(s.frame_bytes)),
            bus_end: 0,
            bus_turn: 0,
            now: 0,
            counts: [0; 5],
        }
    }

    fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, event)));
    }

    /// Whether no card holds a packet or a message, and none is on its way.
    fn is_drained(&self) -> bool {
        let empty = |card: &Card| {
            card.used.iter().all(|words| *words == [0; 2])
                && (card.req.is_none() && card.res.is_none() && card.message.is_none())
                && (card.burst.is_none() && card.wants.is_none())
                && (card.outputs.is_empty() && card.out_left == 0 && card.crossing.is_empty())
        };
        self.events.is_empty() && self.cards.iter().all(empty)
    }

    fn step(&mut self, now: u64) {
        self.now = now;
        while self.events.peek().is_some_and(|e| e.0.0 <= now) {
            if let Some(Reverse((_, _, event))) = self.events.pop() {
                self.take(event);
            }
        }
        let wanted = self.cards.iter().any(|c| c.wants.is_some_and(|(since, _)| since < now));
        self.counts[BUSY] += u64::from(now <= self.bus_end || wanted);
        for card in 0..self.cards.len() {
            self.request(card);
            self.respond(card);
            self.send_message(card);
            self.begin_burst(card);
            self.choose_channel(card);
            self.transmit(card);
        }
        self.arbitrate();
    }

    fn take(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Stored(card, dest, high, words) => {
                let card = &mut self.cards[card];
                let class = usize::from(high);
                if card.used[dest][class] + words < CAP_WORDS {
                    card.used[dest][class] += words + 1;
                    card.queues[dest][class].push_back(words);
                }
            }
            Event::Request(card, source, words) => self.cards[card].pending[source] = words,
            Event::Trailing(source) => {
                let Some(burst) = &self.cards[source].burst else { return };
                let (dest, words) = (burst.dest, burst.tail.unwrap_or_default());
                let card = &mut self.cards[dest];
                card.pending[source] = words;
                if words == [0; 2] {
                    card.surplus[source] = 0;
                }
                card.serving = false;
                card.response_from = now + 1;
            }
            Event::Response(card, dest, words) => {
                let card = &mut self.cards[card];
                card.grants[dest] = Some(words);
                card.awaited = card.awaited.filter(|&d| d != dest);
            }
            Event::MessageDone(card) => {
                let card = &mut self.cards[card];
                match card.message.take() {
                    Some((_, Message::Req { .. })) => card.req = None,
                    _ => card.res = None,
                }
            }
            Event::Tail(card) => self.make_tail(card),
            Event::SequenceDone(card) => self.end_sequence(card),
            Event::Output(card, high, words) => self.cards[card].outputs.push_back((high, words)),
        }
    }

    /// A word a cycle to the clock crossing, from there at the line's pace.
    fn transmit(&mut self, index: usize) {
        let (now, now_ns, frame_bytes) = (self.now, self.now * self.period_ps / 1_000, self.frame_bytes);
        let card = &mut self.cards[index];
        if card.out_left > 0 {
            if card.crossing.len() as u64 <= CROSSING_WORDS && now >= card.out_pause_until {
                card.out_left -= 1;
                card.free += 1;
                card.crossing.push_back((card.out_left == 0, card.out_high, now_ns + 4 * 8));
                if card.out_left == 0 {
                    card.out_pause_until = now + 2;
                }
            }
        } else if now >= card.out_pause_until
            && let Some((high, words)) = card.outputs.pop_front()
        {
            card.out_left = words;
            card.out_high = high;
            card.free += 1;
            card.out_pause_until = now + 2;
        }
        while let Some(&(last, high, from_ns)) = card.crossing.front() {
            let at_ns = card.mac_free_ns.max(from_ns);
            if at_ns > now_ns {
                break;
            }
            card.crossing.pop_front();
            // Words before the last take eight byte times; the last takes what the line still needs for the frame.
            let words = (frame_bytes - 4).div_ceil(8);
            let pause = if last { (frame_bytes + 20) * 8 - (words - 1) * 64 } else { 64 };
            card.mac_free_ns = at_ns + pause;
            self.counts[DELIVERED] += u64::from(last);
            self.counts[DELIVERED_HIGH] += u64::from(last && high);
        }
    }
}
