//! StoreData.

use causeway_engine::prelude::*;
use causeway_engine::value::Bytes;

pub(crate) static SPEC: Spec = Spec {
    name: "StoreData",
    category: "basic",
    summary: "writes bytes into packets",
    doc: "Writes DATA into packets at OFFSET, as far as they reach. No packet gets longer, and no checksum is touched.",
    args: StoreData::ARGS,
    example: "InfiniteSource(LIMIT 5) -> StoreData(4, \\<beef>) -> Discard;",
    see: &["StoreEtherAddress", "StoreIPAddress"],
    build: configured::<StoreData>,
    ..Spec::DEFAULT
};

settings! {
    struct StoreData {
        offset: u32 = required("OFFSET", "bytes", "where they are written");
        data: Bytes = required("DATA", "string", "the bytes");
    }
}

impl Element for StoreData {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let place = packet.data_mut().get_mut(self.offset as usize..).unwrap_or_default();
        place.iter_mut().zip(&self.data.0).for_each(|(to, from)| *to = *from);
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn bytes_are_written_as_far_as_there_is_a_packet() {
        for (config, data) in
            [("1, xy", &b"axyd"[..]), ("3, xy", b"abcx"), ("4, xy", b"abcd"), ("0, \\<00>", b"\0bcd")]
        {
            assert_eq!(verdict(&SPEC, config, packet(b"abcd")).unwrap().data(), data, "{config}");
        }
    }
}
