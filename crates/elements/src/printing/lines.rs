//! Lines about packets: how they begin, and where they go.

use super::contents;
use crate::out_file::{Losses, OutFile};
use causeway_engine::prelude::*;
use causeway_engine::value::{Ether, Filename};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

/// Appends what a line begins with. Writing to a string cannot fail.
pub(super) fn begin(text: &mut String, label: &str, timestamp_ns: Option<u64>) {
    if !label.is_empty() {
        let _ = write!(text, "{label}: ");
    }
    if let Some(ns) = timestamp_ns {
        contents::timestamp(text, ns);
        *text += ": ";
    }
}

/// Appends the addresses of an Ethernet header, which begins with that of the destination.
pub(super) fn ethernet(text: &mut String, header: &[u8; 12]) {
    let &[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = header;
    let (src, dst) = (Ether([s0, s1, s2, s3, s4, s5]), Ether([d0, d1, d2, d3, d4, d5]));
    let _ = write!(text, "{src} > {dst}: ");
}

/// Where an element's lines go.
#[derive(Default)]
pub(crate) struct Lines {
    /// `None` = standard error.
    filename: Option<String>,
    /// The file, until the graph is put in place.
    opened: Option<OutFile>,
    file: Option<File>,
    losses: Arc<Losses>,
    /// The text of a batch, kept for its memory.
    text: String,
}

impl Lines {
    /// Lines that go to this file; what is lost of it is told to `losses`.
    pub fn to(filename: Option<&Filename>, losses: Arc<Losses>) -> Lines {
        Lines { filename: filename.map(|name| name.0.clone()), losses, ..Lines::default() }
    }

    /// Opens the file. The error has its name.
    pub fn open(&mut self) -> Result<(), Error> {
        self.opened = self.filename.as_deref().map(OutFile::open).transpose()?;
        Ok(())
    }

    /// The graph is put in place: the file is emptied, unless it is that of a predecessor, which goes on.
    pub fn commit(&mut self, cx: &Cx<'_>) {
        let opened = self.opened.take().filter(|_| self.file.is_none());
        match opened.map(OutFile::commit).transpose() {
            Ok(Some(file)) => self.file = Some(file),
            Ok(None) => {}
            Err(e) => self.lose(&format!("{}: ", cx.name()), &e),
        }
    }

    /// Writes what `line` says of each packet.
    pub fn write(&mut self, batch: &Batch, mut line: impl FnMut(&Packet, &mut String)) {
        batch.iter().for_each(|packet| line(packet, &mut self.text));
        match (&mut self.file, &self.filename) {
            // A full disk loses lines, never packets; the first time says so.
            (Some(file), _) => {
                if let Err(e) = file.write_all(self.text.as_bytes()) {
                    self.file = None;
                    self.lose("", &e);
                }
            }
            (None, None) => contents::to_stderr(&self.text),
            (None, Some(_)) => {}
        }
        self.text.clear();
    }

    fn lose(&self, before: &str, error: &io::Error) {
        let filename = self.filename.as_deref().unwrap_or_default();
        self.losses.tell(format_args!("{before}{filename}: lines are lost: {error}"));
    }

    /// Goes on in the file of a predecessor, if it is the same.
    pub fn go_on(&mut self, old: &mut Lines) {
        if old.filename == self.filename {
            self.file = old.file.take();
        }
    }
}
