//! Running a script: instruction by instruction until it waits or ends.

use super::compile::{Ending, Op, RETURNED, Target};
use super::expand::{Form, expand};
use super::report::Report;
use super::text::{shift, uncomment, words};
use super::{Kind, Script, TIMER};
use crate::printing::to_stderr;
use causeway_engine::prelude::*;
use causeway_engine::{Answer, Named};
use causeway_lang::args::{unquote, unquote_bytes};
use causeway_lang::values::{SECOND_NS, boolean, string, time_ns};
use std::fs::File;
use std::io::Write as _;

/// Jumps that a script may make without waiting.
const MAX_JUMPS: usize = 1_000;

/// Who lets the script go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The handler `step`.
    Step,
    /// The router, which was asked to stop.
    Router,
    /// The timer.
    Timer,
    /// A jump, or a packet.
    Jump,
}

/// How a script ended, or that it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Fine,
    Failed,
    Stopped,
}

impl Status {
    /// As the status of a write handler.
    pub fn number(self) -> i32 {
        match self {
            Status::Fine => 0,
            Status::Failed => -1,
            Status::Stopped => 1,
        }
    }
}

impl Script {
    /// `text` with what variables and handlers say.
    pub(super) fn expanded(
        &mut self,
        text: &str,
        quote: bool,
        cx: &mut Cx<'_>,
        report: &mut Report,
    ) -> String {
        expand(text, quote, &mut |name, form| match form {
            Form::Variable => self.variable(name),
            Form::Handler => {
                let (named, arg) = self.called(name, false, false, cx, report)?;
                let answer = cx.read_outside(self, &named, &arg);
                if !answer.errors.is_empty() {
                    report.error(&answer.errors);
                }
                Some(answer.value)
            }
        })
    }

    fn variable(&self, name: &str) -> Option<String> {
        if let Some(i) = self.program.variable(name) {
            return Some(self.program.variables[i].1.clone());
        }
        Some(match name {
            "?" => self.write_status.to_string(),
            "args" => self.args.clone(),
            "$" => std::process::id().to_string(),
            "0" => self.handler.clone(),
            "#" => words(&self.args).len().to_string(),
            "write" => self.written.to_string(),
            _ if name.starts_with(|c: char| ('1'..='9').contains(&c)) => {
                let n: usize = name.parse().ok()?;
                words(&self.args).into_iter().nth(n - 1).unwrap_or_default()
            }
            _ => return None,
        })
    }

    /// The handler that `text` calls, and the parameters.
    fn called(
        &mut self,
        text: &str,
        write: bool,
        unquoted: bool,
        cx: &mut Cx<'_>,
        report: &mut Report,
    ) -> Option<(Named, String)> {
        let mut rest = text.to_owned();
        let name = string(&shift(&mut rest)).unwrap_or_default();
        let arg = if unquoted { unquote(&rest) } else { rest };
        if name.is_empty() {
            report.error("syntax error");
            return None;
        }
        let (named, access) = match cx.find_handler(self, &name) {
            Ok(found) => found,
            Err(why) => {
                report.error(&why.to_string());
                return None;
            }
        };
        let full = || cx.full_name(&named);
        let wrong = match access {
            Some(access) if write && access.writes() => return Some((named, arg)),
            Some(access) if !write && access.reads() && (arg.is_empty() || access.takes_parameters()) => {
                return Some((named, arg));
            }
            Some(access) if !write && access.reads() => {
                format!("read handler '{}' does not take parameters", full())
            }
            _ => format!("no '{}' {} handler", full(), if write { "write" } else { "read" }),
        };
        report.error(&wrong);
        None
    }

    /// What messages call a call.
    fn calling(named: &Named, arg: &str, cx: &Cx<'_>) -> String {
        let blank = if arg.is_empty() { "" } else { " " };
        format!("While calling '{}{blank}{arg}':", cx.full_name(named))
    }

    /// Reads the handler that `text` calls, after its parameters were filled in.
    fn read_handler(
        &mut self,
        text: &str,
        unquoted: bool,
        cx: &mut Cx<'_>,
        report: &mut Report,
    ) -> Option<(Named, String)> {
        let (named, arg) = self.called(text, false, unquoted, cx, report)?;
        let Answer { value, errors, .. } = cx.read_outside(self, &named, &arg);
        report.errors_of_call(|| Self::calling(&named, &arg, cx), &errors);
        Some((named, value))
    }

    /// Lets the script go on by `steps` steps; returns the number of jumps so far.
    pub(super) fn step(
        &mut self,
        steps: i64,
        by: By,
        jumps: usize,
        cx: &mut Cx<'_>,
        report: &mut Report,
    ) -> usize {
        let (steps, mut jumps) = (steps + self.steps, jumps);
        while steps >= self.steps && self.at < self.program.instructions.len() && jumps < MAX_JUMPS {
            // It goes on before the instruction is carried out, which may move it.
            let at = self.at;
            self.at += 1;
            let (op, text) = {
                let instruction = &self.program.instructions[at];
                (instruction.op, instruction.text.clone())
            };
            match op {
                Op::End(Ending::Stop) => {
                    self.steps += 1;
                    self.at = at;
                    if by != By::Router {
                        cx.adjust_run_count(-1);
                    }
                    return jumps + 1;
                }
                Op::End(ending) => {
                    if let Ending::Error { unquote: unquoted } = ending {
                        let message = self.expanded(&text, false, cx, report);
                        let message = if unquoted { unquote(&message) } else { message };
                        if !message.is_empty() {
                            report.error(&message);
                        }
                    }
                    self.at -= 1;
                    return jumps + 1;
                }
                Op::WaitStep => {
                    if self.wait_for_steps(at, steps) {
                        break;
                    }
                }
                Op::WaitTime => {
                    if self.steps == steps {
                        self.wait_for_time(&text, cx, report);
                        break;
                    }
                    self.steps += 1;
                    cx.clear_timer(TIMER);
                }
                Op::Initial => {
                    self.steps += i64::from(std::mem::take(&mut self.begins));
                }
                Op::Print { unquote, newline } => self.print(&text, unquote, newline, cx, report),
                Op::Read { unquote } => {
                    let text = self.expanded(&text, false, cx, report);
                    if let Some((named, value)) = self.read_handler(&text, unquote, cx, report) {
                        to_stderr(&format!("{}:\n{value}\n", cx.full_name(&named)));
                    }
                }
                Op::Write { unquote } => {
                    let text = self.expanded(&text, false, cx, report);
                    if let Some((named, arg)) = self.called(&text, true, unquote, cx, report) {
                        let Answer { status, errors, .. } = cx.write_outside(self, &named, &arg);
                        report.errors_of_call(|| Self::calling(&named, &arg, cx), &errors);
                        self.write_status = status;
                    }
                }
                Op::Set { unquote: unquoted } | Op::Return { unquote: unquoted } => {
                    let value = self.expanded(&text, false, cx, report);
                    let number = self.program.instructions[at].number;
                    self.program.variables[number].1 = if unquoted { unquote(&value) } else { value };
                    if matches!(op, Op::Return { .. }) && self.at == at + 1 {
                        self.at = at;
                        break;
                    }
                }
                Op::Goto => {
                    let condition = self.expanded(&text, false, cx, report);
                    match boolean(&condition) {
                        Ok(false) => {}
                        Err(_) if !condition.is_empty() => {
                            report.error(&format!("bad condition '{condition}'"));
                        }
                        _ => match self.program.instructions[at].target {
                            Target::End(_) => {
                                self.at -= 1;
                                return jumps + 1;
                            }
                            Target::At(target) => {
                                self.reset_waits(target, at);
                                self.at = target;
                            }
                        },
                    }
                }
                Op::Init { .. } | Op::Label => {}
            }
            jumps += usize::from(self.at != at + 1);
        }
        self.pauses(by, jumps, cx);
        jumps + 1
    }

    /// The script waits, or goes round and round.
    fn pauses(&mut self, by: By, jumps: usize, cx: &mut Cx<'_>) {
        if jumps >= MAX_JUMPS {
            to_stderr(&format!("{} :: {}: too many jumps, giving up\n", cx.name(), cx.class()));
            self.at = self.program.instructions.len();
            cx.clear_timer(TIMER);
        }
        if by == By::Router {
            cx.adjust_run_count(1);
        }
    }

    /// Whether there are not yet steps enough for the instruction at `at`.
    fn wait_for_steps(&mut self, at: usize, steps: i64) -> bool {
        let instruction = &mut self.program.instructions[at];
        let wanted = instruction.number.saturating_sub(instruction.done);
        let taken = wanted.min(usize::try_from(steps - self.steps).unwrap_or(0));
        instruction.done += taken;
        self.steps += taken as i64;
        let waits = instruction.done < instruction.number;
        if waits {
            self.at = at;
        }
        waits
    }

    pub(super) fn wait_for_time(&mut self, text: &str, cx: &mut Cx<'_>, report: &mut Report) {
        let text = self.expanded(text, false, cx, report);
        match time_ns(&text, SECOND_NS) {
            Ok(ns) => {
                let when_ns = cx.now_ns().saturating_add(ns);
                cx.set_timer(TIMER, when_ns);
                self.at -= 1;
            }
            Err(_) => report.error("syntax error at 'wait'"),
        }
    }

    /// The instructions from `from` to before `to` wait for their steps anew.
    fn reset_waits(&mut self, from: usize, to: usize) {
        let all = &mut self.program.instructions;
        let to = to.min(all.len());
        all.get_mut(from..to).into_iter().flatten().for_each(|instruction| instruction.done = 0);
    }

    fn print(&mut self, text: &str, unquoted: bool, newline: bool, cx: &mut Cx<'_>, report: &mut Report) {
        let (mut text, mut file) = (text.to_owned(), None);
        if let Some(rest) = text.strip_prefix('>') {
            let (append, rest) = rest.strip_prefix('>').map_or((false, rest), |rest| (true, rest));
            let mut rest = rest.to_owned();
            let name = shift(&mut rest);
            if !name.is_empty() && name != "-" {
                match open(&name, append) {
                    Ok(opened) => file = Some(opened),
                    Err(e) => {
                        return report.error(&format!("{name}: {}", super::functions::without_number(&e)));
                    }
                }
            }
            text = rest;
        }
        let before = report.errors();
        let is_handler = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '@' || c == '_');
        let mut bytes = if is_handler {
            let text = self.expanded(&text, false, cx, report);
            let read = self.read_handler(&text, unquoted, cx, report);
            read.map_or(Vec::new(), |(_, value)| value.into_bytes())
        } else {
            unquote_bytes(&uncomment(&self.expanded(&text, true, cx, report)))
        };
        if newline && report.errors() == before && bytes.last() != Some(&b'\n') {
            bytes.push(b'\n');
        }
        // Who does not read any more misses nothing.
        let _ = match file {
            Some(mut file) => file.write_all(&bytes),
            None => crate::printing::to_stdout(&bytes),
        };
    }

    /// What is done where the script has ended, and what it returned.
    pub(super) fn complete(&mut self) -> (Status, String) {
        let last = self.program.instructions.get(self.at).map(|i| match (i.op, i.target) {
            (Op::Goto, Target::End(ending)) => Op::End(ending),
            (op, _) => op,
        });
        let value = match last {
            Some(Op::Return { .. }) => {
                self.program.variable(RETURNED).map_or(String::new(), |i| self.program.variables[i].1.clone())
            }
            Some(Op::End(Ending::End)) if self.kind == Kind::Packet => "0".to_owned(),
            _ => String::new(),
        };
        let status = match last {
            Some(Op::End(Ending::Error { .. })) => Status::Failed,
            Some(Op::End(Ending::Stop)) => Status::Stopped,
            _ => Status::Fine,
        };
        (status, value)
    }

    /// Whether the script has ended as `end` says.
    pub(super) fn ends(&self) -> bool {
        let last = self.program.instructions.get(self.at);
        last.is_some_and(|i| match i.op {
            Op::Goto => i.target == Target::End(Ending::End),
            op => op == Op::End(Ending::End),
        })
    }

    /// Moves the script to a label; the steps from there on are waited for anew.
    pub(super) fn go_to(&mut self, label: &str) -> bool {
        let Some(Target::At(at)) = self.program.label(label) else { return false };
        self.reset_waits(at, usize::MAX);
        self.at = at;
        true
    }
}

fn open(name: &str, append: bool) -> std::io::Result<File> {
    match append {
        true => File::options().append(true).create(true).open(name),
        false => File::create(name),
    }
}
