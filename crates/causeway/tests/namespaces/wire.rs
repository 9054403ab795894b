//! What is on a wire: the TCP and UDP checksums of all that comes in by an interface.

use crate::net::{Net, Router, wait_for};
use causeway_netio::pcap::Reader;
use rustix::process::Signal;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// A tap at an interface; its files go with the value.
pub struct Wire {
    tap: Router,
    graph: PathBuf,
    dump: PathBuf,
}

impl Wire {
    /// Begins to look at the interface `device` of a host.
    pub fn tap(net: &Net, space: &str, device: &str) -> Wire {
        let file = |end: &str| std::env::temp_dir().join(format!("{}.{end}", net.name(space)));
        let (graph, dump) = (file("click"), file("pcap"));
        let text = format!("FromDevice({device}, METHOD PACKET) -> ToDump({});", dump.display());
        std::fs::write(&graph, text).expect("written");
        let tap = net.start(space, &format!("run {}", graph.display()));
        wait_for("the dump", || dump.exists());
        Wire { tap, graph, dump }
    }

    /// Waits for so many frames.
    pub fn wait(&self, frames: u64) {
        wait_for("frames on the wire", || self.tap.number("FromDevice@1.count") >= frames);
    }

    /// The frames that came.
    pub fn frames(mut self) -> Vec<Vec<u8>> {
        assert_eq!(self.tap.end(Signal::TERM), Some(0));
        let mut reader =
            Reader::new(BufReader::new(File::open(&self.dump).expect("a dump"))).expect("a dump");
        let mut frames = Vec::new();
        while let Some(record) = reader.next_record().expect("a record") {
            frames.push(record.data.to_vec());
        }
        frames
    }

    /// How many checksums of packets from 10.77.1.2 and 2001:db8:1::2 were right, and how many were wrong.
    pub fn end(mut self) -> (usize, usize) {
        assert_eq!(self.tap.end(Signal::TERM), Some(0));
        let file = BufReader::new(File::open(&self.dump).expect("a dump"));
        let mut reader = Reader::new(file).expect("a dump");
        let (mut good, mut wrong) = (0, 0);
        while let Some(record) = reader.next_record().expect("a record") {
            match is_right(record.data) {
                Some(true) => good += 1,
                Some(false) => wrong += 1,
                None => {}
            }
        }
        (good, wrong)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for path in [&self.graph, &self.dump] {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether the checksum of a TCP segment or UDP datagram from host `a` is right (RFC 1071, RFC 8200 section 8.1).
fn is_right(frame: &[u8]) -> Option<bool> {
    const FOUR: [u8; 4] = [10, 77, 1, 2];
    const SIX: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    let packet = frame.get(14..)?;
    let (addresses, protocol, segment) = match frame.get(12..14)? {
        [0x08, 0x00] => {
            let length = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
            (packet.get(12..20)?, *packet.get(9)?, packet.get(20..length)?)
        }
        [0x86, 0xdd] => {
            let length = usize::from(u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]));
            (packet.get(8..40)?, *packet.get(6)?, packet.get(40..40 + length)?)
        }
        _ => return None,
    };
    if ![6, 17].contains(&protocol) || !(addresses.starts_with(&FOUR) || addresses.starts_with(&SIX)) {
        return None;
    }
    let words = |bytes: &[u8]| -> u64 {
        bytes.chunks(2).map(|c| u64::from(c[0]) << 8 | u64::from(*c.get(1).unwrap_or(&0))).sum()
    };
    let mut sum = words(addresses) + u64::from(protocol) + segment.len() as u64 + words(segment);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    Some(sum == 0xffff)
}
