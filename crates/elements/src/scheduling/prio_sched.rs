//! PrioSched.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "PrioSched",
    aliases: &["SimplePrioSched"],
    category: "scheduling",
    summary: "pulls from the first input that has packets",
    ports: "-/1",
    processing: "l/l",
    doc: "Answers each pull with packets of input 0; when that has none, of input 1, and so on: strict priority. \
          Inputs whose notifiers say that there is nothing are not asked.",
    example: "InfiniteSource(LIMIT 9, STOP true) -> Queue -> [0] p :: PrioSched -> Discard; Idle -> [1] p;",
    see: &["RoundRobinSched"],
    build,
    ..Spec::DEFAULT
};

struct PrioSched;

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(PrioSched))
}

impl Element for PrioSched {
    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let max = max.min(batch.room());
        let mut some = cx.lend_batch();
        for input in 0..cx.n_inputs() {
            if cx.packets_upstream(input) {
                cx.pull(input, max - batch.len(), &mut some);
                batch.append(&mut some);
            }
            if batch.len() == max {
                break;
            }
        }
        cx.return_batch(some);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};

    #[test]
    fn earlier_inputs_come_first() {
        let ports = Ports { pulled_inputs: vec![true; 3], outputs: vec![Output::Pulled] };
        let mut h = Harness::with_ports(&SPEC, "", &ports).unwrap();
        let pull = |h: &mut Harness, max| -> Vec<u8> { h.pull(0, max).iter().map(|p| p.data()[0]).collect() };
        for input in [2, 1, 1, 0, 2] {
            h.feed(input, Packet::from_bytes(&[input as u8]).unwrap());
        }
        assert_eq!(pull(&mut h, 1), [0]);
        assert_eq!(pull(&mut h, 3), [1, 1, 2]);
        h.feed(0, Packet::from_bytes(&[0]).unwrap());
        assert_eq!(pull(&mut h, 9), [0, 2]);
        assert!(pull(&mut h, 9).is_empty());
        h.assert_balanced();
    }
}
