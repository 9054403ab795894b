//! What the lexer and the parser accept, and what they say about the rest.

mod common;
use causeway_lang::{LoadedFile, NoLibraries, parse, parse_bytes};
use common::{elements, errors, flat, plain};

/// The plain rendering of what the parser alone says.
fn syntax(text: &str) -> String {
    let program = parse("config", text, &NoLibraries);
    causeway_lang::render::plain(&program.diagnostics, &program.sources, causeway_lang::Quotes::Ascii)
}

#[test]
fn every_error_is_reported() {
    let text = "a : Idle;\nIdle -> ;\nq :: ;\nIdle [x] -> Discard;\n}\nrequire(a b c)\ndefine(x 1)";
    assert_eq!(
        syntax(text),
        "config:1: syntax error near ':'
config:2: syntax error near ';'
config:3: missing element type in declaration
config:4: syntax error: port number should be integer
config:5: syntax error near '}'
config:6: bad requirement: too many words
config:7: bad 'define' declaration: not a variable
"
    );
}

#[test]
fn ports() {
    assert_eq!(syntax("Idle [0 -> Discard"), "config:1: expected ']'\n");
    assert_eq!(syntax("Idle [-] -> Discard"), "config:1: syntax error: expected port number\n");
    assert_eq!(syntax("Idle [3-1] -> Discard"), "config:1: syntax error: port range goes backwards\n");
    assert_eq!(syntax("Idle [70000] -> Discard"), "config:1: port number too large, bound 65535\n");
    assert_eq!(
        errors("[1] Idle -> Discard [2]").lines().collect::<Vec<_>>(),
        ["config:1: input ports ignored at start of chain", "config:1: output ports ignored at end of chain"]
    );
    assert_eq!(syntax("[1] -> Discard").lines().next(), Some("config:1: stranded port ignored"));
}

#[test]
fn unclosed_things() {
    assert_eq!(syntax("\nIdle -> Print(a(b)"), "config:2: expected ')'\n");
    assert_eq!(syntax("x :: { input -> output"), "config:1: expected '}'\n");
    assert_eq!(syntax("Idle -> ( -> Null ->"), "config:1: expected ')'\n");
    assert_eq!(syntax("elementclass { Idle }"), "config:1: expected element type name\n");
    assert_eq!(syntax("a, b ::"), "config:1: missing element type in declaration\n");
    assert_eq!(syntax("Idle\n  /* open"), "config:2: warning: comment is never closed\n");
    assert_eq!(
        syntax("Print(a /* open)").lines().collect::<Vec<_>>(),
        ["config:1: expected ')'", "config:1: warning: comment is never closed"]
    );
}

#[test]
fn implied_elements_stand_only_at_the_ends_of_lists() {
    assert_eq!(syntax("{ , Null -> }").lines().next(), Some("config:1: syntax error near ','"));
    assert_eq!(syntax("{ [0], [1] => Null, Null => [0], [1] }"), "");
    assert_eq!(syntax("{ -> Null -> -> Null }").lines().next(), Some("config:1: syntax error near '->'"));
}

#[test]
fn formals() {
    assert_eq!(
        syntax("elementclass X { $a $b | Idle }").lines().next(),
        Some("config:1: expected ',' or '|'")
    );
    assert_eq!(syntax("elementclass X { $a, Idle }").lines().next(), Some("config:1: expected variable"));
    assert_eq!(
        errors(
            "elementclass X { K $a, $b | Message } elementclass Y { $a, $a | Message }
                elementclass Z { K $a, K $b | define($a 1) Message }"
        ),
        "config:1: compound element parameters out of order
config:1: (The correct order is '[positional], [keywords], [__REST__]'.)
config:1: parameter '$a' multiply defined
config:2: repeated keyword parameter 'K' in compound element
config:2: parameter '$a' multiply defined
"
    );
    assert_eq!(elements(&flat("elementclass X { | Message(1) } X")), ["X@1/Message@1 :: Message(1)"]);
}

#[test]
fn nesting_is_limited() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(5000), close.repeat(5000));
    assert_eq!(syntax(&deep("x :: {", "}")), "config:1: maximum compound element nesting depth exceeded\n");
    assert!(syntax(&deep("(", ")")).contains("maximum element group nesting depth exceeded"));
    assert_eq!(
        syntax(&deep("x :: {", "}").replacen("x :: {", "y :: {", 4951).replacen('}', " } ", 1))
            .lines()
            .count(),
        1
    );
}

#[test]
fn line_directives() {
    let text = "a :: Nope1;\n# 10 \"other.click\"\nb :: Nope2(\n#line 40\n)\nc :: Nope3;\n# 7 \"\"\nd :: Nope4\n#pragma";
    assert_eq!(
        errors(text),
        "config:9: unknown preprocessor directive
config:1: unknown element class 'Nope1'
other.click:10: unknown element class 'Nope2'
other.click:41: unknown element class 'Nope3'
config:7: unknown element class 'Nope4'
"
        .replace("config:9", "config:8")
    );
}

#[test]
fn a_directive_numbers_the_line_after_it_from_its_first_column() {
    for end in ["\n", "\r\n", "\r"] {
        assert_eq!(
            errors(&format!("Idle{end}# 30{end}x;{end}y;")),
            "config:30: undeclared element 'x'\nconfig:31: undeclared element 'y'\n"
        );
    }
}

#[test]
fn all_line_ends_count() {
    assert_eq!(
        errors("Idle;\r\nIdle;\r\n\rx :: Nope").lines().next(),
        Some("config:4: unknown element class 'Nope'")
    );
}

#[test]
fn a_landmark_name_with_a_colon_gets_the_bare_line() {
    let program = parse("line ", "}", &NoLibraries);
    let text =
        causeway_lang::render::plain(&program.diagnostics, &program.sources, causeway_lang::Quotes::Utf8);
    assert_eq!(text, "line 1: syntax error near ‘}’\n");
}

#[test]
fn libraries_are_read_once() {
    let loader = |name: &str, from: &str| {
        let text = match name {
            "a.click" => "require(library b.click); elementclass A { input -> B -> output }",
            "b.click" => "elementclass B Null; x :: Message; require(library a.click)",
            "bad.click" => "\n}",
            _ => return None,
        };
        Some(LoadedFile { name: format!("{from}>{name}").replace("config>", ""), text: text.into() })
    };
    // The loader resolves names; here a name depends on the requiring file unless that is the main one.
    let text = "require(library b.click); require(library b.click); Idle -> A -> Discard";
    let compiled = causeway_lang::compile(
        "config",
        text.as_bytes(),
        &|n: &str, _: &str| loader(n, "config"),
        &common::classes(),
        &[],
    );
    let graph = match compiled {
        Ok(compiled) => compiled.graph,
        Err(failed) => panic!("{}", plain(&failed)),
    };
    assert_eq!(elements(&graph)[..2], ["x :: Message", "Idle@2 :: Idle"]);

    let program = parse(
        "main",
        "require(library bad.click, library nope.click)\n x :: { require(library a) } require(library late)",
        &loader,
    );
    let text =
        causeway_lang::render::plain(&program.diagnostics, &program.sources, causeway_lang::Quotes::Ascii);
    assert_eq!(
        text,
        "main>bad.click:2: syntax error near '}'
main:1: library 'nope.click' not found in CLICKPATH/conf
main:2: 'require library' must be used at file scope
main:2: library 'late' not found in CLICKPATH/conf
"
    );
}

#[test]
fn endless_libraries_end() {
    let loader = |name: &str, _: &str| {
        Some(LoadedFile { name: name.into(), text: format!("require(library {name}x)") })
    };
    let program = parse("main", "require(library x)", &loader);
    assert_eq!(program.diagnostics.messages(), ["maximum library nesting depth exceeded"]);
}

#[test]
fn requirements() {
    let g = flat("require(package known, compact_config) require(known)");
    let list: Vec<_> = g.requirements.iter().map(|r| (r.kind.as_str(), r.name.as_str())).collect();
    assert_eq!(list, [("package", "known"), ("compact_config", ""), ("package", "known")]);
    assert_eq!(
        errors("require(foo) require(widget x)"),
        "requirement 'foo' not available\nrequirement 'widget' not available\n"
    );
}

#[test]
fn archives() {
    let bytes = b"!<arch>\nconfig          0           0     0     644     6         `\nIdle;\n";
    let program = parse_bytes("x", bytes, &NoLibraries);
    assert_eq!(program.statements.len(), 1);
    let program = parse_bytes("x", &bytes[..30], &NoLibraries);
    assert_eq!(program.diagnostics.messages(), ["x: archive is truncated"]);
}
