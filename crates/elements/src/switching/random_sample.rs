//! RandomSample.

use crate::fixed::Probability;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "RandomSample",
    category: "switching",
    summary: "passes packets with some probability",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Passes each packet with probability P. The others go to output 1 if it is connected, and are dropped otherwise.",
    args: &[
        optional("P", "probability", "of passing; must be given unless SAMPLE or DROP is"),
        keyword("SAMPLE", "probability", "the same as P"),
        keyword("DROP", "probability", "of not passing, in place of P"),
        keyword("ACTIVE", "boolean", "whether packets are chosen; otherwise all pass; default true"),
    ],
    handlers: &[
        reads_writes("sampling_prob", "probability of passing"),
        reads_writes("drop_prob", "probability of not passing"),
        reads_writes("active", "whether packets are chosen"),
        reads("drops", "packets that did not pass").counts(Unit::Packets),
        CONFIG,
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> RandomSample(0.1) -> Discard;",
    see: &["RandomSwitch"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Chosen = "chosen", "it was not sampled, and output 1 is not connected";
    }
}

type Chance = Probability<28>;

struct RandomSample {
    sample: Chance,
    active: bool,
    drops: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let p: Option<Chance> = conf.optional("P", None);
    let (sample, drop): (Option<Chance>, Option<Chance>) =
        (conf.keyword_given("SAMPLE"), conf.keyword_given("DROP"));
    let active = conf.keyword("ACTIVE", true);
    if sample.is_some() && drop.is_some() {
        conf.error("give at most one of SAMPLE and DROP");
    }
    let given = [p, sample, drop];
    let possible = sample_of(given).is_some() && given.into_iter().flatten().all(|p| p.check("").is_ok());
    if !possible && conf.errors().is_empty() {
        conf.error(OUT_OF_RANGE);
    }
    conf.finish()?;
    Ok(Box::new(RandomSample { sample: sample_of(given).ok_or(Invalid)?, active, drops: 0 }))
}

/// The chance that P, SAMPLE or DROP says.
fn sample_of([p, sample, drop]: [Option<Chance>; 3]) -> Option<Chance> {
    drop.map(Chance::inverse).or(sample).or(p)
}

const OUT_OF_RANGE: &str = "sampling probability must be between 0 and 1";

impl Element for RandomSample {
    fn packet(&mut self, _port: usize, _packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let passes = !self.active || self.sample.happens(cx);
        self.drops += u64::from(!passes);
        passes.or_divert(1, Reason::Chosen)
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "sampling_prob" => self.sample.to_string(),
            "drop_prob" => self.sample.inverse().to_string(),
            "active" => self.active.to_string(),
            _ => self.drops.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let chance = |cx: &Cx<'_>| -> Result<Chance, Error> {
            let chance = cx.value(handler, value).ok().filter(|chance: &Chance| chance.check("").is_ok());
            chance.ok_or_else(|| Error::new("Must be given a number between 0.0 and 1.0"))
        };
        match handler {
            "sampling_prob" => self.sample = chance(cx)?,
            "drop_prob" => self.sample = chance(cx)?.inverse(),
            _ => self.active = cx.value(handler, value)?,
        }
        cx.set_config(format!("SAMPLE {}, ACTIVE {}", self.sample, self.active));
        Ok(())
    }

    fn take_settings(&mut self, new: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<RandomSample>() {
            (self.sample, self.active) = (new.sample, new.active);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    fn passed(h: &mut Harness) -> usize {
        (0..20).for_each(|_| h.push_all(0, (0..200).map(|n| packet(&[n]))));
        h.assert_balanced();
        h.take(0).len()
    }

    #[test]
    fn so_many_pass() {
        for config in ["0.25", "SAMPLE 0.25", "DROP 0.75"] {
            let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
            // Four standard deviations.
            let n = passed(&mut h);
            assert!(n.abs_diff(1_000) < 110, "{config}: {n}");
            assert_eq!(h.drops(), [("chosen", 4_000 - n as u64)]);
            assert_eq!(
                (h.read("sampling_prob").unwrap(), h.read("drop_prob").unwrap()),
                ("0.25".into(), "0.75".into())
            );
        }
        let mut h = Harness::new(&SPEC, "0, ACTIVE false", 1, 2).unwrap();
        assert_eq!(passed(&mut h), 4_000);
        h.write("active", "true").unwrap();
        assert_eq!((passed(&mut h), h.take(1).len(), h.drops().len()), (0, 4_000, 0));
        h.write("drop_prob", "0").unwrap();
        assert_eq!((passed(&mut h), h.read("config").unwrap()), (4_000, "SAMPLE 1, ACTIVE true".into()));
        h.write("config", "0.5").unwrap();
        assert_eq!(h.read("sampling_prob").unwrap(), "0.5");
    }

    #[test]
    fn bad_configurations_are_named() {
        let error = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap().concat();
        assert_eq!(error(""), "sampling probability must be between 0 and 1");
        assert_eq!(error("SAMPLE 0.1, DROP 0.1"), "give at most one of SAMPLE and DROP");
        assert_eq!(error("2"), "sampling probability must be between 0 and 1");
        assert_eq!(error("DROP 2"), "sampling probability must be between 0 and 1");
        assert_eq!(error("-1"), "P: parse error");
    }
}
