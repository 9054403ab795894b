//! SimplePullSwitch.

use super::pull_switch::{ARGS, HANDLERS, build};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "SimplePullSwitch",
    category: "scheduling",
    summary: "pulls from one input that can be set, without notifying",
    ports: "-/1",
    processing: "l/l",
    doc: "Answers pulls with packets of input INPUT, and with none while INPUT is negative. Unlike those of PullSwitch, \
          pullers sleep only while the notifiers of all inputs say that there is nothing.",
    args: ARGS,
    handlers: HANDLERS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> Queue -> [0] p :: SimplePullSwitch -> Discard; Idle -> [1] p;",
    see: &["PullSwitch", "StaticPullSwitch", "Switch"],
    build,
    ..Spec::DEFAULT
};
