//! What elements that check packets have in common: sorting out the bad ones, and saying how many and why.

use causeway_engine::DropReasons;
use causeway_engine::prelude::*;
use causeway_engine::spec::HandlerDoc;
use causeway_packet::BATCH;
use std::marker::PhantomData;

/// The handlers that [`Tally::read`] answers.
pub(crate) const HANDLERS: &[HandlerDoc] = &[
    reads("count", "good packets").counts(Unit::Packets),
    reads("drops", "bad packets").counts(Unit::Packets),
    reads(DETAILS, "bad packets by reason, a line each").across(Across::Each),
];

/// The handler that classes with an argument DETAILS have only where that is true.
pub(crate) const DETAILS: &str = "drop_details";

/// Good packets, and bad ones by their reasons `R`, whether they were dropped or diverted.
pub(crate) struct Tally<R> {
    /// Good packets.
    pub good: Counter,
    bad: Vec<u64>,
    reasons: PhantomData<R>,
}

impl<R: DropReasons> Tally<R> {
    pub fn new(conf: &mut Conf<'_>) -> Self {
        Tally { good: conf.counter("count"), bad: vec![0; R::DOCS.len()], reasons: PhantomData }
    }

    /// Judges each packet while the bytes of later ones are being fetched. Those for which `judge` gives a reason
    /// go to output 1, or are dropped for that reason if it is not connected; the others stay in the batch.
    #[inline]
    pub fn sift(
        &mut self,
        batch: &mut Batch,
        cx: &mut Cx<'_>,
        mut judge: impl FnMut(&mut Packet) -> Result<(), R>,
    ) {
        batch.iter().take(8).for_each(|p| p.prefetch_data());
        let mut verdicts = [None; BATCH];
        let mut bad = 0;
        for i in 0..batch.len() {
            batch.prefetch_data(i + 8);
            if let Err(reason) = judge(&mut batch[i]) {
                self.bad[usize::from(reason.place())] += 1;
                bad += 1;
                verdicts[i] = Some(reason);
            }
        }
        self.good.add((batch.len() - bad) as u64);
        if bad > 0 {
            let mut verdicts = verdicts.into_iter();
            batch.filter_map(|packet| match verdicts.next().flatten() {
                Some(reason) => {
                    cx.divert(1, reason, packet);
                    None
                }
                _ => Some(packet),
            });
        }
    }

    /// How many packets were bad for each reason, in the words of `texts`.
    pub fn details<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> String {
        texts.into_iter().zip(&self.bad).map(|(text, n)| format!("{n}\t{text}\n")).collect()
    }

    /// Answers one of [`HANDLERS`].
    pub fn read(&self, handler: &str) -> String {
        match handler {
            "count" => self.good.get().to_string(),
            "drops" => self.bad.iter().sum::<u64>().to_string(),
            _ => self.details(R::DOCS.iter().map(|doc| doc.name)),
        }
    }
}
