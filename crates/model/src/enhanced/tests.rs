use super::*;
use causeway_results::Document;
use std::path::Path;
use std::sync::OnceLock;

/// Part by which the Verilog's simulation and this model may differ.
const TOLERANCE: f64 = 0.05;

/// What most tests look at.
fn answer() -> &'static Answer {
    static ANSWER: OnceLock<Answer> = OnceLock::new();
    ANSWER.get_or_init(|| ask(1).expect("a machine"))
}

/// What the simulation of the Verilog gave, as it is published.
fn verilog() -> Document {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/fpga-nic.json");
    Document::from_json(&std::fs::read_to_string(file).expect("the page's numbers")).expect("a document")
}

/// The number of a series: the one of this place, or the only one.
fn published(document: &Document, name: &str, x: Option<f64>) -> f64 {
    let series = document.series(name).unwrap_or_else(|| panic!("no series '{name}'"));
    let one = series.measurements.iter().find(|one| one.x == x);
    one.unwrap_or_else(|| panic!("'{name}' has nothing at {x:?}")).repetitions[0]
}

#[test]
fn what_comes_out_is_what_the_verilog_gave_on_both_buses_up_to_eight_cards() {
    let (answer, document) = (answer(), verilog());
    let mut wrong = Vec::new();
    let mut hold = |case: &Case, series: &str, x: Option<f64>| {
        let found = &case.found;
        for (what, model) in [
            ("delivered", case.delivered_gbps()),
            ("bus busy", found.bus_busy),
            ("bus data", found.bus_data),
            ("packets a burst", found.delivered_pps / found.bursts_pps),
        ] {
            let seen = published(&document, &format!("{series}/{what}"), x);
            if (model / seen - 1.0).abs() > TOLERANCE {
                wrong.push(format!("{series} {x:?}: {what} {seen} in the Verilog, {model} here"));
            }
        }
    };
    for case in &answer.routing {
        match case.bus_mhz {
            66 => hold(case, &format!("routing/{}", case.name), None),
            _ => hold(case, &format!("bus-133/{}-133", case.name), None),
        }
    }
    for (cards, case) in &answer.growth {
        match case.bus_mhz {
            66 => hold(case, "cards/10 cycles overhead", Some(f64::from(*cards))),
            _ if *cards >= 4 => hold(case, &format!("bus-133/mesh-{cards}-133"), None),
            _ => {}
        }
    }
    assert_eq!((answer.routing.len(), answer.growth.len()), (10, 14));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn eight_cards_are_bound_by_the_slower_bus_and_not_by_the_faster() {
    let answer = answer();
    let of = |mhz, cards| {
        let case = answer.growth.iter().find(|(n, case)| *n == cards && case.bus_mhz == mhz);
        &case.expect("there").1
    };
    let (slow, fast) = (of(66, 8), of(133, 8));
    // Without routes they are commercial cards, and the processor is the limit.
    assert!((480e3..540e3).contains(&answer.slow_pps), "{}", answer.slow_pps);
    assert!(slow.delivered_gbps() < 0.65 * slow.offered_gbps && slow.found.bus_busy > 0.99);
    assert!(fast.delivered_gbps() > 0.97 * fast.offered_gbps);
    assert!(of(66, 4).delivered_gbps() > 0.999 * of(66, 4).offered_gbps, "four pass on either");
    // With sequences that cost nothing beside their words, it is still the words.
    let mut free = Scenario::new(8, mesh(8, 64));
    (free.bus_overhead_cycles, free.measure_ns) = (5, 2_000_000);
    let words = predict(&free);
    assert!(words.bus_data > 0.9 && words.delivered_pps < 1.2 * slow.found.delivered_pps, "{words:?}");
}

#[test]
fn an_output_that_two_inputs_want_gives_both_half_and_bursts_grow_with_what_waits() {
    let answer = answer();
    let of = |name: &str| {
        let case = answer.routing.iter().find(|case| case.name == name && case.bus_mhz == 66);
        case.expect("there").found
    };
    let a_burst = |found: Statistics| found.delivered_pps / found.bursts_pps;
    assert!((of("D").delivered_pps / of("B").delivered_pps - 1.0).abs() < 0.001, "one line's worth");
    assert!(a_burst(of("F")) > 2.0 * a_burst(of("B")), "the busier the bus, the more packets a burst");
    // An idle bus has a burst for every packet.
    let mut calm = Scenario::new(2, vec![Source { load: 0.1, ..Source::full(0, &[1]) }]);
    calm.measure_ns = 2_000_000;
    assert!(a_burst(predict(&calm)) < 1.05);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_everything_is_said_to_be_modelled() {
    let answer = answer();
    let text = document(answer, 1).to_json().expect("a document");
    assert_eq!(text, document(&ask(1).expect("a machine"), 1).to_json().expect("a document"));
    let lines = lines(answer);
    assert!(lines[0].contains("modelled") && lines.len() == 3 + 10 + 14, "{lines:#?}");
    let measured = |series: &&causeway_results::Series| series.measurements[0].source.name() == "measured";
    let document = document(answer, 1);
    let papers: Vec<_> = document.series.iter().filter(measured).map(|series| &series.name).collect();
    assert!(papers.len() == 5 && papers.iter().all(|name| name.starts_with("the paper: ")), "{papers:?}");
}

#[test]
fn random_spacing_keeps_the_load_and_follows_the_seed() {
    let source = Source { spacing: Spacing::Poisson, load: 0.5, ..Source::full(0, &[1]) };
    let times = |seed| {
        let mut generator = Generator::new(source.clone(), seed);
        (0..10_000_000u64).step_by(8).filter(|now| generator.due(*now).is_some()).collect::<Vec<_>>()
    };
    let first = times(1);
    assert!((first.len() as f64 / 7_440.0 - 1.0).abs() < 0.05, "{}", first.len());
    assert_eq!(first, times(1));
    assert_ne!(first, times(2));
}
