//! The router's own handlers, as elements see them: those that belong to no element.

use crate::access::Access;
use crate::error::Error;

/// Who answers the router's own handlers, but for `stop`. Workers call it, so it asks no worker and waits for nobody.
pub trait Globals: Send + Sync {
    /// What can be done with the handler called `name`; `None` if there is none.
    fn access(&self, name: &str) -> Option<Access>;

    /// Reads a handler.
    ///
    /// # Errors
    /// Why it has no value.
    fn read(&self, name: &str, arg: &str) -> Result<String, Error>;

    /// Writes a handler. What takes long is only begun.
    ///
    /// # Errors
    /// Why it cannot be done.
    fn write(&self, name: &str, value: &str) -> Result<(), Error>;
}
