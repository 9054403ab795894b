//! Standard output: what is printed may be cut short by whoever reads it (`causeway elements | head`).

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Prints to standard output, which `print!` would panic on once its reader has gone.
///
/// # Errors
/// What writing says; [`is_closed`] tells a reader who had enough from a failure.
pub fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).map_err(named)
}

/// As [`print()`], of bytes that need not be a text.
///
/// # Errors
/// As [`print()`].
pub fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(named)
}

/// The error with the place where it happened.
fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

/// As [`print()`], with a line's end after it.
///
/// # Errors
/// As [`print()`].
pub fn print_line(text: impl Display) -> io::Result<()> {
    print(format_args!("{text}\n"))
}

/// The text with a capital at its begin, to make a sentence of it.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// Whether an error only says that the reader of standard output has gone.
pub fn is_closed(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|e| e.kind() == ErrorKind::BrokenPipe)
}
