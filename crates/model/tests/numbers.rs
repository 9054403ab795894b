//! Numbers of the papers' text: what was calibrated on them still is, and the others are within what is promised.

use causeway_model::figures::{Figure, lines};
use causeway_model::run::Effort;

/// How far a number may be off, in percent, and one that a machine was calibrated on.
const RESULT: f64 = 10.0;
const CALIBRATED: f64 = 5.0;

#[test]
fn they_are_met_and_what_was_calibrated_still_is() {
    for (name, results, calibrated) in [("OSR-rx", 1, 1), ("OSR-tx", 0, 1), ("OSR-4", 1, 2), ("CvL-5", 1, 1)]
    {
        let figure = Figure::find(name).expect("a figure");
        let machine = figure.machine().expect("the machine of the paper");
        let found = figure.run(&machine, 1, Effort::SHORT, None).expect("enough ports");
        let mut seen = [0, 0];
        for line in lines(figure, &found) {
            let Some((before, after)) = line.split_once(" %") else { continue };
            let Some(error) = before.split_whitespace().last().and_then(|word| word.parse::<f64>().ok())
            else {
                continue;
            };
            let is_calibrated = after.contains("calibrated on it");
            seen[usize::from(is_calibrated)] += 1;
            let most = if is_calibrated { CALIBRATED } else { RESULT };
            assert!(error.abs() <= most, "{name}: {line}");
        }
        assert!(seen[0] >= results && seen[1] >= calibrated, "{name}: {seen:?}");
    }
}
