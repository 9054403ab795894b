//! `click`: the same router with Click's options.

mod asked;
mod options;

use crate::load::{self, Source, Style};
use crate::logger::{self, answer};
use crate::output;
use crate::session::{End, Session, Setup};
use anyhow::Result;
use asked::finish;
use causeway_engine::{Defaults, Options, PlanElement};
use causeway_lang::args::quote;
use options::{Invocation, Parsed, parse};
use std::fmt::Display;
use std::process::ExitCode;

/// Runs as `click` with these arguments.
pub fn main(args: &[String]) -> Result<ExitCode> {
    logger::set_style(logger::Style::Click);
    match parse(args) {
        Parsed::Print(text) => {
            output::print(text)?;
            Ok(ExitCode::SUCCESS)
        }
        Parsed::Wrong(why) => {
            answer(&format!(
                "{why}\nUsage: click [OPTION]... [ROUTERFILE]\nTry 'click --help' for more information.\n"
            ));
            Ok(ExitCode::FAILURE)
        }
        Parsed::Run(invocation) => Ok(run(*invocation)),
    }
}

fn run(i: Invocation) -> ExitCode {
    let library = causeway_elements::library();
    let source = i.source.clone().unwrap_or(Source::Stdin);
    let loaded = match load::load(&source, &library, &i.params, Style::Click) {
        Ok(loaded) => loaded,
        Err(why) => return fail(why),
    };
    let flat = i.output.as_ref().map(|output| (output, loaded.flat()));
    // A control socket is an element to Click, so that a router with one runs.
    let empty = loaded.is_empty() && i.ports.is_empty() && i.unix_sockets.is_empty();
    if empty && !i.quit && !i.no_warnings {
        load::warn_empty(&source);
    }
    let options = Options {
        workers: i.threads,
        processors: i.affinity.map_or_else(Vec::new, |first| (first..).take(i.threads).collect()),
        simulated_ns: i.simulated_ns,
        defaults: Defaults::Click,
        ..Options::default()
    };
    let setup = Setup {
        library,
        params: i.params.clone(),
        options,
        reconfigurable: i.reconfigurable,
        fixed: None,
        prepare: |plan| plan,
        extra: control_sockets(&i),
        driver: None,
    };
    let mut session = match Session::start(loaded, setup) {
        Ok(session) => session,
        Err(why) => return fail(why),
    };
    if let Some((output, flat)) = flat {
        let written = if output == "-" { output::print(flat) } else { std::fs::write(output, flat) };
        if let Err(e) = written {
            return fail(format!("{output}: {e}\n"));
        }
    }
    let (start, before) = (std::time::Instant::now(), processor_time_s());
    let mut code = ExitCode::SUCCESS;
    if !i.quit && !empty {
        match session.run(|_| ()) {
            Ok(End::Broken) => code = ExitCode::FAILURE,
            Ok(End::Stopped | End::Signal(_)) => {}
            Err(e) => return fail(format!("click: {e:#}\n")),
        }
    }
    if i.time {
        // Who does not read it misses nothing else.
        let _ = output::print(times(before, start.elapsed()));
    }
    let code = finish(&i, &mut session, code);
    if session.close().is_ok() { code } else { ExitCode::FAILURE }
}

/// Seconds of a processor that the process has taken: of its own, and of the kernel's for it.
fn processor_time_s() -> [f64; 2] {
    // The kernel counts in hundredths here, whatever its own clock is.
    const TICKS_PER_S: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |n: usize| behind_name.split_whitespace().nth(n).and_then(|t| t.parse().ok()).unwrap_or(0.0);
    [11, 12].map(|n| ticks(n) / TICKS_PER_S)
}

/// How long the run took, as csh(1) says it: processor times since `before`, and minutes and seconds.
fn times(before: [f64; 2], elapsed: std::time::Duration) -> String {
    let now = processor_time_s();
    let [user, system] = [0, 1].map(|i| now[i] - before[i]);
    let seconds = elapsed.as_secs_f64();
    format!("{user:.3}u {system:.3}s {}:{:05.2}\n", (seconds / 60.0) as u64, seconds % 60.0)
}

fn fail(why: impl Display) -> ExitCode {
    answer(&why.to_string());
    ExitCode::FAILURE
}

/// What -p and -u ask for, as the elements that Click makes of them.
fn control_sockets(i: &Invocation) -> Vec<PlanElement> {
    let ports = i.ports.iter().map(|port| {
        // On loopback, unless an address is given.
        let local = if port.contains(':') { "" } else { ", LOCALHOST true" };
        format!("TCP, {port}{local}")
    });
    let files = i.unix_sockets.iter().map(|path| format!("UNIX, {}", quote(&path.display().to_string())));
    let named = |(n, config): (usize, String)| PlanElement {
        name: "click_driver@@ControlSocket".to_owned() + &if n > 0 { format!("@{n}") } else { String::new() },
        class: "ControlSocket".to_owned(),
        config,
        landmark: "click".to_owned(),
        span: None,
        pulled_inputs: Vec::new(),
        pulled_outputs: Vec::new(),
    };
    ports.chain(files).enumerate().map(named).collect()
}
