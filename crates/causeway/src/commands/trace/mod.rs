//! `causeway trace`: the way of a few packets through a running router, to where each ends and why.

mod summary;

use crate::cli::TraceArgs;
use crate::control::{Client, Watch, watch};
use crate::output;
use anyhow::Result;
use serde_json::Value;
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use summary::summary;

/// A trace of as many packets as are wanted ends when so long nothing more has happened to them.
const QUIET: Duration = Duration::from_millis(500);

/// Prints each step until all packets have ended, the time is over, or the router or the user has enough.
pub fn trace(args: &TraceArgs) -> Result<ExitCode> {
    let client = Client::connect(args.socket.socket.as_deref())?;
    let (from, filter) = (args.from.clone(), args.filter.clone());
    let watch = Watch::Trace { packets: args.count, from, filter };
    let mut seen: HashMap<u64, String> = HashMap::new();
    let mut last = Instant::now();
    for line in client.watch(watch, Some(args.seconds))? {
        let line = line?;
        if !line.is_object() {
            if seen.len() >= args.count.into() && last.elapsed() > QUIET {
                break;
            }
            continue;
        }
        if line["aside"].is_boolean() {
            watch::say_aside(&line);
            continue;
        }
        last = Instant::now();
        let packet = line["packet"].as_u64().unwrap_or(0);
        if args.json {
            seen.entry(packet).or_default();
            output::print_line(line)?;
        } else {
            output::print_line(step(packet, &line, seen.entry(packet).or_default()))?;
        }
    }
    if seen.is_empty() {
        log::warn!(
            "no such packet came; --seconds waits longer, and `causeway read edges` says where packets pass"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// A step as a line for people. What the packet is stands there whenever it is not what it was, as `before` has it.
fn step(packet: u64, line: &Value, before: &mut String) -> String {
    let time_ns = line["time_ns"].as_u64().unwrap_or(0);
    let time = format!("{}.{:06}", time_ns / 1_000_000_000, time_ns % 1_000_000_000 / 1_000);
    let what = &line["what"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if !what["how"].is_null() {
        let element = format!("{} :: {}", text(&what["element"]), text(&what["class"]));
        let what = match (text(&what["how"]).as_str(), text(&what["reason"])) {
            ("dropped", reason) => format!("dropped by {element}: {reason}"),
            ("unconnected", _) => format!("dropped by {element}: the output is not connected"),
            ("held", _) => format!("held by {element}"),
            _ if text(&what["class"]).ends_with("ToWorker") => "goes to another worker".to_owned(),
            _ => format!("taken by {element}"),
        };
        return format!("#{packet} {time} {what}");
    }
    let port = |end: &Value| (text(&end[0]), end[1].as_u64().unwrap_or(0));
    let ((from, out), (to, input)) = (port(&what["from"]), port(&what["to"]));
    let made = if what["made"] == true { " (made of it)" } else { "" };
    let mut line = format!("#{packet} {time} {from} [{out}] -> [{input}] {to}{made}");
    if let Some(bytes) = watch::parse_bytes(&what["bytes"]) {
        let now = summary(&bytes);
        if now != *before {
            line += &format!("  {now}");
            *before = now;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_say_what_has_changed() {
        let mut before = String::new();
        let passed = json!({ "packet": 3, "worker": 0, "time_ns": 5_000_001_000u64, "what": {
            "from": ["a", 1], "to": ["b/c", 0], "made": false, "bytes": { "len": 2, "is_ip": false, "hex": "0102" } } });
        let first = step(3, &passed, &mut before);
        assert_eq!(first, "#3 5.000001 a [1] -> [0] b/c  2 bytes 0102");
        assert_eq!(step(3, &passed, &mut before), "#3 5.000001 a [1] -> [0] b/c");
        let end = |class: &str, how: &str, reason: Value| {
            let what = json!({ "element": "q", "class": class, "how": how, "reason": reason });
            step(3, &json!({ "packet": 3, "worker": 0, "time_ns": 0, "what": what }), &mut String::new())
        };
        assert_eq!(end("Queue", "dropped", json!("full")), "#3 0.000000 dropped by q :: Queue: full");
        assert_eq!(end("Queue", "held", Value::Null), "#3 0.000000 held by q :: Queue");
        assert_eq!(end("ToDevice", "taken", Value::Null), "#3 0.000000 taken by q :: ToDevice");
        assert_eq!(end("PullToWorker", "taken", Value::Null), "#3 0.000000 goes to another worker");
    }
}
