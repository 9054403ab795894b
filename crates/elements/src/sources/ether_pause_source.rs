//! EtherPauseSource.

use causeway_engine::prelude::*;
use causeway_engine::settings::Fresh;
use causeway_engine::spec::Notifies;
use causeway_engine::value::{Ether, Nanoseconds};
use causeway_packet::wire::ethernet;

pub(crate) static SPEC: Spec = Spec {
    name: "EtherPauseSource",
    category: "sources",
    summary: "makes Ethernet pause frames",
    ports: "0/1",
    doc: "Makes frames that ask the neighbour to be silent for PAUSETIME (IEEE 802.3 annex 31B): pushes one every INTERVAL, \
          the first after an INTERVAL and, when it was silent, at once, or gives one for each pull. Frames are 64 bytes long.",
    args: EtherPauseSource::ARGS,
    handlers: EtherPauseSource::HANDLERS,
    drops: Reason::DOCS,
    example: "EtherPauseSource(2:0:0:0:0:1, 390, INTERVAL 10ms) -> Discard;",
    see: &["TimedSource"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoFrame = "no-frame", "no frame was free for the packet";
    }
}

/// The group address of pause frames (IEEE 802.3 annex 31B.1).
const PAUSE_GROUP: Ether = Ether([0x01, 0x80, 0xc2, 0, 0, 0x01]);
/// Of MAC control frames.
const ETHER_TYPE: u16 = 0x8808;
const OPCODE_PAUSE: u16 = 1;
const LENGTH: usize = 64;
/// The only timer: the next frame.
const NEXT: u32 = 0;

settings! {
    struct EtherPauseSource {
        src: Ether = required("SRC", "Ethernet address", "the source, which is that of the sending port"), live("src", "source address");
        pausetime: u16 = required("PAUSETIME", "times of 512 bits", "how long to pause; 0 ends a pause"), live("pausetime", "how long to pause, in times of 512 bits");
        dst: Ether = keyword("DST", "Ethernet address", "the destination; default 01-80-C2-00-00-01"), or(PAUSE_GROUP), live("dst", "destination address");
        limit: i64 = keyword("LIMIT", "packets", "most frames made; negative means no limit; default -1"), or(-1), live("limit", "most frames made; negative means no limit");
        active: bool = keyword("ACTIVE", "boolean", "whether to make frames; default true"), or(true), live("active", "whether it makes frames");
        interval: Nanoseconds = keyword("INTERVAL", "seconds", "time between pushed frames; default 1"), or(Nanoseconds(1_000_000_000));
    }
    counts {
        count: Fresh = reads("count", "frames made since the last reset").counts(Unit::Packets);
    }
    resets {
        "reset_counts", "sets the count to zero, so that LIMIT frames are made again";
    }
}

struct Source {
    own: EtherPauseSource,
    /// When the next frame is due, while the timer runs.
    due_ns: Option<u64>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = EtherPauseSource::configure(conf);
    conf.finish()?;
    Ok(Box::new(Source { own, due_ns: None }))
}

impl Source {
    fn left(&self) -> u64 {
        let made = self.own.count.get();
        u64::try_from(self.own.limit).map_or(u64::MAX, |limit| limit.saturating_sub(made))
    }

    fn works(&self) -> bool {
        self.own.active && self.left() > 0
    }

    fn frame(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut packet = Packet::new();
        let Some(data) = packet.as_mut().and_then(|p| p.put(LENGTH).ok()) else {
            cx.count_drops(Reason::NoFrame, 1);
            return None;
        };
        data.fill(0);
        data[..6].copy_from_slice(&self.own.dst.0);
        data[6..12].copy_from_slice(&self.own.src.0);
        for (at, word) in [(12, ETHER_TYPE), (14, OPCODE_PAUSE), (16, self.own.pausetime)] {
            data[at..at + 2].copy_from_slice(&word.to_be_bytes());
        }
        let mut packet = packet?;
        packet.set_mac_header(0);
        packet.set_network_header(ethernet::HEADER_LEN);
        self.own.count.add(1);
        Some(packet)
    }

    /// Sets the timer to `due_ns` if frames are pushed, there are any to make and it does not run.
    fn start(&mut self, due_ns: u64, cx: &mut Cx<'_>) {
        if self.works() && self.due_ns.is_none() && cx.connected(0) {
            self.due_ns = Some(due_ns);
            cx.set_timer(NEXT, due_ns);
        }
    }
}

impl Element for Source {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let due_ns = cx.now_ns().saturating_add(self.own.interval.0);
        self.start(due_ns, cx);
        cx.notify_packets(self.works());
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        let Some(due_ns) = self.due_ns.take().filter(|_| self.works()) else { return };
        if let Some(packet) = self.frame(cx) {
            cx.emit(0, packet);
        }
        // An interval after the last frame was due, so that lateness does not add up.
        self.start(due_ns.saturating_add(self.own.interval.0), cx);
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..self.left().min(max as u64).min(batch.room() as u64) {
            match self.own.active.then(|| self.frame(cx)).flatten() {
                // There is room.
                Some(packet) => drop(batch.push(packet)),
                None => break,
            }
        }
        if !self.works() {
            cx.notify_packets(false);
        }
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.own)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        self.start(now_ns, cx);
        cx.notify_packets(self.works());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};

    #[test]
    fn one_frame_an_interval_up_to_the_limit() {
        let mut h = Harness::new(&SPEC, "2:0:0:0:0:1, 390, LIMIT 3, INTERVAL 10ms", 0, 1).unwrap();
        h.advance(9_900_000);
        assert_eq!(h.take(0).len(), 0);
        h.advance(200_000);
        let out = h.take(0);
        assert_eq!(out[0].len(), 64);
        assert_eq!(&out[0].data()[..20], b"\x01\x80\xc2\0\0\x01\x02\0\0\0\0\x01\x88\x08\0\x01\x01\x86\0\0");
        h.advance(100_000_000);
        assert_eq!((h.take(0).len(), h.read("count").unwrap()), (2, "3".to_owned()));
        h.write("dst", "2:0:0:0:0:9").unwrap();
        h.write("pausetime", "1").unwrap();
        h.write("reset_counts", "").unwrap();
        h.advance(1);
        let out = h.take(0);
        assert_eq!((&out[0].data()[..6], &out[0].data()[16..18]), (&[2, 0, 0, 0, 0, 9][..], &[0, 1][..]));
        h.write("active", "false").unwrap();
        h.advance(100_000_000);
        assert_eq!(h.take(0).len(), 0);
        assert!(h.write("pausetime", "65536").is_err());
    }

    #[test]
    fn gives_a_frame_for_each_pull() {
        let ports = Ports { pulled_inputs: vec![], outputs: vec![Output::Pulled] };
        let mut h = Harness::with_ports(&SPEC, "2:0:0:0:0:1, 390, LIMIT 3", &ports).unwrap();
        assert_eq!((h.pull(0, 1).len(), h.pull(0, 5).len(), h.pull(0, 5).len()), (1, 2, 0));
        h.write("limit", "4").unwrap();
        h.write("active", "false").unwrap();
        assert_eq!(h.pull(0, 5).len(), 0);
        h.write("active", "true").unwrap();
        assert_eq!(h.pull(0, 5).len(), 1);
    }
}
