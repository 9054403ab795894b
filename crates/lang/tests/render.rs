//! Diagnostics as text.

mod common;
use causeway_lang::render::{human, plain};
use causeway_lang::{Diagnostic, Diagnostics, NoLibraries, Quotes};
use common::compile;

#[test]
fn people_see_the_line_and_a_hint() {
    let failed = compile("// ä comment\nIdle -> Qeuue(5)\n     -> Discard").unwrap_err();
    assert_eq!(
        human(&failed.diagnostics, &failed.sources, Quotes::Utf8),
        "config:2:9: error: undeclared element ‘Qeuue’
  | Idle -> Qeuue(5)
  |         ^^^^^
  hint: did you mean ‘Queue’?
"
    );
}

#[test]
fn people_see_other_places_too() {
    let failed = compile("i :: InfiniteSource;\ni -> Discard;\ni -> Discard;").unwrap_err();
    assert_eq!(
        human(&failed.diagnostics, &failed.sources, Quotes::Ascii),
        "config:1:1: error: illegal reuse of 'i :: InfiniteSource' push output 0
  | i :: InfiniteSource;
  | ^
config:2:3: note: connected here
  | i -> Discard;
  |   ^^
config:3:3: note: and here
  | i -> Discard;
  |   ^^
  hint: use a Tee to send copies to several elements
"
    );
}

#[test]
fn details_stand_under_one_context_line() {
    let program = causeway_lang::parse("f.click", "a :: Print(1);\nb :: Print", &NoLibraries);
    let flat = causeway_lang::flatten(&program, &common::classes(), &[]);
    let span = |i: usize| flat.graph.elements[i].span;
    let context = |i: usize| format!("While configuring '{}':", flat.graph.elements[i].described());
    let mut list = Diagnostics::new();
    list.push(Diagnostic::error(span(0), "LENGTH: invalid number").context(context(0)));
    list.push(Diagnostic::warning(span(0), "strange").context(context(0)));
    list.push(Diagnostic::error(span(1), "too many arguments").context(context(1)));
    list.push(Diagnostic::general("Router could not be initialized!"));
    assert_eq!(
        plain(&list, &program.sources, Quotes::Ascii),
        "f.click:1: While configuring 'a :: Print':
  LENGTH: invalid number
  warning: strange
f.click:2: While configuring 'b :: Print':
  too many arguments
Router could not be initialized!
"
    );
    assert_eq!(
        human(&list, &program.sources, Quotes::Ascii).lines().take(4).collect::<Vec<_>>(),
        [
            "f.click:1:1: error: While configuring 'a :: Print':",
            "  LENGTH: invalid number",
            "  | a :: Print(1);",
            "  | ^"
        ]
    );
}

#[test]
fn long_lines_are_cut_and_floods_are_counted() {
    let text = format!("{}X", "Idle -> Discard; ".repeat(100));
    let failed = compile(&text).unwrap_err();
    let shown = human(&failed.diagnostics, &failed.sources, Quotes::Ascii);
    assert!(shown.lines().all(|l| l.chars().count() < 200), "{shown}");
    assert!(shown.contains('^'));

    let failed = compile(&"}".repeat(1500)).unwrap_err();
    assert_eq!(failed.diagnostics.error_count(), 1500);
    let shown = human(&failed.diagnostics, &failed.sources, Quotes::Ascii);
    assert!(shown.ends_with("1480 further errors are not shown\n"), "{shown}");
    assert_eq!(shown.matches(": error: ").count(), 20);
}

#[test]
fn directives_change_what_is_named_but_not_what_is_shown() {
    let failed = compile("Idle;\n# 9 \"x.click\"\n  a -> Discard").unwrap_err();
    assert_eq!(
        human(&failed.diagnostics, &failed.sources, Quotes::Ascii),
        "x.click:9:3: error: undeclared element 'a'\n  |   a -> Discard\n  |   ^\n"
    );
}
