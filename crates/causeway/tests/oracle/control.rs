//! The router's control socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection.
pub struct Control(BufReader<UnixStream>);

/// What the router has counted, since the graph that runs was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that the drivers' programs took.
    pub taken: u64,
    /// Packets forwarded.
    pub forwarded: u64,
    /// Packets that the graph gave back.
    pub punted: u64,
}

impl Control {
    /// None while nobody listens.
    pub fn connect(path: &Path) -> Option<Control> {
        let mut control = Control(BufReader::new(UnixStream::connect(path).ok()?));
        control.line()?;
        Some(control)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok().filter(|n| *n > 0).map(|_| line)
    }

    /// What a handler says; none if it cannot be read now.
    pub fn read(&mut self, handler: &str) -> Option<String> {
        self.0.get_mut().write_all(format!("READ {handler}\r\n").as_bytes()).ok()?;
        if !self.status()?.starts_with("200") {
            return None;
        }
        let length = self.line()?.trim().strip_prefix("DATA ")?.parse().ok()?;
        let mut data = vec![0; length];
        self.0.read_exact(&mut data).ok()?;
        String::from_utf8(data).ok()
    }

    /// The last line of what a request is answered with.
    fn status(&mut self) -> Option<String> {
        loop {
            let line = self.line()?;
            if line.as_bytes().get(3) == Some(&b' ') {
                return Some(line);
            }
        }
    }

    /// Writes a handler; whether it took that.
    pub fn write(&mut self, handler: &str, value: &str) -> Option<bool> {
        let request = format!("WRITEDATA {handler} {}\r\n{value}", value.len());
        self.0.get_mut().write_all(request.as_bytes()).ok()?;
        Some(self.status()?.starts_with("200"))
    }

    /// What was counted.
    pub fn counts(&mut self) -> Counts {
        // Asked, the element counts what was forwarded in the driver by now.
        self.read("forward.count");
        let mut counts = Counts::default();
        for line in self.read("counters").unwrap_or_default().lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let [_, element, name, value] = words[..] else { continue };
            let value: u64 = value.parse().unwrap_or(0);
            match (element, name) {
                (_, "port.xdp_taken") => counts.taken += value,
                ("forward", "count") => counts.forwarded += value,
                ("forward", name) if name.starts_with("punt.") => counts.punted += value,
                _ => {}
            }
        }
        counts
    }
}
