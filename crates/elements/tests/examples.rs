//! The example in each class's documentation is a configuration that starts.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;

/// Subjects whose elements open devices and files, which a test does not have.
const EXTERNAL: &[&str] = &["devices", "kernel", "sockets", "traces"];

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
}

#[test]
fn every_example_starts() {
    let mut failures = Vec::new();
    let classes = causeway_elements::library();
    let external: Vec<_> =
        classes.iter().filter(|s| EXTERNAL.contains(&s.category)).map(|s| s.name).collect();
    for spec in classes.iter() {
        let library = causeway_elements::library();
        match causeway_lang::compile("example", spec.example.as_bytes(), &NoLibraries, &library, &[]) {
            Err(f) => failures.push(format!("{}: {:?}", spec.name, f.diagnostics.messages())),
            Ok(_) if words(spec.example).any(|word| external.contains(&word)) => {}
            Ok(graph) => {
                let options = Options { simulated_ns: Some(SIMULATED_START_NS), ..Options::default() };
                if let Err(e) = Router::start(library, Plan::new(&graph), options) {
                    failures.push(format!("{}: {e}", spec.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
