//! Structures to compare the default ones with, each for any router that asks for it by name: the trees of the lookup
//! paper (Bolla and Bruschi), and what Click and other routers have.

pub mod dir24_8;
pub mod lctrie;
pub mod linear;
pub mod radix;
pub mod ranges;
