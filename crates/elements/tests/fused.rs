//! The optimiser changes nothing but the time: the same frames, counters and drop reasons, plain and fused.

use causeway_elements::standard_router::{Interface, configuration};
use causeway_elements::{library, optimise};
use causeway_engine::{Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use causeway_netio::pcap::Reader;
use causeway_packet::checksum::checksum;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const FRAMES: usize = 20_000;

fn plan(text: &str) -> Plan {
    let compiled = causeway_lang::compile("router", text.as_bytes(), &NoLibraries, &library(), &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())))
}

/// The router between two capture files and two more that it writes.
fn router(dir: &Path) -> String {
    let interface = |n: u8| Interface {
        address: [10, n, 0, 1].into(),
        prefix_len: 16,
        mac: format!("2:0:0:0:{n}:1"),
        input: format!("FromDump({}, STOP true)", dir.join(format!("in{n}.pcap")).display()),
        output: format!(
            "Unqueue -> t{n} :: ToDump({}) -> Discard",
            dir.join(format!("out{n}.pcap")).display()
        ),
    };
    let routes = ["99.0.0.0/8 10.1.0.9 1".to_owned(), "0.0.0.0/0 10.0.0.9 0".to_owned()];
    // Long after both files have ended nothing is held for neighbours any more.
    configuration(&[interface(0), interface(1)], "IPLookup", &routes)
        + "DriverManager(wait_stop 2, wait 600s, stop);"
}

/// Pseudo-random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A frame into interface `n`: ordinary ones, and all that a chain treats differently.
fn frame(n: u8, r: &mut Random) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, n, 1, 2, 0, 0, 0, 9, 9, 8, 0];
    let options = if r.next(10) == 0 { 4 * (1 + r.next(3) as usize) } else { 0 };
    let payload = if r.next(50) == 0 { 1_480 + r.next(100) as usize } else { r.next(90) as usize };
    let total = 20 + options + payload;
    let ttl = if r.next(8) == 0 { r.next(3) as u8 } else { 64 };
    let source = if r.next(30) == 0 { [255; 4] } else { [10, n, 0, 2 + r.next(7) as u8] };
    let destination = match r.next(8) {
        0 => [10, 0, 0, 2 + r.next(7) as u8],
        1 | 2 => [10, 1, 0, 2 + r.next(7) as u8],
        3 => [99, r.next(256) as u8, 1, 1],
        4 => [10, 1, 0, 1],
        5 => [224, 0, 0, 5],
        _ => [r.next(223) as u8, r.next(256) as u8, 3, 4],
    };
    f.extend([0x45 + (options / 4) as u8, 0, (total >> 8) as u8, total as u8, 0, r.next(256) as u8]);
    f.extend([if r.next(3) == 0 { 0x40 } else { 0 }, 0, ttl, 17, 0, 0]);
    f.extend(source);
    f.extend(destination);
    f.extend(if options > 0 && r.next(2) == 0 { vec![7, options as u8, 4] } else { vec![1; options.min(3)] });
    f.resize(14 + 20 + options, 1);
    let sum = checksum(&f[14..34 + options]);
    f[24..26].copy_from_slice(&sum.to_be_bytes());
    f.extend((0..payload).map(|i| i as u8));
    match r.next(20) {
        0 => f[12..14].copy_from_slice(&[8, 6]),
        1 => f[0] = 1,
        2 => f[..6].fill(255),
        3 => f.truncate(r.next(40) as usize),
        4 => {
            let at = r.next(f.len() as u64) as usize;
            f[at] ^= 1 << r.next(8);
        }
        5 => f.extend([0; 7]),
        _ => {}
    }
    f
}

fn write_pcap(path: &Path, frames: &[Vec<u8>]) {
    let mut bytes =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
    for f in frames {
        let len = (f.len() as u32).to_le_bytes();
        bytes.extend([[1, 0, 0, 0], [0, 0, 0, 0], len, len].concat());
        bytes.extend(f);
    }
    std::fs::write(path, bytes).unwrap();
}

fn read_pcap(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        frames.push(record.data.to_vec());
    }
    frames.sort();
    frames
}

/// Everything there is to see of a run: frames out of each interface, and every counter of the chain's elements.
fn run(plan: Plan, dir: &Path) -> (Vec<Vec<Vec<u8>>>, BTreeMap<String, String>) {
    let names: Vec<String> = plan.elements.iter().map(|e| e.name.clone()).collect();
    let options = Options { simulated_ns: Some(1_000_000_000_000), seed: Some(1), ..Options::default() };
    let router = Router::start(library(), plan, options).unwrap_or_else(|e| panic!("{e}"));
    for (n, host) in (0..2).flat_map(|n| (2..10).map(move |h| (n, h))) {
        let entry = format!("10.{n}.0.{host} 2:0:0:0:{n}:{host}");
        router.write(&format!("arpq{n}"), "insert", &entry).unwrap();
    }
    router.resume();
    assert_eq!(router.wait(Some(Duration::from_secs(120))), Some(Event::StopRequested { worker: 0 }));
    let mut seen = BTreeMap::new();
    for name in names.iter().filter(|n| !n.ends_with("@fused")) {
        for handler in ["drop_reasons", "count", "drops"] {
            if let Ok(value) = router.read(name, handler, "") {
                seen.insert(format!("{name}.{handler}"), value);
            }
        }
    }
    router.close().expect("the worker has ended, and written its files");
    ((0..2).map(|n| read_pcap(&dir.join(format!("out{n}.pcap")))).collect(), seen)
}

#[test]
fn fused_and_plain_routers_give_the_same_frames_counters_and_drops() {
    let dir = std::env::temp_dir().join(format!("causeway-fused-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut random = Random(1);
    for n in 0..2 {
        let frames: Vec<_> = (0..FRAMES).map(|_| frame(n, &mut random)).collect();
        write_pcap(&dir.join(format!("in{n}.pcap")), &frames);
    }
    let plain = plan(&router(&dir));
    let fused = optimise(&plain);
    assert_eq!(fused.plan.elements.len(), plain.elements.len() + 2, "{}", fused.explanation);
    let (plain_frames, plain_seen) = run(plain, &dir);
    let (fused_frames, fused_seen) = run(fused.plan, &dir);
    std::fs::remove_dir_all(&dir).unwrap();
    for n in 0..2 {
        assert!(
            plain_frames[n].len() > FRAMES / 10,
            "the corpus reaches interface {n}: {}",
            plain_frames[n].len()
        );
        assert!(plain_frames[n] == fused_frames[n], "the frames out of interface {n} differ");
    }
    assert_eq!(plain_seen, fused_seen);
}

#[test]
fn chains_are_fused_over_every_table_of_a_lookup_by_destination_alone() {
    let interface = |n: u8| Interface {
        address: [10, n, 0, 1].into(),
        prefix_len: 16,
        mac: format!("2:0:0:0:{n}:1"),
        input: "Idle".to_owned(),
        output: "Unqueue -> Discard".to_owned(),
    };
    let found = |table: &str| {
        let plain = plan(&configuration(&[interface(0), interface(1)], table, &[]));
        Router::check(&library(), &optimise(&plain).plan, &Options::default()).unwrap()
    };
    // The routes of LinuxIPLookup are the kernel's.
    let lookup = |name: &&str| name.ends_with("IPLookup") && *name != "LinuxIPLookup";
    for table in library().iter().map(|spec| spec.name).filter(lookup) {
        let by_more = ["CachedIPLookup", "PolicyIPLookup"].contains(&table);
        // What leaves where it came in is copied, for a redirect.
        let fused = [0, 1].map(|n| {
            let port = n + 1;
            format!(
                "c{n}@fused: ordinary packets go past c{n}\nc{n}@fused: leaves output {port} of rt: cp{n} and on"
            )
        });
        assert_eq!(found(table), if by_more { &[][..] } else { &fused }, "{table}");
    }
}
