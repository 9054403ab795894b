//! KernelTap.

use super::kernel_tun::{self, Reason};
use super::names;
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;

pub(crate) static SPEC: Spec = Spec {
    name: "KernelTap",
    category: "devices",
    summary: "exchanges Ethernet frames with the host by an interface that it makes",
    ports: "0-1/1-2",
    processing: "a/h",
    flow: "x/y",
    phase: phase::SOURCE_DEVICE,
    doc: "As KernelTun, with a TAP interface: what the host sends are Ethernet frames, ARP requests for its neighbours among them, \
          and so is what it gets. It takes frames to the interface's Ethernet address, which ETHER sets, and to groups.",
    args: kernel_tun::ARGS,
    handlers: handlers!(kernel_tun::HANDLERS, TASK),
    drops: Reason::DOCS,
    example: "tap :: KernelTap(10.9.0.1/24, DEVNAME tap9) -> c :: Classifier(12/0806, -); c[0] -> ARPResponder(0.0.0.0/0 1:1:1:1:1:1) -> tap; \
              c[1] -> Discard;",
    see: &["KernelTun", "FromHost", "ToHost", "ARPResponder"],
    copies: Copies::AsMany(names::any_number),
    build: |conf| kernel_tun::build(conf, true),
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
