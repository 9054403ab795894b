//! What is known of a packet at one place of the code, when it is written.
//!
//! Where the data starts and where headers are is mostly known then, so it is no number in the code at all: code is written
//! once for each [`State`] that packets have at a place. All positions count from the start of the frame, as it came or
//! with what was put in front of it.

/// A header that was marked farther than this is marked nowhere, as in user space, where frames are chunks of 2 048 bytes
/// with 128 of headroom.
pub(crate) const FARTHEST: i32 = 2_048 - 128;

/// Where a header is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// Nowhere.
    #[default]
    None,
    /// At this position.
    At(i32),
    /// At the position that the stack has for it; beyond [`FARTHEST`] it is nowhere.
    Stack,
}

/// The headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Mac,
    Network,
    Transport,
}

/// How packets at one place of the code differ from packets as they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct State {
    /// Where the data starts.
    pub data: i32,
    /// By [`Header`].
    pub marks: [Mark; 3],
    /// Whether the data ends where the stack says, and not where the frame does.
    pub cut: bool,
    /// Whether bytes of the frame may have been written.
    pub touched: bool,
    /// Bytes that were put in front of the frame as it came.
    pub grown: i32,
    /// Whether it is a super-packet, of TCP over this version ([`crate::parts`]).
    pub parts: Option<Ip>,
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ip {
    V4,
    V6,
}

impl State {
    pub fn mark(&self, header: Header) -> Mark {
        self.marks[header as usize]
    }

    /// The farthest position at which a header is one.
    pub fn farthest(&self) -> i32 {
        FARTHEST + self.grown
    }
}

/// How far packets are known to reach: on all ways to a place, so the least of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Of the frame, as the verifier knows, too.
    pub frame: i32,
    /// Of the data.
    pub data: i32,
    /// Whether something may have been changed in this program.
    pub changed: bool,
}

impl Reach {
    pub fn or(self, other: Reach) -> Reach {
        Reach {
            frame: self.frame.min(other.frame),
            data: self.data.min(other.data),
            changed: self.changed || other.changed,
        }
    }
}
