//! IPOutputCombo.

use super::dec_ip_ttl;
use super::fix_ip_src::fix_source;
use super::ip_gw_options::{Fault, Recorder};
use crate::annotations::paint_tee::emit_copy;
use crate::ethernet::drop_broadcasts::to_many;
use causeway_engine::spec::{drops, required};
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::{Batch, Packet};

pub(crate) static SPEC: Spec = Spec {
    name: "IPOutputCombo",
    category: "ip",
    summary: "does the last steps of an IPv4 router before an interface in one",
    ports: "1/5",
    processing: "h/h",
    doc: "Does what `DropBroadcasts -> PaintTee(COLOR) -> IPGWOptions(IPADDR) -> FixIPSrc(IPADDR) -> DecIPTTL \
          -> CheckLength(MTU)` do, touching each packet once. Packets that may leave do so by output 0. The others are \
          those that an ICMPError has to see: output 1 has copies of packets whose paint is COLOR (`redirect`), 2 \
          packets with malformed options (`parameterproblem`), 3 those that have lived too long (`timeexceeded`), \
          and 4 those longer than MTU, which an IPFragmenter cuts or diverts to another ICMPError \
          (`unreachable, needfrag`). The network header must be marked.",
    args: &[
        required("COLOR", "byte", "the paint of packets that came in by the interface"),
        required("IPADDR", "IP address", "address of the interface"),
        required("MTU", "bytes", "longest IP packet that the interface takes"),
    ],
    drops: &[
        drops("broadcast", "the packet came as a link-level broadcast or multicast"),
        drops("no-header", "no IPv4 header is marked"),
        drops("no-buffer", "there was no frame for a copy"),
    ],
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> o :: IPOutputCombo(1, 1.0.0.2, 1500) \
              -> Discard; o[1] -> d :: Discard; o[2] -> d; o[3] -> d; o[4] -> IPFragmenter(1500) -> d;",
    see: &[
        "IPInputCombo",
        "DropBroadcasts",
        "PaintTee",
        "IPGWOptions",
        "FixIPSrc",
        "DecIPTTL",
        "CheckLength",
        "IPFragmenter",
    ],
    build,
    ..Spec::DEFAULT
};

const BROADCAST: usize = 0;
const NO_HEADER: usize = 1;
const NO_BUFFER: usize = 2;

/// Outputs of packets that may not leave as they are.
mod output {
    pub const BAD_OPTION: usize = 2;
    pub const EXPIRED: usize = 3;
    pub const TOO_LONG: usize = 4;
}

struct IPOutputCombo {
    color: u8,
    recorder: Recorder,
    mtu: usize,
}

/// Where a packet goes that does not leave by output 0.
enum Verdict {
    Divert(usize),
    Drop(usize),
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let (color, address) = (conf.required("COLOR"), conf.required("IPADDR"));
    let mtu: u32 = conf.required("MTU");
    conf.finish()?;
    let recorder = Recorder { address, others: Vec::new() };
    Ok(Box::new(IPOutputCombo { color, recorder, mtu: mtu as usize }))
}

impl IPOutputCombo {
    #[inline]
    fn prepare(&self, packet: &mut Packet, cx: &mut Cx<'_>) -> Result<(), Verdict> {
        if to_many(packet.packet_type()) {
            return Err(Verdict::Drop(BROADCAST));
        }
        if packet.paint() == self.color {
            emit_copy(packet, NO_BUFFER, cx);
        }
        match self.recorder.process(packet, || cx.now_ns()) {
            Ok(()) => {}
            Err(Fault::Option) => return Err(Verdict::Divert(output::BAD_OPTION)),
            Err(Fault::NoHeader) => return Err(Verdict::Drop(NO_HEADER)),
        }
        fix_source(packet, self.recorder.address);
        let header = packet.network_header_mut().and_then(|h| h.first_chunk_mut::<20>());
        if !dec_ip_ttl::decrement(header.ok_or(Verdict::Drop(NO_HEADER))?) {
            return Err(Verdict::Divert(output::EXPIRED));
        }
        if packet.len() > self.mtu { Err(Verdict::Divert(output::TOO_LONG)) } else { Ok(()) }
    }
}

impl Element for IPOutputCombo {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        batch.filter_map(|mut packet| match self.prepare(&mut packet, cx) {
            Ok(()) => Some(packet),
            Err(Verdict::Divert(output)) => {
                cx.emit(output, packet);
                None
            }
            Err(Verdict::Drop(reason)) => {
                cx.drop(reason, packet);
                None
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::corpus;
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::PacketType;

    #[test]
    fn each_kind_has_its_output() {
        let mut h = Harness::new(&SPEC, "3, 1.2.3.4, 100", 1, 5).unwrap();
        let packet = |options: &[u8], len: usize, ttl: u8| {
            corpus::marked(&corpus::datagram(options, &vec![0; len], ttl, 0), 0)
        };
        let mut broadcast = packet(&[], 0, 9);
        broadcast.set_packet_type(PacketType::Broadcast);
        let mut painted = packet(&[], 0, 9);
        painted.set_paint(3);
        h.push_all(
            0,
            [
                packet(&[], 80, 9),
                broadcast,
                painted,
                packet(&[7, 1, 0, 0], 0, 9),
                packet(&[], 0, 1),
                packet(&[], 81, 9),
                Packet::from_bytes(b"unmarked").unwrap(),
            ],
        );
        assert_eq!([0, 1, 2, 3, 4].map(|port| h.take(port).len()), [2, 1, 1, 1, 1]);
        assert_eq!(h.drops(), [("broadcast", 1), ("no-header", 1)]);
    }

    #[test]
    fn arguments_are_mandatory() {
        let errors = Harness::new(&SPEC, "3, 1.2.3.4", 1, 5).err().unwrap();
        assert_eq!(errors, ["MTU: required argument missing"]);
    }
}
