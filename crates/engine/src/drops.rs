//! Reasons for dropping packets, as types.
//!
//! [`drop_reasons!`](crate::drop_reasons) makes the enumeration of a class's reasons, their names and their documentation
//! from one declaration, and does not compile if the class's [`Spec`](crate::Spec) lists others. So each reason has its
//! counter, and there are no numbers to get wrong.

/// One reason for dropping a packet.
pub struct DropDoc {
    /// Name in counters, such as `bad-checksum`.
    pub name: &'static str,
    /// When it happens.
    pub doc: &'static str,
}

/// A reason of the element's class, by its place in the class's list. Made from the class's own enumeration only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropReason(u8);

impl DropReason {
    /// Place in the class's list.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// The reasons of a class; made by [`drop_reasons!`](crate::drop_reasons).
pub trait DropReasons: Copy + 'static {
    /// Their names and what they mean, in order.
    const DOCS: &'static [DropDoc];

    /// Place in [`DropReasons::DOCS`].
    fn place(self) -> u8;
}

impl<R: DropReasons> From<R> for DropReason {
    #[inline]
    fn from(reason: R) -> Self {
        DropReason(reason.place())
    }
}

/// Whether two lists of reasons are the same, asked while a class is compiled.
#[doc(hidden)]
pub const fn same(a: &[DropDoc], b: &[DropDoc]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() {
        let (x, y) = (a[i].name.as_bytes(), b[i].name.as_bytes());
        let mut k = 0;
        while k < x.len() && k < y.len() && x[k] == y[k] {
            k += 1;
        }
        if k < x.len() || k < y.len() {
            return false;
        }
        i += 1;
    }
    a.len() == b.len()
}

/// Declares the reasons for which the elements of a class drop packets, and ties them to the class's `Spec`, whose list
/// is `Reason::DOCS`. A class that shares the reasons of another has a line `shares_drop_reasons!(SPEC, Reason);`.
///
/// ```
/// # use causeway_engine::{Spec, drop_reasons};
/// static SPEC: Spec = Spec { drops: Reason::DOCS, ..Spec::DEFAULT };
///
/// drop_reasons! {
///     enum Reason for SPEC {
///         Short = "short", "the packet was shorter than LENGTH";
///     }
/// }
/// ```
///
/// A `Spec` with other reasons, or none, does not compile:
///
/// ```compile_fail,E0080
/// # use causeway_engine::{Spec, drop_reasons};
/// static SPEC: Spec = Spec { drops: &[], ..Spec::DEFAULT };
///
/// drop_reasons! {
///     enum Reason for SPEC {
///         Short = "short", "the packet was shorter than LENGTH";
///     }
/// }
/// ```
#[macro_export]
macro_rules! drop_reasons {
    (
        $(#[$meta:meta])* $vis:vis enum $name:ident $(for $spec:path)? {
            $($reason:ident = $text:literal, $doc:literal;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $(#[doc = $doc] $reason,)+
        }

        impl $name {
            /// Names and documentation, for the class's `Spec`.
            $vis const DOCS: &'static [$crate::drops::DropDoc] =
                &[$($crate::drops::DropDoc { name: $text, doc: $doc }),+];
        }

        impl $crate::drops::DropReasons for $name {
            const DOCS: &'static [$crate::drops::DropDoc] = $name::DOCS;

            #[inline(always)]
            fn place(self) -> u8 {
                self as u8
            }
        }

        $($crate::shares_drop_reasons!($spec, $name);)?
    };
}

/// Ties a class to reasons that are declared elsewhere.
#[macro_export]
macro_rules! shares_drop_reasons {
    ($spec:path, $name:path) => {
        const _: () = assert!(
            $crate::drops::same($spec.drops, <$name as $crate::drops::DropReasons>::DOCS),
            "the drop reasons of the Spec must be the DOCS of these"
        );
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    static SPEC: Spec = Spec { drops: Reason::DOCS, ..Spec::DEFAULT };

    drop_reasons! {
        enum Reason for SPEC {
            TooShort = "too-short", "it was short";
            TooLong = "too-long", "it was long";
        }
    }

    #[test]
    fn a_reason_is_at_its_place_in_the_list() {
        for (reason, name) in [(Reason::TooShort, "too-short"), (Reason::TooLong, "too-long")] {
            assert_eq!(SPEC.drops[DropReason::from(reason).index()].name, name);
        }
    }

    #[test]
    fn lists_are_the_same_by_their_names_in_order() {
        let [a, b] = [0, 1].map(|i| std::slice::from_ref(&Reason::DOCS[i]));
        assert!(same(Reason::DOCS, Reason::DOCS) && same(&[], &[]));
        assert!(!same(a, b) && !same(Reason::DOCS, a) && !same(&[], a));
    }
}
