//! The way over the bus: a card's channels, the arbiter, and what a sequence brings where it goes.

use super::{
    ADDRESS_CYCLES, AHEAD_WORDS, DATA, DONE_CYCLES, Event, MASTER_CYCLES, Message, Model, SEQUENCE_WORDS,
    TARGET_CYCLES, round_robin,
};

impl Model {
    /// The card's channels take turns at its bus master.
    pub(super) fn choose_channel(&mut self, index: usize) {
        let now = self.now;
        let card = &mut self.cards[index];
        if card.wants.is_some() || now < card.dma_from {
            return;
        }
        let ready = |channel: usize| {
            if channel == 0 {
                card.message.is_some_and(|(at, _)| at <= now)
            } else {
                card.burst.as_ref().is_some_and(|b| b.ready_at <= now)
            }
        };
        if let Some(channel) = round_robin(card.last_channel, 2, ready) {
            card.last_channel = channel;
            card.wants = Some((now + MASTER_CYCLES, channel == 1));
        }
    }

    /// The bus: round robin, when it has been idle long enough.
    pub(super) fn arbitrate(&mut self) {
        let now = self.now;
        if now < self.bus_end + 1 + self.extra {
            return;
        }
        let wants = |card: usize| self.cards[card].wants.is_some_and(|(since, _)| since < now);
        let Some(index) = round_robin(self.bus_turn, self.cards.len(), wants) else { return };
        self.bus_turn = index;
        let for_burst = self.cards[index].wants.take().is_some_and(|w| w.1);
        let first = now + 1 + ADDRESS_CYCLES;
        let words = if for_burst { self.put_burst(index, first) } else { self.put_message(index, first) };
        self.counts[DATA] += words;
        self.bus_end = first + words;
        self.cards[index].dma_from = self.bus_end + DONE_CYCLES + 1;
        let done = if for_burst { Event::SequenceDone(index) } else { Event::MessageDone(index) };
        self.at(self.bus_end + DONE_CYCLES, done);
    }

    fn put_message(&mut self, index: usize, first: u64) -> u64 {
        match self.cards[index].message {
            Some((_, Message::Req { dest, words })) => {
                self.at(first + TARGET_CYCLES, Event::Request(dest, index, words));
            }
            Some((_, Message::Res { dest, words })) => {
                self.at(first + TARGET_CYCLES, Event::Response(dest, index, words));
            }
            None => {}
        }
        1
    }

    fn put_burst(&mut self, index: usize, first: u64) -> u64 {
        let Some(mut burst) = self.cards[index].burst.take() else { return 0 };
        let begin = burst.sent_words;
        let words = (burst.words - begin).min(SEQUENCE_WORDS);
        burst.sent_words += words;
        let dest = burst.dest;
        let mut position = 0;
        for (number, &data) in burst.packets.iter().enumerate() {
            position += data + 1;
            if (begin..begin + words).contains(&position) {
                let at = first + position - begin + TARGET_CYCLES + 1;
                self.at(at, Event::Output(dest, number < burst.counts[1], data));
                self.cards[dest].free -= data + 1;
                self.cards[dest].surplus[index] -= (data + 1) as i64;
            }
        }
        let whole = burst.sent_words == burst.words;
        if burst.tail.is_none() && whole && burst.words > AHEAD_WORDS {
            // The generator waits for the bus, so that the REQ is made when the bus is near.
            let at = burst.tail_at.max((first + words).saturating_sub(AHEAD_WORDS)).max(self.now);
            self.at(at, Event::Tail(index));
        }
        if whole {
            self.at(first + words + TARGET_CYCLES, Event::Trailing(index));
        }
        self.cards[index].burst = Some(burst);
        words
    }
}
