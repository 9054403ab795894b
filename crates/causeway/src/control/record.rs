//! What is recorded of a router while it runs: the file `NAME.json` in the folder of the control sockets.
//!
//! Clients find the routers of their network namespace by it, and the next router that starts sees what one that was
//! killed has left behind. It holds one object:
//!
//! | key | value |
//! | --- | --- |
//! | `version` | of this format: 1 |
//! | `name` | the router's name |
//! | `pid` | its process |
//! | `started` | when that process started, in clock ticks since the machine did: field 22 of `/proc/PID/stat`. With `pid` it names the process for good |
//! | `netns` | its network namespace, as the link `/proc/PID/ns/net` says |
//! | `cookie` | that namespace's cookie, which no later one has; missing in records of the first versions |
//! | `pidns` | its namespace of processes, as the link `/proc/PID/ns/pid` says, in which `pid` is its number; missing in records of earlier versions |
//! | `socket` | path of the control socket |
//! | `counters` | path of the shared counters |
//! | `xdp` | number of the BPF program that it attaches to ports at XDP; missing if it forwards nothing |
//! | `tcx` | number of the BPF program that it has at tcx; missing if it has none |
//! | `offloads` | what was turned off on interfaces: a list of `[interface, offload, its index]`; the first versions wrote no index |
//! | `neighbours` | entries that the kernel keeps resolved for the router: a list of `[interface, its index, address]` |
//!
//! The last two are what must be undone when the router was killed ([`Undo`]), and are written before it is done.
//!
//! The file is written under another name and renamed, so that a reader sees all of it. Names are claimed under a lock
//! of the folder, so that two routers which start at once get two.

use super::socket;
use causeway_netio::netns_cookie;
use rustix::fs::{Mode, OFlags, open};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const VERSION: u64 = 1;
/// Bytes of a record: some hundred for each of as many neighbours as a router knows.
const LONGEST: u64 = 1 << 24;
/// How long a process that was killed may take to let go of what it holds, and how often it is looked.
const LETTING_GO: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_millis(2);

/// A router that runs, or did when it was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// When that started, in clock ticks since the machine did.
    pub started: u64,
    /// Its network namespace.
    pub netns: String,
    /// That namespace's cookie; what an earlier version has recorded is without.
    pub cookie: Option<u64>,
    /// Its namespace of processes; what an earlier version has recorded is without.
    pub pidns: Option<String>,
    /// Its control socket.
    pub socket: PathBuf,
    /// Its shared counters.
    pub counters: PathBuf,
    /// The number of its program at XDP.
    pub xdp: Option<u32>,
    /// The number of its program at tcx.
    pub tcx: Option<u32>,
    /// What it has changed in its network namespace.
    pub undo: Undo,
}

/// Where a router of a record was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// In this network namespace.
    Here,
    /// In another.
    Elsewhere,
    /// In one that is no more: its number is this one's now.
    Gone,
}

/// What a router changes in its network namespace and changes back when it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undo {
    /// Offloads that were turned off: interface, offload, and the interface's index, by which it is found whatever it is called by
    /// now. What an earlier version has recorded is without.
    pub offloads: BTreeSet<(String, String, Option<u32>)>,
    /// Neighbours that the kernel was told to keep resolved: interface, its index, and address.
    pub neighbours: BTreeSet<(String, u32, IpAddr)>,
}

impl Undo {
    /// Whether there is nothing to undo.
    pub fn is_empty(&self) -> bool {
        *self == Undo::default()
    }

    /// `offload` of the interface with that name and index is off on the router's account from now on, or is no more.
    pub fn note_offload(&mut self, (name, index): (&str, u32), offload: &str, off: bool) {
        // It may have been recorded under another name.
        let is_other = |entry: &(String, String, Option<u32>)| {
            entry.1 != offload || entry.2.map_or(entry.0 != name, |recorded| recorded != index)
        };
        self.offloads.retain(is_other);
        if off {
            self.offloads.insert((name.to_owned(), offload.to_owned(), Some(index)));
        }
    }

    fn from_json(value: &Value) -> Option<Undo> {
        let list = |key: &str| value.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let text = |value: &Value, at: usize| Some(value.get(at)?.as_str()?.to_owned());
        let index = |v: &Value| v.get(2)?.as_u64()?.try_into().ok();
        let offload = |v: &Value| Some((text(v, 0)?, text(v, 1)?, index(v)));
        let neighbour =
            |v: &Value| Some((text(v, 0)?, v.get(1)?.as_u64()? as u32, text(v, 2)?.parse().ok()?));
        Some(Undo {
            offloads: list("offloads").iter().map(offload).collect::<Option<_>>()?,
            neighbours: list("neighbours").iter().map(neighbour).collect::<Option<_>>()?,
        })
    }
}

impl Record {
    /// That of this process, under a name in the folder `dir`.
    pub(super) fn own(dir: &Path, name: &str, socket: Option<&Path>) -> io::Result<Record> {
        let pid = std::process::id();
        let file = |end: &str| dir.join(format!("{name}.{end}"));
        Ok(Record {
            name: name.to_owned(),
            pid,
            started: started(pid).ok_or(io::ErrorKind::NotFound)?,
            netns: own_netns()?,
            cookie: netns_cookie().ok(),
            pidns: own_pidns(),
            socket: std::path::absolute(socket.unwrap_or(&file("sock")))?,
            counters: file("counters"),
            xdp: None,
            tcx: None,
            undo: Undo::default(),
        })
    }

    fn from_json(text: &str) -> Option<Record> {
        let value: Value = serde_json::from_str(text).ok()?;
        let text = |key: &str| value.get(key)?.as_str().map(str::to_owned);
        let number = |key: &str| value.get(key)?.as_u64();
        let program = |key: &str| number(key).and_then(|number| number.try_into().ok());
        (number("version")? == VERSION).then_some(())?;
        Some(Record {
            name: text("name")?,
            pid: number("pid")?.try_into().ok()?,
            started: number("started")?,
            netns: text("netns")?,
            cookie: number("cookie"),
            pidns: text("pidns"),
            socket: text("socket")?.into(),
            counters: text("counters")?.into(),
            xdp: program("xdp"),
            tcx: program("tcx"),
            undo: Undo::from_json(&value)?,
        })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "version": VERSION,
            "name": self.name,
            "pid": self.pid,
            "started": self.started,
            "netns": self.netns,
            "cookie": self.cookie,
            "pidns": self.pidns,
            "socket": self.socket.to_string_lossy(),
            "counters": self.counters.to_string_lossy(),
            "xdp": self.xdp,
            "tcx": self.tcx,
            "offloads": self.undo.offloads,
            "neighbours": self.undo.neighbours,
        })
    }

    /// Where the router was; whether it still runs does not matter.
    pub fn whereabouts(&self) -> Whereabouts {
        let Ok(own) = own_netns() else { return Whereabouts::Elsewhere };
        match (own == self.netns, self.cookie, netns_cookie()) {
            (false, ..) => Whereabouts::Elsewhere,
            (true, Some(recorded), Ok(own)) if recorded != own => Whereabouts::Gone,
            _ => Whereabouts::Here,
        }
    }

    /// Whether the router still runs.
    pub fn is_alive(&self) -> bool {
        // From another namespace, as a container's, its process cannot be seen, and the number may be another's.
        match (&self.pidns, own_pidns()) {
            (Some(its), Some(own)) if *its != own => socket::is_heard(&self.socket),
            _ => started(self.pid) == Some(self.started),
        }
    }

    /// Removes the files that the router left behind in the folder `dir`.
    pub fn remove_files(&self, dir: &Path) {
        // What is gone already, or is not ours to remove, stays as it is.
        let _ = socket::remove_dead(&self.socket);
        // By the name and not by the record, which another user may have written.
        let file = |end: &str| dir.join(format!("{}.{end}", self.name));
        let _ = socket::remove_unheard(&file("sock"));
        let _ = socket::remove_unheard(&upgrade_socket(dir, &self.name));
        for file in [file("counters"), path(dir, &self.name)] {
            let _ = fs::remove_file(file);
        }
    }
}

/// What is in a file that another user may have put there, who may have put something else there than a file.
fn read(file: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(open(file, flags, Mode::empty())?);
    let mut text = String::new();
    if file.metadata()?.is_file() {
        file.take(LONGEST).read_to_string(&mut text)?;
    }
    Ok(text)
}

/// The records of all routers, dead ones too.
pub fn all(dir: &Path) -> Vec<Record> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let files = entries.filter(|p| p.extension().is_some_and(|e| e == "json"));
    // Another user may have written it: a name that is not the file's could lead out of the folder.
    let record = |file: PathBuf| {
        let record = Record::from_json(&read(&file).ok()?)?;
        (file == path(dir, &record.name)).then_some(record)
    };
    let mut records: Vec<Record> = files.filter_map(record).collect();
    records.sort_by(|a, b| a.name.cmp(&b.name));
    records
}

/// The router of this name in the folder `dir` that runs in this network namespace.
pub fn running(dir: &Path, name: &str) -> Option<Record> {
    let netns = own_netns().ok()?;
    all(dir).into_iter().find(|record| record.name == name && record.netns == netns && record.is_alive())
}

/// The network namespace of this process.
pub fn own_netns() -> io::Result<String> {
    Ok(fs::read_link("/proc/self/ns/net")?.to_string_lossy().into_owned())
}

/// The namespace of processes of this one.
fn own_pidns() -> Option<String> {
    Some(fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned())
}

/// Where the router of this name in the folder `dir` is asked by one that is to take its place.
pub fn upgrade_socket(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.upgrade"))
}

pub(super) fn path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.json"))
}

/// When a process started; `None` if it has ended, also if its parent has not asked yet how. While threads of one that was killed
/// let go of what they hold, its sockets say, it is waited for.
fn started(pid: u32) -> Option<u64> {
    let end = Instant::now() + LETTING_GO;
    loop {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name in parentheses, which may hold any character.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let threads: u32 = fields.nth(16)?.parse().ok()?;
        if !matches!(state, "Z" | "X") {
            return fields.nth(1)?.parse().ok();
        }
        if threads < 2 || end < Instant::now() {
            return None;
        }
        std::thread::sleep(PERIOD);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::claim::tidy;
    use super::*;
    use rustix::fs::{CWD, FileType, mknodat};

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is_one() {
        let mut record = Record::own(Path::new("/run/x"), "a.b", Some(Path::new("/tmp/s"))).unwrap();
        record.undo.note_offload(("eth0", 7), "lro", true);
        record.undo.neighbours.insert(("eth1".to_owned(), 7, "2001:db8::1".parse().unwrap()));
        (record.xdp, record.tcx) = (Some(6), Some(7));
        assert_eq!(record.socket, Path::new("/tmp/s"));
        assert_eq!(record.counters, Path::new("/run/x/a.b.counters"));
        let text = record.to_json().to_string();
        assert_eq!(Record::from_json(&text).as_ref(), Some(&record));
        let earlier = Record::from_json(&text.replace("[\"eth0\",\"lro\",7]", "[\"eth0\",\"lro\"]")).unwrap();
        let offloads = [("eth0".to_owned(), "lro".to_owned(), None)].into();
        record.undo.offloads = offloads;
        assert_eq!(earlier, record, "an earlier version recorded no index");
        let first = text.replace("\"cookie\"", "\"other\"").replace("\"pidns\"", "\"others\"");
        let first = Record::from_json(&first).unwrap();
        assert!(first.pidns.is_none() && first.is_alive());
        assert_eq!(
            (first.cookie, first.whereabouts()),
            (None, Whereabouts::Here),
            "the first versions recorded no cookie"
        );
        for other in ["", "{}", "[1]", &text[1..], &text.replace("\"version\":1", "\"version\":2")] {
            assert_eq!(Record::from_json(other), None, "{other}");
        }
    }

    #[test]
    fn what_was_turned_off_is_known_by_its_index() {
        let entry = |name: &str, index| (name.to_owned(), "lro".to_owned(), index);
        let mut undo = Undo { offloads: [entry("eth0", None)].into(), ..Undo::default() };
        undo.note_offload(("eth0", 7), "lro", true);
        undo.note_offload(("eth0", 8), "lro", true);
        assert_eq!(undo.offloads, [entry("eth0", Some(7)), entry("eth0", Some(8))].into(), "two of one name");
        undo.note_offload(("wan0", 7), "lro", true);
        undo.note_offload(("eth0", 8), "rxvlan", false);
        assert_eq!(undo.offloads, [entry("wan0", Some(7)), entry("eth0", Some(8))].into(), "it was renamed");
        undo.note_offload(("eth0", 7), "lro", false);
        assert_eq!(undo.offloads, [entry("eth0", Some(8))].into());
    }

    /// A folder with an empty file beside it.
    pub fn folder(name: &str) -> (PathBuf, PathBuf) {
        let top = std::env::temp_dir().join(format!("causeway-{name}-{}", std::process::id()));
        let dir = top.join("routers");
        fs::create_dir_all(&dir).unwrap();
        fs::write(top.join("other.json"), "").unwrap();
        (top, dir)
    }

    #[test]
    fn a_record_that_names_another_file_is_none() {
        let (top, dir) = folder("names");
        let record = |name: &str| Record { started: 0, ..Record::own(&dir, name, None).unwrap() };
        fs::write(dir.join("a.json"), record("../other").to_json().to_string()).unwrap();
        fs::write(dir.join("b.json"), record("a").to_json().to_string()).unwrap();
        fs::write(dir.join("c.d.json"), record("c.d").to_json().to_string()).unwrap();
        let names: Vec<String> = all(&dir).into_iter().map(|record| record.name).collect();
        assert_eq!(names, ["c.d"]);
        tidy(&dir).unwrap();
        assert!(top.join("other.json").exists() && !dir.join("c.d.json").exists());
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn of_a_namespace_that_is_gone_nothing_is_undone() {
        let (top, dir) = folder("gone");
        let own = Record { started: 0, ..Record::own(&dir, "a", None).unwrap() };
        assert_eq!(own.whereabouts(), Whereabouts::Here);
        assert_eq!(
            Record { netns: "net:[0]".to_owned(), ..own.clone() }.whereabouts(),
            Whereabouts::Elsewhere
        );
        let mut gone = Record { cookie: own.cookie.map(|cookie| cookie + 1), ..own };
        assert_eq!(gone.whereabouts(), Whereabouts::Gone, "it has this one's number");
        // An offload that cannot be set here: to try would be told.
        gone.undo.note_offload(("lo", 1), "lro", true);
        fs::write(path(&dir, "a"), gone.to_json().to_string()).unwrap();
        let undone = tidy(&dir).unwrap();
        assert!(undone.len() == 1 && !undone[0].contains("lro"), "{undone:?}");
        assert_eq!(all(&dir), []);
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn what_is_no_file_is_no_record_and_keeps_nobody_waiting() {
        let (top, dir) = folder("strange");
        let record = Record::own(&dir, "a", None).unwrap().to_json().to_string();
        fs::write(top.join("elsewhere"), &record).unwrap();
        std::os::unix::fs::symlink(top.join("elsewhere"), dir.join("a.json")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.join("b.json")).unwrap();
        mknodat(CWD, dir.join("c.json"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        fs::create_dir(dir.join("d.json")).unwrap();
        assert_eq!(all(&dir), []);
        fs::remove_file(dir.join("a.json")).unwrap();
        fs::write(dir.join("a.json"), record).unwrap();
        assert_eq!(all(&dir).len(), 1);
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn the_socket_of_a_dead_router_goes_whoever_it_was() {
        let (top, dir) = folder("socket");
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root to make another user's socket");
        }
        let listener = std::os::unix::net::UnixListener::bind(dir.join("a.sock")).unwrap();
        std::os::unix::fs::chown(dir.join("a.sock"), Some(65_534), None).unwrap();
        let record = Record::own(&dir, "a", None).unwrap();
        record.remove_files(&dir);
        assert!(dir.join("a.sock").exists(), "somebody listens");
        drop(listener);
        record.remove_files(&dir);
        assert!(!dir.join("a.sock").exists());
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn in_another_namespace_of_processes_a_router_is_alive_while_its_socket_is_heard() {
        let (top, dir) = folder("pidns");
        let socket = dir.join("a.sock");
        let own = Record::own(&dir, "a", Some(&socket)).unwrap();
        let record = Record { pidns: Some("pid:[0]".to_owned()), ..own };
        assert!(!record.is_alive(), "there is none, whoever has that number here");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(record.is_alive());
        drop(listener);
        assert!(!record.is_alive(), "only the file is there");
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn a_process_is_alive_until_it_ends_and_its_number_alone_does_not_make_it() {
        let own = Record::own(Path::new("/run/x"), "a", None).unwrap();
        assert!(own.is_alive());
        assert!(!Record { started: own.started + 1, ..own.clone() }.is_alive());
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let other = Record { pid: child.id(), started: started(child.id()).unwrap(), ..own };
        assert!(other.is_alive());
        drop(child.stdin.take());
        // Nobody has asked how it ended, so that its number is still taken.
        while other.is_alive() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
