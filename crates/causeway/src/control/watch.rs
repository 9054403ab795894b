//! Watching packets over the control socket: the command `WATCH` and a JSON object, after which the connection carries a
//! JSON object a line until one end has enough. A line without one says that the router is still there; the client sends
//! one back, which says the same of it.
//!
//! While packets are watched that a program in the driver would forward otherwise, that program stands aside. So a watch
//! ends with its client, whatever becomes of that: it goes, it is stopped, or its time is over.

use super::protocol::Ask;
use super::server::Stream;
use causeway_engine::Error;
use causeway_engine::handler::HandlerError;
use causeway_engine::watch::Bytes;
use causeway_engine::watch::capture::{Capture, Captured};
use causeway_engine::watch::trace::{Ending, Step, Trace, What};
use causeway_netio::front::Aside;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How often the other end hears something.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);
/// Signs of life that the other end may leave without an answer, while a program in the driver stands aside for it.
const UNANSWERED: usize = 10;
/// How long the same end may take nothing of what is sent to it.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How much longer a watch goes on than its client wants: that ends it by itself.
const LONGER: Duration = Duration::from_secs(2);
/// What the counter of answers says when the client has gone.
const GONE: usize = usize::MAX;

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

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be watched.
    pub watch: Watch,
    /// For how long at most.
    pub time: Option<Duration>,
}

/// A watch that has begun.
pub struct Watched {
    /// What is seen.
    pub seen: Seen,
    /// What is forwarded in the driver otherwise goes through the graph as long as this is there.
    pub aside: Option<Aside>,
    /// Whether the driver waits for its end.
    pub waits: bool,
    /// Whether there are packets that go through the graph because of it.
    pub diverts: bool,
    /// Whether there are packets that are forwarded in the stack, and go through no graph.
    pub misses: bool,
}

/// What a watch sees.
pub enum Seen {
    /// With the edges' names.
    Capture(Capture, Vec<String>),
    /// A trace.
    Trace(Trace),
}

impl Request {
    /// The command for the router.
    pub fn to_line(&self) -> String {
        let mut request = match &self.watch {
            Watch::Capture { edges, most_bytes } => json!({ "capture": edges, "most_bytes": most_bytes }),
            Watch::Trace { packets, from, filter } => {
                json!({ "trace": packets, "from": from, "filter": filter })
            }
        };
        if let Some(time) = self.time {
            request["seconds"] = json!(time.as_secs_f64());
        }
        format!("WATCH {request}\r\n")
    }

    /// What a line asks for; `None` if it is another command.
    pub fn of_line(line: &str) -> Option<Result<Request, Error>> {
        let (command, request) = line.trim().split_once(char::is_whitespace)?;
        command.eq_ignore_ascii_case("WATCH").then(|| {
            let request: Value = serde_json::from_str(request).map_err(Error::caused_by)?;
            let watch = Watch::of_json(&request);
            let watch = watch.ok_or_else(|| Error::new("neither a capture nor a trace"))?;
            let time = match &request["seconds"] {
                Value::Null => None,
                seconds => Some(seconds.as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok()))
                    .map(|time| time.ok_or_else(|| Error::new(format!("{seconds} is no number of seconds"))))
                    .transpose()?,
            };
            Ok(Request { watch, time })
        })
    }
}

impl Watch {
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

/// Carries out the command until the client goes or there is nothing more to see. `answers` is called in a thread of its
/// own, and is to call what it is given for each line that the client sends, until that has gone.
pub fn serve<S: Stream>(
    request: Result<Request, Error>,
    mut output: S,
    router: &dyn Ask,
    answers: impl FnOnce(&dyn Fn()) + Send + 'static,
) -> io::Result<()> {
    let begun = request.map_err(HandlerError::Failed).and_then(|r| Ok((router.watch(r.watch)?, r.time)));
    let (Watched { seen, aside, waits, diverts, misses }, time) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let error = json!({ "error": error.to_string() });
            return output.write_all(format!("{error}\r\n").as_bytes());
        }
    };
    let answered = Arc::new(AtomicUsize::new(0));
    if waits {
        output.set_write_patience(PATIENCE)?;
    }
    let count = answered.clone();
    std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
        answers(&|| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        count.store(GONE, Ordering::Relaxed);
    })?;
    let until = time.and_then(|time| Instant::now().checked_add(time + LONGER));
    let watcher = Watcher { answered, until, is_needed: waits };
    let served = show(seen, json!({ "aside": diverts, "stack": misses }), &mut output, &watcher);
    // First the driver, then the client, which may wait for the end.
    drop(aside);
    output.hang_up();
    served
}

/// The client of a watch.
struct Watcher {
    /// Signs of life that it has answered.
    answered: Arc<AtomicUsize>,
    until: Option<Instant>,
    /// Whether it must answer.
    is_needed: bool,
}

impl Watcher {
    /// Why it is not to be served any more, after so many signs of life.
    fn has_gone(&self, signs: usize) -> Option<&'static str> {
        let answered = self.answered.load(Ordering::Relaxed);
        // Who only watches may be silent, and stop to look for a while.
        if self.is_needed && answered == GONE {
            Some("the client has gone")
        } else if self.is_needed && signs.saturating_sub(answered) > UNANSWERED {
            Some("the client does not answer, and the driver waits for it")
        } else {
            let over = self.until.is_some_and(|until| Instant::now() >= until);
            over.then_some("the time that was asked for is over")
        }
    }
}

fn show(seen: Seen, mut first: Value, output: &mut impl Write, watcher: &Watcher) -> io::Result<()> {
    match seen {
        Seen::Capture(capture, names) => {
            let mut lost = 0;
            first["edges"] = json!(names);
            send(output, first)?;
            relay(output, watcher, |patience| {
                let copy = match capture.copies.recv_timeout(patience) {
                    Ok(copy) => Some(captured(&copy)),
                    Err(RecvTimeoutError::Timeout) if capture.lost() > lost => None,
                    Err(e) => return Err(e),
                };
                lost = capture.lost();
                Ok(copy.unwrap_or_else(|| json!({ "lost": lost })))
            })
        }
        Seen::Trace(trace) => {
            send(output, first)?;
            relay(output, watcher, |patience| trace.steps.recv_timeout(patience).map(|s| step(&s)))
        }
    }
}

fn relay(
    output: &mut impl Write,
    watcher: &Watcher,
    mut next: impl FnMut(Duration) -> Result<Value, RecvTimeoutError>,
) -> io::Result<()> {
    let mut signs = 0;
    loop {
        if let Some(why) = watcher.has_gone(signs) {
            return send(output, json!({ "error": why }));
        }
        match next(SIGN_OF_LIFE) {
            Ok(value) => send(output, value)?,
            Err(RecvTimeoutError::Timeout) => {
                output.write_all(b"\n")?;
                signs += 1;
            }
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

/// Says it, if the first line of a watch does: packets take another way because of it, or one where nothing is seen.
pub fn say_aside(first: &Value) {
    if first["aside"] == true {
        log::info!(
            "packets that are forwarded in the driver go through the graph meanwhile, which takes longer"
        );
    }
    if first["stack"] == true {
        log::info!(
            "packets that are forwarded in the stack, at tcx, go through no graph; `tcpdump` sees them"
        );
    }
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
        for (watch, time) in [
            (
                Watch::Capture { edges: vec!["a \"b\" [1] -> c".to_owned(), "d".to_owned()], most_bytes: 96 },
                None,
            ),
            (
                Watch::Trace { packets: 7, from: Some("a".to_owned()), filter: None },
                Some(Duration::from_millis(1500)),
            ),
            (
                Watch::Trace { packets: 1, from: None, filter: Some("udp port 53".to_owned()) },
                Some(Duration::ZERO),
            ),
        ] {
            let request = Request { watch, time };
            assert_eq!(Request::of_line(&request.to_line()), Some(Ok(request)));
        }
        assert_eq!(Request::of_line("READ a.b"), None);
        assert_eq!(Request::of_line(""), None);
        for wrong in [
            "WATCH x",
            "WATCH {}",
            "WATCH []",
            r#"WATCH {"capture": [1], "most_bytes": 1}"#,
            r#"WATCH {"trace": 1, "seconds": -1}"#,
            "watch 1",
        ] {
            assert!(Request::of_line(wrong).unwrap().is_err(), "{wrong}");
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
