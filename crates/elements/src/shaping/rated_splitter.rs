//! RatedSplitter, and the element that BandwidthRatedSplitter is as well.

use super::bucket::{Bucket, Limits, PacketLimits};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "RatedSplitter",
    category: "shaping",
    summary: "passes packets up to a rate and sends the others elsewhere",
    ports: "1/1-2",
    processing: "h/h",
    doc: "Passes up to RATE packets a second. Those beyond that go to output 1 if it is connected, and are dropped \
          otherwise. A token bucket, filled each millisecond, tells them apart: what was not used of the rate is saved \
          up, as far as BURST_DURATION or BURST_SIZE allow.",
    args: PacketLimits::ARGS,
    handlers: handlers!(PacketLimits::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> r :: RatedSplitter(20) -> Discard; r[1] -> Discard;",
    see: &["BandwidthRatedSplitter", "Meter", "Shaper", "RatedUnqueue"],
    copies: Copies::One,
    build: |conf| build::<PacketLimits>(conf),
    ..Spec::DEFAULT
};

drop_reasons! {
    pub(super) enum Reason for SPEC {
        Rate = "rate", "it was beyond the rate, and output 1 is not connected";
    }
}

struct RatedSplitter<L>(Bucket<L>);

pub(super) fn build<L: Limits>(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let bucket = Bucket::<L>::configure(conf);
    conf.finish()?;
    Ok(Box::new(RatedSplitter(bucket)))
}

impl<L: Limits> Element for RatedSplitter<L> {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let passes = self.0.open(cx.now_ns());
        if passes {
            self.0.take(packet);
        }
        passes.or_divert(1, Reason::Rate)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.0.limits)
    }

    fn settings_changed(&mut self, _cx: &mut Cx<'_>) {
        self.0.changed();
    }
}

#[cfg(test)]
mod tests {
    use super::super::bandwidth_rated_splitter;
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    /// How many of 2 000 packets of 100 bytes in ten seconds pass.
    fn passed(spec: &'static Spec, config: &str) -> usize {
        let mut h = Harness::new(spec, config, 1, 2).unwrap();
        for _ in 0..2_000 {
            h.push(0, packet(&[0; 100]));
            h.advance(5_000_000);
        }
        h.assert_balanced();
        assert!(h.drops().is_empty());
        h.take(0).len()
    }

    #[test]
    fn so_many_pass_as_in_click() {
        for (config, packets) in [
            ("2", 20),
            ("2, BURST_SIZE 50", 69),
            ("2, BURST_DURATION 25", 69),
            ("100, BURST_SIZE 2", 1_001),
            ("1000", 2_000),
            ("7", 69),
            ("0", 0),
        ] {
            assert_eq!(passed(&SPEC, config), packets, "{config}");
        }
        for (config, packets) in
            [("1000", 101), ("1Mbps, BURST_BYTES 3000", 2_000), ("8kbps, BURST_DURATION 1", 110)]
        {
            assert_eq!(passed(&bandwidth_rated_splitter::SPEC, config), packets, "{config}");
        }
    }

    #[test]
    fn what_is_too_much_is_dropped_where_nobody_takes_it() {
        let mut h = Harness::new(&SPEC, "2", 1, 1).unwrap();
        h.push_all(0, (0..5).map(|_| packet(b"x")));
        assert_eq!((h.take(0).len(), h.drops()), (1, vec![("rate", 4)]));
        h.write("rate", "1000").unwrap();
        h.advance(1_000_000_000);
        h.push_all(0, (0..5).map(|_| packet(b"x")));
        assert_eq!((h.take(0).len(), h.read("rate").unwrap()), (5, "1000".to_owned()));
        h.assert_balanced();
    }

    #[test]
    fn bad_configurations_are_named() {
        let error = |config: &str| Harness::new(&SPEC, config, 1, 2).err().unwrap().concat();
        assert_eq!(error(""), "RATE: required argument missing");
        assert_eq!(
            error("1, BURST_SIZE 1, BURST_DURATION 1"),
            "cannot specify both BURST_DURATION and BURST_SIZE"
        );
    }
}
