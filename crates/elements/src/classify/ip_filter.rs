//! IPFilter.

use super::dispatch::dispatch;
use super::ip_expr;
use super::program::{Goal, Program, bases};
use causeway_engine::ir;
use causeway_engine::prelude::*;
use causeway_engine::{Names, Scope};
use causeway_lang::args::{first_word, split_args, unquote};

pub(crate) static SPEC: Spec = Spec {
    name: "IPFilter",
    category: "classify",
    summary: "filters IP packets by contents",
    ports: "1/-",
    processing: "h/h",
    doc: "Does with each IP packet what the first RULE says whose pattern it matches. A rule is an action and a \
          pattern; the action is `allow` (output 0), `deny` or `drop` (drop the packet), or the number of an output. \
          Patterns are those of IPClassifier. A packet that matches no rule is dropped.",
    args: &[rest("RULE", "action and IP expression", "rules, of which the first that matches counts")],
    handlers: &[
        reads("program", "the decision program, a step a line, as of IPClassifier"),
        reads_writes("config", "the rules"),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> MarkIPHeader(0) \
              -> IPFilter(deny src net 10.0.0.0/8, allow tcp or udp, drop all) -> Discard;",
    see: &["IPClassifier", "Classifier", "MarkIPHeader"],
    build,
    lowers: Lowers::Rules,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Denied = "denied", "a rule dropped the packet, or none matched";
    }
}

struct IpFilter {
    rules: String,
    program: Program,
    names: Names,
}

fn compile(
    rules: &[String],
    outputs: usize,
    scope: &Scope<'_>,
    warnings: &mut Vec<String>,
) -> Result<Program, Vec<String>> {
    let (mut compiled, mut errors) = (Vec::new(), Vec::new());
    for (i, rule) in rules.iter().enumerate() {
        let rule = unquote(rule);
        let (action, pattern) = first_word(&rule);
        let goal = match action {
            "allow" => Ok(Goal::Output(0)),
            "deny" | "drop" => Ok(Goal::Drop),
            _ => match action.parse() {
                Ok(port) if port < outputs => Ok(Goal::Output(port)),
                Ok(port) => Err(Error::new(format!("slot '{port}' out of range"))),
                Err(_) => Err(Error::new(format!("unknown slot ID '{action}'"))),
            },
        };
        // An action alone is for all packets.
        let pattern = if pattern.is_empty() { "all" } else { pattern };
        let mut own = Vec::new();
        match goal.and_then(|goal| Ok((ip_expr::parse(pattern, scope, &mut own)?, goal))) {
            Ok(rule) => compiled.push(rule),
            Err(why) => errors.push(format!("pattern {i}: {why}")),
        }
        warnings.extend(own.into_iter().map(|w| format!("pattern {i}: {w}")));
    }
    if errors.is_empty() { Ok(Program::new(&compiled)) } else { Err(errors) }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let (rules, names, name) = (conf.rest(), conf.env.names.clone(), conf.name().clone());
    let mut warnings = Vec::new();
    let program =
        compile(&rules, conf.n_outputs(), &names.scope(&name), &mut warnings).map_err(|errors| {
            errors.into_iter().for_each(|e| conf.error(e));
            Invalid
        })?;
    warnings.iter().for_each(|w| conf.warn(w));
    conf.finish()?;
    Ok(Box::new(IpFilter { rules: rules.join(", "), program, names }))
}

impl Element for IpFilter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        dispatch(&self.program, Reason::Denied, batch, cx, |p| {
            bases(p.network_offset(), p.transport_offset())
        });
    }

    fn lower(&self) -> Option<ir::Program> {
        self.program.lower()
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(if handler == "config" { self.rules.clone() } else { self.program.to_string() })
    }

    fn write(&mut self, _handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let scope = self.names.scope(cx.name());
        let program =
            compile(&split_args(value), cx.n_outputs(), &scope, &mut Vec::new()).map_err(Error::several)?;
        self.program = program;
        self.rules = value.to_owned();
        cx.set_config(value.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::tests::udp_packet;
    use causeway_engine::harness::Harness;

    #[test]
    fn the_first_rule_that_matches_counts() {
        let mut h = Harness::new(&SPEC, "deny src 10.0.0.1, 1 udp port 53, allow udp", 1, 2).unwrap();
        h.push_all(
            0,
            [
                udp_packet("10.0.0.1", "1.2.3.4", 9, 53),
                udp_packet("10.0.0.2", "1.2.3.4", 9, 53),
                udp_packet("10.0.0.2", "1.2.3.4", 9, 54),
            ],
        );
        assert_eq!(([0, 1].map(|port| h.take(port).len()), h.drops()), ([1, 1], vec![("denied", 1)]));
        h.write("config", "drop all").unwrap();
        h.push(0, udp_packet("10.0.0.2", "1.2.3.4", 9, 54));
        assert_eq!((h.drops(), h.read("config").unwrap()), (vec![("denied", 2)], "drop all".to_owned()));
        assert!(h.write("config", "allow port").is_err());
        h.assert_balanced();
    }

    #[test]
    fn actions_are_checked() {
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 2).err().unwrap();
        assert_eq!(
            errors("permit all, 2 all"),
            ["pattern 0: unknown slot ID 'permit'", "pattern 1: slot '2' out of range"]
        );
    }
}
