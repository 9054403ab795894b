//! Clipboard.

use causeway_engine::prelude::*;
use causeway_lang::values::unsigned_32;

pub(crate) static SPEC: Spec = Spec {
    name: "Clipboard",
    category: "basic",
    summary: "copies bytes of one packet into others",
    ports: "2/2",
    processing: "a/a",
    flow: "#/#",
    doc: "Keeps the bytes of the RANGEs of each packet that comes in by input 0, which leaves by output 0 as it is, and writes \
          them at the same places into each packet that comes in by input 1, which leaves by output 1. A RANGE is an offset \
          and a length, such as `12/2`. Before the first packet on input 0 the bytes are zero. A packet on input 1 that is too \
          short for a range stays as it is; one on input 0 that is too short leaves the bytes as they were (in Click it is \
          undefined what they are then).",
    args: &[rest("RANGE", "`offset/length`", "which bytes")],
    handlers: &[CONFIG],
    example: "c :: Clipboard(0/2); InfiniteSource(LIMIT 3, STOP true) -> t :: Tee -> c -> Discard; t[1] -> [1] c [1] -> Discard;",
    see: &["StoreEtherAddress", "Strip", "Unstrip"],
    acts: true,
    build,
    ..Spec::DEFAULT
};

/// Most bytes that are kept: a packet's.
const MOST: usize = 65_536;

struct Clipboard {
    /// Offsets and lengths.
    ranges: Vec<(usize, usize)>,
    bytes: Vec<u8>,
    /// What a packet must have for all ranges.
    least: usize,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut ranges = Vec::new();
    for (i, text) in conf.rest().into_iter().enumerate() {
        let Some((offset, length)) = text.split_once('/').filter(|(a, b)| !a.is_empty() && !b.is_empty())
        else {
            conf.error(format!("range {i}: expected '/' between offset and length"));
            break;
        };
        let mut number = |name: &str, text: &str| {
            unsigned_32(text).map_err(|e| conf.error(format!("{name}: {e}"))).map(|n| n as usize)
        };
        let (offset, length) = (number("OFFSET", offset), number("LENGTH", length));
        match (offset, length) {
            (Ok(offset), Ok(length)) if offset.saturating_add(length) <= MOST => {
                ranges.push((offset, length))
            }
            _ => {
                conf.error(format!("range {i}: invalid offset or length"));
                break;
            }
        }
    }
    conf.finish()?;
    let least = ranges.iter().map(|(offset, length)| offset + length).max().unwrap_or(0);
    let bytes = vec![0; ranges.iter().map(|(_, length)| length).sum::<usize>().min(MOST * 16)];
    Ok(Box::new(Clipboard { ranges, bytes, least }))
}

impl Clipboard {
    fn copy(&mut self, data: &[u8]) {
        let mut to = &mut self.bytes[..];
        for &(offset, length) in &self.ranges {
            let (Some(from), true) = (data.get(offset..offset + length), to.len() >= length) else { return };
            let (part, rest) = std::mem::take(&mut to).split_at_mut(length);
            part.copy_from_slice(from);
            to = rest;
        }
    }

    fn paste(&self, data: &mut [u8]) {
        let mut from = &self.bytes[..];
        for &(offset, length) in &self.ranges {
            let (Some(to), Some(part)) = (data.get_mut(offset..offset + length), from.get(..length)) else {
                return;
            };
            to.copy_from_slice(part);
            from = &from[length..];
        }
    }
}

impl Element for Clipboard {
    fn packet(&mut self, port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        if packet.len() >= self.least {
            match port {
                0 => self.copy(packet.data()),
                _ => self.paste(packet.data_mut()),
            }
        }
        Verdict::Out(port)
    }

    fn pull(&mut self, port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.pull(port, max, batch);
        if !batch.is_empty() {
            self.push(port, batch, cx);
        }
    }

    fn take_settings(&mut self, new: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<Clipboard>() {
            std::mem::swap(self, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn bytes_go_from_one_packet_into_others() {
        let mut h = Harness::new(&SPEC, "1/2, 4/1", 2, 2).unwrap();
        for (port, bytes) in [(0, b"abcdef"), (1, b"uvwxyz"), (1, b"123456")] {
            h.push(port, packet(bytes));
        }
        h.push(1, packet(b"1234"));
        assert_eq!(h.take(0)[0].data(), b"abcdef");
        let pasted: Vec<Vec<u8>> = h.take(1).iter().map(|p| p.data().to_vec()).collect();
        assert_eq!(pasted, [b"ubcxez".to_vec(), b"1bc4e6".to_vec(), b"1234".to_vec()]);
        h.assert_balanced();
    }

    #[test]
    fn ranges_are_checked() {
        let errors = |config: &str| Harness::new(&SPEC, config, 2, 2).err().unwrap();
        assert_eq!(errors("0/4, x, 3"), ["range 1: expected '/' between offset and length"]);
        assert_eq!(errors("x/3"), ["OFFSET: invalid number", "range 0: invalid offset or length"]);
        assert_eq!(errors("70000/3"), ["range 0: invalid offset or length"]);
    }
}
