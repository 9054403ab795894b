//! Shaper, and the element that BandwidthShaper is as well.

use super::gap_rate::GapRate;
use super::measure::{Measure, Packets};
use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc, Notifies};

pub(crate) static SPEC: Spec = Spec {
    name: "Shaper",
    category: "shaping",
    summary: "lets itself be pulled at a rate",
    ports: "1/1-2",
    processing: "l/l",
    doc: "Answers pulls with up to RATE packets a second, evenly spaced; pullers sleep in between. Pulls from output 1 \
          are answered with packets while output 0 must wait.",
    args: &[RATE],
    handlers: HANDLERS,
    example: "InfiniteSource(LIMIT 50, STOP true) -> Queue -> Shaper(100) -> Discard;",
    see: &["BandwidthShaper", "RatedSplitter", "RatedUnqueue", "DelayShaper"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build: |conf| build::<Packets>(conf),
    ..Spec::DEFAULT
};

const RATE: ArgDoc = required("RATE", "packets a second", "how many pass");

/// Handlers of the classes.
pub(super) const HANDLERS: &[HandlerDoc] = &[
    reads_writes("rate", "how much passes a second"),
    writes("reset", "lets a packet pass at once"),
    CONFIG,
];

struct Shaper<M: Measure> {
    rate: M::Rate,
    gap: GapRate,
    /// Whether pulls from output 1 are answered, so that nobody may be told that there is nothing.
    two: bool,
}

pub(super) fn build<M: Measure>(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let rate: M::Rate = conf.required("RATE");
    conf.finish()?;
    Ok(Box::new(Shaper::<M> { rate, gap: GapRate::new(M::per_s(rate)), two: conf.n_outputs() > 1 }))
}

impl<M: Measure> Shaper<M> {
    fn set(&mut self, rate: M::Rate, cx: &mut Cx<'_>) {
        self.rate = rate;
        self.gap.set_rate(M::per_s(rate), cx.now_ns());
        cx.notify_packets(true);
    }
}

impl<M: Measure> Element for Shaper<M> {
    fn pull(&mut self, port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut one = cx.lend_batch();
        while batch.len() < max && batch.room() > 0 {
            if self.gap.open(cx.now_ns()) != (port == 0) {
                if !self.two {
                    cx.notify_packets_at(self.gap.next_ns());
                }
                break;
            }
            cx.pull(0, 1, &mut one);
            let Some(packet) = one.pop() else {
                if !cx.packets_upstream(0) {
                    cx.notify_packets(false);
                }
                break;
            };
            if port == 0 {
                self.gap.add(M::of(&packet));
            }
            // There is room.
            let _ = batch.push(packet);
        }
        cx.return_batch(one);
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.rate.to_string())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        if handler == "rate" {
            let rate = cx.value(handler, value)?;
            self.set(rate, cx);
        } else {
            self.gap.reset();
            cx.notify_packets(true);
        }
        Ok(())
    }

    fn take_settings(&mut self, new: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<Self>() {
            self.set(new.rate, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bandwidth_shaper;
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    fn shaper(spec: &'static Spec, config: &str, outputs: usize) -> Harness {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![Output::Pulled; outputs] };
        let mut h = Harness::with_ports(spec, config, &ports).unwrap();
        (0..3_000).for_each(|_| h.feed(0, packet(&[0; 100])));
        h
    }

    /// Packets that come in a second when it is asked each millisecond.
    fn second(h: &mut Harness) -> usize {
        let came = (0..1_000)
            .map(|_| {
                h.advance(1_000_000);
                h.pull(0, 5).len()
            })
            .sum();
        h.assert_balanced();
        came
    }

    #[test]
    fn it_answers_at_the_rate() {
        let mut h = shaper(&SPEC, "100", 1);
        assert!(second(&mut h).abs_diff(100) <= 1);
        assert_eq!(second(&mut h), 100);
        h.write("rate", "7").unwrap();
        second(&mut h);
        assert_eq!(
            (second(&mut h), h.read("rate").unwrap(), h.read("config").unwrap()),
            (7, "7".into(), "7".into())
        );
        h.write("config", "20").unwrap();
        second(&mut h);
        assert_eq!((second(&mut h), h.read("rate").unwrap()), (20, "20".into()));
        let mut h = shaper(&bandwidth_shaper::SPEC, "80kbps", 1);
        second(&mut h);
        assert_eq!((second(&mut h), h.read("rate").unwrap()), (100, "80kbps".into()));
    }

    #[test]
    fn after_a_reset_one_passes_soon() {
        let mut h = shaper(&SPEC, "1", 1);
        second(&mut h);
        second(&mut h);
        h.write("reset", "").unwrap();
        assert_eq!(h.pull(0, 5).len(), 1);
    }

    #[test]
    fn the_second_output_gives_what_the_first_may_not() {
        let mut h = shaper(&SPEC, "10", 2);
        h.pull(0, 9);
        assert_eq!((h.pull(0, 9).len(), h.pull(1, 9).len()), (0, 9));
        h.advance(150_000_000);
        assert_eq!((h.pull(1, 9).len(), h.pull(0, 1).len()), (0, 1));
    }
}
