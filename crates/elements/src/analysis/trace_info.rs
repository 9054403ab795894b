//! Flows of a trace, written down in XML.

use super::aggregate_ip_flows::Flow;
use crate::out_file::{Losses, OutFile};
use causeway_engine::Error;
use std::io::{self, BufWriter, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The file.
pub(super) struct TraceInfo {
    name: String,
    ready: Option<OutFile>,
    out: Option<BufWriter<Box<dyn Write + Send>>>,
    /// What the flows are of.
    source: Option<String>,
    losses: Arc<Losses>,
}

/// Text between quotes of an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

impl TraceInfo {
    /// Opens the file called `name`; `-` is standard output.
    pub fn open(name: &str, source: Option<String>, losses: Arc<Losses>) -> Result<TraceInfo, Error> {
        let ready = if name == "-" { None } else { Some(OutFile::open(name)?) };
        let source = source.map(|s| s.trim().to_owned()).filter(|s| !s.is_empty());
        Ok(TraceInfo { name: name.to_owned(), ready, out: None, source, losses })
    }

    /// Begins to write.
    pub fn begin(&mut self) {
        if self.out.is_some() {
            return;
        }
        let out: io::Result<Box<dyn Write + Send>> = match self.ready.take() {
            Some(file) => file.commit().map(|file| Box::new(file) as Box<dyn Write + Send>),
            None => Ok(Box::new(io::stdout())),
        };
        match out {
            Ok(out) => {
                self.out = Some(BufWriter::new(out));
                let file = self.source.as_ref().map_or(String::new(), |s| format!(" file='{}'", escaped(s)));
                self.write(&format!("<?xml version='1.0' standalone='yes'?>\n<trace{file}>\n"), false);
            }
            Err(e) => self.losses.tell(format_args!("{}: {e}", self.name)),
        }
    }

    fn write(&mut self, text: &str, last: bool) {
        let Some(out) = &mut self.out else { return };
        let written = out.write_all(text.as_bytes());
        // What others print comes behind it.
        let flushed = if last || self.name == "-" { out.flush() } else { Ok(()) };
        if let Err(e) = written.and(flushed) {
            self.losses.tell(format_args!("{}: {e}", self.name));
            self.out = None;
        }
    }

    /// Writes down a flow that has ended.
    pub fn flow(&mut self, key: u128, flow: &Flow) {
        let low = (Ipv4Addr::from((key >> 32) as u32), (key >> 80) as u16);
        let high = (Ipv4Addr::from(key as u32), (key >> 64) as u16);
        let ((src, sport), (dst, dport)) = if flow.reverse { (high, low) } else { (low, high) };
        let (begin, duration) = (seconds(flow.first_ns), seconds(flow.last_ns.saturating_sub(flow.first_ns)));
        let filepos = if flow.filepos > 0 { format!(" filepos='{}'", flow.filepos) } else { String::new() };
        let [there, back] = flow.packets;
        let text = format!(
            "<flow aggregate='{}' src='{src}' sport='{sport}' dst='{dst}' dport='{dport}' begin='{begin}' \
             duration='{duration}'{filepos}>\n  <stream dir='0' packets='{there}' /><stream dir='1' packets='{back}' />\n\
             </flow>\n",
            flow.aggregate
        );
        self.write(&text, false);
    }

    /// Ends the file; on standard output, where others may go on, Click does not.
    pub fn end(&mut self) {
        if self.name != "-" {
            self.write("</trace>\n", true);
        }
    }
}
