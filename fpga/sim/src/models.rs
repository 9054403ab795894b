//! The Verilated models. The types and their port accessors are written by `build.rs` from the headers that
//! Verilator generates; all `unsafe` of the crate is in them.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};

include!(concat!(env!("OUT_DIR"), "/models.rs"));
