//! The machinery the views share: values in network byte order, and the macro that declares a header.

use super::MacAddr;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A field's value: how it is loaded from and stored to its bytes, in network byte order.
///
/// Bytes of the wrong length load as zero and are not stored to. The declared fields never come to that, since
/// their ranges are checked at compile time.
pub trait Value: Copy {
    /// The value in `bytes`.
    fn load(bytes: &[u8]) -> Self;
    /// Writes the value to `bytes`.
    fn store(self, bytes: &mut [u8]);
}

/// `Value` for a type with a conversion from and to its big-endian bytes.
macro_rules! value {
    ($($ty:ty: $bytes:ident => $from:expr, $to:expr;)*) => {$(
        impl Value for $ty {
            #[inline(always)]
            fn load($bytes: &[u8]) -> Self {
                $from($bytes.try_into().unwrap_or_default())
            }
            #[inline(always)]
            fn store(self, $bytes: &mut [u8]) {
                if let Some(to) = $bytes.first_chunk_mut() {
                    *to = $to(self);
                }
            }
        }
    )*};
}

value! {
    u8: bytes => u8::from_be_bytes, u8::to_be_bytes;
    u16: bytes => u16::from_be_bytes, u16::to_be_bytes;
    u32: bytes => u32::from_be_bytes, u32::to_be_bytes;
    u64: bytes => u64::from_be_bytes, u64::to_be_bytes;
    MacAddr: bytes => MacAddr, MacAddr::octets;
    Ipv4Addr: bytes => <Ipv4Addr as From<[u8; 4]>>::from, |a: Ipv4Addr| a.octets();
    Ipv6Addr: bytes => <Ipv6Addr as From<[u8; 16]>>::from, |a: Ipv6Addr| a.octets();
}

/// Declares a header of `$len` bytes: its field ranges, its view, a getter and a setter for each field.
macro_rules! header {
    (
        $(#[$doc:meta])*
        pub struct $name:ident, fields in $field:ident, $len:expr;
        $($(#[$fdoc:meta])* $range:ident @ $at:literal: $ty:ty => $get:ident, $set:ident;)*
    ) => {
        #[doc = concat!("Where the fields of [`", stringify!($name), "`] lie.")]
        pub mod $field {
            #[allow(unused_imports)]
            use super::*;
            use core::ops::Range;
            $($(#[$fdoc])* pub const $range: Range<usize> = $at..$at + size_of::<$ty>();)*
            $(const _: () = assert!($range.end <= $len);)*
        }

        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<T> {
            buf: T,
        }

        impl<T> $name<T> {
            /// The buffer the view was made of.
            #[inline]
            pub fn into_inner(self) -> T {
                self.buf
            }
        }

        impl<T: AsRef<[u8]>> $name<T> {
            /// Whether the fixed part of the header is there; the first check of every constructor.
            #[inline]
            fn fits(buf: &T) -> Result<(), $crate::wire::Malformed> {
                if buf.as_ref().len() < $len { Err($crate::wire::Malformed::Truncated) } else { Ok(()) }
            }

            /// The fixed part of the header; zeros if the buffer has become too short for it.
            #[inline(always)]
            fn fixed(&self) -> &[u8; $len] {
                self.buf.as_ref().first_chunk().unwrap_or(&[0; $len])
            }

            /// All bytes of the buffer, from the header on.
            #[inline]
            pub fn as_bytes(&self) -> &[u8] {
                self.buf.as_ref()
            }

            $(
                $(#[$fdoc])*
                #[inline]
                pub fn $get(&self) -> $ty {
                    $crate::wire::Value::load(&self.fixed()[$field::$range])
                }
            )*
        }

        impl<T: AsRef<[u8]> + AsMut<[u8]>> $name<T> {
            $(
                #[doc = concat!("Writes the field that [`Self::", stringify!($get), "`] reads, and nothing else.")]
                #[inline]
                pub fn $set(&mut self, value: $ty) {
                    if let Some(header) = self.buf.as_mut().first_chunk_mut::<{ $len }>() {
                        $crate::wire::Value::store(value, &mut header[$field::$range]);
                    }
                }
            )*
        }
    };
}
