//! Counters: words that one worker writes and anybody reads.
//!
//! Their file comes into being beside its path, under the name with `.new` behind it, and is put there when the graph
//! is ([`Counters::commit`]): a graph that fails leaves the counters of the running one alone. The file goes with its
//! counters. A path belongs to one router; whoever starts several gives each its own.

use crate::measure::Unit;
use causeway_packet::words::{self, Words};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Words of a cache line.
const LINE: usize = 8;

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

/// One counter is another if both are the same word.
impl PartialEq for Counter {
    fn eq(&self, other: &Counter) -> bool {
        Arc::ptr_eq(&self.words, &other.words) && self.index == other.index
    }
}

/// Hands out the counters of one router.
#[derive(Debug)]
pub struct Counters {
    file: Option<SharedFile>,
    words: Arc<Words>,
    /// Words of each worker, together: no two workers write one cache line, nor one that is fetched with it.
    arena: usize,
    /// Words in use, by worker.
    used: Vec<usize>,
    lines: Vec<(usize, Line)>,
    /// Words that do not go on from those of the graph before.
    fresh: HashSet<usize>,
    /// Which graph of its router it is, from 1.
    generation: u64,
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Worker that writes it.
    pub worker: usize,
    /// Element name.
    pub element: String,
    /// Counter name, such as `drop.bad-checksum`.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
}

impl Line {
    /// A line of the handler `counters`: worker, element, name and value, with tabs between.
    pub fn show(&self, value: u64) -> String {
        format!("{}\t{}\t{}\t{value}", self.worker, self.element, self.name)
    }
}

/// What elements have counted that are not in the graph, until they are again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// Whether those are added that the next graph does not have.
    pub next: bool,
    /// By class of the element and counter.
    counts: HashMap<(String, Line), u64>,
}

/// Element, counter and value of a line of the handler `counters`, as [`Line::show`] writes it; `None` if it is of
/// another version.
pub fn read_line(line: &str) -> Option<(&str, &str, u64)> {
    let mut words = line.split('\t');
    let (_worker, element, name) = (words.next()?, words.next()?, words.next()?);
    Some((element, name, words.next()?.parse().ok()?))
}

impl Counters {
    /// Room for `capacity` counters of each worker, in the shared file `path` or in private memory.
    ///
    /// # Errors
    /// The file cannot be made or mapped.
    pub fn new(workers: usize, capacity: usize, path: Option<&Path>) -> io::Result<Self> {
        // The last line stays empty: the first word of all is not at the begin of a pair of lines.
        let arena = (capacity + LINE).next_multiple_of(2 * LINE);
        let count = workers * arena;
        let (words, file) = match path {
            Some(path) => {
                let words = Words::create(&beside(path), count)?;
                let id = id(&beside(path))?;
                (words, Some(SharedFile { path: path.to_owned(), id }))
            }
            None => (Words::private(count)?, None),
        };
        Ok(Counters {
            file,
            words: Arc::new(words),
            arena,
            used: vec![0; workers],
            lines: Vec::new(),
            fresh: HashSet::new(),
            generation: 1,
        })
    }

    /// A new counter, at zero.
    pub fn add(&mut self, worker: usize, element: &str, name: &str, unit: Unit) -> Counter {
        // Beyond what there is room for nothing is counted.
        let index = match self.used.get_mut(worker) {
            Some(used) if *used < self.arena - LINE => {
                *used += 1;
                worker * self.arena + *used - 1
            }
            _ => usize::MAX,
        };
        if index < usize::MAX {
            let line = Line { worker, element: element.to_owned(), name: name.to_owned(), unit };
            self.lines.push((index, line));
        }
        Counter { words: self.words.clone(), index }
    }

    /// `counter` does not go on from the one of the graph before.
    pub(crate) fn begin_anew(&mut self, counter: &Counter) {
        self.fresh.insert(counter.index);
    }

    /// Puts the shared file in its place, with the directory of its counters. If that fails nobody else can read
    /// them, which is logged; the router is as good as before.
    pub(crate) fn commit(&self) {
        let Some(file) = &self.file else { return };
        let mut text = String::new();
        for (i, line) in &self.lines {
            let unit = line.unit.name().unwrap_or("-");
            text += &format!("{i}\t{}\t{}\t{}\t{unit}\n", line.worker, line.element, line.name);
        }
        let done = self.words.publish(&text, self.generation);
        if let Err(e) = done.and_then(|()| std::fs::rename(beside(&file.path), &file.path)) {
            log::warn!("{}: {e}; the counters are not shared", file.path.display());
        }
    }

    /// The first of an element's counters called `name`, and the worker that writes it.
    pub(crate) fn find(&self, element: &str, name: &str) -> Option<(usize, Counter)> {
        let wanted = |(_, line): &&(usize, Line)| line.element == element && line.name == name;
        let (index, line) = self.lines.iter().find(wanted)?;
        Some((line.worker, Counter { words: self.words.clone(), index: *index }))
    }

    /// What a counter counts; `None` if it is another graph's.
    pub(crate) fn line_of(&self, counter: &Counter) -> Option<&Line> {
        let mut lines = self.lines.iter().filter(|_| Arc::ptr_eq(&counter.words, &self.words));
        lines.find(|(index, _)| *index == counter.index).map(|(_, line)| line)
    }

    /// All counters with their values.
    pub fn read(&self) -> impl Iterator<Item = (&Line, u64)> {
        let words = self.words.words();
        self.lines.iter().map(|(i, l)| (l, words.get(*i).map_or(0, |w| w.load(Ordering::Relaxed))))
    }

    /// What goes on from `old`, worker by worker: the counts of elements that stay, and of the workers themselves.
    pub(crate) fn carry(&mut self, old: &Counters, stays: impl Fn(&str) -> bool) -> Vec<Carried> {
        self.generation = old.generation + 1;
        let places: HashMap<&Line, usize> = old.lines.iter().map(|(i, line)| (line, *i)).collect();
        let none = || Carried { from: old.words.clone(), to: self.words.clone(), places: Vec::new() };
        let mut carried: Vec<Carried> = self.used.iter().map(|_| none()).collect();
        let goes_on = |(i, line): &&(usize, Line)| {
            !self.fresh.contains(i) && (line.element.is_empty() || stays(&line.element))
        };
        for (i, line) in self.lines.iter().filter(goes_on) {
            if let Some((of_worker, from)) = carried.get_mut(line.worker).zip(places.get(line)) {
                of_worker.places.push((*from, *i));
            }
        }
        carried
    }

    /// Goes on from what elements have counted before they were away; `class` says of what class one is.
    pub(crate) fn resume(&mut self, kept: &mut Kept, class: impl Fn(&str) -> Option<String>) {
        if kept.counts.is_empty() {
            return;
        }
        let words = self.words.words();
        for (i, line) in &self.lines {
            let Some(class) = class(&line.element) else { continue };
            let value = kept.counts.remove(&(class, line.clone())).filter(|_| !self.fresh.contains(i));
            if let Some((word, value)) = words.get(*i).zip(value) {
                words::add(word, value);
            }
        }
    }
}

/// Counters of one worker and those of its graph before that they go on from.
#[derive(Debug)]
pub(crate) struct Carried {
    from: Arc<Words>,
    to: Arc<Words>,
    places: Vec<(usize, usize)>,
}

impl Carried {
    /// Adds what has been counted. To be called once, where the worker counts nothing.
    pub fn add(&self) {
        let (old, new) = (self.from.words(), self.to.words());
        for &(from, to) in &self.places {
            if let Some((word, value)) = new.get(to).zip(old.get(from)) {
                words::add(word, value.load(Ordering::Relaxed));
            }
        }
    }
}

impl Kept {
    /// Keeps what the elements of `old` have counted that do not stay, if that is asked for; `class` says of what class one was.
    pub fn note(
        &mut self,
        old: &Counters,
        stays: impl Fn(&str) -> bool,
        class: impl Fn(&str) -> Option<String>,
    ) {
        if !std::mem::take(&mut self.next) {
            return;
        }
        let going = old.read().filter(|(line, _)| !line.element.is_empty() && !stays(&line.element));
        let of_class = |(line, value): (&Line, u64)| Some(((class(&line.element)?, line.clone()), value));
        self.counts.extend(going.filter_map(of_class));
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // Who maps the file cannot see that it is gone from the folder, and there is nobody else to tell of an error.
        let _ = self.words.retire();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_write_no_pair_of_lines_together_and_nothing_beyond_their_room() {
        let mut counters = Counters::new(3, 20, None).unwrap();
        let mut pairs = HashMap::new();
        for worker in 0..3 {
            for n in 0..40 {
                let counter = counters.add(worker, "e", &n.to_string(), Unit::None);
                counter.add(1);
                if counter.get() > 0 {
                    let pair = (words::HEADER_BYTES + 8 * counter.index) / 128;
                    assert_eq!(*pairs.entry(pair).or_insert(worker), worker);
                }
            }
        }
        let of = |worker| counters.read().filter(|(line, n)| line.worker == worker && *n == 1).count();
        assert!((0..3).all(|worker| of(worker) >= 20), "room for as many as were asked for");
    }

    #[test]
    fn counts_go_on_where_elements_stay() {
        let make = |names: [&str; 2]| {
            let mut counters = Counters::new(2, 8, None).unwrap();
            let made: Vec<Counter> = (0..2)
                .flat_map(|w| names.map(|name| (w, name)))
                .map(|(w, name)| counters.add(w, name, "n", Unit::None))
                .collect();
            (counters, made)
        };
        let (mut old, counted) = make(["a", "b"]);
        (0..4).for_each(|i| counted[i].add(10 + i as u64));
        let (mut new, counting) = make(["b", "a"]);
        counting[1].add(5);
        let anew = new.add(0, "a", "limit", Unit::None);
        new.begin_anew(&anew);
        old.add(0, "a", "limit", Unit::None).add(7);
        new.carry(&old, |element| element == "a").iter().for_each(Carried::add);
        assert_eq!(counting.iter().map(Counter::get).collect::<Vec<_>>(), [0, 15, 0, 12]);
        assert_eq!(anew.get(), 0);
    }

    #[test]
    fn counts_of_elements_that_were_away_go_on_if_they_were_kept() {
        let make = |elements: &[&str]| {
            let mut counters = Counters::new(1, 8, None).unwrap();
            let made: Vec<Counter> =
                elements.iter().map(|element| counters.add(0, element, "n", Unit::None)).collect();
            (counters, made)
        };
        let class = |element: &str| Some(element[..1].to_owned());
        let value = |made: &[Counter]| made.iter().map(Counter::get).collect::<Vec<_>>();
        let mut kept = Kept::default();
        // Nobody asks for it, and somebody does.
        for (next, after) in [(false, 0), (true, 7)] {
            let (old, counted) = make(&["a1", "b1", "c1"]);
            counted.iter().for_each(|counter| counter.add(7));
            kept.next = next;
            kept.note(&old, |element| element == "c1", class);
            let (mut new, made) = make(&["d1"]);
            new.resume(&mut kept, class);
            assert_eq!(value(&made), [0]);
            // They come back one by one; one that has the name of another class is another.
            let (mut new, made) = make(&["a1", "c1"]);
            new.resume(&mut kept, class);
            assert_eq!(value(&made), [after, 0], "what stays is carried");
            let (mut other, others) = make(&["b1"]);
            other.resume(&mut kept, |_| Some("x".to_owned()));
            assert_eq!(value(&others), [0]);
            let (mut new, made) = make(&["a1", "b1"]);
            new.resume(&mut kept, class);
            assert_eq!(value(&made), [0, after], "each once");
        }
    }

    #[test]
    fn what_is_shown_is_read() {
        let line =
            Line { worker: 3, element: "in0".to_owned(), name: "rx.polls".to_owned(), unit: Unit::None };
        assert_eq!(read_line(&line.show(7)), Some(("in0", "rx.polls", 7)));
        for other in ["", "0\tin0\trx.polls", "0\tin0\trx.polls\tmany", "in0 rx.polls 7"] {
            assert_eq!(read_line(other), None, "{other:?}");
        }
    }
}
