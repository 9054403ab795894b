//! GetIPAddress.

use causeway_engine::ir::{At, Base, Field, Test};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "GetIPAddress",
    category: "ip",
    summary: "copies an IPv4 address from the packet to its destination annotation",
    doc: "Copies the four bytes at OFFSET, or with IP the source or destination of the marked header, to the \
          annotation ANNO. A packet too short is passed on unchanged.",
    args: &[
        optional("OFFSET", "bytes", "where the address is"),
        keyword("IP", "`src` or `dst`", "the address of the marked IPv4 header instead of an offset"),
        keyword("ANNO", "annotation", "where to put it, four bytes; default DST_IP"),
    ],
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> GetIPAddress(16) -> Discard;",
    see: &["CheckIPHeader", "StaticIPLookup"],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

struct GetIPAddress {
    offset: usize,
    from_header: bool,
    anno: u8,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let header: Option<String> = conf.keyword_given("IP");
    let anno: Anno = conf.keyword("ANNO", Anno::DST_IP);
    let offset = match header.as_deref() {
        Some("src") => 12,
        Some("dst") => 16,
        Some(_) => {
            conf.error("IP: should be 'src' or 'dst'");
            0
        }
        None => conf.required::<u32>("OFFSET"),
    };
    conf.finish()?;
    Ok(Box::new(GetIPAddress { offset: offset as usize, from_header: header.is_some(), anno: anno.offset }))
}

impl Element for GetIPAddress {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let bytes = if self.from_header { packet.network_header() } else { Some(packet.data()) };
        if let Some(&address) = bytes.and_then(|b| b.get(self.offset..)?.first_chunk()) {
            packet.set_anno_bytes::<4>(self.anno, address);
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let offset = self.offset.try_into().ok()?;
        let at = At { base: if self.from_header { Base::Network } else { Base::Data }, offset };
        let mut b = Builder::new();
        let (there, next) = (b.block(), b.block());
        b.branch(Test::Has(at, 4), there, next);
        b.at(there);
        let address = b.load(at, 4);
        b.put(Field::Anno(self.anno, 4), address);
        b.go(next);
        b.at(next);
        b.leave(0);
        b.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn the_address_is_copied_if_it_is_there() {
        let bytes: Vec<u8> = (0..24).collect();
        for (config, len, first) in [
            ("16", 20, 16),
            ("16", 19, 0),
            ("4000000000", 0, 0),
            ("IP src", 24, 16),
            ("IP dst", 24, 20),
            ("IP dst", 23, 0),
        ] {
            let mut p = packet(&bytes[..len]);
            p.set_network_header(4.min(len));
            let address = verdict(&SPEC, config, p).unwrap().dst_ip();
            assert_eq!((address[0], address[3]), (first, if first == 0 { 0 } else { first + 3 }), "{config}");
        }
    }
}
