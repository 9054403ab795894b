//! `click`: the same router with Click's options.

mod asked;
mod options;

use crate::control::{Listener, serve};
use crate::load::{self, Source, Style};
use crate::logger::{self, answer};
use crate::output;
use crate::session::{End, Session, Setup};
use anyhow::{Result, bail};
use asked::finish;
use causeway_engine::{Defaults, Options};
use options::{Invocation, Parsed, parse};
use std::net::{Ipv4Addr, SocketAddr};
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
            answer(&format!("click: {why}\nTry 'click --help' for more information.\n"));
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
        Err(text) => return fail(&text),
    };
    let flat = i.output.as_ref().map(|output| (output, loaded.flat()));
    // A control socket is an element to Click, so that a router with one runs.
    let empty = loaded.is_empty() && i.ports.is_empty() && i.unix_sockets.is_empty();
    if empty && !i.quit {
        load::warn_empty(&source);
    }
    let options = Options {
        workers: i.threads,
        simulated_ns: i.simulated_ns,
        defaults: Defaults::Click,
        ..Options::default()
    };
    let setup = Setup {
        library,
        params: i.params.clone(),
        options,
        reconfigurable: i.reconfigurable,
        prepare: |plan| plan,
    };
    let mut session = match Session::start(loaded, setup) {
        Ok(session) => session,
        Err(text) => return fail(&text),
    };
    if let Some((output, flat)) = flat {
        let written = if output == "-" { output::print(flat) } else { std::fs::write(output, flat) };
        if let Err(e) = written {
            return fail(&format!("{output}: {e}\n"));
        }
    }
    let listeners = match listen(&i, &session) {
        Ok(listeners) => listeners,
        Err(e) => return fail(&format!("click: {e}\n")),
    };
    let (start, before) = (std::time::Instant::now(), processor_time_s());
    let mut code = ExitCode::SUCCESS;
    if !i.quit && !empty {
        match session.run() {
            Ok(End::Broken) => code = ExitCode::FAILURE,
            Ok(End::Stopped | End::Signal(_)) => {}
            Err(e) => return fail(&format!("click: {e:#}\n")),
        }
    }
    if i.time {
        answer(&times(before, start.elapsed()));
    }
    drop(listeners);
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

fn fail(text: &str) -> ExitCode {
    answer(text);
    ExitCode::FAILURE
}

fn listen(i: &Invocation, session: &Session) -> Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for port in &i.ports {
        let (address, or_next) = address(port)?;
        let listener = Listener::tcp(address, or_next).map_err(|e| anyhow::anyhow!("port {port}: {e}"))?;
        if let Listener::Tcp(socket) = &listener {
            say_who_may_connect(socket.local_addr()?);
        }
        listeners.push(listener);
    }
    for path in &i.unix_sockets {
        let listener = Listener::unix(path).map_err(|e| anyhow::anyhow!("{}: {e}", path.display()))?;
        listeners.push(listener);
    }
    for listener in &listeners {
        serve(listener, session.desk())?;
    }
    Ok(listeners)
}

/// The address that `-p` names, which is on loopback unless it is given in full, and whether the next free port will
/// do.
fn address(text: &str) -> Result<(SocketAddr, bool)> {
    let (place, or_next) = text.strip_suffix('+').map_or((text, false), |t| (t, true));
    let loopback = place.parse().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    match loopback.or_else(|_| place.parse()) {
        Ok(address) => Ok((address, or_next)),
        Err(_) => bail!("'{text}' is not a port number or ADDRESS:PORT"),
    }
}

/// The protocol knows no passwords, so it matters whom it is open to.
fn say_who_may_connect(address: SocketAddr) {
    if address.ip().is_loopback() {
        log::info!("control port {address}, for this machine only");
    } else {
        log::warn!("control port {address}, for every machine that reaches it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_ports_are_on_loopback_unless_an_address_is_given() {
        let of = |text: &str| address(text).map(|(a, next)| (a.to_string(), next)).map_err(|e| e.to_string());
        assert_eq!(of("7000"), Ok(("127.0.0.1:7000".to_owned(), false)));
        assert_eq!(of("7000+"), Ok(("127.0.0.1:7000".to_owned(), true)));
        assert_eq!(of("192.0.2.1:7000+"), Ok(("192.0.2.1:7000".to_owned(), true)));
        assert_eq!(of("[::]:7000"), Ok(("[::]:7000".to_owned(), false)));
        for wrong in ["", "x", "70000", "192.0.2.1", "7000++"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
