//! The names and parameters of the mechanisms.

use std::fmt;

/// Packets that the backlog of the interrupt-driven mechanisms holds (OSR §3.3).
pub const BACKLOG: usize = 300;
/// Packets that NAPI takes from one port in a turn, unless told otherwise.
pub const DEFAULT_QUOTA: u32 = 64;
/// Packets that NAPI takes from all ports in a run, unless told otherwise.
pub const DEFAULT_BUDGET: usize = 300;

/// How a port's packets are learnt of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// One interrupt a packet, or as near as the device comes to it.
    Interrupt,
    /// One interrupt for `packets` packets or after `time_ns`, whichever comes first.
    Moderated {
        /// Packets that raise the interrupt.
        packets: u32,
        /// Nanoseconds from the first packet to the interrupt.
        time_ns: u64,
    },
    /// Interrupt, then polling in turn.
    Napi {
        /// Packets in one turn.
        quota: u32,
    },
    /// Interrupt, then reception until the ring is empty.
    DisableEnable,
    /// No interrupts.
    Polling,
}

impl Default for Mechanism {
    fn default() -> Self {
        Mechanism::Napi { quota: DEFAULT_QUOTA }
    }
}

impl Mechanism {
    /// Names that configurations use.
    pub const NAMES: &[&str] = &["interrupt", "moderated", "napi", "disable-enable", "polling"];

    /// The mechanism called `name` with its parameters where it has any; the others are ignored.
    pub fn by_name(name: &str, quota: u32, packets: u32, time_ns: u64) -> Option<Mechanism> {
        match name {
            "interrupt" => Some(Mechanism::Interrupt),
            "moderated" => Some(Mechanism::Moderated { packets: packets.max(1), time_ns }),
            "napi" => Some(Mechanism::Napi { quota: quota.max(1) }),
            "disable-enable" => Some(Mechanism::DisableEnable),
            "polling" => Some(Mechanism::Polling),
            _ => None,
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mechanism::Interrupt => f.write_str("interrupt"),
            Mechanism::Moderated { packets, time_ns } => {
                write!(f, "moderated({packets}, {}us)", time_ns / 1_000)
            }
            Mechanism::Napi { quota } => write!(f, "napi({quota})"),
            Mechanism::DisableEnable => f.write_str("disable-enable"),
            Mechanism::Polling => f.write_str("polling"),
        }
    }
}
