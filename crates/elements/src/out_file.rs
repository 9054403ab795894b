//! Files that elements write: a graph that fails leaves them as they were, and what could not be written is told of.

use causeway_engine::prelude::*;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name of the [`Losses`] among the values that outlive a graph.
pub const LOSSES: &str = "losses of files";

/// Whether something was lost that elements were to write into files. Who runs the router asks when it has ended.
#[derive(Debug, Default)]
pub struct Losses(AtomicBool);

impl Losses {
    /// Those of the router.
    pub(crate) fn of(conf: &mut Conf<'_>) -> Result<Arc<Losses>, Invalid> {
        conf.env.persistent(LOSSES, Losses::default).ok_or(Invalid)
    }

    /// Says what was lost, and why.
    pub(crate) fn tell(&self, what: impl Display) {
        log::error!("{what}");
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether there were any; of elements that another thread has thrown away once that is seen to have ended.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A file that is opened to be written anew and still as it was: opened when the element is initialised, emptied by
/// [`OutFile::commit`] when the graph is put in place. If that never happens, and there was no file, there is none.
pub(crate) struct OutFile {
    /// `None` once it is committed.
    file: Option<File>,
    path: PathBuf,
    made: bool,
}

impl OutFile {
    /// Opens the file called `name`. The error has its name.
    pub fn open(name: &str) -> Result<OutFile, Error> {
        // Copies of an element on several workers write into one file: each write goes to its end.
        let mut options = File::options();
        options.append(true);
        let (opened, made) = match options.open(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => (options.create(true).open(name), true),
            other => (other, false),
        };
        let file = opened.map_err(|e| Error::caused_by(e).of(name))?;
        Ok(OutFile { file: Some(file), path: name.into(), made })
    }

    /// Empties the file and gives it out. Pipes and devices have no old content.
    pub fn commit(mut self) -> io::Result<File> {
        let file = self.file.take().ok_or(ErrorKind::NotFound)?;
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        let Some(file) = self.file.take().filter(|_| self.made) else { return };
        let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let mine = file.metadata().map(id).ok();
        if mine.is_some() && mine == fs::symlink_metadata(&self.path).map(id).ok() {
            // There is nobody left to tell of an error.
            let _ = fs::remove_file(&self.path);
        }
    }
}
