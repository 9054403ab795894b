//! IPRewriterPatterns.

use super::input::Registry;
use super::pattern::Pattern;
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_lang::args::split_words;

pub(crate) static SPEC: Spec = Spec {
    name: "IPRewriterPatterns",
    category: "nat",
    summary: "gives patterns of rewriters names",
    ports: "0/0",
    phase: phase::INFO,
    doc: "Rewriters and mappers of its compound, and of those inside it, may use the names in the place of the patterns. Those \
          that use one name choose ports and addresses of one sequence.",
    args: &[rest("PATTERN", "name and pattern", "a name, and the two or four words of a pattern")],
    example: "IPRewriterPatterns(nat 1.0.0.1 1024-65535# - -); \
              Idle -> rw :: IPRewriter(pattern nat 0 1, drop); Idle -> [1]rw; rw[0] -> Discard; rw[1] -> Discard;",
    see: &["IPRewriter"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

struct IPRewriterPatterns;

impl Element for IPRewriterPatterns {}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let registry = Registry::of(conf);
    let element = conf.name().clone();
    for text in conf.rest() {
        let words = split_words(&text);
        let Some((name, pattern)) = words.split_first() else { continue };
        if registry.pattern(&element, name).is_some() {
            conf.error(format!("pattern '{name}' already defined"));
            continue;
        }
        let parsed = match pattern {
            // A name may stand for another.
            [other] if registry.pattern(&element, other).is_none() => {
                Err(Error::new(format!("no such pattern '{other}'")))
            }
            words => Pattern::parse(words, &conf.scope()),
        };
        match parsed {
            Ok(pattern) => drop(registry.name_pattern(&element, name, pattern)),
            Err(why) => conf.error(why),
        }
    }
    conf.finish()?;
    Ok(Box::new(IPRewriterPatterns))
}
