//! What the classifiers have in common: a list of patterns that can be read and changed while packets flow.

use super::dispatch::dispatch;
use super::expr::Expr;
use super::program::{Bases, Goal, Program};
use causeway_engine::{Conf, Cx, Error, Invalid, Names, Scope, drop_reasons};
use causeway_packet::{Batch, Packet};

/// Reads one pattern; the last argument takes warnings.
pub(crate) type Parse = fn(&str, &Scope<'_>, &mut Vec<String>) -> Result<Expr, Error>;

drop_reasons! {
    pub(crate) enum Reason {
        NoMatch = "no-match", "no pattern matched";
    }
}

/// Patterns, one an output.
pub(crate) struct Patterns {
    parse: Parse,
    texts: Vec<String>,
    program: Program,
    names: Names,
}

impl Patterns {
    /// The patterns that are the arguments of `conf`, one for each output in use.
    pub(crate) fn build(conf: &mut Conf<'_>, parse: Parse) -> Result<Patterns, Invalid> {
        let (texts, names, name) = (conf.rest(), conf.env.names.clone(), conf.name().clone());
        let outputs = conf.n_outputs();
        let mut warnings = Vec::new();
        let compiled = compile(parse, &texts, outputs, &names.scope(&name), &mut warnings);
        let program = compiled.map_err(|errors| {
            errors.into_iter().for_each(|e| conf.error(e));
            Invalid
        })?;
        warnings.iter().for_each(|w| conf.warn(w));
        program.unused(outputs).iter().for_each(|o| conf.warn(&format!("output {o} matches no packets")));
        conf.finish()?;
        Ok(Patterns { parse, texts, program, names })
    }

    #[inline]
    pub(crate) fn push(&self, batch: &mut Batch, cx: &mut Cx<'_>, bases: impl Fn(&Packet) -> Bases) {
        dispatch(&self.program, Reason::NoMatch, batch, cx, bases);
    }

    /// What is done to packets, in the intermediate representation.
    pub(crate) fn lower(&self) -> Option<causeway_engine::ir::Program> {
        self.program.lower()
    }

    /// Answers `program`, `config` and `pattern#`.
    pub(crate) fn read(&self, handler: &str) -> Result<String, Error> {
        match number(handler) {
            Some(n) => self.texts.get(n).cloned().ok_or_else(|| Error::new("no such pattern")),
            None if handler == "config" => Ok(self.texts.join(", ")),
            None => Ok(self.program.to_string()),
        }
    }

    /// Carries out `config` and `pattern#`; if anything is wrong, nothing changes.
    pub(crate) fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let mut texts = self.texts.clone();
        match number(handler) {
            Some(n) => {
                let text = texts.get_mut(n).ok_or("no such pattern")?;
                *text = value.trim().to_owned();
            }
            None => texts = causeway_lang::args::split_args(value),
        }
        let scope = self.names.scope(cx.name());
        self.program =
            compile(self.parse, &texts, cx.n_outputs(), &scope, &mut Vec::new()).map_err(Error::several)?;
        cx.set_config(texts.join(", "));
        self.texts = texts;
        Ok(())
    }
}

/// The number in `pattern3`.
fn number(handler: &str) -> Option<usize> {
    handler.strip_prefix("pattern")?.parse().ok()
}

fn compile(
    parse: Parse,
    texts: &[String],
    outputs: usize,
    scope: &Scope<'_>,
    warnings: &mut Vec<String>,
) -> Result<Program, Vec<String>> {
    if texts.len() != outputs {
        return Err(vec![format!("need {outputs} arguments, one per output port")]);
    }
    let (mut rules, mut errors) = (Vec::new(), Vec::new());
    for (output, text) in texts.iter().enumerate() {
        let mut own = Vec::new();
        match parse(text, scope, &mut own) {
            Ok(expr) => rules.push((expr, Goal::Output(output))),
            Err(why) => errors.push(format!("pattern {output}: {why}")),
        }
        warnings.extend(own.into_iter().map(|w| format!("pattern {output}: {w}")));
    }
    if errors.is_empty() { Ok(Program::new(&rules)) } else { Err(errors) }
}
