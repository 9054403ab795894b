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
    /// Two bytes before the link-layer header, so that the addresses in it lie in four words.
    Link = 3,
}

/// Bytes from [`Base::Link`] on that can be tested: two, and both Ethernet addresses.
pub(crate) const LINK_BYTES: usize = 14;

/// `word & mask == value` for one word, and `short` when the packet ends before a byte that the mask covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Test {
    pub(crate) base: Base,
    /// Offset from the base in bytes, a multiple of four.
    pub(crate) offset: u16,
    /// In network order, as are the values.
    pub(crate) mask: u32,
    pub(crate) value: u32,
    pub(crate) short: bool,
}

impl Test {
    /// Bytes from the base on that the packet must have for the word to count.
    pub(crate) fn needed(&self) -> usize {
        if self.mask == 0 { 0 } else { self.offset as usize + 4 - self.mask.trailing_zeros() as usize / 8 }
    }

    /// Whether both are about the same word.
    pub(crate) fn same_word(&self, other: &Test) -> bool {
        (self.base, self.offset) == (other.base, other.offset)
    }

    /// Whether no word passes both; they are about the same word.
    pub(crate) fn excludes(&self, other: &Test) -> bool {
        (self.value ^ other.value) & self.mask & other.mask != 0
    }
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

    /// The negation, which packets that are too short for the tests do not pass any more than the expression itself.
    pub(crate) fn other(self) -> Expr {
        self.short_flipped().not()
    }

    /// The expression whose tests come out the other way for packets that are too short.
    fn short_flipped(self) -> Expr {
        let all = |list: Vec<Expr>| list.into_iter().map(Expr::short_flipped).collect();
        match self {
            Expr::Const(c) => Expr::Const(c),
            Expr::Test(t) => Expr::Test(Test { short: !t.short, ..t }),
            Expr::Not(e) => e.short_flipped().not(),
            Expr::And(list) => Expr::And(all(list)),
            Expr::Or(list) => Expr::Or(all(list)),
            Expr::If(parts) => Expr::If(Box::new((*parts).map(Expr::short_flipped))),
        }
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
                _ => tests.push(Test { base, offset: word, mask, value, short: false }),
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

    /// Whether the bits equal those of `value`, or are above it, which is in place. A packet that is too short passes
    /// neither.
    pub(crate) fn is(self, above: bool, value: u32) -> Expr {
        if above { self.above(value) } else { self.equals(self.mask, value) }
    }

    /// The comparison of the field with `value`, which is in place. A packet that is too short for the field passes
    /// none but those that every value passes.
    pub(crate) fn compare(self, relation: Relation, value: u32) -> Expr {
        match relation.against(value, self.mask) {
            Against::Always(c) => Expr::Const(c),
            Against::Value { above, value, negated } => {
                let expr = self.is(above, value);
                if negated { expr.other() } else { expr }
            }
        }
    }

    /// Whether the field is above `value`, with one test for each run of equal bits of `value`: a field is above
    /// 0011.. if its first two bits are not both zero, or if the bits after those are above 11... .
    fn above(self, value: u32) -> Expr {
        let (mut mask, mut value) = (self.mask, within(value, self.mask));
        let mut steps = Vec::new();
        while value < mask {
            let ones = value & highest(mask) != 0;
            // The first bits decide together: those up to the first that is unlike them.
            let unlike = if ones { !(value + 1) & mask } else { value };
            let run = mask & u32::MAX.checked_shl(32 - unlike.leading_zeros()).unwrap_or(0);
            steps.push((ones, self.equals(run, if ones { run } else { 0 })));
            mask &= !run;
            value &= mask;
        }
        let mut steps = steps.into_iter().rev();
        let alone = |(ones, test): (bool, Expr)| if ones { test } else { test.other() };
        let Some(last) = steps.next().map(alone) else { return Expr::Const(false) };
        steps.fold(last, |rest, (ones, test)| match ones {
            true => Expr::And(vec![test, rest]),
            false => Expr::Or(vec![test.other(), rest]),
        })
    }
}

/// A comparison in terms of two relations and their negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Against {
    /// All values pass, or none.
    Always(bool),
    /// Equal to this value, or above it, or else not so.
    Value { above: bool, value: u32, negated: bool },
}

impl Relation {
    /// The comparison of numbers up to `most` with `value`.
    pub(crate) fn against(self, value: u32, most: u32) -> Against {
        let above = |value, negated| Against::Value { above: true, value, negated };
        match self {
            Relation::Equal => Against::Value { above: false, value, negated: false },
            Relation::Different => Against::Value { above: false, value, negated: true },
            Relation::Greater | Relation::NotGreater => match value < most {
                true => above(value, self == Relation::NotGreater),
                false => Against::Always(self == Relation::NotGreater),
            },
            Relation::Less | Relation::NotLess => match value.checked_sub(1) {
                Some(below) if value <= most => above(below, self == Relation::Less),
                Some(_) => Against::Always(self == Relation::Less),
                None => Against::Always(self == Relation::NotLess),
            },
        }
    }
}

/// The highest bit of `mask`.
fn highest(mask: u32) -> u32 {
    if mask == 0 { 0 } else { 1 << (31 - mask.leading_zeros()) }
}

/// The largest number of bits of `mask` that is not above `value`.
fn within(value: u32, mask: u32) -> u32 {
    let beyond = highest(value & !mask);
    if beyond == 0 { value } else { (value & !beyond | (beyond - 1)) & mask }
}

/// Direct evaluation, the model that the compiled program is tested against.
#[cfg(test)]
pub(crate) mod model {
    use super::*;

    /// A packet as a classifier sees it: bytes from each base on, if there is such a header.
    pub(crate) type View<'a> = [Option<&'a [u8]>; 4];

    impl Test {
        fn holds(&self, view: &View<'_>) -> bool {
            let bytes = view[self.base as usize].and_then(|bytes| bytes.get(self.offset as usize..));
            let mut word = bytes.unwrap_or_default().iter().copied().chain([0; 4]);
            let short =
                self.mask != 0 && bytes.is_none_or(|b| self.offset as usize + b.len() < self.needed());
            let word = u32::from_be_bytes([0; 4].map(|_: u8| word.next().unwrap()));
            if short { self.short } else { word & self.mask == self.value }
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
            let view = [Some(&bytes[..]), None, None, None];
            let holds = |r| field.compare(r, than).holds(&view);
            proptest::prop_assert_eq!(holds(Relation::Equal), is == than & field.mask);
            proptest::prop_assert_eq!(holds(Relation::Different), is != than & field.mask);
            proptest::prop_assert_eq!(holds(Relation::Less), is < than);
            proptest::prop_assert_eq!(holds(Relation::Greater), is > than);
            proptest::prop_assert_eq!(holds(Relation::NotLess), is >= than);
            proptest::prop_assert_eq!(holds(Relation::NotGreater), is <= than);
            for r in [Relation::Equal, Relation::Different, Relation::Less, Relation::Greater] {
                let always = field.mask == 0 || matches!(r.against(than, field.mask), Against::Always(_));
                let nothing = field.compare(r, than).holds(&[Some(&[]), None, None, None]);
                proptest::prop_assert!(always || !nothing, "{:?}", r);
            }
        }
    }
}
