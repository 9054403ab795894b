//! Reading an element's configuration.
//!
//! An element's `build` function asks for its arguments by name and type, in order, and finishes with
//! [`Conf::finish`]. Errors are collected, so that all of them are reported together; until `finish` has
//! succeeded nothing may be done with the values.
//!
//! ```ignore
//! fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
//!     let color = conf.required::<u8>("COLOR");
//!     let burst = conf.keyword("BURST", 32u32);
//!     conf.finish()?;
//!     Ok(Box::new(Paint { color, burst }))
//! }
//! ```
//!
//! Which text goes to which argument follows Click: of several `KEYWORD value` arguments the last one counts. A
//! positional argument takes the next one too, unless that looks like a keyword's, and whichever stands last counts; a
//! mandatory one that was not given takes even what looks like a keyword's. Behind a keyword's argument that was read
//! there are no positional ones.

mod env;
#[cfg(test)]
mod tests;

use crate::counters::Counter;
use crate::error::Error;
use crate::measure::Unit;
use crate::said::ElementWarning;
use crate::spec::{ArgDoc, ArgForm, Spec};
use crate::value::Value;
use causeway_lang::args::{join_args, quote, split_args};
use causeway_lang::{Of, Severity};
use std::sync::Arc;

pub(crate) use env::Context;
pub use env::{Defaults, Env, Persistent};

/// The configuration has errors; they were recorded in the [`Conf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// By what an argument was read, if it was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Not,
    ByPlace,
    ByKeyword,
}

struct Argument {
    text: String,
    read: Read,
}

impl Argument {
    fn is_unread(&self) -> bool {
        self.read == Read::Not
    }
}

/// One element's configuration, while it is being read.
pub struct Conf<'a> {
    /// What the elements share.
    pub env: &'a mut Env,
    name: Arc<str>,
    spec: &'static Spec,
    worker: usize,
    n_inputs: usize,
    n_outputs: usize,
    args: Vec<Argument>,
    /// Of arguments that cannot be read.
    errors: Vec<String>,
    /// Of what the arguments say; told if all of them could be read, as Click does.
    objections: Vec<String>,
}

impl<'a> Conf<'a> {
    /// The configuration `text` of element `name` on `worker`, with that many inputs and outputs in use.
    pub fn new(
        env: &'a mut Env,
        name: Arc<str>,
        spec: &'static Spec,
        worker: usize,
        ports: (usize, usize),
        text: &str,
    ) -> Self {
        let args = split_args(text).into_iter().map(|text| Argument { text, read: Read::Not });
        let args = args.collect();
        let (errors, objections) = (Vec::new(), Vec::new());
        Conf { env, name, spec, worker, n_inputs: ports.0, n_outputs: ports.1, args, errors, objections }
    }

    /// The element's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The element's class.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Worker that the element will live on.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Which copy of the graph the element belongs to, and how many copies there are.
    pub fn replica(&self) -> (usize, usize) {
        if self.env.replicas > 1 { (self.worker, self.env.replicas) } else { (0, 1) }
    }

    /// Number of inputs in use.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Number of outputs in use.
    pub fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// Number of arguments not read yet.
    pub fn unread(&self) -> usize {
        self.args.iter().filter(|a| a.is_unread()).count()
    }

    /// A positional argument that must be given.
    pub fn required<T: Value>(&mut self, name: &str) -> T {
        match self.find(name, true) {
            Some(text) => self.parse(name, &text).unwrap_or_else(T::placeholder),
            None => {
                self.errors.push(format!("{name}: required argument missing"));
                T::placeholder()
            }
        }
    }

    /// A positional argument that may be left out.
    pub fn optional<T: Value>(&mut self, name: &str, default: T) -> T {
        self.find(name, false).and_then(|text| self.parse(name, &text)).unwrap_or(default)
    }

    /// A `NAME value` argument.
    pub fn keyword<T: Value>(&mut self, name: &str, default: T) -> T {
        self.keyword_given(name).unwrap_or(default)
    }

    /// A `NAME value` argument, if it is given.
    pub fn keyword_given<T: Value>(&mut self, name: &str) -> Option<T> {
        let text = self.find_keyword(name)?;
        self.parse(name, &text)
    }

    /// A keyword argument that must be given.
    pub fn keyword_required<T: Value>(&mut self, name: &str) -> T {
        match self.find_keyword(name) {
            Some(text) => self.parse(name, &text).unwrap_or_else(T::placeholder),
            None => {
                self.errors.push(format!("{name}: required argument missing"));
                T::placeholder()
            }
        }
    }

    /// The argument that `doc` says, or `default` if it is not given and need not be.
    pub fn argument<T: Value>(&mut self, doc: &ArgDoc, default: Option<T>) -> T {
        match (doc.form, default) {
            (ArgForm::Optional, Some(default)) => self.optional(doc.name, default),
            (ArgForm::Keyword, Some(default)) => self.keyword(doc.name, default),
            (ArgForm::Keyword, None) => self.keyword_required(doc.name),
            (ArgForm::Required | ArgForm::Optional | ArgForm::Rest, _) => self.required(doc.name),
        }
    }

    /// The text of all arguments that were not read yet, which are then read.
    pub fn rest(&mut self) -> Vec<String> {
        let unread = self.args.iter_mut().filter(|a| a.is_unread());
        unread
            .map(|a| {
                a.read = Read::ByPlace;
                a.text.clone()
            })
            .collect()
    }

    /// Reads `text`, the value of `name`, recording an error if it is not a `T`. For elements that take their
    /// arguments apart themselves.
    pub fn parse<T: Value>(&mut self, name: &str, text: &str) -> Option<T> {
        match T::parse(text, &self.env.names.scope(&self.name)) {
            Ok(value) => Some(value),
            Err(why) if why.is_whole() => {
                self.objections.push(why.to_string());
                None
            }
            Err(why) => {
                let named = if name.is_empty() { why } else { why.of(name) };
                self.errors.push(named.to_string());
                None
            }
        }
    }

    /// The names of addresses as the element sees them.
    pub fn scope(&self) -> crate::names::Scope<'_> {
        self.env.names.scope(&self.name)
    }

    /// The element that this one calls `name`, looked up from its compound outwards: its full name and class.
    pub fn element(&self, name: &str) -> Option<(Arc<str>, &'static str)> {
        let mut scope: &str = &self.name;
        loop {
            scope = scope.rfind('/').map_or("", |i| &scope[..i]);
            let full = if scope.is_empty() { name.to_owned() } else { format!("{scope}/{name}") };
            if let Some(i) = self.env.elements.iter().position(|e| **e == *full) {
                return Some((self.env.elements[i].clone(), self.env.classes.get(i)?));
            }
            if scope.is_empty() {
                return None;
            }
        }
    }

    /// Records an error in what the arguments say. It is told if all of them could be read.
    pub fn error(&mut self, error: impl Into<Error>) {
        self.objections.push(error.into().to_string());
    }

    /// Records that the argument `name` cannot be read, for elements that take it apart themselves.
    pub fn bad_argument(&mut self, name: &str, why: &str) {
        self.errors.push(format!("{name}: {why}"));
    }

    /// Says something that does not make the configuration fail, if all arguments could be read so far.
    pub fn warn(&mut self, text: &str) {
        if self.errors.is_empty() {
            self.say(Severity::Warning, None, text);
        }
    }

    /// Says something that is nothing odd.
    pub fn note(&mut self, text: &str) {
        self.say(Severity::Note, None, text);
    }

    /// As [`Conf::warn`], of one argument or of a file that the element reads.
    pub fn warn_of(&mut self, of: impl Into<Option<Of>>, text: &str) {
        self.say(Severity::Warning, of.into(), text);
    }

    fn say(&mut self, severity: Severity, of: Option<Of>, text: &str) {
        let (name, class, message) = (self.name.clone(), self.spec.name, text.to_owned());
        self.env.warnings.push(ElementWarning { name, class, of, message, severity, configuring: true });
    }

    /// A `NAME value` argument that older configurations have, if it is given; warns of it then.
    pub fn deprecated<T: Value>(&mut self, name: &str) -> Option<T> {
        let text = self.find_keyword(name)?;
        self.warn_of(Of::Argument(name.to_owned()), "argument deprecated");
        self.parse(name, &text)
    }

    /// Complains of arguments that nobody read, and fails if there was any error.
    ///
    /// # Errors
    /// Some argument is wrong, or was read by nobody: what is wrong is among [`Conf::errors`].
    pub fn finish(&mut self) -> Result<(), Invalid> {
        let mut extra = false;
        for arg in self.args.iter().filter(|a| a.is_unread()) {
            match keyword_of(&arg.text) {
                Some((word, _)) => self.errors.push(format!("{word}: unknown argument")),
                None => extra = true,
            }
        }
        if extra {
            self.errors.push("too many arguments".to_owned());
        }
        if self.errors().is_empty() { Ok(()) } else { Err(Invalid) }
    }

    /// A new counter called `name`. It counts what the handler of that name does, else packets.
    pub fn counter(&mut self, name: &str) -> Counter {
        let declared = self.spec.handlers.iter().find(|h| h.name == name);
        let unit = declared.map_or(Unit::Packets, |h| h.unit);
        self.env.counters.add(self.worker, &self.name, name, unit)
    }

    /// As [`Conf::counter`], for what begins anew with each graph although the element stays: the count of a limit.
    pub fn fresh_counter(&mut self, name: &str) -> Counter {
        let counter = self.counter(name);
        self.env.counters.begin_anew(&counter);
        counter
    }

    /// The errors recorded so far.
    pub fn errors(&self) -> &[String] {
        if self.errors.is_empty() { &self.objections } else { &self.errors }
    }

    fn find(&mut self, name: &str, mandatory: bool) -> Option<String> {
        let place = self.args.iter().position(|a| a.read != Read::ByPlace);
        let place = place.filter(|&i| self.args[i].is_unread());
        let named = self.find_named(name);
        let takes = |i: &usize| {
            let arg = &self.args[*i];
            arg.is_unread() && (keyword_of(&arg.text).is_none() || (mandatory && named.is_none()))
        };
        let Some(place) = place.filter(takes) else {
            return named.map(|(_, text)| text);
        };
        self.args[place].read = Read::ByPlace;
        match named {
            Some((at, text)) if at > place => Some(text),
            _ => Some(self.args[place].text.clone()),
        }
    }

    fn find_keyword(&mut self, name: &str) -> Option<String> {
        self.find_named(name).map(|(_, text)| text)
    }

    /// Which argument the last one called `name` is, and its value.
    fn find_named(&mut self, name: &str) -> Option<(usize, String)> {
        let mut found = None;
        for (at, arg) in self.args.iter_mut().enumerate().filter(|(_, a)| a.is_unread()) {
            if let Some((word, value)) = keyword_of(&arg.text)
                && word == name
            {
                found = Some((at, value.to_owned()));
                arg.read = Read::ByKeyword;
            }
        }
        found
    }
}

/// `config` with `text` for one of the class's arguments: where the argument is, or behind all others.
pub(crate) fn with_argument(spec: &Spec, config: &str, argument: &ArgDoc, text: &str) -> String {
    let text = if argument.kind == "string" { quote(text) } else { text.trim().to_owned() };
    let mut args = split_args(config);
    let named = |a: &String| keyword_of(a).is_some_and(|(word, _)| word == argument.name);
    let keyword = format!("{} {text}", argument.name);
    if let Some(last) = args.iter().rposition(named) {
        args[last] = keyword;
    } else if let Some(at) = position(spec, &args, argument) {
        args[at] = text;
    } else {
        args.push(keyword);
    }
    join_args(&args)
}

/// Which of `args` a positional argument is.
fn position(spec: &Spec, args: &[String], argument: &ArgDoc) -> Option<usize> {
    let is_argument = |word: &str| spec.args.iter().any(|a| a.name == word);
    let mut unread =
        (0..args.len()).filter(|&i| !keyword_of(&args[i]).is_some_and(|(word, _)| is_argument(word)));
    let positional = spec.args.iter().filter(|a| matches!(a.form, ArgForm::Required | ArgForm::Optional));
    for a in positional {
        let at = unread.next()?;
        if a.form == ArgForm::Optional && keyword_of(&args[at]).is_some() {
            return None;
        }
        if a.name == argument.name {
            return Some(at);
        }
    }
    None
}

/// Whether one of the arguments in `config` is given by one of these keywords.
pub(crate) fn has_keyword(config: &str, keywords: &[&str]) -> bool {
    let given = |arg: &String| keyword_of(arg).is_some_and(|(word, _)| keywords.contains(&word));
    !keywords.is_empty() && split_args(config).iter().any(given)
}

/// Keyword and value, if the argument has the shape of a keyword's.
fn keyword_of(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| c.is_ascii_whitespace())?;
    let (word, value) = (&text[..end], text[end..].trim_start());
    let mut chars = word.chars();
    let first = chars.next()?;
    let rest = |c: char| c.is_ascii_alphanumeric() || "_:.?!".contains(c);
    let shape = (first.is_ascii_alphabetic() || first == '_') && chars.all(rest) && !value.is_empty();
    shape.then_some((word, value))
}
