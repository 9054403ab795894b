//! Replay of a capture: its frames as they are, at their own times, faster or slower, or as fast as the port takes them.

use super::sending::{Sending, Source, send};
use super::{Attached, Since, Transmitted, pin};
use anyhow::{Context, Result, ensure};
use causeway_netio::pcap::{LINKTYPE_ETHERNET, Reader};
use causeway_packet::{Batch, Packet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// When the frames of a capture leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// At the distances of the capture, divided by this: 1 keeps them.
    Speed(f64),
    /// One behind the other, as fast as the port takes them.
    Fastest,
}

/// The frames of a capture, in memory, so that nothing is read while they are sent.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    bytes: Vec<u8>,
    /// Where each frame ends, and when it was captured, in nanoseconds after the first.
    frames: Vec<(usize, u64)>,
    /// Frames of which not all was captured: they are sent as far as they were.
    pub cut: u64,
}

impl Capture {
    /// Reads a file in the format of pcap or pcapng.
    ///
    /// # Errors
    /// If it cannot be read, is no capture of Ethernet, or has no frames.
    pub fn open(file: &Path) -> Result<Capture> {
        let named = || file.display().to_string();
        Capture::read(BufReader::new(File::open(file).with_context(named)?)).with_context(named)
    }

    fn read(input: impl Read) -> Result<Capture> {
        let (mut reader, mut capture, mut first_ns) = (Reader::new(input)?, Capture::default(), None);
        while let Some(record) = reader.next_record()? {
            ensure!(record.linktype == LINKTYPE_ETHERNET, "its frames are not Ethernet");
            let since_ns = record.timestamp_ns.saturating_sub(*first_ns.get_or_insert(record.timestamp_ns));
            // A frame that was captured late leaves no earlier than those before it.
            let at_ns = capture.frames.last().map_or(since_ns, |&(_, before)| since_ns.max(before));
            capture.bytes.extend(record.data);
            capture.cut += u64::from((record.data.len() as u64) < u64::from(record.wire_len));
            capture.frames.push((capture.bytes.len(), at_ns));
        }
        ensure!(!capture.frames.is_empty(), "it has no frames");
        Ok(capture)
    }

    fn frame(&self, n: usize) -> &[u8] {
        let start = n.checked_sub(1).map_or(0, |before| self.frames[before].0);
        &self.bytes[start..self.frames[n].0]
    }

    /// Bytes of the longest frame.
    fn longest(&self) -> usize {
        (0..self.frames.len()).map(|n| self.frame(n).len()).max().unwrap_or(0)
    }

    /// From one round to the next: what the capture lasted, and once more its mean distance.
    fn round_ns(&self) -> u64 {
        let (gaps, last_ns) = (self.frames.len() as u64 - 1, self.frames[self.frames.len() - 1].1);
        last_ns + last_ns.checked_div(gaps).unwrap_or(0)
    }
}

/// What is left of a replay.
struct Replay<'a> {
    capture: &'a Capture,
    timing: Timing,
    times: u64,
    sent: u64,
}

impl Replay<'_> {
    /// When the next frame is due; `None` after the last.
    fn due_ns(&self) -> Option<u64> {
        let n = self.capture.frames.len() as u64;
        let (round, at) = (self.sent / n, (self.sent % n) as usize);
        let own_ns = round * self.capture.round_ns() + self.capture.frames[at].1;
        (round < self.times).then_some(match self.timing {
            Timing::Speed(speed) => (own_ns as f64 / speed) as u64,
            Timing::Fastest => 0,
        })
    }

    fn all(&self) -> u64 {
        self.capture.frames.len() as u64 * self.times
    }
}

impl Source for Replay<'_> {
    type Report = Transmitted;

    fn fill(&mut self, now_ns: u64, batch: &mut Batch) -> Option<u64> {
        while let Some(due_ns) = self.due_ns() {
            if due_ns > now_ns || batch.is_full() {
                return Some(due_ns);
            }
            let at = (self.sent % self.capture.frames.len() as u64) as usize;
            let Some(packet) = Packet::from_bytes(self.capture.frame(at)) else { return Some(due_ns) };
            // There is room for it.
            let _ = batch.push(packet);
            self.sent += 1;
        }
        None
    }

    fn finish(self, left: &Batch, last_ns: u64) -> Transmitted {
        Transmitted { intended: self.all(), frames: self.sent - left.len() as u64, took_ns: last_ns }
    }
}

/// Sends the frames of `capture` so many times by `port`. Ends when all are sent or it is `interrupted`.
///
/// # Errors
/// If a frame is longer than the port can carry, or the speed is not above zero.
pub fn replay(
    port: &mut Attached,
    capture: &Capture,
    timing: Timing,
    times: u32,
    processors: &[usize],
    interrupted: &AtomicBool,
) -> Result<Transmitted> {
    let (longest, most) = (capture.longest(), port.max_frame);
    ensure!(longest <= most, "a frame of {longest} bytes is longer than {} can carry, {most}", port.name);
    if let Timing::Speed(speed) = timing {
        ensure!(speed.is_finite() && speed > 0.0, "the speed is above zero");
    }
    pin(processors);
    let replay = Replay { capture, timing, times: times.into(), sent: 0 };
    Ok(send(Sending::new(&mut *port.tx, replay, None), Since::now(), interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tester::tests::attached;
    use causeway_netio::memory;
    use causeway_netio::pcap::{Format, SNAP_LEN, Writer};
    use causeway_packet::BATCH;

    const MS: u64 = 1_000_000;

    /// Frames of these lengths at these milliseconds after a time long ago.
    fn file(frames: &[(u64, usize)], linktype: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, Format::Pcap, linktype, SNAP_LEN).expect("a head");
        for &(at_ms, length) in frames {
            let data = vec![length as u8; length];
            writer.write((5_000 + at_ms) * MS, length as u32, &data).expect("a record");
        }
        writer.flush().expect("written");
        bytes
    }

    fn capture() -> Capture {
        Capture::read(&*file(&[(0, 60), (10, 61), (30, 62), (20, 63)], LINKTYPE_ETHERNET)).expect("a capture")
    }

    /// When each frame is due, in milliseconds, and its length.
    fn dues(timing: Timing, times: u64) -> Vec<(u64, usize)> {
        let (capture, mut found) = (capture(), Vec::new());
        let mut replay = Replay { capture: &capture, timing, times, sent: 0 };
        while let Some(due_ns) = replay.due_ns() {
            let mut batch = Batch::new();
            if due_ns > 0 {
                assert_eq!(replay.fill(due_ns - 1, &mut batch), Some(due_ns));
                assert!(batch.is_empty());
            }
            replay.fill(due_ns, &mut batch);
            found.extend(batch.iter().map(|packet| (due_ns / MS, packet.len())));
        }
        found
    }

    #[test]
    fn times_are_kept_or_scaled_and_rounds_follow_each_other() {
        // The last was captured out of order, and leaves behind the one before it.
        assert_eq!(dues(Timing::Speed(1.0), 1), [(0, 60), (10, 61), (30, 62), (30, 63)]);
        assert_eq!(dues(Timing::Speed(2.0), 1), [(0, 60), (5, 61), (15, 62), (15, 63)]);
        let twice = dues(Timing::Speed(0.5), 2);
        assert_eq!(twice[4..], [(80, 60), (100, 61), (140, 62), (140, 63)]);
        assert_eq!(dues(Timing::Fastest, 2).iter().filter(|(at, _)| *at == 0).count(), 8);
    }

    #[test]
    fn frames_go_out_as_they_were_captured() {
        let (a, b) = memory::pair("replay", 64).expect("a pair");
        let mut port = attached(a, "198.18.0.0/18");
        let running = AtomicBool::new(false);
        let sent = replay(&mut port, &capture(), Timing::Fastest, 3, &[], &running).expect("sent");
        assert_eq!((sent.intended, sent.frames), (12, 12));
        let mut batch = Batch::new();
        let mut other = b.queues.into_iter().next().expect("a queue");
        other.rx.poll(&mut batch, BATCH);
        let lengths: Vec<_> = batch.iter().map(|packet| (packet.len(), packet.data()[0])).collect();
        assert_eq!(lengths, [(60, 60), (61, 61), (62, 62), (63, 63)].repeat(3));
    }

    #[test]
    fn what_cannot_be_replayed_is_refused() {
        let refused = |bytes: &[u8]| Capture::read(bytes).expect_err("refused").to_string();
        assert!(refused(&file(&[(0, 60)], 101)).contains("not Ethernet"));
        assert!(refused(&file(&[], LINKTYPE_ETHERNET)).contains("no frames"));
        assert!(refused(b"nothing like it").contains("neither pcap"));
        let long = Capture::read(&*file(&[(0, 9_000)], LINKTYPE_ETHERNET)).expect("a capture");
        let (a, _b) = memory::pair("replay-long", 64).expect("a pair");
        let mut port = attached(a, "198.18.0.0/18");
        let running = AtomicBool::new(false);
        let mut error = |capture: &Capture, timing| {
            replay(&mut port, capture, timing, 1, &[], &running).expect_err("refused").to_string()
        };
        assert!(error(&long, Timing::Fastest).contains("9000 bytes is longer than"));
        assert!(error(&capture(), Timing::Speed(0.0)).contains("above zero"));
        assert!(Capture::open(Path::new("/no/such/file")).is_err());
    }
}
