//! The tools that read configurations and write others, as commands and under Click's names.
//!
//! They do not insist on classes that are known: what they are given may be for another router.

mod align;
mod check;
mod combine;
mod flatten;
mod pretty;
mod undead;
mod xform;

use crate::cli::{
    AlignArgs, ClickCheckArgs, CombineArgs, FlattenArgs, PrettyArgs, TransformArgs, UncombineArgs,
    UndeadArgs, XformArgs,
};
use crate::explained::Explained;
use crate::load::{self, Source};
use crate::logger::{self, answer};
use crate::output;
use anyhow::{Context, Result};
use causeway_engine::Library;
use causeway_lang::ast::Stmt;
use causeway_lang::render::{self, Quotes};
use causeway_lang::{
    ClassInfo, Classes, Diagnostics, Graph, Program, Sources, flatten as flatten_program, print,
};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

pub use align::align;
pub use combine::{combine, uncombine};
pub use flatten::flatten;
pub use pretty::pretty;
pub use undead::undead;
pub use xform::xform;

/// A tool by Click's name.
struct Tool {
    name: &'static str,
    about: &'static str,
    augment: fn(Command) -> Command,
    run: fn(&ArgMatches) -> Result<ExitCode, clap::Error>,
}

/// Reads a tool's arguments and does what they say; errors of the tool itself are answered here.
fn run_with<A: FromArgMatches>(
    matches: &ArgMatches,
    run: fn(&A) -> Result<ExitCode>,
) -> Result<ExitCode, clap::Error> {
    let outcome = run(&A::from_arg_matches(matches)?);
    Ok(outcome
        .unwrap_or_else(|e| if output::is_closed(&e) { ExitCode::SUCCESS } else { fail(format!("{e:#}\n")) }))
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "click-flatten",
        about: "Replace compound elements by their members",
        augment: FlattenArgs::augment_args,
        run: |m| run_with(m, flatten),
    },
    Tool {
        name: "click-check",
        about: "Check a configuration",
        augment: ClickCheckArgs::augment_args,
        run: |m| run_with(m, check::check),
    },
    Tool {
        name: "click-undead",
        about: "Remove dead elements",
        augment: UndeadArgs::augment_args,
        run: |m| run_with(m, undead),
    },
    Tool {
        name: "click-xform",
        about: "Replace patterns of elements by others",
        augment: XformArgs::augment_args,
        run: |m| run_with(m, xform),
    },
    Tool {
        name: "click-combine",
        about: "Join routers at their devices",
        augment: CombineArgs::augment_args,
        run: |m| run_with(m, combine),
    },
    Tool {
        name: "click-uncombine",
        about: "Take a router out of joined ones",
        augment: UncombineArgs::augment_args,
        run: |m| run_with(m, uncombine),
    },
    Tool {
        name: "click-align",
        about: "Nothing: no alignment is needed",
        augment: AlignArgs::augment_args,
        run: |m| run_with(m, align),
    },
    Tool {
        name: "click-pretty",
        about: "Show a configuration as a page of HTML",
        augment: PrettyArgs::augment_args,
        run: |m| run_with(m, pretty),
    },
];

/// Runs as the tool of this name, if there is such a tool.
pub fn main(called: &str, args: &[String]) -> Option<ExitCode> {
    let tool = TOOLS.iter().find(|t| t.name == called)?;
    logger::set_style(logger::Style::Click);
    let version =
        Arg::new("version").short('v').long("version").action(ArgAction::Version).help("Print version");
    let command = Command::new(tool.name)
        .about(tool.about)
        .version(concat!("(Causeway) ", env!("CARGO_PKG_VERSION")))
        .disable_version_flag(true)
        .infer_long_args(true);
    let command = (tool.augment)(command.arg(version));
    let done = command.try_get_matches_from(args).and_then(|matches| (tool.run)(&matches));
    Some(done.unwrap_or_else(|e| match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Whoever reads it may have had enough.
            let _ = output::print(&e);
            ExitCode::SUCCESS
        }
        _ => {
            let text = e.to_string();
            let why = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            fail(format!("{called}: {why}\nTry '{called} --help' for more information.\n"))
        }
    }))
}

fn fail(why: impl Display) -> ExitCode {
    answer(&why.to_string());
    ExitCode::FAILURE
}

/// The classes of a library, and any other.
struct AnyClass(Library);

impl Classes for AnyClass {
    fn get(&self, name: &str) -> Option<ClassInfo> {
        Classes::get(&self.0, name)
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn has_package(&self, _name: &str) -> bool {
        true
    }
}

/// A configuration without compound elements.
struct Flat {
    sources: Sources,
    graph: Graph,
    /// Definitions outside of compound elements, if those were kept.
    defines: Vec<(String, String)>,
}

impl Flat {
    fn text(&self, graph: &Graph) -> String {
        print::graph_with_lines(graph, &self.sources, &self.defines)
    }
}

/// Where a configuration comes from, by operands and options.
fn source(
    operands: &[String],
    file: Option<&str>,
    text: Option<&str>,
) -> Result<(Source, Params), Explained> {
    let is_name = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (mut sources, mut params) = (vec![], vec![]);
    for operand in operands {
        match operand.split_once('=').filter(|(name, _)| is_name(name)) {
            Some((name, value)) => params.push((name.to_owned(), value.to_owned())),
            None => sources.push(from_name(operand)),
        }
    }
    sources.extend(file.map(from_name));
    sources.extend(text.map(|text| Source::Text("config", text.to_owned())));
    match sources.len() {
        0 | 1 => Ok((sources.pop().unwrap_or(Source::Stdin), params)),
        _ => Err(Explained::from("router configuration specified twice\n")),
    }
}

/// Definitions of the command line.
type Params = Vec<(String, String)>;

fn from_name(name: &str) -> Source {
    if name == "-" { Source::Stdin } else { Source::File(name.into()) }
}

/// Reads a configuration; the error is the complete text for the user. Variables outside of compound elements stay as
/// they are unless `expand` is set.
fn read(source: &Source, params: &[(String, String)], expand: bool) -> Result<Flat, Explained> {
    let bytes = load::read(source)?;
    read_bytes(&source.name(), &bytes, params, expand)
}

fn read_bytes(
    name: &str,
    bytes: &[u8],
    params: &[(String, String)],
    expand: bool,
) -> Result<Flat, Explained> {
    let mut program = causeway_lang::parse_bytes(name, bytes, &load::find_library);
    let classes = AnyClass(causeway_elements::library());
    let whole = flatten_program(&program, &classes, params);
    let mut all = std::mem::take(&mut program.diagnostics);
    all.append(whole.diagnostics);
    say(&all, &program.sources)?;
    if program.statements.is_empty() {
        logger::answer(&format!("{name}: warning: empty configuration\n"));
    }
    if expand {
        return Ok(Flat { sources: program.sources, graph: whole.graph, defines: vec![] });
    }
    let mut defines = params.to_vec();
    take_defines(&mut program.statements, &mut defines);
    let kept = flatten_program(&program, &classes, &[]);
    let Program { sources, .. } = program;
    Ok(Flat { sources, graph: kept.graph, defines })
}

/// Takes the definitions out of a file's statements. Those of the command line come first and win.
fn take_defines(statements: &mut Vec<Stmt>, defines: &mut Params) {
    statements.retain_mut(|statement| match statement {
        Stmt::Define(d) => {
            if !defines.iter().any(|(name, _)| *name == d.name) {
                defines.push((d.name.clone(), d.value.clone()));
            }
            false
        }
        Stmt::Library(library) => {
            take_defines(&mut library.body, defines);
            true
        }
        _ => true,
    });
}

/// Says what was found: the errors are the error.
fn say(diagnostics: &Diagnostics, sources: &Sources) -> Result<(), Explained> {
    let text = render::plain(diagnostics, sources, Quotes::Ascii);
    if diagnostics.has_errors() {
        return Err(text.into());
    }
    logger::answer(&text);
    Ok(())
}

/// Writes the result to a file, or to standard output.
fn write(to: Option<&Path>, bytes: &[u8]) -> Result<ExitCode> {
    match to.filter(|path| path.as_os_str() != "-") {
        Some(path) => std::fs::write(path, bytes).with_context(|| path.display().to_string())?,
        None => output::print_bytes(bytes)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the configuration of a tool, does something with it, and writes what comes of it.
fn transform(
    args: &TransformArgs,
    expand: bool,
    work: impl FnOnce(&Source, &Flat) -> Result<String, Explained>,
) -> Result<ExitCode> {
    if let Some(path) = &args.clickpath {
        load::set_library_path(path.clone());
    }
    let text = source(&args.operands, args.file.as_deref(), args.expression.as_deref())
        .and_then(|(source, params)| work(&source, &read(&source, &params, expand)?));
    match text {
        Ok(text) => write(args.output.as_deref(), text.as_bytes()),
        Err(why) => Ok(fail(why)),
    }
}
