//! EtherEncap.

use crate::anew::{Anew, CONFIG};
use causeway_engine::ir::{At, Builder, Field, Program, Value};
use causeway_engine::spec::{Lowers, drops, reads_writes, required};
use causeway_engine::value::Ether;
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::Batch;
use causeway_packet::wire::ethernet::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "EtherEncap",
    category: "ethernet",
    summary: "puts a fixed Ethernet header in front of packets",
    doc: "Prepends an Ethernet header with type ETHERTYPE from SRC to DST, and marks it as the link-layer header.",
    args: &[
        required("ETHERTYPE", "number from 0 to 65535", "the type, such as 0x0800"),
        required("SRC", "Ethernet address", "the source"),
        required("DST", "Ethernet address", "the destination"),
    ],
    handlers: &[
        reads_writes("src", "the source address"),
        reads_writes("dst", "the destination address"),
        reads_writes("ethertype", "the type"),
        reads_writes("etht", "the same as `ethertype`"),
        CONFIG,
    ],
    drops: &[drops("no-headroom", "the packet's frame had no room for a header")],
    example: "InfiniteSource(LIMIT 5) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;",
    see: &["ARPQuerier", "Strip"],
    lowers: Lowers::Straight,
    build,
    ..Spec::DEFAULT
};

struct EtherEncap {
    ether_type: u16,
    src: Ether,
    dst: Ether,
    header: [u8; HEADER_LEN],
    anew: Anew,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let (ether_type, src, dst) = (conf.required("ETHERTYPE"), conf.required("SRC"), conf.required("DST"));
    conf.finish()?;
    let mut element = EtherEncap { ether_type, src, dst, header: [0; HEADER_LEN], anew: Anew::new(conf) };
    element.make_header();
    Ok(Box::new(element))
}

/// Puts an Ethernet header in front, given as its first eight bytes and the six behind them.
pub(super) fn lower_encap(b: &mut Builder, front: impl Into<Value>, back: impl Into<Value>) {
    b.push(HEADER_LEN as u32);
    b.store(At::data(0), 8, front);
    b.store(At::data(8), 6, back);
    b.put(Field::Mac, 0);
}

impl EtherEncap {
    fn make_header(&mut self) {
        self.header[..6].copy_from_slice(&self.dst.0);
        self.header[6..12].copy_from_slice(&self.src.0);
        self.header[12..].copy_from_slice(&self.ether_type.to_be_bytes());
    }
}

impl Element for EtherEncap {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        batch.filter_map(|mut packet| {
            match packet.push(HEADER_LEN).map(|data| data.first_chunk_mut()) {
                Ok(Some(start)) => *start = self.header,
                _ => {
                    cx.drop(0, packet);
                    return None;
                }
            }
            packet.set_mac_header(0);
            Some(packet)
        });
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let (front, back) = self.header.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
        lower_encap(&mut b, number(front), number(back));
        b.leave(0);
        b.finish()
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "config" => cx.config().to_owned(),
            "src" => self.src.to_string(),
            "dst" => self.dst.to_string(),
            _ => self.ether_type.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        match handler {
            "config" => {
                *self = *self.anew.element(value, cx)?;
                cx.set_config(value.to_owned());
                return Ok(());
            }
            "etht" => {
                self.ether_type = crate::handlers::value(handler, value)?;
                cx.set_argument("ETHERTYPE", value);
            }
            "src" => self.src = crate::handlers::value(handler, value)?,
            "dst" => self.dst = crate::handlers::value(handler, value)?,
            _ => self.ether_type = crate::handlers::value(handler, value)?,
        }
        self.make_header();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

    #[test]
    fn the_header_is_what_the_configuration_says() {
        let mut h = Harness::new(&SPEC, "0x86dd, 1:2:3:4:5:6, 7:8:9:a:b:c", 1, 1).unwrap();
        let mut p = Packet::from_bytes(b"xy").unwrap();
        p.set_network_header(0);
        h.push(0, p);
        let out = h.take(0);
        assert_eq!(out[0].data(), [7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 0x86, 0xdd, b'x', b'y']);
        assert_eq!((out[0].mac_distance(), out[0].network_offset()), (Some(0), Some(14)));
        h.write("dst", "ff:ff:ff:ff:ff:ff").unwrap();
        h.push(0, Packet::from_bytes(b"").unwrap());
        assert_eq!(h.take(0)[0].data()[..7], [255, 255, 255, 255, 255, 255, 1]);
        assert_eq!(h.read("config").unwrap(), "0x86dd, 1:2:3:4:5:6, ff:ff:ff:ff:ff:ff");
        assert!(h.write("src", "1:2").is_err());
    }

    #[test]
    fn a_frame_without_room_is_dropped() {
        let mut h = Harness::new(&SPEC, "0, 1:2:3:4:5:6, 7:8:9:a:b:c", 1, 1).unwrap();
        let mut full = Packet::with_headroom(0).unwrap();
        full.put(full.tailroom() - (HEADER_LEN - 1)).unwrap();
        h.push(0, full);
        assert_eq!((h.take(0).len(), h.drops()), (0, vec![("no-headroom", 1)]));
        h.assert_balanced();
    }
}
