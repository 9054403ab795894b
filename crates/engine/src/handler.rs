//! Handlers: the named values of elements that can be read and written while the router runs.

mod listed;
pub mod own;

pub use listed::is_raw_in_click;

use crate::access::Access;
use crate::conf::{Defaults, with_argument};
use crate::core::Core;
use crate::cx::Cx;
use crate::element::{Element, Pieces};
use crate::error::{Error, NoAnswer};
use crate::measure::{Across, Unit};
use crate::node::Node;
use crate::spec::{HandlerDoc, Spec, reads};
use std::fmt;

/// Why a handler could not be read or written. The texts follow Click's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerError {
    /// There is no such element.
    NoElement(String),
    /// The element has no such handler.
    NoHandler(String),
    /// The element that stands for all others has no such handler.
    NoProxied(String),
    /// The handler cannot be written.
    ReadOnly(String),
    /// The handler cannot be read.
    WriteOnly(String),
    /// The handler takes no parameters.
    NoParameters(String),
    /// Whoever asks may not write handlers.
    Denied(String),
    /// The element says why not.
    Failed(Error),
    /// A worker does not answer.
    NoAnswer(NoAnswer),
    /// The router has ended.
    Gone,
}

impl From<NoAnswer> for HandlerError {
    fn from(error: NoAnswer) -> Self {
        HandlerError::NoAnswer(error)
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandlerError::NoElement(n) => write!(f, "No element named '{n}'"),
            HandlerError::NoHandler(n) => write!(f, "No handler named '{n}'"),
            HandlerError::NoProxied(n) => write!(f, "No proxied handler named '{n}'"),
            HandlerError::ReadOnly(n) => write!(f, "Handler '{n}' read-only"),
            HandlerError::WriteOnly(n) => write!(f, "Handler '{n}' write-only"),
            HandlerError::NoParameters(n) => write!(f, "read handler '{n}' does not take parameters"),
            HandlerError::Denied(n) => write!(f, "Permission denied for '{n}'"),
            HandlerError::Failed(why) => why.fmt(f),
            HandlerError::NoAnswer(e) => e.fmt(f),
            HandlerError::Gone => f.write_str("the router has ended"),
        }
    }
}

impl std::error::Error for HandlerError {}

/// Handlers that every element has.
pub const COMMON: &[HandlerDoc] = &[
    reads("name", "the element's name"),
    reads("class", "the element's class"),
    reads("config", "the element's configuration"),
    reads("ports", "the element's ports and what they are connected to"),
    reads("handlers", "the element's handlers, one a line, with `r` and `w`"),
    reads("drop_reasons", "packets dropped, one reason a line").counts(Unit::Packets).by("reason"),
    reads("held", "packets that the element holds").measures(Unit::Packets),
];

/// The handler called `name` of an element of class `spec` that has so many of those with a number.
pub fn find(spec: &Spec, name: &str, numbered: usize) -> Option<&'static HandlerDoc> {
    spec.handlers.iter().find(|h| h.is(name, numbered)).or_else(|| COMMON.iter().find(|h| h.name == name))
}

/// Whether an element has the handler of that name, which its class declares.
fn has(core: &Core, n: &Node, handler: &str) -> bool {
    let pulls = n.ins.first().is_some_and(|input| input.from.is_some());
    let click = core.context.defaults == Defaults::Click;
    let lacks = |e: &dyn Element| e.lacks(handler);
    let only_pulling = || click && listed::is_of_pullers_in_click(n.spec.name, handler);
    !n.element.as_deref().is_some_and(lacks) && (pulls || !only_pulling())
}

/// The handler of that name that an element has by its class.
fn declared(core: &Core, n: &Node, handler: &str) -> Option<&'static HandlerDoc> {
    let of_class = n.spec.handlers.iter().find(|h| h.is(handler, n.numbered()));
    of_class.filter(|_| has(core, n, handler))
}

/// What can be done with `handler` of the element at `node`, if it has it: by its class, by itself, or as all elements.
pub(crate) fn access(core: &Core, node: usize, handler: &str) -> Option<Access> {
    let n = core.nodes.get(node)?;
    let common = || COMMON.iter().find(|h| h.name == handler);
    let known = declared(core, n, handler).or_else(common).map(|h| h.access);
    known.or_else(|| n.element.as_ref()?.own_handler(handler))
}

/// How the values of `handler` of copies of the element at `node` make one.
pub(crate) fn across(core: &Core, node: usize, handler: &str) -> Across {
    let declared = core.nodes.get(node).and_then(|n| find(n.spec, handler, n.numbered()));
    declared.map_or(Across::First, |h| h.across)
}

/// What came of asking a read handler.
pub(crate) enum Answer {
    Text(String),
    /// Its pieces are yet to be copied, by [`go_on`].
    Pieces(Box<dyn Pieces>),
}

/// Reads `handler` of the element at `node`, all at once.
pub(crate) fn read(core: &mut Core, node: usize, handler: &str, arg: &str) -> Result<String, HandlerError> {
    match ask(core, node, handler, arg)? {
        Answer::Text(text) => Ok(text),
        Answer::Pieces(mut pieces) => {
            while go_on(core, node, &mut *pieces) {}
            Ok(pieces.text())
        }
    }
}

/// Copies the next of the pieces that the element at `node` is read in; says whether there are more.
pub(crate) fn go_on(core: &mut Core, node: usize, pieces: &mut dyn Pieces) -> bool {
    core.activate(node, |e, cx| pieces.go_on(e, cx)).unwrap_or(false)
}

/// Asks `handler` of the element at `node`.
pub(crate) fn ask(core: &mut Core, node: usize, handler: &str, arg: &str) -> Result<Answer, HandlerError> {
    let n = core.nodes.get(node).ok_or(NoAnswer(core.worker))?;
    let full = || format!("{}.{handler}", n.name);
    let declared = declared(core, n, handler);
    let common = COMMON.iter().any(|h| h.name == handler);
    let own = || n.element.as_ref().filter(|_| !common).and_then(|e| e.own_handler(handler));
    if let Some(access) = declared.map(|h| h.access).or_else(own) {
        if !access.reads() {
            return Err(HandlerError::WriteOnly(full()));
        }
        if !arg.is_empty() && !access.takes_parameters() {
            return Err(HandlerError::NoParameters(full()));
        }
        if declared.is_some_and(|h| h.by_run_time) {
            return Ok(Answer::Text(own::read(core, node, handler)));
        }
        if let Some(pieces) = n.element.as_ref().and_then(|e| e.read_in_pieces(handler)) {
            return Ok(Answer::Pieces(pieces));
        }
        let value = core.activate(node, |e, cx| read_element(e, handler, arg, cx));
        let value = value.ok_or(NoAnswer(core.worker))?;
        core.deliver();
        return value.map(Answer::Text).map_err(HandlerError::Failed);
    }
    if !common {
        return Err(HandlerError::NoHandler(full()));
    }
    if !arg.is_empty() {
        return Err(HandlerError::NoParameters(full()));
    }
    Ok(Answer::Text(read_common(core, node, handler)))
}

fn read_element(e: &mut dyn Element, handler: &str, arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
    if let Some(value) = e.control_side(cx).and_then(|mut side| side.read(handler, arg)) {
        return value;
    }
    e.settings().and_then(|s| s.read(handler)).map_or_else(|| e.read(handler, arg, cx), Ok)
}

fn read_common(core: &Core, node: usize, handler: &str) -> String {
    let n = &core.nodes[node];
    match handler {
        "name" => n.name.to_string(),
        "class" => n.spec.name.to_owned(),
        "config" => n.shown_config().to_owned(),
        "ports" => ports(core, node),
        "handlers" => listed::text(core, node),
        "drop_reasons" => {
            let reasons = n.spec.drops.iter().zip(&n.drops).map(|(d, c)| format!("{} {}\n", d.name, c.get()));
            reasons.chain([format!("unconnected {}\n", n.unconnected.get())]).collect()
        }
        _ => n.element.as_ref().map_or(0, |e| e.held()).to_string(),
    }
}

/// The `ports` handler in Click's format: count, then a line a port with its kind and its peers.
fn ports(core: &Core, node: usize) -> String {
    let n = &core.nodes[node];
    let plural = |count: usize, what: &str| format!("{count} {what}{}\n", if count == 1 { "" } else { "s" });
    let agnostic = n.spec.processing.contains('a');
    let mark = if agnostic { "~" } else { "" };
    let mut text = plural(n.ins.len(), "input");
    for (i, input) in n.ins.iter().enumerate() {
        let kind = if input.from.is_some() { "pull" } else { "push" };
        let peers: Vec<String> = match input.from {
            Some((from, out)) => vec![format!("{} [{out}]", core.nodes[from].name)],
            None => pushers(core, node, i),
        };
        text += &format!("{kind}{mark}\t-\t{}\n", peers.join(", "));
    }
    let outs = &n.outs[..n.outs.len().saturating_sub(n.entries)];
    text += &plural(outs.len(), "output");
    for (o, out) in outs.iter().enumerate() {
        let kind = if out.to.is_some() { "push" } else { "pull" };
        let peers: Vec<String> = match out.to {
            Some((to, input)) => vec![format!("[{input}] {}", core.nodes[to].name)],
            None => pullers(core, node, o),
        };
        text += &format!("{kind}{mark}\t-\t{}\n", peers.join(", "));
    }
    text
}

fn pushers(core: &Core, node: usize, port: usize) -> Vec<String> {
    let all = core.nodes.iter().flat_map(|n| n.outs.iter().enumerate().map(move |(i, o)| (n, i, o)));
    let all = all.filter(|(n, i, _)| i + n.entries < n.outs.len());
    all.filter(|(_, _, o)| o.to == Some((node, port))).map(|(n, i, _)| format!("{} [{i}]", n.name)).collect()
}

fn pullers(core: &Core, node: usize, port: usize) -> Vec<String> {
    let all = core.nodes.iter().flat_map(|n| n.ins.iter().enumerate().map(move |(i, p)| (n, i, p)));
    all.filter(|(_, _, p)| p.from == Some((node, port)))
        .map(|(n, i, _)| format!("[{i}] {}", n.name))
        .collect()
}

/// Writes `value` to `handler` of the element at `node`.
pub(crate) fn write(core: &mut Core, node: usize, handler: &str, value: &str) -> Result<(), HandlerError> {
    // Of a writer that was an element.
    core.disposed.clear();
    let n = core.nodes.get(node).ok_or(NoAnswer(core.worker))?;
    let full = || format!("{}.{handler}", n.name);
    let declared = declared(core, n, handler);
    match declared.map(|h| h.access).or_else(|| access(core, node, handler)) {
        Some(access) if access.writes() => {}
        Some(_) => return Err(HandlerError::ReadOnly(full())),
        None => return Err(HandlerError::NoHandler(full())),
    }
    let done = match declared.is_some_and(|h| h.by_run_time) {
        true => own::write(core, node, handler, value),
        false => core.activate(node, |e, cx| write_element(e, handler, value, cx)),
    };
    let done = done.ok_or(NoAnswer(core.worker))?;
    core.deliver();
    done.map_err(HandlerError::Failed)?;
    core.written += 1;
    let n = &mut core.nodes[node];
    if let Some(argument) = declared.and_then(|h| h.argument(n.spec)) {
        let keeps = core.context.defaults == Defaults::Click && !listed::config_follows(n.spec.name, handler);
        n.reconfigured(with_argument(n.spec, &n.config, argument, value), keeps);
        crate::single::mark(core);
    }
    if core.nodes[node].element.as_ref().is_some_and(|e| e.reconfigures(handler)) {
        for fused in core.nodes[node].fused.clone() {
            core.fuse(fused);
        }
    }
    Ok(())
}

fn write_element(e: &mut dyn Element, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
    if let Some(done) = e.control_side(cx).and_then(|mut side| side.write(handler, value)) {
        return done;
    }
    match e.settings().and_then(|s| s.write(handler, value, &cx.scope())) {
        Some(done) => done.map(|()| e.settings_changed(cx)),
        None => e.write(handler, value, cx),
    }
}
