//! Input specifications: what a rewriter does with packets of flows that it does not know.

use super::flow_id::FlowId;
use super::pattern::Pattern;
use causeway_engine::value::Value;
use causeway_engine::{Conf, Error, Scope};
use causeway_lang::args::split_words;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A pattern, and the outputs of flows that are made by it.
#[derive(Clone, Debug)]
pub(super) struct Rewrite {
    pub pattern: Arc<Pattern>,
    /// Where packets leave, and where replies do.
    pub outputs: [u16; 2],
}

/// Chooses among patterns for each new flow.
pub(crate) trait Mapper: Send + Sync {
    /// The patterns.
    fn rewrites(&self) -> &[Rewrite];
    /// Which of them is to be tried next for `flow`.
    fn choose(&self, flow: FlowId) -> usize;
    /// How many of them are tried until one works.
    fn tries(&self) -> usize;
    /// `name :: Class` of the element.
    fn declaration(&self) -> &str;
}

/// What becomes of a new flow.
#[derive(Clone)]
pub(super) enum Action {
    Drop,
    /// Its packets leave as they are by this output, and nothing is remembered.
    Pass(u16),
    /// It is remembered and not changed.
    Keep([u16; 2]),
    Pattern(Rewrite),
    Mapper(Arc<dyn Mapper>),
}

/// As the handlers `patterns` and `pattern#` show it.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Drop => f.write_str("<drop>"),
            Action::Pass(_) => f.write_str("<nochange>"),
            Action::Keep(_) => f.write_str("<keep>"),
            Action::Pattern(rewrite) => rewrite.pattern.fmt(f),
            Action::Mapper(_) => f.write_str("<mapper>"),
        }
    }
}

/// Patterns with names, and mappers, of a router.
#[derive(Default)]
pub(super) struct Registry {
    /// By compound and name.
    patterns: Mutex<Vec<(String, String, Arc<Pattern>)>>,
    /// By the element's full name.
    mappers: Mutex<Vec<(String, Arc<dyn Mapper>)>>,
}

/// The compounds around `element`, from the inside out.
fn compounds(element: &str) -> impl Iterator<Item = &str> {
    let mut scope = Some(element);
    std::iter::from_fn(move || {
        let outer = scope.filter(|s| !s.is_empty())?;
        let outer = outer.rfind('/').map_or("", |i| &outer[..i]);
        scope = Some(outer);
        scope
    })
}

impl Registry {
    /// The router's.
    pub fn of(conf: &mut Conf<'_>) -> Arc<Registry> {
        conf.env.shared("ip rewriters", Registry::default).unwrap_or_default()
    }

    /// Names a pattern, for elements in the compound of `element`. False if the name is taken.
    #[expect(clippy::disallowed_methods, reason = "taken when a graph is built")]
    pub fn name_pattern(&self, element: &str, name: &str, pattern: Pattern) -> bool {
        if self.pattern(element, name).is_some() {
            return false;
        }
        let compound = compounds(element).next().unwrap_or("").to_owned();
        let mut patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        patterns.push((compound, name.to_owned(), Arc::new(pattern)));
        true
    }

    /// The pattern that `element` calls `name`.
    #[expect(clippy::disallowed_methods, reason = "taken when a graph is built or a handler written")]
    pub fn pattern(&self, element: &str, name: &str) -> Option<Arc<Pattern>> {
        let patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        compounds(element)
            .find_map(|c| patterns.iter().find(|p| p.0 == c && p.1 == name))
            .map(|(_, _, pattern)| pattern.clone())
    }

    /// Makes the mapper of `element` known; of copies on several workers the first counts, so that they share it.
    #[expect(clippy::disallowed_methods, reason = "taken when a graph is built")]
    pub fn add_mapper(&self, element: &str, mapper: impl Mapper + 'static) {
        let mut mappers = self.mappers.lock().unwrap_or_else(PoisonError::into_inner);
        if mappers.iter().all(|(name, _)| name != element) {
            mappers.push((element.to_owned(), Arc::new(mapper)));
        }
    }

    #[expect(clippy::disallowed_methods, reason = "taken when a graph is built or a handler written")]
    fn mapper(&self, element: &str, name: &str) -> Option<Arc<dyn Mapper>> {
        let mappers = self.mappers.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |c: &str| if c.is_empty() { name.to_owned() } else { format!("{c}/{name}") };
        compounds(element).find_map(|c| mappers.iter().find(|m| m.0 == full(c)).map(|m| m.1.clone()))
    }
}

/// Who reads a specification.
pub(super) struct Reader<'a> {
    pub registry: &'a Registry,
    pub element: &'a str,
    pub scope: Scope<'a>,
    pub outputs: usize,
}

impl Reader<'_> {
    /// What `text`, the specification of an input, says. `is_element` tells whether a word names an element.
    pub fn action(&self, text: &str, is_element: impl Fn(&str) -> bool) -> Result<Action, Error> {
        let words = split_words(text);
        let Some((word, rest)) = words.split_first() else { return Err(Error::new("empty argument")) };
        match word.as_str() {
            "pass" | "passthrough" | "nochange" => {
                let output = match rest {
                    [] => 0,
                    [n] => i32::parse(n, &self.scope)
                        .map_err(|_| Error::new("syntax error, expected 'nochange [OUTPUT]'"))?,
                    _ => return Err(Error::new("syntax error, expected 'nochange [OUTPUT]'")),
                };
                self.output(output).map(Action::Pass)
            }
            "keep" => Ok(Action::Keep(self.outputs(rest)?)),
            "drop" | "discard" if rest.is_empty() => Ok(Action::Drop),
            "drop" | "discard" => Err(Error::new(format!("syntax error, expected '{word}'"))),
            "pattern" | "xpattern" => self.rewrite(rest, true).map(Action::Pattern),
            name => match self.registry.mapper(self.element, name) {
                Some(_) if !rest.is_empty() => Err(Error::new("syntax error, expected element name")),
                Some(mapper) => Ok(Action::Mapper(mapper)),
                None if is_element(name) && !rest.is_empty() => {
                    Err(Error::new("syntax error, expected element name"))
                }
                None if is_element(name) => Err(Error::new("element is not an IPMapper")),
                None => Err(Error::new("unknown specification")),
            },
        }
    }

    /// A pattern or its name, with two outputs behind it, which are `checked`.
    pub fn rewrite(&self, words: &[String], checked: bool) -> Result<Rewrite, Error> {
        let Some((outputs, pattern)) =
            words.split_last_chunk::<2>().map(|(p, o)| (o, p)).filter(|(_, p)| !p.is_empty())
        else {
            return Err(Error::new("syntax error"));
        };
        let pattern = match pattern {
            [name] => {
                let pattern = self.registry.pattern(self.element, name);
                pattern.ok_or_else(|| Error::new(format!("no such pattern '{name}'")))?
            }
            words => Arc::new(Pattern::parse(words, &self.scope)?),
        };
        let outputs = if checked { self.outputs(outputs)? } else { self.ports(outputs)?.map(|p| p as u16) };
        Ok(Rewrite { pattern, outputs })
    }

    fn ports(&self, words: &[String]) -> Result<[i32; 2], Error> {
        let [forward, reply] = words else { return Err(Error::new("bad forward port")) };
        let forward = i32::parse(forward, &self.scope).map_err(|_| "bad forward port")?;
        let reply = i32::parse(reply, &self.scope).map_err(|_| "bad reply port")?;
        Ok([forward, reply])
    }

    fn outputs(&self, words: &[String]) -> Result<[u16; 2], Error> {
        let [forward, reply] = self.ports(words)?;
        Ok([self.output(forward)?, self.output(reply)?])
    }

    fn output(&self, n: i32) -> Result<u16, Error> {
        let known = u16::try_from(n).ok().filter(|n| usize::from(*n) < self.outputs);
        known.ok_or_else(|| Error::new("output port out of range"))
    }
}
