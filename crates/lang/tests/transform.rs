//! Patterns, dead code, and routers joined and taken apart.

mod common;

use causeway_lang::transform::{Part, Patterns, combine, uncombine, undead};
use causeway_lang::{ClassInfo, Classes, Graph, NoLibraries, flatten, parse, print};
use common::{classes, connections, elements, flat};
use proptest::prelude::*;

fn patterns(text: &str) -> Patterns {
    let mut patterns = Patterns::default();
    patterns.read("patterns", text.as_bytes(), &NoLibraries, &classes()).unwrap();
    patterns
}

fn rewritten(pattern: &str, text: &str) -> Graph {
    patterns(pattern).apply(&flat(text)).graph
}

const TWO: &str = "elementclass P { input -> Paint($a) -> Paint($a) -> output }
    elementclass P_Replacement { input -> Paint($a) -> output }";

#[test]
fn a_pattern_is_replaced_where_its_variables_agree() {
    let g = rewritten(TWO, "i :: Idle -> Paint(1) -> Paint(1) -> Paint(2) -> d :: Discard");
    assert_eq!(elements(&g), ["i :: Idle", "Paint@2 :: Paint(1)", "Paint@4 :: Paint(2)", "d :: Discard"]);
    assert_eq!(
        connections(&g),
        ["Paint@4 [0] -> [0] d", "i [0] -> [0] Paint@2", "Paint@2 [0] -> [0] Paint@4"]
    );
}

#[test]
fn elements_new_to_the_pattern_are_named_after_it() {
    let swap = "elementclass Swap { input -> a :: Counter -> output }
        elementclass Swap_Replacement { input -> a :: Print -> b :: Null -> output }";
    let g = rewritten(swap, "i :: Idle -> c :: Counter -> Counter -> Discard");
    assert_eq!(
        elements(&g),
        [
            "i :: Idle",
            "c :: Print",
            "Counter@3 :: Print",
            "Discard@4 :: Discard",
            "Swap@1/b :: Null",
            "Swap@2/b :: Null"
        ]
    );
}

#[test]
fn what_leads_in_or_out_elsewhere_prevents_a_match() {
    let fits = |text: &str| patterns(TWO).apply(&flat(text)).replaced[0].1;
    assert_eq!(fits("Idle -> Paint(1) -> p :: Paint(1) -> Discard"), 1);
    assert_eq!(fits("Idle -> Paint(1) -> p :: Paint(1) -> Discard; Idle -> p"), 0, "into the middle");
    assert_eq!(fits("Idle -> p :: Paint(1) -> Paint(1) -> Discard; p -> Discard"), 0, "out of the middle");
    assert_eq!(fits("Idle -> p :: Paint(1) -> Paint(1) -> Discard; Idle -> p"), 1, "input may be shared");
    assert_eq!(fits("Idle -> Paint(1) -> Paint(2) -> Discard"), 0);
    assert_eq!(fits("Paint(1) -> Paint(1) -> Discard"), 0, "the input is not in use");
}

#[test]
fn ports_of_input_and_output_are_kept_apart() {
    let cross = "elementclass X { [0] -> a :: Null -> [0]; input [1] -> b :: Counter -> [1] output }
        elementclass X_Replacement { input [1] -> [1] output; input -> c :: Print -> output }";
    let g =
        rewritten(cross, "i :: Idle -> n :: Null -> d :: Discard; j :: Idle -> k :: Counter -> e :: Discard");
    let mut joined = connections(&g);
    joined.sort();
    assert_eq!(joined, ["X@1/c [0] -> [0] d", "i [0] -> [0] X@1/c", "j [0] -> [0] e"]);
}

#[test]
fn patterns_that_undo_each_other_come_to_an_end() {
    let endless = "elementclass A { -> Null -> } elementclass A_Replacement { -> Counter -> }
        elementclass B { -> Counter -> } elementclass B_Replacement { -> Null -> }";
    let rewritten = patterns(endless).apply(&flat("Idle -> Null -> Discard"));
    assert!(rewritten.endless);
    let twice = "elementclass A { -> Null -> } elementclass A_Replacement { -> Null -> Null -> }";
    assert_eq!(patterns(twice).apply(&flat("Idle -> Null -> Discard")).replaced, [("A".to_owned(), 1)]);
    let back = patterns(TWO).reversed().apply(&flat("Idle -> Paint(3) -> Discard"));
    assert_eq!(back.replaced[0].1, 1);
}

#[test]
fn compounds_of_the_pattern_file_are_expanded_and_its_errors_reported() {
    let g = rewritten(
        "elementclass Two { -> Null -> Null -> } elementclass P { -> Two -> }
         elementclass P_Replacement { -> Counter -> }",
        "Idle -> Null -> Null -> Discard",
    );
    assert_eq!(elements(&g), ["Idle@1 :: Idle", "P@1/Counter@1 :: Counter", "Discard@4 :: Discard"]);
    let wrong = |text: &str| {
        let read = Patterns::default().read("patterns", text.as_bytes(), &NoLibraries, &classes());
        common::plain(&read.unwrap_err())
    };
    assert!(wrong("elementclass P { -> Nll -> }").contains("Nll"));
    assert!(wrong("elementclass P { output -> Null -> }").contains("come out of 'output'"));
}

fn alive(text: &str) -> (Vec<String>, Vec<String>) {
    let all = WithSwitches;
    let program = parse("config", text, &NoLibraries);
    let flattened = flatten(&program, &all, &[]);
    assert!(flattened.diagnostics.is_empty(), "{:?}", flattened.diagnostics.messages());
    let live = undead(&flattened.graph, &all).graph;
    (elements(&live), connections(&live))
}

/// Those of the other tests, and switches.
struct WithSwitches;

impl Classes for WithSwitches {
    fn get(&self, name: &str) -> Option<ClassInfo> {
        match name {
            "StaticSwitch" => Some(ClassInfo::new(name, "1/-", "h/h")),
            "StaticPullSwitch" => Some(ClassInfo::new(name, "-/1", "l/l")),
            "StrideSched" => Some(ClassInfo::new(name, "-/1", "l/l")),
            _ => classes().get(name),
        }
    }

    fn names(&self) -> Vec<String> {
        classes().names()
    }
}

#[test]
fn what_no_packet_passes_is_removed() {
    let (e, c) = alive(
        "s :: InfiniteSource -> Null -> d :: Discard; Idle -> Counter -> Discard; AddressInfo(a 1.2.3.4)",
    );
    assert_eq!(e, ["s :: InfiniteSource", "d :: Discard", "AddressInfo@7 :: AddressInfo(a 1.2.3.4)"]);
    assert_eq!(c, ["s [0] -> [0] d"]);
}

#[test]
fn static_switches_are_connections() {
    let (e, c) = alive(
        "s :: InfiniteSource -> x :: StaticSwitch(1); x[0] -> Counter -> d :: Discard; x[1] -> Print -> d",
    );
    assert_eq!(e, ["s :: InfiniteSource", "d :: Discard", "Print@5 :: Print"]);
    assert_eq!(c, ["Print@5 [0] -> [0] d", "s [0] -> [0] Print@5"]);
    let (e, _) = alive("s :: InfiniteSource -> x :: StaticSwitch(-1); x[0] -> Discard");
    assert_eq!(e, Vec::<String>::new());
    let (e, _) = alive(
        "s :: InfiniteSource -> q :: Queue -> [0] x :: StaticPullSwitch(0) -> Unqueue -> Discard; Idle -> [1] x",
    );
    assert!(!e.iter().any(|e| e.contains("Static")) && e.len() == 4, "{e:?}");
}

#[test]
fn schedulers_and_tees_of_one_way_are_connections() {
    let (e, c) = alive(
        "InfiniteSource -> q :: Queue -> [1] r :: RoundRobinSched -> u :: Unqueue -> d :: Discard; Idle -> [0] r;
         Idle -> [2] r;",
    );
    assert_eq!(e.len(), 4, "{e:?}");
    assert!(c.contains(&"q [0] -> [0] u".to_owned()), "{c:?}");
    let (e, c) = alive("s :: InfiniteSource -> t :: Tee; t[0] -> Idle; t[1] -> d :: Discard");
    assert_eq!((e.len(), c), (2, vec!["s [0] -> [0] d".to_owned()]));
    let (e, _) = alive(
        "InfiniteSource -> q :: Queue -> [0] r :: StrideSched(3, 4, 5) -> Unqueue -> Discard; Idle -> [1] r;
         InfiniteSource -> Queue -> [2] r",
    );
    assert!(e.contains(&"r :: StrideSched(3, 5)".to_owned()), "{e:?}");
}

#[test]
fn ports_that_lose_their_neighbour_get_idle() {
    let (e, c) =
        alive("s :: InfiniteSource -> c :: Classifier(1, -); c[0] -> Counter -> Idle; c[1] -> d :: Discard");
    assert_eq!(e.last().unwrap(), "Idle@6 :: Idle");
    assert!(c.contains(&"c [0] -> [0] Idle@6".to_owned()), "{c:?}");
}

fn parts() -> Vec<Part> {
    let part = |name: &str, text: &str| Part { name: name.into(), graph: flat(text) };
    vec![
        part("A", "FromDevice(eth0) -> Queue -> t :: ToDevice(eth1, X 1)"),
        part("B", "f :: FromDevice(eth0) -> Queue -> ToDevice(eth1)"),
    ]
}

#[test]
fn routers_are_joined_and_taken_apart_again() {
    let combined = combine(&parts(), &["A.eth1=B.eth0".to_owned()]).unwrap();
    assert_eq!(combined.warnings, Vec::<String>::new());
    let link = combined.graph.elements.last().unwrap();
    assert_eq!(link.config, "A t ToDevice, eth1, X 1, B f FromDevice, eth0");
    assert!(connections(&combined.graph).contains(&"link1 [0] -> [0] B/Queue@2".to_owned()));
}

#[test]
fn a_component_is_what_it_was() {
    let combined = combine(&parts(), &["A.t=B.f".to_owned()]).unwrap().graph;
    for part in parts() {
        let out = uncombine(&combined, &part.name).unwrap();
        let mut names = [elements(&out), elements(&part.graph)];
        names.iter_mut().for_each(|n| n.sort());
        assert_eq!(names[0], names[1]);
        assert_eq!(out.connections.len(), part.graph.connections.len());
    }
}

#[test]
fn wrong_links_are_told() {
    let wrong = |link: &str| combine(&parts(), &[link.to_owned()]).unwrap_err().join("; ");
    assert_eq!(wrong("A=B"), "bad link definition 'A=B'");
    assert_eq!(wrong("C.a=D.b"), "no router named 'C'; no router named 'D'");
    assert_eq!(wrong("A.eth7=B.eth0"), "router 'A' has no element or device named 'eth7'");
    let twice = parts().into_iter().chain(parts()).collect::<Vec<_>>();
    assert!(combine(&twice, &[]).unwrap_err().contains(&"two routers named 'A'".to_owned()));
    assert_eq!(combine(&parts(), &[]).unwrap().warnings, ["no links between routers"]);
    assert_eq!(combine(&[], &[]).unwrap_err(), ["no routers specified"]);
    let odd = combine(&parts(), &["A.Queue@2=B.f".to_owned()]).unwrap().warnings;
    assert!(odd[0].contains("expected ToDevice, got Queue"), "{odd:?}");
}

proptest! {
    /// What comes out of any transformation is a graph that can be printed and read again.
    #[test]
    fn any_small_graph_is_transformed(
        kinds in prop::collection::vec(0usize..7, 1..7),
        edges in prop::collection::vec((0usize..7, 0u32..3, 0usize..7, 0u32..3), 0..9),
    ) {
        let names = ["Null", "Counter", "Tee", "Queue", "RoundRobinSched", "Idle", "Paint(1)"];
        let mut text = String::new();
        for (i, &k) in kinds.iter().enumerate() {
            text += &format!("e{i} :: {};\n", names[k]);
        }
        for (a, p, b, q) in edges {
            text += &format!("e{} [{p}] -> [{q}] e{};\n", a % kinds.len(), b % kinds.len());
        }
        let graph = flat(&text);
        let live = undead(&graph, &classes()).graph;
        prop_assert!(live.elements.len() <= graph.elements.len() + 1);
        let twice = undead(&live, &classes()).graph;
        prop_assert!(twice.elements.len() <= live.elements.len() + 1);
        for g in [live, rewritten_any(&graph)] {
            prop_assert_eq!(&flat(&print::graph(&g)), &g);
        }
    }
}

fn rewritten_any(graph: &Graph) -> Graph {
    let all = "elementclass P { -> Null -> Counter -> } elementclass P_Replacement { -> Counter -> }
        elementclass Q { -> Tee [1] -> } elementclass Q_Replacement { -> Paint(1) -> }";
    patterns(all).apply(graph).graph
}
