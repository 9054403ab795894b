//! Round trips, other people's byte orders, and any bytes.

use super::*;
use proptest::prelude::*;

type Owned = (u64, u32, Vec<u8>);

fn read_all(bytes: &[u8]) -> Result<Vec<Owned>> {
    let mut reader = Reader::new(bytes)?;
    let mut out = Vec::new();
    while let Some(r) = reader.next_record()? {
        assert_eq!(r.linktype, LINKTYPE_ETHERNET);
        out.push((r.timestamp_ns, r.wire_len, r.data.to_vec()));
    }
    Ok(out)
}

fn write_all(format: Format, records: &[Owned]) -> Vec<u8> {
    let mut writer =
        Writer::new(Vec::new(), format, LINKTYPE_ETHERNET, super::write::SNAP_LEN).expect("memory");
    for (timestamp_ns, wire_len, data) in records {
        writer.write(*timestamp_ns, *wire_len, data).expect("memory");
    }
    writer.into_inner()
}

/// The words of a little-endian file as big-endian, except for `bytes` at the given places.
fn swapped(words: &[u32], halves_at: &[usize], data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, &w) in words.iter().enumerate() {
        match halves_at.contains(&i) {
            true => out.extend([(w as u16).to_be_bytes(), ((w >> 16) as u16).to_be_bytes()].concat()),
            false => out.extend(w.to_be_bytes()),
        }
    }
    out.extend(data);
    out
}

#[test]
fn big_endian_pcap_with_microseconds() {
    let head = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65535, 1, 7, 5, 4, 60];
    let bytes = swapped(&head, &[1], &[1, 2, 3, 4]);
    assert_eq!(read_all(&bytes).expect("read"), vec![(7_000_005_000, 60, vec![1, 2, 3, 4])]);
}

#[test]
fn big_endian_pcapng_with_binary_resolution_and_unknown_blocks() {
    let section = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
    let mut bytes = swapped(&section, &[3], &[]);
    // Interface with 2^-10 s units and no end-of-options mark.
    bytes.extend(swapped(&[1, 28, 1, 0, 1 << 16 | 9], &[2, 4], &[0x8a, 0, 0, 0]));
    bytes.extend(swapped(&[28], &[], &[]));
    bytes.extend(swapped(&[0x0bad, 16, 0, 16], &[], &[]));
    bytes.extend(swapped(&[6, 36, 0, 0, 1536, 2, 2], &[], &[9, 8, 0, 0]));
    bytes.extend(swapped(&[36], &[], &[]));
    // A simple packet has no timestamp.
    bytes.extend(swapped(&[3, 20, 3], &[], &[1, 2, 3, 0]));
    bytes.extend(swapped(&[20], &[], &[]));
    let want = vec![(1_500_000_000, 2, vec![9, 8]), (0, 3, vec![1, 2, 3])];
    assert_eq!(read_all(&bytes).expect("read"), want);
}

#[test]
fn what_is_no_capture_is_refused() {
    for bytes in [&b""[..], b"abc", b"#!/bin/sh\necho no\n"] {
        assert_eq!(Reader::new(bytes).expect_err("refused").kind(), crate::ErrorKind::Format);
    }
}

#[test]
fn files_are_ports() {
    let _pool = crate::testnet::pool_lock();
    let path = std::env::temp_dir().join(format!("causeway-pcap-test-{}", std::process::id()));
    for format in [Format::Pcap, Format::PcapNg] {
        let mut tx = create(&path, format, LINKTYPE_ETHERNET).expect("created");
        let mut batch = Batch::new();
        for i in 0..100u8 {
            let mut packet = Packet::from_bytes(&vec![i; 14 + i as usize]).expect("a frame");
            packet.set_timestamp_ns(1_700_000_000_000_000_001 + u64::from(i));
            batch.push(packet).expect("room");
        }
        assert_eq!(tx.offer(&mut batch), 100);
        tx.flush();
        let mut rx = open(&path).expect("opened");
        let mut got = Batch::new();
        while !rx.is_finished() {
            rx.poll(&mut got, 7);
        }
        assert_eq!(got.len(), 100);
        for (i, p) in got.iter().enumerate() {
            assert_eq!(p.data(), &vec![i as u8; 14 + i]);
            assert_eq!(p.timestamp_ns(), 1_700_000_000_000_000_001 + i as u64);
        }
    }
    std::fs::remove_file(&path).expect("removed");
}

fn records() -> impl Strategy<Value = Vec<Owned>> {
    let record = (0u64..4_000_000_000_000_000_000, proptest::collection::vec(any::<u8>(), 0..80), 0u32..100)
        .prop_map(|(t, data, more)| (t, data.len() as u32 + more, data));
    proptest::collection::vec(record, 0..8)
}

proptest! {
    #[test]
    fn what_is_written_is_read(records in records(), ng: bool) {
        let format = if ng { Format::PcapNg } else { Format::Pcap };
        prop_assert_eq!(read_all(&write_all(format, &records)).expect("read"), records);
    }

    /// A damaged file gives an error or other records, never a panic or an endless loop.
    #[test]
    fn damage_is_survived(records in records(), ng: bool, at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        let format = if ng { Format::PcapNg } else { Format::Pcap };
        let mut bytes = write_all(format, &records);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(mut reader) = Reader::new(&bytes[..]) {
            let mut read = 0;
            while let Ok(Some(r)) = reader.next_record() {
                read += r.data.len() + 12;
            }
            prop_assert!(read <= bytes.len());
        }
    }
}
