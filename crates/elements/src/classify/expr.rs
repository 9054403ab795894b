//! Boolean expressions over the 32-bit words of a packet.

/// Where a word's offset counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Base {
    /// The start of the packet's data.
    Data = 0,
    /// The network header.
    Network = 1,
    /// The transport header.
    Transport = 2,
}

/// `word & mask == value` for one word. It is false when the packet ends before a byte that the mask covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Test {
    pub(crate) base: Base,
    /// Offset from the base in bytes, a multiple of four.
    pub(crate) offset: u16,
    /// In network order, as are the values.
    pub(crate) mask: u32,
    pub(crate) value: u32,
}

/// An expression of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Const(bool),
    Test(Test),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    /// The second if the first holds, else the third.
    If(Box<[Expr; 3]>),
}

impl Expr {
    pub(crate) fn not(self) -> Expr {
        Expr::Not(Box::new(self))
    }

    /// Whether the bytes under `mask`, which start `offset` bytes from `base`, equal those of `value`.
    pub(crate) fn bytes(base: Base, offset: u16, value: &[u8], mask: &[u8]) -> Expr {
        let mut tests: Vec<Test> = Vec::new();
        for (i, (&value, &mask)) in value.iter().zip(mask).enumerate() {
            let at = offset as usize + i;
            let shift = 8 * (3 - at % 4);
            let (mask, value) = ((mask as u32) << shift, ((value & mask) as u32) << shift);
            let word = (at & !3) as u16;
            match tests.last_mut() {
                Some(t) if t.offset == word => {
                    *t = Test { mask: t.mask | mask, value: t.value | value, ..*t }
                }
                _ => tests.push(Test { base, offset: word, mask, value }),
            }
        }
        tests.retain(|t| t.mask != 0);
        match tests.len() {
            0 => Expr::Const(true),
            1 => Expr::Test(tests[0]),
            _ => Expr::And(tests.into_iter().map(Expr::Test).collect()),
        }
    }
}

/// A number in the packet: up to four bytes, some bits of which count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) base: Base,
    /// Offset of the first byte from the base.
    pub(crate) offset: u16,
    /// Bytes, 1 to 4.
    pub(crate) len: u8,
    /// Bits that count, in the number that the bytes make.
    pub(crate) mask: u32,
}

/// How a field is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    Different,
    Less,
    Greater,
    NotGreater,
    NotLess,
}

impl Field {
    /// All bits of `len` bytes at `offset` from `base`.
    pub(crate) const fn whole(base: Base, offset: u16, len: u8) -> Field {
        Field { base, offset, len, mask: u32::MAX >> (32 - 8 * len as u32) }
    }

    /// The bits under `mask` of `len` bytes at `offset` from `base`.
    pub(crate) const fn part(base: Base, offset: u16, len: u8, mask: u32) -> Field {
        Field { base, offset, len, mask }
    }

    /// Largest value of the field when its lowest bit counts as one.
    pub(crate) fn max(self) -> u32 {
        self.mask >> self.shift()
    }

    /// Bits below the field in its bytes.
    pub(crate) fn shift(self) -> u32 {
        self.mask.trailing_zeros().min(31)
    }

    /// Whether the bits under `mask` equal `value`, both in place.
    pub(crate) fn equals(self, mask: u32, value: u32) -> Expr {
        let skip = 4 - self.len as usize;
        Expr::bytes(self.base, self.offset, &value.to_be_bytes()[skip..], &mask.to_be_bytes()[skip..])
    }

    /// The comparison of the field with `value`, which is in place. A field that the packet is too short for has
    /// no value: every comparison but `Different` is then false.
    pub(crate) fn compare(self, relation: Relation, value: u32) -> Expr {
        match relation {
            Relation::Equal if value & !self.mask != 0 => Expr::Const(false),
            Relation::Equal => self.equals(self.mask, value),
            Relation::Different => self.compare(Relation::Equal, value).not(),
            Relation::Greater => self.beyond(value, true),
            Relation::Less => self.beyond(value, false),
            Relation::NotLess => {
                Expr::Or(vec![self.beyond(value, true), self.compare(Relation::Equal, value)])
            }
            Relation::NotGreater => {
                Expr::Or(vec![self.beyond(value, false), self.compare(Relation::Equal, value)])
            }
        }
    }

    /// Whether the field is above (or below) `value`: it agrees with `value` in all bits before one where it has a
    /// one and `value` a zero (or the other way round).
    fn beyond(self, value: u32, above: bool) -> Expr {
        let mut ways = Vec::new();
        let mut before = 0u32;
        for bit in (0..32).rev().map(|i| 1u32 << i) {
            if self.mask & bit == 0 {
                // The field has a zero here. Where `value` has a one, the field is smaller whatever follows.
                if value & bit != 0 {
                    if !above {
                        ways.push(self.equals(before, value & before));
                    }
                    return Expr::Or(ways);
                }
                continue;
            }
            if (value & bit == 0) == above {
                let own = if above { bit } else { 0 };
                ways.push(self.equals(before | bit, value & before | own));
            }
            before |= bit;
        }
        Expr::Or(ways)
    }
}

/// Direct evaluation, the model that the compiled program is tested against.
#[cfg(test)]
pub(crate) mod model {
    use super::*;

    /// A packet as a classifier sees it: bytes from each base on, if there is such a header.
    pub(crate) type View<'a> = [Option<&'a [u8]>; 3];

    impl Test {
        fn holds(&self, view: &View<'_>) -> bool {
            let Some(bytes) = view[self.base as usize] else { return false };
            (0..4).all(|i| {
                let [mask, value] = [self.mask, self.value].map(|w| w.to_be_bytes()[i]);
                mask == 0 || bytes.get(self.offset as usize + i).is_some_and(|b| b & mask == value)
            })
        }
    }

    impl Expr {
        pub(crate) fn holds(&self, view: &View<'_>) -> bool {
            match self {
                Expr::Const(c) => *c,
                Expr::Test(t) => t.holds(view),
                Expr::Not(e) => !e.holds(view),
                Expr::And(list) => list.iter().all(|e| e.holds(view)),
                Expr::Or(list) => list.iter().any(|e| e.holds(view)),
                Expr::If(parts) => parts[if parts[0].holds(view) { 1 } else { 2 }].holds(view),
            }
        }
    }

    /// A field's value in `bytes`, its masked bits in place.
    fn value(field: Field, bytes: &[u8]) -> u32 {
        bytes[field.offset as usize..][..field.len as usize].iter().fold(0u32, |n, &b| n << 8 | b as u32)
            & field.mask
    }

    proptest::proptest! {
        #[test]
        fn comparisons_are_those_of_numbers(
            bytes: [u8; 8], offset in 0u16..5, len in 1u8..5, mask: u32, near in 0usize..3, other: u32,
        ) {
            let mut field = Field::whole(Base::Data, offset, len);
            field.mask &= if mask % 3 == 0 { u32::MAX } else { mask };
            let is = value(field, &bytes);
            let than = [is, is ^ (1 << (other % 32)), other][near] & Field::whole(Base::Data, 0, len).mask;
            let view = [Some(&bytes[..]), None, None];
            let holds = |r| field.compare(r, than).holds(&view);
            proptest::prop_assert_eq!(holds(Relation::Equal), is == than);
            proptest::prop_assert_eq!(holds(Relation::Different), is != than);
            proptest::prop_assert_eq!(holds(Relation::Less), is < than);
            proptest::prop_assert_eq!(holds(Relation::Greater), is > than);
            proptest::prop_assert_eq!(holds(Relation::NotLess), is >= than);
            proptest::prop_assert_eq!(holds(Relation::NotGreater), is <= than);
        }
    }
}
