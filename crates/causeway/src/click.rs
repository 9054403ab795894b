//! `click`: the same router with Click's options.

use crate::control::{Listener, Question, serve};
use crate::load::{self, Source, Style};
use crate::logger::{self, answer};
use crate::output;
use crate::session::{End, Session, Setup};
use anyhow::{Result, bail};
use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::handler::HandlerError;
use causeway_engine::{Defaults, Options};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: click [OPTION]... [ROUTERFILE] [PARAM=VALUE]...

  -f, --file FILE               read the configuration from FILE; - is standard input
  -e, --expression TEXT         take TEXT as the configuration
  -j, --threads N               run N workers
  -p, --port [ADDRESS:]PORT     listen for control connections on loopback port PORT, or at ADDRESS; PORT+ takes the
                                next free one
  -u, --unix-socket FILE        listen for control connections on a UNIX socket
  -R, --allow-reconfigure       provide the write handler 'hotconfig'
  -h, --handler [ELEMENT.]NAME  print a read handler after the run; may be repeated
  -x, --exit-handler [E.]NAME   take the exit status from a read handler
  -o, --output FILE             write the flat configuration to FILE; - is standard output
  -q, --quit                    initialise, call handlers, and do not run
  -t, --time                    say how long the run took
  -w, --no-warnings             print no warnings
      --simtime[=T]             run in simulated time, from T seconds
  -C, --clickpath PATH          look for libraries along PATH
      --help                    show this
  -v, --version                 show the version
";

#[derive(Default)]
struct Invocation {
    source: Option<Source>,
    params: Vec<(String, String)>,
    threads: usize,
    ports: Vec<String>,
    unix_sockets: Vec<PathBuf>,
    reconfigurable: bool,
    handlers: Vec<String>,
    exit_handler: Option<String>,
    output: Option<String>,
    quit: bool,
    time: bool,
    simulated_ns: Option<u64>,
}

enum Parsed {
    Run(Box<Invocation>),
    Print(String),
    Wrong(String),
}

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

/// Options that take a value, by their short and long names.
const WITH_VALUE: &[(char, &str)] = &[
    ('f', "file"),
    ('e', "expression"),
    ('j', "threads"),
    ('p', "port"),
    ('u', "unix-socket"),
    ('h', "handler"),
    ('x', "exit-handler"),
    ('o', "output"),
    ('C', "clickpath"),
];
/// Options that take none.
const FLAGS: &[(char, &str)] = &[
    ('R', "allow-reconfigure"),
    ('q', "quit"),
    ('t', "time"),
    ('w', "no-warnings"),
    ('v', "version"),
    ('\0', "help"),
    ('\0', "simtime"),
    ('\0', "simulation-time"),
    ('\0', "no-affinity"),
    ('a', "affinity"),
];

fn parse(args: &[String]) -> Parsed {
    let mut invocation = Invocation { threads: 1, ..Invocation::default() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let done = if let Some(long) = arg.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v.to_owned())));
            in_full(name).and_then(|name| option(&mut invocation, name, value, &mut args))
        } else if arg.len() > 1 && arg.starts_with('-') {
            cluster(&mut invocation, &arg[1..], &mut args)
        } else {
            positional(&mut invocation, arg)
        };
        match done {
            Ok(None) => {}
            Ok(Some(text)) => return Parsed::Print(text),
            Err(why) => return Parsed::Wrong(why),
        }
    }
    Parsed::Run(Box::new(invocation))
}

/// The long option that begins with `name`, if it is one alone.
fn in_full(name: &str) -> Result<&'static str, String> {
    let all = || WITH_VALUE.iter().chain(FLAGS).map(|(_, long)| *long);
    if let Some(exact) = all().find(|long| *long == name) {
        return Ok(exact);
    }
    let mut found = all().filter(|long| long.starts_with(name));
    match (found.next(), found.next()) {
        (Some(long), None) => Ok(long),
        (Some(_), Some(_)) => Err(format!("option '--{name}' is ambiguous")),
        (None, _) => Err(format!("unrecognized option '--{name}'")),
    }
}

/// Short options may stand together; the rest of the word, or the next one, is the value of one that takes one.
fn cluster(
    invocation: &mut Invocation,
    word: &str,
    args: &mut std::slice::Iter<'_, String>,
) -> Result<Option<String>, String> {
    for (i, c) in word.char_indices() {
        let rest = &word[i + c.len_utf8()..];
        if let Some((_, long)) = WITH_VALUE.iter().find(|(short, _)| *short == c) {
            let value = (!rest.is_empty()).then(|| rest.to_owned());
            return option(invocation, long, value, args);
        }
        let Some((_, long)) = FLAGS.iter().find(|(short, _)| *short == c) else {
            return Err(format!("unrecognized option '-{c}'"));
        };
        if let Some(text) = option(invocation, long, None, args)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

fn option(
    i: &mut Invocation,
    name: &str,
    value: Option<String>,
    args: &mut std::slice::Iter<'_, String>,
) -> Result<Option<String>, String> {
    let takes_value = WITH_VALUE.iter().any(|(_, long)| *long == name);
    let text = match (takes_value, value) {
        (true, Some(v)) => v,
        (true, None) => args.next().cloned().ok_or(format!("option '--{name}' requires an argument"))?,
        (false, v) => v.unwrap_or_default(),
    };
    match name {
        "file" | "expression" => {
            set_source(i, if name == "file" { file(&text) } else { Source::Text("config", text) })?
        }
        "threads" => {
            let n = text.parse().ok().filter(|n| (1..=1_024).contains(n));
            i.threads = n.ok_or(format!("option '--threads' requires a number from 1, not '{text}'"))?;
        }
        "port" => i.ports.push(text),
        "unix-socket" => i.unix_sockets.push(text.into()),
        "handler" => i.handlers.push(text),
        "exit-handler" => i.exit_handler = Some(text),
        "output" => i.output = Some(text),
        "clickpath" => load::set_library_path(text),
        "allow-reconfigure" => i.reconfigurable = true,
        "quit" => i.quit = true,
        "time" => i.time = true,
        "no-warnings" => logger::hide_warnings(),
        "no-affinity" | "affinity" => {}
        "simtime" | "simulation-time" => {
            let seconds = if text.is_empty() {
                None
            } else {
                Some(text.parse::<f64>().map_err(|_| format!("'{text}' is not a time in seconds"))?)
            };
            i.simulated_ns = Some(seconds.map_or(SIMULATED_START_NS, |s| (s * 1e9) as u64));
        }
        "version" => return Ok(Some(format!("click (Causeway) {}\n", env!("CARGO_PKG_VERSION")))),
        "help" => return Ok(Some(USAGE.to_owned())),
        _ => return Err(format!("unrecognized option '--{name}'")),
    }
    Ok(None)
}

fn file(name: &str) -> Source {
    if name == "-" { Source::Stdin } else { Source::File(name.into()) }
}

fn set_source(i: &mut Invocation, source: Source) -> Result<(), String> {
    match i.source.replace(source) {
        None => Ok(()),
        Some(_) => Err("router configuration specified twice".to_owned()),
    }
}

fn positional(i: &mut Invocation, arg: &str) -> Result<Option<String>, String> {
    let is_name = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match arg.split_once('=').filter(|(n, _)| is_name(n)) {
        Some((name, value)) => i.params.push((name.to_owned(), value.to_owned())),
        None => set_source(i, file(arg))?,
    }
    Ok(None)
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

/// Prints the handlers asked for and finds the exit status.
fn finish(i: &Invocation, session: &mut Session, code: ExitCode) -> ExitCode {
    let mut wanted = Vec::new();
    // A pattern may stand for many, and so may several options: then each value has its name above it.
    let headers = i.handlers.len() > 1 || i.handlers.iter().any(|h| !is_exact(session, h));
    let mut code = code;
    for handler in &i.handlers {
        match expand(session, handler) {
            Some(names) => wanted.extend(names),
            None => {
                let (element, _) = handler.rsplit_once('.').unwrap_or((handler, ""));
                answer(&why_not(element, &HandlerError::NoElement(element.to_owned())));
                code = ExitCode::FAILURE;
            }
        }
    }
    let mut values = Vec::new();
    for handler in wanted {
        match session.answer(Question::Read(handler.clone(), String::new())) {
            Ok(value) => values.push((handler, value)),
            Err(e) => {
                answer(&why_not(&handler, &e));
                code = ExitCode::FAILURE;
            }
        }
    }
    for (handler, value) in values {
        let newline = if value.ends_with('\n') { "" } else { "\n" };
        let printed = match headers {
            true => output::print(format_args!("{handler}:\n{value}{newline}\n")),
            false => output::print(format_args!("{value}{newline}")),
        };
        if printed.is_err() {
            break;
        }
    }
    match &i.exit_handler {
        Some(handler) => exit_status(session, handler),
        None => code,
    }
}

/// Whether `handler` names one by itself, not by a pattern or a class.
fn is_exact(session: &Session, handler: &str) -> bool {
    handler.rsplit_once('.').is_none_or(|(pattern, _)| {
        pattern.is_empty()
            || session.router().plan().find(pattern).is_some()
            || pattern.parse::<usize>().is_ok()
    })
}

/// Why `handler` cannot be read, in Click's words.
fn why_not(handler: &str, error: &HandlerError) -> String {
    match error {
        HandlerError::NoElement(element) => format!("no element '{element}'\n"),
        HandlerError::NoHandler(_) | HandlerError::WriteOnly(_) => format!("no '{handler}' read handler\n"),
        other => format!("{other}\n"),
    }
}

/// The handlers that `handler` names: itself, or those of every element that a glob or a class name stands for.
fn expand(session: &Session, handler: &str) -> Option<Vec<String>> {
    let Some((pattern, name)) = handler.rsplit_once('.') else { return Some(vec![handler.to_owned()]) };
    let plan = session.router().plan();
    if is_exact(session, handler) {
        return Some(vec![handler.to_owned()]);
    }
    let is_glob = pattern.contains(['*', '?', '[']);
    let hit = |e: &&causeway_engine::PlanElement| match is_glob {
        true => glob(pattern, &e.name),
        false => e.class == pattern,
    };
    let names: Vec<String> = plan.elements.iter().filter(hit).map(|e| format!("{}.{name}", e.name)).collect();
    (!names.is_empty()).then_some(names)
}

/// A part of a pattern.
enum Part {
    /// `*`
    Any,
    /// `?`, `[ab]`, `[!a-z]` or a character by itself: one of these ranges, or none of them.
    One(Vec<(char, char)>, bool),
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = pattern.chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(c) = rest.next() {
        parts.push(match c {
            '*' => Part::Any,
            '?' => Part::One(Vec::new(), false),
            '[' => {
                let negated = rest.next_if(|&c| c == '!' || c == '^').is_some();
                let mut ranges = Vec::new();
                while let Some(first) = rest.next().filter(|&c| c != ']') {
                    let last = rest.next_if_eq(&'-').and_then(|_| rest.next_if(|&c| c != ']'));
                    ranges.push((first, last.unwrap_or(first)));
                }
                Part::One(ranges, !negated)
            }
            c => Part::One(vec![(c, c)], true),
        });
    }
    parts
}

/// Whether `text` matches a pattern of `*`, `?` and `[…]`.
fn glob(pattern: &str, text: &str) -> bool {
    let p = parts(pattern);
    // Reachable positions in the pattern, text character by text character.
    let close = |mut set: Vec<bool>| {
        for i in 0..p.len() {
            if set[i] && matches!(p[i], Part::Any) {
                set[i + 1] = true;
            }
        }
        set
    };
    let mut set = vec![false; p.len() + 1];
    set[0] = true;
    set = close(set);
    for c in text.chars() {
        let mut next = vec![false; p.len() + 1];
        for i in (0..p.len()).filter(|&i| set[i]) {
            match &p[i] {
                Part::Any => next[i] = true,
                Part::One(ranges, among) => {
                    next[i + 1] |= ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)) == *among;
                }
            }
        }
        set = close(next);
    }
    set[p.len()]
}

/// The exit status when the handler that is to give it does not.
const NO_STATUS: u8 = 255;

fn exit_status(session: &mut Session, handler: &str) -> ExitCode {
    let failed = |text: &str| {
        answer(text);
        ExitCode::from(NO_STATUS)
    };
    match session.answer(Question::Read(handler.to_owned(), String::new())) {
        Ok(value) => match (value.trim(), value.trim().parse::<i64>()) {
            ("true", _) => ExitCode::SUCCESS,
            ("false", _) => ExitCode::FAILURE,
            (_, Ok(n)) => ExitCode::from(n as u8),
            _ => failed("exit handler value should be integer\n"),
        },
        Err(e) => failed(&why_not(handler, &e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Invocation {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&args) {
            Parsed::Run(i) => *i,
            Parsed::Print(t) | Parsed::Wrong(t) => panic!("{t}"),
        }
    }

    #[test]
    fn short_options_cluster_and_take_values_in_clicks_ways() {
        let i = parsed("-qh c.count -oout -j2 x.click A=1 -Rp 7000+");
        assert!(i.quit && i.reconfigurable && i.threads == 2);
        assert_eq!(
            (i.handlers, i.output.as_deref(), i.ports),
            (vec!["c.count".into()], Some("out"), vec!["7000+".into()])
        );
        assert_eq!(i.params, [("A".to_owned(), "1".to_owned())]);
        assert!(matches!(i.source, Some(Source::File(f)) if f.ends_with("x.click")));
        let short = parsed("--hand c.count --quit --thr=3");
        assert_eq!((short.handlers, short.quit, short.threads), (vec!["c.count".into()], true, 3));
        assert_eq!(parsed("--simtime").simulated_ns, Some(SIMULATED_START_NS));
        assert_eq!(parsed("--simtime=2").simulated_ns, Some(2_000_000_000));
    }

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

    #[test]
    fn wrong_options_are_named() {
        let wrong = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            match parse(&args) {
                Parsed::Wrong(t) => t,
                _ => panic!("accepted: {line}"),
            }
        };
        assert!(wrong("--frob").contains("'--frob'"));
        assert!(wrong("--h x").contains("ambiguous"));
        assert!(wrong("-Z").contains("'-Z'"));
        assert!(wrong("-h").contains("requires an argument"));
        assert!(wrong("-j none").contains("'none'"));
        assert!(wrong("a b").contains("twice"));
    }

    #[test]
    fn globs_match_whole_names() {
        for (pattern, text, yes) in [
            ("q*", "q1", true),
            ("*", "", true),
            ("q?", "q12", false),
            ("a*b*c", "axxbyc", true),
            ("*x", "xy", false),
            ("q[ab]", "qa", true),
            ("q[ab]", "qc", false),
            ("q[!a-c]*", "qd1", true),
            ("q[^a-c]*", "qb1", false),
            ("q[", "q", false),
        ] {
            assert_eq!(glob(pattern, text), yes, "{pattern} {text}");
        }
    }
}
