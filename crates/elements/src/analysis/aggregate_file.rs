//! Files of aggregates and their counts.

use crate::real;
use causeway_engine::Error;
use std::io::{self, Write};
use std::net::Ipv4Addr;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Binary,
    Addresses,
    Shares,
}

/// What is written.
pub(super) struct AggregateFile<'b> {
    pub format: Format,
    pub banner: &'b str,
    /// Aggregates with their counts, in ascending order.
    pub counts: Vec<(u32, u32)>,
    /// Of all of them.
    pub total: u64,
}

impl AggregateFile<'_> {
    /// Writes the file called `name`; `-` is standard output.
    pub fn write(&self, name: &str) -> Result<(), Error> {
        let done = match name {
            "-" => self.write_to(&mut io::stdout().lock()),
            name => std::fs::File::create(name).and_then(|file| self.write_to(&mut io::BufWriter::new(file))),
        };
        done.map_err(|e| Error::caused_by(e).of(name))
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "!IPAggregate 1.0")?;
        if !self.banner.is_empty() {
            writeln!(out, "{}", self.banner.trim_end_matches('\n'))?;
        }
        writeln!(out, "!num_nonzero {}", self.counts.len())?;
        match self.format {
            Format::Binary if cfg!(target_endian = "little") => writeln!(out, "!packed_le")?,
            Format::Binary => writeln!(out, "!packed_be")?,
            Format::Addresses => writeln!(out, "!ip")?,
            Format::Text | Format::Shares => {}
        }
        for &(aggregate, count) in &self.counts {
            match self.format {
                Format::Text => writeln!(out, "{aggregate} {count}")?,
                Format::Addresses => writeln!(out, "{} {count}", Ipv4Addr::from(aggregate))?,
                Format::Shares => {
                    writeln!(out, "{aggregate} {}", real::shown(f64::from(count) / self.total as f64))?;
                }
                Format::Binary => {
                    out.write_all(&aggregate.to_ne_bytes())?;
                    out.write_all(&count.to_ne_bytes())?;
                }
            }
        }
        out.flush()
    }
}
