//! What the code of programs in user space is for, by the file of its source that an address is of.
//!
//! A compiler puts one function into another until one function is all that is left of a packet's way; its debug information
//! says of each address which of them it is of, from the innermost to the outermost. The first whose file is known counts, so
//! that what the standard library does for a table is the table's.

use super::symbols::{Class, copies};
use addr2line::Loader;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Files of Causeway's source, and what they are for: the first that fits counts.
const KNOWN: &[(&str, Class)] = &[
    ("netio/src/afxdp/tx.rs", Class::Transmission),
    ("netio/src/afxdp/rx.rs", Class::Reception),
    ("netio/src/afxdp/level.rs", Class::Reception),
    ("netio/src/afpacket/", Class::Reception),
    ("netio/src/live", Class::Transmission),
    ("engine/src/reception/", Class::Reception),
    ("elements/src/devices/from_", Class::Reception),
    ("elements/src/devices/", Class::Transmission),
    ("elements/src/queues/", Class::Transmission),
    ("elements/src/ethernet/", Class::Ethernet),
    ("elements/src/scheduling/", Class::Scheduler),
    ("packet/src/wire/ethernet.rs", Class::Ethernet),
    ("packet/src/wire/arp.rs", Class::Ethernet),
    ("packet/src/wire/", Class::Ip),
    ("packet/src/checksum.rs", Class::Ip),
    ("packet/src/flow.rs", Class::Ip),
    ("packet/src/", Class::Memory),
    ("fib/src/baseline/linear.rs", Class::Detour),
    ("fib/src/", Class::Ip),
    ("elements/src/", Class::Ip),
    ("engine/src/ir/", Class::Ip),
    ("engine/src/", Class::Scheduler),
];

/// What is known of the files that programs run from.
#[derive(Default)]
pub struct Programs {
    files: HashMap<PathBuf, Option<Loader>>,
    known: HashMap<(PathBuf, u64), Option<Class>>,
}

impl Programs {
    /// What the code of a process at an address is for, if that is known. `maps` is what /proc/PID/maps says of it.
    pub fn find(&mut self, maps: &[Mapping], address: u64) -> Option<Class> {
        let (file, relative) = place(maps, address)?;
        let key = (file.to_owned(), relative);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let load = || Loader::new(file).ok();
        let loader = self.files.entry(file.to_owned()).or_insert_with(load).as_ref();
        let found = loader.and_then(|loader| class(loader, relative));
        self.known.insert(key, found);
        found
    }
}

/// By the functions that the code at an address is of, or else by the symbol.
fn class(loader: &Loader, address: u64) -> Option<Class> {
    let mut classes = Vec::new();
    let mut frames = loader.find_frames(address).ok();
    while let Some(Ok(Some(frame))) = frames.as_mut().map(|frames| frames.next()) {
        classes.extend(frame.location.and_then(|location| class_of(location.file?)));
    }
    let copies = || loader.find_symbol(address).filter(|symbol| copies(symbol)).map(|_| Class::Memory);
    innermost(&classes).or_else(copies)
}

/// What counts of the functions around an address whose files are known: the innermost, but all that the detour does is detour.
fn innermost(classes: &[Class]) -> Option<Class> {
    let detour = classes.iter().find(|class| **class == Class::Detour);
    detour.or(classes.first()).copied()
}

fn class_of(file: &str) -> Option<Class> {
    KNOWN.iter().find(|(part, _)| file.contains(part)).map(|&(_, class)| class)
}

/// A part of a process that is a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    begin: u64,
    end: u64,
    offset: u64,
    file: PathBuf,
}

/// Of the text of /proc/PID/maps (proc(5)): what is no file's is left out.
pub fn mappings(text: &str) -> Vec<Mapping> {
    let mapping = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let offset = number(words.nth(1)?)?;
        let file = words.nth(2).filter(|file| file.starts_with('/'))?;
        Some(Mapping { begin: number(begin)?, end: number(end)?, offset, file: file.into() })
    };
    text.lines().filter_map(mapping).collect()
}

/// The file that is there, and the address as the file counts: from where its beginning is.
fn place(maps: &[Mapping], address: u64) -> Option<(&Path, u64)> {
    let found = maps.iter().find(|mapping| (mapping.begin..mapping.end).contains(&address))?;
    let first = maps.iter().find(|mapping| mapping.file == found.file && mapping.offset == 0)?;
    Some((&found.file, address - first.begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0000000-55d0c0001000 r--p 00000000 fd:00 11 /usr/bin/causeway
55d0c0001000-55d0c0009000 r-xp 00001000 fd:00 11 /usr/bin/causeway
7f0000000000-7f0000001000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]
";

    #[test]
    fn addresses_are_counted_from_the_beginning_of_their_file() {
        let maps = mappings(MAPS);
        assert_eq!(maps.len(), 2);
        let found = place(&maps, 0x55d0_c000_1234);
        assert_eq!(found, Some((Path::new("/usr/bin/causeway"), 0x1234)));
        assert_eq!(place(&maps, 0x7f00_0000_0010), None);
        assert_eq!(place(&maps, 0x55d0_c000_9000), None);
        assert_eq!(mappings("x\n1-2 r 0\nzz-1 r-xp 0 0 0 /a\n"), []);
    }

    #[test]
    fn files_of_the_source_have_classes() {
        for (file, told) in [
            ("/src/crates/netio/src/afxdp/rx.rs", Some(Class::Reception)),
            ("crates/elements/src/devices/to_device.rs", Some(Class::Transmission)),
            ("crates/packet/src/pool.rs", Some(Class::Memory)),
            ("crates/fib/src/v4/rank24.rs", Some(Class::Ip)),
            ("crates/fib/src/baseline/radix.rs", Some(Class::Ip)),
            ("crates/fib/src/baseline/linear.rs", Some(Class::Detour)),
            ("crates/engine/src/worker.rs", Some(Class::Scheduler)),
            ("/rustc/0/library/core/src/slice/mod.rs", None),
        ] {
            assert_eq!(class_of(file), told, "{file}");
        }
    }

    /// Two functions, of which each is in a file of its own, and where they are in the process.
    const FIXTURE: &str = "\
#[path = \"../../fib/src/table.rs\"]
mod table;
#[inline(never)]
pub fn work() -> u64 { std::hint::black_box(7) }
fn main() {
    println!(\"{} {}\", work as *const () as u64, table::find as *const () as u64);
    println!(\"{}\", std::fs::read_to_string(\"/proc/self/maps\").unwrap());
}
";
    const TABLE: &str = "#[inline(never)]\npub fn find() -> u64 { std::hint::black_box(9) }\n";

    #[test]
    fn what_the_detour_calls_is_detour_and_else_the_innermost_counts() {
        assert_eq!(innermost(&[Class::Memory, Class::Ip, Class::Scheduler]), Some(Class::Memory));
        assert_eq!(innermost(&[Class::Ip, Class::Detour, Class::Ip]), Some(Class::Detour));
        assert_eq!(innermost(&[]), None);
    }

    #[test]
    fn what_a_program_runs_is_known_by_its_source() {
        let folder = std::env::temp_dir().join(format!("causeway-lab-{}-source", std::process::id()));
        let file = |name: &str| folder.join(name);
        for (name, text) in [("engine/src/worker.rs", FIXTURE), ("fib/src/table.rs", TABLE)] {
            std::fs::create_dir_all(file(name).parent().expect("a folder")).expect("made");
            std::fs::write(file(name), text).expect("written");
        }
        // This program itself may have been built without line tables, as it is where they take too long.
        let mut compiler = std::process::Command::new("rustc");
        compiler.args(["--edition", "2024", "-C", "debuginfo=line-tables-only", "-o"]);
        let compiled = compiler.arg(file("program")).arg(file("engine/src/worker.rs")).output();
        let Ok(compiled) = compiled else { return eprintln!("skipped: there is no rustc") };
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let said = std::process::Command::new(file("program")).output().expect("run").stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        let (addresses, maps) = said.split_once('\n').expect("lines");
        let addresses = addresses.split(' ').map(|word| word.parse().expect("an address"));
        let (maps, mut programs) = (mappings(maps), Programs::default());
        let found: Vec<_> = addresses.map(|address| programs.find(&maps, address)).collect();
        assert_eq!(found, [Some(Class::Scheduler), Some(Class::Ip)]);
        assert_eq!(programs.find(&maps, 0), None);
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
