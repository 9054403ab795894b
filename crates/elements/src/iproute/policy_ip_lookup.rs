//! PolicyIPLookup and PolicyIP6Lookup.

use super::error::RouteError;
use super::family::Family;
use super::hops::{self, Hop, Hops};
use super::lookup::{ADD, CTRL, Reason, SET, send};
use super::routes::{self, Route, Routes, Tables, address, configured};
use super::rules::{self, MAIN};
use causeway_engine::ControlSide;
use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc};
use causeway_fib::policy::{PolicyKey, PolicyReader, Rule, SharedPolicy};
use causeway_fib::{AdjacencyReader, Compact16, Domain, FibError, Lines6, MISS, Participant, Shared};
use causeway_packet::BATCH;
use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) static SPEC: Spec = Spec {
    name: "PolicyIPLookup",
    category: "iproute",
    summary: "looks up IPv4 routes in the tables that rules choose",
    ports: "1/-",
    processing: "h/h",
    doc: "Policy routing as Linux has it (the RPDB of Bolla and Bruschi, *The IP Lookup Mechanism in a Linux Software \
          Router*): up to 255 tables, and rules in ascending order of their priorities, of equal ones the first \
          given first. A rule selects packets by what it names of: the source prefix (`from`), the type of service \
          (`tos`), the mark and the bits of it that count (`mark`), the incoming interface (`iif`). It sends them \
          to a table, or ends the search: no route. If the table has no route for the destination annotation, the \
          next rule is asked. The rule `32766 table 254` is there from the beginning, and routes without a table \
          belong to table 254. Source and type of service are those of the network header; mark and incoming \
          interface are annotations: the standard router paints packets by input. Thousands of rules cost about as \
          much as one more lookup; they can name 8 different masks.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 10.1.2.3, 53) -> CheckIPHeader -> Paint(2) -> rt :: PolicyIPLookup(rule 100 from 1.0.0.0/8 iif 2 table 7, table 7 10.0.0.0/8 192.168.0.1 0, 0.0.0.0/0 1);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["IPLookup", "CachedIPLookup", "PolicyIP6Lookup", "Paint"],
    build: build::<u32, Compact16>,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

pub(crate) static SPEC6: Spec = Spec {
    name: "PolicyIP6Lookup",
    summary: "looks up IPv6 routes in the tables that rules choose",
    doc: "PolicyIPLookup for IPv6, with the traffic class as type of service.",
    example: "InfiniteSource(LIMIT 5, STOP true) -> rt :: PolicyIP6Lookup(rule 1 from 2001:db8::/32 unreachable, table 7 ::/0 1, ::/0 0);\n rt[0] -> Discard; rt[1] -> Discard;",
    see: &["LookupIP6Route", "PolicyIPLookup", "CachedIP6Lookup"],
    build: build::<u128, Lines6>,
    ..SPEC
};

const ARGS: &[ArgDoc] = &[
    rest(
        "[table N] ADDR/MASK [GATEWAY] OUT",
        "route",
        "a route of table N, 1 to 255, default 254: packets to that prefix leave by output OUT, with the destination \
         annotation set to GATEWAY if there is one",
    ),
    rest(
        "rule PRIORITY [from ADDR/MASK] [tos N] [mark N[/MASK]] [iif N] ACTION",
        "rule",
        "what ACTION, `table N` or `unreachable`, is for",
    ),
    keyword("MARK", "annotation", "the mark: a named annotation, or a byte by its offset; default AGGREGATE"),
    keyword("INTERFACE", "annotation", "the incoming interface, likewise; default PAINT"),
];

const HANDLERS: &[HandlerDoc] = &[
    reads_with(
        "table",
        "the routes of the table with that number: prefix, gateway or -, output; default 254",
    ),
    reads("tables", "the numbers of the tables that routes were given to"),
    reads_with(
        "lookup",
        "output and gateway for `ADDRESS [from ADDRESS] [tos N] [mark N] [iif N]`; -1 if there is no route",
    ),
    ADD,
    SET,
    writes(
        "remove",
        "removes the route `[table N] ADDR/MASK`; that there is none is an error for IPv4 alone",
    ),
    CTRL,
    writes("flush", "removes all routes of the table with that number; default 254"),
    reads("rules", "the rules in their order, a line each"),
    writes("add_rule", "adds the rule `PRIORITY ... ACTION`, behind others of its priority"),
    writes("remove_rule", "removes the first rule of a priority"),
    writes("set_rules", "puts these rules, a line each, in the place of all: all or none"),
];

/// The control side, which the copies of a replicated graph share.
struct Control<A: Family, S: Shared<A>> {
    policy: SharedPolicy<A, S>,
    hops: Hops<A>,
    /// Of all tables and the hops.
    domain: Domain,
}

struct PolicyLookup<A: Family, S: Shared<A>> {
    control: Arc<Mutex<Control<A, S>>>,
    reader: PolicyReader<A, S>,
    hops: AdjacencyReader<Hop<A>>,
    /// Announces a reader of both.
    participant: Participant,
    mark: Anno,
    interface: Anno,
}

/// Shows and changes rules and tables while packets are looked up in them.
struct PolicyControl<A: Family, S: Shared<A>> {
    control: Arc<Mutex<Control<A, S>>>,
    outputs: usize,
}

impl<A: Family, S: Shared<A> + Send + Sync + 'static> ControlSide for PolicyControl<A, S> {
    fn read(&mut self, handler: &str, arg: &str) -> Option<Result<String, Error>> {
        let known = HANDLERS.iter().any(|h| h.name == handler);
        known.then(|| lock(&self.control).read(handler, arg.trim()).map_err(Error::caused_by))
    }

    fn write(&mut self, handler: &str, value: &str) -> Option<Result<(), Error>> {
        let known = HANDLERS.iter().any(|h| h.name == handler);
        known
            .then(|| lock(&self.control).write(handler, value.trim(), self.outputs).map_err(Error::caused_by))
    }
}

/// The configuration's rules, and its routes by table.
struct Configured<A: Family> {
    rules: Vec<Rule<A>>,
    routes: BTreeMap<NonZeroU8, Vec<Route<A>>>,
}

fn build<A: Family, S: Shared<A> + Send + Sync + 'static>(
    conf: &mut Conf<'_>,
) -> Result<Box<dyn Element>, Invalid> {
    let mark = conf.keyword("MARK", Anno::AGGREGATE);
    let interface = conf.keyword("INTERFACE", Anno::PAINT);
    let configured = read::<A>(conf);
    conf.finish()?;
    let control = Control::<A, S>::load(&configured).map_err(|e| {
        conf.error(e.to_string());
        Invalid
    })?;
    let key = format!("routes of {}", conf.name());
    let control = conf.env.shared(&key, || Mutex::new(control)).ok_or(Invalid)?;
    let (reader, hops, participant) = {
        let control = lock(&control);
        (control.policy.reader(), control.hops.reader(), control.domain.participant())
    };
    Ok(Box::new(PolicyLookup { control, reader, hops, participant, mark, interface }))
}

fn read<A: Family>(conf: &mut Conf<'_>) -> Configured<A> {
    let mut all = Configured { rules: vec![rules::last()], routes: BTreeMap::new() };
    for text in conf.rest() {
        if let Some(text) = after("rule", &text) {
            let rule = rules::rule(text, |prefix| {
                let (prefix, host_bits) =
                    A::prefix(conf, prefix).ok_or_else(|| RouteError::Value("not a prefix".into()))?;
                if host_bits {
                    conf.warn(&format!("rule '{text}': bits beyond the prefix length are ignored"));
                }
                Ok(prefix)
            });
            match rule {
                Ok(rule) => all.rules.push(rule),
                Err(why) => conf.error(why.to_string()),
            }
            continue;
        }
        match pick(&text) {
            Ok((number, text)) => match configured(conf, text) {
                None => conf.error(format!("bad route '{text}': should be 'ADDR/MASK [GATEWAY] OUTPUT'")),
                Some(Route { hop, .. }) if usize::from(hop.port) >= conf.n_outputs() => {
                    let route = text.to_owned();
                    conf.error(RouteError::NotConnected { route, output: hop.port }.to_string());
                }
                Some(route) => all.routes.entry(number).or_default().push(route),
            },
            Err(why) => conf.error(why.to_string()),
        }
    }
    all
}

/// What follows `word` at the beginning of a text.
fn after<'t>(word: &str, text: &'t str) -> Option<&'t str> {
    let rest = text.strip_prefix(word)?;
    rest.starts_with(|c: char| c.is_ascii_whitespace()).then(|| rest.trim_start())
}

/// The number behind `table` at the beginning of a text, or [`MAIN`], and the rest.
fn pick(text: &str) -> Result<(NonZeroU8, &str), RouteError> {
    match after("table", text) {
        Some(rest) => {
            let (number, rest) = rest.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((rest, ""));
            Ok((rules::number(number)?, rest.trim_start()))
        }
        None => Ok((MAIN, text)),
    }
}

#[expect(clippy::disallowed_methods, reason = "the control side; workers have readers")]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<A: Family, S: Shared<A>> Tables<A, S> for Control<A, S> {
    type Number = NonZeroU8;

    fn pick<'t>(&self, text: &'t str) -> Result<(NonZeroU8, &'t str), RouteError> {
        pick(text)
    }

    fn routes(&mut self, number: NonZeroU8) -> Result<Routes<'_, A, S>, RouteError> {
        let fib = self.policy.table(number)?;
        Ok(Routes { fib, hops: &mut self.hops, order: None })
    }
}

impl<A: Family, S: Shared<A>> Control<A, S> {
    fn load(configured: &Configured<A>) -> Result<Self, RouteError> {
        let domain = Domain::new();
        let policy = SharedPolicy::in_domain(&domain)?;
        let mut control = Control { policy, hops: Hops::in_domain(&domain), domain };
        control.set_rules(&configured.rules)?;
        for (&number, routes) in &configured.routes {
            control.routes(number)?.load(routes)?;
        }
        Ok(control)
    }

    fn read(&mut self, handler: &str, argument: &str) -> Result<String, RouteError> {
        match handler {
            "rules" => Ok(self.policy.rules().iter().map(|rule| rules::text(rule) + "\n").collect()),
            "table" => Ok(self.routes(named(argument)?)?.table()),
            "tables" => Ok(self.policy.tables().map(|number| format!("{number}\n")).collect()),
            _ => Ok(hops::text(&self.hops, self.policy.lookup(&rules::key(argument, address)?))),
        }
    }

    fn write(&mut self, handler: &str, value: &str, outputs: usize) -> Result<(), RouteError> {
        match handler {
            "add_rule" => self.add_rule(value),
            "remove_rule" => self.remove_rule(value),
            "set_rules" => self.replace_rules(value),
            "flush" => self.routes(named(value)?)?.flush(),
            "ctrl" => routes::control(self, value, outputs),
            verb => routes::change(self, verb, value, outputs),
        }
    }

    fn set_rules(&mut self, rules: &[Rule<A>]) -> Result<(), RouteError> {
        self.policy.set_rules(rules).map_err(|e| match e {
            FibError::Full => RouteError::TooManyMasks,
            FibError::AdjacencyRange { .. } => RouteError::TooManySources,
            other => RouteError::Table(other),
        })
    }

    fn add_rule(&mut self, text: &str) -> Result<(), RouteError> {
        let mut rules = self.policy.rules().to_vec();
        rules.push(rules::rule(text, A::prefix_of)?);
        self.set_rules(&rules)
    }

    fn remove_rule(&mut self, text: &str) -> Result<(), RouteError> {
        let mut rules = self.policy.rules().to_vec();
        let at = rules.iter().position(|rule| rule.priority.to_string() == text);
        rules.remove(at.ok_or(RouteError::NoRule { priority: text.to_owned() })?);
        self.set_rules(&rules)
    }

    fn replace_rules(&mut self, text: &str) -> Result<(), RouteError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let rules: Result<Vec<_>, RouteError> = lines.map(|line| rules::rule(line, A::prefix_of)).collect();
        self.set_rules(&rules?)
    }
}

/// The table that a handler's argument names.
fn named(argument: &str) -> Result<NonZeroU8, RouteError> {
    if argument.is_empty() { Ok(MAIN) } else { rules::number(argument) }
}

/// The value of an annotation; one without a width is a byte.
#[inline]
fn value(packet: &Packet, anno: Anno) -> u32 {
    match anno.width {
        4.. => packet.anno_u32(anno.offset),
        2.. => u16::from_be_bytes(packet.anno_bytes(anno.offset)).into(),
        _ => packet.anno_u8(anno.offset).into(),
    }
}

impl<A: Family, S: Shared<A> + Send + Sync + 'static> Element for PolicyLookup<A, S> {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let n = batch.len();
        let mut keys = [PolicyKey::default(); BATCH];
        let mut found = [MISS; BATCH];
        for (key, packet) in keys.iter_mut().zip(batch.iter()) {
            let flow = A::flow(packet);
            *key = PolicyKey {
                source: flow.source,
                destination: flow.destination,
                tos: flow.tos,
                mark: value(packet, self.mark),
                interface: value(packet, self.interface),
            };
        }
        let round = self.participant.pin();
        self.reader.lookup_batch_under(&round, &keys[..n], &mut found[..n]);
        send(&self.hops.under(&round), batch, &found[..n], cx);
    }

    fn control_side(&self, cx: &mut Cx<'_>) -> Option<Box<dyn ControlSide>> {
        Some(Box::new(PolicyControl { control: self.control.clone(), outputs: cx.n_outputs() }))
    }
}
