//! The other end: what `causeway read` and `causeway write` speak.

use super::run_dir;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A connection to a running router.
pub struct Client {
    input: BufReader<UnixStream>,
    output: UnixStream,
}

impl Client {
    /// Connects to the router at `socket`, or to the only one that runs.
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
        self.input.by_ref().take(n).read_to_end(&mut data)?;
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
                bail!("{}", text.join("\n"));
            }
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            bail!("the router closed the connection");
        }
        Ok(line)
    }
}

fn only_socket() -> Result<PathBuf> {
    let dir = run_dir();
    let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten().map(|e| e.path());
    let sockets: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "sock")).collect();
    let alive: Vec<PathBuf> = sockets.into_iter().filter(|p| UnixStream::connect(p).is_ok()).collect();
    match alive.as_slice() {
        [one] => Ok(one.clone()),
        [] => bail!("no router runs (none listens in {})", dir.display()),
        many => {
            let list: Vec<String> = many.iter().map(|p| format!("  --socket {}", p.display())).collect();
            bail!("several routers run; say which:\n{}", list.join("\n"))
        }
    }
}
