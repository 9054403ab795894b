//! A few classes, and short ways to compile texts with them.
#![allow(dead_code)]

use causeway_lang::{ClassInfo, ClassList, Classes, Compiled, Failed, Graph, NoLibraries};

/// The classes that the tests' configurations use, with a package and an alias.
pub struct TestClasses(ClassList);

impl Classes for TestClasses {
    fn get(&self, name: &str) -> Option<ClassInfo> {
        self.0.get(if name == "FullNoteQueue" { "Queue" } else { name })
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    fn has_package(&self, name: &str) -> bool {
        name == "known"
    }
}

pub fn classes() -> TestClasses {
    let class = ClassInfo::new;
    TestClasses(ClassList(vec![
        class("Idle", "-/-", "a/a").with_flow("x/y"),
        class("Discard", "1/0", "a/a"),
        class("InfiniteSource", "0/1", "a/a"),
        class("RatedSource", "0/1", "a/a"),
        class("Queue", "1/1-2", "h/lh").with_flow("x/x"),
        class("Unqueue", "1/1", "l/h"),
        class("Tee", "1/1-", "h/h"),
        class("Null", "1/1", "a/a"),
        class("Paint", "1/1", "a/a"),
        class("Print", "1/1", "a/a"),
        class("Counter", "1/1", "a/a"),
        class("Classifier", "1/-", "h/h"),
        class("CheckIPHeader", "1/1-2", "a/ah"),
        class("RoundRobinSched", "-/1", "l/l"),
        class("Hub", "1-/=", "h/h").with_flow("#/[^#]"),
        class("AddressInfo", "0/0", "a/a"),
        class("Message", "0/0", "a/a"),
        class("ToDevice", "1/0-2", "l/h"),
        class("FromDevice", "0/1-2", "h/h"),
        class("ARPQuerier", "2/1-2", "h/h").with_flow("xy/x"),
        class("Script", "-/-", "ah/ah"),
        class("Bidi", "2/2", "a/a").with_flow("#/#"),
    ]))
}

pub fn compile(text: &str) -> Result<Compiled, Box<Failed>> {
    causeway_lang::compile("config", text.as_bytes(), &NoLibraries, &classes(), &[])
}

pub fn graph(text: &str) -> Graph {
    match compile(text) {
        Ok(compiled) => compiled.graph,
        Err(failed) => panic!("{text}\n{}", plain(&failed)),
    }
}

/// The flat graph of a text that need not pass the checks.
pub fn flat(text: &str) -> Graph {
    let program = causeway_lang::parse("config", text, &NoLibraries);
    let flat = causeway_lang::flatten(&program, &classes(), &[]);
    let mut all = program.diagnostics.clone();
    all.append(flat.diagnostics);
    assert!(all.is_empty(), "{text}\n{:?}", all.messages());
    flat.graph
}

pub fn plain(failed: &Failed) -> String {
    causeway_lang::render::plain(&failed.diagnostics, &failed.sources, causeway_lang::Quotes::Ascii)
}

/// The plain rendering of the errors of a text.
pub fn errors(text: &str) -> String {
    plain(&compile(text).expect_err(text))
}

/// `name :: Class(config)` of every element.
pub fn elements(graph: &Graph) -> Vec<String> {
    let show = |e: &causeway_lang::ElementDecl| match e.config.as_str() {
        "" => e.described(),
        config => format!("{}({config})", e.described()),
    };
    graph.elements.iter().map(show).collect()
}

/// `a [0] -> [1] b` of every connection.
pub fn connections(graph: &Graph) -> Vec<String> {
    let name = |e: usize| &graph.elements[e].name;
    let show = |c: &causeway_lang::Connection| {
        format!("{} [{}] -> [{}] {}", name(c.from.element), c.from.port, c.to.port, name(c.to.element))
    };
    graph.connections.iter().map(show).collect()
}
