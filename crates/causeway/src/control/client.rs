//! The other end: what `causeway read` and `causeway write` speak.

use super::record::{self, Record};
use super::watch::{Request, Watch};
use super::{run_dir, run_dirs};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Statuses of what is not there (Click's ControlSocket).
const NO_ELEMENT: &str = "510";
const NO_HANDLER: &str = "511";

/// How long an answer may take: a router that has many routes to read or a graph to build answers within seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to a running router.
pub struct Client {
    input: BufReader<UnixStream>,
    output: UnixStream,
}

impl Client {
    /// Connects to the router at `socket`, or to the only one that can be meant.
    pub fn connect(socket: Option<&Path>) -> Result<Client> {
        let path = match socket {
            Some(path) => path.to_owned(),
            None => only_socket()?,
        };
        let stream = UnixStream::connect(&path).with_context(|| {
            format!(
                "no router answers at {}; `causeway run` and `causeway up` say where theirs is",
                path.display()
            )
        })?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut client = Client { input: BufReader::new(stream.try_clone()?), output: stream };
        client.line()?;
        Ok(client)
    }

    /// Reads a handler.
    pub fn read(&mut self, handler: &str, argument: &str) -> Result<String> {
        write!(self.output, "READDATA {handler} {}\r\n{argument}", argument.len())?;
        self.status()?;
        let line = self.line()?;
        let Some(n) = line.strip_prefix("DATA ").and_then(|n| n.trim().parse::<u64>().ok()) else {
            bail!("the router answered '{}', which is not the protocol", line.trim());
        };
        let mut data = Vec::new();
        self.input.by_ref().take(n).read_to_end(&mut data).map_err(silent)?;
        Ok(String::from_utf8_lossy(&data).into_owned())
    }

    /// Writes a handler.
    pub fn write(&mut self, handler: &str, value: &str) -> Result<()> {
        write!(self.output, "WRITEDATA {handler} {}\r\n{value}", value.len())?;
        // A router that stops may be gone before it has answered, and gone is what it was asked to be.
        if handler == "stop" && self.input.fill_buf().map_or(true, <[u8]>::is_empty) {
            return Ok(());
        }
        self.status()
    }

    /// Watches packets, for as long as `time` if that is given. Each item is a JSON object, or null as a sign of life;
    /// an error is what the router says, or that it is gone.
    pub fn watch(
        mut self,
        watch: Watch,
        time: Option<Duration>,
    ) -> Result<impl Iterator<Item = Result<Value>>> {
        let limit = time.map(|time| Instant::now() + time);
        self.output.write_all(Request { watch, time }.to_line().as_bytes())?;
        Ok(std::iter::from_fn(move || {
            if limit.is_some_and(|limit| Instant::now() >= limit) {
                return None;
            }
            Some(self.line().and_then(|line| {
                let value = match line.trim() {
                    "" => {
                        // A sign of life for one. Whether the router is still there is seen by reading.
                        let _ = self.output.write_all(b"\n");
                        return Ok(Value::Null);
                    }
                    text => serde_json::from_str::<Value>(text)
                        .context("the router answered something else than JSON")?,
                };
                match value["error"].as_str() {
                    Some(error) => bail!("{error}"),
                    None => Ok(value),
                }
            }))
        }))
    }

    /// Reads a status; one that is not 2xx is an error with its text.
    fn status(&mut self) -> Result<()> {
        let mut text = Vec::new();
        loop {
            let line = self.line()?;
            let (code, rest) = line.split_at(line.len().min(3));
            text.push(rest.get(1..).unwrap_or("").trim_end().to_owned());
            if !rest.starts_with('-') {
                if code.starts_with('2') {
                    return Ok(());
                }
                let hint = match code {
                    NO_ELEMENT | NO_HANDLER => "; `causeway handlers` lists what there is",
                    _ => "",
                };
                bail!("{}{hint}", text.join("\n"));
            }
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.input.read_line(&mut line).map_err(silent)? == 0 {
            bail!("the router closed the connection");
        }
        Ok(line)
    }
}

/// What an error of reading is to people.
fn silent(error: std::io::Error) -> anyhow::Error {
    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
        return anyhow!("the router has said nothing for {} s: it is stopped, or hangs", PATIENCE.as_secs());
    }
    error.into()
}

/// The socket of the router that is meant when none is named: the only one in this network namespace, or the only one
/// there is.
fn only_socket() -> Result<PathBuf> {
    let dirs = run_dirs()?;
    let all = dirs.iter().flat_map(|dir| record::all(dir));
    let routers: Vec<Record> = all.filter(Record::is_alive).collect();
    if routers.is_empty() {
        bail!(
            "no router of this user runs (none is recorded in {}); `causeway up` and `causeway run` start one, \
             --socket names another user's",
            run_dir().display()
        );
    }
    Ok(choose(&routers, &record::own_netns()?)?.socket.clone())
}

fn choose<'a>(routers: &'a [Record], netns: &str) -> Result<&'a Record> {
    let here: Vec<&Record> = routers.iter().filter(|r| r.netns == netns).collect();
    match (here.as_slice(), routers) {
        (&[one], _) => Ok(one),
        ([], [one]) => Ok(one),
        _ => {
            let line = |r: &Record| {
                let place = if r.netns == netns { "this" } else { "another" };
                let socket = r.socket.display();
                format!(
                    "  --socket {socket}  ('{}', process {}, in {place} network namespace)",
                    r.name, r.pid
                )
            };
            let lines: Vec<String> = routers.iter().map(line).collect();
            bail!("several routers run; say which:\n{}", lines.join("\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Undo;
    use super::*;

    fn router(name: &str, netns: &str) -> Record {
        let (socket, counters) = (format!("/run/{name}.sock").into(), PathBuf::new());
        let netns = netns.to_owned();
        let undo = Undo::default();
        Record {
            name: name.to_owned(),
            pid: 7,
            started: 1,
            netns,
            cookie: None,
            pidns: None,
            socket,
            counters,
            xdp: None,
            tcx: None,
            undo,
        }
    }

    #[test]
    fn a_router_of_the_own_namespace_goes_before_the_only_one() {
        let (a, b, c) = (router("a", "net:[1]"), router("b", "net:[2]"), router("c", "net:[2]"));
        let chosen = |routers: &[&Record], netns: &str| {
            let routers: Vec<Record> = routers.iter().map(|&r| r.clone()).collect();
            choose(&routers, netns).map(|r| r.name.clone()).map_err(|e| e.to_string())
        };
        assert_eq!(chosen(&[&a], "net:[1]").unwrap(), "a");
        assert_eq!(chosen(&[&a], "net:[9]").unwrap(), "a");
        assert_eq!(chosen(&[&a, &b], "net:[2]").unwrap(), "b");
        assert_eq!(chosen(&[&a, &b, &c], "net:[1]").unwrap(), "a");
        let several = "several routers run; say which:\n  \
                       --socket /run/a.sock  ('a', process 7, in another network namespace)\n  \
                       --socket /run/b.sock  ('b', process 7, in this network namespace)\n  \
                       --socket /run/c.sock  ('c', process 7, in this network namespace)";
        assert_eq!(chosen(&[&a, &b, &c], "net:[2]").unwrap_err(), several);
        assert!(chosen(&[&a, &b], "net:[9]").unwrap_err().starts_with("several routers run"));
    }
}
