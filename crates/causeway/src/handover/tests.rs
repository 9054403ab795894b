//! Messages between the ends.

use super::message::{Line, Missing};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

fn lines() -> (Line, Line) {
    let (a, b) = UnixStream::pair().unwrap();
    (Line::new(a).unwrap(), Line::new(b).unwrap())
}

#[test]
fn messages_come_with_their_descriptors() {
    let (a, mut b) = lines();
    let path = std::env::temp_dir().join(format!("causeway-line-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    let long = "x".repeat(10_000);
    a.send(&json!({ "one": long }), &[file.as_fd(); 66]).unwrap();
    a.send(&json!({ "two": "\n" }), &[]).unwrap();
    let (one, descriptors) = b.receive(PATIENCE).unwrap();
    assert_eq!((one["one"].as_str(), descriptors.len()), (Some(&long[..]), 66));
    File::from(descriptors.into_iter().last().unwrap()).write_all(b"seen").unwrap();
    let mut seen = String::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "seen");
    let (two, descriptors) = b.receive(PATIENCE).unwrap();
    assert!(two["two"] == "\n" && descriptors.is_empty());
    assert!(matches!(b.receive(Duration::from_millis(5)), Err(Missing::Silent(_))));
    // What came in time counts, whenever it is looked at.
    a.send(&json!({ "taken": {} }), &[]).unwrap();
    assert!(b.receive(Duration::ZERO).is_ok());
    drop(a);
    assert!(matches!(b.receive(PATIENCE), Err(Missing::Closed)));
    assert!(b.send(&json!({}), &[]).is_err());
}

#[test]
fn what_is_no_message_is_no_panic() {
    for bad in [&b"\n"[..], b"{\n", b"\xff\n", &[b'x'; 1 << 17]] {
        let (a, b) = UnixStream::pair().unwrap();
        let bytes = bad.to_vec();
        let sender = std::thread::spawn(move || drop((&a).write_all(&bytes)));
        assert!(matches!(Line::new(b).unwrap().receive(PATIENCE), Err(Missing::Strange)), "{bad:?}");
        sender.join().unwrap();
    }
}
