//! RoundRobinSched.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "RoundRobinSched",
    aliases: &["SimpleRoundRobinSched"],
    category: "scheduling",
    summary: "pulls from its inputs in turn",
    ports: "-/1",
    processing: "l/l",
    doc: "Answers pulls with one packet of each input in turn, passing over those that have none. Inputs whose \
          notifiers say that there is nothing are not asked.",
    example: "InfiniteSource(LIMIT 9, STOP true) -> Queue -> [0] r :: RoundRobinSched -> Discard; Idle -> [1] r;",
    see: &["PrioSched"],
    build,
    ..Spec::DEFAULT
};

struct RoundRobinSched {
    /// Input that is asked first next time.
    next: usize,
    /// For each input the packets of one round of sharing out, and whether it may have more.
    shares: Vec<Share>,
}

#[derive(Default)]
struct Share {
    batch: Option<Box<Batch>>,
    open: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    let shares = (0..conf.n_inputs()).map(|_| Share::default()).collect();
    Ok(Box::new(RoundRobinSched { next: 0, shares }))
}

impl RoundRobinSched {
    /// Pulls a share of `max` packets from each open input, beginning with the next one; what an input does not
    /// fill closes it. Sharing out spares a pull for each packet.
    fn pull_shares(&mut self, max: usize, cx: &mut Cx<'_>) {
        let n = self.shares.len();
        let open = self.shares.iter().filter(|s| s.open).count();
        // No input is open only when the caller has asked for the last time.
        let (each, mut extra) = (max / open.max(1), max % open.max(1));
        for i in (self.next..n).chain(0..self.next) {
            let share = &mut self.shares[i];
            let want = each + usize::from(extra > 0);
            if !share.open || want == 0 {
                continue;
            }
            extra = extra.saturating_sub(1);
            let mut batch = cx.lend_batch();
            cx.pull(i, want, &mut batch);
            share.open = batch.len() == want;
            // Taken from the end below.
            batch.reverse();
            share.batch = Some(batch);
        }
    }

    /// Moves the shares to `batch`, one packet of each in turn.
    fn interleave(&mut self, batch: &mut Batch) {
        let n = self.shares.len();
        let mut empty = 0;
        let mut i = self.next;
        while empty < n {
            match self.shares[i].batch.as_mut().and_then(|b| b.pop()) {
                Some(packet) => {
                    // The shares together are never more than the room there was.
                    let _ = batch.push(packet);
                    self.next = (i + 1) % n;
                    empty = 0;
                }
                None => empty += 1,
            }
            i = (i + 1) % n;
        }
    }
}

impl Element for RoundRobinSched {
    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let max = max.min(batch.room());
        for (input, share) in self.shares.iter_mut().enumerate() {
            share.open = cx.packets_upstream(input);
        }
        while batch.len() < max && self.shares.iter().any(|s| s.open) {
            self.pull_shares(max - batch.len(), cx);
            self.interleave(batch);
            for share in &mut self.shares {
                if let Some(empty) = share.batch.take() {
                    cx.return_batch(empty);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn sched(inputs: usize) -> Harness {
        let ports = Ports { pulled_inputs: vec![true; inputs], outputs: vec![Output::Pulled] };
        Harness::with_ports(&SPEC, "", &ports).unwrap()
    }

    #[test]
    fn inputs_take_turns() {
        let mut h = sched(3);
        for input in [0, 0, 0, 2, 2] {
            h.feed(input, Packet::from_bytes(&[input as u8]).unwrap());
        }
        let out: Vec<u8> = h.pull(0, 9).iter().map(|p| p.data()[0]).collect();
        assert_eq!(out, [0, 2, 0, 2, 0]);
    }

    #[test]
    fn no_inputs_give_nothing() {
        assert!(sched(0).pull(0, 9).is_empty());
    }

    /// What one packet at a time gives: the next input with packets after the last one used.
    fn one_by_one(queues: &mut [VecDeque<u8>], next: &mut usize, max: usize) -> Vec<u8> {
        let n = queues.len();
        let mut out = Vec::new();
        while out.len() < max {
            let Some(i) = (0..n).map(|k| (*next + k) % n).find(|&i| !queues[i].is_empty()) else { break };
            out.extend(queues[i].pop_front());
            *next = (i + 1) % n;
        }
        out
    }

    proptest! {
        #[test]
        fn batches_are_what_single_packets_are(
            steps in proptest::collection::vec(
                (proptest::collection::vec(0usize..9, 4), 0usize..24), 1..12
            ),
        ) {
            let mut h = sched(4);
            let (mut model, mut next, mut number) = (vec![VecDeque::new(); 4], 0, 0u8);
            for (arriving, max) in steps {
                for (input, n) in arriving.into_iter().enumerate() {
                    for _ in 0..n {
                        number = number.wrapping_add(1);
                        h.feed(input, Packet::from_bytes(&[number]).unwrap());
                        model[input].push_back(number);
                    }
                }
                let pulled: Vec<u8> = h.pull(0, max).iter().map(|p| p.data()[0]).collect();
                prop_assert_eq!(pulled, one_by_one(&mut model, &mut next, max));
                h.assert_balanced();
            }
        }
    }
}
