//! Translation of addresses and analysis of traces: whole graphs, from lines of fields to lines of fields.
//!
//! What is expected is what Click prints for the same configurations, unless the test says otherwise.

mod aggregates;
mod dumps;
mod options;
mod rewriters;
mod rewriters_changed;

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::{Defaults, Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::Duration;

/// A plan of `text`. Panics if there is something wrong with it.
fn plan(text: &str) -> Plan {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())))
}

/// A router of `text` under simulated time, or why there is none.
fn start(text: &str) -> Result<Router, String> {
    let options = Options { simulated_ns: Some(SIMULATED_START_NS), seed: Some(1), ..Options::default() };
    Router::start(causeway_elements::library(), plan(text), options).map_err(|e| e.to_string())
}

/// Waits until the router asks to be stopped.
fn wait(router: &Router) {
    router.resume();
    let event = router.wait(Some(Duration::from_secs(60)));
    assert!(matches!(event, Some(Event::StopRequested { .. })), "{event:?}");
}

/// Runs `text` until it stops.
fn run(text: &str) -> Router {
    let router = start(text).unwrap_or_else(|e| panic!("{e}"));
    wait(&router);
    router
}

/// A source of packets with `fields`, one a line, that stops the router.
fn source(fields: &str, lines: &[&str]) -> String {
    let lines: String =
        lines.iter().map(|l| format!("{}\\n", l.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    format!("FromIPSummaryDump(DATA \"!data {fields}\\n{lines}\", STOP true, CHECKSUM true)")
}

/// What a handler answers.
fn read(router: &Router, element: &str, handler: &str) -> String {
    router.read(element, handler, "").unwrap_or_else(|e| panic!("{element}.{handler}: {e}"))
}

/// A file of a test, which goes with it.
struct Target(std::path::PathBuf);

impl Target {
    fn new(test: &str) -> Target {
        Target(std::env::temp_dir().join(format!("causeway-flows-{test}-{}", std::process::id())))
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }

    /// A sink that writes `fields` of packets to the file.
    fn sink(&self, fields: &str) -> String {
        format!("ToIPSummaryDump({}, FIELDS {fields}, HEADER false)", self.path())
    }

    /// What was written, once the router is gone.
    fn lines(&self, router: Router) -> Vec<String> {
        drop(router);
        let text = std::fs::read_to_string(&self.0).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
