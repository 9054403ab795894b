//! Script and DriverManager.

mod compile;
mod expand;
mod format;
mod functions;
mod number;
mod report;
mod signals;
mod spec;
mod step;
mod text;

pub(super) use self::functions::without_number;
pub(super) use self::number::{general, real};
pub use self::signals::{SIGNALS, WatchSignals};
pub(crate) use self::spec::{DRIVER_MANAGER, SPEC};

use self::compile::{Op, Program};
use self::report::Report;
use self::signals::{kill, signal_number, watcher};
use self::spec::Reason;
use self::step::{By, Status};
use self::text::{shift, uncomment, words};
use causeway_engine::prelude::*;
use causeway_engine::spec::Access;
use causeway_engine::value::Raw;
use causeway_lang::args::unquote;
use causeway_lang::values::integer;
use std::sync::Arc;

/// The only timer.
const TIMER: u32 = 0;
/// Key of the driver script's name among what the elements of a router share.
const DRIVER: &str = "driver script";
/// When a script runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Active,
    Passive,
    Packet,
    Proxy,
    Driver,
    Signal,
}

/// A script. By default it is none: what stands in for one that is busy.
#[derive(Default)]
struct Script {
    kind: Kind,
    program: Program,
    /// The next instruction, or the one it waits at.
    at: usize,
    /// Steps so far.
    steps: i64,
    /// Whether it has yet to begin.
    begins: bool,
    /// Status of the last handler that it wrote.
    write_status: i32,
    /// The handler that runs it: its name, its parameters, whether it is being written.
    handler: String,
    args: String,
    written: bool,
    /// While a handler lets it go on: steps that were asked for meanwhile.
    asked: Option<i64>,
    signals: Vec<i32>,
    watcher: Option<Arc<Arc<dyn WatchSignals>>>,
}

fn build(conf: &mut Conf<'_>, kind: Option<Kind>) -> Result<Box<dyn Element>, Invalid> {
    let given = conf.keyword_given::<Raw>("TYPE").map(|raw| raw.0);
    let mut script = Script::default();
    script.kind = match (kind_of(given.as_deref().unwrap_or_default(), &mut script.signals), kind) {
        (Ok(Some(kind)), _) | (Ok(None), Some(kind)) => kind,
        (Ok(None), None) if conf.n_inputs() + conf.n_outputs() > 0 => Kind::Packet,
        (Ok(None), None) => Kind::Active,
        (Err(why), _) => return fail(conf, why),
    };
    if script.kind == Kind::Driver {
        let name = conf.name().clone();
        if conf.env.shared(DRIVER, || name.clone()).is_none_or(|first| *first != name) {
            return fail(conf, "router has more than one driver script");
        }
    }
    if script.kind == Kind::Packet && conf.n_inputs() == 0 {
        return fail(conf, "PACKET script must have inputs");
    } else if script.kind != Kind::Packet && conf.n_inputs() + conf.n_outputs() > 0 {
        return fail(conf, "ports allowed only on PACKET scripts");
    }
    let instructions = conf.rest();
    script.program = Program::new(instructions, script.kind == Kind::Driver, &mut |why| conf.error(why));
    if script.kind == Kind::Signal {
        script.watcher = watcher(conf);
    }
    conf.finish()?;
    Ok(Box::new(script))
}

fn fail(conf: &mut Conf<'_>, why: &str) -> Result<Box<dyn Element>, Invalid> {
    conf.error(why);
    Err(Invalid)
}

/// The kind that TYPE says, if it says one; with the numbers of signals.
fn kind_of(text: &str, signals: &mut Vec<i32>) -> Result<Option<Kind>, &'static str> {
    let words = words(text);
    let Some((word, rest)) = words.split_first() else { return Ok(None) };
    let kind = match word.as_str() {
        "ACTIVE" => Kind::Active,
        "PASSIVE" => Kind::Passive,
        "PACKET" | "PUSH" => Kind::Packet,
        "PROXY" => Kind::Proxy,
        "DRIVER" => Kind::Driver,
        "SIGNAL" => {
            let numbers: Option<Vec<i32>> = rest.iter().map(|word| signal_number(word)).collect();
            *signals = numbers.filter(|numbers| !numbers.is_empty()).ok_or("bad signal number")?;
            return Ok(Some(Kind::Signal));
        }
        _ => return Err("bad TYPE"),
    };
    if rest.is_empty() { Ok(Some(kind)) } else { Err("bad TYPE") }
}

impl Script {
    /// Runs it for a packet that came in by `input`; says by which output that leaves.
    fn run_packet(&mut self, input: usize, cx: &mut Cx<'_>) -> Option<usize> {
        let variable = self.program.add_variable("input");
        self.program.variables[variable].1 = input.to_string();
        self.at = 0;
        let mut report = Report::below(executing(cx));
        self.step(0, By::Jump, 0, cx, &mut report);
        let (_, output) = self.complete();
        integer(&output, 0, i32::MAX.into()).ok().and_then(|output| output.try_into().ok())
    }

    /// Carries out `step`, `goto` or `run`, called as `handler`; the value is what the script returns.
    fn run(&mut self, handler: &str, text: &str, write: bool, cx: &mut Cx<'_>) -> Result<String, Error> {
        (self.handler, self.written) = (handler.to_owned(), write);
        let data = uncomment(text);
        let (mut steps, mut by) = (0, By::Jump);
        let mut report = Report::kept();
        let mut done = Ok(());
        match handler {
            "goto" if !self.go_to(&data) => return Err(Error::new("jump to nonexistent label")),
            "goto" => {}
            "step" => match data.as_str() {
                "router" => (steps, by, report) = (1, By::Router, Report::plain()),
                "" => (steps, by) = (1, By::Step),
                number => match integer(number, i32::MIN.into(), i32::MAX.into()) {
                    Ok(number) => (steps, by) = (number as i64, By::Step),
                    Err(_) => done = Err(Error::new("syntax error")),
                },
            },
            _ => (self.at, self.args) = (0, text.to_owned()),
        }
        let done = done.and_then(|()| {
            self.go_on(handler == "step", steps, by, cx, &mut report);
            let (status, value) = self.complete();
            if self.ends() {
                self.await_signals(cx);
            }
            cx.set_status(status.number());
            if status != Status::Fine {
                self.args.clear();
            }
            let errors = report.into_kept();
            if status == Status::Failed {
                return Err(Error::new(errors));
            }
            cx.mention(&errors);
            Ok(value)
        });
        (self.handler, self.written) = (String::new(), false);
        done
    }

    /// Goes on by `steps`, and by those that are asked for meanwhile.
    fn go_on(&mut self, stepped: bool, steps: i64, by: By, cx: &mut Cx<'_>, report: &mut Report) {
        if let Some(asked) = &mut self.asked {
            *asked += if stepped { steps } else { 0 };
            return;
        }
        let (mut steps, mut by, mut jumps) = (steps, by, 0);
        while steps >= 0 {
            self.asked = Some(-1);
            jumps = self.step(steps, by, jumps, cx, report);
            (steps, by) = (self.asked.take().unwrap_or(-1), By::Step);
        }
        self.asked = None;
    }

    /// `get`, `set` and `shift`.
    fn of_variable(&mut self, handler: &str, text: &str) -> Result<String, Error> {
        let mut rest = text.to_owned();
        let mut name = shift(&mut rest);
        if name.is_empty() && handler == "shift" {
            name = "args".to_owned();
        }
        if name.is_empty() {
            return Err(Error::new("no variable"));
        }
        if !rest.is_empty() && handler != "set" {
            return Err(Error::new("too many arguments"));
        }
        let number = match handler {
            _ if name == "args" => None,
            "set" => Some(self.program.add_variable(&name)),
            _ => Some(
                self.program
                    .variable(&name)
                    .ok_or_else(|| Error::new(format!("undefined variable '{name}'")))?,
            ),
        };
        let value = match number {
            Some(number) => &mut self.program.variables[number].1,
            None => &mut self.args,
        };
        Ok(match handler {
            "get" => value.clone(),
            "shift" => shift(value),
            _ => {
                *value = rest;
                String::new()
            }
        })
    }

    /// Whether all handlers of a list can be read, or written.
    fn all_can(&mut self, handler: &str, text: &str, cx: &mut Cx<'_>) -> bool {
        words(text).iter().all(|name| {
            let found = cx.find_handler(self, &unquote(name));
            let access = found.ok().and_then(|(_, access)| access);
            access.is_some_and(|access| if handler == "readable" { access.reads() } else { access.writes() })
        })
    }

    /// The variables that it shows as handlers.
    fn exported(&self) -> impl Iterator<Item = (&str, &str)> {
        let exports =
            self.program.instructions.iter().filter(|i| matches!(i.op, Op::Init { export: true, .. }));
        exports
            .map(|i| &self.program.variables[i.number])
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Gives variables their first values and lets the script begin when it should.
    fn begin(&mut self, cx: &mut Cx<'_>, report: &mut Report) {
        for i in 0..self.program.instructions.len() {
            let Op::Init { unquote: unquoted, .. } = self.program.instructions[i].op else { continue };
            let text = self.program.instructions[i].text.clone();
            let value = self.expanded(&text, false, cx, report);
            let number = self.program.instructions[i].number;
            self.program.variables[number].1 = if unquoted { unquote(&value) } else { value };
        }
        if self.kind == Kind::Driver {
            cx.manage();
        }
        if !matches!(self.kind, Kind::Active | Kind::Driver) {
            return;
        }
        match self.program.instructions[0].op {
            Op::WaitTime => {
                self.at = 1;
                let text = self.program.instructions[0].text.clone();
                self.wait_for_time(&text, cx, report);
                self.at = 0;
            }
            Op::Initial => {
                self.begins = true;
                if self.kind == Kind::Driver {
                    cx.adjust_run_count(-1);
                } else {
                    let now_ns = cx.now_ns();
                    cx.set_timer(TIMER, now_ns);
                }
            }
            _ => {}
        }
    }

    /// Asks for its signals.
    fn await_signals(&self, cx: &Cx<'_>) {
        for &signal in &self.signals {
            let done = match &self.watcher {
                Some(watcher) => watcher.watch(signal, cx.name()),
                None => Err(Error::new("nobody watches for signals here")),
            };
            if let Err(why) = done {
                log::error!("{}: signal {signal}: {why}", cx.name());
            }
        }
    }
}

/// Below which line the errors of a script stand.
fn executing(cx: &Cx<'_>) -> String {
    format!("While executing '{} :: {}':", cx.name(), cx.class())
}

impl Element for Script {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let mut report = Report::kept();
        self.begin(cx, &mut report);
        report.into_kept().lines().for_each(|error| cx.tell(error));
        Ok(())
    }

    fn commit(&mut self, cx: &mut Cx<'_>) {
        self.await_signals(cx);
    }

    fn packet(&mut self, port: usize, _packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        match self.run_packet(port, cx).filter(|output| *output < cx.n_outputs()) {
            Some(output) => Verdict::Out(output),
            None => Verdict::drop(Reason::NoOutput),
        }
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        let mut report = Report::below(executing(cx));
        self.step(1, By::Timer, 0, cx, &mut report);
    }

    fn own_handlers(&self) -> Vec<(String, Access)> {
        self.exported().map(|(name, _)| (name.to_owned(), Access::Read)).collect()
    }

    fn own_handler(&self, name: &str) -> Option<Access> {
        let exported = self.exported().any(|(own, _)| own == name).then_some(Access::Read);
        exported.or((self.kind == Kind::Proxy).then_some(Access::ReadParamWrite))
    }

    fn read(&mut self, handler: &str, arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        match handler {
            "run" => self.run(handler, arg, false, cx),
            "get" | "shift" => self.of_variable(handler, arg),
            "readable" | "writable" => Ok(self.all_can(handler, arg, cx).to_string()),
            "kill" => kill(arg),
            "now" => {
                let mut text = String::new();
                crate::printing::contents::timestamp(&mut text, cx.now_ns());
                Ok(text)
            }
            _ => match functions::call(handler, arg, &mut |range| cx.rng().u32(range)) {
                Some(value) => value,
                None => {
                    let exported = self.exported().find(|(name, _)| *name == handler);
                    match exported.map(|(_, value)| value.to_owned()) {
                        Some(value) => Ok(value),
                        None => self.run(handler, arg, false, cx),
                    }
                }
            },
        }
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        match handler {
            "set" => self.of_variable(handler, value).map(drop),
            _ => self.run(handler, value, true, cx).map(drop),
        }
    }
}
