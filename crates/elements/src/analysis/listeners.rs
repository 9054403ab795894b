//! Aggregates that have ended, for those who want to know.

use super::aggregate_ip_addr_pair::AggregateIPAddrPair;
use super::aggregate_ip_flows::AggregateIPFlows;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_engine::{Peer, Scope};
use causeway_lang::args::split_args;

/// The classes that number aggregates and say when they end.
const NOTIFIERS: &[&str] = &["AggregateIPFlows", "AggregateIPAddrPair"];

/// What an element that numbers aggregates tells others.
#[derive(Default)]
pub(super) struct Ended {
    /// For each listener, what it has not been told yet.
    listeners: Vec<(Peer, Vec<u32>)>,
}

impl Ended {
    /// `aggregate` has ended.
    pub fn add(&mut self, aggregate: u32) {
        self.listeners.iter_mut().for_each(|(_, ended)| ended.push(aggregate));
    }

    /// Wakes those who have not been told something.
    pub fn wake(&self, cx: &mut Cx<'_>) {
        self.listeners
            .iter()
            .filter(|(_, ended)| !ended.is_empty())
            .for_each(|(peer, _)| cx.wake_peer(*peer));
    }
}

/// The name of an element that numbers aggregates; none if it is not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notifier(pub Option<String>);

impl Value for Notifier {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        Ok(Notifier(Some(text.trim().to_owned())))
    }

    fn placeholder() -> Self {
        Notifier(None)
    }
}

/// Reads NOTIFIER.
pub(crate) fn keyword_notifier(conf: &mut Conf<'_>) -> Notifier {
    let notifier = conf.keyword("NOTIFIER", Notifier(None));
    if let Some(name) = &notifier.0
        && !conf.env.elements.is_empty()
    {
        match conf.element(name) {
            None => conf.error("NOTIFIER: does not name an element"),
            Some((_, class)) if !NOTIFIERS.contains(&class) => {
                conf.error(format!("{name} is not an AggregateNotifier"));
            }
            Some(_) => {}
        }
    }
    notifier
}

/// The elements that a configuration with NOTIFIER names.
pub(crate) fn companions(config: &str) -> Vec<String> {
    let args = split_args(config);
    let named = args.iter().find_map(|a| a.strip_prefix("NOTIFIER "));
    named.map(|name| name.trim().to_owned()).into_iter().collect()
}

fn ended_of<'c>(cx: &'c mut Cx<'_>, peer: Peer) -> Option<&'c mut Ended> {
    match cx.peer_class(peer) {
        "AggregateIPFlows" => cx.peer::<AggregateIPFlows>(peer).map(|e| &mut e.ended),
        _ => cx.peer::<AggregateIPAddrPair>(peer).map(|e| &mut e.ended),
    }
}

/// A listener's place among those of a notifier.
#[derive(Clone, Copy)]
pub(crate) struct Subscription {
    notifier: Peer,
    place: usize,
}

impl Notifier {
    /// Listens, if there is somebody to listen to.
    pub fn subscribe(&self, cx: &mut Cx<'_>) -> Result<Option<Subscription>, Error> {
        let Some(name) = &self.0 else { return Ok(None) };
        let (notifier, own) = (cx.find_peer(name)?, cx.find_peer(&own_name(cx))?);
        let ended = ended_of(cx, notifier)
            .ok_or_else(|| Error::new(format!("{name} is not an AggregateNotifier")))?;
        ended.listeners.push((own, Vec::new()));
        Ok(Some(Subscription { notifier, place: ended.listeners.len() - 1 }))
    }
}

/// The last part of the element's own name, as it is seen from its compound.
fn own_name(cx: &Cx<'_>) -> String {
    cx.name().rsplit('/').next().unwrap_or_default().to_owned()
}

impl Subscription {
    /// The next aggregate that has ended.
    pub fn next(self, cx: &mut Cx<'_>) -> Option<u32> {
        let ended = &mut ended_of(cx, self.notifier)?.listeners.get_mut(self.place)?.1;
        (!ended.is_empty()).then(|| ended.remove(0))
    }
}
