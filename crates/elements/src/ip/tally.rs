//! What elements that check packets have in common: sorting out the bad ones, and saying how many and why.

use causeway_engine::measure::{Across, Unit};
use causeway_engine::spec::{DropDoc, HandlerDoc, reads};
use causeway_engine::{Conf, Counter, Cx};
use causeway_packet::{BATCH, Batch, Packet};

/// The handlers that [`Tally::read`] answers.
pub(crate) const HANDLERS: &[HandlerDoc] = &[
    reads("count", "good packets").counts(Unit::Packets),
    reads("drops", "bad packets").counts(Unit::Packets),
    reads("drop_details", "bad packets by reason, a line each").across(Across::Each),
];

/// Good packets, and bad ones by `N` reasons, whether they were dropped or diverted.
pub(crate) struct Tally<const N: usize> {
    /// Good packets.
    pub good: Counter,
    bad: [u64; N],
}

impl<const N: usize> Tally<N> {
    pub fn new(conf: &mut Conf<'_>) -> Self {
        Tally { good: conf.counter("count"), bad: [0; N] }
    }

    /// Judges each packet while the bytes of later ones are being fetched. Those for which `judge` gives a reason
    /// go to output 1, or are dropped for that reason if it is not connected; the others stay in the batch.
    #[inline]
    pub fn sift(
        &mut self,
        batch: &mut Batch,
        cx: &mut Cx<'_>,
        mut judge: impl FnMut(&mut Packet) -> Result<(), usize>,
    ) {
        batch.iter().take(8).for_each(|p| p.prefetch_data());
        // The reason plus one of bad packets. There are never more than a few reasons.
        let mut verdicts = [0u8; BATCH];
        let mut bad = 0;
        for i in 0..batch.len() {
            batch.prefetch_data(i + 8);
            if let Err(reason) = judge(&mut batch[i]) {
                self.bad[reason] += 1;
                bad += 1;
                verdicts[i] = reason as u8 + 1;
            }
        }
        self.good.add((batch.len() - bad) as u64);
        if bad > 0 {
            let mut verdicts = verdicts.into_iter();
            batch.filter_map(|packet| match verdicts.next() {
                Some(reason @ 1..) => {
                    cx.divert(1, reason as usize - 1, packet);
                    None
                }
                _ => Some(packet),
            });
        }
    }

    /// Answers one of [`HANDLERS`].
    pub fn read(&self, handler: &str, reasons: &[DropDoc]) -> String {
        match handler {
            "count" => self.good.get().to_string(),
            "drops" => self.bad.iter().sum::<u64>().to_string(),
            _ => reasons.iter().zip(self.bad).map(|(d, n)| format!("{n}\t{}\n", d.name)).collect(),
        }
    }
}
