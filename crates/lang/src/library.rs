//! Where `require(library FILE)` gets its files. The language itself does no I/O.

/// A library that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedFile {
    /// The resolved name: what messages call the file, and what tells two requirements of one file apart from
    /// requirements of two files.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Finds library files: next to the requiring file first, then along `CLICKPATH`.
pub trait Loader {
    /// The library `name`, required by the file `from`; `None` if there is none.
    fn load(&self, name: &str, from: &str) -> Option<LoadedFile>;
}

/// A loader that finds nothing.
pub struct NoLibraries;

impl Loader for NoLibraries {
    fn load(&self, _name: &str, _from: &str) -> Option<LoadedFile> {
        None
    }
}

impl<F: Fn(&str, &str) -> Option<LoadedFile>> Loader for F {
    fn load(&self, name: &str, from: &str) -> Option<LoadedFile> {
        self(name, from)
    }
}
