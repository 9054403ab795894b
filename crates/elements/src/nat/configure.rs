//! How rewriters are configured.

use super::flows::{Flows, Timeouts, UNLIMITED};
use super::input::{Reader, Registry};
use super::kind::Kind;
use super::rewriter::Rewriter;
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::{Nanoseconds, Raw, Value};
use causeway_lang::args::split_args;

/// Whole seconds.
#[derive(Clone, Copy)]
struct Seconds(u64);

impl Value for Seconds {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        Nanoseconds::parse(text, scope).map(|t| Seconds((t.0 + 500_000_000) / 1_000_000_000))
    }

    fn placeholder() -> Self {
        Seconds(0)
    }
}

/// The elements that the configuration of a rewriter names.
pub(super) fn companions(config: &str) -> Vec<String> {
    let args = split_args(config);
    let shared = args.iter().filter_map(|a| {
        let word = a.strip_prefix("MAPPING_CAPACITY ").or_else(|| a.strip_prefix("CAPACITY "))?.trim();
        (!word.starts_with(|c: char| c.is_ascii_digit())).then(|| word.to_owned())
    });
    shared.collect()
}

/// The `build` function of the rewriters of one kind.
pub(super) fn build(kind: Kind, conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let timeouts = timeouts(kind, conf);
    let dst_anno = !kind.has_dst_anno_option() || conf.keyword("DST_ANNO", true);
    let reply_anno = conf.keyword_given::<Anno>("REPLY_ANNO").map(|a| a.offset);
    let reap_time = conf.deprecated("REAP_TIME").unwrap_or(Seconds(15 * 60));
    let reap_interval_s = conf.keyword("REAP_INTERVAL", reap_time).0;
    let capacity = conf.keyword("CAPACITY", Raw::default());
    let capacity = conf.keyword("MAPPING_CAPACITY", capacity).0;
    let (flows, shares) = table(conf, &capacity);
    let registry = Registry::of(conf);
    let mut rewriter = Rewriter {
        kind,
        inputs: Vec::new(),
        registry,
        dst_anno,
        reply_anno,
        reap_interval_s,
        timeouts,
        flows,
        shares,
        home: None,
        member: 0,
    };
    if !conf.errors().is_empty() {
        return Err(Invalid);
    }
    let specifications = conf.rest();
    if specifications.len() != conf.n_inputs() {
        conf.error(format!("need {} arguments, one per input port", conf.n_inputs()));
        return Err(Invalid);
    }
    for (i, text) in specifications.iter().enumerate() {
        let reader = Reader {
            registry: &rewriter.registry,
            element: conf.name(),
            scope: conf.scope(),
            outputs: conf.n_outputs(),
        };
        match reader.action(text, |name| conf.element(name).is_some()) {
            Ok(action) => rewriter.inputs.push(action),
            Err(why) => conf.error(format!("input spec {i}: {why}")),
        }
    }
    conf.finish()?;
    Ok(Box::new(rewriter))
}

/// The table of that capacity, or the name of the rewriter that has it.
fn table(conf: &mut Conf<'_>, capacity: &str) -> (Option<Box<Flows>>, Option<String>) {
    if capacity.is_empty() {
        return (Some(Box::new(Flows::new(UNLIMITED))), None);
    }
    if let Ok(n) = i32::parse(capacity, &conf.scope()) {
        return (Some(Box::new(Flows::new(n))), None);
    }
    match conf.element(capacity) {
        Some((_, class)) if Kind::of_class(class).is_some() => {}
        _ => conf.error("bad MAPPING_CAPACITY"),
    }
    (None, Some(capacity.to_owned()))
}

/// The timeouts that the class's keywords say.
fn timeouts(kind: Kind, conf: &mut Conf<'_>) -> Timeouts {
    let mut of = |names: &[&str], default_s: u64| {
        names.iter().fold(Seconds(default_s), |default, name| conf.keyword(name, default)).0 * 1_000
    };
    let follows_tcp = matches!(kind, Kind::Ip | Kind::Tcp);
    let mut t = Timeouts {
        tcp_guarantee: 0,
        tcp_no_data: 0,
        tcp_data: 0,
        tcp_done: 0,
        guarantee: 0,
        idle: 0,
        streaming: 0,
    };
    if follows_tcp {
        t.tcp_guarantee = of(&["TCP_GUARANTEE", "GUARANTEE"], 5);
        t.tcp_no_data = of(&["TCP_NODATA_TIMEOUT"], 300);
        t.tcp_data = of(&["TIMEOUT", "TCP_TIMEOUT"], 86_400);
        t.tcp_done = of(&["TCP_DONE_TIMEOUT"], 240);
    }
    match kind {
        Kind::Tcp => {}
        Kind::Ip => {
            t.guarantee = of(&["UDP_GUARANTEE"], 5);
            t.idle = of(&["UDP_TIMEOUT"], 300);
            t.streaming = of(&["UDP_STREAMING_TIMEOUT"], t.idle / 1_000);
        }
        Kind::Udp => {
            t.guarantee = of(&["UDP_GUARANTEE", "GUARANTEE"], 5);
            t.idle = of(&["UDP_TIMEOUT", "TIMEOUT"], 300);
            t.streaming = of(&["UDP_STREAMING_TIMEOUT", "STREAMING_TIMEOUT"], t.idle / 1_000);
        }
        Kind::Addr | Kind::AddrPair | Kind::Ping => {
            t.guarantee = of(&["GUARANTEE"], 5);
            t.idle = of(&["TIMEOUT"], if kind == Kind::Ping { 300 } else { 7_200 });
            t.streaming = t.idle;
        }
    }
    t
}
