//! Handlers that an element calls while it runs: those of others on its worker, the router's own, and its own.
//!
//! The element that calls waits for the answer, and in between it may be called itself. So it puts itself back into its
//! place for as long as the call lasts ([`Cx::read_outside`]), and goes on with the state that it finds there afterwards.

use crate::access::Access;
use crate::core::{Core, Outcome};
use crate::cx::Cx;
use crate::element::Element;
use crate::error::{Error, NoAnswer};
use crate::handler::{self, HandlerError};
use crate::measure::Across;
use crate::node::{Node, Place};
use crate::others;
use std::sync::Arc;

/// Status of a write handler that failed: EINVAL, as Click's have it.
const FAILED: i32 = -22;
/// How often a manager is asked in a row before it is taken to go round and round.
const MAX_STEPS: usize = 1_000;

/// A handler that was found by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    at: At,
    handler: String,
}

/// Whose a handler is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum At {
    /// The router's own.
    Router,
    /// That of the element of this node.
    Here(usize),
    /// That of the element with this name, which lives, perhaps also, on other workers.
    There(Arc<str>, Vec<Place>),
}

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What a read handler said; empty if it failed.
    pub value: String,
    /// The status of a write handler: 0, or what it says by [`Cx::set_status`].
    pub status: i32,
    /// Errors, a line each; a call may succeed in spite of some.
    pub errors: String,
}

impl Cx<'_> {
    /// The handler that `name` stands for: `element.handler`, with the element looked up from this one's compound outwards, a
    /// handler of this element, which is `me`, or one of the router's own; and what can be done with it, if there is one of
    /// that name. The error is Click's.
    ///
    /// # Errors
    /// If there is no such element.
    pub fn find_handler<E: Element + Default>(
        &mut self,
        me: &mut E,
        name: &str,
    ) -> Result<(Named, Option<Access>), Error> {
        let node = self.node;
        self.outside(me, |core| {
            let named = core.named(node, name)?;
            let access = match &named.at {
                At::Here(node) => handler::access(core, *node, &named.handler),
                At::Router => core.global_access(&named.handler),
                At::There(name, places) => {
                    let handler = named.handler.clone();
                    let ask = move |core: &mut Core, node: usize| handler::access(core, node, &handler);
                    core.at_places(name, &places[..1], ask)
                        .ok()
                        .and_then(|mut answers| answers.pop().flatten())
                }
            };
            Ok((named, access))
        })
    }

    /// The handler's name in messages.
    pub fn full_name(&self, named: &Named) -> String {
        match &named.at {
            At::Here(node) => format!("{}.{}", self.core.nodes[*node].name, named.handler),
            At::There(name, _) => format!("{name}.{}", named.handler),
            At::Router => named.handler.clone(),
        }
    }

    /// Reads a handler. `me` is the element that asks.
    pub fn read_outside<E: Element + Default>(&mut self, me: &mut E, named: &Named, arg: &str) -> Answer {
        let mut answer = Answer::default();
        let Named { at, handler } = named;
        let done = match at {
            At::Here(node) => self.outside(me, |core| handler::read(core, *node, handler, arg)),
            At::There(name, places) => self.outside(me, |core| {
                let (handler, arg) = (handler.clone(), arg.to_owned());
                let ask = move |core: &mut Core, node: usize| {
                    let across = handler::across(core, node, &handler);
                    handler::read(core, node, &handler, &arg).map(|value| (value, across))
                };
                let answers =
                    core.at_places(name, places, ask)?.into_iter().collect::<Result<Vec<_>, _>>()?;
                let across = answers.first().map_or(Across::First, |(_, across)| *across);
                Ok(across.combine(answers.into_iter().map(|(value, _)| value).collect()))
            }),
            At::Router => match &self.core.globals {
                Some(globals) => globals.read(handler, arg).map_err(HandlerError::Failed),
                None => Err(HandlerError::NoHandler(handler.clone())),
            },
        };
        answer.errors = std::mem::take(&mut self.core.outcome.mentioned);
        match done {
            Ok(value) => answer.value = value,
            Err(e) => answer.errors += &e.to_string(),
        }
        answer
    }

    /// Writes a handler. `me` is the element that asks.
    pub fn write_outside<E: Element + Default>(&mut self, me: &mut E, named: &Named, value: &str) -> Answer {
        let Named { at, handler } = named;
        self.core.outcome = Outcome::default();
        let done = match (at, handler.as_str()) {
            (At::Here(node), handler) => self.outside(me, |core| handler::write(core, *node, handler, value)),
            (At::There(name, places), _) => self.outside(me, |core| {
                let (handler, value) = (handler.clone(), value.to_owned());
                let tell = move |core: &mut Core, node: usize| {
                    core.outcome = Outcome::default();
                    let done = handler::write(core, node, &handler, &value);
                    (done, std::mem::take(&mut core.outcome))
                };
                for (done, outcome) in core.at_places(name, places, tell)? {
                    core.outcome = outcome;
                    done?;
                }
                Ok(())
            }),
            (At::Router, "stop") => {
                self.adjust_run_count(value.trim().parse().map_or(-1, |n: i32| n.saturating_neg()));
                Ok(())
            }
            (At::Router, handler) => match &self.core.globals {
                Some(globals) => globals.write(handler, value).map_err(HandlerError::Failed),
                None => Err(HandlerError::NoHandler(handler.to_owned())),
            },
        };
        let Outcome { status, mentioned: errors } = std::mem::take(&mut self.core.outcome);
        match done {
            Ok(()) => Answer { status, errors, ..Answer::default() },
            Err(e) => {
                let status = if status == 0 { FAILED } else { status };
                Answer { status, errors: errors + &e.to_string(), ..Answer::default() }
            }
        }
    }

    /// What the write handler that runs answers besides success or an error.
    pub fn set_status(&mut self, status: i32) {
        self.core.outcome.status = status;
    }

    /// Mentions errors, a line each, although the handler that runs succeeds.
    pub fn mention(&mut self, errors: &str) {
        self.core.outcome.mentioned += errors;
    }

    /// Does something with the element in its place.
    fn outside<E: Element + Default, R>(&mut self, me: &mut E, f: impl FnOnce(&mut Core) -> R) -> R {
        self.core.nodes[self.node].element = Some(Box::new(std::mem::take(me)));
        let result = self.core.aside(f);
        if let Some(mut element) = self.core.nodes[self.node].element.take()
            && let Some(own) = element.downcast_mut()
        {
            *me = std::mem::take(own);
        }
        result
    }
}

impl Core {
    /// The handler that the element at `asker` calls `name`.
    fn named(&self, asker: usize, name: &str) -> Result<Named, Error> {
        let at = |at, handler: &str| Ok(Named { at, handler: handler.to_owned() });
        let (element, handler) = match name.split_once('.') {
            Some(("", handler)) => return at(At::Router, handler),
            Some((_, "")) => return Err(Error::new("syntax error")),
            Some((element, handler)) => (Some(element), handler),
            None => (None, name),
        };
        let caller = &self.nodes[asker].name;
        if let Some(element) = element {
            let elsewhere = |place: &Place| place.worker != self.worker;
            if let Some((full, places)) = self.others.as_ref().and_then(|others| others.find(caller, element))
                && places.iter().any(elsewhere)
            {
                return at(At::There(full, places.to_vec()), handler);
            }
            if let Ok((node, _)) = self.find_from(caller, &format!("{element}.")) {
                return at(At::Here(node), handler);
            }
        }
        match element {
            _ if handler::access(self, asker, name).is_some() => at(At::Here(asker), name),
            None => at(At::Router, name),
            Some(_) if self.global_access(name).is_some() => at(At::Router, name),
            Some(element) => Err(Error::new(format!("no element named '{element}'"))),
        }
    }

    /// Asks the same of the element called `name` at each of its places.
    fn at_places<R: Send + 'static>(
        &mut self,
        name: &Arc<str>,
        places: &[Place],
        ask: impl Fn(&mut Core, usize) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, NoAnswer> {
        let mut answers = Vec::new();
        for &place in places {
            let (ask, name) = (ask.clone(), name.clone());
            let ask = move |core: &mut Core| ask(core, core.node_called(&name, place.node));
            answers.push(match &self.others {
                Some(others) if place.worker != self.worker => {
                    others::call(&others.clone(), place.worker, ask)?
                }
                _ => ask(self),
            });
        }
        Ok(answers)
    }

    /// The node called `name`, which is `likely` unless another graph has come or is about to; of none the answer is no node.
    fn node_called(&self, name: &str, likely: usize) -> usize {
        let is_it = |node: &Node| *node.name == *name;
        match self.nodes.get(likely).is_some_and(is_it) {
            true => likely,
            false => self.nodes.iter().position(is_it).unwrap_or(usize::MAX),
        }
    }

    fn global_access(&self, name: &str) -> Option<Access> {
        match name {
            "stop" => Some(Access::Write),
            _ => self.globals.as_ref()?.access(name),
        }
    }

    /// Changes the number of reasons to run on; it does not run over.
    pub fn adjust_run_count(&mut self, by: i32) {
        self.run_count = self.run_count.saturating_add(by);
    }

    /// The router was asked to stop: whether its manager lets it run on.
    #[cold]
    pub fn runs_on(&mut self) -> bool {
        let Some(node) = self.manager else { return false };
        for _ in 0..MAX_STEPS {
            self.outcome = Outcome::default();
            let done = handler::write(self, node, "step", "router");
            if done.is_err() || self.outcome.status != 0 || self.run_count > 0 {
                break;
            }
        }
        self.run_count > 0
    }
}
