//! EtherRewrite.

use causeway_engine::prelude::*;
use causeway_engine::value::Ether;

pub(crate) static SPEC: Spec = Spec {
    name: "EtherRewrite",
    category: "ethernet",
    summary: "writes other addresses into Ethernet headers",
    doc: "Puts SRC and DST into the marked Ethernet header, or into the one at the start if none is marked; the type stays. \
          Packets without a whole header are dropped.",
    args: EtherRewrite::ARGS,
    handlers: handlers!(EtherRewrite::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> EtherRewrite(1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;",
    see: &["EtherEncap", "EtherMirror", "StoreEtherAddress"],
    build: configured::<EtherRewrite>,
    ..Spec::DEFAULT
};

settings! {
    struct EtherRewrite {
        src: Ether = required("SRC", "Ethernet address", "the source"), live("src", "the source address");
        dst: Ether = required("DST", "Ethernet address", "the destination"), live("dst", "the destination address");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "it has no whole Ethernet header";
    }
}

/// The two addresses of the Ethernet header that is marked, or of that at the start of the data.
pub(super) fn addresses(packet: &mut Packet) -> Option<&mut [u8; 12]> {
    // One that was stripped off is out of reach.
    let at = packet.mac_distance().map_or(Ok(0), usize::try_from).ok()?;
    packet.data_mut().get_mut(at..)?.first_chunk_mut()
}

impl Element for EtherRewrite {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let Some(addresses) = addresses(packet) else { return Verdict::drop(Reason::Short) };
        addresses[..6].copy_from_slice(&self.dst.0);
        addresses[6..].copy_from_slice(&self.src.0);
        Verdict::Pass
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn addresses_are_put_in() {
        let config = "1:1:1:1:1:1, 2:2:2:2:2:2";
        let out = verdict(&SPEC, config, packet(&[9; 15])).unwrap();
        assert_eq!(out.data(), [&[2; 6][..], &[1; 6], &[9; 3]].concat());
        let mut marked = packet(&[9; 15]);
        marked.set_mac_header(3);
        assert_eq!(verdict(&SPEC, config, marked).unwrap().data(), [&[9; 3][..], &[2; 6], &[1; 6]].concat());
        assert_eq!(verdict(&SPEC, config, packet(&[9; 11])).err(), Some("short"));
        let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
        h.write("src", "3:3:3:3:3:3").unwrap();
        h.push(0, packet(&[9; 12]));
        assert_eq!((h.take(0)[0].data()[6], h.read("src").unwrap()), (3, "03-03-03-03-03-03".into()));
    }
}
