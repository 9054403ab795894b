//! What lines of a summary dump say of those that follow.

use super::super::fields;
use super::super::to_ip_summary_dump::VERSION;
use super::FromIPSummaryDump;
use crate::nat::flow_id::FlowId;
use crate::printing::contents::to_stderr;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::args::{split_words, unquote};
use causeway_packet::wire::protocol;

impl FromIPSummaryDump {
    /// Says what is wrong in the file, at the place that was read last.
    pub(super) fn complain(&self, what: &str) {
        to_stderr(&format!("{}: {what}\n", self.lines.landmark()));
    }

    /// Takes the fields that `line` names; says what is wrong with them.
    pub(super) fn set_fields(&mut self, line: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        self.fields.clear();
        for (i, word) in split_words(line).iter().enumerate() {
            let word = unquote(word);
            if i == 0 && (word == "!data" || word == "!contents") {
                continue;
            }
            let found = fields::find(&word);
            match found {
                None => wrong.push(format!("unknown content type '{word}'")),
                Some(f) if f.order.is_none() && f.name != "none" => {
                    wrong.push(format!("content type '{word}' ignored on input"));
                }
                Some(_) => {}
            }
            self.fields.push(found.filter(|f| f.order.is_some()).unwrap_or(&fields::FIELDS[0]));
        }
        if self.fields.is_empty() {
            wrong.push("no contents specified".to_owned());
        }
        self.order = (0..self.fields.len()).collect();
        self.order.sort_by_key(|&i| self.fields[i].order);
        wrong
    }

    pub(super) fn set_protocol(&mut self, word: Option<&str>, of: &str) -> Result<(), Error> {
        self.protocol = match word.map(|w| (w, w.parse::<u8>())) {
            Some(("T" | "tcp", _)) => protocol::TCP,
            Some(("U" | "udp", _)) => protocol::UDP,
            Some(("I" | "icmp", _)) => protocol::ICMP,
            Some((_, Ok(number))) => number,
            Some(_) => return Err(Error::new(format!("bad protocol in {of}"))),
            None => return Err(Error::new(format!("bad {of}"))),
        };
        Ok(())
    }

    /// Takes the flow that a line `!flowid` says.
    pub(super) fn set_flow(&mut self, line: &str, scope: &causeway_engine::Scope<'_>) -> Result<(), Error> {
        let words = split_words(line);
        let address = |i: usize| match words.get(i).map(String::as_str) {
            Some("-") => Some(0),
            Some(word) => Ipv4Addr::parse(word, scope).ok().map(u32::from),
            None => None,
        };
        let port = |i: usize| match words.get(i).map(String::as_str) {
            Some("-") => Some(0),
            Some(word) => u16::parse(word, scope).ok(),
            None => None,
        };
        self.flow = (|| Some(FlowId::new(address(1)?, port(2)?, address(3)?, port(4)?)))();
        match (self.flow, words.get(5)) {
            (None, _) => Err(Error::new("bad !flowid specification")),
            (Some(_), Some(proto)) => self.set_protocol(Some(proto), "!flowid"),
            _ => Ok(()),
        }
    }

    /// Takes note of a line that begins with `!`.
    pub(super) fn command(&mut self, line: &str, cx: &Cx<'_>) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let done = match word {
            "!data" | "!contents" => {
                for wrong in self.set_fields(line) {
                    self.complain(&format!("warning: {wrong}"));
                }
                Ok(())
            }
            "!flowid" => self.set_flow(line, &cx.scope()),
            "!proto" => self.set_protocol(split_words(rest).first().map(String::as_str), "!proto"),
            "!aggregate" => {
                self.aggregate = rest.trim().parse().ok();
                self.aggregate.map(|_| ()).ok_or_else(|| Error::new("bad !aggregate specification"))
            }
            "!binary" => {
                self.lines.set_binary();
                Ok(())
            }
            "!IPSummaryDump" => {
                let (major, minor) = rest.trim().split_once('.').unwrap_or((rest.trim(), ""));
                let version = major.parse::<u32>().ok().zip(minor.parse::<u32>().ok());
                match version {
                    Some((major, minor)) if major == VERSION.0 && minor <= VERSION.1 => self.version = minor,
                    Some((major, minor)) => {
                        self.complain(&format!("warning: unexpected IPSummaryDump version {major}.{minor}"));
                    }
                    None => {}
                }
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(wrong) = done {
            self.complain(&wrong.to_string());
        }
    }
}
