//! Traces that are read, and files that are none.

use super::*;
use causeway_engine::harness::{Harness, Output, Ports};
use causeway_netio::pcap::{Format, Writer};
use std::fs::File;
use std::path::PathBuf;

/// A capture file that is removed in the end. Packets are one second apart; the first was cut short.
struct Trace(PathBuf);

impl Trace {
    fn new(test: &str, packets: &[&[u8]]) -> Trace {
        Trace::of(test, encap::ETHER, packets)
    }

    fn of(test: &str, linktype: u32, packets: &[&[u8]]) -> Trace {
        let name = format!("causeway-from-dump-{test}-{}.pcap", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut writer = Writer::new(File::create(&path).unwrap(), Format::Pcap, linktype, 2_000).unwrap();
        for (i, packet) in packets.iter().enumerate() {
            let wire_len = packet.len() as u32 + if i == 0 { 100 } else { 0 };
            writer.write((1_000 + i as u64) * 1_000_000_000 + 7, wire_len, packet).unwrap();
        }
        Trace(path)
    }

    fn config(&self, keywords: &str) -> String {
        format!("{}{keywords}", self.0.display())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn run(config: &str) -> (Vec<Vec<u8>>, Harness) {
    let mut h = Harness::new(&SPEC, config, 0, 1).unwrap();
    while h.run_task().is_some() {}
    (h.take(0).iter().map(|p| p.data().to_vec()).collect(), h)
}

const IP: &[u8] = b"\x45\0\0\x16\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02ab";

#[test]
fn packets_come_as_they_were_captured() {
    let trace = Trace::new("all", &[b"a", b"bc", b""]);
    let mut h = Harness::new(&SPEC, &trace.config(", STOP true, BURST 5"), 0, 1).unwrap();
    assert_eq!((h.run_task(), h.stopped()), (Some(Run::Sleep), true));
    let out = h.take(0);
    assert_eq!(out.iter().map(|p| p.data()).collect::<Vec<_>>(), [&b"a"[..], b"bc", b""]);
    assert_eq!((out[0].timestamp_ns(), out[0].wire_len()), (1_000_000_000_007, 101));
    assert_eq!((out[0].anno_u32(28), out[1].anno_u32(28)), (100, 0));
    assert_eq!((h.read("count").unwrap(), h.read("encap").unwrap()), ("3".into(), "ETHER".into()));
    assert_eq!((h.read("active").unwrap(), h.read("filesize").unwrap()), ("false".into(), "75".into()));
}

#[test]
fn reading_goes_on_where_it_is_told_to() {
    let trace = Trace::new("seek", &[b"a", b"bc", b"d"]);
    let mut h = Harness::new(&SPEC, &trace.config(", FILEPOS 41"), 0, 1).unwrap();
    let run = |h: &mut Harness| -> Vec<u8> {
        while h.run_task().is_some() {}
        h.take(0).iter().flat_map(|p| p.data().to_vec()).collect()
    };
    assert_eq!(run(&mut h), b"bcd");
    assert_eq!((h.read("filepos").unwrap(), h.read("packet_filepos").unwrap()), ("76".into(), "76".into()));
    assert_eq!(h.read("active").unwrap(), "true");
    h.write("filepos", "24").unwrap();
    assert_eq!(run(&mut h), b"abcd");
    assert!(h.write("filepos", "nowhere").is_err());
}

#[test]
fn the_part_that_is_read_can_be_made_longer() {
    let trace = Trace::new("longer", &[b"0", b"1", b"2", b"3", b"4"]);
    let mut h = Harness::new(&SPEC, &trace.config(", END_AFTER 2"), 0, 1).unwrap();
    let run = |h: &mut Harness| -> Vec<u8> {
        while h.run_task().is_some() {}
        h.take(0).iter().map(|p| p.data()[0]).collect()
    };
    assert_eq!((run(&mut h), h.read("active").unwrap()), (b"01".to_vec(), "false".into()));
    h.write("extend_interval", "2").unwrap();
    // The packet at which it ended is behind.
    assert_eq!(run(&mut h), b"3");
}

#[test]
fn parts_are_chosen_by_time() {
    let trace = Trace::new("parts", &[b"0", b"1", b"2", b"3", b"4"]);
    for (keywords, part) in [
        (", START 1002", "234"),
        (", START_AFTER 1, INTERVAL 2s", "12"),
        (", END 1001", "0"),
        (", END_AFTER 3", "012"),
        (", SAMPLE 0", ""),
    ] {
        assert_eq!(run(&trace.config(keywords)).0.concat(), part.as_bytes(), "{keywords}");
    }
    let errors = Harness::new(&SPEC, &trace.config(", START 1, START_AFTER 2"), 0, 1).err().unwrap();
    assert_eq!(errors, ["START and START_AFTER are mutually exclusive"]);
}

#[test]
fn timing_is_kept() {
    let trace = Trace::new("timing", &[b"0", b"1", b"2"]);
    let mut h = Harness::new(&SPEC, &trace.config(", TIMING true"), 0, 1).unwrap();
    let mut came = |ns| {
        h.advance(ns);
        while h.run_task().is_some() {}
        (h.take(0).len(), h.held())
    };
    assert_eq!(came(0), (1, 1));
    assert_eq!(came(999_000_000), (0, 1));
    assert_eq!(came(2_000_000), (1, 1));
    assert_eq!(came(1_000_000_000), (1, 0));
}

#[test]
fn force_ip_sorts_and_marks() {
    let trace = Trace::of("ip", 101, &[IP, b"no ip", IP]);
    let mut h = Harness::new(&SPEC, &trace.config(", FORCE_IP true"), 0, 2).unwrap();
    while h.run_task().is_some() {}
    let out = h.take(0);
    assert_eq!((out.len(), h.take(1)[0].data()), (2, &b"no ip"[..]));
    assert_eq!((out[0].network_offset(), out[1].transport_header()), (Some(0), Some(&b"ab"[..])));
    assert_eq!((out[0].dst_ip(), out[0].mac_header().is_some()), ([10, 0, 0, 2], true));
    let (out, h) = run(&trace.config(", FORCE_IP true"));
    assert_eq!((out.len(), h.drops()), (2, vec![("not-ip", 1)]));
    let (out, h) = run(&trace.config(""));
    assert_eq!((out.len(), h.drops()), (2, vec![("not-ip", 1)]), "nothing but IP is behind no link layer");
    let other = Trace::of("x25", 4_711, &[b"x"]);
    let error = Harness::new(&SPEC, &other.config(", FORCE_IP true"), 0, 1).err().unwrap().concat();
    assert!(error.ends_with("unknown linktype 4711; can't force IP packets"), "{error}");
}

#[test]
fn headers_are_marked_where_that_is_asked_for() {
    let frame = [&b"\0\0\0\0\0\0\0\0\0\0\0\0\x08\0"[..], IP].concat();
    let trace = Trace::new("frame", &[&frame]);
    let offsets = |keywords: &str| {
        let mut h = Harness::new(&SPEC, &trace.config(keywords), 0, 1).unwrap();
        while h.run_task().is_some() {}
        let out = h.take(0);
        (out[0].mac_header().is_some(), out[0].network_offset())
    };
    assert_eq!((offsets(""), offsets(", FORCE_IP true")), ((true, None), (true, Some(14))));
}

#[test]
fn the_end_can_move_itself() {
    let trace = Trace::new("moves", &[b"0", b"1", b"2", b"3", b"4"]);
    let (out, _) = run(&trace.config(", END_AFTER 1, END_CALL element.extend_interval 2"));
    assert_eq!(out.concat(), b"01234");
}

#[test]
fn gives_what_is_pulled() {
    let trace = Trace::new("pull", &[b"0", b"1", b"2"]);
    let ports = Ports { pulled_inputs: vec![], outputs: vec![Output::Pulled] };
    let mut h = Harness::with_ports(&SPEC, &trace.config(", STOP true"), &ports).unwrap();
    assert_eq!((h.pull(0, 2).len(), h.stopped()), (2, false));
    assert_eq!((h.pull(0, 2).len(), h.stopped(), h.pull(0, 2).len()), (1, true, 0));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let error = |config: &str| Harness::new(&SPEC, config, 0, 1).err().unwrap().concat();
    assert!(error("/no/such/file.pcap").starts_with("/no/such/file.pcap: No such file"));
    assert!(
        error("\"/no/such: it is empty\"").starts_with("/no/such: it is empty: No such file"),
        "by its name"
    );
    let trace = Trace::new("bad", &[]);
    for (bytes, why) in [
        (&b"not a capture file"[..], "not a tcpdump file (bad magic number)"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "not a tcpdump file (too short)"),
        (b"", "empty file"),
    ] {
        std::fs::write(&trace.0, bytes).unwrap();
        assert_eq!(error(&trace.config("")), why);
    }
}
