use super::*;
use causeway_engine::harness::Harness;
use std::path::PathBuf;

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("causeway-flow-dumps-{test}-{}", std::process::id())))
    }

    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.0.join(name)).unwrap();
        bytes.iter().map(|b| char::from(*b)).collect()
    }

    fn names(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return vec![] };
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn config(&self, rest: &str) -> String {
        format!("{}/f%n{rest}", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A packet of flow `aggregate` from 1.0.0.1 port 7 to 1.0.0.2 port 80, or back.
fn packet(aggregate: u32, protocol: u8, back: bool, ms: u64, transport: &[u8]) -> Packet {
    let (mut ends, mut ports) = ([[1, 0, 0, 1], [1, 0, 0, 2]], [[0, 7], [0, 80]]);
    if back {
        ends.reverse();
        ports.reverse();
    }
    let len = (24 + transport.len()) as u8;
    let head = [0x45, 0, 0, len, 0, 5, 0, 0, 64, protocol, 0, 0];
    let bytes = [&head[..], &ends.concat(), &ports.concat(), transport].concat();
    let mut packet = Packet::from_bytes(&bytes).unwrap();
    packet.set_network_headers(0, 20);
    packet.set_timestamp_ns(5_000_000_000 + ms * 1_000_000);
    packet.set_paint(back.into());
    packet.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
    packet
}

/// Sequence and acknowledgement number, flags and options behind the ports.
fn tcp(sequence: u32, acknowledgement: u32, flags: u8, options: &[u8]) -> Vec<u8> {
    let numbers = [sequence.to_be_bytes(), acknowledgement.to_be_bytes()].concat();
    let offset = (5 + options.len() / 4) as u8;
    [&numbers[..], &[offset << 4, flags, 0, 99, 0, 0, 0, 0], options].concat()
}

const SACK: [u8; 12] = [1, 1, 5, 10, 0, 0, 3, 242, 0, 0, 4, 1];

fn exchange(h: &mut Harness) {
    h.push(0, packet(3, 6, false, 0, &tcp(1_000, 0, 2, &[2, 4, 5, 180])));
    h.push(0, packet(3, 6, true, 1, &tcp(2_000, 1_001, 0x12, &[])));
    h.push(0, packet(3, 6, true, 2, &[&tcp(2_001, 1_001, 0x18, &SACK)[..], b"abc"].concat()));
    h.push(0, packet(4, 17, false, 3, &[0, 12, 0, 0, 1, 2, 3, 4]));
    h.push(0, packet(0, 17, false, 3, &[0, 12, 0, 0, 1, 2, 3, 4]));
}

#[test]
fn each_flow_has_its_file() {
    let folder = Folder::new("each");
    let mut h =
        Harness::new(&SPEC, &folder.config(", TCP_OPT true, IP_ID true, TCP_WINDOW true"), 1, 0).unwrap();
    exchange(&mut h);
    assert_eq!((h.drops(), folder.names().len()), (vec![("not-written", 1)], 0));
    drop(h);
    assert_eq!(
        folder.read("f3"),
        "!IPSummaryDump 1.3\n!flowid 1.0.0.1 7 1.0.0.2 80 T\n!aggregate 3\n\
         !data ntimestamp direction ip_id tcp_flags tcp_seq payload_len tcp_ack tcp_window tcp_ntopt\n\
         !firstseq > 1000\n!firstseq < 2000\n!firsttime 4.999999999\n\
         0.000000001 > 5 S 0 0 0 99 mss1460\n0.001000001 < 5 SA 0 0 1 99\n0.002000001 < 5 PA 1 3 1 99 sack10-25\n"
    );
    assert_eq!(
        folder.read("f4"),
        "!IPSummaryDump 1.3\n!flowid 1.0.0.1 7 1.0.0.2 80 U\n!aggregate 4\n!data ntimestamp direction ip_id payload_len\n\
         !firsttime 5.002999999\n0.000000001 > 5 4\n"
    );
}

#[test]
fn numbers_may_be_absolute_and_records_binary() {
    let folder = Folder::new("binary");
    let config = folder.config(", BINARY true, ABSOLUTE_TIME true, ABSOLUTE_SEQ true");
    let mut h = Harness::new(&SPEC, &config, 1, 1).unwrap();
    exchange(&mut h);
    assert_eq!((h.take(0).len(), h.read("unwritten").unwrap()), (5, "1".to_owned()));
    h.write("clear", "").unwrap();
    let text = folder.read("f3");
    let (head, records) = text.split_once("!binary\n").unwrap();
    assert!(
        head.ends_with("!data ntimestamp tcp_seq payload_len tcp_ack tcp_flags direction tcp_ntopt\n"),
        "{head}"
    );
    let words: Vec<u32> = records.chars().map(|c| c as u32).collect();
    assert_eq!(words[..4], [0, 0, 0, 26]);
    assert_eq!((words.len(), words[24], words[26 + 25]), (78, 2, 1));
    assert_eq!(words[12..16], [0, 0, 3, 232]);
}

#[test]
fn errors_are_notes_and_short_flows_have_no_file() {
    let folder = Folder::new("notes");
    let mut h = Harness::new(&SPEC, &folder.config(", MINCOUNT 3, GZIP true"), 1, 0).unwrap();
    exchange(&mut h);
    let quoted = packet(3, 6, false, 0, &tcp(1_000, 0, 2, &[]));
    let bytes = [
        &[0x45, 0, 0, 72, 0, 0, 0, 0, 64, 1, 0, 0, 9, 9, 9, 9, 1, 0, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0][..],
        quoted.data(),
    ]
    .concat();
    let mut error = Packet::from_bytes(&bytes).unwrap();
    error.copy_annos(&quoted);
    error.set_network_headers(0, 20);
    error.set_timestamp_ns(6_000_000_000);
    error.set_paint(3);
    h.push(0, error);
    h.write("clear", "").unwrap();
    assert_eq!(folder.names(), ["f3.gz"]);
    let again = format!("{}/f3.gz", folder.0.display());
    let mut h = Harness::new(&crate::traces::from_ip_summary_dump::SPEC, &again, 0, 1).unwrap();
    while h.run_task().is_some() {}
    let out = h.take(0);
    assert_eq!((out.len(), out[2].anno_u32(Anno::AGGREGATE.offset), out[2].paint()), (3, 3, 1));
}

#[test]
fn no_more_flows_than_there_is_room_for() {
    let folder = Folder::new("room");
    let mut h = Harness::new(&SPEC, &folder.config(", CAPACITY 1"), 1, 0).unwrap();
    exchange(&mut h);
    for n in 0..300 {
        h.push(0, packet(3, 6, false, n, &tcp(1_000, 0, 0x10, &[])));
    }
    // What is written before the end is written in parts.
    assert_eq!((folder.names(), h.read("unwritten").unwrap()), (vec!["f3".to_owned()], "2".to_owned()));
    drop(h);
    assert_eq!(folder.read("f3").lines().filter(|l| !l.starts_with('!')).count(), 303);
}

#[test]
fn bad_patterns_are_named() {
    let error = |config: &str| Harness::new(&SPEC, config, 1, 0).err().unwrap().concat();
    assert_eq!(error("f%y"), "bad filename pattern '%y'");
}
