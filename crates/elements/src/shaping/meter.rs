//! Meter, and the element that BandwidthMeter is as well.

use super::measure::{Measure, Packets};
use crate::rate::Rate;
use causeway_engine::Defaults;
use causeway_engine::prelude::*;
use causeway_engine::spec::HandlerDoc;
use causeway_engine::value::{BytesPerSecond, Value};
use std::marker::PhantomData;

pub(crate) static SPEC: Spec = Spec {
    name: "Meter",
    category: "shaping",
    summary: "sends packets to outputs by the rate at which they come",
    ports: "1/2-",
    processing: "h/h",
    doc: "Measures how many packets a second come, as Counter does, and sends each to the output that the rate says: to 0 \
          while it is below the first RATE, to 1 while it is below the second, and so on, to the last while none is \
          above it. All packets go to the same output at a time; RatedSplitter keeps the rate of its first one. \
          Under the name click `meters` has all rates in one line without anything between them, as Click's.",
    args: &[rest("RATE", "packets a second", "rates, each above the one before")],
    handlers: HANDLERS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> m :: Meter(20) -> Discard; m[1] -> Discard;",
    see: &["BandwidthMeter", "RatedSplitter", "Shaper", "Counter"],
    copies: Copies::One,
    build: |conf| build::<Packets>(conf),
    ..Spec::DEFAULT
};

/// Handlers of the classes.
pub(super) const HANDLERS: &[HandlerDoc] = &[
    reads("rate", "recent rate a second").measures(Unit::None),
    reads("meters", "the rates, a line each, as exactly as they are kept"),
];

struct Meter<M> {
    rate: Rate<10>,
    /// In the scale of the rate.
    limits: Vec<u64>,
    /// What is between two rates that are shown.
    between: &'static str,
    measure: PhantomData<M>,
}

pub(super) fn build<M: Measure>(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let texts = conf.rest();
    let mut rates: Vec<u64> = Vec::with_capacity(texts.len());
    if texts.is_empty() {
        conf.error("too few arguments to BandwidthMeter(bandwidth, ...)");
    }
    // Click says it of packets, too.
    let warns = M::HAS_UNITS || conf.env.defaults == Defaults::Click;
    for (i, text) in texts.iter().enumerate() {
        if warns && text.bytes().all(|b| b.is_ascii_digit()) {
            conf.warn(&format!("no units for bandwidth argument {}, assuming Bps", i + 1));
        }
        let rate = BytesPerSecond::parse(text, &conf.scope()).map(|rate| rate.0);
        match rate.ok() {
            Some(rate) if rates.last().is_some_and(|&before| rate <= before) => {
                conf.error(format!("rate {} must be > rate {i}", i + 1));
            }
            // Far above what the rate can be, and small enough to be scaled.
            Some(rate) if rate > u64::from(u32::MAX) => conf.error(format!("rate {} too large", i + 1)),
            Some(rate) => rates.push(rate),
            None => conf.error(format!("argument {} syntax error", i + 1)),
        }
    }
    let outputs = conf.n_outputs();
    if texts.len() + 1 != outputs && !texts.is_empty() && conf.errors().is_empty() {
        conf.error(format!(
            "need {} arguments, one less than the number of output ports",
            outputs.saturating_sub(1)
        ));
    }
    conf.finish()?;
    let limits = rates.into_iter().map(Rate::<10>::scale).collect();
    let between = if conf.env.defaults == Defaults::Click { "" } else { "\n" };
    Ok(Box::new(Meter::<M> { rate: Rate::default(), limits, between, measure: PhantomData }))
}

impl<M: Measure> Element for Meter<M> {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let now_ns = cx.now_ns();
        self.rate.add(M::of(packet), now_ns);
        let rate = self.rate.scaled(now_ns);
        Verdict::Out(self.limits.iter().take_while(|&&limit| rate >= limit).count())
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "rate" => self.rate.per_s(1, cx.now_ns()),
            _ => self
                .limits
                .iter()
                .map(|&limit| Rate::<10>::text(limit))
                .collect::<Vec<_>>()
                .join(self.between),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::bandwidth_meter;
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    /// Where 2 000 packets of 100 bytes go that come every 5 ms.
    fn spread(spec: &'static Spec, config: &str, outputs: usize) -> Vec<usize> {
        let mut h = Harness::new(spec, config, 1, outputs).unwrap();
        for _ in 0..2_000 {
            h.push(0, packet(&[0; 100]));
            h.advance(5_000_000);
        }
        h.assert_balanced();
        (0..outputs).map(|port| h.take(port).len()).collect()
    }

    #[test]
    fn all_packets_go_where_the_rate_says() {
        assert_eq!(spread(&SPEC, "50", 2), [2, 1_998]);
        assert_eq!(spread(&SPEC, "50, 120", 3), [2, 2, 1_996]);
        assert_eq!(spread(&SPEC, "5000", 2), [2_000, 0]);
        assert_eq!(spread(&bandwidth_meter::SPEC, "8000", 2), [2, 1_998]);
    }

    #[test]
    fn the_rates_are_shown() {
        let mut h = Harness::new(&SPEC, "50, 120", 1, 3).unwrap();
        // In steps of 1000/1024.
        assert_eq!(
            (h.read("meters").unwrap(), h.read("rate").unwrap()),
            ("49.805\n119.141".into(), "0".into())
        );
    }

    #[test]
    fn bad_configurations_are_named() {
        let errors = |config: &str, outputs| Harness::new(&SPEC, config, 1, outputs).err().unwrap().join("|");
        assert_eq!(errors("", 2), "too few arguments to BandwidthMeter(bandwidth, ...)");
        assert_eq!(errors("5, 5", 3), "rate 2 must be > rate 1");
        assert_eq!(errors("5", 3), "need 2 arguments, one less than the number of output ports");
        assert_eq!(errors("5Gbps, 60Gbps", 3), "rate 2 too large");
        let warnings = |spec, config| Harness::new(spec, config, 1, 2).unwrap().warnings().len();
        assert_eq!(warnings(&SPEC, "5") + warnings(&bandwidth_meter::SPEC, "5kbps"), 0);
        assert_eq!(warnings(&bandwidth_meter::SPEC, "5"), 1);
    }
}
