//! The Click language: from text to a checked graph of elements.
//!
//! Work goes in three phases, each of which reports all of its errors together:
//!
//! 1. [`parse()`] reads text into a tree ([`ast`]) and the libraries it requires through a [`Loader`]; the crate does
//!    no I/O. It knows no classes.
//! 2. [`flatten()`] resolves names against [`Classes`], binds parameters and variables, chooses overloads, and
//!    replaces compound elements and groups by their members. The result is a [`Graph`] with the names and the order
//!    of elements that Click gives them: `Class@N` for anonymous elements, `compound/inner` for members.
//! 3. [`check()`] settles how many ports every element has and whether each pushes or pulls, and finds ports that are
//!    unused, used twice or joined the wrong way round.
//!
//! [`compile`] does all three. [`transform`] makes other graphs of flat ones, for optimisers and tools. [`print`](mod@print) turns graphs and trees back into text, [`render`] turns diagnostics into
//! text for people or for scripts, and [`args`], [`values`] and [`addresses`] read the configuration strings of elements.
//!
//! ```
//! use causeway_lang::{ClassInfo, ClassList, NoLibraries, Processing, compile};
//!
//! let classes = ClassList(vec![
//!     ClassInfo::new("InfiniteSource", "0/1", "a"),
//!     ClassInfo::new("Queue", "1/1", "h/l"),
//!     ClassInfo::new("Discard", "1/0", "a"),
//! ]);
//! let text = b"InfiniteSource(LIMIT 5) -> q :: Queue -> Discard";
//! let router = compile("config", text, &NoLibraries, &classes, &[]).expect("no errors");
//! let names: Vec<&str> = router.graph.elements.iter().map(|e| e.name.as_str()).collect();
//! assert_eq!(names, ["InfiniteSource@1", "q", "Discard@3"]);
//! assert_eq!(router.checked.inputs(2), [Processing::Pull]);
//! ```
//!
//! Invariants: no text makes any function panic, recurse without bound or use more than a bounded multiple of memory
//! (nesting, numbers of elements, connections and ports, and the work of variables are all limited, with an error);
//! every diagnostic about a place carries its [`Span`]; a graph without errors names every element once, has no
//! connection twice, and every port index in it is one the element has.

#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::missing_errors_doc))]

pub mod addresses;
pub mod archive;
pub mod args;
pub mod ast;
mod chain;
mod check;
mod classes;
mod compound;
mod connect;
mod diag;
mod elaborate;
mod flatten;
pub mod flow;
mod graph;
mod lexer;
mod library;
mod overload;
mod parser;
pub mod ports;
pub mod print;
pub mod render;
mod source;
mod suggest;
pub mod transform;
mod tunnel;
pub mod values;
mod variables;

pub use ast::Requirement;
pub use chain::MAX_PORT;
pub use check::{Checked, check};
pub use classes::{ClassInfo, ClassList, Classes};
pub use diag::{Diagnostic, Diagnostics, Note, Of, Severity};
pub use flatten::{Flattened, flatten};
pub use graph::{Connection, ElementDecl, Graph, PortRef};
pub use library::{LoadedFile, Loader, NoLibraries};
pub use ports::Processing;
pub use render::Quotes;
pub use source::{FileId, Landmark, SourceFile, Sources, Span};
pub use suggest::{did_you_mean, nearest};
pub use variables::undefined;

/// A parsed configuration.
#[derive(Clone, Debug)]
pub struct Program {
    /// The texts that spans point into.
    pub sources: Sources,
    /// The tree.
    pub statements: Vec<ast::Stmt>,
    /// What was found wrong.
    pub diagnostics: Diagnostics,
}

/// Parses a configuration. `name` is what messages call it: a file name, or `config` for text from the command line.
pub fn parse(name: &str, text: &str, loader: &dyn Loader) -> Program {
    let mut program =
        Program { sources: Sources::default(), statements: vec![], diagnostics: Diagnostics::new() };
    if u32::try_from(text.len()).is_err() {
        program.diagnostics.push(Diagnostic::general(format!("{name}: configuration too large")));
        return program;
    }
    let file = program.sources.add(name, text);
    program.statements =
        parser::parse_file(&mut program.sources, &mut program.diagnostics, loader, &mut vec![], file, 0);
    program
}

/// As [`parse()`], from the bytes of a file, which may be an `ar` archive with a member `config`. Bytes that are not
/// UTF-8 are replaced.
pub fn parse_bytes(name: &str, bytes: &[u8], loader: &dyn Loader) -> Program {
    match archive::config_member(bytes) {
        None => parse(name, &String::from_utf8_lossy(bytes), loader),
        Some(Ok(member)) => parse(name, &String::from_utf8_lossy(member), loader),
        Some(Err(message)) => {
            let mut program = parse(name, "", loader);
            program.diagnostics.push(Diagnostic::general(format!("{name}: {message}")));
            program
        }
    }
}

/// A configuration that passed all checks.
#[derive(Debug)]
pub struct Compiled {
    /// The texts that spans point into.
    pub sources: Sources,
    /// The elements and connections.
    pub graph: Graph,
    /// The resolved ports.
    pub checked: Checked,
    /// Warnings.
    pub warnings: Diagnostics,
}

/// A configuration that did not.
#[derive(Debug)]
pub struct Failed {
    /// The texts that spans point into.
    pub sources: Sources,
    /// Errors and warnings.
    pub diagnostics: Diagnostics,
    /// Whether there is a graph, whose check failed.
    pub has_graph: bool,
}

/// Parses, flattens and checks a configuration file. Errors of the first two phases are reported together; the graph
/// is checked only if there are none.
///
/// # Errors
/// The text is wrong: all that is to be said of it, with what it warns of.
pub fn compile(
    name: &str,
    bytes: &[u8],
    loader: &dyn Loader,
    classes: &dyn Classes,
    params: &[(String, String)],
) -> Result<Compiled, Box<Failed>> {
    compile_with(name, bytes, loader, classes, params, |graph| graph)
}

/// As [`compile`]; the flat graph becomes what `rewrite` makes of it before it is checked.
///
/// # Errors
/// As of [`compile`].
pub fn compile_with(
    name: &str,
    bytes: &[u8],
    loader: &dyn Loader,
    classes: &dyn Classes,
    params: &[(String, String)],
    rewrite: impl FnOnce(Graph) -> Graph,
) -> Result<Compiled, Box<Failed>> {
    let program = parse_bytes(name, bytes, loader);
    let Flattened { graph, diagnostics } = flatten(&program, classes, params);
    let Program { sources, diagnostics: mut all, .. } = program;
    all.append(diagnostics);
    if all.has_errors() {
        return Err(Box::new(Failed { sources, diagnostics: all, has_graph: false }));
    }
    let graph = rewrite(graph);
    let mut checked = check(&graph, classes);
    all.append(std::mem::take(&mut checked.diagnostics));
    if all.has_errors() {
        return Err(Box::new(Failed { sources, diagnostics: all, has_graph: true }));
    }
    Ok(Compiled { sources, graph, checked, warnings: all })
}
