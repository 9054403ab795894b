//! Counters: words that one worker writes and anybody reads.
//!
//! Their file comes into being beside its path, under the name with `.new` behind it, and is put there when the graph
//! is ([`Counters::commit`]): a graph that fails leaves the counters of the running one alone. The file goes with its
//! counters. A path belongs to one router; whoever starts several gives each its own.

use causeway_packet::words::{self, Words};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One counter. Only the worker of its element adds to it; anybody may read it.
#[derive(Clone, Debug)]
pub struct Counter {
    words: Arc<Words>,
    index: usize,
}

impl Counter {
    /// Adds `n`.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        if let Some(word) = self.words.words().get(self.index) {
            words::add(word, n);
        }
    }

    /// Sets the value.
    pub fn set(&self, value: u64) {
        if let Some(word) = self.words.words().get(self.index) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// The value.
    pub fn get(&self) -> u64 {
        self.words.words().get(self.index).map_or(0, |w| w.load(Ordering::Relaxed))
    }
}

/// Hands out the counters of one router.
#[derive(Debug)]
pub struct Counters {
    file: Option<SharedFile>,
    words: Arc<Words>,
    lines: Vec<Line>,
}

/// The file of the counters, which is removed when this is dropped.
#[derive(Debug)]
struct SharedFile {
    /// Where it is to be.
    path: PathBuf,
    /// Device and inode: another graph's counters may be at `path`.
    id: (u64, u64),
}

/// What one counter counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Worker that writes it.
    pub worker: usize,
    /// Element name.
    pub element: String,
    /// Counter name, such as `drop.bad-checksum`.
    pub name: String,
}

impl Counters {
    /// Room for `capacity` counters, in the shared file `path` or in private memory.
    pub fn new(capacity: usize, path: Option<&Path>) -> io::Result<Self> {
        let (words, file) = match path {
            Some(path) => {
                let words = Words::create(&beside(path), capacity)?;
                let id = id(&beside(path))?;
                (words, Some(SharedFile { path: path.to_owned(), id }))
            }
            None => (Words::private(capacity)?, None),
        };
        Ok(Counters { file, words: Arc::new(words), lines: Vec::new() })
    }

    /// A new counter, at zero.
    pub fn add(&mut self, worker: usize, element: &str, name: &str) -> Counter {
        let index = self.lines.len();
        self.lines.push(Line { worker, element: element.to_owned(), name: name.to_owned() });
        Counter { words: self.words.clone(), index }
    }

    /// Puts the shared file in its place, with the directory of its counters. If that fails nobody else can read
    /// them, which is logged; the router is as good as before.
    pub(crate) fn commit(&self) {
        let Some(file) = &self.file else { return };
        let mut text = String::new();
        for (i, line) in self.lines.iter().enumerate() {
            text += &format!("{i}\t{}\t{}\t{}\n", line.worker, line.element, line.name);
        }
        let done = self.words.set_directory(&text);
        if let Err(e) = done.and_then(|()| std::fs::rename(beside(&file.path), &file.path)) {
            log::warn!("{}: {e}; the counters are not shared", file.path.display());
        }
    }

    /// All counters with their values.
    pub fn read(&self) -> impl Iterator<Item = (&Line, u64)> {
        let words = self.words.words();
        self.lines.iter().enumerate().map(|(i, l)| (l, words.get(i).map_or(0, |w| w.load(Ordering::Relaxed))))
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        for path in [beside(&self.path), self.path.clone()] {
            if id(&path).is_ok_and(|id| id == self.id) {
                // There is nobody left to tell of an error.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// Where the file waits until the graph is put in place.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    name.into()
}

fn id(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}
