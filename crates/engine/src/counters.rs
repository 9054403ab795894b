//! Counters: words that one worker writes and anybody reads.

use causeway_packet::words::{self, Words};
use std::io;
use std::path::Path;
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
    words: Arc<Words>,
    lines: Vec<Line>,
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
        let words = match path {
            Some(path) => Words::create(path, capacity)?,
            None => Words::private(capacity)?,
        };
        Ok(Counters { words: Arc::new(words), lines: Vec::new() })
    }

    /// A new counter, at zero.
    pub fn add(&mut self, worker: usize, element: &str, name: &str) -> Counter {
        let index = self.lines.len();
        self.lines.push(Line { worker, element: element.to_owned(), name: name.to_owned() });
        Counter { words: self.words.clone(), index }
    }

    /// Writes the directory of the shared file.
    pub fn publish(&self) -> io::Result<()> {
        let mut text = String::new();
        for (i, line) in self.lines.iter().enumerate() {
            text += &format!("{i}\t{}\t{}\t{}\n", line.worker, line.element, line.name);
        }
        self.words.set_directory(&text)
    }

    /// All counters with their values.
    pub fn read(&self) -> impl Iterator<Item = (&Line, u64)> {
        let words = self.words.words();
        self.lines.iter().enumerate().map(|(i, l)| (l, words.get(i).map_or(0, |w| w.load(Ordering::Relaxed))))
    }
}
