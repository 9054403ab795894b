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

#[test]
fn numbers_say_how_those_of_several_workers_make_one() {
    let mut found = Vec::new();
    for spec in causeway_elements::library().iter().filter(|spec| !matches!(spec.copies, Copies::One)) {
        let library = causeway_elements::library();
        let Ok(graph) =
            causeway_lang::compile("example", spec.example.as_bytes(), &NoLibraries, &library, &[])
        else {
            continue;
        };
        let plan = Plan::new(&graph);
        let Some(element) = plan.elements.iter().find(|e| e.class == spec.name).map(|e| e.name.clone())
        else {
            continue;
        };
        let options = Options { simulated_ns: Some(SIMULATED_START_NS), ..Options::default() };
        let Ok(router) = Router::start(library, plan, options) else { continue };
        for handler in spec.handlers.iter().filter(|h| h.kind == Kind::Text && h.across == Across::First) {
            let value = router.read(&element, handler.name, "").unwrap_or_default();
            if value.trim().parse::<f64>().is_ok() {
                found.push(format!("{}.{}", spec.name, handler.name));
            }
        }
    }
    assert_eq!(found, CONFIGURED);
}
