//! Other people's structures, written from their papers, to be measured beside the defaults.

pub mod btree6;
pub mod dir24_8;
pub mod linear;
pub mod poptrie;
pub mod ranges;
