//! ScheduleInfo.

use super::Settled;
use causeway_engine::Defaults;
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_engine::value::Value;

pub(crate) static SPEC: Spec = Spec {
    name: "ScheduleInfo",
    category: "information",
    summary: "sets how often tasks of elements run",
    ports: "0/0",
    phase: phase::INFO,
    doc: "Each argument is the name of an element and a weight. A task runs as often as its element's weight \
          says, relative to the others; without ScheduleInfo all weights are 1. The weight of a compound element \
          multiplies those of the elements in it.",
    args: &[rest("ELEMENT WEIGHT", "element name and number", "an element and its weight, above zero")],
    example: "ScheduleInfo(fast 3, slow .5);\n\
              fast :: InfiniteSource(LIMIT 9, STOP true) -> Discard; slow :: InfiniteSource(LIMIT 9) -> Discard;",
    see: &["StaticThreadSched"],
    build,
    ..Spec::DEFAULT
};

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    for (name, value) in super::pairs(conf) {
        let weight = f64::parse(&value, &conf.scope()).ok().filter(|&weight| weight > 0.0);
        let Some(weight) = weight else {
            conf.error("expected 'ELEMENTNAME PARAM'");
            continue;
        };
        match super::covered(conf, &name) {
            // A replica of the graph on each worker configures this element again; once is enough.
            Some((_, elements)) if conf.worker() == 0 => {
                for element in elements {
                    *conf.env.weights.entry(element.to_string()).or_insert(1.0) *= weight;
                }
            }
            // Click says nothing of it.
            None if conf.env.defaults != Defaults::Click => conf.warn(&format!("no element named '{name}'")),
            _ => {}
        }
    }
    conf.finish()?;
    Ok(Box::new(Settled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::{Counters, Env};

    fn configured(config: &str) -> Result<Env, Vec<String>> {
        let mut env = Env::new(Counters::new(1, 16, None).unwrap());
        env.elements = ["i", "a", "c/a", "c/b", "ca"].map(Into::into).to_vec();
        let mut conf = Conf::new(&mut env, "i".into(), &SPEC, 0, (0, 0), config);
        match build(&mut conf) {
            Ok(_) => Ok(env),
            Err(_) => Err(conf.errors().to_vec()),
        }
    }

    #[test]
    fn weights_multiply_along_compounds() {
        let env = configured("a 2, c .5, c/b 3, x 1").unwrap();
        let weight = |name: &str| env.weights.get(name).copied();
        assert_eq!(
            (weight("a"), weight("c/a"), weight("c/b"), weight("ca")),
            (Some(2.0), Some(0.5), Some(1.5), None)
        );
        let warnings: Vec<String> = env.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, ["warning: i :: ScheduleInfo: no element named 'x'"]);
    }

    #[test]
    fn bad_weights_are_named() {
        let got = configured("a 0, c fast, b").err().unwrap();
        assert_eq!(got, ["expected 'ELEMENTNAME PARAM'"; 3]);
    }
}
