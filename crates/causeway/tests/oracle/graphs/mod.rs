//! A graph does the same with a part of it in the driver (`causeway run --driver`) as above: random graphs, each run twice side by
//! side, get the same random frames, and the same is written to their handlers. What leaves them, counters, edges and drop
//! reasons are compared. Where `ORACLE_CLICK` names Kohler's `click`, what leaves is compared with that as well.
//!
//! `ORACLE_SEED`, `ORACLE_FIRST` and `ORACLE_STATES` say which graphs, `ORACLE_THREADS` on how many workers.

mod made;
mod pcap;

use crate::cable::Cable;
use crate::judge::hex;
use crate::packets::{Packets, Sent};
use crate::plan;
use crate::setting;
use crate::space::Space;
use crate::state::Facts;
use crate::twin::Router;
use fastrand::Rng;
use made::{Maker, Order};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Ports: two that frames are sent to, two that they leave by.
const PORTS: usize = 4;
/// Frames between two changes.
const FRAMES: usize = 160;
/// Frames that are sent before all are waited for: the ring of a veth holds 256.
const CHUNK: usize = 32;
/// How long nothing must have happened for all to be over, and how long that is waited for.
const CALM: Duration = Duration::from_millis(60);
const PATIENCE: Duration = Duration::from_secs(4);
/// Octets of an Ethernet header.
const ETHERNET: usize = 14;
/// Seconds that Click gets.
const CLICK: &str = "0.4";
/// How long programs may take to be there.
const ATTACH: Duration = Duration::from_millis(300);

/// Workers, and queues of the ports.
fn threads() -> u64 {
    setting("ORACLE_THREADS", 1)
}

/// A router and what is around it.
struct Bed {
    router: Space,
    /// The other ends of its ports.
    hosts: Space,
    cables: Vec<Cable>,
}

/// What came of the frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// By port, in the order of their bytes.
    frames: Vec<(usize, Vec<u8>)>,
    counters: BTreeMap<(String, String), u64>,
    edges: Vec<String>,
}

impl Bed {
    fn new(name: &str) -> Option<Bed> {
        let (router, hosts) = (Space::new(format!("{name}r"))?, Space::new(format!("{name}h"))?);
        for space in [&router, &hosts] {
            space.set(&[("ipv6/conf/all/disable_ipv6", "1"), ("ipv6/conf/default/disable_ipv6", "1")]);
        }
        let mut bed = Bed { router, hosts, cables: Vec::new() };
        for i in 0..PORTS {
            let (mac, router, hosts) = (plan::mac_text(plan::mac(i)), &bed.router.name, &bed.hosts.name);
            let queues = format!("numtxqueues {0} numrxqueues {0}", threads());
            let link = format!(
                "link add p{i} address {mac} {queues} netns {router} type veth peer name h{i} {queues} netns {hosts}"
            );
            let made = Command::new("ip").args(link.split(' ')).status();
            assert!(made.is_ok_and(|status| status.success()), "a cable");
            bed.hosts.ip(&[], &[&format!("link set h{i} mtu 1850 up")]);
            bed.router.ip(&[], &[&format!("link set p{i} up")]);
            bed.cables.push(Cable::open(&bed.hosts, i));
        }
        Some(bed)
    }

    fn collect(&mut self, frames: &mut Vec<(usize, Vec<u8>)>) {
        for (port, cable) in self.cables.iter_mut().enumerate() {
            frames.extend(cable.take().into_iter().map(|frame| (port, frame)));
        }
    }
}

/// A graph that runs.
struct Run<'a> {
    bed: &'a mut Bed,
    router: Router,
    frames: Vec<(usize, Vec<u8>)>,
    sent: u64,
}

impl<'a> Run<'a> {
    fn start(bed: &'a mut Bed, file: &Path, options: &[&str]) -> Run<'a> {
        let file = file.display().to_string();
        let threads = threads().to_string();
        let options = [&["--threads", &threads][..], options].concat();
        let router = Router::of(&bed.router, &[&["run", &file][..], &options].concat());
        Run { bed, router, frames: Vec::new(), sent: 0 }
    }

    fn send(&mut self, frames: &[Sent]) {
        self.sent += frames.len() as u64;
        for chunk in frames.chunks(CHUNK) {
            for sent in chunk {
                self.bed.cables[sent.port].send(&sent.frame);
            }
            std::thread::sleep(Duration::from_millis(4));
        }
    }

    /// Waits until all frames went somewhere.
    fn settle(&mut self) {
        let begin = Instant::now();
        let (mut before, mut since) = ((0, BTreeMap::new()), Instant::now());
        while begin.elapsed() < PATIENCE {
            self.bed.collect(&mut self.frames);
            let counters = self.counters();
            let came: u64 = ["in0", "in1"].iter().map(|port| count(&counters, port, "count")).sum();
            let now = (self.frames.len(), counters);
            if now != before {
                (before, since) = (now, Instant::now());
            } else if since.elapsed() > CALM && came >= self.sent {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What elements have counted, but for what depends on the turns of a worker, the ports' own, and edges, which a fused
    /// element counts in its own way: of those there is a handler.
    fn counters(&mut self) -> BTreeMap<(String, String), u64> {
        let mut sums = BTreeMap::new();
        // Asked, the elements count what was handled in the driver by now.
        for handler in ["in0.count", "in1.count"] {
            self.router.control.read(handler);
        }
        for line in self.router.control.read("counters").unwrap_or_default().lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let [_, element, name, value] = words[..] else { continue };
            let steady = !element.is_empty() && !element.contains("@fused") && !name.contains("batch");
            let others = ["port.", "rx.", "out.", "in."];
            if steady && !others.iter().any(|of| name.starts_with(of)) {
                *sums.entry((element.to_owned(), name.to_owned())).or_default() +=
                    value.parse::<u64>().unwrap_or(0);
            }
        }
        sums.retain(|_, n| *n > 0);
        sums
    }

    fn outcome(&mut self) -> Outcome {
        let edges = self.router.control.read("edges").unwrap_or_default();
        let edges = edges.lines().filter(|line| !line.contains("@fused")).map(str::to_owned).collect();
        let mut frames: Vec<_> = self.frames.iter().filter(|(_, frame)| !has_time(frame)).cloned().collect();
        frames.sort();
        Outcome { frames, counters: self.counters(), edges }
    }

    /// Frames that came up to the graph.
    fn above(&mut self) -> u64 {
        let text = self.router.control.read("counters").unwrap_or_default();
        let words = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let taken = words.filter(|words| words.get(2) == Some(&"port.rx_packets"));
        taken.filter_map(|words| words.get(3)?.parse::<u64>().ok()).sum()
    }
}

fn count(counters: &BTreeMap<(String, String), u64>, element: &str, name: &str) -> u64 {
    counters.get(&(element.to_owned(), name.to_owned())).copied().unwrap_or(0)
}

/// Whether Click does with a frame what `causeway elements` says that we do otherwise: it lets IPv6 packets from multicast
/// addresses pass, and cuts IPv4 fragments that end beyond the longest datagram.
fn is_otherwise(frame: &[u8]) -> bool {
    let Some(packet) = frame.get(ETHERNET..).filter(|packet| packet.len() > 8) else { return false };
    match packet[0] >> 4 {
        6 => packet[8] == 0xff,
        _ => u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff == 0x1fff,
    }
}

/// Whether a frame may have got a time, in an option.
fn has_time(frame: &[u8]) -> bool {
    frame
        .windows(4)
        .any(|bytes| bytes == [68, 12, 5, 3] || bytes == [68, 12, 9, 3] || bytes == [68, 12, 13, 3])
}

/// Both ways to run graphs, and what was done so far.
struct Pair {
    above: Bed,
    driver: Bed,
    folder: PathBuf,
    sent: u64,
    in_driver: u64,
}

impl Pair {
    fn new() -> Option<Pair> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root to make network namespaces");
            return None;
        }
        let name = format!("graphs-{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let (above, driver) = (Bed::new(&format!("{name}a"))?, Bed::new(&format!("{name}d"))?);
        Some(Pair { above, driver, folder, sent: 0, in_driver: 0 })
    }

    /// Tries the graph of that number; what is different.
    fn graph(&mut self, seed: u64, number: u64) -> Vec<String> {
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        let click = std::env::var_os("ORACLE_CLICK");
        let graph = Maker::graph(rng.fork(), click.is_some());
        let file = self.folder.join("graph.click");
        std::fs::write(&file, &graph.text).expect("written");
        let mut frames = frames(&mut rng, 3 * FRAMES);
        frames.retain(|sent| click.is_none() || !is_otherwise(&sent.frame));
        let above = Run::start(&mut self.above, &file, &[]);
        let driver = Run::start(&mut self.driver, &file, &["--driver"]);
        std::thread::sleep(ATTACH);
        let mut both = [above, driver];
        let mut found = Vec::new();
        for (round, frames) in frames.chunks(FRAMES).enumerate() {
            let changes = if round == 0 { 0 } else { rng.usize(0..4).min(graph.orders.len()) };
            let orders: Vec<&Order> =
                (0..changes).map(|_| &graph.orders[rng.usize(0..graph.orders.len())]).collect();
            found.extend(obey(&mut both, &orders));
            let outcomes = pass(&mut both, frames);
            found.extend(differ(&outcomes[0], &outcomes[1], frames));
            if let (0, Some(click)) = (round, &click) {
                found.extend(by_click(click.as_ref(), &self.folder, &graph, frames, &outcomes[0]));
            }
            if !found.is_empty() {
                let orders: Vec<String> = orders.iter().map(|order| order.join(" ")).collect();
                found.insert(0, format!("round {round}, after {orders:?}"));
                found.insert(0, format!("graph {number} of seed {seed}:\n{}", graph.text));
                break;
            }
        }
        let [_, driver] = &mut both;
        self.sent += driver.sent;
        self.in_driver += driver.sent.saturating_sub(driver.above());
        found
    }
}

/// Writes to handlers of both; what they do not agree on.
fn obey(both: &mut [Run<'_>; 2], orders: &[&Order]) -> Vec<String> {
    let mut found = Vec::new();
    for [handler, value] in orders {
        let took = both.each_mut().map(|run| run.router.control.write(handler, value));
        if took[0] != took[1] || took[0].is_none() {
            found.push(format!("{handler} {value} written: {took:?}"));
        }
    }
    found
}

/// Sends frames into both; what came of all by now.
fn pass(both: &mut [Run<'_>; 2], frames: &[Sent]) -> [Outcome; 2] {
    both.iter_mut().for_each(|run| run.send(frames));
    both.each_mut().map(|run| {
        run.settle();
        run.outcome()
    })
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Random frames for the first two ports.
fn frames(rng: &mut Rng, n: usize) -> Vec<Sent> {
    let mut facts = Facts::of_first_state();
    facts.down = std::array::from_fn(|port| port >= 2);
    let mut packets = Packets::new(rng.fork(), &facts, 0);
    let mut frames: Vec<Sent> = (0..n).map(|_| packets.next()).collect();
    for sent in &mut frames {
        match rng.u32(0..40) {
            // As short as frames can be, and as long.
            0 => sent.frame.truncate(rng.usize(14..40)),
            1 => sent.frame.resize(rng.usize(1480..1519), 0xa5),
            _ => {}
        }
    }
    frames.retain(|sent| sent.frame.len() <= 1518);
    frames
}

/// What differs between a graph above and one with a part in the driver.
fn differ(above: &Outcome, driver: &Outcome, sent: &[Sent]) -> Vec<String> {
    let mut found = lacking("the driver", &above.frames, &driver.frames, sent);
    found.extend(lacking("the graph above", &driver.frames, &above.frames, sent));
    let keys = above.counters.keys().chain(driver.counters.keys());
    let keys: std::collections::BTreeSet<_> = keys.collect();
    for key in keys {
        let [a, d] = [above, driver].map(|outcome| outcome.counters.get(key).copied().unwrap_or(0));
        if a != d {
            found.push(format!("{}.{}: {a} above, {d} in the driver", key.0, key.1));
        }
    }
    for (a, d) in above.edges.iter().zip(&driver.edges).filter(|(a, d)| a != d) {
        found.push(format!("edge {a} above, {d} in the driver"));
    }
    found
}

/// Frames of the first that are not among the second.
fn lacking(who: &str, all: &[(usize, Vec<u8>)], there: &[(usize, Vec<u8>)], sent: &[Sent]) -> Vec<String> {
    let mut left: BTreeMap<&(usize, Vec<u8>), usize> = BTreeMap::new();
    there.iter().for_each(|frame| *left.entry(frame).or_default() += 1);
    let mut found = Vec::new();
    for frame in all {
        match left.get_mut(frame).filter(|n| **n > 0) {
            Some(n) => *n -= 1,
            None => {
                let number = crate::judge::number(&frame.1);
                let of = sent.iter().find(|sent| Some(sent.number) == number);
                let of = of.map_or(String::new(), |sent| {
                    format!(" for {} {} by p{}: {}", sent.kind, sent.number, sent.port, hex(&sent.frame))
                });
                found.push(format!("{who} did not send by p{}: {}{of}", frame.0, hex(&frame.1)));
            }
        }
    }
    found.truncate(5);
    found
}

/// What Click makes otherwise of the frames.
fn by_click(click: &Path, folder: &Path, graph: &Maker, frames: &[Sent], above: &Outcome) -> Vec<String> {
    for port in 0..2 {
        let of_port = frames.iter().filter(|sent| sent.port == port).map(|sent| &sent.frame[..]);
        std::fs::write(folder.join(format!("in{port}.pcap")), pcap::write(of_port)).expect("written");
    }
    let text = graph.for_files(&folder.display().to_string());
    let output = Command::new(click).args(["-e", &text]).output().expect("click");
    if !output.status.success() {
        return vec![format!("click: {}", String::from_utf8_lossy(&output.stderr))];
    }
    let mut sent = Vec::new();
    for port in [2, 3] {
        let bytes = std::fs::read(folder.join(format!("out{port}.pcap"))).unwrap_or_default();
        sent.extend(pcap::read(&bytes).into_iter().map(|frame| (port, frame)));
    }
    // A file takes what is too short for an Ethernet.
    sent.retain(|(_, frame)| frame.len() >= ETHERNET && !has_time(frame));
    sent.sort();
    let mut found = lacking("Click", &above.frames, &sent, frames);
    found.extend(lacking("Causeway, and Click does,", &sent, &above.frames, frames));
    found
}

#[test]
fn a_graph_in_the_driver_does_what_it_does_above() {
    let Some(mut pair) = Pair::new() else { return };
    let (seed, first) = (setting("ORACLE_SEED", 1), setting("ORACLE_FIRST", 0));
    let graphs = setting("ORACLE_STATES", 5);
    let mut different = 0;
    for number in first..first + graphs {
        let found = pair.graph(seed, number);
        found.iter().for_each(|line| println!("{line}"));
        different += usize::from(!found.is_empty());
        if different > crate::ENOUGH {
            break;
        }
    }
    println!("{graphs} graphs, {} frames, {} in the driver alone", pair.sent, pair.in_driver);
    assert_eq!(different, 0, "graphs that do something else in the driver");
    assert!(pair.in_driver * 10 > pair.sent || graphs < 5, "the driver handled too few");
}
