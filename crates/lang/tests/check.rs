//! Numbers of ports, push and pull, completeness.

mod common;
use causeway_lang::Processing::{Pull, Push};
use causeway_lang::{ClassInfo, ClassList, NoLibraries};
use common::{compile, errors};

/// The resolved inputs and outputs of one element.
fn ports(text: &str, element: &str) -> (Vec<causeway_lang::Processing>, Vec<causeway_lang::Processing>) {
    let compiled = compile(text).unwrap_or_else(|f| panic!("{}", common::plain(&f)));
    let e = compiled.graph.find(element).unwrap();
    (compiled.checked.inputs(e).to_vec(), compiled.checked.outputs(e).to_vec())
}

#[test]
fn agnostic_elements_follow_their_neighbours() {
    let text = "InfiniteSource -> a :: Null -> Queue -> b :: Null -> c :: Counter -> Unqueue -> d :: Discard";
    assert_eq!(ports(text, "a"), (vec![Push], vec![Push]));
    assert_eq!(ports(text, "b"), (vec![Pull], vec![Pull]));
    assert_eq!(ports(text, "c"), (vec![Pull], vec![Pull]));
    assert_eq!(ports(text, "d"), (vec![Push], vec![]));
}

#[test]
fn agnostic_leftovers_are_push() {
    assert_eq!(ports("InfiniteSource -> n :: Null -> Discard", "n"), (vec![Push], vec![Push]));
}

#[test]
fn an_error_output_pushes_in_a_pull_path() {
    let text = "Idle -> Queue -> c :: CheckIPHeader -> Unqueue -> Discard; c [1] -> Discard";
    assert_eq!(ports(text, "c"), (vec![Pull], vec![Pull, Push]));
}

#[test]
fn flow_codes_keep_ports_apart() {
    let text = "InfiniteSource -> b :: Bidi -> Discard; Idle -> Queue -> [1] b [1] -> Unqueue -> Discard";
    assert_eq!(ports(text, "b"), (vec![Push, Pull], vec![Push, Pull]));
    let text = "q :: Queue; Idle -> q -> i :: Idle -> Discard";
    assert_eq!(ports(text, "i"), (vec![Pull], vec![Push]));
}

#[test]
fn conflicts_have_no_landmark_in_plain_text() {
    assert_eq!(
        errors("Idle -> q :: Queue -> c :: Classifier(-) -> Discard"),
        "'q :: Queue' pull output 0 connected to 'c :: Classifier' push input 0\n"
    );
    assert_eq!(
        errors("FromDevice -> Unqueue -> Discard"),
        "'FromDevice@1 :: FromDevice' push output 0 connected to 'Unqueue@2 :: Unqueue' pull input 0\n"
    );
    assert_eq!(
        errors("Idle -> Queue -> n :: Null -> Tee -> Discard"),
        "agnostic 'n :: Null' in mixed context: pull input 0, push output 0\n"
    );
}

#[test]
fn active_ports_are_used_once() {
    assert_eq!(
        errors("i :: InfiniteSource; i -> Discard; i -> Queue -> Unqueue -> Discard").lines().next(),
        Some("config:1: illegal reuse of 'i :: InfiniteSource' push output 0")
    );
    assert_eq!(
        errors("u :: Unqueue -> Discard; Idle -> Queue -> u; Idle -> Queue -> u").lines().next(),
        Some("config:1: illegal reuse of 'u :: Unqueue' pull input 0")
    );
    assert!(
        compile("q :: Queue; Idle -> q; Idle -> q; q -> Unqueue -> Discard; q -> Unqueue -> Discard").is_ok()
    );
}

#[test]
fn port_ranges() {
    assert_eq!(
        errors("d :: Discard; Idle -> [3] d").lines().next(),
        Some("config:1: 'd :: Discard' has no input 3")
    );
    assert_eq!(
        errors("n :: Null; t :: Tee; t [1] -> Discard"),
        "config:1: 'n :: Null' input 0 unused
config:1: 't :: Tee' input 0 unused
config:1: 'n :: Null' output 0 unused
config:1: 't :: Tee' output 0 unused
"
    );
    let text = "h :: Hub; Idle -> h; Idle -> [1] h; h -> Discard; h [1] -> Discard; h [2] -> Discard";
    assert_eq!(errors(text), "config:1: 'h :: Hub' input 2 unused\n");
}

#[test]
fn one_kind_of_errors_is_told_at_a_time() {
    let (beyond, mixed, open) =
        ("d :: Discard; Idle -> [1] d;\n", "q :: Queue -> c :: Classifier -> Discard;\n", "t :: Tee");
    assert_eq!(errors(&format!("{beyond}{mixed}{open}")), "config:1: 'd :: Discard' has no input 1\n");
    assert_eq!(
        errors(&format!("{mixed}{open}")),
        "'q :: Queue' pull output 0 connected to 'c :: Classifier' push input 0\n"
    );
    assert_eq!(errors(open), "config:1: 't :: Tee' input 0 unused\nconfig:1: 't :: Tee' output 0 unused\n");
}

#[test]
fn malformed_codes_of_a_class_are_errors() {
    let classes = ClassList(vec![ClassInfo::new("X", "1/q", "a/a")]);
    let failed = causeway_lang::compile("c", b"X", &NoLibraries, &classes, &[]).unwrap_err();
    assert_eq!(failed.diagnostics.messages(), ["class 'X' has a malformed port, processing or flow code"]);
}
