//! SetCRC32 and the sum that CheckCRC32 shares.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "SetCRC32",
    category: "basic",
    summary: "appends a checksum to packets",
    doc: "Appends four bytes to each packet: the cyclic redundancy check of Ethernet's polynomial over its bytes, the highest \
          bit first and not inverted at the end, in the byte order of x86. CheckCRC32 checks it and takes it off.",
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> SetCRC32 -> CheckCRC32 -> Discard;",
    see: &["CheckCRC32"],
    build: configured::<SetCRC32>,
    ..Spec::DEFAULT
};

settings! {
    struct SetCRC32 {}
}

drop_reasons! {
    enum Reason for SPEC {
        NoRoom = "no-room", "the packet's frame had no room for four bytes more";
    }
}

const POLYNOMIAL: u32 = 0x04c1_1db7;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = ((byte as u32) << 24, 0);
        while bit < 8 {
            sum = (sum << 1) ^ if sum >> 31 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

/// The check of `bytes`.
pub(super) fn crc32(bytes: &[u8]) -> [u8; 4] {
    let sum =
        bytes.iter().fold(u32::MAX, |sum, &byte| sum << 8 ^ TABLE[(sum >> 24) as usize ^ usize::from(byte)]);
    sum.to_le_bytes()
}

impl Element for SetCRC32 {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let sum = crc32(packet.data());
        packet.put(4).map(|place| place.copy_from_slice(&sum)).or_drop(Reason::NoRoom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn the_sum_is_that_of_the_polynomial() {
        // CRC-32/MPEG-2 of "123456789" is 0x0376e6e7.
        let out = verdict(&SPEC, "", packet(b"123456789")).unwrap();
        assert_eq!(out.data(), b"123456789\xe7\xe6\x76\x03");
    }
}
