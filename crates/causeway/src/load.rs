//! From a file or a text to a plan, with errors that point into it.

use crate::explained::Explained;
use crate::logger;
use causeway_engine::{ElementWarning, Library, Plan, StartError};
use causeway_lang::render::{self, Quotes};
use causeway_lang::transform::Patterns;
use causeway_lang::{Compiled, Diagnostics, LoadedFile, Sources, print};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where a configuration comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// A text, by the name that messages call it.
    Text(&'static str, String),
}

impl Source {
    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Stdin => "<stdin>".to_owned(),
            Source::Text(name, _) => (*name).to_owned(),
        }
    }
}

/// Where libraries are looked for besides the requiring file's folder, when not along `CLICKPATH`.
static LIBRARY_PATH: OnceLock<String> = OnceLock::new();

/// Looks for libraries along `path` instead of `CLICKPATH`.
pub fn set_library_path(path: String) {
    // Given twice, the first counts.
    let _ = LIBRARY_PATH.set(path);
}

/// What is replaced in every configuration by what.
static PATTERNS: OnceLock<Patterns> = OnceLock::new();

/// Replaces the patterns of these files in every configuration that is loaded from now on. The error is the complete text
/// for the user.
pub fn set_patterns(files: &[PathBuf], library: &Library) -> Result<(), Explained> {
    let mut patterns = Patterns::default();
    for file in files {
        let source = Source::File(file.clone());
        let read = patterns.read(&source.name(), &read(&source)?, &find_library, library);
        read.map_err(|failed| show(&failed.diagnostics, &failed.sources, Style::Human))?;
    }
    // Given twice, the first counts.
    let _ = PATTERNS.set(patterns);
    Ok(())
}

/// How errors are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// With the source line, a caret and hints.
    Human,
    /// As Click shows them.
    Click,
}

/// A configuration that passed all checks.
pub struct Loaded {
    /// What the run-time needs.
    pub plan: Plan,
    /// The compiled configuration.
    pub compiled: Compiled,
    /// The text as it was given.
    pub text: String,
    style: Style,
}

/// Reads and compiles a configuration, and says what it warns of. The error is the complete text for the user.
pub fn load(
    source: &Source,
    library: &Library,
    params: &[(String, String)],
    style: Style,
) -> Result<Loaded, Explained> {
    let (loaded, mut warnings) = compile(source, library, params, style)?;
    if style == Style::Human {
        warnings += &unused(&loaded.text, &source.name(), params);
    }
    logger::answer(&warnings);
    Ok(loaded)
}

/// Warnings of definitions that a text has no use for: a misspelt one leaves the default, which may be another interface.
/// What a text requires may use them.
fn unused(text: &str, name: &str, params: &[(String, String)]) -> String {
    let is_used = |key: &str| [format!("${key}"), format!("${{{key}")].iter().any(|used| text.contains(used));
    let unused = params.iter().filter(|(key, _)| !text.contains("require") && !is_used(key));
    unused.map(|(key, _)| format!("{name}: warning: -D {key} is not used: there is no ${key}\n")).collect()
}

/// As [`load`], with the complete text of the warnings.
pub fn compile(
    source: &Source,
    library: &Library,
    params: &[(String, String)],
    style: Style,
) -> Result<(Loaded, String), Explained> {
    let (name, bytes) = (source.name(), read(source)?);
    let mut endless = false;
    let rewrite = |graph| match PATTERNS.get() {
        None => graph,
        Some(patterns) => {
            let rewritten = patterns.apply(&graph);
            endless = rewritten.endless;
            rewritten.graph
        }
    };
    let compiled = causeway_lang::compile_with(&name, &bytes, &find_library, library, params, rewrite);
    if endless {
        return Err(Explained::from(format!("{name}: the patterns come to no end\n")));
    }
    match compiled {
        Ok(compiled) => {
            let warnings = show(&compiled.warnings, &compiled.sources, style);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok((Loaded { plan: Plan::new(&compiled), compiled, text, style }, warnings))
        }
        Err(failed) => {
            let mut text = show(&failed.diagnostics, &failed.sources, style);
            if style == Style::Click && failed.has_graph {
                text += NOT_INITIALIZED;
            }
            Err(text.into())
        }
    }
}

/// The bytes of a configuration; the error is the complete text for the user.
pub fn read(source: &Source) -> Result<Vec<u8>, Explained> {
    let explain =
        |e: std::io::Error| Explained::from(without_error_numbers(&format!("{}: {e}\n", source.name())));
    match source {
        Source::Text(_, text) => Ok(text.clone().into_bytes()),
        Source::Stdin => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).map_err(explain)?;
            Ok(bytes)
        }
        Source::File(path) => std::fs::read(path).map_err(explain),
    }
}

/// Looks for a required library beside the file that requires it, then along `CLICKPATH`.
pub fn find_library(name: &str, from: &str) -> Option<LoadedFile> {
    let beside = Path::new(from).parent().map(Path::to_path_buf).unwrap_or_default();
    let path = LIBRARY_PATH.get().cloned().or_else(|| std::env::var("CLICKPATH").ok()).unwrap_or_default();
    let along = path.split(':').filter(|p| !p.is_empty()).flat_map(|p| [Path::new(p).join("conf"), p.into()]);
    let file = std::iter::once(beside).chain(along).map(|dir| dir.join(name)).find(|f| f.is_file())?;
    let text = std::fs::read_to_string(&file).ok()?;
    Some(LoadedFile { name: file.display().to_string(), text })
}

/// Click's last line when a configuration was understood, and still cannot run.
const NOT_INITIALIZED: &str = "Router could not be initialized!\n";

fn show(diagnostics: &Diagnostics, sources: &Sources, style: Style) -> String {
    match style {
        Style::Human => {
            let quotes = Quotes::for_lang(std::env::var("LANG").ok().as_deref());
            render::human(diagnostics, sources, quotes)
        }
        Style::Click => render::plain(diagnostics, sources, Quotes::Ascii),
    }
}

impl Loaded {
    /// Whether there is no element, so that nothing would ever happen.
    pub fn is_empty(&self) -> bool {
        self.plan.elements.is_empty()
    }

    /// The configuration in flat form, as Click's `flatconfig` shows it.
    pub fn flat(&self) -> String {
        print::graph(&self.compiled.graph)
    }

    /// The complete text of why the router could not be started.
    pub fn explain(&self, error: &StartError) -> Explained {
        let StartError::Elements(errors) = error else { return format!("{error}\n").into() };
        let mut all = Diagnostics::new();
        for error in errors {
            error.diagnostics(&self.plan).into_iter().for_each(|d| all.push(d));
        }
        let mut text = show(&all, &self.compiled.sources, self.style);
        if self.style == Style::Click {
            text = without_error_numbers(&text) + NOT_INITIALIZED;
        }
        text.into()
    }

    /// The complete text of what elements warn of.
    pub fn explain_warnings(&self, warnings: &[ElementWarning]) -> String {
        match self.style {
            Style::Human => warnings.iter().map(|w| format!("{w}\n")).collect(),
            Style::Click => {
                let mut all = Diagnostics::new();
                warnings.iter().for_each(|w| all.push(w.diagnostic(&self.plan)));
                show(&all, &self.compiled.sources, self.style)
            }
        }
    }
}

/// The lines without the numbers of errors that the standard library puts behind their texts.
fn without_error_numbers(text: &str) -> String {
    text.lines().map(|line| line.split(" (os error ").next().unwrap_or(line).to_owned() + "\n").collect()
}

/// Says, as Click does, that the configuration from `source` is not run because it has no elements.
pub fn warn_empty(source: &Source) {
    let name = source.name();
    logger::answer(&format!("warning: {name}: configuration has no elements, exiting\n"));
}

/// The plan as the optimiser makes it.
pub fn optimise(plan: Plan) -> Plan {
    causeway_elements::optimise(&plan).plan
}
