//! Which documents are understood.

/// What a document's `format` says.
pub const FORMAT: &str = "causeway-results";
/// Version of the format. It changes whenever an older reader would misread a document.
pub const VERSION: u32 = 1;
