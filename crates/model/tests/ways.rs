//! A packet can be followed through every figure.

use causeway_model::event::{MICROSECOND, MILLISECOND};
use causeway_model::figures::{Figure, Found, ways};
use causeway_model::run::Effort;

/// Long enough for a few packets at the lowest load.
const GLANCE: Effort =
    Effort { warm_up_ps: MILLISECOND, window_ps: 100 * MICROSECOND, windows: 1, windows_most: 1 };

fn followed(figure: &Figure, number: u64) -> Found {
    let machine = figure.machine().expect("the machine of the paper");
    figure.run(&machine, 1, GLANCE, Some(number)).expect("enough ports")
}

#[test]
fn a_packet_is_followed_in_every_figure_at_both_ends_of_each_curve() {
    for figure in Figure::all() {
        let found = followed(figure, 2);
        for (curve, outcomes) in &found.curves {
            for outcome in [&outcomes[0], &outcomes[outcomes.len() - 1]] {
                let (name, way) = (format!("{}, {}", figure.name, curve.name), &outcome.trace);
                // A generator in the kernel has packets that come from nowhere.
                let first = if outcome.offered_fps > 0.0 { "has come in" } else { "ring for transmission" };
                assert!(way.first().is_some_and(|line| line.contains(first)), "{name}: {way:?}");
                assert!(way[0].contains(" 0 ns"), "{name}: times count from the first");
                assert!(way.len() > 1, "{name}: {way:?}");
            }
        }
        let lines = ways(&found);
        assert_eq!(
            lines.iter().filter(|line| line.contains("(modelled)")).count(),
            found.curves.iter().map(|(_, outcomes)| outcomes.len().min(2)).sum::<usize>(),
            "{}: {lines:?}",
            figure.name
        );
    }
}

#[test]
fn a_way_has_its_steps_in_every_paper() {
    let steps = [
        "has come in",
        "is in memory",
        "is taken",
        "ring for transmission",
        "the card that sends",
        "has left",
    ];
    for (name, curve) in
        [("LUT-2", "1 sources"), ("CvL-7", "click"), ("AFF-5", "napi 300, mode I"), ("FPGA-4", "")]
    {
        let found = followed(Figure::find(name).expect("a figure"), 1);
        let curve = if curve.is_empty() { found.curves[0].0.name.clone() } else { curve.to_owned() };
        let way = found.curve(&curve)[0].trace.join("\n");
        let places: Vec<Option<usize>> = steps.iter().map(|step| way.find(step)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{name}: {way}");
    }
}
