//! CheckCRC32.

use super::set_crc32::crc32;
use crate::printing::to_stderr;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "CheckCRC32",
    category: "basic",
    summary: "checks the checksum that SetCRC32 appends",
    doc: "Takes the last four bytes off packets for which they are what SetCRC32 would have appended, and drops the others. \
          The first one is told of on standard error.",
    handlers: CheckCRC32::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> SetCRC32 -> CheckCRC32 -> Discard;",
    see: &["SetCRC32"],
    build: configured::<CheckCRC32>,
    ..Spec::DEFAULT
};

settings! {
    struct CheckCRC32 {}
    counts {
        bad: u64 = reads("drops", "packets that were dropped").counts(Unit::Packets);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        BadChecksum = "bad-checksum", "it does not end with its checksum";
    }
}

impl Element for CheckCRC32 {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let right = packet.data().split_last_chunk::<4>().is_some_and(|(data, sum)| crc32(data) == *sum);
        if !right && self.bad == 0 {
            to_stderr(&format!("CRC32 failed, len {}\n", packet.len()));
        }
        self.bad += u64::from(!right);
        (right && packet.take(4).is_ok()).or_drop(Reason::BadChecksum)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn what_was_changed_on_the_way_is_dropped() {
        let sent = verdict(&super::super::set_crc32::SPEC, "", packet(b"abc")).unwrap();
        for i in 0..sent.len() {
            let mut bad = sent.copy().unwrap();
            bad.data_mut()[i] ^= 1;
            assert_eq!(verdict(&SPEC, "", bad).err(), Some("bad-checksum"), "{i}");
        }
        assert_eq!(verdict(&SPEC, "", sent).unwrap().data(), b"abc");
        assert_eq!(verdict(&SPEC, "", packet(b"ab")).err(), Some("bad-checksum"));
    }
}
