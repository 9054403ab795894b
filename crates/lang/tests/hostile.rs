//! No text does harm, and what succeeds keeps its promises.

mod common;
use causeway_lang::render::{human, plain};
use causeway_lang::{NoLibraries, Quotes, addresses, args, compile, print, values};
use proptest::prelude::*;
use std::collections::HashSet;

/// Everything that can be done with a text.
fn exercise(bytes: &[u8]) {
    match compile("config", bytes, &NoLibraries, &common::classes(), &[]) {
        Err(failed) => {
            assert!(failed.diagnostics.has_errors());
            plain(&failed.diagnostics, &failed.sources, Quotes::Utf8);
            human(&failed.diagnostics, &failed.sources, Quotes::Ascii);
        }
        Ok(compiled) => {
            let graph = &compiled.graph;
            let names: HashSet<&str> = graph.elements.iter().map(|e| e.name.as_str()).collect();
            assert_eq!(names.len(), graph.elements.len(), "names are unique");
            for c in &graph.connections {
                assert!(c.from.port < compiled.checked.outputs(c.from.element).len());
                assert!(c.to.port < compiled.checked.inputs(c.to.element).len());
                let (from, to) = (
                    compiled.checked.outputs(c.from.element)[c.from.port],
                    compiled.checked.inputs(c.to.element)[c.to.port],
                );
                assert_eq!(from, to, "the ends of a connection agree");
            }
            print::graph(graph);
        }
    }
}

/// Pieces of the language in any order.
fn soup() -> impl Strategy<Value = String> {
    let pieces = vec![
        "->",
        "=>",
        "::",
        "||",
        "...",
        "|",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        "-",
        "$x",
        "$",
        "${x",
        "0",
        "1",
        "17",
        "a",
        "b",
        "a/b",
        "Idle",
        "Discard",
        "Queue",
        "Tee",
        "Null",
        "input",
        "output",
        "elementclass",
        "require",
        "define",
        "provide",
        "library",
        "package known",
        "compact_config",
        "K $k",
        "__REST__ $r",
        "\n",
        "\r\n",
        "# 5 \"f\"",
        "#line 7",
        "//",
        "/*",
        "*/",
        "\"",
        "'",
        "\\",
        "\\<",
        ">",
        "\\\"",
        "é",
        "\u{2028}",
        "\0",
        "65535",
        "99999999999",
        "ö(",
        "@1",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..60)
        .prop_flat_map(|list| prop::sample::select(vec!["", " "]).prop_map(move |glue| list.join(glue)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn language_soup(text in soup()) {
        exercise(text.as_bytes());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise(&bytes);
        let mut archive = b"!<arch>\n".to_vec();
        archive.extend(&bytes);
        exercise(&archive);
    }

    #[test]
    fn argument_readers_take_any_text(text in prop_oneof![soup(), any::<String>(), "[-+0-9a-fA-FxX_.:/ eEmnskKMGbBp]{0,20}"]) {
        for argument in args::split_args(&text) {
            prop_assert_eq!(argument.trim(), argument.as_str());
            args::split_words(&argument);
            args::first_word(&argument);
            args::keyword(&argument);
            args::unquote(&argument);
        }
        let _ = values::boolean(&text);
        let _ = values::integer(&text, -5, 5);
        let _ = values::real(&text);
        let _ = values::time_ns(&text, values::SECOND_NS);
        let _ = values::bandwidth_bytes_per_s(&text);
        let _ = values::string(&text);
        let _ = values::word(&text);
        let _ = values::filename(&text, Some("/home"));
        let _ = addresses::ip_prefix(&text, true);
        let _ = addresses::ip6_prefix(&text, true);
        let _ = addresses::ether(&text);
        let _ = addresses::port(&text, addresses::Transport::Tcp);
        let _ = addresses::protocol(&text);
    }

    #[test]
    fn quoting_is_undone(text in any::<String>()) {
        prop_assert_eq!(args::unquote(&args::quote(&text)), text.clone());
        let words = [args::quote(&text), "x".to_string()];
        prop_assert_eq!(args::split_args(&args::join_args(&words)), words);
    }

    #[test]
    fn integers_agree_with_the_standard_library(number in any::<i64>()) {
        let read = |text: String| values::integer(&text, i64::MIN.into(), i64::MAX.into());
        prop_assert_eq!(read(format!("{number}")), Ok(i128::from(number)));
        if number >= 0 {
            prop_assert_eq!(read(format!("{number:#x}")), Ok(i128::from(number)));
            prop_assert_eq!(read(format!("0{number:o}")), Ok(i128::from(number)));
            prop_assert_eq!(read(format!("{number:#b}")), Ok(i128::from(number)));
        }
    }
}

#[test]
fn much_of_everything() {
    let many = |piece: &str| exercise(piece.repeat(5_000).as_bytes());
    for piece in [
        "(", "{", "[", "a->", "a,", "->", "\"", "/*", "\\<", "$", "${", "a::", "||", "...", "# 1\n", "((",
        "{|", ")", "}",
    ] {
        many(piece);
        many(&format!("x :: {{ {piece}"));
    }
    exercise("a [0-65535] => [0-65535] b, ".repeat(500).as_bytes());
    exercise(format!("i :: Idle; {}", "i [0-65535] => [0-65535] i; ".repeat(50)).as_bytes());
    exercise(format!("define({})", "$x $x$x, ".repeat(1000)).as_bytes());
    exercise(format!("Idle {} -> Discard", "-> (->)".repeat(3000)).as_bytes());
    exercise(format!("Idle {} -> Discard", "-> {->}".repeat(3000)).as_bytes());
    exercise("g :: {->}; g -> g; Idle -> (->) -> g".as_bytes());
}
