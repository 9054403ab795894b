//! RandomSeed.

use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use std::hash::{BuildHasher, Hasher, RandomState};

pub(crate) static SPEC: Spec = Spec {
    name: "RandomSeed",
    category: "information",
    summary: "fixes the seed of random numbers",
    ports: "0/0",
    phase: phase::FIRST,
    doc: "Lets elements draw the same random numbers each time the configuration runs. Without SEED they are others each \
          time, as they are without a RandomSeed. A seed that the command line gives has the last word.",
    args: &[optional("SEED", "number", "the seed; default one that nobody knows")],
    handlers: &[writes(
        "seed",
        "the seed, or nothing for one that nobody knows; on the element's own worker",
    )],
    example: "RandomSeed(5); InfiniteSource(LIMIT 5, STOP true) -> RandomSample(0.5) -> Discard;",
    see: &["RandomSample", "RandomSwitch"],
    copies: Copies::Each,
    build,
    ..Spec::DEFAULT
};

struct RandomSeed;

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let seed: Option<u32> = conf.optional("SEED", None);
    conf.finish()?;
    if let Some(seed) = seed {
        conf.env.seed = seed.into();
    }
    Ok(Box::new(RandomSeed))
}

impl Element for RandomSeed {
    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let seed = match value.trim() {
            // The standard library asks the system.
            "" => RandomState::new().build_hasher().finish(),
            text => cx.value::<u32>(handler, text)?.into(),
        };
        cx.rng().seed(seed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Ports};
    use causeway_engine::{Counters, Env};

    #[test]
    fn the_seed_is_what_was_given() {
        let mut env = Env::new(Counters::new(1, 16, None).unwrap());
        let before = env.seed;
        for (config, seed) in [("", before), ("5", 5)] {
            let mut conf = Conf::new(&mut env, "i".into(), &SPEC, 0, (0, 0), config);
            assert!(build(&mut conf).is_ok());
            assert_eq!(env.seed, seed);
        }
        let mut h = Harness::with_ports(&SPEC, "5", &Ports::default()).unwrap();
        assert_eq!(
            (h.write("seed", "7"), h.write("seed", ""), h.write("seed", "x").is_err()),
            (Ok(()), Ok(()), true)
        );
    }
}
