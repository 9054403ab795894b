//! Where tables lie: parts of a region, by default address space of their own, and which parts of them are in use.

pub(crate) mod blocks;
pub(crate) mod mapping;
pub(crate) mod region;
