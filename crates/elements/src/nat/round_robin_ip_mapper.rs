//! RoundRobinIPMapper.

use super::flow_id::FlowId;
use super::input::{Mapper, Reader, Registry, Rewrite};
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_lang::args::split_words;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) static SPEC: Spec = Spec {
    name: "RoundRobinIPMapper",
    category: "nat",
    summary: "lets rewriters use patterns in turn",
    ports: "0/0",
    phase: phase::DEFAULT - 1,
    doc: "Named as an input's specification of a rewriter, it gives each new flow the next of its patterns, or if that has \
          nothing free the first after it that has: a load balancer, for example.",
    args: &[rest(
        "PATTERN",
        "pattern and outputs",
        "a pattern or its name, FOUTPUT and ROUTPUT, as in IPRewriter",
    )],
    example: "m :: RoundRobinIPMapper(- - 10.0.0.2 - 0 1, - - 10.0.0.3 - 0 1); \
              Idle -> rw :: IPRewriter(m, pass 1); Idle -> [1]rw; rw[0] -> Discard; rw[1] -> Discard;",
    see: &["IPRewriter", "SourceIPHashMapper", "IPRewriterPatterns"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

struct InTurn {
    rewrites: Vec<Rewrite>,
    next: AtomicUsize,
    declaration: String,
}

impl Mapper for InTurn {
    fn rewrites(&self) -> &[Rewrite] {
        &self.rewrites
    }

    fn choose(&self, _: FlowId) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) % self.rewrites.len().max(1)
    }

    fn tries(&self) -> usize {
        self.rewrites.len()
    }

    fn declaration(&self) -> &str {
        &self.declaration
    }
}

struct RoundRobinIPMapper;

impl Element for RoundRobinIPMapper {}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let registry = Registry::of(conf);
    let element = conf.name().clone();
    let texts = conf.rest();
    match texts.len() {
        0 => conf.error("no patterns given"),
        1 => conf.warn("only one pattern given"),
        _ => {}
    }
    let mut rewrites = Vec::new();
    for text in texts {
        let reader =
            Reader { registry: &registry, element: &element, scope: conf.scope(), outputs: usize::MAX };
        match reader.rewrite(&split_words(&text), false) {
            Ok(rewrite) => rewrites.push(rewrite),
            Err(why) => conf.error(why),
        }
    }
    conf.finish()?;
    let declaration = format!("{element} :: {}", SPEC.name);
    registry.add_mapper(&element, InTurn { rewrites, next: AtomicUsize::new(0), declaration });
    Ok(Box::new(RoundRobinIPMapper))
}
