//! Elements: any configuration is taken or refused, and any packets and handler calls after that do no harm.
//!
//! An input is the number of a class, its configuration up to a zero, and then packets, each behind its length.
#![no_main]

use causeway_engine::Spec;
use causeway_engine::harness::Harness;
use causeway_packet::Packet;
use std::sync::LazyLock;

/// Subjects that touch neither files nor devices nor the terminal.
const SUBJECTS: &[&str] = &[
    "annotations",
    "basic",
    "classify",
    "ethernet",
    "icmp",
    "ip",
    "ip6",
    "iproute",
    "queues",
    "switching",
    "udp",
];

static CLASSES: LazyLock<Vec<&'static Spec>> = LazyLock::new(|| {
    let library = causeway_elements::library();
    let mut classes: Vec<_> = library.iter().filter(|spec| SUBJECTS.contains(&spec.category)).collect();
    classes.sort_by_key(|spec| spec.name);
    classes
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&number, data)) = data.split_first() else { return };
    let spec = CLASSES[usize::from(number) % CLASSES.len()];
    let mut parts = data.splitn(2, |&byte| byte == 0);
    let config = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let Ok(mut element) = Harness::new(spec, &config, 1, 2) else { return };
    let mut rest = parts.next().unwrap_or_default();
    while let Some((&len, after)) = rest.split_first() {
        let (frame, after) = after.split_at(usize::from(len).min(after.len()));
        rest = after;
        let Some(packet) = Packet::from_bytes(frame) else { break };
        element.push(0, packet);
        element.run_task();
        drop((element.take(0), element.take(1)));
    }
    element.advance(2_000_000_000);
    for handler in spec.handlers {
        let _ = element.read_with(handler.name, &config);
    }
});
