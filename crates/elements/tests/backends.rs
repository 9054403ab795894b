//! Ports of a kind that this project does not know: a backend is registered and a graph names it.

use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use causeway_netio::opener::{Opener, Request, register};
use causeway_netio::{Port, Result, memory};
use causeway_packet::{Batch, Packet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The other ends of the ports that were opened.
static WIRES: Mutex<Vec<(String, Port)>> = Mutex::new(Vec::new());

/// Ports whose wires end in the test.
struct Wired;

impl Opener for Wired {
    fn names(&self) -> &'static [&'static str] {
        &["wired", "tester"]
    }

    fn needs(&self) -> &'static str {
        "a test"
    }

    fn open(&self, request: &Request<'_>) -> Result<Port> {
        let (mine, other) = memory::pair(request.name, 64);
        WIRES.lock().unwrap().push((request.name.to_owned(), other));
        Ok(mine)
    }
}

fn wire(name: &str) -> Port {
    let mut wires = WIRES.lock().unwrap();
    let at = wires.iter().position(|(n, _)| n == name).expect("it was opened");
    wires.swap_remove(at).1
}

fn plan(text: &str) -> Plan {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())))
}

fn packets(numbers: impl Iterator<Item = u8>) -> Batch {
    let mut batch = Batch::new();
    batch.extend(numbers.filter_map(|n| Packet::from_bytes(&[n; 60])));
    batch
}

#[test]
fn a_graph_forwards_between_ports_of_a_backend_that_was_registered() {
    register(Wired).expect("the name is free");
    let text = "in :: FromDevice(left, METHOD WIRED) -> Queue -> out :: ToDevice(right, METHOD tester);";
    let router = Router::start(causeway_elements::library(), plan(text), Options::default());
    let router = router.unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    let (mut left, mut right) = (wire("left"), wire("right"));
    let (mut sent, mut got) = (packets(0..50), Batch::new());
    assert_eq!(left.queues[0].tx.transmit(&mut sent), 50);
    let start = Instant::now();
    while got.len() < 50 {
        assert!(start.elapsed() < Duration::from_secs(20), "{} came", got.len());
        right.queues[0].rx.receive(&mut got, 50);
    }
    assert!(got.iter().zip(0..).all(|(packet, n)| packet.data() == [n; 60]));
    assert_eq!(router.read("in", "count", "").as_deref(), Ok("50"));
    assert_eq!(router.read("out", "counters", "").as_deref(), Ok("tx_packets 50\ntx_ring_full 0\n"));
}
