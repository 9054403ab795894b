//! IPNameInfo.

use super::Settled;
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;

pub(crate) static SPEC: Spec = Spec {
    name: "IPNameInfo",
    category: "information",
    summary: "stands for the names of protocols, ports and ICMP types that all know",
    ports: "0/0",
    phase: phase::FIRST,
    doc: "In Click the element that brings the names of IP protocols, services and ICMP types. Here they are always there, so \
          it does nothing; it is for configurations that have one. Further names of ports are PortInfo's.",
    example: "IPNameInfo; InfiniteSource(LIMIT 1, STOP true) -> Discard;",
    see: &["PortInfo", "AddressInfo"],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Settled))
    },
    ..Spec::DEFAULT
};
