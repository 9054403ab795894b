//! Names of routers: each belongs to one process at a time.

use super::leftovers;
use super::record::{Record, Undo, all, path, upgrade_socket};
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Name of a router that was given none.
const DEFAULT: &str = "router";

/// A name that belongs to this process until this is dropped, with its record.
#[derive(Debug)]
pub struct Claim {
    dir: PathBuf,
    record: Mutex<Record>,
    /// Whether it is this process's by now; what another's file says stays.
    own: AtomicBool,
    /// Whether another process may take it at any time.
    lent: AtomicBool,
}

impl Claim {
    /// Claims `name` in the folder `dir`, or without one the first free of `router`, `router-2`, `router-3`... Names
    /// of the folders `beside` it are taken, too. What routers that were killed have left behind in this network
    /// namespace is undone.
    ///
    /// # Errors
    /// If a router of this name runs, or the record cannot be written.
    pub fn new(dir: &Path, beside: &[PathBuf], name: Option<&str>, socket: Option<&Path>) -> Result<Claim> {
        let _lock = lock(dir)?;
        let (mut alive, undone) = undo_dead(dir);
        leftovers::log(&undone);
        alive.extend(beside.iter().filter(|d| *d != dir).flat_map(|d| all(d)).filter(Record::is_alive));
        let name = choose_name(&alive, name)?;
        let record = Record::own(dir, &name, socket).context("cannot find this process in /proc")?;
        let claim = Claim {
            record: Mutex::new(record),
            dir: dir.to_owned(),
            own: AtomicBool::new(true),
            lent: AtomicBool::new(false),
        };
        claim.change(|_| ()).with_context(|| format!("cannot write {}", path(dir, &name).display()))?;
        Ok(claim)
    }

    /// A claim to the name of the router of `record`, which runs: the name is this process's once it is [taken](Claim::take).
    ///
    /// # Errors
    /// If this process is not in /proc.
    pub fn to_name_of(dir: &Path, record: &Record) -> Result<Claim> {
        let own = Record::own(dir, &record.name, Some(&record.socket))
            .context("cannot find this process in /proc")?;
        Ok(Claim {
            record: Mutex::new(own),
            dir: dir.to_owned(),
            own: AtomicBool::new(false),
            lent: AtomicBool::new(false),
        })
    }

    /// Takes the name, with what the router that had it has changed, which is returned.
    ///
    /// # Errors
    /// If the record is gone or cannot be written.
    pub fn take(&self) -> Result<Undo> {
        let _lock = lock(&self.dir)?;
        let name = self.record().name;
        let old = all(&self.dir).into_iter().find(|record| record.name == name);
        let undo = old.with_context(|| format!("there is no record of '{name}'"))?.undo;
        self.own.store(true, Ordering::Relaxed);
        let inherited = undo.clone();
        let written = self.change(|own| {
            own.offloads.extend(inherited.offloads);
            own.neighbours.extend(inherited.neighbours);
        });
        // What it could not write is the other's still.
        self.own.store(written.is_ok(), Ordering::Relaxed);
        written.with_context(|| format!("cannot write {}", path(&self.dir, &name).display()))?;
        Ok(undo)
    }

    /// From now on another process may [take](Claim::take) the name at any time: what changes is recorded only as long as it has
    /// not.
    pub fn lend(&self) {
        // Who writes at this moment has done so then.
        let _record = self.locked();
        self.lent.store(true, Ordering::Relaxed);
    }

    /// The name is this process's alone again, whatever the other has written.
    ///
    /// # Errors
    /// If the folder cannot be locked, or the record cannot be written. The name is this process's nevertheless.
    pub fn take_back(&self) -> io::Result<()> {
        let record = self.locked();
        self.lent.store(false, Ordering::Relaxed);
        let _lock = lock(&self.dir).map_err(io::Error::other)?;
        self.write(&record)
    }

    /// Whether the name is this process's by now.
    pub fn is_own(&self) -> bool {
        self.own.load(Ordering::Relaxed)
    }

    /// Where the router is asked by one that is to take its place.
    pub fn upgrade_socket(&self) -> PathBuf {
        upgrade_socket(&self.dir, &self.record().name)
    }

    /// What is recorded.
    pub fn record(&self) -> Record {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is to be undone if the router is killed.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn change(&self, change: impl FnOnce(&mut Undo)) -> io::Result<()> {
        self.edit(|record| change(&mut record.undo))
    }

    /// Says which programs the router has at XDP and at tcx.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn tell_programs(&self, (xdp, tcx): (Option<u32>, Option<u32>)) -> io::Result<()> {
        self.edit(|record| (record.xdp, record.tcx) = (xdp, tcx))
    }

    fn edit(&self, edit: impl FnOnce(&mut Record)) -> io::Result<()> {
        let mut record = self.locked();
        edit(&mut record);
        if !self.is_own() {
            return Ok(());
        }
        if !self.lent.load(Ordering::Relaxed) {
            return self.write(&record);
        }
        // The other takes what is recorded by then, under the same lock.
        let _lock = lock(&self.dir).map_err(io::Error::other)?;
        let is_own = |there: &Record| {
            (&there.name, there.pid, there.started) == (&record.name, record.pid, record.started)
        };
        if all(&self.dir).iter().any(is_own) { self.write(&record) } else { Ok(()) }
    }

    /// Where another process could write at the same time, the folder must be locked.
    fn write(&self, record: &Record) -> io::Result<()> {
        let file = path(&self.dir, &record.name);
        let beside = file.with_extension("json.new");
        fs::write(&beside, format!("{:#}\n", record.to_json()))?;
        fs::rename(beside, file)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let record = self.record();
        // What could not be undone is left to the next router, which sees that this one is dead. There is nobody left to
        // tell of an error.
        if record.undo.is_empty() && self.is_own() {
            let _ = fs::remove_file(path(&self.dir, &record.name));
        }
    }
}

fn choose_name(alive: &[Record], name: Option<&str>) -> Result<String> {
    let holder = |name: &str| alive.iter().find(|r| r.name == name);
    if let Some(name) = name {
        if let Some(other) = holder(name) {
            bail!("a router called '{name}' runs already, as process {}; give another --name", other.pid);
        }
        return Ok(name.to_owned());
    }
    let name = free_name(|name| holder(name).is_some());
    if let Some(other) = holder(DEFAULT) {
        let (pid, text) = (other.pid, format!("this one is called '{name}'"));
        log::info!("a router called '{DEFAULT}' runs already, as process {pid}; {text}");
    }
    Ok(name)
}

fn free_name(taken: impl Fn(&str) -> bool) -> String {
    let mut name = DEFAULT.to_owned();
    let mut n = 2;
    while taken(&name) {
        name = format!("{DEFAULT}-{n}");
        n += 1;
    }
    name
}

/// Undoes what routers of the folder `dir` that were killed have left behind in this network namespace; a line for each.
///
/// # Errors
/// If the folder cannot be locked.
pub fn tidy(dir: &Path) -> Result<Vec<String>> {
    let _lock = lock(dir)?;
    Ok(undo_dead(dir).1)
}

/// A lock of the folder, which ends when it is dropped.
fn lock(dir: &Path) -> Result<File> {
    let folder = File::open(dir).with_context(|| format!("cannot open {}", dir.display()))?;
    flock(&folder, FlockOperation::LockExclusive).context("cannot lock the folder of control sockets")?;
    Ok(folder)
}

/// The records of those alive; what the others left behind is undone, a line for each. The folder must be locked.
fn undo_dead(dir: &Path) -> (Vec<Record>, Vec<String>) {
    let (alive, dead): (Vec<Record>, Vec<Record>) = all(dir).into_iter().partition(Record::is_alive);
    let undone = dead.iter().filter_map(|record| leftovers::undo(record, dir)).collect();
    (alive, undone)
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::folder;
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn a_name_is_taken_with_what_is_to_be_undone() {
        let (top, dir) = folder("take");
        let entry = |n: u8| ("eth0".to_owned(), 7, IpAddr::from([192, 0, 2, n]));
        let mut old = Record { pid: 1, started: 0, ..Record::own(&dir, "a", None).unwrap() };
        old.undo.neighbours.insert(entry(1));
        let there = || all(&dir).pop().unwrap();
        fs::write(path(&dir, "a"), old.to_json().to_string()).unwrap();
        let claim = Claim::to_name_of(&dir, &old).unwrap();
        claim.change(|undo| assert!(undo.neighbours.insert(entry(2)))).unwrap();
        assert_eq!(there(), old, "it is the other's");
        drop(claim);
        assert_eq!(there(), old);
        let claim = Claim::to_name_of(&dir, &old).unwrap();
        claim.change(|undo| assert!(undo.neighbours.insert(entry(2)))).unwrap();
        let in_the_way = dir.join("a.json.new");
        fs::create_dir(&in_the_way).unwrap();
        let error = claim.take().unwrap_err();
        assert!(error.to_string().contains("cannot write"), "{error}");
        claim.change(|undo| undo.neighbours.clear()).unwrap();
        drop(claim);
        assert_eq!(there(), old, "it is the other's still");
        fs::remove_dir(in_the_way).unwrap();
        let claim = Claim::to_name_of(&dir, &old).unwrap();
        claim.change(|undo| assert!(undo.neighbours.insert(entry(2)))).unwrap();
        assert_eq!(claim.take().unwrap(), old.undo);
        assert_eq!((there().pid, there().undo.neighbours), (std::process::id(), [entry(1), entry(2)].into()));
        claim.change(|undo| undo.neighbours.clear()).unwrap();
        drop(claim);
        assert!(!path(&dir, "a").exists());
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn a_name_that_is_lent_is_written_to_until_it_is_taken() {
        let (top, dir) = folder("lend");
        let entry = |n: u8| ("eth0".to_owned(), 7, IpAddr::from([192, 0, 2, n]));
        let claim = Claim::new(&dir, &[], Some("a"), None).unwrap();
        let there = || all(&dir).pop().unwrap();
        claim.lend();
        claim.change(|undo| assert!(undo.neighbours.insert(entry(1)))).unwrap();
        assert_eq!(there(), claim.record(), "the other takes it with the name");
        let other = Record { pid: 1, started: 0, ..claim.record() };
        fs::write(path(&dir, "a"), other.to_json().to_string()).unwrap();
        claim.change(|undo| assert!(undo.neighbours.insert(entry(2)))).unwrap();
        assert_eq!(there(), other, "it is the other's");
        claim.take_back().unwrap();
        assert_eq!(there(), claim.record(), "which has not lived");
        claim.change(|undo| undo.neighbours.clear()).unwrap();
        assert!(there().undo.is_empty());
        drop(claim);
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn the_first_free_name_is_taken() {
        let after = |taken: &[&str]| free_name(|name| taken.contains(&name));
        assert_eq!(after(&[]), "router");
        assert_eq!(after(&["router-2"]), "router");
        assert_eq!(after(&["router", "router-3"]), "router-2");
        assert_eq!(after(&["router", "router-2"]), "router-3");
    }
}
