//! What the kernel does to forwarded packets that this router would not.
//!
//! A router that takes packets before the kernel's stack passes by its packet filter, its policy rules, its traffic control
//! and its IPsec policies. Each of them that is in use is a [`Finding`], with the command that shows or mends it; nothing is
//! changed here. As long as one stands that [refuses](Severity::Refuse), packets must be left to the kernel: what cannot be
//! asked for refuses too. [`inspect`] looks once, [`Inspector`](crate::Inspector) all the time.

mod check;
mod exceptions;
mod hooks;
mod inquiry;
mod legacy;
pub(crate) mod nftables;
mod ports;
mod probe;
mod rules;
mod settings;
mod traffic;
mod translated;
mod xfrm;

use std::fmt;
use std::io;

pub use check::Check;
pub(crate) use inquiry::{Inquiry, Look};
pub use probe::{Attachment, Probe, Program};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The router works, but something beside it would not.
    Warn,
    /// Packets would be treated otherwise than the administrator asked for: leave them to the kernel.
    Refuse,
}

/// Something that this router would pass by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub check: Check,
    /// How bad it is.
    pub severity: Severity,
    /// Where: an interface, a table and chain, a family.
    pub place: String,
    /// One line that says what was found and what it means.
    pub what: String,
    /// The command that mends it, to be run as root.
    pub mend: String,
}

impl Finding {
    /// The code of its kind.
    pub fn code(&self) -> &'static str {
        self.check.code()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warn => "warning",
            Severity::Refuse => "error",
        };
        write!(f, "{severity}: {}: {}\n  to mend it: {}", self.place, self.what, self.mend)
    }
}

/// Those that refuse first, then in the order of [`Check::ALL`].
pub(crate) fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| b.severity.cmp(&a.severity).then(a.check.cmp(&b.check)));
}

/// Looks at the network namespace of the calling thread, for a router that would hold the named interfaces.
///
/// # Errors
/// The kernel's, when it cannot be asked.
pub fn inspect(ports: &[&str], probe: &dyn Probe) -> io::Result<Vec<Finding>> {
    /// Tries at tables that change while they are read.
    const TRIES: usize = 8;
    let mut inquiry = Inquiry::open(ports.iter().map(|&name| name.to_owned()).collect())?;
    let mut look = inquiry.look();
    for _ in 1..TRIES {
        if !look.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            break;
        }
        look = inquiry.look();
    }
    let look = look?;
    let (mut findings, _) = inquiry.silent(&look, probe)?;
    findings.extend(look.findings);
    sort(&mut findings);
    Ok(findings)
}
