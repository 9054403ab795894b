//! Where the fields of the kernel's structures are: the kernel's own description of its types (BTF).

use std::collections::HashMap;

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// A type's record: name, what it is, size.
const RECORD: usize = 12;
/// A member's record: name, type, offset in bits.
const MEMBER: usize = 12;

/// The types of a kernel.
#[derive(Debug)]
pub struct Types<'a> {
    strings: &'a [u8],
    /// The members of structures and unions by the number of the type.
    members: HashMap<u32, &'a [u8]>,
    /// Numbers of structures by name.
    structures: HashMap<&'a [u8], u32>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

/// Bytes behind the record of a type of this kind with `n` members.
fn behind(kind: u32, n: usize) -> Option<usize> {
    Some(match kind {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        STRUCT | UNION | 15 | 19 => n * MEMBER,
        6 | 13 => n * 8,
        _ => return None,
    })
}

impl<'a> Types<'a> {
    /// Reads `/sys/kernel/btf/vmlinux`, as the machine has it. `None` of what is not that.
    pub fn read(bytes: &'a [u8]) -> Option<Types<'a>> {
        let magic = bytes.first_chunk().copied().map(u16::from_ne_bytes)?;
        let header = word(bytes, 4)? as usize;
        if magic != MAGIC || header < HEADER {
            return None;
        }
        let part = |at| {
            let (offset, length) = (word(bytes, at)? as usize, word(bytes, at + 4)? as usize);
            bytes.get(header.checked_add(offset)?..)?.get(..length)
        };
        let (types, strings) = (part(8)?, part(16)?);
        let mut found = Types { strings, members: HashMap::new(), structures: HashMap::new() };
        let (mut at, mut number) = (0, 1);
        while at < types.len() {
            let (name, info) = (word(types, at)?, word(types, at + 4)?);
            let (kind, n) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
            let length = behind(kind, n)?;
            let rest = types.get(at + RECORD..)?.get(..length)?;
            if kind == STRUCT || kind == UNION {
                found.members.insert(number, rest);
            }
            if kind == STRUCT && name != 0 {
                found.structures.insert(found.string(name)?, number);
            }
            at += RECORD + length;
            number += 1;
        }
        Some(found)
    }

    fn string(&self, at: u32) -> Option<&'a [u8]> {
        self.strings.get(at as usize..)?.split(|&byte| byte == 0).next()
    }

    /// The offset of `field` in `structure` in bytes.
    pub fn offset(&self, structure: &str, field: &str) -> Option<u64> {
        self.within(*self.structures.get(structure.as_bytes())?, field.as_bytes(), 8)
    }

    /// Anonymous members are looked into, `depth` times.
    fn within(&self, number: u32, field: &[u8], depth: usize) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        self.members.get(&number)?.chunks_exact(MEMBER).find_map(|member| {
            // The upper byte is the width of a bit field.
            let offset = u64::from(word(member, 8)? & 0xff_ffff) / 8;
            match word(member, 0)? {
                0 => Some(offset + self.within(word(member, 4)?, field, depth)?),
                name => (self.string(name)? == field).then_some(offset),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct a { int x; struct { int y; int z; }; }`, with an `int` before.
    fn types() -> Vec<u8> {
        let strings = b"\0int\0a\0x\0y\0z\0";
        let words: &[u32] = &[
            1,
            1 << 24,
            4,
            32, // 1: int
            0,
            (STRUCT << 24) | 2,
            8,
            9,
            1,
            0,
            11,
            1,
            32, // 2: anonymous
            5,
            (STRUCT << 24) | 2,
            12,
            7,
            1,
            0,
            0,
            2,
            32, // 3: a
        ];
        let types: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        let n = types.len() as u32;
        for word in [HEADER as u32, 0, n, n, strings.len() as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        [bytes, types, strings.to_vec()].concat()
    }

    #[test]
    fn fields_are_found_also_in_anonymous_members() {
        let bytes = types();
        let types = Types::read(&bytes).expect("types");
        assert_eq!(types.offset("a", "x"), Some(0));
        assert_eq!((types.offset("a", "y"), types.offset("a", "z")), (Some(4), Some(8)));
        assert_eq!((types.offset("a", "w"), types.offset("b", "x")), (None, None));
    }

    #[test]
    fn what_is_cut_or_no_description_is_none() {
        let bytes = types();
        (0..bytes.len()).for_each(|n| {
            let _ = Types::read(&bytes[..n]).and_then(|types| types.offset("a", "z"));
        });
        assert!(Types::read(&[0; 64]).is_none());
    }
}
