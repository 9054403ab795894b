//! What handlers say of their values is so: a number that each copy of an element has for itself is no words, of which the first
//! copy's would be taken for all.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::measure::{Across, Kind};
use causeway_engine::spec::Copies;
use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;

/// Numbers that no copy changes by itself: what the configuration says, in other words.
const CONFIGURED: &[&str] = &[
    "AdaptiveRED.min_thresh",
    "AdaptiveRED.max_thresh",
    "AggregateIP.bit_offset",
    "AggregateIP.bit_length",
    "SetAnnoByte.anno",
];

/// Whose examples may not run here: they need a device or a file, or are written by the optimiser.
const NOT_RUN: &[&str] =
    &["FromDevice", "FusedIPForward", "IPPrint", "KernelForward", "PollDevice", "ToDevice", "ToKernel"];

#[test]
fn numbers_say_how_those_of_several_workers_make_one() {
    let (mut found, mut not_run) = (Vec::new(), Vec::new());
    for spec in causeway_elements::library().iter().filter(|spec| !matches!(spec.copies, Copies::One)) {
        let library = causeway_elements::library();
        let graph = causeway_lang::compile("example", spec.example.as_bytes(), &NoLibraries, &library, &[]);
        let plan = graph.ok().map(|graph| Plan::new(&graph));
        let of_class =
            |plan: &Plan| plan.elements.iter().find(|e| e.class == spec.name).map(|e| e.name.clone());
        let options = Options { simulated_ns: Some(SIMULATED_START_NS), ..Options::default() };
        let element = plan.as_ref().and_then(of_class);
        let router = plan.and_then(|plan| Router::start(library, plan, options).ok());
        let (Some(element), Some(router)) = (element, router) else {
            not_run.push(spec.name);
            continue;
        };
        let texts = spec.handlers.iter().filter(|h| h.kind == Kind::Text && h.across == Across::First);
        for name in texts.filter(|h| h.access.reads()).flat_map(|h| h.names(1)) {
            let value = router.read(&element, &name, "").unwrap_or_default();
            if value.trim().parse::<f64>().is_ok() {
                found.push(format!("{}.{name}", spec.name));
            }
        }
    }
    assert_eq!(found, CONFIGURED);
    assert!(not_run.iter().all(|class| NOT_RUN.contains(class)), "{not_run:?}");
}
