//! What can be done with a handler.

/// What can be done with a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Read, with parameters.
    ReadParam,
    /// Write.
    Write,
    /// Read and write.
    ReadWrite,
    /// Read, with parameters, and write.
    ReadParamWrite,
}

impl Access {
    /// Whether the handler can be read.
    pub fn reads(self) -> bool {
        self != Access::Write
    }

    /// Whether the handler can be written.
    pub fn writes(self) -> bool {
        matches!(self, Access::Write | Access::ReadWrite | Access::ReadParamWrite)
    }

    /// Whether reading may have parameters.
    pub fn takes_parameters(self) -> bool {
        matches!(self, Access::ReadParam | Access::ReadParamWrite)
    }
}
