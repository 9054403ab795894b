//! Other people's structures, written from their papers, to be measured beside the defaults. Behind the feature `rivals`:
//! no router needs them.

pub mod btree6;
pub mod poptrie;
