//! What results have beside loads, rates and delays.

use super::*;

/// A device of which even the lowest load is too much: results, page and terminal say so.
#[test]
fn what_was_not_found_is_said() {
    let mut document = Document::new(Run::default());
    let test = SelfTest { steps: Vec::new(), bias_ns: None };
    let mut findings = Findings::new(&mut document, &["broken".to_owned()]);
    let result = |lower_fps, upper| GoalResult {
        goal: "NDR".to_owned(),
        upper_fps: Some(upper),
        lower_fps,
        conditional_throughput_fps: None,
    };
    for (repetition, lower) in [(0, None), (1, Some(900)), (2, None)] {
        let place = place("broken", repetition);
        findings.bounds(&place, &[result(lower, 1_000)], &test);
        if lower.is_none() {
            findings.not_measured(&place, "delay", "it has no PDR");
        }
    }
    document.to_json().expect("valid");
    let ndr = &document.series("broken/NDR").expect("told of").measurements[0];
    let none = "none: even the lowest load that was tried, 1000 frames/s, is too much";
    assert_eq!(ndr.repetitions, [0.0, 900.0, 0.0]);
    assert_eq!(ndr.note, format!("{none}; {}", findings::LIMITED));
    let page = causeway_results::html::page("t", &document).expect("a page");
    let line = "<p>not measured: delay of broken at 64 bytes: it has no PDR, in repetition 1, 3.</p>";
    assert!(page.contains(line) && page.contains(none), "{page}");
    let told = verdict(&document);
    assert!(told[0].starts_with("broken/NDR at 64 bytes") && told[0].contains(none), "{told:?}");
    assert_eq!(told[1], "not measured: delay of broken at 64 bytes: it has no PDR, in repetition 1, 3");
    assert_eq!(told.len(), 2, "bounds are in the page");
}

/// What the device says of itself in a trial, beside its reception mechanisms: ring cleanings, and what it drops.
#[test]
fn ring_cleanings_and_drops_are_written_for_each_trial() {
    let parse = |text: &str| crate::inside::reported::parse(text).expect("counters");
    let lines = |cleanings, frames, expired| {
        parse(&format!(
            "0\tout1\tport.tx_cleanings\t{cleanings}\n0\tout1\tport.tx_cleaned_frames\t{frames}\n\
             0\tttl\tdrop.expired\t{expired}\n0\tttl\tdrop.other\t4\n"
        ))
    };
    let mut document = Document::new(Run::default());
    let mut findings = Findings::new(&mut document, &["causeway".to_owned()]);
    let place = place("causeway", 0);
    findings.reported(&place, 1e6, (&lines(10, 100, 5), &lines(20, 300, 8)), 500_000_000);
    // It was started again.
    findings.reported(&place, 2e6, (&lines(20, 300, 8), &lines(2, 8, 1)), 500_000_000);
    document.to_json().expect("valid");
    let values = |name: &str| -> Vec<f64> {
        let series = document.series(name).unwrap_or_else(|| panic!("{name}"));
        series.measurements.iter().map(|one| one.repetitions[0]).collect()
    };
    let inside = "inside causeway, 64 bytes";
    assert_eq!(values(&format!("out1, ring cleanings/{inside}: runs")), [20.0, 4.0]);
    assert_eq!(values(&format!("out1, ring cleanings/{inside}: packets of a run")), [20.0, 4.0]);
    assert_eq!(values(&format!("ttl, expired/{inside}: drops")), [3.0, 1.0]);
    assert!(document.series(&format!("ttl, other/{inside}: drops")).is_none(), "it dropped none so");
}
