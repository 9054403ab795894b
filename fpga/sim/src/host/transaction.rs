//! What the host puts on the bus.

/// A bus transaction that the host wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Bus command.
    pub command: u8,
    /// Bus address.
    pub address: u32,
    /// Of a split completion: which read it answers.
    pub tag: u8,
    /// Data; for an immediate read one word that is ignored.
    pub data: Vec<u64>,
}

/// Bus commands, as in `nic_pkg`.
pub mod command {
    /// Immediate read of one register.
    pub const READ_DWORD: u8 = 0x6;
    /// Split completion.
    pub const SPLIT: u8 = 0xc;
    /// Memory write.
    pub const WRITE: u8 = 0xf;
}
