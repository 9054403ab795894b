//! The two IPv4 structures: [`rank24`] for one big table, [`compact16`] for many or small ones.
//!
//! Both cut the address space into chunks, a /19 or a /16 each, and compile a chunk's runs (neighbouring addresses with
//! the same result, [`chunks`]) into one atomic word and what it leads to. So a lookup sees all of a chunk before or
//! after a change ([`update`]). A /24 with longer routes inside continues in a line of [`stride8`] in both.
//!
//! # A word of `rank24`
//!
//! ```text
//!  63            32 31             0
//! ┌────────────────┬────────────────┐   bit n: the result changes at the nth /24 of the /19 (bit 0 never set)
//! │ first leaf     │ bitmap         │   leaf of /24 number s: first + bits set among 0 ..= s
//! └────────────────┴────────────────┘
//!  15 14         0
//! ┌──┬────────────┐   0: the adjacency
//! │C │ 15 bits    │   C: so many places further on are the two halves of the number of a line
//! └──┴────────────┘
//! ```
//!
//! With 10.0.0.0/8 to 1, 10.0.3.0/24 to 2 and 10.0.4.0/22 to 3, the word of 10.0.0.0/19 has the bits 3, 4 and 8, and the
//! four leaves 1, 2, 3, 1. 10.0.6.9 is in the sixth /24: two bits up to there, so the third leaf, 3.
//!
//! # An update, step by step
//!
//! 10.0.5.128/25 is to lead to 4.
//!
//! 1. The route goes into the [`Rib`](crate::Rib); its runs in 10.0.0.0/19 are collected from there.
//! 2. The fifth /24 has two results now. They go into a line out of [`Blocks`](crate::memory::blocks::Blocks), say number 9.
//! 3. Eight new leaves: 1, 2, 3, C + 3, 3, 1, and the number 9 in two halves. The bits are 3, 4, 5, 6 and 8.
//! 4. The word is stored, which is when lookups see the change. Nothing that an earlier word leads to was touched.
//! 5. The four old leaves get the epoch's stamp and wait; when no reader that may have seen the old word is left, their
//!    block is free.
//!
//! If step 2 or 3 finds no room, what they took is given back, the route is taken out again, and the change is refused.

pub(crate) mod chunks;
pub(crate) mod compact16;
pub(crate) mod rank24;
pub(crate) mod stride8;
pub(crate) mod update;
