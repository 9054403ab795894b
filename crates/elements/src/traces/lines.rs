//! Lines of a file of text, and binary records behind them.

use super::compressed::uncompressed;
use causeway_engine::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

/// The longest record that is believed.
const MOST: usize = 1 << 20;

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Text,
    Binary,
    End,
}

/// A file, or data in its place.
pub(super) struct Lines {
    name: String,
    allow_missing: bool,
    reader: Option<Box<dyn BufRead + Send>>,
    binary: bool,
    /// Lines or records read.
    number: usize,
    position: u64,
    size: Option<u64>,
    buffer: Vec<u8>,
}

impl Lines {
    /// The file called `name`, to be opened; `-` is standard input.
    pub fn named(name: &str, allow_missing: bool) -> Lines {
        let name = name.to_owned();
        Lines { name, allow_missing, ..Lines::of(Vec::new()) }
    }

    /// Lines of `data`.
    pub fn of(data: Vec<u8>) -> Lines {
        let size = Some(data.len() as u64);
        let reader: Option<Box<dyn BufRead + Send>> = Some(Box::new(Cursor::new(data)));
        let name = "<data>".to_owned();
        let (binary, number, position, buffer) = (false, 0, 0, Vec::with_capacity(512));
        Lines { name, allow_missing: true, reader, binary, number, position, size, buffer }
    }

    /// Opens the file; says how it begins. The error has its name.
    pub fn open(&mut self) -> Result<Vec<u8>, Error> {
        if self.name != "<data>" {
            self.size = None;
            let opened = match self.name.as_str() {
                "-" => Ok(Box::new(BufReader::new(io::stdin())) as Box<dyn BufRead + Send>),
                name => File::open(name).and_then(|file| {
                    let size = file.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
                    Ok(uncompressed(file)?.unwrap_or_else(|bytes| {
                        self.size = size;
                        Box::new(bytes)
                    }))
                }),
            };
            self.reader = match opened {
                Ok(reader) => Some(reader),
                Err(e) if e.kind() == ErrorKind::NotFound && self.allow_missing => None,
                Err(e) => return Err(Error::caused_by(e).of(&self.name)),
            };
        }
        let Some(reader) = &mut self.reader else { return Ok(Vec::new()) };
        // Standard input may have nothing yet, and would be waited for.
        if self.name == "-" {
            return Ok(b"!data".to_vec());
        }
        let start = reader.fill_buf().map_err(|e| Error::caused_by(e).of(&self.name))?;
        Ok(start[..start.len().min(64)].to_vec())
    }

    /// What follows is binary.
    pub fn set_binary(&mut self) {
        (self.binary, self.number) = (true, 0);
    }

    /// Room for a record, kept between them.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Reads the next line, without its end, or binary record into `record`.
    pub fn next(&mut self, record: &mut Vec<u8>) -> Record {
        record.clear();
        let read = match self.binary {
            true => self.next_binary(record),
            false => self.next_line(record),
        };
        read.unwrap_or_else(|e| {
            log::error!("{}: {e}", self.landmark());
            self.reader = None;
            Record::End
        })
    }

    fn next_line(&mut self, line: &mut Vec<u8>) -> io::Result<Record> {
        let Some(reader) = &mut self.reader else { return Ok(Record::End) };
        let read = reader.take(MOST as u64).read_until(b'\n', line)?;
        self.position += read as u64;
        self.number += 1;
        while line.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
            line.pop();
        }
        Ok(if read == 0 { Record::End } else { Record::Text })
    }

    fn next_binary(&mut self, record: &mut Vec<u8>) -> io::Result<Record> {
        let Some(reader) = &mut self.reader else { return Ok(Record::End) };
        let mut head = [0; 4];
        match reader.read_exact(&mut head) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(Record::End),
            other => other?,
        }
        let word = u32::from_be_bytes(head);
        let is_text = word >> 31 == 1;
        let len = (word & 0x7fff_ffff) as usize;
        // The length counts itself.
        let Some(len) = len.checked_sub(4).filter(|len| *len <= MOST) else {
            return Err(io::Error::new(ErrorKind::InvalidData, "bad length of a binary record"));
        };
        record.resize(len, 0);
        reader.read_exact(record)?;
        self.position += 4 + len as u64;
        self.number += 1;
        if is_text {
            while record.last().is_some_and(|b| matches!(b, 0 | b'\n')) {
                record.pop();
            }
            return Ok(Record::Text);
        }
        Ok(Record::Binary)
    }

    /// Whether there is no file.
    pub fn is_missing(&self) -> bool {
        self.reader.is_none()
    }

    /// Where the last record was.
    pub fn landmark(&self) -> String {
        let what = if self.binary { "record " } else { "" };
        let name = if self.name == "-" { "<stdin>" } else { &self.name };
        format!("{name}:{what}{}", self.number)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Bytes read.
    pub fn position(&self) -> u64 {
        self.position
    }
}
