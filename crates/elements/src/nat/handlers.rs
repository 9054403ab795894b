//! The handlers of rewriters.

use super::ended::Which;
use super::flow_id::FlowId;
use super::flows::{Flows, Tally, space};
use super::input::Reader;
use super::rewriter::{Rewriter, now_ms};
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::args::{join_args, split_args, split_words};

/// The keyword of an argument. What an input's specification begins with is no word in capitals, unless a mapper's name is all
/// that it has.
fn keyword(argument: &str) -> Option<&str> {
    let (word, _) = argument.split_once(|c: char| c.is_ascii_whitespace())?;
    word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_').then_some(word)
}

/// `config` with another capacity.
fn with_capacity(config: &str, capacity: i32) -> String {
    let mut args = split_args(config);
    args.retain(|arg| !matches!(keyword(arg), Some("CAPACITY" | "MAPPING_CAPACITY")));
    args.push(format!("MAPPING_CAPACITY {capacity}"));
    join_args(&args)
}

/// `config` with another specification of an input.
fn with_specification(config: &str, input: usize, text: &str) -> String {
    let mut args = split_args(config);
    if let Some(arg) = args.iter_mut().filter(|arg| keyword(arg).is_none()).nth(input) {
        *arg = text.to_owned();
    }
    join_args(&args)
}

impl Rewriter {
    fn pattern_line(&self, flows: &mut Flows, input: usize) -> String {
        let live = flows.member(self.member).and_then(|m| m.inputs.get(input)).map_or(0, |t| t.flows);
        let Some(action) = self.inputs.get(input) else { return String::new() };
        if live > 0 { format!("{action} [{live}]\n") } else { format!("{action}\n") }
    }

    fn lookup(&self, flows: &mut Flows, arg: &str, cx: &Cx<'_>) -> Result<String, Error> {
        let words = split_words(arg);
        let [saddr, sport, daddr, dport] = &words[..] else {
            return Err(match words.len() {
                n if n > 4 => Error::new("too many arguments"),
                n => Error::new("required argument missing").of(["SADDR", "SPORT", "DADDR", "DPORT"][n]),
            });
        };
        let flow = FlowId::new(
            cx.value::<Ipv4Addr>("SADDR", saddr)?.into(),
            cx.value("SPORT", sport)?,
            cx.value::<Ipv4Addr>("DADDR", daddr)?.into(),
            cx.value("DPORT", dport)?,
        );
        let found = flows.find(space(self.member, false), flow);
        let Some((id, direction)) = found else { return Ok(String::new()) };
        let to = flows.get(id).map(|f| f.leaves(direction)).unwrap_or_default();
        let (saddr, daddr) = (to.source_ip(), to.destination_ip());
        Ok(format!("{saddr} {} {daddr} {}", to.source_port, to.destination_port))
    }

    /// Answers a read handler.
    pub(super) fn read_from(
        &self,
        flows: &mut Flows,
        handler: &str,
        arg: &str,
        cx: &mut Cx<'_>,
    ) -> Result<String, Error> {
        let tally = |flows: &mut Flows, of: fn(&Tally) -> u32| {
            flows.len();
            flows.member(self.member).map_or(0, |m| m.inputs.iter().map(of).sum::<u32>()).to_string()
        };
        Ok(match handler {
            "tcp_lookup" | "lookup" => self.lookup(flows, arg, cx)?,
            "table_size" | "nmappings" => tally(flows, |t| t.flows),
            "evicted" => tally(flows, |t| t.evicted),
            "mapping_failures" => tally(flows, |t| t.failures),
            "size" => flows.len().to_string(),
            "capacity" => flows.capacity().to_string(),
            "patterns" => {
                flows.len();
                (0..self.inputs.len()).map(|i| self.pattern_line(flows, i)).collect()
            }
            _ => {
                flows.len();
                let input = handler.strip_prefix("pattern").and_then(|n| n.parse().ok());
                self.pattern_line(flows, input.unwrap_or(usize::MAX))
            }
        })
    }

    /// Carries out a write handler.
    pub(super) fn write_to(
        &mut self,
        flows: &mut Flows,
        handler: &str,
        value: &str,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let now_ms = now_ms(cx);
        match handler {
            "capacity" => {
                let capacity = i32::parse(value.trim(), &cx.scope()).map_err(|e| e.of("CAPACITY"))?;
                flows.set_capacity(capacity, now_ms);
                // That of the rewriter that has the table.
                let home = self.home.unwrap_or(cx.here());
                cx.set_peer_config(home, with_capacity(cx.peer_config(home), capacity));
            }
            "clear" => flows.end(Which::All),
            _ => {
                let input: usize =
                    handler.trim_start_matches("pattern").parse().map_err(|_| "no such input")?;
                let reader = Reader {
                    registry: &self.registry,
                    element: cx.name(),
                    scope: cx.scope(),
                    outputs: cx.n_outputs(),
                };
                let action = reader.action(value.trim(), |name| cx.find_peer(name).is_ok());
                let action = action.map_err(|why| why.of(format_args!("input spec {input}")))?;
                let slot = self.inputs.get_mut(input).ok_or("no such input")?;
                *slot = action;
                if let Some(spec) = flows.member(self.member).and_then(|m| m.specs.get_mut(input)) {
                    *spec = slot.to_string();
                }
                flows.end(Which::Input(self.member, input));
                let here = cx.here();
                cx.set_peer_config(here, with_specification(cx.peer_config(here), input, value.trim()));
            }
        }
        Ok(())
    }
}
