//! Errors about names: undeclared, redeclared, unknown, misplaced; and what is proposed instead.

mod common;
use common::{compile, errors};

/// The messages and hints of a wrong text.
fn hints(text: &str) -> Vec<(String, String)> {
    let failed = compile(text).expect_err(text);
    let pair = |d: &causeway_lang::Diagnostic| (d.message.clone(), d.hint.clone().unwrap_or_default());
    failed.diagnostics.iter().map(pair).collect()
}

#[test]
fn undeclared_elements() {
    assert_eq!(
        errors("Idle -> X; Idle -> Y"),
        "config:1: undeclared element 'X'\nconfig:1: undeclared element 'Y'\n"
    );
    assert_eq!(errors("X(5) -> Discard"), "config:1: undeclared element 'X'\n");
    assert_eq!(hints("counter :: Counter; Idle -> conter -> Discard")[0].1, "did you mean 'counter'?");
    assert_eq!(hints("Idle -> Countr -> Discard")[0].1, "did you mean 'Counter'?");
}

#[test]
fn a_declaration_that_comes_too_late() {
    let failed = compile("Idle -> d;\nd :: Discard;").unwrap_err();
    let again = "class 'd' used as element name";
    assert_eq!(failed.diagnostics.messages(), ["undeclared element 'd'", again]);
    let first = failed.diagnostics.iter().next().unwrap();
    assert_eq!(
        first.hint.as_deref(),
        Some("an element must be declared before it is used, or where it is first used")
    );
    let place = first.notes[0].span.map(|s| failed.sources.landmark(s).short());
    assert_eq!(place.as_deref(), Some("config:2"));
    let human =
        causeway_lang::render::human(&failed.diagnostics, &failed.sources, causeway_lang::Quotes::Ascii);
    assert!(
        human.contains("undeclared element") && !human.contains(again) && !human.contains("not shown"),
        "{human}"
    );
    // Each declaration is one that has come too late, as far as the name of the stand-in reaches.
    assert_eq!(
        errors(
            "Idle -> d; d :: Discard; elementclass C { d :: Null; input -> d -> output }; Idle -> d :: Null -> Discard"
        ),
        format!("config:1: undeclared element 'd'\n{}", format!("config:1: {again}\n").repeat(3))
    );
    assert_eq!(
        errors(
            "elementclass C { input -> x -> output; x :: Counter } Idle -> C -> Discard; x :: Idle -> Discard"
        ),
        "config:1: undeclared element 'x'\nconfig:1: class 'x' used as element name\n"
    );
}

#[test]
fn unknown_classes_are_reported_once() {
    assert_eq!(
        hints("a :: Qeuue; b :: Qeuue; Qeuue -> Discard"),
        [("unknown element class 'Qeuue'".to_string(), "did you mean 'Queue'?".to_string())]
    );
}

#[test]
fn redeclarations() {
    assert_eq!(
        errors("a :: Idle;\na :: Discard; input :: Idle; { input :: Idle }"),
        "config:2: redeclaration of element 'a'
config:1: element 'a' previously declared here
config:2: redeclaration of element 'input'
"
    );
    assert_eq!(errors("Queue :: Discard"), "config:1: class 'Queue' used as element name\n");
    assert_eq!(errors("a :: Idle; a(5)"), "config:1: configuration string ignored on element reference\n");
    assert_eq!(
        errors("c/x :: Message; c :: { x :: Message }").lines().next(),
        Some("config:1: redeclaration of element 'c/x'")
    );
}

#[test]
fn all_digit_names() {
    assert_eq!(errors("1 :: Message"), "config:1: element name '1' has all-digit component\n");
    assert_eq!(errors("a/22/b :: Message"), "config:1: element name 'a/22/b' has all-digit component\n");
    assert!(compile("1x :: Message").is_ok());
}

#[test]
fn connections_between_lists() {
    let define = "a, b, c :: Idle; x, y :: Discard; ";
    let error = |text: &str| errors(&format!("{define}{text}")).lines().next().unwrap_or("").to_string();
    assert_eq!(error("a, b -> x, y"), "config:1: syntax error: many-to-many connections require '=>'");
    assert_eq!(error("a, b, c => x, y"), "config:1: connection mismatch: 3 outputs connected to 2 inputs");
    assert_eq!(
        error("a [0,1,2,] => x, y"),
        "config:1: connection mismatch: 3 or more outputs connected to 2 inputs"
    );
    assert_eq!(
        error("a, b => [0,1,2,] c"),
        "config:1: connection mismatch: 2 outputs connected to 3 or more inputs"
    );
    assert_eq!(error("a [0,] => [0,] b"), "config:1: at most one expandable port allowed per connection");
}

#[test]
fn pseudo_elements_have_one_side() {
    let text = "elementclass X { Idle -> input; output -> Discard } X";
    assert_eq!(
        errors(text),
        "config:1: 'X' pseudoelement 'input' may only be used as output
config:1: 'X' pseudoelement 'output' may only be used as input
"
    );
    assert_eq!(
        errors("Idle -> ([1] -> Discard)").lines().next(),
        Some("config:1: '<anonymous group>' input 0 missing")
    );
}
