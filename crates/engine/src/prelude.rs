//! What the file of an element needs: `use causeway_engine::prelude::*;`.

pub use crate::handler::own::{CONFIG, TASK};
pub use crate::ir::{Builder, Program};
pub use crate::measure::{Across, Unit};
pub use crate::pieces::{PIECE, Pieces, in_pieces};
pub use crate::settings::{Configure, configured};
pub use crate::spec::{
    Copies, Lowers, keyword, optional, reads, reads_with, reads_writes, required, rest, writes,
};
pub use crate::{
    Conf, Counter, Cx, DropReason, Element, Error, Invalid, OrDrop, Run, Settings, Spec, Verdict,
};
pub use crate::{drop_reasons, handlers, settings, shares_drop_reasons};
pub use causeway_packet::{Anno, Batch, Packet};
pub use std::net::{Ipv4Addr, Ipv6Addr};
