//! StaticThreadSched.

use super::Settled;
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_engine::value::Value;

pub(crate) static SPEC: Spec = Spec {
    name: "StaticThreadSched",
    category: "information",
    summary: "says which worker elements live on",
    ports: "0/0",
    phase: phase::INFO,
    doc: "Each argument is the name of an element, or of a compound element, and the number of the worker that it \
          is to live on; elements that nobody names live with those that give them packets. A packet that goes to \
          another worker crosses by a ring. A number beyond the workers there are means worker 0; with -1 the \
          element's task and timers never run.",
    args: &[rest("ELEMENT WORKER", "element name and worker number", "an element and its worker")],
    example: "StaticThreadSched(out 1);\n\
              InfiniteSource(LIMIT 100, STOP true) -> Queue -> out :: Unqueue -> Discard;",
    see: &["ScheduleInfo"],
    build,
    ..Spec::DEFAULT
};

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    for (name, value) in super::pairs(conf) {
        let worker = match value.as_str() {
            "" => Err(Error::new("required argument missing")),
            text => i32::parse(text, &conf.scope()),
        };
        let worker = match worker {
            Ok(worker) => worker,
            Err(why) => {
                conf.bad_argument("THREAD", &why.to_string());
                continue;
            }
        };
        match super::covered(conf, &name) {
            Some((full, _)) => conf.env.threads.push((full, usize::try_from(worker).ok())),
            None => conf.warn(&format!("no element named '{name}'")),
        }
    }
    conf.finish()?;
    Ok(Box::new(Settled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::{Counters, Env};

    #[test]
    fn names_are_those_of_elements_and_compounds() {
        let mut env = Env::new(Counters::new(1, 16, None).unwrap());
        env.elements = ["a", "c/i", "c/a", "c/d/x"].map(Into::into).to_vec();
        let mut conf = Conf::new(&mut env, "c/i".into(), &SPEC, 0, (0, 0), "a 1, d 2, c 3, x 1, c/a -1");
        build(&mut conf).unwrap();
        let pinned = |name: &str, worker| (name.to_owned(), worker);
        let expected =
            [pinned("c/a", Some(1)), pinned("c/d", Some(2)), pinned("c", Some(3)), pinned("c/a", None)];
        assert_eq!(env.threads, expected);
        let warnings: Vec<String> = env.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, ["warning: c/i :: StaticThreadSched: no element named 'x'"]);
        let mut conf = Conf::new(&mut env, "c/i".into(), &SPEC, 0, (0, 0), "a one");
        assert!(build(&mut conf).is_err());
        assert_eq!(conf.errors(), ["THREAD: invalid number"]);
    }
}
