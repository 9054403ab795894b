//! AlignmentInfo.

use super::Settled;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "AlignmentInfo",
    aliases: &["AnnotationInfo", "ClickyInfo", "DevirtualizeInfo", "FlowInfo", "IPFieldInfo"],
    category: "information",
    summary: "is accepted for compatibility",
    ports: "0/0",
    doc: "Tells elements how their packets are aligned, in configurations written for processors to which that matters. \
          Nothing here asks. Its other names are those of Click's that tell its tools something, its compiler, or \
          what is known without them.",
    args: &[rest("ELEMENT MODULUS OFFSET", "element name and numbers", "accepted for compatibility")],
    example: "AlignmentInfo(d 4 0); InfiniteSource(LIMIT 5, STOP true) -> d :: Discard;",
    see: &["Align"],
    build: |conf| {
        conf.rest();
        conf.finish()?;
        Ok(Box::new(Settled))
    },
    ..Spec::DEFAULT
};
