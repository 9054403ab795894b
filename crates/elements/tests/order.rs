//! The order of packets between workers.

use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::{Duration, Instant};

const PACKETS: usize = 3_000;

#[test]
fn what_several_edges_bring_to_an_input_of_another_worker_stays_in_order() {
    let file = std::env::temp_dir().join(format!("causeway-order-{}", std::process::id()));
    // Packets come one by one, as those of a batch go by one edge and then by the other. By the lowest bit of the identification, which UDPIPEncap counts on, packets take one edge or the other.
    let text = format!(
        "InfiniteSource(LIMIT {PACKETS}, BURST 1, STOP false) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53)
         -> c :: Classifier(5/00%01, -);
         c[0] -> n :: Null -> d :: ToDump({}, ENCAP IP); c[1] -> n;
         StaticThreadSched(n 1, d 1);",
        file.display()
    );
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let options = Options { workers: 2, ..Options::default() };
    let router = Router::start(library, plan, options).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    let start = Instant::now();
    while router.read("d", "count", "").unwrap() != PACKETS.to_string() {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", router.read("d", "count", "").unwrap());
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(router);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    // A header of 24 bytes, and 16 in front of each packet.
    let (mut at, mut ids) = (24, Vec::new());
    while let Some(record) = bytes.get(at..at + 16 + 6) {
        ids.push(u16::from_be_bytes([record[20], record[21]]));
        at += 16 + u32::from_ne_bytes([record[8], record[9], record[10], record[11]]) as usize;
    }
    assert_eq!(ids.len(), PACKETS);
    assert!(ids.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{ids:?}");
}
