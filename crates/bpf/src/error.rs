//! The one error type of this crate: a line that says what failed, why, and what to do about it.

use std::{fmt, io};

/// What went wrong, for code that wants to react (fall back to another mode, skip a test).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The caller lacks a capability.
    Privilege,
    /// There is no interface of that name.
    NoInterface,
    /// The interface or the kernel cannot do what was asked for.
    Unsupported,
    /// Frames of the interface's MTU do not fit into the pool's frames.
    MtuTooLarge,
    /// Somebody else (often a second router) holds the interface or the queue.
    Busy,
    /// The kernel's verifier refused a BPF program.
    Verifier,
    /// A program could not be assembled.
    Assembler,
    /// Foreign bytes (a capture file) are not in the format they claim.
    Format,
    /// Any other failure of a system call.
    System,
}

/// An error of a port or of the BPF loader. `Display` is one line: what failed, why, what to do; only
/// [`ErrorKind::Verifier`] adds the end of the verifier's log below it.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    help: Option<String>,
    source: Option<io::Error>,
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` saying `what` failed.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Error {
        Error { kind, what: what.into(), help: None, source: None }
    }

    /// The failure of a system call while doing `what`; the kind follows from the error number.
    pub fn system(what: impl Into<String>, source: io::Error) -> Error {
        let (kind, help) = match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => (
                ErrorKind::Privilege,
                Some(
                    "run as root or with the capabilities CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON and \
                     CAP_IPC_LOCK",
                ),
            ),
            Some(libc::ENODEV | libc::ENXIO) => {
                (ErrorKind::NoInterface, Some("`ip link` lists the interfaces"))
            }
            Some(libc::EMFILE | libc::ENFILE) => {
                (ErrorKind::System, Some("raise the limit of open files, as by `ulimit -n 1024`"))
            }
            Some(libc::EBUSY | libc::EEXIST) => (ErrorKind::Busy, None),
            Some(libc::ENOMEM) => (
                ErrorKind::System,
                Some("the machine, or this process's limit or control group, has no more memory"),
            ),
            Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::ENOPROTOOPT | libc::EAFNOSUPPORT) => {
                (ErrorKind::Unsupported, None)
            }
            _ => (ErrorKind::System, None),
        };
        Error { kind, what: what.into(), help: help.map(str::to_owned), source: Some(source) }
    }

    /// [`Error::system`] with the calling thread's `errno`.
    pub fn last_os(what: impl Into<String>) -> Error {
        Error::system(what, io::Error::last_os_error())
    }

    /// Replaces the advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.help = Some(help.into());
        self
    }

    /// Replaces the kind.
    #[must_use]
    pub fn of_kind(mut self, kind: ErrorKind) -> Error {
        self.kind = kind;
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The system call's error number, if a system call failed.
    pub fn errno(&self) -> Option<i32> {
        self.source.as_ref().and_then(io::Error::raw_os_error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

// Without `source`: the line has it already, and reports of chains of errors would show it twice.
impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_with_advice() {
        let e = Error::system("attach XDP to eth0", io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(e.kind(), ErrorKind::Privilege);
        let text = e.to_string();
        assert!(text.contains("CAP_NET_ADMIN") && !text.contains('\n'), "{text}");
        assert_eq!(e.errno(), Some(libc::EPERM));
    }
}
