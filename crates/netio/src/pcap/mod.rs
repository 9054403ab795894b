//! Capture files as ports, and as readers and writers: pcap and pcapng.
//!
//! The formats are those of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Both byte orders and all timestamp
//! resolutions are read; what is written is little-endian, with nanoseconds unless microseconds are asked for.

mod read;
mod write;

pub use read::{Reader, Record};
pub use write::{Format, InterfacesWriter, SNAP_LEN, Writer};

use crate::port::{Counter, Rx, Tx};
use crate::{Error, Result};
use causeway_packet::{Batch, Packet};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The link-layer type of Ethernet (tcpdump.org's list of link types).
pub const LINKTYPE_ETHERNET: u32 = 1;
/// The link-layer type of bare IP packets.
pub const LINKTYPE_RAW: u32 = 101;

/// Receives the packets of a file, as fast as it is asked.
struct FileRx {
    reader: Reader<BufReader<File>>,
    finished: bool,
    packets: u64,
    too_long: u64,
    pool_empty: u64,
    malformed: u64,
}

/// Opens the capture file `path` as a receiving half. It ends at the end of the file or at the first malformed
/// record, which is counted.
///
/// # Errors
/// The file cannot be read, or is no capture file.
pub fn open(path: &Path) -> Result<Box<dyn Rx>> {
    let file = File::open(path).map_err(|e| Error::system(format!("open {}", path.display()), e))?;
    let reader = Reader::new(BufReader::new(file))?;
    Ok(Box::new(FileRx { reader, finished: false, packets: 0, too_long: 0, pool_empty: 0, malformed: 0 }))
}

impl Rx for FileRx {
    fn pending(&mut self) -> usize {
        usize::from(!self.finished)
    }

    fn receive(&mut self, batch: &mut Batch, max: usize) -> usize {
        let max = max.min(batch.room());
        let mut n = 0;
        while n < max && !self.finished {
            // The frame is taken first: when there is none, the record waits in the file.
            let Some(mut packet) = Packet::new() else {
                self.pool_empty += 1;
                return n;
            };
            match self.reader.next_record() {
                Ok(Some(record)) => match packet.put(record.data.len()) {
                    Ok(room) => {
                        room.copy_from_slice(record.data);
                        packet.set_timestamp_ns(record.timestamp_ns);
                        packet.set_wire_len(record.wire_len as usize);
                        // There is room for `max`.
                        let _ = batch.push(packet);
                        n += 1;
                    }
                    Err(_) => self.too_long += 1,
                },
                Ok(None) => self.finished = true,
                Err(_) => {
                    self.malformed += 1;
                    self.finished = true;
                }
            }
        }
        self.packets += n as u64;
        n
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_finished(&self) -> bool {
        self.finished
    }

    fn counters(&self) -> Vec<Counter> {
        vec![
            ("rx_packets", self.packets),
            ("rx_drop_too_long", self.too_long),
            ("rx_pool_empty", self.pool_empty),
            ("rx_malformed", self.malformed),
        ]
    }
}

/// Writes the packets it is given to a file.
struct FileTx {
    writer: Writer<BufWriter<File>>,
    packets: u64,
    errors: u64,
}

/// Makes the capture file `path`, over an old one, as a transmitting half for packets of type `linktype`.
///
/// # Errors
/// The file cannot be written.
pub fn create(path: &Path, format: Format, linktype: u32) -> Result<Box<dyn Tx>> {
    let failed = |e| Error::system(format!("write {}", path.display()), e);
    let file = File::create(path).map_err(failed)?;
    let writer = Writer::new(BufWriter::new(file), format, linktype, SNAP_LEN).map_err(failed)?;
    Ok(Box::new(FileTx { writer, packets: 0, errors: 0 }))
}

impl Tx for FileTx {
    fn transmit(&mut self, batch: &mut Batch) -> usize {
        let n = batch.len();
        for packet in batch.drain() {
            match self.writer.write(packet.timestamp_ns(), packet.wire_len() as u32, packet.data()) {
                Ok(()) => self.packets += 1,
                Err(_) => self.errors += 1,
            }
        }
        n
    }

    fn flush(&mut self) {
        if self.writer.flush().is_err() {
            self.errors += 1;
        }
    }

    fn counters(&self) -> Vec<Counter> {
        vec![("tx_packets", self.packets), ("tx_error", self.errors)]
    }
}

#[cfg(test)]
mod tests;
