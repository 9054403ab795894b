//! Files that elements write: a graph that fails leaves them as they were, and what could not be written is told of.

use causeway_engine::prelude::*;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

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

/// Device and inode.
type FileId = (u64, u64);

/// Files that have been opened to be written anew, and whether they have been emptied. Copies of an element on several workers
/// write into one file, and not all are put in place before the first writes.
static EMPTIED: Mutex<Vec<(FileId, Weak<AtomicBool>)>> = Mutex::new(Vec::new());

/// Whether this file has been emptied, for all who open it before the last of them has been put in place.
#[expect(clippy::disallowed_methods, reason = "taken when a graph is built")]
fn emptied(file: &File) -> io::Result<Arc<AtomicBool>> {
    let metadata = file.metadata()?;
    let id = (metadata.dev(), metadata.ino());
    let mut all = EMPTIED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(_, emptied)| emptied.strong_count() > 0);
    let known = all.iter().find(|(of, _)| *of == id).and_then(|(_, emptied)| emptied.upgrade());
    Ok(known.unwrap_or_else(|| {
        let emptied = Arc::default();
        all.push((id, Arc::downgrade(&emptied)));
        emptied
    }))
}

/// A file that is opened to be written anew and still as it was: opened when the element is initialised, emptied by
/// [`OutFile::commit`] when the graph is put in place. If that never happens, and there was no file, there is none.
pub(crate) struct OutFile {
    /// `None` once it is committed.
    file: Option<File>,
    path: PathBuf,
    made: bool,
    emptied: Arc<AtomicBool>,
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
        let emptied = emptied(&file).map_err(|e| Error::caused_by(e).of(name))?;
        Ok(OutFile { file: Some(file), path: name.into(), made, emptied })
    }

    /// Empties the file and gives it out. Pipes and devices have no old content.
    pub fn commit(mut self) -> io::Result<File> {
        let file = self.file.take().ok_or(ErrorKind::NotFound)?;
        if file.metadata()?.is_file() && !self.emptied.swap(true, Ordering::Relaxed) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn copies_that_are_put_in_place_one_after_the_other_empty_their_file_once() {
        let path = std::env::temp_dir().join(format!("causeway-out-file-{}", std::process::id()));
        let name = path.to_str().unwrap();
        for old in ["of before", "ab"] {
            fs::write(&path, old).unwrap();
            let [first, second] = [(); 2].map(|()| OutFile::open(name).unwrap());
            first.commit().unwrap().write_all(b"a").unwrap();
            second.commit().unwrap().write_all(b"b").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "ab");
        }
        fs::remove_file(&path).unwrap();
    }
}
