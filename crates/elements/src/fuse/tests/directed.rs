//! Chains by hand: what is fused, what is not, and what handlers change of that.

use super::ends::{Desk, Given, Seen, values};
use super::{library, plan};
use crate::fuse::optimise;
use crate::ip::corpus;
use causeway_engine::{Options, Router};
use causeway_packet::PacketType;
use std::sync::Arc;

/// A fused router and what is seen of it.
struct Bench {
    router: Router,
    desk: Arc<Desk>,
}

impl Bench {
    /// A router whose `in` pushes one UDP datagram from 10.0.0.1 to 10.9.0.2 behind an Ethernet header a round.
    fn new(text: &str) -> Bench {
        Bench::on(1, text)
    }

    fn on(workers: usize, text: &str) -> Bench {
        let bytes = [&[2; 12][..], &[8, 0], &corpus::datagram(&[], b"a payload of twenty.", 64, 0)].concat();
        let packet_type = PacketType::Host;
        let given = Given { bytes, packet_type, paint: 0, fix_source: false, adjacency: 0 };
        let desk = Arc::new(Desk::default());
        desk.rounds.lock().unwrap().push(vec![given]);
        let options = Options { workers, persistent: values(&desk), ..Options::default() };
        let router = Router::start(library(), optimise(&plan(text)).plan, options);
        Bench { router: router.unwrap_or_else(|e| panic!("{text}\n{e}")), desk }
    }

    /// Sends the packet through; says where it came out, as what, and whether by the short way.
    fn send(&self) -> (String, Seen, bool) {
        let before = self.count();
        self.router.write("in", "round", "0").unwrap();
        let mut arrivals = std::mem::take(&mut *self.desk.arrivals.lock().unwrap());
        let ((sink, _), mut seen) = arrivals.pop_first().expect("a packet comes out");
        (sink, seen.remove(0), self.count() > before)
    }

    fn count(&self) -> u64 {
        self.read("c@fused.count").parse().unwrap()
    }

    fn read(&self, handler: &str) -> String {
        let (element, name) = handler.rsplit_once('.').unwrap();
        self.router.read(element, name, "").unwrap()
    }

    fn write(&self, handler: &str, value: &str) {
        let (element, name) = handler.rsplit_once('.').unwrap();
        self.router.write(element, name, value).unwrap();
    }
}

const ROUTER: &str = "in :: Inject -> c :: Classifier(12/0806, 12/0800); c[0] -> arp :: Capture;
    c[1] -> p :: Paint(1) -> s :: Strip(14) -> chk :: CheckIPHeader -> rt :: LinearIPLookup(0.0.0.0/0 0);
    rt -> t :: PaintTee(2) -> d :: DecIPTTL -> out :: Capture; t[1] -> copies :: Capture; chk[1] -> bad :: Capture;";

#[test]
fn an_ordinary_packet_takes_the_short_way() {
    let bench = Bench::new(ROUTER);
    let (sink, seen, short) = bench.send();
    assert_eq!((sink.as_str(), seen.bytes[8], seen.annotations[16], short), ("out", 63, 1, true));
    assert_eq!(bench.read("c@fused.explanation"), "c@fused: ordinary packets go past c\n");
    assert_eq!(bench.read("chk.count"), "1");
}

#[test]
fn a_negated_clause_is_no_clause() {
    let bench = Bench::new(&ROUTER.replace("12/0806, 12/0800", "! 12/0806, 12/0800"));
    let (sink, _, short) = bench.send();
    assert_eq!((sink.as_str(), short), ("arp", false));
    let why = "c@fused: fuses nothing: IPv4 frames do not all leave c by output 1\n";
    assert_eq!(bench.read("c@fused.explanation"), why);
}

#[test]
fn a_header_is_checked_where_the_chain_looks_for_it() {
    let swapped =
        ROUTER.replace("s :: Strip(14) -> chk :: CheckIPHeader", "chk :: CheckIPHeader -> s :: Strip(14)");
    let bench = Bench::new(&swapped);
    let (sink, _, short) = bench.send();
    assert_eq!((sink.as_str(), short), ("bad", false));
    let behind = Bench::new(&swapped.replace("CheckIPHeader", "CheckIPHeader(14)"));
    let (sink, seen, short) = behind.send();
    assert_eq!((sink.as_str(), seen.bytes[0], short), ("out", 0x45, true));
}

#[test]
fn rules_are_asked_on_the_short_way_and_who_does_not_pass_goes_to_their_element() {
    let text = ROUTER.replace("-> rt ::", "-> fw :: IPFilter(1 dst port 99, allow udp, deny all) -> rt ::");
    let bench = Bench::new(&(text.clone() + "fw[1] -> other :: Capture;"));
    let (sink, _, short) = bench.send();
    assert_eq!((sink.as_str(), short), ("out", true));
    bench.write("fw.config", "1 udp, allow all");
    let (sink, seen, short) = bench.send();
    assert_eq!((sink.as_str(), seen.bytes[0], seen.annotations[16], short), ("other", 0x45, 1, true));
    assert_eq!(bench.read("chk.count"), "2");
    let edges = bench.router.edges().unwrap();
    let passed = |from: &str| edges.iter().find(|edge| edge.from.0 == from).map(|edge| edge.packets);
    assert_eq!([passed("s"), passed("chk"), passed("rt")], [Some(2), Some(2), Some(1)]);
    // Where no header is checked yet none is marked.
    let early = text.replace("-> fw :: IPFilter(1 dst port 99, allow udp, deny all)", "");
    let early = early.replace("-> p ::", "-> fw :: IPFilter(allow all) -> p ::");
    let bench = Bench::new(&early);
    assert_eq!((bench.send().0.as_str(), bench.read("c@fused.active").as_str()), ("out", "false"));
}

#[test]
fn what_a_handler_changes_is_taken_up() {
    let bench = Bench::new(ROUTER);
    assert!(bench.send().2);
    bench.write("p.color", "7");
    let (_, seen, short) = bench.send();
    assert_eq!((seen.annotations[16], short), (7, true), "the new paint, by the short way");
    bench.write("t.color", "7");
    assert_eq!(bench.send().0, "copies", "it is copied now");
    bench.write("t.color", "2");
    bench.write("d.active", "false");
    let (_, seen, short) = bench.send();
    assert_eq!((seen.bytes[8], short), (64, true), "its time to live stays");
    bench.write("c.pattern0", "-");
    assert_eq!(bench.send().0, "arp");
    bench.write("c.pattern0", "12/86dd");
    bench.write("rt.flush", "");
    bench.write("rt.add", "10.9.0.0/16 10.9.9.9 0");
    let (_, seen, short) = bench.send();
    assert_eq!((&seen.annotations[..4], short), (&[10, 9, 9, 9][..], true));
}

#[test]
fn a_chain_that_no_longer_fits_is_fused_again_when_it_does() {
    let bench = Bench::new(ROUTER);
    assert!(bench.send().2);
    bench.write("s.length", "4");
    assert_eq!((bench.send().0.as_str(), bench.read("c@fused.active").as_str()), ("bad", "false"));
    bench.write("s.length", "14");
    assert_eq!((bench.send().2, bench.read("c@fused.active").as_str()), (true, "true"));
}

#[test]
fn the_pass_goes_as_far_as_it_can() {
    let bench = Bench::new(&ROUTER.replace("DecIPTTL", "DecIPTTL(MULTICAST false)"));
    let (sink, seen, short) = bench.send();
    assert_eq!((sink.as_str(), seen.bytes[8], short), ("out", 63, true));
    let why = "c@fused: ordinary packets go past c\nc@fused: leaves output 0 of rt: d and on\n";
    assert_eq!(bench.read("c@fused.explanation"), why);
    assert_eq!(bench.read("t.color"), "2");
}

#[test]
fn elements_of_other_workers_are_not_fused() {
    let bench = Bench::on(2, &format!("StaticThreadSched(rt 1); {ROUTER}"));
    assert_eq!(bench.read("c@fused.active"), "false");
}

#[test]
fn a_circle_ends_the_search() {
    let circle = "Idle -> c :: Classifier(12/0800); c -> p :: Paint(1) -> s :: Strip(1) -> p;";
    let found = optimise(&plan(circle));
    assert!(
        found.explanation.contains("output 0 leads to p (Paint) before a table"),
        "{}",
        found.explanation
    );
    let behind = "Idle -> c :: Classifier(12/0800) -> rt :: LinearIPLookup(0.0.0.0/0 0);
                  rt -> d :: DropBroadcasts -> f :: FixIPSrc(1.1.1.1) -> d;";
    assert!(optimise(&plan(behind)).explanation.contains("output 0 of rt continues at d"));
}

#[test]
fn of_several_chains_the_one_for_ipv4_is_fused() {
    let bench =
        Bench::new(&ROUTER.replace(
            "c[0] -> arp",
            "c[0] -> Strip(14) -> CheckIPHeader -> LinearIPLookup(0.0.0.0/0 0) -> arp",
        ));
    assert_eq!(
        (bench.read("c@fused.active"), bench.read("c@fused2.active")),
        ("false".into(), "true".into())
    );
    assert_eq!((bench.send().0.as_str(), bench.read("c@fused2.count").as_str()), ("out", "1"));
    bench.write("c.pattern0", "12/0800");
    assert_eq!(
        (bench.read("c@fused.active"), bench.read("c@fused2.active")),
        ("true".into(), "false".into())
    );
    assert_eq!((bench.send().0.as_str(), bench.read("c@fused.count").as_str()), ("arp", "1"));
}

#[test]
fn a_name_that_is_taken_is_not_given_again() {
    let taken = format!("{ROUTER} c@fused :: Idle -> Discard;");
    let names: Vec<_> = optimise(&plan(&taken)).plan.elements.into_iter().map(|e| e.name).collect();
    assert!(names.contains(&"c@fused2".to_owned()), "{names:?}");
}
