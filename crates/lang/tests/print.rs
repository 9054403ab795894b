//! Printed graphs and trees parse to what was printed.

mod common;
use causeway_lang::{Graph, NoLibraries, flatten, parse, print};
use common::{flat, graph};
use proptest::prelude::*;

const SAMPLES: &[&str] = &[
    "",
    "Idle -> Discard",
    "require(package known); a, b :: Queue(/* c */ 5 // x\n); Idle -> a -> Unqueue -> Discard; Idle -> b -> Unqueue -> Discard",
    "c :: Classifier(12/0800, \")\", -); Idle -> c => Discard, Print(x) -> d :: Discard, Discard; h :: Hub; h [1] -> [2] h",
    "define($n 5, $m \"a b\"); elementclass C { $a, K $k, __REST__ $r | define($z $a) input -> Message -> output || | -> Paint($z) -> [0] }
     Idle -> ([0] -> Null -> [0]; [1-2] => Discard, Discard) -> Discard; Idle -> { -> (->) -> } -> Discard; i :: Idle [0,] => Discard, Discard",
    "elementclass Null { $x | Message || ... } elementclass Syn Queue; { input [0] -> [0] output } ; (a :: Idle)",
];

fn tree_text(text: &str) -> Option<String> {
    let program = parse("config", text, &NoLibraries);
    (!program.diagnostics.has_errors()).then(|| print::tree(&program.statements, true))
}

fn flat_anyhow(text: &str) -> Graph {
    flatten(&parse("config", text, &NoLibraries), &common::classes(), &[]).graph
}

#[test]
fn samples_come_back() {
    for text in SAMPLES {
        let once = tree_text(text).expect(text);
        assert_eq!(tree_text(&once).as_deref(), Some(once.as_str()), "{text}");
        let graph = flat_anyhow(text);
        assert_eq!(flat_anyhow(&once), graph, "{once}");
        assert_eq!(flat(&print::graph(&graph)), graph, "{text}");
    }
}

#[test]
fn chains_go_on_through_first_ports_in_the_order_of_inputs() {
    let g = graph(
        "require(package known, compact_config); c :: Classifier(x, -); Idle -> c -> Discard; c [1] -> q :: Queue \
         -> r :: RoundRobinSched -> Discard; Idle -> q; p :: Queue; Idle -> p -> [1] r; n :: Null -> m :: Null -> n",
    );
    let text = print::graph(&g);
    let (_, chains) = text.split_once(";\n\nc ").unwrap();
    let (_, chains) = chains.split_once("\n\n").unwrap();
    assert!(text.starts_with("require(package \"known\", compact_config);\n\n"), "{text}");
    assert_eq!(
        chains,
        "Idle@2 -> c
    -> Discard@3;
c [1] -> q
    -> r
    -> Discard@6;
Idle@7 -> q;
Idle@9 -> p
    -> [1] r;
m -> n
    -> m;
"
    );
}

#[test]
fn a_graph_looks_like_flatconfig() {
    let g = graph(
        "i :: InfiniteSource(LIMIT 5) -> t :: Tee -> q :: Queue -> Unqueue -> Discard; t [1] -> Discard",
    );
    assert_eq!(
        print::graph(&g),
        "i :: InfiniteSource(LIMIT 5);
t :: Tee;
q :: Queue;
Unqueue@4 :: Unqueue;
Discard@5 :: Discard;
Discard@6 :: Discard;

i -> t
    -> q
    -> Unqueue@4
    -> Discard@5;
t [1] -> Discard@6;
"
    );
}

#[test]
fn a_tree_is_indented() {
    let text = "elementclass C { $a | input -> Print($a) -> output } Idle -> C(1) -> Discard";
    assert_eq!(
        tree_text(text).unwrap(),
        "elementclass C { $a |
    input -> Print($a) -> output;
};
Idle -> C(1) -> Discard;
"
    );
}

/// Small random configurations that parse, most of which flatten.
fn statements(depth: u32) -> BoxedStrategy<String> {
    let name =
        prop::sample::select(vec!["a", "b", "c", "x/y", "Idle", "Null", "Tee", "Discard", "input", "output"]);
    let config = prop::sample::select(vec!["", "()", "(1, $p)", "(\"a)\")", "('b' // c\n)", "(${p-3})"]);
    let ports = prop::sample::select(vec!["", "", "", "[0]", "[1]", "[0,1]", "[0-2]", "[1,]"]);
    let simple = (name.clone(), config.clone()).prop_map(|(n, c)| format!("{n}{c}"));
    let declared =
        (name.clone(), name.clone(), config).prop_map(|(n, class, c)| format!("{n} :: {class}{c}"));
    let mut element = prop_oneof![3 => simple, 2 => declared].boxed();
    if depth > 0 {
        let inner = statements(depth - 1);
        let compound = inner.clone().prop_map(|s| format!("{{ {s} }}"));
        let overloaded =
            (inner.clone(), inner.clone()).prop_map(|(s, t)| format!("d :: {{ $p | {s} || {t} }}"));
        let group = inner.prop_map(|s| format!("( {s} )"));
        element = prop_oneof![6 => element, 1 => compound, 1 => overloaded, 1 => group].boxed();
    }
    let end = (ports.clone(), element, ports).prop_map(|(i, e, o)| format!("{i} {e} {o}"));
    let list = prop::collection::vec(end, 1..3).prop_map(|l| l.join(", "));
    let arrow = prop::sample::select(vec!["->", "=>"]);
    let chain = (prop::collection::vec(list, 1..4), arrow).prop_map(|(l, a)| l.join(&format!(" {a} ")));
    let definition = (name, statements_or_name(depth)).prop_map(|(n, b)| format!("elementclass {n} {b}"));
    let other =
        prop::sample::select(vec!["define($p 7)", "require(known)", "-> Null ->", "[0] -> Print -> [0]"]);
    let statement = prop_oneof![6 => chain, 1 => definition, 1 => other.prop_map(String::from)];
    prop::collection::vec(statement, 0..5).prop_map(|s| s.join(";\n")).boxed()
}

fn statements_or_name(depth: u32) -> BoxedStrategy<String> {
    match depth {
        0 => Just("Null".to_string()).boxed(),
        _ => statements(depth - 1).prop_map(|s| format!("{{ {s} }}")).boxed(),
    }
}

proptest! {
    #[test]
    fn random_configurations_come_back(text in statements(2)) {
        let program = parse("config", &text, &NoLibraries);
        if program.diagnostics.has_errors() {
            return Ok(());
        }
        let once = print::tree(&program.statements, true);
        prop_assert_eq!(tree_text(&once), Some(once.clone()), "{}", text);
        let flattened = flatten(&program, &common::classes(), &[]);
        let graph = flattened.graph;
        prop_assert_eq!(&flat_anyhow(&once), &graph, "{}", once);
        if !flattened.diagnostics.has_errors() {
            let printed = print::graph(&graph);
            prop_assert_eq!(&flat_anyhow(&printed), &graph, "{}", printed);
        }
    }
}

/// Chains of elements, groups and compounds, with nothing wrong with them.
fn well_formed() -> impl Strategy<Value = String> {
    let piece = |level: usize| {
        let mut pieces = vec![
            "Null".to_string(),
            "Print($p, \"${p}\")".into(),
            "Paint(/* c */ ${q-2})".into(),
            "(-> Null ->)".into(),
            "{ -> Counter -> x :: Null -> }".into(),
            "([0] -> Null -> [0])".into(),
        ];
        pieces.extend((0..level).map(|k| format!("C{k}(a b, Q 'c')")));
        prop::collection::vec(prop::sample::select(pieces), 1..4).prop_map(|p| p.join(" -> "))
    };
    let classes = (piece(0), piece(1), piece(2)).prop_map(|(a, b, c)| {
        let class = |k: usize, body: String| {
            format!("elementclass C{k} {{ $p, Q $q | define($r $p) input -> {body} -> output }}\n")
        };
        [class(0, a), class(1, b), class(2, c)].concat()
    });
    let chain =
        (piece(3), 0..3usize, 0..3usize).prop_map(|(p, o, i)| format!("s [{o}] -> {p} -> [{i}] t;\n"));
    (classes, prop::collection::vec(chain, 1..4))
        .prop_map(|(classes, chains)| format!("define($p 7); s, t :: Idle;\n{classes}{}", chains.concat()))
}

proptest! {
    #[test]
    fn flat_graphs_come_back(text in well_formed()) {
        let graph = flat(&text);
        prop_assert!(graph.elements.len() > 2);
        let printed = print::graph(&graph);
        prop_assert_eq!(&flat(&printed), &graph, "{}", printed);
        let tree = tree_text(&text).expect("no errors");
        prop_assert_eq!(&flat(&tree), &graph, "{}", tree);
    }
}
