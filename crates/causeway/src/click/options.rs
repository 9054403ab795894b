//! Click's command line.

use crate::load::{self, Source};
use anyhow::{Result, anyhow, bail};
use causeway_engine::clock::SIMULATED_START_NS;
use std::path::PathBuf;

const USAGE: &str = "\
Usage: click [OPTION]... [ROUTERFILE] [PARAM=VALUE]...

  -f, --file FILE               read the configuration from FILE; - is standard input
  -e, --expression TEXT         take TEXT as the configuration
  -j, --threads N               run N workers
  -a, --affinity[=N]            pin the workers to processors, the first to N (0)
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

/// What the command line asks for.
#[derive(Default)]
pub(super) struct Invocation {
    pub(super) source: Option<Source>,
    pub(super) params: Vec<(String, String)>,
    pub(super) threads: usize,
    /// The processor of the first worker, if they are pinned.
    pub(super) affinity: Option<usize>,
    pub(super) ports: Vec<String>,
    pub(super) unix_sockets: Vec<PathBuf>,
    pub(super) reconfigurable: bool,
    pub(super) handlers: Vec<String>,
    pub(super) exit_handler: Option<String>,
    pub(super) output: Option<String>,
    pub(super) quit: bool,
    pub(super) time: bool,
    /// Whether it is not said that a configuration is empty; what elements warn of Click says all the same.
    pub(super) no_warnings: bool,
    pub(super) simulated_ns: Option<u64>,
}

/// A command line, understood or not.
pub(super) enum Parsed {
    Run(Box<Invocation>),
    Print(String),
    Wrong(anyhow::Error),
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
    ('\0', "no-cpu"),
    ('a', "affinity"),
    ('\0', "cpu"),
];

/// Reads the command line.
pub(super) fn parse(args: &[String]) -> Parsed {
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
fn in_full(name: &str) -> Result<&'static str> {
    let all = || WITH_VALUE.iter().chain(FLAGS).map(|(_, long)| *long);
    if let Some(exact) = all().find(|long| *long == name) {
        return Ok(exact);
    }
    let mut found = all().filter(|long| long.starts_with(name));
    match (found.next(), found.next()) {
        (Some(long), None) => Ok(long),
        (Some(_), Some(_)) => bail!("click: option '--{name}' is ambiguous"),
        (None, _) => bail!("click: unrecognized option '--{name}'"),
    }
}

/// Short options may stand together; the rest of the word, or the next one, is the value of one that takes one.
fn cluster(
    invocation: &mut Invocation,
    word: &str,
    args: &mut std::slice::Iter<'_, String>,
) -> Result<Option<String>> {
    for (i, c) in word.char_indices() {
        let rest = &word[i + c.len_utf8()..];
        if let Some((_, long)) = WITH_VALUE.iter().find(|(short, _)| *short == c) {
            let value = (!rest.is_empty()).then(|| rest.to_owned());
            if value.is_none() && args.len() == 0 {
                bail!("click: '-{c}' requires an argument");
            }
            return option(invocation, long, value, args);
        }
        let Some((_, long)) = FLAGS.iter().find(|(short, _)| *short == c) else {
            bail!("click: unrecognized option '-{c}'");
        };
        // A number behind it is its value.
        let value =
            (*long == "affinity" && rest.starts_with(|c: char| c.is_ascii_digit())).then(|| rest.to_owned());
        let is_last = value.is_some();
        if let Some(text) = option(invocation, long, value, args)? {
            return Ok(Some(text));
        }
        if is_last {
            break;
        }
    }
    Ok(None)
}

fn option(
    i: &mut Invocation,
    name: &str,
    value: Option<String>,
    args: &mut std::slice::Iter<'_, String>,
) -> Result<Option<String>> {
    let takes_value = WITH_VALUE.iter().any(|(_, long)| *long == name);
    let text = match (takes_value, value) {
        (true, Some(v)) => v,
        (true, None) => {
            args.next().cloned().ok_or_else(|| anyhow!("click: '--{name}' requires an argument"))?
        }
        (false, v) => v.unwrap_or_default(),
    };
    match name {
        "file" | "expression" => {
            set_source(i, if name == "file" { file(&text) } else { Source::Text("config", text) })?
        }
        "threads" => {
            let n = text.parse().ok().filter(|n| (1..=1_024).contains(n));
            i.threads =
                n.ok_or_else(|| anyhow!("click: '--threads' expects a number from 1, not '{text}'"))?;
        }
        "port" if !is_port(&text) => {
            bail!("click: '--port' expects a TCP port number, not '{text}'");
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
        "no-warnings" => i.no_warnings = true,
        "no-affinity" | "no-cpu" => i.affinity = None,
        "affinity" | "cpu" => {
            let first = if text.is_empty() { Ok(0) } else { text.parse() };
            let wrong = |_| anyhow!("click: '--{name}' expects the number of a processor, not '{text}'");
            i.affinity = Some(first.map_err(wrong)?);
        }
        "simtime" | "simulation-time" => {
            let seconds = if text.is_empty() {
                None
            } else {
                Some(
                    text.parse::<f64>()
                        .map_err(|_| anyhow!("click: '--simtime' expects a time in seconds, not '{text}'"))?,
                )
            };
            i.simulated_ns = Some(seconds.map_or(SIMULATED_START_NS, |s| (s * 1e9) as u64));
        }
        "version" => return Ok(Some(format!("click (Causeway) {}\n", env!("CARGO_PKG_VERSION")))),
        "help" => return Ok(Some(USAGE.to_owned())),
        _ => bail!("click: unrecognized option '--{name}'"),
    }
    Ok(None)
}

/// Whether `text` is a TCP port, with an address in front or a `+` behind.
fn is_port(text: &str) -> bool {
    let port = text.strip_suffix('+').unwrap_or(text);
    port.parse::<u16>().is_ok() || port.parse::<std::net::SocketAddr>().is_ok()
}

fn file(name: &str) -> Source {
    if name == "-" { Source::Stdin } else { Source::File(name.into()) }
}

fn set_source(i: &mut Invocation, source: Source) -> Result<()> {
    match i.source.replace(source) {
        None => Ok(()),
        Some(_) => bail!("router configuration specified twice"),
    }
}

fn positional(i: &mut Invocation, arg: &str) -> Result<Option<String>> {
    let is_name = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match arg.split_once('=').filter(|(n, _)| is_name(n)) {
        Some((name, value)) => i.params.push((name.to_owned(), value.to_owned())),
        None => set_source(i, file(arg))?,
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Invocation {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&args) {
            Parsed::Run(i) => *i,
            Parsed::Print(text) => panic!("{text}"),
            Parsed::Wrong(why) => panic!("{why}"),
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
        let first = |line: &str| parsed(line).affinity;
        assert_eq!(
            (first("-q"), first("-qa"), first("--affinity"), first("--cpu=3")),
            (None, Some(0), Some(0), Some(3))
        );
        assert_eq!((first("-qa2"), first("-a --no-affinity")), (Some(2), None));
        assert_eq!(parsed("--simtime").simulated_ns, Some(SIMULATED_START_NS));
        assert_eq!(parsed("--simtime=2").simulated_ns, Some(2_000_000_000));
    }

    #[test]
    fn wrong_options_are_named() {
        let wrong = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            match parse(&args) {
                Parsed::Wrong(why) => why.to_string(),
                _ => panic!("accepted: {line}"),
            }
        };
        assert!(wrong("--frob").contains("'--frob'"));
        assert!(wrong("--h x").contains("ambiguous"));
        assert!(wrong("-Z").contains("'-Z'"));
        assert!(wrong("-h").contains("requires an argument"));
        assert!(wrong("-j none").contains("'none'"));
        assert!(wrong("--affinity=x").contains("number of a processor, not 'x'"));
        assert!(wrong("a b").contains("twice"));
    }
}
