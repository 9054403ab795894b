//! Frames that the tester sends, and what it sees in those that come.
//!
//! What the tester writes into a frame is in `causeway_packet::wire::tester`, which elements share. The rest of a frame is zero.

mod template;
#[cfg(test)]
mod tests;

pub use causeway_packet::wire::tester::{Seen, TAG, Tag, look, wrap_ns};
pub use template::{Ends, Template};

/// Bytes of the frame check sequence, which a frame has on the wire and not in memory.
pub const FCS: usize = 4;
