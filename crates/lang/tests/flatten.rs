//! Names, order and connections of flattened configurations.

mod common;
use common::{connections, elements, errors, flat, graph};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn names(text: &str) -> Vec<String> {
    flat(text).elements.into_iter().map(|e| e.name).collect()
}

#[test]
fn anonymous_elements_are_numbered_by_position() {
    assert_eq!(names("q::Queue; Idle->q->Discard"), ["q", "Idle@2", "Discard@3"]);
    assert_eq!(names("Idle@2::Idle; Idle -> Discard"), ["Idle@2", "Idle@3", "Discard@3"]);
    assert_eq!(names("Idle -> Idle@1 :: Null -> Discard"), ["Idle@2", "Idle@1", "Discard@3"]);
}

#[test]
fn members_follow_the_top_level() {
    let text = "elementclass C { input -> Paint(1) -> p :: Print -> output }
                a :: Idle -> c :: C -> b :: C -> d :: Discard";
    assert_eq!(names(text), ["a", "d", "c/Paint@1", "c/p", "b/Paint@1", "b/p"]);
    assert_eq!(
        connections(&flat(text)),
        [
            "a [0] -> [0] c/Paint@1",
            "c/p [0] -> [0] b/Paint@1",
            "b/p [0] -> [0] d",
            "c/Paint@1 [0] -> [0] c/p",
            "b/Paint@1 [0] -> [0] b/p",
        ]
    );
}

#[test]
fn nested_members_come_before_the_next_compound() {
    let text = "elementclass In { input -> x :: Null -> output }
                elementclass Out { input -> i :: In -> y :: Null -> output }
                Idle -> a :: Out -> b :: In -> Discard";
    assert_eq!(names(text), ["Idle@1", "Discard@4", "a/y", "a/i/x", "b/x"]);
}

#[test]
fn compounds_and_groups_in_place() {
    assert_eq!(names("Idle -> { -> Null -> } -> Discard"), ["Idle@1", "Discard@3", "@2/Null@1"]);
    let text = "Idle -> ([0] -> Null -> [0]) -> Discard";
    assert_eq!(connections(&flat(text)), ["Idle@1 [0] -> [0] Null@5", "Null@5 [0] -> [0] Discard@6"]);
    let text = "i :: Idle; i => ([0] -> [0]; [1] -> Paint(1) -> [1]) => a :: Discard, b :: Discard";
    assert_eq!(connections(&flat(text)), ["i [0] -> [0] a", "i [1] -> [0] Paint@5", "Paint@5 [0] -> [0] b"]);
    assert_eq!(connections(&flat("Idle -> (->) -> Discard")), ["Idle@1 [0] -> [0] Discard@5"]);
}

#[test]
fn port_lists() {
    let text = "i :: Idle; i[0,1] => a::Discard, b::Discard; i[2-3] -> c::Discard";
    assert_eq!(
        connections(&flat(text)),
        ["i [0] -> [0] a", "i [1] -> [0] b", "i [2] -> [0] c", "i [3] -> [0] c"]
    );
    let text = "c :: Classifier(-, -, -); n :: Null; c => Paint(0), Paint(1), Paint(2) -> n";
    assert_eq!(
        connections(&flat(text))[..4],
        ["c [0] -> [0] Paint@3", "c [1] -> [0] Paint@4", "c [2] -> [0] Paint@5", "Paint@3 [0] -> [0] n"]
    );
    assert_eq!(
        connections(&flat("a :: Idle; b :: Idle; a [1,] => [0-2] b")),
        ["a [1] -> [0] b", "a [2] -> [1] b", "a [3] -> [2] b"]
    );
    assert_eq!(
        connections(&flat("Idle, Idle => Discard, Discard")),
        ["Idle@1 [0] -> [0] Discard@3", "Idle@2 [0] -> [0] Discard@4"]
    );
}

#[test]
fn declarations() {
    assert_eq!(elements(&flat("a, b, c :: Queue(5)")), ["a :: Queue(5)", "b :: Queue(5)", "c :: Queue(5)"]);
    assert_eq!(names("a::Idle, b::Idle -> Discard"), ["a", "b", "Discard@3"]);
    assert_eq!(elements(&flat("q :: FullNoteQueue")), ["q :: Queue"]);
    assert_eq!(
        elements(&flat("a :: Print(x, (y), ')', /* ) */ \")\")")),
        ["a :: Print(x, (y), ')', /* ) */ \")\")"]
    );
}

#[test]
fn semicolons_are_optional() {
    assert_eq!(names("a :: Idle b :: Discard a -> b elementclass X { } x :: X"), ["a", "b"],);
}

#[test]
fn class_scope_begins_after_the_brace() {
    let text = "elementclass Null { input -> Null -> Paint -> output } Idle -> n :: Null -> Discard";
    assert_eq!(names(text), ["Idle@1", "Discard@3", "n/Null@1", "n/Paint@2"]);
    let text = "elementclass A { elementclass B Null; input -> B -> output } Idle -> A -> B";
    assert_eq!(errors(text).lines().next(), Some("config:1: undeclared element 'B'"));
    let text = "elementclass S Null; Idle -> S -> Discard";
    assert_eq!(elements(&flat(text)), ["Idle@1 :: Idle", "S@2 :: Null", "Discard@3 :: Discard"]);
}

#[test]
fn overloads_choose_by_ports_and_arguments() {
    let text = "elementclass X { $a | input -> Paint($a) -> output || input -> Print -> output
                             || $a, $b | input -> Queue($a, $b) -> output || ... }
                ";
    assert!(errors(text).contains("cannot extend unknown element class 'X'"));
    let class = text.replace(" || ...", "");
    let members = |usage: &str| flat(&format!("{class} {usage}")).elements.pop().map(|e| e.described());
    assert_eq!(members("Idle -> x :: X(1) -> Discard").as_deref(), Some("x/Paint@1 :: Paint"));
    assert_eq!(members("Idle -> x :: X -> Discard").as_deref(), Some("x/Print@1 :: Print"));
    assert_eq!(members("Idle -> x :: X(1, 2) -> Discard").as_deref(), Some("x/Queue@1 :: Queue"));
    assert_eq!(
        errors(&format!("{class} Idle -> x :: X(1, 2, 3) -> Discard")),
        "config:3: no match for 'X[3 arguments, 1 input, 1 output]'
config:3: candidates are:
config:1:   X(<arg>)[1 input, 1 output]
config:1:   X[1 input, 1 output]
config:2:   X(<arg>, <arg>)[1 input, 1 output]
"
    );
}

#[test]
fn extension_falls_back_to_the_old_class() {
    let text = "elementclass Queue { $a, $b | input -> Null -> output || ... }
                Idle -> Queue(1, 2) -> Queue(3) -> Discard";
    assert_eq!(
        elements(&flat(text)),
        ["Idle@1 :: Idle", "Queue@3 :: Queue(3)", "Discard@4 :: Discard", "Queue@2/Null@1 :: Null"]
    );
}

#[test]
fn parameters() {
    let text = "elementclass X { $a, LEN $l, __REST__ $r | Message($a $l $r) }
                X(7 8, z, LEN 1, y, LEN 2)";
    assert_eq!(elements(&flat(text)), ["X@1/Message@1 :: Message(7 8 2 z, y)"]);
    let text =
        "define($x 5, $y \"$x\"); elementclass X { $x | define($z $x$y) Message($x, $z) } X(6); Message($x)";
    assert_eq!(elements(&flat(text)), ["Message@2 :: Message(5)", "X@1/Message@1 :: Message(6, 6\"5\")"]);
}

#[test]
fn variables_are_scoped_by_the_text() {
    let text =
        "define($x top); elementclass B { Message($x) } elementclass A { $x | B; Message($x) } A(argument)";
    assert_eq!(
        elements(&flat(text)),
        ["A@1/Message@2 :: Message(argument)", "A@1/B@1/Message@1 :: Message(top)"]
    );
    let text = "elementclass A { $x | elementclass B { $y | Message($x $y) } B(2) } A(1)";
    assert_eq!(elements(&flat(text)), ["A@1/B@1/Message@1 :: Message(1 2)"]);
}

#[test]
fn command_line_parameters_win() {
    let program = causeway_lang::parse("f", "define($x 5) Message($x $y)", &causeway_lang::NoLibraries);
    let params = [("x".to_string(), "1".to_string()), ("y".to_string(), "2".to_string())];
    let flat = causeway_lang::flatten(&program, &common::classes(), &params);
    assert_eq!(elements(&flat.graph), ["Message@1 :: Message(1 2)"]);
}

#[test]
fn repeated_connections_count_once() {
    let g = graph("i :: InfiniteSource; d :: Discard; i -> d; i -> d");
    assert_eq!(connections(&g), ["i [0] -> [0] d"]);
}

/// What a chain may pass through between two elements: nothing, groups, compounds.
const PASSAGES: [&str; 5] =
    ["", "-> (->)", "-> {->}", "-> ( -> { input -> output } -> )", "-> W -> (-> W ->)"];

proptest! {
    #[test]
    fn what_only_passes_through_is_as_if_it_were_not_there(
        wires in prop::collection::vec((0..3usize, 0..3usize, 0..3usize, 0..3usize, 0..PASSAGES.len()), 0..12)
    ) {
        let mut text = String::from("elementclass W { -> (->) -> }; a0, a1, a2 :: Idle; b0, b1, b2 :: Idle;\n");
        let mut wanted = BTreeSet::new();
        for (from, out, to, input, passage) in wires {
            text.push_str(&format!("a{from} [{out}] {} -> [{input}] b{to};\n", PASSAGES[passage]));
            wanted.insert(format!("a{from} [{out}] -> [{input}] b{to}"));
        }
        let found: BTreeSet<String> = connections(&flat(&text)).into_iter().collect();
        prop_assert_eq!(found, wanted, "{}", text);
    }
}

#[test]
fn ports_of_compounds_must_match() {
    let class = "elementclass C { input [0] -> Null -> output; input [1] -> Discard }";
    assert_eq!(errors(&format!("{class} Idle -> C -> Discard")), "config:1: 'C@2' input 1 unused\n");
    assert_eq!(errors(&format!("{class} Idle => [0-2] c :: C -> Discard")), "config:1: 'c' has no input 2\n");
    assert_eq!(
        errors("elementclass C { input [1] -> Discard } Idle -> C").lines().next(),
        Some("config:1: 'C' input 0 missing")
    );
}

#[test]
fn recursion_is_impossible_and_explosion_limited() {
    assert_eq!(
        errors("elementclass A { input -> A -> output } Idle -> A -> Discard").lines().next(),
        Some("config:1: undeclared element 'A'")
    );
    let mut text = String::from("elementclass X0 { Message; Message }\n");
    for i in 1..40 {
        text.push_str(&format!("elementclass X{i} {{ X{0}; X{0} }}\n", i - 1));
    }
    text.push_str("X39");
    assert!(errors(&text).contains("configuration too large"));
    let mut text = String::from("elementclass X0 { Message }\n");
    for i in 1..1000 {
        text.push_str(&format!("elementclass X{i} {{ X{} }}\n", i - 1));
    }
    text.push_str("X999");
    assert!(errors(&text).contains("maximum compound element nesting depth exceeded"));
}

#[test]
fn what_is_defined_as_nothing_stays_as_it_is_and_hides_an_outer_one() {
    let configs = |text: &str| flat(text).elements.into_iter().map(|e| e.config).collect::<Vec<_>>();
    assert_eq!(configs("define($x) Message($x ${x-4} $y)"), ["$x ${x-4} $y"]);
    assert_eq!(configs("define($x 5) elementclass A { define($x) Message($x) } A; Message($x)"), ["5", "$x"]);
    assert_eq!(configs("elementclass A { $x, $y | Message(a$x-$y) } A(, 3)"), ["a-3"]);
}
