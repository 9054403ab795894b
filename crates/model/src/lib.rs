//! A model of PC routers.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros))]

pub mod event;
pub mod link;
