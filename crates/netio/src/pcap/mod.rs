//! Capture files as ports, and as readers and writers: pcap and pcapng.
//!
//! The formats are those of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Both byte orders and all timestamp
//! resolutions are read; what is written is little-endian, with nanoseconds unless microseconds are asked for.

mod read;
mod write;

pub use read::{Reader, Record};
pub use write::{Format, InterfacesWriter, SNAP_LEN, Writer};

use crate::completion::{Completion, Completions};
use crate::port::{Rx, Tx};
use crate::statistics::{Statistics, Tally};
use crate::{Error, Result};
use causeway_packet::{Batch, Packet, Receiver};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

/// The link-layer type of Ethernet (tcpdump.org's list of link types).
pub const LINKTYPE_ETHERNET: u32 = 1;
/// The link-layer type of bare IP packets.
pub const LINKTYPE_RAW: u32 = 101;

/// Receives the packets of a file, as fast as it is asked.
struct FileRx {
    reader: Reader<BufReader<File>>,
    finished: bool,
    counts: Arc<Tally<4>>,
}

/// The numbers of a receiving half.
const READ: usize = 0;
const TOO_LONG: usize = 1;
const POOL_EMPTY: usize = 2;
const MALFORMED: usize = 3;
const RX_NAMES: [&str; 4] = ["rx_packets", "rx_drop_too_long", "rx_pool_empty", "rx_malformed"];

/// Opens the capture file `path` as a receiving half. It ends at the end of the file or at the first malformed
/// record, which is counted.
///
/// # Errors
/// The file cannot be read, or is no capture file.
pub fn open(path: &Path) -> Result<Box<dyn Rx>> {
    let file = File::open(path).map_err(|e| Error::system(format!("open {}", path.display()), e))?;
    let reader = Reader::new(BufReader::new(file))?;
    Ok(Box::new(FileRx { reader, finished: false, counts: Tally::new(RX_NAMES) }))
}

impl Receiver for FileRx {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        let (before, budget) = (batch.len(), budget.min(batch.room()));
        while batch.len() < before + budget && !self.finished {
            // The frame is taken first: when there is none, the record waits in the file.
            let Some(mut packet) = Packet::new() else {
                self.counts.add(POOL_EMPTY, 1);
                break;
            };
            match self.reader.next_record() {
                Ok(Some(record)) => match packet.put(record.data.len()) {
                    Ok(room) => {
                        room.copy_from_slice(record.data);
                        packet.set_timestamp_ns(record.timestamp_ns);
                        packet.set_wire_len(record.wire_len as usize);
                        // There is room for so many.
                        let _ = batch.push(packet);
                    }
                    Err(_) => self.counts.add(TOO_LONG, 1),
                },
                Ok(None) => self.finished = true,
                Err(_) => {
                    self.counts.add(MALFORMED, 1);
                    self.finished = true;
                }
            }
        }
        self.counts.add(READ, (batch.len() - before) as u64);
        !self.finished
    }

    fn waiting(&mut self) -> usize {
        usize::from(!self.finished)
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

impl Rx for FileRx {
    fn is_finished(&self) -> bool {
        self.finished
    }

    fn statistics(&self) -> Arc<dyn Statistics> {
        self.counts.clone()
    }
}

/// Writes the packets it is given to a file.
struct FileTx {
    writer: Writer<BufWriter<File>>,
    completions: Completions,
    counts: Arc<Tally<2>>,
}

/// The numbers of a transmitting half.
const WRITTEN: usize = 0;
const ERRORS: usize = 1;

/// Makes the capture file `path`, over an old one, as a transmitting half for packets of type `linktype`.
///
/// # Errors
/// The file cannot be written.
pub fn create(path: &Path, format: Format, linktype: u32) -> Result<Box<dyn Tx>> {
    let failed = |e| Error::system(format!("write {}", path.display()), e);
    let file = File::create(path).map_err(failed)?;
    let writer = Writer::new(BufWriter::new(file), format, linktype, SNAP_LEN).map_err(failed)?;
    let counts = Tally::new(["tx_packets", "tx_error"]);
    Ok(Box::new(FileTx { writer, completions: Completions::default(), counts }))
}

impl Tx for FileTx {
    fn offer(&mut self, batch: &mut Batch) -> usize {
        let n = batch.len();
        for packet in batch.drain() {
            match self.writer.write(packet.timestamp_ns(), packet.wire_len() as u32, packet.data()) {
                Ok(()) => {
                    self.completions.sent(std::iter::once(&packet));
                    self.counts.add(WRITTEN, 1);
                }
                Err(_) => self.counts.add(ERRORS, 1),
            }
        }
        n
    }

    fn flush(&mut self) {
        if self.writer.flush().is_err() {
            self.counts.add(ERRORS, 1);
        }
    }

    fn completions(&mut self, sink: &mut dyn FnMut(Completion)) {
        self.completions.take(sink);
    }

    fn statistics(&self) -> Arc<dyn Statistics> {
        self.counts.clone()
    }
}

#[cfg(test)]
mod tests;
