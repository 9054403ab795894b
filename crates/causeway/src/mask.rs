//! Ternary masks, which say what the high class is.

use std::fmt;
use std::iter::Peekable;
use std::net::Ipv4Addr;
use std::str::CharIndices;

/// A ternary mask over 80 bits of an IPv4 header: type of service, source, destination, protocol (FPGA paper, section III:
/// the NIC's classifier has one of these for each way out). Bits that are not in the mask may have any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask([Field; 4]);

/// The value that the bits of a part of the header have where the mask has ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Field {
    value: u32,
    mask: u32,
}

/// A part of the header.
struct Part {
    name: &'static str,
    /// Where it is in a frame with an Ethernet header of 14 bytes.
    offset: usize,
    bytes: usize,
}

const PARTS: [Part; 4] = [
    Part { name: "tos", offset: 15, bytes: 1 },
    Part { name: "src", offset: 26, bytes: 4 },
    Part { name: "dst", offset: 30, bytes: 4 },
    Part { name: "proto", offset: 23, bytes: 1 },
];

impl Part {
    fn all(&self) -> u32 {
        u32::MAX >> (32 - 8 * self.bytes)
    }

    /// A value of this part; of addresses `is_mask` allows a length as well.
    fn number(&self, text: &str, is_mask: bool) -> Result<u32, String> {
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
        let number = match digits {
            Some(digits) if digits.starts_with('+') => None,
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None if self.bytes == 1 => text.parse().ok(),
            None => match text.parse::<Ipv4Addr>() {
                Ok(address) => Some(address.into()),
                Err(_) if is_mask => {
                    let length = text.parse::<u32>().ok().filter(|&length| length <= 32);
                    length.map(|length| u32::MAX.checked_shl(32 - length).unwrap_or(0))
                }
                Err(_) => None,
            },
        };
        let wanted = match (self.bytes, is_mask) {
            (1, _) => "a number from 0 to 255, such as 17 or 0x11",
            (_, true) => "a length from 0 to 32, or a mask such as 255.255.255.0",
            (_, false) => "an IPv4 address",
        };
        number.filter(|&number| number <= self.all()).ok_or_else(|| format!("{wanted} is wanted"))
    }

    fn show(&self, number: u32) -> String {
        match self.bytes {
            1 => format!("{number:#x}"),
            _ => Ipv4Addr::from(number).to_string(),
        }
    }
}

impl Mask {
    /// Reads `PART VALUE[/MASK]`, some of them with blanks or commas between: `tos 0xb8/0xfc, dst 192.0.2.0/24, proto 17`.
    /// The error says at which character something is wrong.
    pub fn parse(text: &str) -> Result<Mask, String> {
        let mut mask = Mask::default();
        let mut seen = [false; PARTS.len()];
        let mut words = Words(text.char_indices().peekable(), text);
        while let Some((at, name)) = words.next() {
            let wrong = |at: usize, word: &str, why: &str| {
                Err(format!("'{word}' at character {}: {why}", text[..at].chars().count() + 1))
            };
            let Some(number) = PARTS.iter().position(|part| part.name == name) else {
                return wrong(at, name, "tos, src, dst or proto is wanted");
            };
            if std::mem::replace(&mut seen[number], true) {
                return wrong(at, name, "it was said already");
            }
            let part = &PARTS[number];
            let Some((at, word)) = words.next() else {
                return wrong(at, name, "a value is wanted behind it");
            };
            let (value, ones) =
                word.split_once('/').map_or((word, None), |(value, ones)| (value, Some(ones)));
            let value = match part.number(value, false) {
                Ok(value) => value,
                Err(why) => return wrong(at, value, &why),
            };
            let ones = match ones.map(|ones| part.number(ones, true).map_err(|why| (ones, why))) {
                None => part.all(),
                Some(Ok(ones)) => ones,
                Some(Err((ones, why))) => return wrong(at + word.len() - ones.len(), ones, &why),
            };
            if value & !ones != 0 {
                return wrong(at, word, "the value has bits that its mask has not");
            }
            mask.0[number] = Field { value, mask: ones };
        }
        match seen.contains(&true) {
            true => Ok(mask),
            false => {
                Err("a mask is one or several of tos, src, dst and proto, each with its value".to_owned())
            }
        }
    }

    /// As a pattern of the element Classifier, for frames.
    pub fn pattern(&self) -> String {
        let mut pattern = "12/0800".to_owned();
        for (Field { value, mask }, part) in self.0.iter().zip(&PARTS).filter(|(field, _)| field.mask != 0) {
            let digits = 2 * part.bytes;
            pattern += &format!(" {}/{value:0digits$x}%{mask:0digits$x}", part.offset);
        }
        pattern
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.0.iter().zip(&PARTS).filter(|(field, _)| field.mask != 0);
        let texts = fields.map(|(Field { value, mask }, part)| {
            let ones = if *mask == part.all() { String::new() } else { format!("/{}", part.show(*mask)) };
            format!("{} {}{ones}", part.name, part.show(*value))
        });
        f.write_str(&texts.collect::<Vec<_>>().join(", "))
    }
}

/// The words of a text, and where they begin.
struct Words<'a>(Peekable<CharIndices<'a>>, &'a str);

impl<'a> Iterator for Words<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<(usize, &'a str)> {
        let apart = |c: char| c == ',' || c.is_whitespace();
        while self.0.next_if(|&(_, c)| apart(c)).is_some() {}
        let (begin, _) = self.0.peek().copied()?;
        let mut end = begin;
        while let Some((at, c)) = self.0.next_if(|&(_, c)| !apart(c)) {
            end = at + c.len_utf8();
        }
        Some((begin, &self.1[begin..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;
    use proptest::prelude::*;

    #[test]
    fn masks_are_read_with_any_of_their_parts() {
        for (text, shown, pattern) in [
            (
                "tos 0xb8/0xfc, dst 192.0.2.0/24, proto 17",
                "tos 0xb8/0xfc, dst 192.0.2.0/255.255.255.0, proto 0x11",
                "12/0800 15/b8%fc 30/c0000200%ffffff00 23/11%ff",
            ),
            (" proto\t6 ,src 10.0.0.1", "src 10.0.0.1, proto 0x6", "12/0800 26/0a000001%ffffffff 23/06%ff"),
            ("src 10.0.0.7/255.0.0.255", "src 10.0.0.7/255.0.0.255", "12/0800 26/0a000007%ff0000ff"),
            ("dst 0.0.0.0/0 tos 184", "tos 0xb8", "12/0800 15/b8%ff"),
        ] {
            let mask = Mask::parse(text).unwrap();
            assert_eq!((mask.to_string().as_str(), mask.pattern().as_str()), (shown, pattern));
            assert_eq!(Mask::parse(shown), Ok(mask), "as it is shown");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, told) in [
            ("tos 0xb8/0xfg", "'0xfg' at character 10: a number from 0 to 255"),
            ("tos 256", "'256' at character 5: a number from 0 to 255"),
            ("proto udp", "'udp' at character 7: a number"),
            ("proto 17, dest 10.0.0.1", "'dest' at character 11: tos, src, dst or proto"),
            ("dst 192.0.2", "'192.0.2' at character 5: an IPv4 address"),
            ("dst 192.0.2.0/33", "'33' at character 15: a length from 0 to 32"),
            ("dst 192.0.2.1/24", "'192.0.2.1/24' at character 5: the value has bits that its mask has not"),
            ("src 10.0.0.1,,src 10.0.0.2", "'src' at character 15: it was said already"),
            ("tos", "'tos' at character 1: a value is wanted"),
            ("é 1", "'é' at character 1: tos"),
            ("é é 1", "'é' at character 1: tos"),
            ("tos é", "'é' at character 5: a number"),
            ("tos 0x+1", "'0x+1' at character 5: a number"),
            (" , ", "a mask is one or several of tos, src, dst and proto"),
        ] {
            let error = Mask::parse(text).unwrap_err();
            assert!(error.starts_with(told), "{text}: {error}");
        }
    }

    /// The 80 bits of a packet.
    type Bits = (u8, u32, u32, u8);

    fn bits() -> impl Strategy<Value = Bits> {
        // Few values, or masks would hardly ever match.
        let byte = prop_oneof![Just(0u8), Just(0xb8), Just(0xff), any::<u8>()];
        let word = prop_oneof![Just(0u32), Just(0x0a00_0001), Just(u32::MAX), any::<u32>()];
        (byte.clone(), word.clone(), word, byte)
    }

    fn frame((tos, src, dst, proto): Bits) -> Packet {
        let mut bytes = vec![0; 60];
        bytes[12] = 8;
        (bytes[14], bytes[15], bytes[23]) = (0x45, tos, proto);
        bytes[26..30].copy_from_slice(&src.to_be_bytes());
        bytes[30..34].copy_from_slice(&dst.to_be_bytes());
        Packet::from_bytes(&bytes).unwrap()
    }

    proptest! {
        #[test]
        fn packets_match_where_the_ones_of_a_mask_say_so(
            masks in proptest::collection::vec((bits(), bits()), 1..6),
            packets in proptest::collection::vec(bits(), 1..30),
        ) {
            let string = |(tos, src, dst, proto): Bits| {
                u128::from(tos) << 72 | u128::from(src) << 40 | u128::from(dst) << 8 | u128::from(proto)
            };
            let texts = masks.iter().map(|&((a, b, c, d), (e, f, g, h))| {
                let address = |a: u32| Ipv4Addr::from(a);
                let (b, c) = (address(b & f), address(c & g));
                let text = format!("tos {}/{e} src {b}/{} dst {c}/{}, proto {}/{h}", a & e, address(f), address(g), d & h);
                Mask::parse(&text).unwrap()
            });
            let mut patterns: Vec<String> = texts.map(|mask| mask.pattern()).collect();
            patterns.push("-".to_owned());
            let spec = causeway_elements::library().get("Classifier").unwrap();
            let mut h = Harness::new(spec, &patterns.join(", "), 1, patterns.len()).unwrap();
            for packet in packets {
                let matches = |&(value, ones): &(Bits, Bits)| (string(packet) ^ string(value)) & string(ones) == 0;
                let high = masks.iter().any(matches);
                h.push(0, frame(packet));
                let came: Vec<usize> = (0..patterns.len()).map(|output| h.take(output).len()).collect();
                prop_assert_eq!((came[..masks.len()].iter().sum::<usize>(), came[masks.len()]), (usize::from(high), usize::from(!high)));
            }
        }
    }
}
