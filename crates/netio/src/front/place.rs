//! Where the program of a port is.

use causeway_bpf::{ProgramKind, action, sk_buff, xdp_md};

/// Where the program of a port is. The same judgments are written for each; what differs is how the context is read and what
/// is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the driver, where there are frames.
    Xdp,
    /// At the ingress of the stack (tcx), where there are packets of the stack: they may be longer than what is on a wire, and
    /// their checksums may be unfinished, which is known with them and stays so when they are redirected.
    Tcx,
}

impl Place {
    /// The kind of programs there.
    pub(super) fn kind(self) -> ProgramKind {
        match self {
            Place::Xdp => ProgramKind::XdpFragments,
            Place::Tcx => ProgramKind::SchedCls,
        }
    }

    /// Where the context has the interface.
    pub(super) fn ifindex(self) -> i16 {
        match self {
            Place::Xdp => xdp_md::INGRESS_IFINDEX,
            Place::Tcx => sk_buff::IFINDEX,
        }
    }

    /// What leaves a packet to the kernel.
    pub(super) fn pass(self) -> i32 {
        match self {
            Place::Xdp => action::XDP_PASS,
            Place::Tcx => action::TCX_NEXT,
        }
    }

    /// What drops a packet.
    pub(super) fn drop(self) -> i32 {
        match self {
            Place::Xdp => action::XDP_DROP,
            Place::Tcx => action::TCX_DROP,
        }
    }
}
