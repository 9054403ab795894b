//! Watching packets over the control socket: the command `WATCH` and a JSON object, after which the connection carries a
//! JSON object a line until one end has enough. A line without one says that the router is still there.

use super::protocol::Ask;
use causeway_engine::handler::HandlerError;
use causeway_engine::watch::Bytes;
use causeway_engine::watch::capture::{Capture, Captured};
use causeway_engine::watch::trace::{Ending, Step, Trace, What};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// How often the other end hears something.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);

/// What is to be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Copies of the packets on some edges.
    Capture {
        /// The edges, as [`causeway_engine::Edge::is_named`] wants them.
        edges: Vec<String>,
        /// Bytes of each packet.
        most_bytes: usize,
    },
    /// The way of some packets.
    Trace {
        /// How many.
        packets: u16,
        /// The edge where they begin; without it where they enter the graph.
        from: Option<String>,
        /// An IP expression that they match.
        filter: Option<String>,
    },
}

/// A watch that has begun.
pub enum Watched {
    /// With the edges' names.
    Capture(Capture, Vec<String>),
    /// A trace.
    Trace(Trace),
}

impl Watch {
    /// The command for the router.
    pub fn to_line(&self) -> String {
        let request = match self {
            Watch::Capture { edges, most_bytes } => json!({ "capture": edges, "most_bytes": most_bytes }),
            Watch::Trace { packets, from, filter } => {
                json!({ "trace": packets, "from": from, "filter": filter })
            }
        };
        format!("WATCH {request}\r\n")
    }

    /// What a line asks for; `None` if it is another command.
    pub fn of_line(line: &str) -> Option<Result<Watch, String>> {
        let (command, request) = line.trim().split_once(char::is_whitespace)?;
        command.eq_ignore_ascii_case("WATCH").then(|| {
            let request: Value = serde_json::from_str(request).map_err(|e| e.to_string())?;
            Self::of_json(&request).ok_or_else(|| "neither a capture nor a trace".to_owned())
        })
    }

    fn of_json(request: &Value) -> Option<Watch> {
        let text = |name: &str| request[name].as_str().map(str::to_owned);
        if let Some(edges) = request["capture"].as_array() {
            let edges = edges.iter().map(|e| e.as_str().map(str::to_owned)).collect::<Option<_>>()?;
            let most_bytes = usize::try_from(request["most_bytes"].as_u64()?).ok()?;
            return Some(Watch::Capture { edges, most_bytes });
        }
        let packets = u16::try_from(request["trace"].as_u64()?).ok()?;
        Some(Watch::Trace { packets, from: text("from"), filter: text("filter") })
    }
}

/// Carries out the command until the client goes or there is nothing more to see.
pub fn serve(watch: Result<Watch, String>, mut output: impl Write, router: &dyn Ask) -> io::Result<()> {
    match watch.map_err(HandlerError::Failed).and_then(|watch| router.watch(watch)) {
        Err(error) => output.write_all(format!("{}\r\n", json!({ "error": error.to_string() })).as_bytes()),
        Ok(Watched::Capture(capture, names)) => {
            let mut lost = 0;
            send(&mut output, json!({ "edges": names }))?;
            relay(&mut output, |patience| {
                let copy = match capture.copies.recv_timeout(patience) {
                    Ok(copy) => Some(captured(&copy)),
                    Err(RecvTimeoutError::Timeout) if capture.lost() > lost => None,
                    Err(e) => return Err(e),
                };
                lost = capture.lost();
                Ok(copy.unwrap_or_else(|| json!({ "lost": lost })))
            })
        }
        Ok(Watched::Trace(trace)) => {
            relay(&mut output, |patience| trace.steps.recv_timeout(patience).map(|s| step(&s)))
        }
    }
}

fn relay(
    output: &mut impl Write,
    mut next: impl FnMut(Duration) -> Result<Value, RecvTimeoutError>,
) -> io::Result<()> {
    loop {
        match next(SIGN_OF_LIFE) {
            Ok(value) => send(output, value)?,
            Err(RecvTimeoutError::Timeout) => output.write_all(b"\n")?,
            Err(RecvTimeoutError::Disconnected) => {
                return send(output, json!({ "error": "the graph was replaced, or the router has ended" }));
            }
        }
    }
}

fn send(output: &mut impl Write, value: Value) -> io::Result<()> {
    output.write_all(format!("{value}\n").as_bytes())
}

fn captured(copy: &Captured) -> Value {
    json!({ "edge": copy.edge, "time_ns": copy.time_ns, "bytes": bytes(&copy.bytes) })
}

fn step(step: &Step) -> Value {
    let what = match &step.what {
        What::Passed { from, to, bytes: b, made } => {
            json!({ "from": from, "to": to, "bytes": bytes(b), "made": made })
        }
        What::Ended { element, class, how } => {
            let (how, reason) = match how {
                Ending::Dropped(reason) => ("dropped", Some(*reason)),
                Ending::Unconnected => ("unconnected", None),
                Ending::Held => ("held", None),
                Ending::Taken => ("taken", None),
            };
            json!({ "element": element, "class": class, "how": how, "reason": reason })
        }
    };
    json!({ "packet": step.packet, "worker": step.worker, "time_ns": step.time_ns, "what": what })
}

fn bytes(bytes: &Bytes) -> Value {
    let hex: String = bytes.data.iter().map(|b| format!("{b:02x}")).collect();
    json!({ "len": bytes.len, "is_ip": bytes.is_ip, "hex": hex })
}

/// The bytes of a packet that a router sent.
pub fn parse_bytes(value: &Value) -> Option<Bytes> {
    let hex = value["hex"].as_str()?.as_bytes();
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let data = hex.chunks(2).map(digits).collect::<Option<_>>()?;
    let len = usize::try_from(value["len"].as_u64()?).ok()?;
    Some(Bytes { data, len, is_ip: value["is_ip"].as_bool()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for watch in [
            Watch::Capture { edges: vec!["a \"b\" [1] -> c".to_owned(), "d".to_owned()], most_bytes: 96 },
            Watch::Trace { packets: 7, from: Some("a".to_owned()), filter: None },
            Watch::Trace { packets: 1, from: None, filter: Some("udp port 53".to_owned()) },
        ] {
            assert_eq!(Watch::of_line(&watch.to_line()), Some(Ok(watch)));
        }
        assert_eq!(Watch::of_line("READ a.b"), None);
        assert_eq!(Watch::of_line(""), None);
        for wrong in
            ["WATCH x", "WATCH {}", "WATCH []", r#"WATCH {"capture": [1], "most_bytes": 1}"#, "watch 1"]
        {
            assert!(Watch::of_line(wrong).unwrap().is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_are_read_as_they_were_written() {
        let sent = Bytes { data: vec![0, 0xab, 0xff], len: 60, is_ip: true };
        assert_eq!(parse_bytes(&bytes(&sent)), Some(sent));
        for wrong in
            [json!(null), json!({ "hex": "0g", "len": 1, "is_ip": false }), json!({ "hex": "+1", "len": 1 })]
        {
            assert_eq!(parse_bytes(&wrong), None);
        }
    }
}
