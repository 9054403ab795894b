//! The corpus through whole routers: plain ones, and those in which the optimiser has put one element in front of a chain.
//! Both must do with each frame what the elements do one by one, and count and name the same drops.

use crate::elements::{Part, router};
use crate::frames;
use crate::plain::{Elements, End, place};
use crate::twin::{look, packet_type};
use causeway_elements::optimise;
use causeway_engine::spec::writes;
use causeway_engine::{Conf, Cx, Element, Error, Library, Options, Persistent, Plan, Router, Spec};
use causeway_fastpath::{Hook, Target};
use causeway_lang::NoLibraries;
use causeway_packet::{Batch, Packet};
use fastrand::Rng;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

const HOOK: Hook = Hook::Xdp(frames::OURS);
/// Frames that come at once.
const ROUND: usize = 64;
const DESK: &str = "desk";

/// What a router's ends share with the test.
#[derive(Default)]
struct Desk {
    frames: Mutex<Vec<Vec<u8>>>,
    ends: Mutex<Vec<End>>,
}

fn desk(conf: &mut Conf<'_>) -> Arc<Desk> {
    conf.env.persistent(DESK, Desk::default).expect("a desk")
}

static INJECT: Spec = Spec {
    name: "Inject",
    ports: "0/1",
    processing: "h/h",
    handlers: &[writes("round", "pushes the frames on the desk")],
    build: |conf| Ok(Box::new(Inject(desk(conf)))),
    ..Spec::DEFAULT
};

struct Inject(Arc<Desk>);

impl Element for Inject {
    fn write(&mut self, _handler: &str, _value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        for frame in self.0.frames.lock().map_err(|e| e.to_string())?.iter() {
            let mut packet = Packet::from_bytes(frame).ok_or("no packet")?;
            packet.set_packet_type(packet_type(frame, HOOK));
            cx.emit(0, packet);
        }
        Ok(())
    }
}

static CAPTURE: Spec = Spec {
    name: "Capture",
    ports: "1/0",
    processing: "h/h",
    build: |conf| Ok(Box::new(Capture(desk(conf)))),
    ..Spec::DEFAULT
};

struct Capture(Arc<Desk>);

impl Element for Capture {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let headroom = Packet::from_bytes(&[0; 64]).map_or(0, |packet| packet.headroom());
        let mut ends = self.0.ends.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        ends.extend(batch.drain().map(|packet| End::Left(cx.name().to_owned(), look(&packet, headroom))));
    }
}

fn library() -> Library {
    let own = causeway_elements::library();
    Library::new(own.iter().chain([&INJECT, &CAPTURE]))
}

/// The parts as a configuration, with a sink for each place outside.
fn plan(parts: &[Part]) -> Plan {
    let (mut text, mut edges, mut sinks) = (String::new(), "in -> e0;\n".to_owned(), BTreeSet::new());
    for (at, (class, config, outputs)) in parts.iter().enumerate() {
        let _ = writeln!(text, "e{at} :: {class}({config});");
        for (output, target) in outputs.iter().enumerate() {
            let to = match *target {
                // A class has as many outputs as patterns; what an element of another drops itself, it counts.
                None if *class == "Classifier" => "Discard".to_owned(),
                None => continue,
                Some(Target::Node(next)) => format!("e{next}"),
                target => {
                    sinks.insert(place(target));
                    place(target)
                }
            };
            let _ = writeln!(edges, "e{at} [{output}] -> {to};");
        }
    }
    for sink in sinks {
        let _ = writeln!(text, "{sink} :: Capture;");
    }
    let text = format!("in :: Inject;\n{text}{edges}");
    let compiled = causeway_lang::compile("corpus", text.as_bytes(), &NoLibraries, &library(), &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{text}\n{:?}", f.diagnostics.messages())))
}

/// A router that runs, and its ends.
fn start(plan: Plan) -> (Router, Arc<Desk>) {
    let (desk, persistent) = (Arc::new(Desk::default()), Persistent::default());
    persistent.lock().expect("values").insert(DESK.to_owned(), desk.clone());
    let options =
        Options { simulated_ns: Some(1_000_000_000_000), seed: Some(1), persistent, ..Options::default() };
    (Router::start(library(), plan, options).unwrap_or_else(|e| panic!("{e}")), desk)
}

/// Runs the corpus through both; says how many packets took the short way.
fn compare(with_rules: bool) -> u64 {
    let parts = router(with_rules);
    let (plain, mut elements) = (plan(&parts), Elements::new(&parts));
    let fused = optimise(&plain).plan;
    let routers = [("plain", start(plain)), ("fused", start(fused))];
    let (rng, wanted) = (&mut Rng::with_seed(8), crate::frames_wanted(10_000));
    for round in 0..wanted.div_ceil(ROUND) {
        let frames: Vec<_> = (0..ROUND).map(|_| frames::frame(rng)).collect();
        let mut expected: Vec<End> = frames.iter().flat_map(|f| elements.run(f, HOOK, None)).collect();
        // What is dropped no sink sees: the counters below do.
        expected.retain(|end| matches!(end, End::Left(..)));
        expected.sort();
        for (name, (router, desk)) in &routers {
            desk.frames.lock().expect("the frames").clone_from(&frames);
            router.write("in", "round", "").unwrap_or_else(|e| panic!("{name}: {e}"));
            let mut ends = std::mem::take(&mut *desk.ends.lock().expect("the ends"));
            ends.sort();
            let differs = ends.iter().zip(&expected).find(|(is, should)| is != should);
            assert!(
                ends == expected,
                "{name}, round {round}: {} {}: {differs:?}",
                ends.len(),
                expected.len()
            );
        }
    }
    let mut short = 0;
    for (name, (router, _)) in &routers {
        for (at, (class, ..)) in parts.iter().enumerate() {
            let element = format!("e{at}");
            let reasons = router.read(&element, "drop_reasons", "").expect("reasons");
            // What a classifier leaves nowhere is discarded here.
            let lines = |text: &str| -> Vec<String> {
                let mine = text.lines().filter(|l| *class != "Classifier" || !l.starts_with("unconnected"));
                mine.map(str::to_owned).collect()
            };
            assert_eq!(lines(&reasons), lines(&elements.drop_reasons(at)), "{name}: {element}, {class}");
        }
        let taken = router.elements().iter().filter(|element| element.contains("@fused"));
        short += taken
            .map(|e| router.read(e, "count", "").expect("count").parse::<u64>().expect("a number"))
            .sum::<u64>();
    }
    short
}

#[test]
fn the_short_way_does_what_the_elements_do_one_by_one() {
    for with_rules in [false, true] {
        let (short, wanted) = (compare(with_rules), crate::frames_wanted(10_000) as u64);
        eprintln!("{short} of {wanted} frames took the short way");
        assert!(short * 20 > wanted, "{short}");
    }
}
