//! A model of PC routers.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros))]

pub mod bus;
pub mod cache;
pub mod event;
pub mod figures;
pub mod hardware;
pub mod link;
pub mod machine;
pub mod memory;
pub mod nic;
pub mod processor;
pub mod router;
pub mod run;
pub mod software;
pub mod trace;
