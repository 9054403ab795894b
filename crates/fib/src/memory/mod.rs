//! Where tables lie: arrays in address space of their own, and which parts of them are in use.

pub(crate) mod blocks;
pub(crate) mod mapping;
