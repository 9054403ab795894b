//! The control socket: Click's ControlSocket protocol, version 1.3, over UNIX and TCP sockets.
//!
//! A line is a command: `READ element.handler [arguments]`, `WRITE element.handler [value]`, `READDATA` and
//! `WRITEDATA` with a count of bytes that follow, `READUNTIL` and `WRITEUNTIL` with a line that ends the data,
//! `CHECKREAD`, `CHECKWRITE`, `LLRPC`, `HELP`, `QUIT`. A reply is a line `NNN text` (or several `NNN-text` before
//! it); data follow as `DATA n` and n bytes. Any program that speaks to a running Click speaks to this.

mod client;
mod protocol;
mod server;

pub use client::Client;
pub use protocol::{Ask, Question};
pub use server::{Listener, serve};

use std::path::PathBuf;

/// Folder of the control sockets and shared counters of this user's routers.
pub fn run_dir() -> PathBuf {
    match rustix::process::geteuid().is_root() {
        true => PathBuf::from("/run/causeway"),
        false => match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(dir) => PathBuf::from(dir).join("causeway"),
            // All users share this one.
            None => std::env::temp_dir().join(format!("causeway-{}", rustix::process::geteuid().as_raw())),
        },
    }
}
