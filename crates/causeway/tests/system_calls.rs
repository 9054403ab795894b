//! What a worker asks of the kernel does not grow with the packets that it forwards: their locks, waits and looks at the
//! clock would be seen here.

use std::path::Path;
use std::process::Command;

/// What forwards LIMIT packets from a source to a sink and stops then, with queues, tables, classifiers and errors.
const GRAPH: &str = r"
    source :: InfiniteSource(DATA \<4500 001c 0000 0000 4011 65cf 0a00 0001 0a00 0102 0009 0035 0008 0000>,
        LIMIT $limit, BURST 32, STOP true);
    late :: InfiniteSource(DATA \<4500 001c 0000 0000 0111 a4cf 0a00 0001 0a00 0102 0009 0035 0008 0000>, LIMIT 1000);
    source -> EtherEncap(0x0800, 2:0:0:0:0:2, 2:0:0:0:0:1) -> in :: Classifier(12/0806, 12/0800, -);
    in[0] -> Discard; in[2] -> Discard;
    in[1] -> Paint(1) -> Strip(14) -> check :: CheckIPHeader;
    late -> check;
    check -> IPFilter(deny tcp dst port 23, allow all) -> GetIPAddress(16) -> rt :: IPLookup(10.0.1.0/24 0, 0/0 1);
    rt[1] -> Discard;
    rt[0] -> DropBroadcasts -> ttl :: DecIPTTL -> IPFragmenter(1500) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:3)
        -> Queue(500) -> Counter -> Unqueue(BURST 32) -> Discard;
    ttl[1] -> ICMPError(10.0.0.9, timeexceeded, transit) -> Discard;";

/// System calls of all threads from start to end, when so many packets are forwarded.
fn calls(packets: u32, folder: &Path) -> u64 {
    let (file, summary) = (folder.join("graph.click"), folder.join(format!("calls-{packets}")));
    std::fs::write(&file, GRAPH).expect("a configuration");
    let run = Command::new("strace")
        .args(["-f", "-c", "-o"])
        .arg(&summary)
        .arg(env!("CARGO_BIN_EXE_causeway"))
        .arg("run")
        .arg(&file)
        .args(["-D", &format!("limit={packets}")])
        .output()
        .expect("strace runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = std::fs::read_to_string(&summary).expect("a summary");
    // % time, seconds, usecs/call, calls, errors if any, and the name.
    let total =
        text.lines().find(|line| line.ends_with(" total")).unwrap_or_else(|| panic!("no total:\n{text}"));
    total.split_whitespace().nth(3).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{total}"))
}

#[test]
fn packets_cost_no_system_calls() {
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: needs strace, which counts the calls");
        return;
    }
    let folder = std::env::temp_dir().join(format!("causeway-calls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    // The fewest of three, because how often whoever waits for the end looks depends on time.
    let fewest = |packets| (0..3).map(|_| calls(packets, &folder)).min().unwrap_or(0);
    let (few, many) = (fewest(10_000), fewest(1_000_000));
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    assert!(many < few + 1_000, "{few} calls for 10 000 packets, {many} for 1 000 000");
}
